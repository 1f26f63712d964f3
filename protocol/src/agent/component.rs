//! One component in an agent's books: the facts from which every decision follows.

use super::{holding::Holdings, loan::Loans};
use crate::{BindingId, ComponentId, Condition, Kind, Name, Operation, OrderNumber, ShortSet, Values};
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// Where a component is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ComponentState {
    /// Not running.
    Stopped,
    /// Asked to start; its readiness check has not passed yet.
    Starting,
    /// Running and ready.
    Started,
    /// Asked to stop; it may still be running.
    Stopping,
    /// An operation failed for good and a person is needed.
    Failed(Operation),
}

impl ComponentState {
    /// Whether something of the component may be running.
    pub fn is_running(self) -> bool {
        match self {
            Self::Starting | Self::Started | Self::Stopping | Self::Failed(Operation::Stop) => true,
            Self::Stopped | Self::Failed(_) => false,
        }
    }
}

impl fmt::Display for ComponentState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => formatter.write_str("stopped"),
            Self::Starting => formatter.write_str("starting"),
            Self::Started => formatter.write_str("started"),
            Self::Stopping => formatter.write_str("stopping"),
            Self::Failed(operation) => write!(formatter, "failed to {operation}"),
        }
    }
}

/// What the host is doing for a component, at most one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaskState {
    /// Nothing.
    None,
    /// This operation is under way.
    UnderWay(Operation),
    /// This operation failed and is retried when the alarm rings.
    Pausing(Operation),
    /// A start is under way and was asked to end early.
    Aborting,
}

impl TaskState {
    /// The operation that the host has under way.
    pub fn under_way(self) -> Option<Operation> {
        match self {
            Self::UnderWay(operation) => Some(operation),
            Self::Aborting => Some(Operation::Start),
            Self::None | Self::Pausing(_) => None,
        }
    }
}

/// One component in an agent's books.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Component {
    pub(super) name: Name,
    pub(super) kind: Arc<Kind>,
    pub(super) state: ComponentState,
    /// The values that it announced when it was prepared.
    pub(super) announced: Option<Values>,
    /// All its values: those announced, and those chosen at its latest start.
    pub(super) values: Values,
    /// How often the latter have changed.
    pub(super) edition: u32,
    /// It is removed.
    pub(super) leaving: bool,
    /// It must stop once more before it may go on.
    pub(super) restarting: bool,
    /// The latest order that added or restarted it.
    pub(super) renewed: OrderNumber,
    /// What `renewed` was when the present run began.
    pub(super) since: OrderNumber,
    /// What it lends to others.
    pub(super) loans: Loans,
    /// What others lend to it.
    pub(super) holdings: Holdings,
    pub(super) task_state: TaskState,
    /// The number of the latest task asked of the host.
    pub(super) serial: u64,
    /// The start task that began the present run; none if that has ended by itself.
    pub(super) run: Option<u64>,
    /// The operation that failed last, and how often in a row.
    pub(super) failures: Option<(Operation, u32)>,
    /// It ended by itself and has not started again: loans may still be out.
    pub(super) died: bool,
    /// Something that it held was lost with its VM in the present run, and it has had too little since.
    pub(super) bereft: bool,
    /// Something that it was told of was lost with its VM, and no rebind has told it so.
    pub(super) uses_lost: bool,
    /// Deaths since it was last steady.
    pub(super) deaths: u32,
    /// The set of bindings it may use is not the one it was last told.
    pub(super) changed: bool,
    /// The recalled loans that the rebind under way leaves out.
    pub(super) let_go: ShortSet<BindingId>,
    /// What was installed is removed again.
    pub(super) purged: bool,
    /// Its stop was skipped, so it may still be running.
    pub(super) unconfirmed: bool,
    /// What the manager was last told.
    pub(super) reported: Option<Condition>,
    /// Whether the manager was last told that it waits for something that it will not hear of otherwise.
    pub(super) reported_pending: bool,
}

impl Component {
    pub(super) fn new(id: ComponentId, name: Name, kind: Arc<Kind>, holdings: Holdings) -> Self {
        let order = OrderNumber(id.0);
        Self {
            name,
            state: ComponentState::Stopped,
            announced: (!kind.prepares).then(Values::new),
            values: Values::new(),
            edition: 0,
            leaving: false,
            restarting: false,
            renewed: order,
            since: order,
            loans: Loans::default(),
            holdings: holdings.known(&kind),
            task_state: TaskState::None,
            serial: 0,
            run: None,
            failures: None,
            died: false,
            bereft: false,
            uses_lost: false,
            deaths: 0,
            changed: false,
            let_go: ShortSet::default(),
            purged: false,
            unconfirmed: false,
            reported: None,
            reported_pending: false,
            kind,
        }
    }

    /// What people call it.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// What it is.
    pub fn kind(&self) -> &Arc<Kind> {
        &self.kind
    }

    /// Its state.
    pub fn state(&self) -> ComponentState {
        self.state
    }

    /// Whether it is removed and on its way out.
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Whether it ended by itself and has not started again.
    pub fn has_died(&self) -> bool {
        self.died
    }

    /// What it lends to others.
    pub fn loans(&self) -> &Loans {
        &self.loans
    }

    /// What others lend to it.
    pub fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    /// What the host is doing for it.
    pub fn task_state(&self) -> TaskState {
        self.task_state
    }

    /// The values that `prepare` announced, once it has.
    pub fn announced(&self) -> Option<&Values> {
        self.announced.as_ref()
    }

    /// All its values: those announced, and those of its latest start.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The operation that failed last, and how often in a row.
    pub fn failures(&self) -> Option<(Operation, u32)> {
        self.failures
    }

    /// Deaths since it was last steady.
    pub fn deaths(&self) -> u32 {
        self.deaths
    }

    /// The number of the latest task, and of the start task that began the present run, if there is one.
    pub fn serials(&self) -> (u64, Option<u64>) {
        (self.serial, self.run)
    }

    /// Rule C2: removed, restarting, an import below its number, or something has come back as something else
    /// that it cannot be told of.
    pub fn must_stop(&self) -> bool {
        self.leaving || self.restarting || !self.holdings.are_enough() || self.holdings.call_for_a_restart()
    }

    /// Whether something that it needs was lost with its VM, so that it cannot help running with too little until it has
    /// stopped.
    pub fn is_bereft(&self) -> bool {
        self.bereft
    }

    /// Whether it waits for something of which the manager hears in no other way.
    pub(super) fn is_pending(&self) -> bool {
        self.loans.await_return() || self.uses_lost || self.is_unsteady()
    }

    /// Whether it died and has not been up for long enough since: it may be in a crash loop.
    fn is_unsteady(&self) -> bool {
        self.state == ComponentState::Started && self.deaths > 0
    }

    /// Whether the host has something under way for it.
    pub(super) fn is_busy(&self) -> bool {
        self.task_state.under_way().is_some()
    }

    /// Rule C1; and after a death, every loan comes home first.
    pub(super) fn may_start(&self) -> bool {
        self.state == ComponentState::Stopped
            && self.task_state == TaskState::None
            && self.announced.is_some()
            && self.loans.all_home()
            && !self.must_stop()
    }

    /// Rule C5: whether it must be told of another set of bindings while it runs: to give something back, even while draining; or
    /// because something came or went, unless it is about to stop anyway.
    pub(super) fn wants_rebind(&self, dispensable: &ShortSet<BindingId>) -> bool {
        match self.must_stop() {
            true => !dispensable.is_empty() && !self.loans.all_home(),
            false => self.changed || !dispensable.is_empty(),
        }
    }

    /// How it is, for the manager.
    pub(super) fn condition(&self) -> Condition {
        Condition { state: self.state, since: self.since }
    }

    /// The values of one of its exports, as a client is to see them: a client that needs no more than to know them sees
    /// what was announced, which no restart changes.
    pub(super) fn values_of(&self, export: &Name, reference: bool) -> Values {
        let (Some(export), Some(announced)) = (self.kind.exports.get(export), &self.announced) else {
            return Values::new();
        };
        let announced = if reference { announced } else { &self.values };
        export
            .values
            .iter()
            .filter_map(|name| announced.get_key_value(name))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect()
    }
}
