//! What must hold in every reachable state, written against the machines' own books.
//!
//! [`of_agent`] asks what one agent's books can tell by themselves; a [`View`] is what others must compare with their own;
//! [`of_manager`] looks at the manager's book. The names are those of `docs/PROTOCOL.md`.

use crate::{
    BindingId, CloudManager, ComponentId, ComponentState, Name, Need, Values, VmAgent, VmId,
    agent::{Component, HoldingState, LoanState},
};
use std::{collections::BTreeMap, fmt};

/// Something that must never be the case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Violation {
    /// A1: a running component holds less than its import needs.
    TooFewHeld {
        /// Where.
        vm: VmId,
        /// The client.
        component: Name,
        /// Its import.
        import: Name,
    },
    /// A3: a binding still touches a VM that this agent was told to forget.
    TouchesForgottenVm {
        /// Where.
        vm: VmId,
        /// The component.
        component: Name,
        /// The VM that is no more.
        forgotten: VmId,
    },
    /// A4: a component that is not running keeps a recalled loan.
    RecallUnanswered {
        /// Where.
        vm: VmId,
        /// The client.
        component: Name,
        /// What was recalled.
        binding: BindingId,
    },
    /// A5: strong bindings, with those under removal, form a cycle.
    StrongCycle {
        /// The cycle in words.
        cycle: String,
    },
    /// A provider that is not started, and did not die, has a loan out.
    LentWhileDown {
        /// Where.
        vm: VmId,
        /// The provider.
        component: Name,
        /// What is out.
        binding: BindingId,
    },
}

impl Violation {
    /// The name of the property that is broken.
    pub fn property(&self) -> &'static str {
        match self {
            Self::TooFewHeld { .. } => "A1 a running component holds what it needs",
            Self::LentWhileDown { .. } => "A2 every loan in use is on a started provider",
            Self::TouchesForgottenVm { .. } => "A3 nothing touches a lost VM",
            Self::RecallUnanswered { .. } => "A4 a stopped component answers every recall at once",
            Self::StrongCycle { .. } => "A5 strong bindings form no cycle",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewHeld { vm, component, import } => {
                write!(formatter, "{vm}: {component} is running with too few providers for its import {import}")
            }
            Self::TouchesForgottenVm { vm, component, forgotten } => {
                write!(formatter, "{vm}: {component} still has a binding with {forgotten}, which is forgotten")
            }
            Self::RecallUnanswered { vm, component, binding } => {
                write!(formatter, "{vm}: {component} is not running and has not given {binding} back")
            }
            Self::StrongCycle { cycle } => formatter.write_str(cycle),
            Self::LentWhileDown { vm, component, binding } => {
                write!(formatter, "{vm}: {component} is not started and {binding} is not home")
            }
        }
    }
}

/// What other agents' books must agree with: the loans in use here, and the loans that providers here stand behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Which VM.
    pub vm: Option<VmId>,
    /// Each loan that a running component holds: its provider's VM, and the holder.
    pub held: Vec<(BindingId, VmId, ComponentId)>,
    /// Each loan that is out, or whose provider died with it out. Sorted.
    pub lent: Vec<BindingId>,
    /// What clients here know of the providers of those loans, where there is anything to know.
    pub known: Vec<(BindingId, VmId, Values)>,
    /// What a client of each loan that is out must know, where there is anything to know.
    pub handed: Vec<(BindingId, Values)>,
    /// The VMs that it was told to forget: nobody here stands behind what runs on there. Sorted.
    pub forgotten: Vec<VmId>,
}

/// What one agent's books show to the others.
pub fn view(agent: &VmAgent) -> View {
    let mut view = View { vm: Some(agent.id()), forgotten: agent.forgotten().collect(), ..View::default() };
    for (id, component) in agent.components() {
        let running = component.state().is_running();
        for (binding, holding) in component.holdings().iter().filter(|_| running) {
            let lends = !need_of(component, holding.import()).is_none_or(Need::is_value);
            if lends && holding.state() != HoldingState::Bound {
                view.held.push((binding, holding.provider_vm(), *id));
                if !holding.values().is_empty() {
                    view.known.push((binding, holding.provider_vm(), holding.values().clone()));
                }
            }
        }
        let stands = component.state() == ComponentState::Started || component.has_died();
        for (binding, loan) in component.loans().iter().filter(|(_, loan)| stands && loan.is_out()) {
            view.lent.push(binding);
            let values = component.values_for(loan);
            if !values.is_empty() {
                view.handed.push((binding, values));
            }
        }
    }
    view.lent.sort_unstable();
    view
}

/// A1, A3, A4, and no loan out from a provider that is down.
pub fn of_agent(agent: &VmAgent) -> Vec<Violation> {
    agent.components().values().flat_map(|component| of_component(agent, component)).collect()
}

/// The same, of one component of an agent.
pub fn of_component(agent: &VmAgent, component: &Component) -> Vec<Violation> {
    let vm = agent.id();
    let mut found = Vec::new();
    let name = || component.name().clone();
    let running = component.state().is_running();
    let mut in_use: BTreeMap<&Name, u32> = BTreeMap::new();
    for (binding, holding) in component.holdings().iter() {
        match holding.state() {
            HoldingState::Bound => {}
            HoldingState::Recalled { .. } if !running => {
                found.push(Violation::RecallUnanswered { vm, component: name(), binding });
            }
            HoldingState::Held | HoldingState::Recalled { .. } => *in_use.entry(holding.import()).or_default() += 1,
        }
        if agent.has_forgotten(holding.provider_vm()) {
            let forgotten = holding.provider_vm();
            found.push(Violation::TouchesForgottenVm { vm, component: name(), forgotten });
        }
    }
    for (import, state) in component.holdings().imports().iter().filter(|_| running) {
        let held = in_use.get(import).copied().unwrap_or(0);
        // What was lost with its provider's VM could not be held on to; the component is stopping.
        let excused = component.is_bereft() && component.must_stop();
        match state.need {
            Need::Strong(number) | Need::Value(number) if held < number && !excused => {
                found.push(Violation::TooFewHeld { vm, component: name(), import: import.clone() });
            }
            Need::Strong(_) | Need::Value(_) | Need::Weak(_) => {}
        }
    }
    let stands = component.state() == ComponentState::Started || component.has_died();
    for (binding, loan) in component.loans().iter() {
        let forgotten = loan.client_vm();
        if agent.has_forgotten(forgotten) {
            found.push(Violation::TouchesForgottenVm { vm, component: name(), forgotten });
        }
        // A recall for good may be on its way to a client that never had the loan.
        let out = matches!(loan.state(), LoanState::Lent | LoanState::Recalled { last: false });
        if out && !stands {
            found.push(Violation::LentWhileDown { vm, component: name(), binding });
        }
    }
    found
}

/// A5.
pub fn of_manager(manager: &CloudManager) -> Option<Violation> {
    manager.book().any_cycle().map(|refusal| Violation::StrongCycle { cycle: refusal.to_string() })
}

fn need_of(component: &Component, import: &Name) -> Option<Need> {
    component.holdings().imports().get(import).map(|state| state.need)
}
