//! The manager's side of identity: join tokens, certificates, renewal, revocation and signatures.
//!
//! Everything that it must remember is in its directory, in files that only their owner can read, and is durable before
//! it takes effect: a token is spent before its certificate is made, a revocation is stored before it is reported.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ED25519, PublicKey, PublicKeyData, SanType,
    SerialNumber,
};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::Ed25519KeyPair;
use rustls::pki_types::{CertificateDer, CertificateSigningRequestDer, PrivatePkcs8KeyDer};
use time::OffsetDateTime;

use super::certificate::{Fingerprint, hexadecimal, host_name};
use super::credentials::{Identity, Key};
use super::join::{Grant, JoinRequest};
use super::ticket::Ticket;
use super::token::{JoinRefusal, JoinToken, TokenBook};
use crate::data_directory::replace_file;
use crate::error::Error;
use crate::peer::{PeerId, Timestamp, VmName};

const KEY: &str = "authority-key.der";
const CERTIFICATE: &str = "authority-certificate.der";
const TOKENS: &str = "tokens";
const REVOKED: &str = "revoked";
/// Clocks of machines differ: a certificate is valid from a little before it was made.
const CLOCK_DIFFERENCE_S: u64 = 300;
const AUTHORITY_LIFETIME_S: u64 = 20 * 365 * 24 * 3600;

/// The lifetime of a peer's certificate, unless the operator sets another one.
pub const CERTIFICATE_LIFETIME_S: u64 = 24 * 3600;

/// The certificate authority of one deployment.
pub struct Authority {
    directory: PathBuf,
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    signer: Signer,
    tokens: TokenBook,
    revoked: BTreeSet<PeerId>,
    lifetime_s: u64,
}

/// Signs statements in the name of the authority.
#[derive(Clone)]
pub struct Signer(Arc<Ed25519KeyPair>);

impl Signer {
    /// Signs a statement; the same statement gives the same ticket.
    pub fn sign(&self, statement: &[u8]) -> Ticket {
        Ticket::sign(&self.0, statement)
    }
}

/// A join request with a valid token and a valid certificate request.
#[derive(Clone, Debug)]
pub struct Applicant {
    /// The name that it asks for, which the token permits.
    pub name: VmName,
    /// Its number, if the answer to an earlier request of the same key was lost.
    pub known: Option<PeerId>,
    secret: [u8; 16],
    key: PublicKey,
}

impl Authority {
    /// Loads the authority of a directory, or creates a new one there.
    pub fn create_or_load(directory: &Path, lifetime_s: u64, now: Timestamp) -> Result<Self, Error> {
        let key_path = directory.join(KEY);
        let certificate_path = directory.join(CERTIFICATE);
        // The certificate is written last; without it there is no authority yet, whatever a crash left behind.
        if !certificate_path.exists() {
            let key = KeyPair::generate_for(&PKCS_ED25519).map_err(Error::identity("generate a key"))?;
            let certificate = authority_parameters(now)?.self_signed(&key);
            let certificate = certificate.map_err(Error::identity("make the authority's certificate"))?;
            replace_file(&key_path, key.serialized_der())?;
            replace_file(&certificate_path, certificate.der())?;
        }
        let damaged = |path: &Path| Error::Damaged { path: path.to_owned() };
        let key_der = fs::read(&key_path).map_err(Error::file("read", &key_path))?;
        let signer = Ed25519KeyPair::from_pkcs8(&key_der).map_err(|_| damaged(&key_path))?;
        let signer = Signer(Arc::new(signer));
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(key_der), &PKCS_ED25519)
            .map_err(|_| damaged(&key_path))?;
        let certificate = fs::read(&certificate_path).map_err(Error::file("read", &certificate_path))?;
        let certificate = CertificateDer::from(certificate);
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(|_| damaged(&certificate_path))?;
        Ok(Self {
            certificate,
            issuer,
            signer,
            tokens: TokenBook::load(directory.join(TOKENS))?,
            revoked: load_revoked(&directory.join(REVOKED))?,
            directory: directory.to_owned(),
            lifetime_s,
        })
    }

    /// Fingerprint of the certificate authority.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    /// The manager's own identity, with a new certificate, stored in the directory.
    pub fn manager_identity(&self, directory: &Path, now: Timestamp) -> Result<Identity, Error> {
        let name = VmName::parse("manager").expect("the word is a sound name");
        self.identity(directory, PeerId::MANAGER, &name, now)
    }

    /// The identity of a peer whose directory is on this machine, with a new certificate stored there: such a peer does
    /// not have to join.
    pub fn identity(&self, directory: &Path, peer: PeerId, name: &VmName, now: Timestamp) -> Result<Identity, Error> {
        self.refuse_revoked(peer)?;
        let key = Key::create_or_load(directory)?;
        let certificate = self.certify(peer, name, key.pair(), now)?;
        Identity::create(directory, key, certificate, self.certificate.to_vec())
    }

    /// Creates a join token, for one VM name or for any, valid for some seconds.
    pub fn invite(&mut self, name: Option<VmName>, good_for_s: u64, now: Timestamp) -> Result<JoinToken, Error> {
        let secret = random()?;
        self.tokens.enter(&secret, now.after(good_for_s), name, now)?;
        Ok(JoinToken { secret, authority: self.fingerprint() })
    }

    /// Checks a join request. Nothing changes: between this and [`admit`](Self::admit) the caller chooses a number.
    pub fn examine(&self, request: &JoinRequest, now: Timestamp) -> Result<Applicant, Error> {
        let key = requested_key(&request.certificate_request)?;
        let fingerprint = Fingerprint::of(key.der_bytes());
        let known = self.tokens.examine(&request.secret, &request.name, fingerprint, now)?;
        Ok(Applicant { name: request.name.clone(), known, secret: request.secret, key })
    }

    /// Spends the token and certifies the peer under this number. A token that another request has spent meanwhile is
    /// refused.
    pub fn admit(&mut self, applicant: &Applicant, peer: PeerId, now: Timestamp) -> Result<Grant, Error> {
        let fingerprint = Fingerprint::of(applicant.key.der_bytes());
        let known = self.tokens.examine(&applicant.secret, &applicant.name, fingerprint, now)?;
        let peer = known.unwrap_or(peer);
        self.refuse_revoked(peer)?;
        if known.is_none() {
            self.tokens.spend(&applicant.secret, fingerprint, peer)?;
        }
        let certificate = self.certify(peer, &applicant.name, &applicant.key, now)?;
        Ok(Grant { peer, certificate })
    }

    /// Renews the certificate of a peer that has presented its present one.
    pub fn renew(&self, peer: PeerId, name: &VmName, request: &[u8], now: Timestamp) -> Result<Grant, Error> {
        self.refuse_revoked(peer)?;
        let key = requested_key(request)?;
        Ok(Grant { peer, certificate: self.certify(peer, name, &key, now)? })
    }

    /// Revokes a peer: it gets no further certificate. Durable when this returns; links must be told as well.
    pub fn revoke(&mut self, peer: PeerId) -> Result<(), Error> {
        let mut revoked = self.revoked.clone();
        if revoked.insert(peer) {
            let mut text = String::new();
            for peer in &revoked {
                writeln!(text, "{}", peer.0).expect("writing to a string cannot fail");
            }
            replace_file(&self.directory.join(REVOKED), text.as_bytes())?;
            self.revoked = revoked;
        }
        Ok(())
    }

    /// All revoked peers.
    pub fn revoked(&self) -> &BTreeSet<PeerId> {
        &self.revoked
    }

    /// The signer of the authority in a directory, for replays of what it signed; `None` if there is none.
    pub fn signer_in(directory: &Path) -> Result<Option<Signer>, Error> {
        if !directory.join(CERTIFICATE).exists() {
            return Ok(None);
        }
        let path = directory.join(KEY);
        let key = fs::read(&path).map_err(Error::file("read", &path))?;
        let key = Ed25519KeyPair::from_pkcs8(&key).map_err(|_| Error::Damaged { path })?;
        Ok(Some(Signer(Arc::new(key))))
    }

    /// The signer, for code that signs in the authority's name.
    pub fn signer(&self) -> Signer {
        self.signer.clone()
    }

    fn refuse_revoked(&self, peer: PeerId) -> Result<(), Error> {
        if self.revoked.contains(&peer) { Err(JoinRefusal::Revoked(peer).into()) } else { Ok(()) }
    }

    fn certify(&self, peer: PeerId, name: &VmName, key: &impl PublicKeyData, now: Timestamp) -> Result<Vec<u8>, Error> {
        let mut parameters = CertificateParams::default();
        let host_name = host_name(peer).try_into().expect("host names are ASCII");
        parameters.subject_alt_names = vec![SanType::DnsName(host_name)];
        parameters.distinguished_name = called(name.as_str());
        parameters.serial_number = Some(SerialNumber::from(random::<16>()?.to_vec()));
        parameters.not_before = date(now.before(CLOCK_DIFFERENCE_S));
        parameters.not_after = date(now.after(self.lifetime_s));
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        parameters.use_authority_key_identifier_extension = true;
        let certificate = parameters.signed_by(key, &self.issuer).map_err(Error::identity("make a certificate"))?;
        Ok(certificate.der().to_vec())
    }
}

fn authority_parameters(now: Timestamp) -> Result<CertificateParams, Error> {
    let mut parameters = CertificateParams::default();
    // Each authority has a unique name, so that a certificate of another one is never mistaken for ours before it is
    // refused.
    parameters.distinguished_name = called(&format!("Holdfast authority {}", hexadecimal(&random::<8>()?)));
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    parameters.not_before = date(now.before(CLOCK_DIFFERENCE_S));
    parameters.not_after = date(now.after(AUTHORITY_LIFETIME_S));
    Ok(parameters)
}

fn called(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// The key in a certificate request, whose possession the sender has proved.
fn requested_key(request: &[u8]) -> Result<PublicKey, JoinRefusal> {
    let request = CertificateSigningRequestDer::from(request);
    let request = CertificateSigningRequestParams::from_der(&request).map_err(|_| JoinRefusal::BadRequest)?;
    let key = request.public_key;
    if *key.algorithm() == PKCS_ED25519 && key.der_bytes().len() == 32 { Ok(key) } else { Err(JoinRefusal::BadRequest) }
}

fn load_revoked(path: &Path) -> Result<BTreeSet<PeerId>, Error> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(source) => return Err(Error::file("read", path)(source)),
    };
    let revoked = text.lines().map(|line| line.parse().map(PeerId)).collect::<Result<_, _>>();
    revoked.map_err(|_| Error::Damaged { path: path.to_owned() })
}

/// Dates beyond the range of X.509 are clamped.
fn date(time: Timestamp) -> OffsetDateTime {
    const LAST: i64 = 253_402_300_799;
    let seconds = i64::try_from(time.0).unwrap_or(LAST).min(LAST);
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|unspecified| Error::identity("generate a random number")(unspecified.to_string()))?;
    Ok(bytes)
}
