//! Accepting connections: links go to the switchboard, join and renewal requests to the manager, everything else is
//! refused.

use std::sync::Arc;

use quinn::{Endpoint, Incoming};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::connection::{Ending, Goodbye, SocketEvent, welcome};
use super::dial::certified;
use super::limits::{APPLICANTS_MAX, HANDSHAKES_MAX, HELLO_PATIENCE};
use crate::identity::tls::Purpose;
use crate::identity::{IdentityCall, join};
use crate::quic;

/// The destinations of incoming connections.
#[derive(Clone, Debug)]
struct Doors {
    happenings: mpsc::Sender<SocketEvent>,
    identity_calls: Option<mpsc::Sender<IdentityCall>>,
    applicants: Arc<Semaphore>,
}

/// Accepts connections until the endpoint is closed; then handshakes in progress are abandoned.
pub(super) async fn listen(
    endpoint: Endpoint,
    happenings: mpsc::Sender<SocketEvent>,
    identity_calls: Option<mpsc::Sender<IdentityCall>>,
) {
    let doors = Doors { happenings, identity_calls, applicants: Arc::new(Semaphore::new(APPLICANTS_MAX)) };
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    let mut visitors = JoinSet::new();
    loop {
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming,
            Some(_) = visitors.join_next() => continue,
        };
        let Some(incoming) = incoming else { return };
        let Ok(permit) = Arc::clone(&handshakes).try_acquire_owned() else {
            incoming.refuse();
            continue;
        };
        let doors = doors.clone();
        visitors.spawn(async move {
            let application = receive(incoming, &doors).await;
            // A join request may take longer than a handshake; it has its own time limit.
            drop(permit);
            if let Some(application) = application {
                application.await;
            }
        });
    }
}

/// Dispatches one connection; returns the future that serves a join or renewal request.
async fn receive(incoming: Incoming, doors: &Doors) -> Option<impl Future<Output = ()> + use<>> {
    let address = incoming.remote_address();
    let connection = match timeout(HELLO_PATIENCE, incoming).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => {
            tracing::debug!(%address, %error, "handshake failed");
            return None;
        }
        Err(_) => return None,
    };
    match (quic::purpose(&connection), &doors.identity_calls) {
        (Some(Purpose::Link), _) => {
            let Some(certified) = certified(&connection) else {
                Goodbye::Refused.say(&connection, "a client certificate is required");
                return None;
            };
            let peer = certified.peer;
            match welcome(connection.clone(), certified).await {
                Ok(meeting) => drop(doors.happenings.send(SocketEvent::Met(Box::new(meeting))).await),
                Err(Ending::Violation(violation)) => {
                    tracing::warn!(%peer, %violation, "connection closed");
                    Goodbye::Violation.say(&connection, &violation.to_string());
                }
                Err(ending) => tracing::debug!(%peer, ?ending, "connection ended before its hello"),
            }
            None
        }
        (Some(purpose), Some(identity_calls)) => {
            let Ok(place) = Arc::clone(&doors.applicants).try_acquire_owned() else {
                Goodbye::Refused.say(&connection, "too many join requests (try again later)");
                return None;
            };
            let served = join::serve(connection, purpose, identity_calls.clone());
            Some(async move {
                served.await;
                drop(place);
            })
        }
        _ => {
            Goodbye::Refused.say(&connection, "unsupported protocol");
            None
        }
    }
}
