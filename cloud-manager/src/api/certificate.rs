//! How operators recognise the manager: a certificate of its own, which their access file contains.
//!
//! It is self-signed: a client with the access file trusts exactly this certificate and no authority. The key is created
//! once and kept; the certificate is renewed when the manager is to be reached under other names.

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject},
    version::TLS13,
};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The API's own certificate, with its key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Certificate {
    names: Vec<String>,
    certificate: String,
    key: String,
}

/// Why there is no certificate. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The file cannot be read.
    #[error("{}: cannot be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// The file is not in the format that this program writes.
    #[error("{}: damaged (remove it, and distribute the new access file)", .0.display())]
    Damaged(PathBuf),
    /// The file cannot be written.
    #[error("the certificate cannot be written")]
    Write(#[source] Box<runtime::Error>),
    /// A name is neither a host name nor an address; or the library refused.
    #[error("no certificate can be created for {0:?}")]
    Make(Vec<String>, #[source] rcgen::Error),
    /// TLS cannot be set up with it.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
}

impl Certificate {
    /// Reads the certificate from this file, or creates one for these host names and addresses. Durable when this returns.
    pub fn open(path: &Path, names: &[String]) -> Result<Self, CertificateError> {
        let damaged = || CertificateError::Damaged(path.into());
        let kept: Option<Self> = match fs::read(path) {
            Ok(bytes) => Some(serde_json::from_slice(&bytes).map_err(|_| damaged())?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(CertificateError::Read(path.into(), error)),
        };
        let key = match &kept {
            Some(kept) if kept.names == names => return Ok(kept.clone()),
            Some(kept) => KeyPair::from_pem(&kept.key).map_err(|_| damaged())?,
            None => KeyPair::generate().map_err(|error| CertificateError::Make(names.into(), error))?,
        };
        let made = Self::make(names, &key)?;
        let bytes = serde_json::to_vec_pretty(&made).expect("a certificate is made of strings");
        let write = |error| CertificateError::Write(Box::new(error));
        runtime::data_directory::replace_file(path, &bytes).map_err(write)?;
        Ok(made)
    }

    fn make(names: &[String], key: &KeyPair) -> Result<Self, CertificateError> {
        let wrong = |error| CertificateError::Make(names.into(), error);
        let mut parameters = CertificateParams::new(names).map_err(wrong)?;
        parameters.distinguished_name.push(DnType::CommonName, "Holdfast operator API");
        let certificate = parameters.self_signed(key).map_err(wrong)?;
        Ok(Self { names: names.into(), certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// The certificate in the PEM format, for access files.
    pub fn pem(&self) -> &str {
        &self.certificate
    }

    /// Settings for the server side: TLS 1.3, HTTP/1.1.
    pub fn server(&self) -> Result<Arc<ServerConfig>, CertificateError> {
        let unreadable = |_| rustls::Error::General("the certificate cannot be read".into());
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).map_err(unreadable)?;
        let key = PrivatePkcs8KeyDer::from_pem_slice(self.key.as_bytes()).map_err(unreadable)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], PrivateKeyDer::Pkcs8(key))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}
