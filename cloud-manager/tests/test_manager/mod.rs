//! A manager for tests: a real machine with real agents, all in memory, and the real API in front of it on a loopback
//! socket.
//!
//! Hosts carry out tasks at once, unless a test holds something back. Time is simulated: each event happens a tenth of a
//! second after the previous one, so that what is shown is the same each time.
#![allow(dead_code, reason = "each test binary uses a part")]

#[path = "../../../protocol/tests/stage/mod.rs"]
pub(crate) mod stage;

use application::{ApplicationFiles, Expansion};
use cloud_manager::{
    access::Access,
    api::{Api, Certificate, Settings, Tokens, serve},
    applications::{ApplicationState, Version},
    client::Client,
    document::{Role, asked},
    handle::{Call, CallError, Clouds, Event, ManagerHandle, NameRegister},
    machine::{DataBook, NotPosted, Origins, View},
};
use protocol::Name;
use protocol::letter::Question;
use protocol::manager::{News, Request};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use stage::{Move, Stage};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, mpsc as blocking},
    thread,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot, watch},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// The time of the first event: in November 2023.
const BEGINNING_MS: u64 = 1_700_000_000_000;

/// A manager that runs until it is dropped.
pub(crate) struct TestManager {
    pub(crate) access: Access,
    pub(crate) address: SocketAddr,
    pub(crate) folder: PathBuf,
    pub(crate) tokens: Arc<Tokens>,
    actions: mpsc::UnboundedSender<Action>,
    halt: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

type Action = Box<dyn FnOnce(&mut Backend) + Send>;

impl TestManager {
    pub(crate) fn new(name: &str) -> Self {
        Self::with(name, Settings::default(), 100_000)
    }

    /// A manager with these settings that stores this many events.
    pub(crate) fn with(name: &str, settings: Settings, events_max: usize) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("manager").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder for the test can be made");
        let tokens = Arc::new(Tokens::open(&folder.join("tokens.json")).expect("there are no tokens yet"));
        let (token, _) = tokens.create("first", Role::Admin, BEGINNING_MS).expect("a token can be made");
        let certificate = Certificate::open(&folder.join("certificate.json"), &["127.0.0.1".into()]);
        let certificate = certificate.expect("a certificate can be made");
        let (actions, watched) = mpsc::unbounded_channel();
        let (halt, halted) = oneshot::channel();
        let (ready, is_ready) = blocking::channel();
        let (tls, keys) = (certificate.server().expect("TLS can be set up"), Arc::clone(&tokens));
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.expect("a runtime can be built").block_on(async move {
                let (calls, taken) = mpsc::channel(64);
                let (newest, seen) = watch::channel(0);
                let backend = Backend::new(newest, events_max);
                let playing = tokio::spawn(backend.run_calls(taken, watched));
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
                ready.send(listener.local_addr().expect("it is bound")).expect("the test waits for it");
                let api = Api::new(ManagerHandle::new(calls, seen), keys, settings);
                serve(listener, tls, api, async { drop(halted.await) }).await;
                playing.abort();
            });
        });
        let address = is_ready.recv().expect("the manager starts");
        let access =
            Access { url: format!("https://{address}"), certificate: certificate.pem().into(), token, data: None };
        access.write(&folder.join("access.json")).expect("an access file can be written");
        Self { access, address, folder, tokens, actions, halt: Some(halt), thread: Some(thread) }
    }

    /// A client with the first token.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.access).expect("the access file is good")
    }

    /// A client with a new token of this role.
    pub(crate) fn client_with_role(&self, role: Role) -> Client {
        let (token, _) = self.tokens.create("test", role, BEGINNING_MS).expect("a token can be made");
        self.client_with(&token)
    }

    pub(crate) fn client_with(&self, token: &str) -> Client {
        Client::new(&Access { token: token.into(), ..self.access.clone() }).expect("the access file is good")
    }

    /// From now on, events of this sort are held back; all others happen.
    pub(crate) fn hold_back(&self, held_back: impl Fn(Move) -> bool + Send + 'static) {
        self.act(move |backend| {
            backend.held_back = Box::new(held_back);
            backend.run();
        });
    }

    /// From now on, nothing is held back.
    pub(crate) fn release(&self) {
        self.hold_back(|_| false);
    }

    /// Acts on the system behind the manager, then runs everything that is not held back.
    pub(crate) fn act<T: Send + 'static>(&self, action: impl FnOnce(&mut Backend) -> T + Send + 'static) -> T {
        let (done, is_done) = blocking::channel();
        let action = move |backend: &mut Backend| {
            let result = action(backend);
            backend.observe();
            backend.run();
            done.send(result).expect("the test waits for it");
        };
        assert!(self.actions.send(Box::new(action)).is_ok(), "the manager runs");
        is_done.recv().expect("the manager runs")
    }

    /// A connection on which anything can be sent.
    pub(crate) async fn raw(&self) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(self.access.certificate.as_bytes());
        roots.add(certificate.expect("it is in the PEM format")).expect("it is a certificate");
        let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("there is a version")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address).await.expect("the manager listens");
        let name = "127.0.0.1".try_into().expect("it is an address");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("the certificate fits")
    }

    /// The manager halts.
    pub(crate) fn halt(&mut self) {
        if let (Some(halt), Some(thread)) = (self.halt.take(), self.thread.take()) {
            let _ = halt.send(());
            thread.join().expect("the manager halts without a panic");
        }
    }
}

impl Drop for TestManager {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.halt();
        }
    }
}

/// An empty application.
fn shop() -> ApplicationState {
    let files = ApplicationFiles {
        main: "shop.yaml".into(),
        files: [("shop.yaml".into(), "holdfast: 1\napplication: shop\n".into())].into(),
        ..ApplicationFiles::default()
    };
    let version = Version { number: 1, by: "first".into(), at_ms: BEGINNING_MS, files, ..Version::default() };
    let expansion = Expansion::empty(stage::name("shop"));
    ApplicationState { versions: vec![version], expansion, rollout: None, last_rollout: Vec::new() }
}

/// The system behind the manager.
pub(crate) struct Backend {
    pub(crate) stage: Stage,
    pub(crate) held_back: Box<dyn Fn(Move) -> bool + Send>,
    /// The components whose tasks all fail.
    pub(crate) failing: BTreeSet<String>,
    clouds: Clouds,
    applications: BTreeMap<Name, Arc<ApplicationState>>,
    data: DataBook,
    names: NameRegister,
    events: VecDeque<Event>,
    events_max: usize,
    newest: watch::Sender<u64>,
}

impl Backend {
    fn new(newest: watch::Sender<u64>, events_max: usize) -> Self {
        Self {
            stage: Stage::new(),
            held_back: Box::new(|_| false),
            failing: BTreeSet::new(),
            clouds: Clouds::new(),
            applications: [(stage::name("shop"), Arc::new(shop()))].into(),
            data: DataBook::default(),
            names: NameRegister::default(),
            events: VecDeque::new(),
            events_max,
            newest,
        }
    }

    async fn run_calls(mut self, mut calls: mpsc::Receiver<Call>, mut actions: mpsc::UnboundedReceiver<Action>) {
        loop {
            tokio::select! {
                Some(call) = calls.recv() => self.take(call),
                Some(action) = actions.recv() => action(&mut self),
                else => return,
            }
        }
    }

    fn take(&mut self, call: Call) {
        match call {
            Call::Ask { request, clouds, answer, .. } => {
                self.clouds.extend(clouds);
                let news = self.ask(request);
                let _ = answer.send(Ok(news));
                self.run();
            }
            // Applications are tested with the real manager.
            Call::Submit { answer, .. } => {
                let name = stage::name("shop");
                let _ = answer.send(Err(NotPosted::Outdated(name)));
            }
            Call::Rollout { answer, .. } => {
                let _ = answer.send(());
            }
            Call::Look(look) => {
                let origins = &Origins::default();
                look(View {
                    machine: &self.stage.manager,
                    clouds: &self.clouds,
                    applications: &self.applications,
                    origins,
                    data: &self.data,
                });
            }
            Call::EventsAfter { number, at_most, answer } => {
                let after = self.events.iter().filter(|event| event.number > number).take(at_most);
                let _ = answer.send(after.cloned().collect());
            }
            Call::Invite { vm, good_for_s, answer } => {
                let vm = vm.map_or("any".to_string(), |vm| vm.to_string());
                let _ = answer.send(Ok(format!("token for {vm} and {good_for_s} s")));
            }
            Call::HostQuestion { answer, .. } => {
                let _ = answer.send(Ok("[]".into()));
            }
            Call::Question { component, question, answer } => {
                let found = self.stage.manager.book().component(&component);
                let said = match question {
                    Question::Output { bytes_max } => {
                        let bytes_max = usize::try_from(bytes_max).expect("a small number");
                        format!("{component} wrote this\n").chars().take(bytes_max).collect()
                    }
                    Question::Drift => "file a.conf was changed".to_owned(),
                };
                let missing = || CallError::Unknown(format!("there is no component {component:?}"));
                let _ = answer.send(found.map(|_| said).ok_or_else(missing));
            }
        }
    }

    /// Submits a request of the operator.
    pub(crate) fn ask(&mut self, request: Request) -> News {
        let words = asked::in_words(&request);
        let news = self.stage.ask(request);
        self.observe_as(Some(&words));
        news
    }

    /// Runs everything that is not held back.
    pub(crate) fn run(&mut self) {
        while let Some(next) = self.stage.moves().into_iter().find(|it| !(self.held_back)(*it)) {
            match self.failing.iter().find(|name| self.is_task_of(next, name)).cloned() {
                Some(name) => self.stage.fail(&name),
                None => self.stage.make(next),
            }
            self.observe();
        }
    }

    fn is_task_of(&self, next: Move, component: &str) -> bool {
        let found = self.stage.manager.book().component(&stage::name(component));
        matches!(next, Move::Finish(_, id) if found.is_some_and(|it| it.id == Some(id)))
    }

    fn observe(&mut self) {
        self.observe_as(None);
    }

    fn observe_as(&mut self, asked: Option<&str>) {
        self.stage.said.iter().for_each(|output| self.names.learn(output));
        for news in std::mem::take(&mut self.stage.news) {
            let number = *self.newest.borrow() + 1;
            let about = match &news {
                News::Accepted(_) => asked.map(String::from),
                news => self.names.about(news).map(String::from),
            };
            self.events.push_back(Event { number, at_ms: BEGINNING_MS + number * 100, news, about });
            if self.events.len() > self.events_max {
                self.events.pop_front();
            }
            self.newest.send_replace(number);
        }
    }
}
