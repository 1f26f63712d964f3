//! Numbers for Prometheus, at `/metrics`: what happened, from events; how things are, from the book; what the API does.
//!
//! Counters of what happened follow from the events that are kept, so a restart of the manager does not begin them anew; those
//! of the API do begin anew. No label has a name of a component, VM or operator as its value: the number of series is fixed.
//! docs/OPERATING.md lists the names.

use super::{Api, history::History, problem::Problem};
use crate::document::{ComponentStatus, VmHealth};
use crate::machine::View;
use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::Response,
};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
        info::Info,
    },
    registry::Registry,
};
use std::{fmt, sync::Mutex, sync::PoisonError, time::Duration};

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The label of what is counted by its state or health.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Condition {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationOutcome {
    operation: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    status: &'static str,
}

/// Seconds from 10 ms to some 90 minutes.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 3.0, 13))
}

/// Everything that is measured.
pub(super) struct Metrics {
    registry: Mutex<Registry>,
    changes: Family<Outcome, Counter>,
    change_seconds: Histogram,
    operations: Family<OperationOutcome, Counter>,
    operation_seconds: Family<Operation, Histogram>,
    deaths: Counter,
    suspicions: Counter,
    plan_seconds: Histogram,
    requests: Family<Answer, Counter>,
    components: Family<Condition, Gauge>,
    machines: Family<Condition, Gauge>,
    bindings: Family<Condition, Gauge>,
    under_way: Gauge,
    stuck: Gauge,
    plans: Gauge,
    streams: Gauge,
    calls: Gauge,
    newest: Gauge,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Mutex::new(Registry::with_prefix("holdfast")),
            changes: Family::default(),
            change_seconds: seconds(),
            operations: Family::default(),
            operation_seconds: Family::new_with_constructor(seconds),
            deaths: Counter::default(),
            suspicions: Counter::default(),
            plan_seconds: seconds(),
            requests: Family::default(),
            components: Family::default(),
            machines: Family::default(),
            bindings: Family::default(),
            under_way: Gauge::default(),
            stuck: Gauge::default(),
            plans: Gauge::default(),
            streams: Gauge::default(),
            calls: Gauge::default(),
            newest: Gauge::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&self) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Version of the program", build);
        registry.register("changes", "Changes that ended, by outcome", self.changes.clone());
        registry.register(
            "change_seconds",
            "Time from the acceptance of a change to its end",
            self.change_seconds.clone(),
        );
        registry.register("operations", "Operations that ended, by kind and outcome", self.operations.clone());
        registry.register(
            "operation_seconds",
            "Time that successful operations took, by kind",
            self.operation_seconds.clone(),
        );
        registry.register("component_deaths", "Components that ended by themselves", self.deaths.clone());
        registry.register("machine_suspicions", "VMs that stopped answering", self.suspicions.clone());
        registry.register("plan_seconds", "Time that plans took", self.plan_seconds.clone());
        registry.register("api_requests", "Requests to the API that were let in, by status", self.requests.clone());
        registry.register("components", "Components, by state", self.components.clone());
        registry.register("machines", "VMs, by health", self.machines.clone());
        registry.register("bindings", "Bindings: held, or not held", self.bindings.clone());
        registry.register("changes_under_way", "Changes that are not done", self.under_way.clone());
        registry.register("changes_stuck", "Changes that wait until an operator acts", self.stuck.clone());
        registry.register("plans_under_way", "Plans that the manager is working on", self.plans.clone());
        registry.register("event_streams", "Open streams of events", self.streams.clone());
        registry.register("calls_waiting", "Calls that the manager's machine has not taken yet", self.calls.clone());
        registry.register("newest_event", "Number of the newest event", self.newest.clone());
    }

    /// A change came to its end, so long after it was accepted, if that is known.
    pub(super) fn change_ended(&self, cancelled: bool, took_ms: Option<u64>) {
        let outcome = if cancelled { "cancelled" } else { "done" };
        self.changes.get_or_create(&Outcome { outcome }).inc();
        if let Some(took) = took_ms {
            self.change_seconds.observe(Duration::from_millis(took).as_secs_f64());
        }
    }

    /// An operation succeeded.
    pub(super) fn operation_done(&self, operation: &'static str, took_ms: u64) {
        self.operations.get_or_create(&OperationOutcome { operation, outcome: "done" }).inc();
        let seconds = Duration::from_millis(took_ms).as_secs_f64();
        self.operation_seconds.get_or_create(&Operation { operation }).observe(seconds);
    }

    /// An operation failed for good.
    pub(super) fn operation_failed(&self, operation: protocol::Operation) {
        let operation = match operation {
            protocol::Operation::Prepare => "prepare",
            protocol::Operation::Start => "start",
            protocol::Operation::Run => "run",
            protocol::Operation::Rebind => "rebind",
            protocol::Operation::Stop => "stop",
            protocol::Operation::Purge => "purge",
        };
        self.operations.get_or_create(&OperationOutcome { operation, outcome: "failed" }).inc();
    }

    /// A component ended by itself.
    pub(super) fn died(&self) {
        self.deaths.inc();
    }

    /// A VM stopped answering.
    pub(super) fn suspected(&self) {
        self.suspicions.inc();
    }

    /// A plan was made, or given up.
    pub(super) fn planned(&self, took: Duration) {
        self.plan_seconds.observe(took.as_secs_f64());
    }

    /// A request was answered.
    pub(super) fn answered(&self, status: u16) {
        let status = match status / 100 {
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        self.requests.get_or_create(&Answer { status }).inc();
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        encode(&mut text, &registry).expect("writing to a string does not fail");
        text
    }
}

/// How things are, counted.
struct Present {
    components: Vec<ComponentStatus>,
    machines: Vec<VmHealth>,
    held: usize,
    bindings: usize,
    under_way: usize,
    stuck: usize,
    newest: u64,
}

fn present(manager: View<'_>, history: &History) -> Present {
    let status = super::view::status(manager, history);
    Present {
        held: status.summary.bindings_held,
        bindings: status.summary.bindings,
        under_way: status.changes.len(),
        stuck: status.changes.iter().filter(|it| !it.stuck_on.is_empty()).count(),
        newest: status.newest_event,
        components: status.components.iter().map(|it| it.state).collect(),
        machines: status.vms.iter().filter(|it| !it.past).map(|it| it.health).collect(),
    }
}

/// A number that fits: there are never so many of anything.
fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) async fn metrics(State(api): State<Api>) -> Result<Response, Problem> {
    let present = api.look_at_all(present).await?;
    let metrics = &api.metrics;
    for (state, word) in [
        (ComponentStatus::Awaited, "awaited"),
        (ComponentStatus::Stopped, "stopped"),
        (ComponentStatus::Starting, "starting"),
        (ComponentStatus::Started, "started"),
        (ComponentStatus::Stopping, "stopping"),
        (ComponentStatus::Failed, "failed"),
    ] {
        let count = present.components.iter().filter(|it| **it == state).count();
        metrics.components.get_or_create(&Condition { state: word }).set(number(count));
    }
    for (health, word) in [
        (VmHealth::Awaited, "awaited"),
        (VmHealth::Well, "well"),
        (VmHealth::Suspected, "suspected"),
        (VmHealth::Lost, "lost"),
    ] {
        let count = present.machines.iter().filter(|it| **it == health).count();
        metrics.machines.get_or_create(&Condition { state: word }).set(number(count));
    }
    metrics.bindings.get_or_create(&Condition { state: "held" }).set(number(present.held));
    metrics.bindings.get_or_create(&Condition { state: "not-held" }).set(number(present.bindings - present.held));
    metrics.under_way.set(number(present.under_way));
    metrics.stuck.set(number(present.stuck));
    metrics.newest.set(i64::try_from(present.newest).unwrap_or(i64::MAX));
    metrics.plans.set(number(api.plans.running()));
    metrics.streams.set(number(api.settings.streams_max - api.streams.available_permits()));
    metrics.calls.set(number(api.manager.calls_waiting()));
    let mut response = Response::new(metrics.text().into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(TYPE));
    Ok(response)
}
