//! The client side of the API: one request with one answer, or a stream of events.
//!
//! It trusts the certificate in the access file and no other. Every request opens its own connection: requests are rare.

use crate::{
    access::Access,
    document::{EventDocument, Gap, Problems},
};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client::conn::http1,
    header,
};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
    version::TLS13,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::VecDeque, io, sync::Arc, time::Duration};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;

/// Timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for an answer; a little longer than the manager's own limit for a plan.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(930);
/// How long an event stream may be silent; the manager sends keep-alives several times as often.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Maximum size of an answer.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// A client of one manager.
#[derive(Clone)]
pub struct Client {
    url: String,
    authority: String,
    server: ServerName<'static>,
    tls: Arc<ClientConfig>,
    token: String,
}

/// Why a request got no answer, or not a successful one.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The access file is invalid.
    #[error("the access file cannot be used: {0}")]
    Access(String),
    /// No connection could be made.
    #[error("no manager answers at {0}: is it running? start one with: holdfast manager run --data DIR")]
    Unreachable(String, #[source] io::Error),
    /// The server does not have the certificate of the access file.
    #[error(
        "the server at {0} is not the manager of the access file (was the manager set up again? use its new access file)"
    )]
    Stranger(String, #[source] io::Error),
    /// The connection broke.
    #[error("the connection to {0} was lost (the request may still be carried out: check before you retry)")]
    Broken(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// The answer is not in the expected format.
    #[error("the answer of {0} cannot be read (does the manager have another version?)")]
    Unreadable(String, #[source] serde_json::Error),
    /// The manager refused the request.
    #[error("{}", .1.error)]
    Refused(u16, Problems),
}

impl Client {
    /// A client for the manager of this access file.
    pub fn new(access: &Access) -> Result<Self, ClientError> {
        let wrong = |what: &str| ClientError::Access(what.into());
        let authority =
            access.url.strip_prefix("https://").ok_or_else(|| wrong("its url does not begin with https://"))?;
        let authority = authority.trim_end_matches('/');
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "443"));
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let server = ServerName::try_from(host.to_string()).map_err(|_| wrong("its url has no host"))?;
        let certificate = CertificateDer::from_pem_slice(access.certificate.as_bytes());
        let mut roots = RootCertStore::empty();
        roots
            .add(certificate.map_err(|_| wrong("its certificate is not in the PEM format"))?)
            .map_err(|error| ClientError::Access(error.to_string()))?;
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| ClientError::Access(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let with_brackets = if host.contains(':') { format!("[{host}]") } else { host.into() };
        Ok(Self {
            url: access.url.clone(),
            authority: format!("{with_brackets}:{port}"),
            server,
            tls: Arc::new(tls),
            token: access.token.clone(),
        })
    }

    /// Gets a document.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.read(&self.request(Method::GET, path, Vec::new()).await?.1)
    }

    /// Posts a document and returns the answer.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, document: &impl Serialize) -> Result<T, ClientError> {
        let body = serde_json::to_vec(document).map_err(|error| ClientError::Unreadable(self.url.clone(), error))?;
        self.read(&self.request(Method::POST, path, body).await?.1)
    }

    /// Gets plain text.
    pub async fn text(&self, path: &str) -> Result<String, ClientError> {
        Ok(String::from_utf8_lossy(&self.request(Method::GET, path, Vec::new()).await?.1).into_owned())
    }

    /// Deletes a resource.
    pub async fn delete(&self, path: &str) -> Result<(), ClientError> {
        self.request(Method::DELETE, path, Vec::new()).await.map(drop)
    }

    /// Sends one request; returns the status and the body of a successful answer.
    pub async fn request(&self, method: Method, path: &str, body: Vec<u8>) -> Result<(u16, Bytes), ClientError> {
        let answering = async {
            let response = self.send(method, path, body).await?;
            let status = response.status();
            Ok::<_, ClientError>((status, self.whole(response).await?))
        };
        let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer within the time limit");
        let answered = timeout(ANSWER_TIMEOUT, answering).await;
        let (status, body) = answered.map_err(|_| ClientError::Broken(self.url.clone(), late().into()))??;
        Ok((status.as_u16(), self.good(status, body)?))
    }

    /// Follows the events after this number.
    pub async fn events(&self, after: u64) -> Result<Events, ClientError> {
        let response = self.send(Method::GET, &format!("/v1/events?after={after}"), Vec::new()).await?;
        if response.status() != StatusCode::OK {
            let status = response.status();
            let body = self.whole(response).await?;
            self.good(status, body)?;
            return Err(ClientError::Refused(
                status.as_u16(),
                Problems { error: "no events".into(), ..Problems::default() },
            ));
        }
        let body = response.into_body();
        Ok(Events { url: self.url.clone(), body, bytes: Vec::new(), frames: VecDeque::new() })
    }

    fn read<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(bytes).map_err(|error| ClientError::Unreadable(self.url.clone(), error))
    }

    fn good(&self, status: StatusCode, body: Bytes) -> Result<Bytes, ClientError> {
        if status.is_success() {
            return Ok(body);
        }
        let unreadable =
            |_| Problems { error: format!("the manager answered with status {status}"), ..Problems::default() };
        Err(ClientError::Refused(status.as_u16(), serde_json::from_slice(&body).unwrap_or_else(unreadable)))
    }

    async fn whole(&self, response: Response<Incoming>) -> Result<Bytes, ClientError> {
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        Ok(body.map_err(|error| ClientError::Broken(self.url.clone(), error))?.to_bytes())
    }

    async fn send(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Response<Incoming>, ClientError> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "no connection within the time limit");
        let unreachable = |error| ClientError::Unreachable(self.url.clone(), error);
        let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect(&self.authority)).await;
        let stream = stream.unwrap_or_else(|_| Err(late())).map_err(unreachable)?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let stream = timeout(CONNECT_TIMEOUT, connector.connect(self.server.clone(), stream)).await;
        let stream = stream.unwrap_or_else(|_| Err(late())).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => ClientError::Stranger(self.url.clone(), error),
            _ => unreachable(error),
        })?;
        let broken = |error: hyper::Error| ClientError::Broken(self.url.clone(), error.into());
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // It ends when its request is answered, or when the caller stops waiting for the answer.
        tokio::spawn(connection);
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = method;
        *request.uri_mut() =
            path.parse().map_err(|_| ClientError::Access(format!("{path:?} is not a valid address")))?;
        let text =
            |text: &str| header::HeaderValue::from_str(text).map_err(|error| ClientError::Access(error.to_string()));
        request.headers_mut().insert(header::HOST, text(&self.authority)?);
        request.headers_mut().insert(header::AUTHORIZATION, text(&format!("Bearer {}", self.token))?);
        sender.send_request(request).await.map_err(broken)
    }
}

/// A name as a path segment: every byte with a special meaning there is percent-encoded.
pub fn segment(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}

/// An item of an event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamItem {
    /// An event.
    Event(Box<EventDocument>),
    /// Events that are no longer stored.
    Gap(Gap),
}

/// A stream of events.
pub struct Events {
    url: String,
    body: Incoming,
    bytes: Vec<u8>,
    frames: VecDeque<StreamItem>,
}

impl Events {
    /// The next item; `None` when the manager ends the stream. After an error, [`Client::events`] continues after the last
    /// event that was received.
    pub async fn next(&mut self) -> Result<Option<StreamItem>, ClientError> {
        loop {
            if let Some(item) = self.frames.pop_front() {
                return Ok(Some(item));
            }
            let silence = || io::Error::new(io::ErrorKind::TimedOut, "the stream was silent for too long");
            let broken = |error| ClientError::Broken(self.url.clone(), error);
            let frame = timeout(SILENCE_MAX, self.body.frame()).await.map_err(|_| broken(silence().into()))?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| ClientError::Broken(self.url.clone(), error.into()))?;
            if let Ok(data) = frame.into_data() {
                self.bytes.extend_from_slice(&data);
                self.take_frames()?;
            }
        }
    }

    /// Reads the frames that have arrived completely: a frame ends with an empty line.
    fn take_frames(&mut self) -> Result<(), ClientError> {
        while let Some(end) = self.bytes.windows(2).position(|pair| pair == b"\n\n") {
            let frame: Vec<u8> = self.bytes.drain(..end + 2).collect();
            let frame = String::from_utf8_lossy(&frame);
            let Some(data) = frame.lines().find_map(|line| line.strip_prefix("data: ")) else { continue };
            let unreadable = |error| ClientError::Unreadable(self.url.clone(), error);
            self.frames.push_back(if frame.lines().any(|line| line == "event: gap") {
                StreamItem::Gap(serde_json::from_str(data).map_err(unreadable)?)
            } else {
                StreamItem::Event(Box::new(serde_json::from_str(data).map_err(unreadable)?))
            });
        }
        Ok(())
    }
}
