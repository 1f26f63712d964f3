//! One component in an agent's books: the facts from which every decision follows.
//!
//! The facts are cut along what they are about: what the manager wants ([`Orders`]), what the component hands out ([`Offer`]),
//! what it lends ([`Loans`]) and holds ([`Holdings`]), what the host does for it ([`Tasks`]), what may be running of it
//! ([`Run`]), and what the manager was told ([`Reported`]). Whether it counts as running is said by its state, and nowhere
//! else.

use super::{
    holding::Holdings,
    loan::Loans,
    rebinding::Rebinding,
    task::{TaskState, Tasks},
};
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
    /// An operation failed for good; manual action is required.
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

/// What the manager wants of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Goal {
    /// It is to run, as soon as its imports allow.
    Run,
    /// It must stop once more, and is then to run.
    Restart,
    /// It is removed: it is to stop and to be forgotten.
    Leave,
}

/// What the manager has ordered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Orders {
    pub(super) goal: Goal,
    /// The latest order that added or restarted it.
    latest: OrderNumber,
    /// The latest of these that the present run fulfils; after a run, the last one did.
    fulfilled: OrderNumber,
}

impl Orders {
    /// It is to be removed.
    pub(super) fn leave(&mut self) {
        self.goal = Goal::Leave;
    }

    /// It must stop once more, unless it leaves anyway.
    pub(super) fn restart(&mut self) {
        if self.goal == Goal::Run {
            self.goal = Goal::Restart;
        }
    }

    /// It is not running, so a restart has nothing left to stop.
    pub(super) fn stopped(&mut self) {
        if self.goal == Goal::Restart {
            self.goal = Goal::Run;
        }
    }

    /// An order wants another run than the present one.
    pub(super) fn renew(&mut self, order: OrderNumber) {
        self.latest = order;
    }

    /// A run begins, which fulfils all that was ordered so far.
    pub(super) fn begin_run(&mut self) {
        self.fulfilled = self.latest;
    }
}

/// What a component hands out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Offer {
    /// What `Prepare` announced, once it has.
    announced: Option<Values>,
    /// All its values: those announced, and those chosen at its latest start.
    values: Values,
    /// How often the latter have changed.
    edition: u32,
}

impl Offer {
    /// `Prepare` has announced these.
    pub(super) fn announce(&mut self, values: Values) {
        self.values = values.clone();
        self.announced = Some(values);
    }

    /// A start has chosen these besides. If that makes a difference, clients must be told again.
    pub(super) fn renew(&mut self, values: Values) {
        let mut all = self.announced.clone().unwrap_or_default();
        all.extend(values);
        if all != self.values {
            self.values = all;
            self.edition += 1;
        }
    }

    /// The edition to tell clients; nothing before anything was announced.
    pub(super) fn edition(&self) -> Option<u32> {
        self.announced.is_some().then_some(self.edition)
    }
}

/// What may be running of a component, as far as its agent knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Run {
    /// Nothing: it has not started, or has stopped, or has ended by itself when it was to stop.
    None,
    /// What this start task has started.
    Of(u64),
    /// Nothing: it ended by itself when it was to run, and has not started again. Loans may still be out.
    Died,
    /// What this start task has started, perhaps: its stop has failed and was skipped.
    Unconfirmed(u64),
}

impl Run {
    /// The start task of what may be running.
    pub(super) fn serial(self) -> Option<u64> {
        match self {
            Self::Of(serial) | Self::Unconfirmed(serial) => Some(serial),
            Self::None | Self::Died => None,
        }
    }
}

/// What the manager was last told.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Reported {
    /// How it is.
    pub(super) condition: Option<Condition>,
    /// Whether it waits for something that the manager will not hear of otherwise.
    pub(super) pending: bool,
}

/// One component in an agent's books.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Component {
    pub(super) name: Name,
    pub(super) kind: Arc<Kind>,
    pub(super) state: ComponentState,
    pub(super) orders: Orders,
    pub(super) offer: Offer,
    /// What it lends to others.
    pub(super) loans: Loans,
    /// What others lend to it.
    pub(super) holdings: Holdings,
    pub(super) tasks: Tasks,
    pub(super) run: Run,
    pub(super) reported: Reported,
}

impl Component {
    pub(super) fn new(id: ComponentId, name: Name, kind: Arc<Kind>, holdings: Holdings) -> Self {
        let order = OrderNumber(id.0);
        let announced = (!kind.prepares).then(Values::new);
        Self {
            name,
            state: ComponentState::Stopped,
            orders: Orders { goal: Goal::Run, latest: order, fulfilled: order },
            offer: Offer { announced, values: Values::new(), edition: 0 },
            loans: Loans::default(),
            holdings: holdings.known(&kind),
            tasks: Tasks::default(),
            run: Run::None,
            reported: Reported::default(),
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
        self.orders.goal == Goal::Leave
    }

    /// Whether it ended by itself and has not started again.
    pub fn has_died(&self) -> bool {
        self.run == Run::Died
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
        self.tasks.state
    }

    /// The values that `prepare` announced, once it has.
    pub fn announced(&self) -> Option<&Values> {
        self.offer.announced.as_ref()
    }

    /// How often the values of its starts have changed.
    pub fn edition(&self) -> u32 {
        self.offer.edition
    }

    /// All its values: those announced, and those of its latest start.
    pub fn values(&self) -> &Values {
        &self.offer.values
    }

    /// The operation that failed last, and how often in a row.
    pub fn failures(&self) -> Option<(Operation, u32)> {
        self.tasks.failures
    }

    /// Deaths since it was last steady.
    pub fn deaths(&self) -> u32 {
        self.tasks.deaths
    }

    /// The number of the latest task, and of the start task that began the present run, if there is one.
    pub fn serials(&self) -> (u64, Option<u64>) {
        (self.tasks.serial, self.run.serial())
    }

    /// Rule C2: removed, restarting, an import below its number, or something has come back as something else
    /// that it cannot be told of.
    pub fn must_stop(&self) -> bool {
        self.orders.goal != Goal::Run || !self.holdings.are_enough() || self.holdings.call_for_a_restart()
    }

    /// Whether it waits for something of which the manager hears in no other way.
    pub(super) fn is_pending(&self) -> bool {
        self.loans.await_return() || self.holdings.rebinding().is_some_and(Rebinding::uses_lost) || self.is_unsteady()
    }

    /// Whether it died and has not been up for long enough since: it may be in a crash loop.
    fn is_unsteady(&self) -> bool {
        self.state == ComponentState::Started && self.tasks.deaths > 0
    }

    /// Whether the host has something under way for it.
    pub(super) fn is_busy(&self) -> bool {
        self.tasks.state.under_way().is_some()
    }

    /// Rule C1; and after a death, every loan comes home first.
    pub(super) fn may_start(&self) -> bool {
        self.state == ComponentState::Stopped
            && self.tasks.state == TaskState::None
            && self.offer.announced.is_some()
            && self.loans.all_home()
            && !self.must_stop()
    }

    /// Rule C5: whether it must be told of another set of bindings while it runs: to give something back, even while draining; or
    /// because something came or went, unless it is about to stop anyway.
    pub(super) fn wants_rebind(&self, dispensable: &ShortSet<BindingId>) -> bool {
        match self.must_stop() {
            true => !dispensable.is_empty() && !self.loans.all_home(),
            false => self.holdings.rebinding().is_some_and(Rebinding::has_changed) || !dispensable.is_empty(),
        }
    }

    /// How it is, for the manager.
    pub(super) fn condition(&self) -> Condition {
        Condition { state: self.state, since: self.orders.fulfilled }
    }

    /// The values of one of its exports, as a client is to see them: a client that needs no more than to know them sees
    /// what was announced, which no restart changes.
    pub(super) fn values_of(&self, export: &Name, reference: bool) -> Values {
        let (Some(export), Some(announced)) = (self.kind.exports.get(export), &self.offer.announced) else {
            return Values::new();
        };
        let announced = if reference { announced } else { &self.offer.values };
        export
            .values
            .iter()
            .filter_map(|name| announced.get_key_value(name))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect()
    }
}
