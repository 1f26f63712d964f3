//! The invariants that must hold in every reachable state, checked against the machines' own state.
//!
//! Each invariant is written once. [`of_agent`] checks what one agent can tell alone, [`of_manager`] what the manager can
//! tell alone. What concerns both ends of a binding is one comparison, [`of_binding`], of the client's side ([`Use`]) with
//! the provider's side ([`Stand`]); a [`View`] collects these for a whole agent, so that a caller can remember the result for
//! a pair of agents. The names are those of `docs/PROTOCOL.md`. Properties of whole systems are left to `model-check`.

use crate::{
    BindingId, CloudManager, ComponentId, ComponentState, Name, Need, Values, VmAgent, VmId,
    agent::{Component, Holding, HoldingState, Loan, LoanState},
};
use std::{collections::BTreeMap, fmt};

/// A running component holds what its imports need.
pub const A1: &str = "A1 a running component holds what it needs";
/// A loan in use is backed by its provider.
pub const A2: &str = "A2 every loan in use is on a started provider";
/// A forgotten VM is not referred to.
pub const A3: &str = "A3 nothing touches a lost VM";
/// A recall never waits at a component that is not running.
pub const A4: &str = "A4 a stopped component answers every recall at once";
/// The strong bindings are acyclic.
pub const A5: &str = "A5 strong bindings form no cycle";
/// A client reaches its provider where that runs now.
pub const A6: &str = "A6 a client knows its provider's present values";
/// Rule P1: what a start adds to the announced values is not shown to value clients.
pub const P1: &str = "P1 a value client sees announced values only";
/// The manager's list of failed components agrees with the conditions that it was told.
pub const FAILED: &str = "the manager lists as failed exactly what was reported as failed";

/// A broken invariant.
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
    /// A2: a provider that is not started, and did not die, has a loan out.
    LentWhileDown {
        /// Where.
        vm: VmId,
        /// The provider.
        component: Name,
        /// What is out.
        binding: BindingId,
    },
    /// A2: a running client holds a loan that its provider does not back.
    HeldWithoutProvider {
        /// The client.
        component: ComponentId,
        /// What it holds.
        binding: BindingId,
        /// Where the provider lives.
        provider_vm: VmId,
    },
    /// A6: a running client holds a loan and knows other values than its provider has now.
    OutdatedValues {
        /// The client.
        component: ComponentId,
        /// What it holds.
        binding: BindingId,
        /// The values that the client knows.
        known: Values,
    },
    /// P1: a value client was told something that `prepare` did not announce.
    UnannouncedValues {
        /// The client.
        component: ComponentId,
        /// What it holds.
        binding: BindingId,
        /// The values that the client knows.
        known: Values,
    },
    /// The manager's list of failed components differs from the reported conditions.
    WronglyFailed {
        /// The component.
        component: Name,
        /// Whether the manager lists it as failed.
        listed: bool,
    },
}

impl Violation {
    /// The name of the property that is broken.
    pub fn property(&self) -> &'static str {
        match self {
            Self::TooFewHeld { .. } => A1,
            Self::LentWhileDown { .. } | Self::HeldWithoutProvider { .. } => A2,
            Self::TouchesForgottenVm { .. } => A3,
            Self::RecallUnanswered { .. } => A4,
            Self::StrongCycle { .. } => A5,
            Self::OutdatedValues { .. } => A6,
            Self::UnannouncedValues { .. } => P1,
            Self::WronglyFailed { .. } => FAILED,
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
                write!(formatter, "{vm}: {component} is not running and has not returned {binding}")
            }
            Self::StrongCycle { cycle } => formatter.write_str(cycle),
            Self::LentWhileDown { vm, component, binding } => {
                write!(formatter, "{vm}: {component} is not started and {binding} is not home")
            }
            Self::HeldWithoutProvider { component, binding, provider_vm } => write!(
                formatter,
                "{component} is running and holds {binding} of {provider_vm}, whose provider is not started"
            ),
            Self::OutdatedValues { component, binding, known } => {
                write!(formatter, "{component} uses {binding} with {known:?}, which is outdated")
            }
            Self::UnannouncedValues { component, binding, known } => {
                write!(formatter, "{component} was told {known:?} for {binding}, which was not announced")
            }
            Self::WronglyFailed { component, listed: true } => {
                write!(formatter, "{component} is listed as failed and was not reported as failed")
            }
            Self::WronglyFailed { component, listed: false } => {
                write!(formatter, "{component} was reported as failed and is not listed")
            }
        }
    }
}

/// A binding in use, seen by its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// Which binding.
    pub binding: BindingId,
    /// Where its provider lives.
    pub provider_vm: VmId,
    /// The client.
    pub component: ComponentId,
    /// Whether the client only knows values. Otherwise it is running and holds the loan.
    pub value: bool,
    /// What the client knows of its provider.
    pub known: Values,
}

/// A binding, seen by its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stand {
    /// Which binding.
    pub binding: BindingId,
    /// Whether only values were handed out.
    pub value: bool,
    /// Whether the loan is out and its provider backs it: it is started, or died with the loan out.
    pub backed: bool,
    /// What the client must know: all values of the export, or the announced ones where it only knows values.
    pub values: Values,
}

/// What other agents must agree with: the bindings in use here, and those that components here provide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Which VM.
    pub vm: Option<VmId>,
    /// The bindings in use here.
    pub uses: Vec<Use>,
    /// The bindings provided here, sorted.
    pub stands: Vec<Stand>,
    /// The VMs that this agent was told to forget: what still runs there is not backed by anything here. Sorted.
    pub forgotten: Vec<VmId>,
}

/// What one agent shows to the others.
pub fn view(agent: &VmAgent) -> View {
    let mut view = View { vm: Some(agent.id()), forgotten: agent.forgotten().collect(), ..View::default() };
    for (id, component) in agent.components() {
        view.uses.extend(component.holdings().iter().filter_map(|(it, holding)| use_of(*id, component, it, holding)));
        view.stands.extend(component.loans().iter().map(|(binding, loan)| stand_of(component, binding, loan)));
    }
    view.stands.sort_unstable_by_key(|stand| stand.binding);
    view
}

/// How a client uses a binding; nothing if it does not.
pub fn use_of(id: ComponentId, component: &Component, binding: BindingId, holding: &Holding) -> Option<Use> {
    let need = component.holdings().imports().get(holding.import()).map(|state| state.need)?;
    let in_use = need.is_value() || component.state().is_running() && holding.state() != HoldingState::Bound;
    in_use.then(|| Use {
        binding,
        provider_vm: holding.provider_vm(),
        component: id,
        value: need.is_value(),
        known: holding.values().clone(),
    })
}

/// How a provider stands behind a binding.
pub fn stand_of(component: &Component, binding: BindingId, loan: &Loan) -> Stand {
    let started = component.state() == ComponentState::Started || component.has_died();
    let value = loan.state() == LoanState::Reference;
    // Computed here and not by the rules of the provider, which are what is checked.
    let source = if value { component.announced() } else { Some(component.values()) };
    let export = component.kind().exports.get(loan.export());
    let named = export.into_iter().flat_map(|export| &export.values);
    let pairs = named.filter_map(|name| source?.get_key_value(name));
    Stand {
        binding,
        value,
        backed: started && loan.is_out(),
        values: pairs.map(|(name, value)| (name.clone(), value.clone())).collect(),
    }
}

/// A2, A6 and P1 of one binding. `stand` is absent if the provider's agent does not know the binding.
pub fn of_binding(used: &Use, stand: Option<&Stand>) -> Option<Violation> {
    let (component, binding, known) = (used.component, used.binding, || used.known.clone());
    match stand {
        // The provider of a value may leave at any time.
        None if used.value => None,
        Some(stand) if used.value => (stand.value && stand.values != used.known)
            .then(|| Violation::UnannouncedValues { component, binding, known: known() }),
        Some(stand) if stand.backed => {
            (stand.values != used.known).then(|| Violation::OutdatedValues { component, binding, known: known() })
        }
        Some(_) | None => Some(Violation::HeldWithoutProvider { component, binding, provider_vm: used.provider_vm }),
    }
}

/// A2, A6 and P1 between the clients of one agent and the providers of another.
pub fn between(client: &View, provider: &View) -> Option<Violation> {
    // A VM that was declared lost and runs on is no longer waited for.
    if client.vm.is_some_and(|vm| provider.forgotten.binary_search(&vm).is_ok()) {
        return None;
    }
    let here = client.uses.iter().filter(|used| Some(used.provider_vm) == provider.vm);
    here.into_iter().find_map(|used| {
        let place = provider.stands.binary_search_by_key(&used.binding, |stand| stand.binding);
        of_binding(used, place.ok().map(|place| &provider.stands[place]))
    })
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
        let excused = state.bereft && component.must_stop();
        // Written out, and not asked of `Need::is_met_by`, by which the rules decide: A1 would follow a mistake in it.
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

/// A5, and the list of failed components.
pub fn of_manager(manager: &CloudManager) -> Option<Violation> {
    let cycle = manager.book().any_cycle().map(|refusal| Violation::StrongCycle { cycle: refusal.to_string() });
    cycle.or_else(|| {
        let mut components = manager.book().components();
        components.find_map(|entry| {
            let listed = manager.book().is_failed(entry);
            let reported = entry.condition.is_some_and(|it| matches!(it.state, ComponentState::Failed(_)));
            (listed != reported).then(|| Violation::WronglyFailed { component: entry.name.clone(), listed })
        })
    })
}
