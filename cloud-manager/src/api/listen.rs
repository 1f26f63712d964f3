//! TLS connections and their limits.
//!
//! The number of open connections is limited; further ones wait in the system's queue. A connection is closed if it
//! does not finish its handshake, does not send the head of a request, does not read its answers, or is idle for too
//! long. When the manager halts, requests in progress may finish, event streams are ended, and then everything is
//! closed.

use super::{Api, autoscaling::follow_loads, routes, write_timeout::WriteTimeout};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rustls::ServerConfig;
use std::{future::Future, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

/// Time limit for requests in progress when the manager halts.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// How long the peer may leave data unread.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause after a connection could not be accepted, most often because no file handles are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the API until `halt` is over.
pub async fn serve(listener: TcpListener, tls: Arc<ServerConfig>, api: Api, halt: impl Future<Output = ()>) {
    let acceptor = TlsAcceptor::from(tls);
    let router = routes::router(&api);
    let places = Arc::new(Semaphore::new(api.settings.connections_max));
    let mut connections = JoinSet::new();
    let mut halt = pin!(halt);
    let follows = tokio::spawn(follow_loads(api.clone()));
    loop {
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place.expect("the semaphore is never closed"),
            () = &mut halt => break,
        };
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            () = &mut halt => break,
            // Reaps finished connections.
            Some(_) = connections.join_next() => continue,
        };
        let (acceptor, router, head_timeout) = (acceptor.clone(), router.clone(), api.settings.head_timeout);
        let halting = api.halting.subscribe();
        connections.spawn(async move {
            serve_connection(stream, acceptor, router, head_timeout, halting).await;
            drop(place);
        });
    }
    drop(listener);
    api.halting.send_replace(true);
    follows.abort();
    let everyone_left = async { while connections.join_next().await.is_some() {} };
    // Connections that are still open are closed when the set is dropped.
    let _ = timeout(LAST_ANSWERS, everyone_left).await;
}

/// One connection, from its handshake to its end.
async fn serve_connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    router: axum::Router,
    head_timeout: Duration,
    mut halting: watch::Receiver<bool>,
) {
    // Small answers are sent without delay.
    let _ = stream.set_nodelay(true);
    let stream = WriteTimeout::new(stream, WRITE_TIMEOUT);
    let stream = match timeout(head_timeout, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a handshake failed"),
        Err(_) => return tracing::debug!("a handshake took too long"),
    };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head_timeout);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = halted(&mut halting) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended with an error");
    }
}

/// Returns when the manager halts.
pub(super) async fn halted(halting: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, which also means halting.
    let _ = halting.wait_for(|halting| *halting).await;
}
