//! The manager program from its beginning to its end: the authority, the engine, the office around it, and the API in
//! front. While it is down the application runs and neighbours keep working; it comes back from its journal.

use crate::access::{Access, AccessError};
use crate::api::{self, Api, Certificate, Tokens};
use crate::cloud::LocalCloud;
use crate::document::Role;
use crate::handle::ManagerHandle;
use crate::machine::Manager;
use crate::office::{Fittings, Hatch, Office, OfficeMessage};
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
/// Calls that the office has not taken yet; whoever has one more waits.
const CALLS_MAX: usize = 64;
/// Applicants that the office has not answered yet; one more is turned away and tries again.
const APPLICANTS_MAX: usize = 64;

/// How a manager runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it keeps everything.
    pub data: PathBuf,
    /// Where agents find it.
    pub listen: SocketAddr,
    /// Where operators find it.
    pub api: SocketAddr,
    /// The program whose `agent run` is an agent, for VMs on this machine.
    pub program: PathBuf,
    /// How long certificates are good.
    pub certificate_lifetime_s: u64,
    /// A VM that is silent for so long is declared lost; never by itself if absent.
    pub suspicion_ms_max: Option<u64>,
}

/// Why a manager cannot begin, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// Something in the hallway.
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
    /// The office could not be opened, or failed; not on a good day.
    #[error("the office failed: {0}")]
    Office(String),
}

/// A manager at work.
pub struct Running {
    kept: Kept<Manager>,
    office: ActorRef<OfficeMessage>,
    office_ended: JoinHandle<()>,
    api: JoinHandle<()>,
    halt_api: oneshot::Sender<()>,
    /// Where agents find it.
    pub address: SocketAddr,
    /// How operators find it.
    pub access: Access,
    /// Where that is written down.
    pub access_file: PathBuf,
}

impl Running {
    /// Waits until the manager can go on no more, and says why.
    pub async fn halted(&mut self) -> ManagerError {
        tokio::select! {
            _ = &mut self.office_ended => ManagerError::Office("what it was doing is in the log".into()),
            _ = &mut self.api => ManagerError::Office("the operators' API has ended".into()),
            Some(error) = self.kept.halted() => error.into(),
        }
    }

    /// Answers nobody any more, makes everything durable, and says farewell to all agents.
    pub async fn close(self) {
        // Both may have ended by themselves, which is what is wanted.
        let _ = self.halt_api.send(());
        let _ = self.api.await;
        self.kept.close().await;
        self.office.stop(None);
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
    let fittings = Fittings { authority, identity_directory, renew_every, local, newest };
    let office = Actor::spawn(None, Office, fittings).await;
    let (office, office_ended) = office.map_err(|error| ManagerError::Office(error.to_string()))?;
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
        effects: Arc::new(Hatch::new(office.clone(), opened, settings.suspicion_ms_max)),
    };
    let kept = engine::keep(opening).await?;
    let address = address.await.map_err(|_| ManagerError::Office("it closed at once".into()))?;
    ports.agents = address.port();
    tokio::spawn(pass_on(applicants, office.clone(), OfficeMessage::IdentityCall));

    let listen = remembered(settings.api, ports.operators);
    let listener = TcpListener::bind(listen).await.map_err(|source| ManagerError::Listen(listen, source))?;
    let api_address = listener.local_addr().map_err(|source| ManagerError::Listen(listen, source))?;
    ports.operators = api_address.port();
    ports.write(&data.path().join(PORTS))?;
    let (access, tokens, certificate) = admit_operator(data.path(), api_address)?;
    let access_file = data.path().join(ACCESS);
    access.write(&access_file)?;
    let (calls, callers) = mpsc::channel(CALLS_MAX);
    tokio::spawn(pass_on(callers, office.clone(), OfficeMessage::Call));
    let api = Api::new(ManagerHandle::new(calls, news), Arc::new(tokens), api::Settings::default());
    let api = api.keeping_pauses_in(&data.path().join(PAUSES));
    let (halt_api, halted) = oneshot::channel::<()>();
    let api = tokio::spawn(api::serve(listener, certificate.server()?, api, async move { drop(halted.await) }));
    Ok(Running { kept, office, office_ended, api, halt_api, address, access, access_file })
}

/// The way in for the operator on this machine: one admin token, made at the first start and kept in the access file.
fn admit_operator(data: &Path, address: SocketAddr) -> Result<(Access, Tokens, Certificate), ManagerError> {
    let tokens = Tokens::open(&data.join(TOKENS))?;
    let host = reachable(address);
    let mut names = vec!["localhost".to_owned(), host.ip().to_string()];
    names.dedup();
    let certificate = Certificate::open(&data.join(CERTIFICATE), &names)?;
    let kept = Access::read(&data.join(ACCESS)).ok().map(|access| access.token);
    let token = match kept.filter(|token| tokens.recognise(token).is_some()) {
        Some(token) => token,
        None => tokens.create("made at the first start", Role::Admin, Moment::now().0)?.0,
    };
    let data = Some(fs::canonicalize(data).unwrap_or_else(|_| data.to_owned()));
    let access = Access { url: format!("https://{host}"), certificate: certificate.pem().to_owned(), token, data };
    Ok((access, tokens, certificate))
}

/// The ports that were taken when any would do: agents and operators look for the manager where it was.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Ports {
    agents: u16,
    operators: u16,
}

impl Ports {
    /// None are remembered where there is no such file, or one that cannot be read: then any will do.
    fn read(path: &Path) -> Self {
        fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn write(self, path: &Path) -> Result<(), Error> {
        let bytes = serde_json::to_vec(&self).expect("two numbers can be written down");
        replace_file(path, &bytes)
    }
}

fn remembered(listen: SocketAddr, port: u16) -> SocketAddr {
    if listen.port() == 0 { SocketAddr::new(listen.ip(), port) } else { listen }
}

/// Where somebody on this machine finds what listens there.
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
    office: ActorRef<OfficeMessage>,
    as_errand: fn(T) -> OfficeMessage,
) {
    while let Some(item) = from.recv().await {
        if office.cast(as_errand(item)).is_err() {
            return;
        }
    }
}
