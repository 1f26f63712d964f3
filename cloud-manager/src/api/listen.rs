//! TLS connections and their limits.
//!
//! At most so many connections are open; further ones wait in the system's queue. A connection that does not finish its
//! handshake, does not send the head of a request, does not read its answers, or is idle for too long, is closed. When the manager halts, what is
//! under way may end, streams of events are cut, and then everything is closed.

use super::{Api, autoscaling::follow_loads, impatient::Impatient, routes};
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

/// How long what is under way may take when the manager halts.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// How long the other end may leave unread what it is sent.
const WRITE_PATIENCE: Duration = Duration::from_secs(60);
/// The pause after a connection could not be accepted, most often because there are no more file handles.
const BREATHE: Duration = Duration::from_millis(100);

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
            place = places.clone().acquire_owned() => place.expect("nobody closes the semaphore"),
            () = &mut halt => break,
        };
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(BREATHE).await;
                    continue;
                }
            },
            () = &mut halt => break,
            // Those that are over are tidied away.
            Some(_) = connections.join_next() => continue,
        };
        let (acceptor, router, head_patience) = (acceptor.clone(), router.clone(), api.settings.head_patience);
        let halting = api.halting.subscribe();
        connections.spawn(async move {
            converse(stream, acceptor, router, head_patience, halting).await;
            drop(place);
        });
    }
    drop(listener);
    api.halting.send_replace(true);
    follows.abort();
    let everyone_left = async { while connections.join_next().await.is_some() {} };
    // Whoever is not done by now is cut off when the set is dropped.
    let _ = timeout(LAST_ANSWERS, everyone_left).await;
}

/// One connection, from its handshake to its end.
async fn converse(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    router: axum::Router,
    head_patience: Duration,
    mut halting: watch::Receiver<bool>,
) {
    // Small answers should not wait for more to come.
    let _ = stream.set_nodelay(true);
    let stream = Impatient::new(stream, WRITE_PATIENCE);
    let stream = match timeout(head_patience, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a handshake failed"),
        Err(_) => return tracing::debug!("a handshake took too long"),
    };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head_patience);
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
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// Returns when the manager halts.
pub(super) async fn halted(halting: &mut watch::Receiver<bool>) {
    // An error means that nobody can say so any more, which is the same.
    let _ = halting.wait_for(|halting| *halting).await;
}
