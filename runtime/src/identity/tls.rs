//! Identity as configuration for rustls: TLS 1.3, ring as the explicit provider, certificates on both sides, no
//! resumption.
//!
//! Resumption is disabled because a resumed session does not present its certificate again: a peer whose certificate
//! has expired could continue forever. rustls verifies the chain and, when dialling, the name; the links check that a
//! certificate belongs to the intended peer.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring as crypto, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, PeerIncompatible, RootCertStore, ServerConfig,
    SignatureScheme,
};

use super::certificate::Fingerprint;
use super::credentials::Identity;
use crate::error::Error;

/// The purpose of a connection, agreed in the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Messages between two certified peers.
    Link,
    /// A new peer with a token asks for its first certificate.
    Join,
    /// A certified peer asks for its next certificate.
    Renew,
}

impl Purpose {
    const ALL: [Self; 3] = [Self::Link, Self::Join, Self::Renew];

    fn protocol(self) -> &'static [u8] {
        match self {
            Self::Link => b"holdfast-link/1",
            Self::Join => b"holdfast-join/1",
            Self::Renew => b"holdfast-renew/1",
        }
    }

    /// The purpose that the handshake has agreed on.
    pub(crate) fn of(protocol: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.protocol() == protocol)
    }
}

/// For accepting connections. Only a manager accepts a peer without a certificate, and then for joining only, which the
/// accepting side must enforce.
pub(crate) fn server(identity: &Identity, identity_calls: bool) -> Result<ServerConfig, Error> {
    let wrap = || Error::identity("prepare TLS");
    let verifier = WebPkiClientVerifier::builder_with_provider(trusted(identity)?, provider());
    let verifier = if identity_calls { verifier.allow_unauthenticated() } else { verifier };
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(wrap())?
        .with_client_cert_verifier(verifier.build().map_err(Error::identity("prepare TLS"))?)
        .with_single_cert(identity.chain(), identity.private_key())
        .map_err(wrap())?;
    let offered: &[Purpose] = if identity_calls { &Purpose::ALL } else { &[Purpose::Link] };
    config.alpn_protocols = offered.iter().map(|purpose| purpose.protocol().to_vec()).collect();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// For a certified peer that dials.
pub(crate) fn client(identity: &Identity, purpose: Purpose) -> Result<ClientConfig, Error> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(Error::identity("prepare TLS"))?
        .with_root_certificates(trusted(identity)?)
        .with_client_auth_cert(identity.chain(), identity.private_key())
        .map_err(Error::identity("prepare TLS"))?;
    Ok(finished(config, purpose))
}

/// For a joining peer, which knows only the fingerprint of the authority.
pub(crate) fn newcomer(authority: Fingerprint) -> Result<ClientConfig, Error> {
    let verifier = Arc::new(ByFingerprint { authority, provider: provider() });
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(Error::identity("prepare TLS"))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(finished(config, Purpose::Join))
}

fn finished(mut config: ClientConfig, purpose: Purpose) -> ClientConfig {
    config.alpn_protocols = vec![purpose.protocol().to_vec()];
    config.resumption = Resumption::disabled();
    config
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(crypto::default_provider())
}

fn trusted(identity: &Identity) -> Result<Arc<RootCertStore>, Error> {
    let mut roots = RootCertStore::empty();
    roots.add(identity.authority_certificate()).map_err(Error::identity("trust the authority"))?;
    Ok(Arc::new(roots))
}

/// Picks the authority out of the chain by its fingerprint, then verifies as usual with it as the only root.
#[derive(Debug)]
struct ByFingerprint {
    authority: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ByFingerprint {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let unknown = || rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let authority = intermediates.iter().find(|certificate| Fingerprint::of(certificate) == self.authority);
        let mut roots = RootCertStore::empty();
        roots.add(authority.ok_or_else(unknown)?.clone().into_owned())?;
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider))
            .build()
            .map_err(|_| unknown())?
            .verify_server_cert(end_entity, &[], server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
