//! What only the whole world shows: at the end, and at the moment when a change is called done.

use super::{
    Breach, DONE, Disruption, FOLLOWED, KNOWN, NEED, OWN, PREDICTED, REBOUND, RESTS, VMS, machine::needlessly_stopped,
};
use crate::world::{Output, Part, Place, World};
use protocol::{
    BindingId, CloudManager, ComponentId, ComponentState, HeldBinding, Name, Need, Operation, Values, Work,
    agent::{self, Component, HoldingState, TaskState},
    manager::{self, ChangeState, ComponentEntry, Health, News, Waiting},
};
use std::collections::BTreeSet;

/// Everything that must hold of a world in which nothing can happen any more.
pub fn at_end(world: &World) -> Option<Breach> {
    let rests = |detail: String| Some(Breach { property: RESTS, detail });
    let asked = world.operator().asked;
    if asked < world.operator().script.len() {
        return rests(format!("request {} can never be made", asked + 1));
    }
    for agent in world.agents() {
        if let Some(component) = agent.parked().keys().next() {
            return rests(format!("{} still has notices parked for {component}", agent.id()));
        }
    }
    let excused = Excused::of(world);
    let changes: Vec<ChangeState> = world.manager().changes().collect();
    if let Some(change) = changes.iter().find(|change| !excused.may_wait(change, &changes)) {
        return rests(format!("it never ends: {change}"));
    }
    as_predicted(world, &excused.components)
        .or_else(|| known(world))
        .or_else(|| strays(world))
        .or_else(|| followed(world))
        .or_else(|| rebound(world).map(|detail| Breach { property: REBOUND, detail }))
}

/// The started components that run on a host and were told something, with what.
fn told(world: &World) -> impl Iterator<Item = (&Component, &[HeldBinding])> {
    world.agents().flat_map(|agent| {
        let host = if let Part::Host(host) = world.part(Place::Host(agent.id())) { Some(host) } else { None };
        let told = host.into_iter().flat_map(|host| host.told.iter());
        let found = told.filter_map(|(id, told)| Some((agent.components().get(id)?, &**told)));
        found.filter(|(component, _)| component.state() == ComponentState::Started)
    })
}

/// [`FOLLOWED`]: what a host has told a run, compared with what its agent knows and holds now. Of each import and for each
/// text of values, there may be fewer bindings than the run was told of, or more: but not both in one import. A component
/// whose stop has failed waits for a person, and is not asked.
fn followed(world: &World) -> Option<Breach> {
    told(world).find_map(|(component, told)| {
        if component.kind().rebinds {
            return None;
        }
        let known = || component.holdings().iter().map(|(_, holding)| holding);
        let times = |import: &Name, values: &Values| {
            let told = told.iter().filter(|it| it.import == *import && it.values == *values).count();
            let alike = || known().filter(|it| *it.import() == *import && *it.values() == *values);
            (told, alike().count(), alike().filter(|it| it.state() == HoldingState::Held).count())
        };
        let is_outdated = |it: &&HeldBinding| {
            let (told, known, _) = times(&it.import, &it.values);
            known < told
        };
        let outdated: BTreeSet<&Name> = told.iter().filter(is_outdated).map(|it| &it.import).collect();
        let missed = known().filter(|it| !it.values().is_empty() && outdated.contains(it.import())).find(|it| {
            let (told, _, held) = times(it.import(), it.values());
            told < held
        })?;
        let detail = format!("{} runs on without {:?} for {}", component.name(), missed.values(), missed.import());
        Some(Breach { property: FOLLOWED, detail })
    })
}

/// [`REBOUND`]: what a host has last told a run, compared with what its agent lets it use now. A component that must stop and
/// waits for its own clients is told only what it can give back.
fn rebound(world: &World) -> Option<String> {
    let asked = |(component, _): &(&Component, _)| component.kind().rebinds && !component.must_stop();
    told(world).filter(asked).find_map(|(component, told)| {
        let held = component.holdings().iter().filter(|(_, holding)| holding.state() == HoldingState::Held);
        let held: BTreeSet<(BindingId, &Values)> = held.map(|(binding, holding)| (binding, holding.values())).collect();
        let told: BTreeSet<(BindingId, &Values)> = told.iter().map(|it| (it.binding, &it.values)).collect();
        let numbers = |set: &BTreeSet<(BindingId, &Values)>| -> Vec<String> {
            set.iter().map(|(binding, _)| binding.to_string()).collect()
        };
        (held != told).then(|| {
            let (told, held) = (numbers(&told).join(", "), numbers(&held).join(", "));
            format!("{} was told [{told}] and holds [{held}]", component.name())
        })
    })
}

/// [`VMS`]: each VM that is up is in the book.
fn strays(world: &World) -> Option<Breach> {
    let book = world.manager().book();
    let stray = world.agents().find(|agent| book.vm_by_id(agent.id()).is_none())?;
    Some(Breach { property: VMS, detail: format!("{} is up and not in the book", stray.id()) })
}

/// What failed for good waits for a person, and so does what cannot go on without it.
#[derive(Default)]
struct Excused {
    components: BTreeSet<Name>,
    vms: BTreeSet<Name>,
    bindings: BTreeSet<String>,
}

impl Excused {
    /// The components that failed; their clients, and theirs if they need them; and whatever waits for a loan that one of
    /// these does not return. A client that only knows values is excused only if they were not announced, or if they are to
    /// be withdrawn and the provider cannot leave.
    fn of(world: &World) -> Self {
        let book = world.manager().book();
        let component = |entry: &ComponentEntry| {
            let agent = world.agent(book.vm_of(entry).id?)?;
            agent.components().get(&entry.id?)
        };
        let failed =
            |it: &&ComponentEntry| component(it).is_some_and(|it| matches!(it.state(), ComponentState::Failed(_)));
        let (mut found, mut seen) = (Self::default(), BTreeSet::new());
        let mut open: Vec<&ComponentEntry> = book.components().filter(failed).collect();
        while let Some(entry) = open.pop() {
            if !seen.insert(entry.id) {
                continue;
            }
            found.components.insert(entry.name.clone());
            found.vms.insert(book.vm_of(entry).name.clone());
            let stays = component(entry).is_some_and(|it| it.announced().is_some()) && !entry.is_leaving();
            for binding in book.lent(entry) {
                let client = book.client_of(binding);
                match binding.need() {
                    Need::Value(_) if stays => continue,
                    // It runs without; but it may be waited for to hold this.
                    Need::Weak(_) => drop(found.components.insert(client.name.clone())),
                    Need::Strong(_) | Need::Value(_) => open.push(client),
                }
                found.bindings.insert(book.wire(binding).to_string());
            }
            for binding in book.borrowed(entry) {
                found.bindings.insert(book.wire(binding).to_string());
                if component(entry).is_some_and(|it| it.state().is_running()) {
                    open.push(book.provider_of(binding));
                }
            }
        }
        found
    }

    /// Whether everything that a change waits for is excused. What was accepted has to be posted, and what was posted
    /// answered, whatever failed.
    fn may_wait(&self, change: &ChangeState, all: &[ChangeState]) -> bool {
        let excused = |waiting: &Waiting| match waiting {
            Waiting::Component(name) | Waiting::Started(name, _) => self.components.contains(name),
            Waiting::Vm(name) => self.vms.contains(name),
            Waiting::Binding(wire) => self.bindings.contains(wire),
            Waiting::Answer(_) => false,
            // Each waits for an earlier one, so this ends.
            Waiting::Change(other) => {
                let other = all.iter().find(|it| it.change == *other && it.change < change.change);
                change.phase.is_some() && other.is_some_and(|other| self.may_wait(other, all))
            }
        };
        !self.components.is_empty() && change.waiting.iter().all(excused)
    }
}

/// Whether a step calls for a look at the whole world: a phase is called done, or something is stopped.
pub fn calls_for_a_look(outputs: &[Output]) -> bool {
    outputs.iter().any(|output| match output {
        Output::Manager(manager::Output::ToOperator(News::PhaseDone(..))) => true,
        Output::Agent(agent::Output::ToHost(task)) => task.work == Work::Stop,
        Output::Manager(_) | Output::Agent(_) => false,
    })
}

/// What a step shows that [`calls_for_a_look`], given the manager before it and the world after it.
pub fn of_event(before: &CloudManager, after: &World, outputs: &[Output], disruption: &Disruption) -> Option<Breach> {
    outputs.iter().find_map(|output| match output {
        Output::Manager(manager::Output::ToOperator(News::PhaseDone(change, _))) => {
            // What a change that is still under way may touch is not asked for.
            let running: Vec<_> = after.manager().changes().map(|it| it.change).collect();
            let moved: BTreeSet<Option<ComponentId>> =
                running.iter().flat_map(|change| after.manager().watched(*change)).map(|entry| entry.id).collect();
            let own: BTreeSet<Option<ComponentId>> = before.watched(*change).map(|entry| entry.id).collect();
            let (unsettled, book) = (disruption.unsettled(after), after.manager().book());
            let asked = |entry: &&ComponentEntry| own.contains(&entry.id) && !moved.contains(&entry.id);
            let excused = |entry: &ComponentEntry| {
                entry.is_leaving() || unsettled.contains(&entry.name) || disruption.may_stop_late(&entry.name)
            };
            book.components()
                .filter(|entry| asked(entry) && !excused(entry))
                .find_map(|entry| settled(after, entry, OWN).or_else(|| needs(after, entry)))
                .map(|breach| Breach { detail: format!("{change} is done, but {}", breach.detail), ..breach })
        }
        Output::Agent(agent::Output::ToHost(task)) if task.work == Work::Stop && !disruption.may_stop(&task.name) => {
            (!disruption.suffering(after).contains(&task.name)).then(|| needlessly_stopped(&task.name))
        }
        Output::Manager(_) | Output::Agent(_) => None,
    })
}

/// [`DONE`]: with no change under way, everything is as predicted.
pub fn while_idle(world: &World, disruption: &Disruption) -> Option<Breach> {
    if !world.manager().is_idle() {
        return None;
    }
    let unsettled = disruption.unsettled(world);
    let mut components = world.manager().book().components();
    components.find_map(|entry| {
        let excused = unsettled.contains(&entry.name) || disruption.may_stop_late(&entry.name);
        if excused { None } else { settled(world, entry, DONE).or_else(|| needs(world, entry)) }
    })
}

/// Whether a component is as predicted, in reality.
fn settled(world: &World, entry: &ComponentEntry, property: &'static str) -> Option<Breach> {
    let agent = world.agent(world.manager().book().vm_of(entry).id?)?;
    let component = agent.components().get(&entry.id?)?;
    let (state, rebinds) = (component.state(), component.task_state() == TaskState::UnderWay(Operation::Rebind));
    let wrong = entry.expected != (state == ComponentState::Started);
    let how = if rebinds { "about to rebind".into() } else { state.to_string() };
    (wrong || rebinds).then(|| Breach { property, detail: format!("{} is {how}", entry.name) })
}

/// [`NEED`]: an agent was told of each number that the manager predicts with.
fn needs(world: &World, entry: &ComponentEntry) -> Option<Breach> {
    let agent = world.agent(world.manager().book().vm_of(entry).id?)?;
    let component = agent.components().get(&entry.id?)?;
    component.holdings().imports().iter().find_map(|(name, state)| {
        let (told, booked) = (state.raise.unwrap_or(state.need.number()), entry.imports().get(name)?.need.number());
        let detail = || format!("{} needs {told} for {name}, and the manager reckons with {booked}", entry.name);
        (told != booked).then(|| Breach { property: NEED, detail: detail() })
    })
}

/// [`PREDICTED`]: what should be started is, and nothing else.
fn as_predicted(world: &World, excused: &BTreeSet<Name>) -> Option<Breach> {
    let predicted = |detail: String| Some(Breach { property: PREDICTED, detail });
    let book = world.manager().book();
    for entry in book.components().filter(|entry| !excused.contains(&entry.name)) {
        let vm = book.vm_of(entry);
        let (Some(id), Some(vm)) = (entry.id, vm.id) else { continue };
        let Some(agent) = world.agent(vm) else { continue };
        let Some(component) = agent.components().get(&id) else {
            return predicted(format!("{} is in the book but not on its VM", entry.name));
        };
        if entry.expected != (component.state() == ComponentState::Started) {
            let expected = if entry.expected { "started" } else { "stopped" };
            return predicted(format!("{} is {}, not {expected}", entry.name, component.state()));
        }
    }
    None
}

/// [`KNOWN`]: with nothing under way, the manager knows how every component and every VM is, what failed included. That it
/// lists as failed what it knows to have failed is an invariant of its own.
fn known(world: &World) -> Option<Breach> {
    let breach = |detail: String| Some(Breach { property: KNOWN, detail });
    let book = world.manager().book();
    // A VM that was declared lost and runs on is not heard.
    let alive = |vm| book.vm_by_id(vm).is_some_and(|entry| entry.health != Health::Dead);
    for agent in world.agents().filter(|agent| alive(agent.id())) {
        for (id, component) in agent.components() {
            let (name, state) = (component.name(), component.state());
            let Some(entry) = book.component_by_id(*id) else {
                return breach(format!("{name} is on {} but not in the book", agent.id()));
            };
            if entry.condition.map(|condition| condition.state) != Some(state) {
                return breach(format!("the manager has not heard that {name} is {state}"));
            }
        }
        let heard = book.vm_by_id(agent.id()).map(|vm| vm.state);
        if heard.is_some_and(|heard| heard != agent.state()) {
            return breach(format!("the manager has not heard that {} is {:?}", agent.id(), agent.state()));
        }
    }
    None
}
