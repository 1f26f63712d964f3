//! A peer's own key and certificate, and the authority it trusts.
//!
//! The key never leaves the data directory and stays the same for the peer's whole life, so that what is derived from
//! it (the keys of its QUIC endpoint) stays the same too; renewal changes the certificate alone.

use std::fs;
use std::path::Path;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use ring::hmac;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::certificate::{Certified, Fingerprint, public_key};
use super::ticket::Ticket;
use crate::data_directory::replace_file;
use crate::error::Error;

const KEY: &str = "key.der";
const CERTIFICATE: &str = "certificate.der";
const AUTHORITY: &str = "authority.der";

/// A key without a valid certificate.
#[derive(Debug)]
pub(crate) struct Key(KeyPair);

impl Key {
    /// Loads the key of a directory, or generates one there: a joining peer that crashes asks again with the same key.
    pub(crate) fn create_or_load(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(KEY);
        if path.exists() {
            return Self::load(&path);
        }
        let key = KeyPair::generate_for(&PKCS_ED25519).map_err(Error::identity("generate a key"))?;
        replace_file(&path, key.serialized_der())?;
        Ok(Self(key))
    }

    fn load(path: &Path) -> Result<Self, Error> {
        let der = fs::read(path).map_err(Error::file("read", path))?;
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(der), &PKCS_ED25519);
        key.map(Self).map_err(|_| Error::Damaged { path: path.to_owned() })
    }

    /// A certificate request; it proves possession of the key, and contains nothing else.
    pub(crate) fn request(&self) -> Result<Vec<u8>, Error> {
        let request = CertificateParams::default().serialize_request(&self.0);
        Ok(request.map_err(Error::identity("request a certificate"))?.der().to_vec())
    }

    pub(super) fn pair(&self) -> &KeyPair {
        &self.0
    }

    pub(super) fn der(&self) -> &[u8] {
        self.0.serialized_der()
    }
}

/// Everything that a peer needs to prove its identity and to verify that of others.
#[derive(Debug)]
pub struct Identity {
    key: Key,
    certificate: CertificateDer<'static>,
    authority: CertificateDer<'static>,
    certified: Certified,
}

impl Identity {
    /// Combines key and certificate, and stores them in the directory.
    pub(super) fn create(directory: &Path, key: Key, certificate: Vec<u8>, authority: Vec<u8>) -> Result<Self, Error> {
        let certified = Certified::read(&certificate)?;
        if public_key(&certificate)? != key.pair().public_key_raw() {
            return Err(Error::Unreadable { what: "certificate (it is for another key)" });
        }
        replace_file(&directory.join(AUTHORITY), &authority)?;
        // Written last, because a directory with a certificate counts as joined.
        replace_file(&directory.join(CERTIFICATE), &certificate)?;
        Ok(Self { key, certificate: certificate.into(), authority: authority.into(), certified })
    }

    /// The identity in a directory; `None` before the peer has joined.
    pub fn load(directory: &Path) -> Result<Option<Self>, Error> {
        let read = |name| {
            let path = directory.join(name);
            fs::read(&path).map_err(Error::file("read", &path))
        };
        if !directory.join(CERTIFICATE).exists() {
            return Ok(None);
        }
        let key = Key::load(&directory.join(KEY))?;
        let certificate = read(CERTIFICATE)?;
        let certified = Certified::read(&certificate)?;
        let authority = read(AUTHORITY)?.into();
        Ok(Some(Self { key, certificate: certificate.into(), authority, certified }))
    }

    /// The contents of its own certificate: number, name, validity.
    pub fn certified(&self) -> &Certified {
        &self.certified
    }

    /// The fingerprint of the authority that this peer trusts.
    pub fn authority(&self) -> Fingerprint {
        Fingerprint::of(&self.authority)
    }

    /// Whether the manager has signed this.
    pub fn verify(&self, ticket: &Ticket, statement: &[u8]) -> Result<(), Error> {
        ticket.verify(&public_key(&self.authority)?, statement)
    }

    /// The same identity with its next certificate, stored in the directory.
    pub fn renewed(&self, directory: &Path, certificate: Vec<u8>) -> Result<Self, Error> {
        let key = Key::load(&directory.join(KEY))?;
        let renewed = Self::create(directory, key, certificate, self.authority.to_vec())?;
        if renewed.certified.peer != self.certified.peer {
            return Err(Error::Unreadable { what: "certificate (it is for another peer)" });
        }
        Ok(renewed)
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Its own certificate, then the authority's, by which a joining peer recognises the manager.
    pub(super) fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.clone(), self.authority.clone()]
    }

    pub(super) fn authority_certificate(&self) -> CertificateDer<'static> {
        self.authority.clone()
    }

    pub(super) fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.der().to_vec()))
    }

    /// A secret for each purpose, the same after every restart.
    pub(crate) fn derive(&self, purpose: &str) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.key.der());
        let mut derived = [0; 32];
        derived.copy_from_slice(hmac::sign(&key, purpose.as_bytes()).as_ref());
        derived
    }
}
