//! The life of the manager program: the certificate authority, the engine, the executor, and the API in front. While it is
//! down, applications keep running and agents keep working; it restarts from its journal.

use crate::access::{Access, AccessError};
use crate::api::{self, Api, Certificate, Tokens};
use crate::cloud::LocalCloud;
use crate::document::Role;
use crate::executor::{ExecutorActor, ExecutorMessage, ExecutorSettings, Port};
use crate::handle::ManagerHandle;
use crate::machine::Manager;
use ractor::{Actor, ActorRef};
use runtime::data_directory::replace_file;
use runtime::engine::{self, Kept, Moment, Opening};
use runtime::identity::Authority;
use runtime::{DataDirectory, Error, Timestamp, link};
use serde::{Deserialize, Serialize};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// Inside the data directory: the certificate authority.
pub const AUTHORITY: &str = "authority";
const IDENTITY: &str = "identity";
/// Inside the data directory: the VMs on this machine.
pub const LOCAL: &str = "local";
const PORTS: &str = "ports.json";
const TOKENS: &str = "tokens.json";
const CERTIFICATE: &str = "api-certificate.json";
const ACCESS: &str = "access.json";
const PAUSES: &str = "autoscale.json";
/// Calls that the executor has not received yet; a caller with one more waits.
const CALLS_MAX: usize = 64;
/// Agents that ask to join and have no answer yet; one more is rejected and retries.
const APPLICANTS_MAX: usize = 64;

/// Settings of a manager.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data directory.
    pub data: PathBuf,
    /// The address for agents.
    pub listen: SocketAddr,
    /// The address for operators.
    pub api: SocketAddr,
    /// The executable whose `agent run` is an agent, for VMs on this machine.
    pub program: PathBuf,
    /// The lifetime of certificates.
    pub certificate_lifetime_s: u64,
    /// A VM that is silent for this long is declared lost; `None`: only an operator declares one lost.
    pub suspicion_ms_max: Option<u64>,
}

/// Why a manager cannot start, or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// The engine, its journal, its links or its identity.
    #[error(transparent)]
    Runtime(#[from] Error),
    /// The API's certificate.
    #[error(transparent)]
    Certificate(#[from] api::CertificateError),
    /// The operators' tokens.
    #[error(transparent)]
    Tokens(#[from] api::TokensError),
    /// The operator's access file.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The API's socket cannot be opened; most often the port is taken.
    #[error("{0}: cannot listen for operators")]
    Listen(SocketAddr, #[source] std::io::Error),
    /// The executor could not be started, or has failed.
    #[error("an internal part of the manager failed: {0}")]
    Executor(String),
}

/// A running manager.
pub struct Running {
    kept: Kept<Manager>,
    executor: ActorRef<ExecutorMessage>,
    executor_ended: JoinHandle<()>,
    api: JoinHandle<()>,
    halt_api: oneshot::Sender<()>,
    /// The address for agents.
    pub address: SocketAddr,
    /// Access for operators.
    pub access: Access,
    /// The file in which that is stored.
    pub access_file: PathBuf,
}

impl Running {
    /// Waits until the manager has to stop, and returns why.
    pub async fn halted(&mut self) -> ManagerError {
        tokio::select! {
            _ = &mut self.executor_ended => ManagerError::Executor("the reason is in the log".into()),
            _ = &mut self.api => ManagerError::Executor("the operators' API has ended".into()),
            Some(error) = self.kept.halted() => error.into(),
        }
    }

    /// Closes the API, makes everything durable, and closes the links to all agents.
    pub async fn close(self) {
        // Both may have ended by themselves, which is fine.
        let _ = self.halt_api.send(());
        let _ = self.api.await;
        self.kept.close().await;
        self.executor.stop(None);
    }
}

/// Starts a manager.
pub async fn start(settings: Settings) -> Result<Running, ManagerError> {
    let data = Arc::new(DataDirectory::open(&settings.data)?);
    let mut ports = Ports::read(&data.path().join(PORTS));
    let now = Timestamp::now();
    let authority = Authority::create_or_load(&data.room(AUTHORITY)?, settings.certificate_lifetime_s, now)?;
    let identity_directory = data.room(IDENTITY)?;
    let identity = Arc::new(authority.manager_identity(&identity_directory, now)?);
    let signer = authority.signer();

    let local = LocalCloud::new(data.room(LOCAL)?, settings.program);
    let (newest, news) = watch::channel(0);
    let renew_every = Duration::from_secs(settings.certificate_lifetime_s * 2 / 3).max(Duration::from_secs(1));
    let parts = ExecutorSettings { authority, identity_directory, renew_every, local, newest };
    let executor = Actor::spawn(None, ExecutorActor, parts).await;
    let (executor, executor_ended) = executor.map_err(|error| ManagerError::Executor(error.to_string()))?;
    let (applications, applicants) = mpsc::channel(APPLICANTS_MAX);
    let (opened, address) = oneshot::channel();
    let opening = Opening {
        incarnation: data.incarnation()?,
        data: Arc::clone(&data),
        identity,
        listen: remembered(settings.listen, ports.agents),
        held: Vec::new(),
        identity_calls: Some(applications),
        links: link::Settings::default(),
        machine: Manager::new(signer),
        effects: Arc::new(Port::new(executor.clone(), opened, settings.suspicion_ms_max)),
    };
    let kept = engine::keep(opening).await?;
    let address = address.await.map_err(|_| ManagerError::Executor("the executor failed to start".into()))?;
    ports.agents = address.port();
    tokio::spawn(pass_on(applicants, executor.clone(), ExecutorMessage::IdentityCall));

    let listen = remembered(settings.api, ports.operators);
    let listener = TcpListener::bind(listen).await.map_err(|source| ManagerError::Listen(listen, source))?;
    let api_address = listener.local_addr().map_err(|source| ManagerError::Listen(listen, source))?;
    ports.operators = api_address.port();
    ports.write(&data.path().join(PORTS))?;
    let (access, tokens, certificate) = admit_operator(data.path(), api_address)?;
    let access_file = data.path().join(ACCESS);
    access.write(&access_file)?;
    let (calls, callers) = mpsc::channel(CALLS_MAX);
    tokio::spawn(pass_on(callers, executor.clone(), ExecutorMessage::Call));
    let api = Api::new(ManagerHandle::new(calls, news), Arc::new(tokens), api::Settings::default());
    let api = api.keeping_pauses_in(&data.path().join(PAUSES));
    let (halt_api, halted) = oneshot::channel::<()>();
    let api = tokio::spawn(api::serve(listener, certificate.server()?, api, async move { drop(halted.await) }));
    Ok(Running { kept, executor, executor_ended, api, halt_api, address, access, access_file })
}

/// Access for the operator on this machine: one admin token, created at the first start and kept in the access file.
fn admit_operator(data: &Path, address: SocketAddr) -> Result<(Access, Tokens, Certificate), ManagerError> {
    let tokens = Tokens::open(&data.join(TOKENS))?;
    let host = reachable(address);
    let mut names = vec!["localhost".to_owned(), host.ip().to_string()];
    names.dedup();
    let certificate = Certificate::open(&data.join(CERTIFICATE), &names)?;
    let kept = Access::read(&data.join(ACCESS)).ok().map(|access| access.token);
    let token = match kept.filter(|token| tokens.recognise(token).is_some()) {
        Some(token) => token,
        None => tokens.create("created at the first start", Role::Admin, Moment::now().0)?.0,
    };
    let data = Some(fs::canonicalize(data).unwrap_or_else(|_| data.to_owned()));
    let access = Access { url: format!("https://{host}"), certificate: certificate.pem().to_owned(), token, data };
    Ok((access, tokens, certificate))
}

/// The ports that were chosen when the settings left them open: agents and operators expect the manager at the same ports.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Ports {
    agents: u16,
    operators: u16,
}

impl Ports {
    /// There are none if the file does not exist or cannot be read: then any port will do.
    fn read(path: &Path) -> Self {
        fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn write(self, path: &Path) -> Result<(), Error> {
        let bytes = serde_json::to_vec(&self).expect("two numbers can be serialised");
        replace_file(path, &bytes)
    }
}

fn remembered(listen: SocketAddr, port: u16) -> SocketAddr {
    if listen.port() == 0 { SocketAddr::new(listen.ip(), port) } else { listen }
}

/// The address at which a listener is reached from this machine.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

async fn pass_on<T: Send + 'static>(
    mut from: mpsc::Receiver<T>,
    executor: ActorRef<ExecutorMessage>,
    as_message: fn(T) -> ExecutorMessage,
) {
    while let Some(item) = from.recv().await {
        if executor.cast(as_message(item)).is_err() {
            return;
        }
    }
}
