//! Looks at a world after each step, and only at what the step touched.
//!
//! A step changes one machine. Whatever it does to the state of a component, and each loan that comes into use, is in its
//! report to the manager; a loan goes home with a notice; so the components and bindings to look at can be read off the
//! event. What goes home between two components of one VM, without a word to anyone, may escape that; so every so often,
//! and at the end, everything is looked at. With [`Pace::EveryStep`] the whole machine that stepped, and all its neighbours' books about it, are looked
//! at each time, and nothing escapes.

use crate::{
    action::Action,
    environment::{Faults, Line},
    property::{self, Breach, MINIMAL, ONCE},
    world::{Event, Input, Output, Part, Place, World},
};
use protocol::{
    BindingId, ComponentId, ComponentState, Fact, Instruction, Name, Need, Notice, PagedMap, VmAgent, VmId, Work,
    agent::{self, HoldingState},
    invariant, manager,
};
use std::collections::BTreeSet;

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
    may_stop: Option<BTreeSet<Name>>,
    steps: u64,
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
            may_stop: (!disrupted).then(|| property::may_stop(script)),
            steps: 0,
            bindings: PagedMap::default(),
            lent: PagedMap::default(),
        }
    }

    /// Looks at a world after a step.
    pub fn look(&mut self, world: &World, event: &Event) -> Option<Breach> {
        self.steps += 1;
        self.learn(event);
        let found = match &event.input {
            Some((Place::Agent(vm), input)) => self.look_at_agent(world, *vm, input, event),
            Some((Place::Manager, _)) => {
                // Strong bindings enter the book only with a request.
                let asked = event.action == Action::Ask && self.pace == Pace::EveryStep;
                let book = asked.then(|| property::of_part(world.part(Place::Manager), None)).flatten();
                // Where components stop by themselves, they may do so at any moment.
                let done = self.may_stop.is_some() && event.outputs.iter().any(is_done);
                book.or_else(|| done.then(|| property::while_idle(world)).flatten())
            }
            Some(_) | None => None,
        };
        match self.pace {
            Pace::Named { whole_every } if self.steps.is_multiple_of(whole_every) => {
                found.or_else(|| self.whole(world))
            }
            Pace::Named { .. } | Pace::EveryStep => found,
        }
    }

    /// Looks at everything in a world.
    pub fn whole(&self, world: &World) -> Option<Breach> {
        let alone = world.parts().find_map(|(_, part)| property::of_part(part, self.may_stop.as_ref()));
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

    /// Takes note of the bindings that are ordered.
    fn learn(&mut self, event: &Event) {
        for output in &event.outputs {
            let Output::Manager(manager::Output::ToAgent(provider_vm, order)) = output else { continue };
            let Instruction::AddBinding { provider, client, client_vm, .. } = &order.instruction else { continue };
            let binding = BindingId(order.number.0);
            let (provider_vm, provider, client_vm, client) = (*provider_vm, *provider, *client_vm, *client);
            self.bindings.insert(binding, Ends { provider_vm, provider, client_vm, client });
            self.lent.or_default(provider).push(binding);
        }
    }

    fn look_at_agent(&self, world: &World, vm: VmId, input: &Input, event: &Event) -> Option<Breach> {
        let agent = world.agent(vm)?;
        let told = self.look_at_tasks(world, vm, event);
        if self.pace == Pace::EveryStep {
            let part = property::of_part(world.part(Place::Agent(vm)), None);
            return told.or(part).or_else(|| self.all_of(world, agent)).or_else(|| self.gone(world, event));
        }
        told.or_else(|| self.look_at_input(world, agent, input)).or_else(|| self.look_at_outputs(world, agent, event))
    }

    /// What the host was asked to do.
    fn look_at_tasks(&self, world: &World, vm: VmId, event: &Event) -> Option<Breach> {
        let tasks = || {
            event.outputs.iter().filter_map(|output| match output {
                Output::Agent(agent::Output::ToHost(task)) => Some(task),
                Output::Agent(_) | Output::Manager(_) => None,
            })
        };
        tasks().next()?;
        if let Part::Host(host) = world.part(Place::Host(vm))
            && let Some(detail) = host.scandal.clone()
        {
            return Some(Breach { property: ONCE, detail });
        }
        let names = self.may_stop.as_ref()?;
        let needless = tasks().find(|task| task.work == Work::Stop && !names.contains(&task.name))?;
        Some(Breach { property: MINIMAL, detail: format!("{} is stopped", needless.name) })
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

    /// Every component of an agent, against its neighbours.
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
            return Some(Breach { property: violation.property(), detail: violation.to_string() });
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

    /// A2, of one binding: while its client runs and holds the loan, its provider stands behind it; or is lost, and the
    /// client's agent has not been told.
    fn binding(&self, world: &World, binding: BindingId) -> Option<Breach> {
        let ends = self.bindings.get(&binding)?;
        let client_agent = world.agent(ends.client_vm)?;
        let client = client_agent.components().get(&ends.client)?;
        let holding = client.holdings().get(binding)?;
        let need = client.holdings().imports().get(holding.import()).map(|import| import.need);
        let lends = !need.is_none_or(Need::is_value);
        if !lends || !client.state().is_running() || holding.state() == HoldingState::Bound {
            return None;
        }
        let stands = match world.agent(ends.provider_vm) {
            None => !client_agent.has_forgotten(ends.provider_vm),
            Some(agent) => {
                agent.components().get(&ends.provider).is_some_and(|provider| {
                    (provider.state() == ComponentState::Started || provider.has_died())
                        && provider.loans().get(binding).is_some_and(agent::Loan::is_out)
                }) || agent.has_forgotten(ends.client_vm)
            }
        };
        let detail = || {
            let (vm, name) = (ends.client_vm, client.name());
            format!("{vm}: {name} is running and holds {binding}, whose provider is not started")
        };
        (!stands).then(|| Breach { property: property::ALL[1].1, detail: detail() })
    }
}
