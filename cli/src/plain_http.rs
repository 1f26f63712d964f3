//! One request over plain HTTP, for services on this machine: the demo and its shop.

use http_body_util::{BodyExt, Empty, Limited};
use hyper::{Request, StatusCode, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use std::{net::SocketAddr, time::Duration};
use tokio::{net::TcpStream, time::timeout};

/// Timeout for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum size of an answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Gets a path; returns the text of a successful answer, or an error.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<String, String> {
    let answered = timeout(PATIENCE, ask(address, path)).await;
    let (status, text) =
        answered.map_err(|_| "no answer within the time limit".to_owned())?.map_err(|error| error.to_string())?;
    if status.is_success() { Ok(text) } else { Err(format!("{status}: {text}")) }
}

async fn ask(
    address: SocketAddr,
    path: &str,
) -> Result<(StatusCode, String), Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends when its request is answered, or when the caller stops waiting for the answer.
    tokio::spawn(connection);
    let request = Request::get(path).header(header::HOST, address.to_string()).body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}
