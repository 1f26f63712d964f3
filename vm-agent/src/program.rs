//! The agent program from its beginning to its end: who am I, where is the manager, then the engine until someone says
//! stop. Components outlive it: only an order stops them.

use crate::host;
use crate::machine::Agent;
use crate::presence::Presence;
use crate::workshop::{Hatch, Workshop, WorkshopMessage};
use ractor::{Actor, ActorRef};
use runtime::engine::{self, Caller, Kept, Message, Opening};
use runtime::identity::{self, Identity, JoinToken};
use runtime::{DataDirectory, Error, PeerId, Timestamp, VmName, link};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The pause before another attempt to reach a manager that cannot be reached.
const AGAIN: Duration = Duration::from_millis(500);
/// A certificate is never renewed more often than this, however short its life.
const RENEW_PAUSE: Duration = Duration::from_secs(1);
/// The pause before another attempt to renew a certificate.
const RENEW_AGAIN: Duration = Duration::from_secs(30);
/// Inside the data directory: the certificate and its key.
pub const IDENTITY: &str = "identity";
/// Inside the data directory: what belongs to the components.
pub const COMPONENTS: &str = "components";

/// How an agent runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it keeps everything.
    pub data: PathBuf,
    /// Where the manager listens.
    pub manager: SocketAddr,
    /// With what it joins; not needed once it has joined.
    pub invitation: Option<(JoinToken, VmName)>,
    /// Where it listens for other agents.
    pub listen: SocketAddr,
    /// Where other machines reach it, if that is another address; port 0 stands for the one listened on.
    pub advertised: Option<SocketAddr>,
}

/// Why an agent cannot begin, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It has not joined, and has nothing to join with.
    #[error("this agent has not joined yet (pass --token and --name; create a token with `holdfast token create`)")]
    NoToken,
    /// Something in the hallway.
    #[error(transparent)]
    Runtime(#[from] Error),
    /// It cannot write down which process it is.
    #[error("cannot write to the data directory")]
    Announce(#[source] std::io::Error),
    /// The workshop could not be opened, or failed; not on a good day.
    #[error("the host actor failed: {0}")]
    Workshop(String),
    /// The manager has declared this VM lost, or destroyed it.
    #[error(
        "the manager has removed this VM, and its components were stopped (to use it again, let it join with an empty data directory)"
    )]
    Dismissed,
}

/// An agent at work.
pub struct Running {
    kept: Kept<Agent>,
    workshop: ActorRef<WorkshopMessage>,
    workshop_ended: JoinHandle<()>,
    dismissed: oneshot::Receiver<()>,
    /// Its VM's number and name.
    pub identity: Arc<Identity>,
}

impl Running {
    /// Waits until the agent can go on no more, and says why.
    pub async fn halted(&mut self) -> AgentError {
        tokio::select! {
            biased;
            Ok(()) = &mut self.dismissed => AgentError::Dismissed,
            _ = &mut self.workshop_ended => AgentError::Workshop("see the log".into()),
            Some(error) = self.kept.halted() => error.into(),
        }
    }

    /// Says farewell to everyone. Components go on running.
    pub async fn close(self) {
        self.kept.close().await;
        self.workshop.stop(None);
    }
}

/// Starts an agent; joins first if it has not yet.
pub async fn start(settings: Settings) -> Result<Running, AgentError> {
    let data = Arc::new(DataDirectory::open(&settings.data)?);
    Presence::announce(data.path()).map_err(AgentError::Announce)?;
    let directory = data.room(IDENTITY)?;
    let identity = match (Identity::load(&directory)?, &settings.invitation) {
        (Some(identity), _) => identity,
        (None, Some((token, name))) => join(&directory, settings.manager, token, name).await?,
        (None, None) => return Err(AgentError::NoToken),
    };
    let identity = Arc::new(identity);
    tracing::info!(vm = %identity.certified().peer, name = %identity.certified().name, "agent started");

    let reachable = settings.advertised.unwrap_or(settings.listen).ip();
    let host = host::Settings::new(data.room(COMPONENTS)?, reachable);
    let (dismiss, dismissed) = oneshot::channel();
    let workshop = Actor::spawn(None, Workshop, (host, dismiss)).await;
    let (workshop, workshop_ended) = workshop.map_err(|error| AgentError::Workshop(error.to_string()))?;
    let opening = Opening {
        incarnation: data.incarnation()?,
        data,
        identity: Arc::clone(&identity),
        listen: settings.listen,
        held: vec![(PeerId::MANAGER, settings.manager)],
        identity_calls: None,
        links: link::Settings::default(),
        machine: Agent::new(Arc::clone(&identity)),
        effects: Arc::new(Hatch { workshop: workshop.clone(), advertised: settings.advertised }),
    };
    let kept = engine::keep(opening).await?;
    tokio::spawn(stay_certified(Arc::clone(&identity), directory, settings.manager, kept.caller()));
    Ok(Running { kept, workshop, workshop_ended, dismissed, identity })
}

/// Joins, and waits for a manager that cannot be reached yet.
async fn join(
    directory: &std::path::Path,
    manager: SocketAddr,
    token: &JoinToken,
    name: &VmName,
) -> Result<Identity, Error> {
    loop {
        match identity::join(directory, manager, token, name).await {
            Err(error @ Error::Unreachable { .. }) => {
                tracing::warn!(%error, "cannot join yet; retrying");
                tokio::time::sleep(AGAIN).await;
            }
            joined => return joined,
        }
    }
}

/// Has the certificate renewed whenever two thirds of its life are over.
async fn stay_certified(mut identity: Arc<Identity>, directory: PathBuf, manager: SocketAddr, engine: Caller<Agent>) {
    loop {
        let due = identity.certified().renewal_due().0.saturating_sub(Timestamp::now().0);
        tokio::time::sleep(Duration::from_secs(due).max(RENEW_PAUSE)).await;
        match identity::renew(&identity, &directory, manager).await {
            Ok(renewed) => {
                identity = Arc::new(renewed);
                engine.tell(Message::Renew(Arc::clone(&identity)));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot renew the certificate; retrying");
                tokio::time::sleep(RENEW_AGAIN).await;
            }
        }
    }
}
