//! The cloud manager: checks what the operator asks for, numbers it, posts it as up and down phases, and knows from the
//! reports when it is done.
//!
//! It orders no steps: agents find the right order among themselves. What it adds is the whole view: it refuses what
//! cannot work, predicts the end, and tells the operator when the reports agree with the prediction.
//!
//! Reading order: [`CloudManager::step`] here; `accept` turns a change into checked edits; `posting` posts them, `phases` waits;
//! `cancel` takes a change back; `reports` hears what agents and the cloud say; `predict` computes the expected end; `book` is what it all works on.

mod accept;
mod book;
mod cancel;
mod cycle;
mod departures;
mod edit;
mod import;
mod outlook;
mod phases;
mod posting;
mod precedence;
mod predict;
mod reports;
mod waiting;

pub use book::{BindingEntry, Book, ComponentEntry, Entry, Health, VmEntry};
pub use cancel::CancelOutlook;
pub use import::ImportEntry;
pub use outlook::Outlook;
pub use waiting::{ChangeState, Waiting};

use crate::{
    Change, ChangeId, ComponentId, Condition, Name, Operation, Order, OrderNumber, Refusal, Report, VmId, VmState,
    letter::FailedAttempt,
};
use phases::Running;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

/// All that can come in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Input {
    /// The operator asks for something.
    FromOperator(Request),
    /// An agent reports.
    FromAgent(VmId, Report),
    /// The cloud says how a VM is.
    FromCloud(CloudOutcome),
    /// An alarm that was set has rung.
    AlarmRang(Alarm),
    /// From now on, a VM that is suspected for so many milliseconds is declared lost; or never. Suspicions that have begun end
    /// as they would have.
    SuspicionLimit(Option<u64>),
}

/// What the operator asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Request {
    /// Make this change.
    Make(Change),
    /// Try the failed operation of this component again.
    Retry(Name),
    /// Let the failed operation of this component count as done.
    Skip(Name),
    /// The VM of this name is lost.
    DeclareLost(Name),
    /// Cancel this change: drop what is not posted, and take back what is.
    Cancel(ChangeId),
}

/// All that can go out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Output {
    /// Tell the operator. The first one in a step that began with a request is its answer.
    ToOperator(News),
    /// Order an agent.
    ToAgent(VmId, Order),
    /// Ask the cloud.
    ToCloud(CloudTask),
    /// Wake me after so many milliseconds.
    SetAlarm(Alarm, u64),
    /// Something worth knowing happened.
    Note(Note),
}

/// What the operator is told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum News {
    /// The request is checked and will be carried out under this number.
    Accepted(ChangeId),
    /// The request is refused and nothing has changed.
    Refused(Vec<Refusal>),
    /// The next phase of a change has been posted.
    PhasePosted(ChangeId, PhaseKind),
    /// The reports agree with what was predicted for this phase.
    PhaseDone(ChangeId, PhaseKind),
    /// The last phase of the change is done.
    ChangeDone(ChangeId),
    /// A component is in another condition.
    ComponentIs(ComponentId, Condition),
    /// A component is removed, stopped and forgotten.
    ComponentGone(ComponentId),
    /// An operation failed for good; manual action is required.
    OperationFailed(ComponentId, Operation, Arc<str>),
    /// The cloud has made the VM.
    VmInstantiated(VmId),
    /// The cloud could not make the VM; it will be asked again.
    VmNotInstantiated(VmId, Arc<str>),
    /// A VM as a whole is in another state.
    VmIs(VmId, VmState),
    /// A VM has not been heard of for a while.
    VmSuspected(VmId),
    /// A suspected VM answers again.
    VmWell(VmId),
    /// A VM was declared lost.
    VmLost(VmId),
    /// The cloud has destroyed the VM.
    VmDestroyed(VmId),
    /// The change is being cancelled, and this becomes of it. The answer to [`Request::Cancel`].
    Cancelling(ChangeId, CancelOutlook),
    /// A cancelled change has come to its end.
    ChangeCancelled(ChangeId),
    /// An attempt failed and will be retried. The machine does not output it: agents report it beside the machines.
    AttemptFailed(ComponentId, FailedAttempt),
}

/// Which part of a change a phase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PhaseKind {
    /// Needs are lowered, so that removals stop no component needlessly.
    Lower,
    /// Additions.
    Up,
    /// Removals and restarts.
    Down,
    /// Additions and removals at once.
    Both,
    /// A lost VM is forgotten.
    Forget,
}

impl fmt::Display for PhaseKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Lower => "lower",
            Self::Up => "up",
            Self::Down => "down",
            Self::Both => "both",
            Self::Forget => "forget",
        })
    }
}

/// What the cloud is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CloudTask {
    /// Make a VM whose agent has this identity.
    Create(VmId, Name),
    /// Destroy the VM.
    Destroy(VmId),
}

/// What the cloud says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CloudOutcome {
    /// The VM is there.
    Created(VmId),
    /// The VM could not be made.
    CreateFailed(VmId, Arc<str>),
    /// The VM is no more.
    Destroyed(VmId),
    /// Nothing was heard of the VM for a while.
    Silent(VmId),
    /// The VM is heard of again.
    Heard(VmId),
    /// The VM is known to be lost.
    Lost(VmId),
}

/// A reason to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Alarm {
    /// Ask the cloud for this VM again.
    CreateAgain(VmId),
    /// A VM has been suspected for long enough; the number of that suspicion.
    Suspicion(VmId, u32),
}

/// Something worth knowing that needs no answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Note {
    /// A report came from a VM that is lost or destroyed.
    ReportFenced(VmId),
    /// A report speaks of a component that is no longer in the book.
    ReportTooLate(ComponentId),
    /// An alarm or an outcome has lost its reason.
    TooLate(VmId),
    /// Part of a change could not be posted because its VM was lost meanwhile.
    DeedDropped(ChangeId),
}

/// The pause before the cloud is asked again for a VM that it could not make.
pub const CREATE_AGAIN_MS: u64 = 5_000;

/// The cloud manager.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CloudManager {
    book: Book,
    /// The latest order.
    last_order: OrderNumber,
    /// The latest change.
    last_change: ChangeId,
    /// Changes that are not done, in the order in which they were accepted.
    running: BTreeMap<ChangeId, Running>,
    /// How long a VM may be suspected before it is declared lost; never by itself if absent.
    suspicion_ms_max: Option<u64>,
}

impl CloudManager {
    /// A manager of nothing. It declares a VM lost by itself after so long a suspicion, or never.
    pub fn new(suspicion_ms_max: Option<u64>) -> Self {
        Self {
            book: Book::default(),
            last_order: OrderNumber::NONE,
            last_change: ChangeId(0),
            running: BTreeMap::new(),
            suspicion_ms_max,
        }
    }

    /// After how long a suspicion a VM is declared lost, if it ever is.
    pub fn suspicion_ms_max(&self) -> Option<u64> {
        self.suspicion_ms_max
    }

    /// Takes one input to its end: records what it says, then posts whatever may now be posted.
    pub fn step(&mut self, input: Input) -> Vec<Output> {
        let mut turn = Turn { manager: self, outputs: Vec::new(), touched: BTreeSet::new() };
        match input {
            Input::FromOperator(request) => turn.consider(request),
            Input::FromAgent(vm, report) => turn.hear(vm, report),
            Input::FromCloud(outcome) => turn.record(outcome),
            Input::AlarmRang(alarm) => turn.wake(alarm),
            Input::SuspicionLimit(limit) => turn.manager.suspicion_ms_max = limit,
        }
        turn.settle();
        turn.outputs
    }

    /// What the manager keeps track of.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// The changes that are not done, in the order in which they were accepted.
    pub fn changes(&self) -> impl Iterator<Item = ChangeState> {
        self.running.keys().map(|change| self.state_of(*change))
    }

    /// The components that the posted phase of a change may touch.
    pub fn watched(&self, change: ChangeId) -> impl Iterator<Item = &ComponentEntry> {
        let phase = self.running.get(&change).and_then(|running| running.phase.as_ref());
        let watched = phase.into_iter().flat_map(|phase| phase.watched.iter());
        watched.filter_map(|entry| self.book.components.get(entry))
    }

    /// Whether every change is done.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// The latest order.
    pub fn last_order(&self) -> OrderNumber {
        self.last_order
    }
}

/// One step while it runs: what it may change, what it says, and whose agreement must be looked at again.
struct Turn<'a> {
    manager: &'a mut CloudManager,
    outputs: Vec<Output>,
    touched: BTreeSet<Entry>,
}

impl Turn<'_> {
    fn book(&mut self) -> &mut Book {
        &mut self.manager.book
    }

    fn tell(&mut self, news: News) {
        self.outputs.push(Output::ToOperator(news));
    }

    fn note(&mut self, note: Note) {
        self.outputs.push(Output::Note(note));
    }

    fn next_number(&mut self) -> OrderNumber {
        self.manager.last_order.0 += 1;
        self.manager.last_order
    }

    fn next_change(&mut self) -> ChangeId {
        self.manager.last_change.0 += 1;
        self.manager.last_change
    }
}
