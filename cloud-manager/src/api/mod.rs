//! HTTPS and JSON for operators, in front of the [`ManagerHandle`].
//!
//! A request passes the guard (is there room, whose token is it, may its role do this), is read into a document, becomes
//! one call at the manager, and its answer goes back as a document. Nothing here decides about the protocol, and nothing that
//! comes from outside can do more than be answered with what is wrong with it.
//!
//! | file | what it does |
//! |---|---|
//! | `routes` | the one table of routes; router, roles and description all come from it |
//! | `guard` | room, token, role, time |
//! | `listen`, `impatient` | TLS connections and their limits |
//! | `reading` | names, queries and bodies from outside, checked once |
//! | `applications` | requests about whole applications: planned on threads of their own, then submitted |
//! | `cancelling` | cancelling changes and rollouts, promoting rollouts |
//! | `looking`, `asking`, `following` | what is behind the routes: how things are, requests, events as they come |
//! | `story` | what happened in one change, from the journals |
//! | `view`, `waits`, `why`, `chronicle` | from book and events to documents |
//! | `metrics` | numbers for Prometheus |
//! | `tokens`, `certificate` | who may come in, and how they know that they are here |
//! | `describe` | the description in the OpenAPI format |

mod applications;
mod asking;
mod cancelling;
mod certificate;
mod chronicle;
mod describe;
mod following;
mod guard;
mod impatient;
mod listen;
mod looking;
mod metrics;
mod problem;
mod reading;
mod routes;
mod story;
mod tokens;
mod view;
mod waits;
mod why;

pub use certificate::{Certificate, CertificateError};
pub use listen::serve;
pub use tokens::{Tokens, TokensError};

pub(crate) use problem::{Problem, json};

use crate::dashboard::Sessions;
use crate::handle::ManagerHandle;
use chronicle::Chronicle;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::{Mutex, Semaphore, watch};

/// Beside the file of the tokens: the sessions of browsers.
const SESSIONS: &str = "sessions.json";

/// How much of everything there may be at once, and what happens beyond.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes of one request's body; a longer one is refused.
    pub body_bytes_max: usize,
    /// Requests that are being worked on; further ones are told to come back.
    pub requests_max: usize,
    /// Connections; further ones wait to be accepted.
    pub connections_max: usize,
    /// Streams of events; further ones are told to come back.
    pub streams_max: usize,
    /// How long a connection may take to say who it is and to send the head of a request, and how long it may be idle.
    pub head_patience: Duration,
    /// How long the body of a request may take.
    pub body_patience: Duration,
    /// How long the manager may take to answer.
    pub answer_patience: Duration,
    /// How long a request may take that plans.
    pub plan_patience: Duration,
    /// How often a stream without events says that it is alive.
    pub keep_alive: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            body_bytes_max: 8 << 20,
            requests_max: 64,
            connections_max: 512,
            streams_max: 128,
            head_patience: Duration::from_secs(30),
            body_patience: Duration::from_secs(30),
            answer_patience: Duration::from_secs(60),
            plan_patience: Duration::from_secs(900),
            keep_alive: Duration::from_secs(15),
        }
    }
}

/// What the routes share.
#[derive(Clone, Debug)]
pub struct Api {
    manager: ManagerHandle,
    tokens: Arc<Tokens>,
    settings: Settings,
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    chronicle: Arc<Mutex<Chronicle>>,
    plans: Arc<applications::Plans>,
    stories: Arc<story::Stories>,
    metrics: Arc<metrics::Metrics>,
    sessions: Arc<Sessions>,
    halting: Arc<watch::Sender<bool>>,
}

impl Api {
    /// An API in front of this manager, open to these tokens.
    pub fn new(manager: ManagerHandle, tokens: Arc<Tokens>, settings: Settings) -> Self {
        let metrics = Arc::<metrics::Metrics>::default();
        let sessions = Sessions::open(tokens.directory().join(SESSIONS));
        Self {
            manager,
            tokens,
            settings,
            requests: Arc::new(Semaphore::new(settings.requests_max)),
            streams: Arc::new(Semaphore::new(settings.streams_max)),
            chronicle: Arc::new(Mutex::new(Chronicle::measured(Arc::clone(&metrics)))),
            plans: Arc::default(),
            stories: Arc::default(),
            metrics,
            sessions: Arc::new(sessions),
            halting: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Sessions of browsers.
    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The tokens that let operators in.
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The description of every route in the OpenAPI format.
    pub fn description() -> serde_json::Value {
        describe::description()
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
