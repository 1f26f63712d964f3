//! Checks the properties of a run step by step, for simulations, replays and audits.
//!
//! It decides only where to look; what must hold is written in [`property`]. A step changes one machine. Its report to the
//! manager names each component whose state has changed and each loan that has come into use, and a loan goes home with a
//! notice. So the components and bindings to look at can be read from the event. A loan that goes home within one VM may
//! escape that; so everything is checked every so often, and at the end. With [`Pace::EveryStep`] the whole machine that
//! stepped, the step itself, and all bindings with its neighbours are checked each time, and nothing escapes.

use crate::{
    environment::{Faults, Line},
    property::{self, Breach, Disruption},
    world::{Event, Input, Output, Part, Place, World},
};
use protocol::{
    BindingId, CloudManager, ComponentId, ComponentState, Fact, Instruction, Name, Notice, Order, PagedMap, VmAgent,
    VmId, agent, invariant, manager,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// After each step, at the whole machine that stepped and at its neighbours.
    EveryStep,
    /// After each step, at the components and bindings that it names; after so many steps, and at the end, at everything.
    Named {
        /// After how many steps everything is looked at.
        whole_every: u64,
    },
}

/// So many agents are looked at by one thread.
const AGENTS_ALONE: usize = 1_000;

/// Both ends of a binding.
#[derive(Clone, Copy, Debug)]
struct Ends {
    provider_vm: VmId,
    provider: ComponentId,
    client_vm: VmId,
    client: ComponentId,
}

/// Whether the manager says that a change is done.
fn is_done(output: &Output) -> bool {
    matches!(output, Output::Manager(manager::Output::ToOperator(manager::News::ChangeDone(_))))
}

/// Looks at a world after each step.
#[derive(Debug)]
pub struct Inspector {
    pace: Pace,
    /// Who depends on whom; unknown in an audit without the manager's journal.
    disruption: Option<Disruption>,
    /// Whether only the script may stop components, and no fault.
    calm: bool,
    steps: u64,
    /// After how many steps a machine is told what it must ignore.
    probe_every: u64,
    /// The machines as they were before the step; kept only with [`Pace::EveryStep`].
    before: BTreeMap<Place, Arc<Part>>,
    /// Every binding that was ever ordered.
    bindings: PagedMap<BindingId, Ends>,
    /// The bindings that each component was ever ordered to lend.
    lent: PagedMap<ComponentId, Vec<BindingId>>,
}

impl Inspector {
    /// An inspector of the world of a script in which these faults may happen.
    pub fn new(script: &[Line], faults: Faults, pace: Pace) -> Self {
        let disrupted = faults.stop_components() || property::loses(script);
        Self {
            pace,
            disruption: Some(Disruption::of(script)),
            calm: !disrupted,
            steps: 0,
            probe_every: 1,
            before: BTreeMap::from([(Place::Manager, Arc::new(Part::Manager(CloudManager::new(None))))]),
            bindings: PagedMap::default(),
            lent: PagedMap::default(),
        }
    }

    /// The same, but machines are probed only now and then: for runs with very many steps.
    pub fn probing_every(self, steps: u64) -> Self {
        Self { probe_every: steps, ..self }
    }

    /// An inspector that does not know what the operator asked for: it says nothing about who may be stopped, and when a
    /// change is done.
    pub fn without_script() -> Self {
        let faults = Faults { failures: 1, ..Faults::default() };
        Self { disruption: None, ..Self::new(&[], faults, Pace::EveryStep) }
    }

    /// Looks at a world after a step.
    pub fn look(&mut self, world: &World, event: &Event) -> Option<Breach> {
        self.steps += 1;
        self.learn(event);
        let found = match &event.input {
            Some((Place::Agent(vm), input)) => self.look_at_agent(world, *vm, input, event),
            Some((Place::Manager, input)) => self.look_at_manager(world, input, event),
            Some(_) | None => None,
        };
        self.remember(world, event.input.as_ref().map(|(place, _)| *place));
        match self.pace {
            Pace::Named { whole_every } if self.steps.is_multiple_of(whole_every) => {
                found.or_else(|| self.whole(world))
            }
            Pace::Named { .. } | Pace::EveryStep => found,
        }
    }

    /// Takes note of how a machine is after a step that is not looked at.
    pub fn remember(&mut self, world: &World, place: Option<Place>) {
        if let (Some(place), Pace::EveryStep) = (place, self.pace)
            && let Some(part) = world.shared(place)
        {
            self.before.insert(place, part.clone());
        }
    }

    /// Looks at everything in a world.
    pub fn whole(&self, world: &World) -> Option<Breach> {
        let alone = world.parts().find_map(|(_, part)| property::of_part(part, self.may_stop()));
        alone.or_else(|| {
            let agents: Vec<&VmAgent> = world.agents().collect();
            let look = |agents: &[&VmAgent]| agents.iter().find_map(|agent| self.all_of(world, agent));
            let (mine, others) = agents.split_at(agents.len().min(AGENTS_ALONE.max(agents.len() / 2)));
            std::thread::scope(|scope| {
                let others = (!others.is_empty()).then(|| scope.spawn(|| look(others)));
                let found = look(mine);
                found.or_else(|| others?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            })
        })
    }

    /// Takes note of the bindings that are ordered, when they are, or when the order arrives: an audit may lack the manager's
    /// journal.
    fn learn(&mut self, event: &Event) {
        for output in &event.outputs {
            if let Output::Manager(manager::Output::ToAgent(vm, order)) = output {
                self.learn_binding(*vm, order);
            }
        }
        if let Some((Place::Agent(vm), Input::Agent(agent::Input::FromManager(order)))) = &event.input {
            self.learn_binding(*vm, order);
        }
    }

    fn learn_binding(&mut self, provider_vm: VmId, order: &Order) {
        let Instruction::AddBinding { provider, client, client_vm, .. } = order.instruction else { return };
        let binding = BindingId(order.number.0);
        if self.bindings.get(&binding).is_none() {
            self.bindings.insert(binding, Ends { provider_vm, provider, client_vm, client });
            self.lent.or_default(provider).push(binding);
        }
    }

    fn look_at_manager(&self, world: &World, input: &Input, event: &Event) -> Option<Breach> {
        let done = event.outputs.iter().any(is_done);
        let idle = || self.disruption.as_ref().filter(|_| done).and_then(|it| property::while_idle(world, it));
        if self.pace != Pace::EveryStep {
            return idle();
        }
        property::of_part(world.part(Place::Manager), None)
            .or_else(|| self.look_at_step(world, Place::Manager, input, event))
            .or_else(idle)
    }

    fn look_at_agent(&self, world: &World, vm: VmId, input: &Input, event: &Event) -> Option<Breach> {
        let agent = world.agent(vm)?;
        let told = self.look_at_tasks(world, vm, event);
        if self.pace == Pace::EveryStep {
            return told
                .or_else(|| property::of_part(world.part(Place::Agent(vm)), None))
                .or_else(|| self.look_at_step(world, Place::Agent(vm), input, event))
                .or_else(|| self.all_of(world, agent))
                .or_else(|| self.gone(world, event));
        }
        told.or_else(|| self.look_at_input(world, agent, input)).or_else(|| self.look_at_outputs(world, agent, event))
    }

    /// The step itself.
    fn look_at_step(&self, world: &World, place: Place, input: &Input, event: &Event) -> Option<Breach> {
        let fresh = if let Place::Agent(vm) = place { Some(Part::Agent(VmAgent::new(vm))) } else { None };
        let before = self.before.get(&place).map(|part| &**part).or(fresh.as_ref())?;
        let probes = self.steps.is_multiple_of(self.probe_every);
        let probed = probes.then(|| property::probe(world.part(place))).flatten();
        let alone = probed.or_else(|| property::of_step(before, input, &event.outputs, world.part(place)));
        alone.or_else(|| {
            let Some(Part::Manager(manager)) = self.before.get(&Place::Manager).map(|part| &**part) else {
                return None;
            };
            let looks = property::calls_for_a_look(&event.outputs);
            let disruption = self.disruption.as_ref().filter(|_| looks)?;
            property::of_event(manager, world, &event.outputs, disruption)
        })
    }

    /// What the host was asked to do.
    fn look_at_tasks(&self, world: &World, vm: VmId, event: &Event) -> Option<Breach> {
        let asks = |output: &Output| matches!(output, Output::Agent(agent::Output::ToHost(_)));
        event.outputs.iter().any(asks).then_some(())?;
        property::of_part(world.part(Place::Host(vm)), self.may_stop())
    }

    /// The components that may be stopped, where no fault may stop others.
    fn may_stop(&self) -> Option<&BTreeSet<Name>> {
        self.disruption.as_ref().filter(|_| self.calm).map(Disruption::stopped)
    }

    /// The component or binding that made the agent step.
    fn look_at_input(&self, world: &World, agent: &VmAgent, input: &Input) -> Option<Breach> {
        let Input::Agent(input) = input else { return None };
        match input {
            // A provider puts a loan back on its shelf.
            agent::Input::FromPeer(_, Notice::UnbindConfirmed { binding, .. }) => self.binding(world, *binding),
            // If a client takes a loan into use, its report says so; the others change nothing yet.
            agent::Input::FromPeer(_, Notice::Bind { .. } | Notice::Started { .. } | Notice::UnbindRequired { .. }) => {
                None
            }
            agent::Input::FromManager(order) => match &order.instruction {
                Instruction::RemoveBinding { binding } => self.binding(world, *binding),
                Instruction::ForgetVm { .. } => self.all_of(world, agent),
                // Whatever these change is in the report.
                Instruction::AddComponent { .. }
                | Instruction::AddBinding { .. }
                | Instruction::RemoveComponent { .. }
                | Instruction::RestartComponent { .. }
                | Instruction::RetryComponent { .. }
                | Instruction::SkipComponent { .. }
                | Instruction::SetNeed { .. }
                | Instruction::RollCall => None,
            },
            agent::Input::FromHost(_) | agent::Input::AlarmRang(_) => None,
        }
    }

    /// The components that the agent then spoke of.
    fn look_at_outputs(&self, world: &World, agent: &VmAgent, event: &Event) -> Option<Breach> {
        event.outputs.iter().find_map(|output| match output {
            Output::Agent(agent::Output::ToManager(report)) => report.facts.iter().find_map(|fact| match fact {
                Fact::ComponentIs { component, .. } => self.component(world, agent, *component),
                Fact::ComponentGone { component } => self.lent_by(world, *component),
                Fact::BindingHeld { binding, .. } | Fact::BindingGone { binding } => self.binding(world, *binding),
                Fact::OperationFailed { .. }
                | Fact::VmIs { .. }
                | Fact::Pending { .. }
                | Fact::ValueWithdrawn { .. } => None,
            }),
            Output::Agent(_) | Output::Manager(_) => None,
        })
    }

    /// What components that have just left had lent.
    fn gone(&self, world: &World, event: &Event) -> Option<Breach> {
        let reports = event.outputs.iter().filter_map(|output| match output {
            Output::Agent(agent::Output::ToManager(report)) => Some(&report.facts),
            Output::Agent(_) | Output::Manager(_) => None,
        });
        reports.flatten().find_map(|fact| match fact {
            Fact::ComponentGone { component } => self.lent_by(world, *component),
            _ => None,
        })
    }

    /// Every binding of an agent's components.
    fn all_of(&self, world: &World, agent: &VmAgent) -> Option<Breach> {
        agent.components().iter().find_map(|(id, component)| {
            let held = component.holdings().iter().find_map(|(binding, _)| self.binding(world, binding));
            held.or_else(|| self.lent_by(world, *id))
        })
    }

    /// One component in another state: by itself and, where that state matters to them, against its neighbours.
    fn component(&self, world: &World, agent: &VmAgent, id: ComponentId) -> Option<Breach> {
        let component = agent.components().get(&id)?;
        if let Some(violation) = invariant::of_component(agent, component).first() {
            return Some(Breach::from(violation));
        }
        match component.state() {
            ComponentState::Starting => component.holdings().iter().find_map(|(it, _)| self.binding(world, it)),
            ComponentState::Started => None,
            ComponentState::Stopped | ComponentState::Stopping | ComponentState::Failed(_) => self.lent_by(world, id),
        }
    }

    fn lent_by(&self, world: &World, provider: ComponentId) -> Option<Breach> {
        self.lent.get(&provider)?.iter().find_map(|binding| self.binding(world, *binding))
    }

    /// A2, A6 and P1 of one binding. What is on a VM that is gone is left to A3; and a provider that was told to forget the
    /// client's VM does not wait for it any more.
    fn binding(&self, world: &World, binding: BindingId) -> Option<Breach> {
        let ends = self.bindings.get(&binding)?;
        let client = world.agent(ends.client_vm)?.components().get(&ends.client)?;
        let used = invariant::use_of(ends.client, client, binding, client.holdings().get(binding)?)?;
        let provider_agent = world.agent(ends.provider_vm).filter(|agent| !agent.has_forgotten(ends.client_vm))?;
        let provider = provider_agent.components().get(&ends.provider);
        let loan = provider.and_then(|provider| Some((provider, provider.loans().get(binding)?)));
        let stand = loan.map(|(provider, loan)| invariant::stand_of(provider, binding, loan));
        invariant::of_binding(&used, stand.as_ref()).as_ref().map(Breach::from)
    }
}
