//! The agent of one VM: starts, binds, lends, recalls and stops.
//!
//! The one idea to hold in mind: *a binding is a loan*. A provider lends its service to a client, recalls it, and stops
//! only when every loan is home; a client uses a binding only while it holds the loan.
//!
//! Reading order: [`VmAgent::step`] here; `orders`, `notices` and `host` record what came in as facts; `rules` looks at
//! the facts of each component that was touched and does what they now allow. Bindings between two components of this
//! VM follow the same rules: their notices simply do not leave the step.

mod component;
mod holding;
mod host;
mod loan;
mod notices;
mod orders;
mod rebinding;
mod rules;
mod task;
mod told;

pub use component::{Component, ComponentState};
pub use holding::{Holding, HoldingState, Holdings, ImportState};
pub use host::STEADY_PAUSES;
pub use loan::{Loan, LoanState, Loans};
pub use task::TaskState;

use crate::{
    BindingId, ComponentId, Fact, HostOutcome, HostTask, Notice, Operation, Order, OrderNumber, Report, ShortMap,
    ShortSet, VmId, VmState, bounds::FACTS_PER_REPORT_MAX,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// All that can come in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Input {
    /// The manager orders something.
    FromManager(Order),
    /// A neighbour says something about a binding.
    FromPeer(VmId, Notice),
    /// A task has ended, or a component has died.
    FromHost(HostOutcome),
    /// An alarm that was set has rung.
    AlarmRang(Alarm),
}

/// All that can go out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Output {
    /// Tell the manager.
    ToManager(Report),
    /// Tell a neighbour.
    ToPeer(VmId, Notice),
    /// Ask the host.
    ToHost(HostTask),
    /// Wake me after so many milliseconds.
    SetAlarm(Alarm, u64),
    /// Something worth knowing happened.
    Note(Note),
}

/// A reason to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Alarm {
    /// Try the failed operation again.
    Retry {
        /// Of which component.
        component: ComponentId,
        /// The task that failed; a later one makes the alarm stale.
        serial: u64,
    },
    /// It has stayed up long enough to forget its deaths.
    Steady {
        /// Which component.
        component: ComponentId,
        /// The start task of that run.
        serial: u64,
    },
}

/// Something worth knowing that needs no answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Note {
    /// An order came again, or out of turn, and was left alone.
    OrderRepeated(OrderNumber),
    /// An order is about a component or binding that is not here; there is nothing to do.
    NothingToDo(OrderNumber),
    /// A notice is about a component that is not yet known; it waits.
    Parked(BindingId, ComponentId),
    /// A notice is about a binding that both ends are done with.
    NoticeTooLate(BindingId),
    /// A notice came from a VM that is forgotten, or not at the other end of the binding.
    NoticeFenced(VmId, BindingId),
    /// The outcome of a task that is no longer awaited.
    OutcomeTooLate(ComponentId),
    /// An alarm that has lost its reason.
    AlarmTooLate(Alarm),
    /// An operation failed and will be tried again.
    WillRetry(ComponentId, Operation),
}

/// The agent of one VM.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VmAgent {
    me: VmId,
    /// The latest order seen. What has a higher number is not yet known; what has a lower one and is not here is gone.
    last_order: OrderNumber,
    components: BTreeMap<ComponentId, Component>,
    /// What neighbours said about components that are not yet known.
    parked: BTreeMap<ComponentId, Holdings>,
    /// The component here that lends each binding.
    lenders: ShortMap<BindingId, ComponentId>,
    /// The component here, or still to come, that holds each binding.
    holders: ShortMap<BindingId, ComponentId>,
    /// The bindings shared with each neighbour, for the day it is lost.
    shared: ShortMap<VmId, ShortSet<BindingId>>,
    /// VMs that are lost or destroyed: what still arrives from them is not heard.
    forgotten: ShortSet<VmId>,
    /// How many components are not started.
    down: usize,
    /// What the manager was last told of this VM as a whole.
    reported: VmState,
}

impl VmAgent {
    /// The agent of a new, empty VM.
    pub fn new(me: VmId) -> Self {
        Self {
            me,
            last_order: OrderNumber::NONE,
            components: BTreeMap::new(),
            parked: BTreeMap::new(),
            lenders: ShortMap::default(),
            holders: ShortMap::default(),
            shared: ShortMap::default(),
            forgotten: ShortSet::default(),
            down: 0,
            reported: VmState::Empty,
        }
    }

    /// Takes one input to its end: records what it says, then does all that the facts now allow.
    pub fn step(&mut self, input: Input) -> Vec<Output> {
        let mut turn = Turn::new(self);
        match input {
            Input::FromManager(order) => turn.obey(order),
            Input::FromPeer(from, notice) => turn.hear(from, notice),
            Input::FromHost(outcome) => turn.record(outcome),
            Input::AlarmRang(alarm) => turn.wake(alarm),
        }
        turn.settle();
        turn.report();
        turn.outputs
    }

    /// Which VM this is.
    pub fn id(&self) -> VmId {
        self.me
    }

    /// The latest order seen.
    pub fn last_order(&self) -> OrderNumber {
        self.last_order
    }

    /// The components here.
    pub fn components(&self) -> &BTreeMap<ComponentId, Component> {
        &self.components
    }

    /// What is parked for components that are not yet known.
    pub fn parked(&self) -> &BTreeMap<ComponentId, Holdings> {
        &self.parked
    }

    /// Whether this agent has been told that a VM is lost or destroyed.
    pub fn has_forgotten(&self, vm: VmId) -> bool {
        self.forgotten.contains(&vm)
    }

    /// The VMs that this agent was told to forget, in order.
    pub fn forgotten(&self) -> impl Iterator<Item = VmId> {
        self.forgotten.iter().copied()
    }

    /// The state of the VM as a whole.
    pub fn state(&self) -> VmState {
        match (self.components.is_empty(), self.down) {
            (true, _) => VmState::Empty,
            (false, 0) => VmState::Started,
            (false, _) => VmState::Stopped,
        }
    }
}

/// One step while it runs: what it may change, what it has touched, what it says.
struct Turn<'a> {
    agent: &'a mut VmAgent,
    outputs: Vec<Output>,
    /// Components whose facts have changed and whose rules are to be looked at.
    touched: ShortSet<ComponentId>,
    /// Components whose condition the manager may have to hear of.
    reportable: ShortSet<ComponentId>,
    /// Notices between two components of this VM.
    local: VecDeque<Notice>,
    facts: Vec<Fact>,
    /// The last order before this step.
    answered: OrderNumber,
    /// Whether the input was an order, which is always answered.
    ordered: bool,
}

impl<'a> Turn<'a> {
    fn new(agent: &'a mut VmAgent) -> Self {
        Self {
            answered: agent.last_order,
            agent,
            outputs: Vec::new(),
            touched: ShortSet::default(),
            reportable: ShortSet::default(),
            local: VecDeque::new(),
            facts: Vec::new(),
            ordered: false,
        }
    }

    /// Does whatever the facts now allow, until they allow nothing more.
    fn settle(&mut self) {
        loop {
            if let Some(notice) = self.local.pop_front() {
                self.hear(self.agent.me, notice);
            } else if let Some(component) = self.touched.pop_first() {
                self.advance(component);
                self.reportable.insert(component);
            } else {
                return;
            }
        }
    }

    /// Answers an order, and tells the manager what has become true.
    fn report(&mut self) {
        for id in std::mem::take(&mut self.reportable) {
            let Some(component) = self.agent.components.get_mut(&id) else { continue };
            let news = component.holdings.news().into_iter();
            self.facts.extend(news.map(|(binding, held)| Fact::BindingHeld { binding, held }));
            let condition = component.condition();
            if component.reported.condition.replace(condition) != Some(condition) {
                self.facts.push(Fact::ComponentIs { component: id, condition });
            }
            let pending = component.is_pending();
            if std::mem::replace(&mut component.reported.pending, pending) != pending {
                self.facts.push(Fact::Pending { component: id, pending });
            }
        }
        let state = self.agent.state();
        if std::mem::replace(&mut self.agent.reported, state) != state {
            self.facts.push(Fact::VmIs { state });
        }
        if self.ordered || !self.facts.is_empty() {
            let mut facts = std::mem::take(&mut self.facts);
            // Only the last of several reports answers the order: it is answered once all that came of it is told.
            while facts.len() > FACTS_PER_REPORT_MAX {
                let rest = facts.split_off(FACTS_PER_REPORT_MAX);
                self.outputs.push(Output::ToManager(Report { through: self.answered, facts }));
                facts = rest;
            }
            self.outputs.push(Output::ToManager(Report { through: self.agent.last_order, facts }));
        }
    }

    fn tell(&mut self, vm: VmId, notice: Notice) {
        if vm == self.agent.me {
            self.local.push_back(notice);
        } else {
            self.outputs.push(Output::ToPeer(vm, notice));
        }
    }

    fn note(&mut self, note: Note) {
        self.outputs.push(Output::Note(note));
    }

    /// A component that a rule has just looked up.
    fn component(&mut self, id: ComponentId) -> &mut Component {
        self.agent.components.get_mut(&id).expect("the rules look only at components that are here")
    }

    /// Moves a component on, and keeps count of those that are not started.
    fn put(&mut self, id: ComponentId, state: ComponentState) {
        let component = self.component(id);
        match state {
            ComponentState::Starting => component.holdings.tell(true),
            ComponentState::Started | ComponentState::Stopping | ComponentState::Failed(Operation::Stop) => {}
            ComponentState::Stopped | ComponentState::Failed(_) => component.holdings.tell(false),
        }
        let before = std::mem::replace(&mut component.state, state);
        self.agent.down += usize::from(before == ComponentState::Started);
        self.agent.down -= usize::from(state == ComponentState::Started);
        self.touched.insert(id);
    }

    fn share(&mut self, vm: VmId, binding: BindingId) {
        if vm != self.agent.me {
            self.agent.shared.or_default(&vm).insert(binding);
        }
    }

    fn unshare(&mut self, vm: VmId, binding: BindingId) {
        if let Some(bindings) = self.agent.shared.get_mut(&vm) {
            bindings.remove(&binding);
            if bindings.is_empty() {
                self.agent.shared.remove(&vm);
            }
        }
    }
}
