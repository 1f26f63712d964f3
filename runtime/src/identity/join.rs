//! Joining and renewing over QUIC: one request, one answer.
//!
//! A joining peer recognises the true manager by the fingerprint in its token, and the manager recognises the peer by
//! the token's secret. A renewal needs no token: the connection itself presents the present certificate. On the
//! manager's side, an exchange becomes an [`IdentityCall`] in a bounded queue, and the owner of the
//! [`Authority`](super::Authority) answers it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use quinn::{Connection, Endpoint};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::certificate::{Certified, Fingerprint, host_name};
use super::credentials::{Identity, Key};
use super::tls::{self, Purpose};
use super::token::JoinToken;
use crate::error::Error;
use crate::peer::{PeerId, VmName};
use crate::quic;

/// Longer requests and answers are refused before they are read.
const BYTES_MAX: usize = 8 << 10;
const VERSION: u8 = 1;
const GRANTED: u8 = 1;
const REFUSED: u8 = 2;
/// Time limit of a whole exchange, on either side.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request to join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinRequest {
    pub(super) secret: [u8; 16],
    /// The name that it asks for.
    pub name: VmName,
    pub(super) certificate_request: Vec<u8>,
}

/// What the manager grants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The number of the peer.
    pub peer: PeerId,
    /// Its certificate.
    pub certificate: Vec<u8>,
}

/// A request that waits for the manager.
#[derive(Debug)]
pub struct IdentityCall {
    /// What is asked for.
    pub request: IdentityRequest,
    /// Where the answer goes; dropping it refuses the request.
    pub answer: oneshot::Sender<Result<Grant, Error>>,
}

/// What can be asked of the manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IdentityRequest {
    /// A first certificate.
    Join(JoinRequest),
    /// The next certificate.
    Renew {
        /// The contents of the present certificate.
        certified: Certified,
        /// The request for the next one.
        certificate_request: Vec<u8>,
    },
}

/// Asks the manager for a first certificate and stores it in the directory. After a crash or a lost answer it can be
/// called again with the same token: the key stays the same.
pub async fn join(directory: &Path, manager: SocketAddr, token: &JoinToken, name: &VmName) -> Result<Identity, Error> {
    let key = Key::create_or_load(directory)?;
    let mut request = vec![VERSION];
    request.extend_from_slice(&token.secret);
    request.push(u8::try_from(name.as_str().len()).expect("names are shorter than 64 bytes"));
    request.extend_from_slice(name.as_str().as_bytes());
    request.extend_from_slice(&key.request()?);
    let config = quic::client(tls::newcomer(token.authority)?)?;
    let (grant, chain) = ask(manager, config, &request).await?;
    let authority = chain.into_iter().find(|certificate| Fingerprint::of(certificate) == token.authority);
    let authority = authority.ok_or(Error::Unreadable { what: "the manager's chain of certificates" })?;
    Identity::create(directory, key, grant.certificate, authority)
}

/// Asks the manager for the next certificate and stores it in the directory.
pub async fn renew(identity: &Identity, directory: &Path, manager: SocketAddr) -> Result<Identity, Error> {
    let mut request = vec![VERSION];
    request.extend_from_slice(&identity.key().request()?);
    let config = quic::client(tls::client(identity, Purpose::Renew)?)?;
    let (grant, _) = ask(manager, config, &request).await?;
    identity.renewed(directory, grant.certificate)
}

async fn ask(manager: SocketAddr, config: quinn::ClientConfig, request: &[u8]) -> Result<(Grant, Vec<Vec<u8>>), Error> {
    let unreachable =
        |source: Box<dyn std::error::Error + Send + Sync>| Error::Unreachable { address: manager, source };
    let any: SocketAddr = match manager {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let endpoint = Endpoint::client(any).map_err(|source| unreachable(source.into()))?;
    let exchange = async {
        let dialled = endpoint.connect_with(config, manager, &host_name(PeerId::MANAGER));
        let connection = dialled.map_err(|e| unreachable(e.into()))?.await.map_err(|e| unreachable(e.into()))?;
        let (mut send, mut receive) = connection.open_bi().await.map_err(|e| unreachable(e.into()))?;
        send.write_all(request).await.map_err(|e| unreachable(e.into()))?;
        send.finish().map_err(|e| unreachable(e.into()))?;
        let answer = receive.read_to_end(BYTES_MAX).await.map_err(|e| unreachable(e.into()))?;
        let chain = quic::peer_chain(&connection);
        connection.close(0_u8.into(), b"thank you");
        Ok((read_answer(&answer)?, chain))
    };
    let answer = timeout(PATIENCE, exchange).await.map_err(|slow| unreachable(slow.into()))?;
    // Lets the goodbye leave before the socket is closed.
    let _ = timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
    answer
}

/// Serves one join or renewal connection. The worst result of any input is a closed connection.
pub(crate) async fn serve(connection: Connection, purpose: Purpose, identity_calls: mpsc::Sender<IdentityCall>) {
    if timeout(PATIENCE, answer_one(&connection, purpose, &identity_calls)).await.is_err() {
        tracing::warn!(address = %connection.remote_address(), "a join request timed out");
    }
    connection.close(0_u8.into(), b"done");
}

async fn answer_one(connection: &Connection, purpose: Purpose, identity_calls: &mpsc::Sender<IdentityCall>) {
    let Ok((mut send, mut receive)) = connection.accept_bi().await else { return };
    let Ok(request) = receive.read_to_end(BYTES_MAX).await else { return };
    let certified = quic::peer_chain(connection).first().and_then(|certificate| Certified::read(certificate).ok());
    let answer = match read_wish(&request, purpose, certified) {
        Some(request) => {
            let (answer, answered) = oneshot::channel();
            if identity_calls.send(IdentityCall { request, answer }).await.is_err() {
                return;
            }
            answered.await.unwrap_or(Err(Error::JoinRefused { reason: "the manager is shutting down".into() }))
        }
        None => Err(Error::Unreadable { what: "request" }),
    };
    if let Err(error) = &answer {
        tracing::warn!(address = %connection.remote_address(), %error, "a join request was refused");
    }
    if send.write_all(&write_answer(answer)).await.is_ok() && send.finish().is_ok() {
        // The answer is complete when the other side has received it, or has left.
        let _ = send.stopped().await;
    }
}

fn read_wish(request: &[u8], purpose: Purpose, certified: Option<Certified>) -> Option<IdentityRequest> {
    let rest = request.strip_prefix(&[VERSION])?;
    match (purpose, certified) {
        (Purpose::Join, _) => {
            let (secret, rest) = rest.split_first_chunk::<16>()?;
            let (length, rest) = rest.split_first()?;
            let (name, certificate_request) = rest.split_at_checked(usize::from(*length))?;
            let name = VmName::parse(str::from_utf8(name).ok()?).ok()?;
            Some(IdentityRequest::Join(JoinRequest {
                secret: *secret,
                name,
                certificate_request: certificate_request.to_vec(),
            }))
        }
        (Purpose::Renew, Some(certified)) => {
            Some(IdentityRequest::Renew { certified, certificate_request: rest.to_vec() })
        }
        (Purpose::Renew, None) | (Purpose::Link, _) => None,
    }
}

fn write_answer(answer: Result<Grant, Error>) -> Vec<u8> {
    match answer {
        Ok(Grant { peer, certificate }) => {
            [&[VERSION, GRANTED], peer.0.to_le_bytes().as_slice(), &certificate].concat()
        }
        // Only what is meant for the other side is sent to it.
        Err(Error::Join(refusal)) => [&[VERSION, REFUSED], refusal.to_string().as_bytes()].concat(),
        Err(Error::JoinRefused { reason }) => [&[VERSION, REFUSED], reason.as_bytes()].concat(),
        Err(_) => [&[VERSION, REFUSED], b"the manager cannot answer at the moment".as_slice()].concat(),
    }
}

fn read_answer(answer: &[u8]) -> Result<Grant, Error> {
    let unreadable = || Error::Unreadable { what: "answer of the manager" };
    match answer.strip_prefix(&[VERSION]).and_then(<[u8]>::split_first) {
        Some((&GRANTED, rest)) => {
            let (peer, certificate) = rest.split_first_chunk::<8>().ok_or_else(unreadable)?;
            Ok(Grant { peer: PeerId(u64::from_le_bytes(*peer)), certificate: certificate.to_vec() })
        }
        Some((&REFUSED, reason)) => Err(Error::JoinRefused { reason: String::from_utf8_lossy(reason).into_owned() }),
        _ => Err(unreadable()),
    }
}
