//! The agent program: finds its identity, joins the manager if it has to, and runs the engine until it is told to stop.
//! Components outlive it: only an order stops them.

use crate::host;
use crate::host_actor::{EffectForwarder, HostActor, HostActorMessage};
use crate::machine::Agent;
use crate::presence::Presence;
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

/// Pause between attempts to reach the manager.
const AGAIN: Duration = Duration::from_millis(500);
/// Lower limit of the time between two renewals of the certificate, however short its life.
const RENEW_PAUSE: Duration = Duration::from_secs(1);
/// Pause after a failed attempt to renew the certificate.
const RENEW_AGAIN: Duration = Duration::from_secs(30);
/// Inside the data directory: the certificate and its key.
pub const IDENTITY: &str = "identity";
/// Inside the data directory: everything that belongs to components.
pub const COMPONENTS: &str = "components";

/// Settings of an agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its data directory.
    pub data: PathBuf,
    /// The manager's address.
    pub manager: SocketAddr,
    /// The token and the name with which it joins; not needed once it has joined.
    pub invitation: Option<(JoinToken, VmName)>,
    /// The address on which it listens for other agents.
    pub listen: SocketAddr,
    /// The address at which other machines reach it, if it differs; port 0 stands for the port that it listens on.
    pub advertised: Option<SocketAddr>,
}

/// Why an agent cannot start, or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It has not joined, and has no token.
    #[error("this agent has not joined yet (pass --token and --name; create a token with `holdfast token create`)")]
    NoToken,
    /// An error of the runtime.
    #[error(transparent)]
    Runtime(#[from] Error),
    /// It cannot record its process id.
    #[error("cannot write to the data directory")]
    Announce(#[source] std::io::Error),
    /// The host actor could not be started, or failed. This is not expected in normal operation.
    #[error("the host actor failed: {0}")]
    HostActor(String),
    /// The manager has declared this VM lost, or has destroyed it.
    #[error(
        "the manager has removed this VM, and its components were stopped (to use it again, let it join with an empty data directory)"
    )]
    Dismissed,
}

/// A running agent.
pub struct Running {
    kept: Kept<Agent>,
    host_actor: ActorRef<HostActorMessage>,
    host_actor_ended: JoinHandle<()>,
    dismissed: oneshot::Receiver<()>,
    /// Its VM's number and name.
    pub identity: Arc<Identity>,
}

impl Running {
    /// Waits until the agent cannot continue, and returns the reason.
    pub async fn halted(&mut self) -> AgentError {
        tokio::select! {
            biased;
            Ok(()) = &mut self.dismissed => AgentError::Dismissed,
            _ = &mut self.host_actor_ended => AgentError::HostActor("see the log".into()),
            Some(error) = self.kept.halted() => error.into(),
        }
    }

    /// Says goodbye to all peers. Components keep running.
    pub async fn close(self) {
        self.kept.close().await;
        self.host_actor.stop(None);
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
    let host_actor = Actor::spawn(None, HostActor, (host, dismiss)).await;
    let (host_actor, host_actor_ended) = host_actor.map_err(|error| AgentError::HostActor(error.to_string()))?;
    let opening = Opening {
        incarnation: data.incarnation()?,
        data,
        identity: Arc::clone(&identity),
        listen: settings.listen,
        held: vec![(PeerId::MANAGER, settings.manager)],
        identity_calls: None,
        links: link::Settings::default(),
        machine: Agent::new(Arc::clone(&identity)),
        effects: Arc::new(EffectForwarder { host_actor: host_actor.clone(), advertised: settings.advertised }),
    };
    let kept = engine::keep(opening).await?;
    tokio::spawn(stay_certified(Arc::clone(&identity), directory, settings.manager, kept.caller()));
    Ok(Running { kept, host_actor, host_actor_ended, dismissed, identity })
}

/// Joins, retrying for as long as the manager cannot be reached.
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

/// Renews the certificate whenever two thirds of its life are over.
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
