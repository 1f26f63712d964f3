//! What must come of a story, and whether a run agrees.

use crate::{
    Action, World,
    property::{AS_TOLD, Breach},
    trace::is_at_rest,
    world::{Event, Output},
};
use protocol::{
    ComponentState, Name, VmState, Work,
    agent::{self, HoldingState},
    manager::{self, Health, News},
};
use std::collections::{BTreeMap, BTreeSet};

/// What must come of a story.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// How each request is answered.
    pub answers: Vec<Answer>,
    /// How components are in the end; one of these.
    pub components: BTreeMap<Name, BTreeSet<ComponentEnd>>,
    /// How VMs are in the end; one of these.
    pub vms: BTreeMap<Name, BTreeSet<VmEnd>>,
    /// The providers whose loans or values a component holds in the end, and no others.
    pub holds: BTreeMap<Name, BTreeSet<Name>>,
    /// Components that are stopped on no path.
    pub never_stopped: BTreeSet<Name>,
    /// Components that are stopped on some path.
    pub sometimes_stopped: BTreeSet<Name>,
    /// Whether all changes are done in the end.
    pub changes: Changes,
}

/// How a request must be answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// It is accepted.
    #[default]
    Accepted,
    /// It is refused, and each of these texts is part of one of the reasons.
    Refused(Vec<String>),
    /// It depends on the path.
    Either,
}

/// How a component can be in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComponentEnd {
    /// Started.
    Started,
    /// Stopped.
    Stopped,
    /// Failed, and a person is needed.
    Failed,
    /// Removed, or lost with its VM.
    Gone,
}

impl ComponentEnd {
    pub(super) const NAMES: [(&'static str, Self); 4] =
        [("started", Self::Started), ("stopped", Self::Stopped), ("failed", Self::Failed), ("gone", Self::Gone)];
}

/// How a VM can be in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VmEnd {
    /// All its components are started.
    Started,
    /// Not all its components are started.
    Stopped,
    /// It has no component.
    Empty,
    /// It was declared lost.
    Lost,
    /// It was destroyed.
    Gone,
}

impl VmEnd {
    pub(super) const NAMES: [(&'static str, Self); 5] = [
        ("started", Self::Started),
        ("stopped", Self::Stopped),
        ("empty", Self::Empty),
        ("lost", Self::Lost),
        ("gone", Self::Gone),
    ];
}

/// Whether everything was asked for and all changes are done in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Changes {
    /// They are.
    #[default]
    Done,
    /// Something stays undone: a person is needed.
    Unfinished,
    /// It depends on the path.
    Either,
}

impl Expected {
    /// What is wrong with an event, given the world after it; nothing if it is as expected.
    pub fn objection(&self, after: &World, event: &Event) -> Option<String> {
        let stops = event.outputs.iter().filter_map(stopped).find(|name| self.never_stopped.contains(name));
        if let Some(name) = stops {
            return Some(format!("{name} is stopped, and must never be"));
        }
        let place = after.operator().asked.checked_sub(1).filter(|_| event.action == Action::Ask)?;
        let refusals = event.outputs.iter().find_map(|output| match output {
            Output::Manager(manager::Output::ToOperator(News::Refused(refusals))) => Some(refusals),
            Output::Manager(_) | Output::Agent(_) => None,
        });
        let reasons: Option<Vec<String>> = refusals.map(|them| them.iter().map(ToString::to_string).collect());
        let number = place + 1;
        match (self.answers.get(place).unwrap_or(&Answer::Accepted), reasons) {
            (Answer::Accepted, Some(reasons)) => Some(format!("request {number} is refused: {}", reasons.join("; "))),
            (Answer::Refused(_), None) => Some(format!("request {number} is accepted, and must be refused")),
            (Answer::Refused(texts), Some(reasons)) => {
                let missing = texts.iter().find(|text| !reasons.iter().any(|reason| reason.contains(*text)));
                missing.map(|text| {
                    format!("request {number} is refused without the reason {text:?}, but: {}", reasons.join("; "))
                })
            }
            (Answer::Accepted, None) | (Answer::Either, _) => None,
        }
    }

    /// What is wrong with an event, or with the end if the world after it is one; as a property of its own.
    pub fn breach(&self, after: &World, event: &Event) -> Option<Breach> {
        let at_end = || is_at_rest(after).then(|| self.objections_at_end(after).into_iter().next()).flatten();
        let detail = self.objection(after, event).or_else(at_end)?;
        Some(Breach { property: AS_TOLD, detail })
    }

    /// All that is wrong with a world in which nothing more can happen; nothing if it is as expected.
    pub fn objections_at_end(&self, world: &World) -> Vec<String> {
        let mut objections = Vec::new();
        for (name, allowed) in &self.components {
            let (end, words) = component_end(world, name);
            if !end.is_some_and(|end| allowed.contains(&end)) {
                objections.push(format!("{name} is {words}, not {}", said(allowed, &ComponentEnd::NAMES)));
            }
        }
        for (name, allowed) in &self.vms {
            let end = vm_end(world, name);
            if !allowed.contains(&end) {
                let found = said(&[end].into(), &VmEnd::NAMES);
                objections.push(format!("vm {name} is {found}, not {}", said(allowed, &VmEnd::NAMES)));
            }
        }
        for (name, providers) in &self.holds {
            let held = held_by(world, name);
            if held != *providers {
                objections.push(format!("{name} holds {}, not {}", list(&held), list(providers)));
            }
        }
        let waiting: Vec<String> = world.manager().changes().map(|state| state.to_string()).collect();
        let left = world.operator().script.len() - world.operator().asked;
        let unfinished = !waiting.is_empty() || left > 0;
        match self.changes {
            Changes::Done if unfinished => {
                let left = if left > 0 { format!(" ({left} requests not made)") } else { String::new() };
                objections.push(format!("unfinished{left}: {}", waiting.join("; ")));
            }
            Changes::Unfinished if !unfinished => objections.push("all changes are done, and must not be".into()),
            Changes::Done | Changes::Unfinished | Changes::Either => {}
        }
        objections
    }
}

/// The component that an agent asks its host to stop.
pub(crate) fn stopped(output: &Output) -> Option<&Name> {
    match output {
        Output::Agent(agent::Output::ToHost(task)) if matches!(task.work, Work::Stop) => Some(&task.name),
        Output::Agent(_) | Output::Manager(_) => None,
    }
}

fn component_end(world: &World, name: &Name) -> (Option<ComponentEnd>, String) {
    let Some(component) = find(world, name) else { return (Some(ComponentEnd::Gone), "gone".into()) };
    let state = component.state();
    let end = match state {
        ComponentState::Started => Some(ComponentEnd::Started),
        ComponentState::Stopped => Some(ComponentEnd::Stopped),
        ComponentState::Failed(_) => Some(ComponentEnd::Failed),
        ComponentState::Starting | ComponentState::Stopping => None,
    };
    (end, state.to_string())
}

/// The component that people mean by a name: the one in the manager's book, or one that is still on its way out.
fn find<'w>(world: &'w World, name: &Name) -> Option<&'w agent::Component> {
    let book = world.manager().book();
    let known = |vm| book.vm_by_id(vm).is_some_and(|entry| entry.health != Health::Dead);
    let posted = book.component(name).and_then(|entry| entry.id);
    let components = || world.agents().filter(|agent| known(agent.id())).flat_map(|agent| agent.components());
    match posted {
        Some(id) => components().find(|(found, _)| **found == id).map(|(_, component)| component),
        None => components().find(|(_, component)| component.name() == name).map(|(_, component)| component),
    }
}

fn vm_end(world: &World, name: &Name) -> VmEnd {
    let book = world.manager().book();
    let leaving = || book.vms().find(|entry| entry.name == *name);
    match book.vm(name).or_else(leaving) {
        None => VmEnd::Gone,
        Some(entry) if entry.health == Health::Dead => VmEnd::Lost,
        Some(entry) => match entry.state {
            VmState::Started => VmEnd::Started,
            VmState::Stopped => VmEnd::Stopped,
            VmState::Empty => VmEnd::Empty,
        },
    }
}

fn held_by(world: &World, name: &Name) -> BTreeSet<Name> {
    let Some(component) = find(world, name) else { return BTreeSet::new() };
    let held = component.holdings().iter().filter(|(_, holding)| holding.state() == HoldingState::Held);
    held.filter_map(|(binding, _)| world.manager().book().wire_by_id(binding)).map(|wire| wire.provider).collect()
}

/// A set of ends in the words of the language.
pub(super) fn said<T: Ord>(set: &BTreeSet<T>, names: &[(&str, T)]) -> String {
    let words: Vec<&str> = names.iter().filter(|(_, value)| set.contains(value)).map(|(name, _)| *name).collect();
    words.join(" or ")
}

fn list(names: &BTreeSet<Name>) -> String {
    let names: Vec<&str> = names.iter().map(Name::as_str).collect();
    if names.is_empty() { "nothing".into() } else { names.join(" ") }
}
