//! HTTPS and JSON for operators, in front of the [`ManagerHandle`].
//!
//! A request passes the guard (limits, token, role), is read into a document, becomes one call to the manager, and its
//! answer is returned as a document. Nothing here decides about the protocol, and malformed input from outside is only
//! ever answered with what is wrong with it.
//!
//! | file | what it does |
//! |---|---|
//! | `routes` | the table of routes; router, roles and description are generated from it |
//! | `guard` | limits, tokens, roles, timeouts |
//! | `listen`, `write_timeout` | TLS connections and their limits |
//! | `reading` | names, queries and bodies from outside, checked once |
//! | `applications` | requests about applications: planned on separate threads, then submitted |
//! | `autoscaling` | applications that follow their load: the loop that measures, plans and submits |
//! | `cancelling` | cancelling changes and rollouts, promoting rollouts |
//! | `queries`, `requests`, `event_stream` | the handlers behind the routes: reading state, requests, events as they happen |
//! | `story` | what happened in one change, from the journals |
//! | `view`, `waits`, `why`, `history` | from book and events to documents |
//! | `metrics` | numbers for Prometheus |
//! | `tokens`, `certificate` | who has access, and how clients recognise the manager |
//! | `describe` | the description in the OpenAPI format |

mod applications;
mod attempts;
mod autoscaling;
mod cancelling;
mod certificate;
mod data;
mod describe;
mod event_stream;
mod guard;
mod history;
mod listen;
mod metrics;
mod problem;
mod queries;
mod reading;
mod requests;
mod routes;
mod story;
mod tokens;
mod view;
mod waits;
mod why;
mod write_timeout;

pub use certificate::{Certificate, CertificateError};
pub use listen::serve;
pub use tokens::{Tokens, TokensError};

pub(crate) use problem::{Problem, json};

use crate::dashboard::Sessions;
use crate::handle::ManagerHandle;
use history::History;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::{Mutex, Semaphore, watch};

/// Beside the file of the tokens: the sessions of browsers.
const SESSIONS: &str = "sessions.json";

/// Limits of the API, and what happens beyond them.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes of one request's body; a longer one is refused.
    pub body_bytes_max: usize,
    /// Requests in progress; further ones are answered with "try again later".
    pub requests_max: usize,
    /// Connections; further ones wait to be accepted.
    pub connections_max: usize,
    /// Event streams; further ones are answered with "try again later".
    pub streams_max: usize,
    /// Time limit for the TLS handshake and for the head of a request, and for idle connections.
    pub head_timeout: Duration,
    /// Time limit for the body of a request.
    pub body_timeout: Duration,
    /// Time limit for the manager's answer.
    pub answer_timeout: Duration,
    /// Time limit for a request that plans.
    pub plan_timeout: Duration,
    /// How often an event stream without events sends a keep-alive.
    pub keep_alive: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            body_bytes_max: 8 << 20,
            requests_max: 64,
            connections_max: 512,
            streams_max: 128,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(60),
            plan_timeout: Duration::from_secs(900),
            keep_alive: Duration::from_secs(15),
        }
    }
}

/// State shared by all routes.
#[derive(Clone, Debug)]
pub struct Api {
    manager: ManagerHandle,
    tokens: Arc<Tokens>,
    settings: Settings,
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    history: Arc<Mutex<History>>,
    plans: Arc<applications::Plans>,
    stories: Arc<story::Stories>,
    metrics: Arc<metrics::Metrics>,
    sessions: Arc<Sessions>,
    autoscaling: Arc<autoscaling::Autoscaling>,
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
            history: Arc::new(Mutex::new(History::measured(Arc::clone(&metrics)))),
            plans: Arc::default(),
            stories: Arc::default(),
            metrics,
            sessions: Arc::new(sessions),
            autoscaling: Arc::default(),
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

    /// The same, with pauses of autoscaling kept in this file.
    #[must_use]
    pub fn keeping_pauses_in(self, path: &std::path::Path) -> Self {
        Self { autoscaling: Arc::new(autoscaling::Autoscaling::open(path)), ..self }
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
