//! Audit: checks the properties on the journals of a real run.
//!
//! A machine's journal holds its inputs; stepping the machine again gives its outputs. No journal tells how the steps of
//! different machines were ordered in time. So the audit puts them in *an* order in which nothing is received before it was
//! sent, by the machines' clocks where these agree with that. Every such order could have been observed, and the properties
//! must hold in all of them. The audit also checks that the journals agree: what one machine received is, byte for byte,
//! what the sender's journal says it sent.
//!
//! What could not be checked, because a journal is missing or something was still under way, is said by [`Audit::asked`].

use crate::{
    action::Action,
    environment::{Faults, Line},
    inspector::{Inspector, Pace},
    property::{
        self, A2, A5, A6, Asked, Breach, DONE, FAILED, FOLLOWED, KNOWN, MINIMAL, Mode, NEED, OWN, P1, PREDICTED,
        REBOUND, RESTS, TRUST, VMS, mode,
    },
    world::{self, Event, Input, Item, Output, Part, Place, World},
};
use protocol::{
    HostOutcome, VmId,
    agent::{self, TaskState},
    manager::{self, CloudOutcome, Health, News},
};
use std::collections::BTreeMap;

/// What is received is what was sent.
pub const AGREEMENT: &str = "what one machine received is what another's past says it sent";

/// One step of a machine, as its journal tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lived {
    /// When, by that machine's clock, in milliseconds since 1970.
    pub at_ms: u64,
    /// What the protocol's machine was told; nothing, if it was only for the program around it.
    pub input: Option<Input>,
    /// The message that brought it: from whom, its number, its bytes.
    pub heard: Option<(Place, u64, Vec<u8>)>,
    /// The messages that were then sent: to whom, their numbers, their bytes.
    pub said: Vec<(Place, u64, Vec<u8>)>,
}

/// The past of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Which machine: the manager, or the agent of a VM.
    pub place: Place,
    /// Its steps.
    pub steps: Vec<Lived>,
}

/// What an audit found.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Everything that happened, in an order that could have been seen, with its time.
    pub events: Vec<(u64, Event)>,
    /// The first property that did not hold, and after how many events.
    pub breach: Option<(usize, Breach)>,
    /// Machines that were spoken of and whose journals were not given.
    pub missing: Vec<VmId>,
    /// Steps that could not be put in order, because the journal of the machine that caused them ends earlier: that of a program
    /// that still runs, read a moment before the others.
    pub beyond: usize,
    /// What was going on at the end, so that it could not be compared with the prediction; nothing if all was at rest.
    pub busy: Option<String>,
    /// Whether the manager's journal was given.
    pub with_manager: bool,
    /// How many agents' journals were given.
    pub agents: usize,
}

impl Audit {
    /// Whether a property was evaluated, and for what.
    pub fn asked(&self, property: &str) -> Asked {
        let no = |reason: &str| Asked::No(reason.into());
        let at_end = [RESTS, PREDICTED, KNOWN, FOLLOWED, REBOUND].contains(&property);
        let of_manager = [A5, FAILED, TRUST].contains(&property);
        let with_both = at_end || of_manager || [MINIMAL, DONE, OWN, NEED, VMS].contains(&property);
        match mode::asked(property, Mode::Audit) {
            Asked::Yes(_) => {}
            unasked => return unasked,
        }
        if with_both && !self.with_manager {
            return no("the manager's journal was not given");
        }
        if let Some(busy) = self.busy.as_ref().filter(|_| at_end) {
            return Asked::No(busy.clone());
        }
        if self.agents == 0 && !of_manager && property != AGREEMENT {
            return no("no agent's journal was given");
        }
        let missing: Vec<String> = self.missing.iter().map(ToString::to_string).collect();
        let missing = missing.join(", ");
        match missing.is_empty() || of_manager {
            true => Asked::Yes("every step"),
            false if [A2, A6, P1, AGREEMENT].contains(&property) => {
                Asked::Partly(format!("not between others and {missing}: no journal"))
            }
            false => Asked::Partly(format!("not on {missing}: no journal")),
        }
    }
}

/// Looks at the pasts of the machines of one run.
pub fn audit(pasts: &[Past]) -> Audit {
    let mut court = Court::new(pasts);
    while court.breach.is_none() && court.hear_next() {}
    court.close()
}

struct Court<'a> {
    pasts: &'a [Past],
    /// How many steps of each past have been heard.
    heard: Vec<usize>,
    /// Messages that were said and not yet heard, by sender, receiver and number.
    on_the_way: BTreeMap<(Place, Place, u64), &'a [u8]>,
    /// The last message that each has said to each.
    said: BTreeMap<(Place, Place), u64>,
    world: World,
    inspector: Inspector,
    events: Vec<(u64, Event)>,
    breach: Option<(usize, Breach)>,
}

impl<'a> Court<'a> {
    fn new(pasts: &'a [Past]) -> Self {
        // In a real run anything may have failed or died.
        let faults = Faults { failures: 1, deaths: 1, losses: 1, ..Faults::default() };
        let steps = pasts.iter().flat_map(|past| &past.steps);
        let script = steps.filter_map(|step| match &step.input {
            Some(Input::Manager(manager::Input::FromOperator(request))) => {
                Some(Line { request: request.clone(), patient: false })
            }
            _ => None,
        });
        let script: Vec<Line> = script.collect();
        let inspector = match pasts.iter().any(|past| past.place == Place::Manager) {
            true => Inspector::new(&script, faults, Pace::EveryStep),
            false => Inspector::without_script(),
        };
        Self {
            pasts,
            heard: vec![0; pasts.len()],
            on_the_way: BTreeMap::new(),
            said: BTreeMap::new(),
            world: World::new([].into(), Faults::default()),
            inspector,
            events: Vec::new(),
            breach: None,
        }
    }

    fn next_of(&self, past: usize) -> Option<&'a Lived> {
        self.pasts[past].steps.get(self.heard[past])
    }

    fn is_given(&self, place: Place) -> bool {
        self.pasts.iter().any(|past| past.place == place)
    }

    /// Whether what a step heard has been said by then.
    fn is_ready(&self, past: usize, step: &Lived) -> bool {
        step.heard.as_ref().is_none_or(|(from, number, _)| {
            !self.is_given(*from) || self.on_the_way.contains_key(&(*from, self.pasts[past].place, *number))
        })
    }

    /// Hears the earliest step that can be heard; says whether there was one.
    fn hear_next(&mut self) -> bool {
        let waiting = (0..self.pasts.len()).filter_map(|past| Some((past, self.next_of(past)?)));
        let ready = waiting.clone().filter(|(past, step)| self.is_ready(*past, step));
        let Some((past, step)) = ready.min_by_key(|(past, step)| (step.at_ms, self.pasts[*past].place)) else {
            // Either the sender's journal ends before it sent this, or it was heard before.
            let twice = waiting.filter_map(|(past, step)| {
                let (from, number, _) = step.heard.as_ref()?;
                let to = self.pasts[past].place;
                let last = self.said.get(&(*from, to)).copied().unwrap_or(0);
                (*number <= last).then_some((to, *from, *number))
            });
            if let Some((to, from, number)) = twice.min() {
                self.breach(AGREEMENT, format!("{to:?} received message {number} of {from:?} twice"));
            }
            return false;
        };
        self.heard[past] += 1;
        let place = self.pasts[past].place;
        if let Some((from, number, bytes)) = &step.heard
            && let Some(said) = self.on_the_way.remove(&(*from, place, *number))
            && said != bytes
        {
            self.breach(
                AGREEMENT,
                format!("{place:?} received message {number} of {from:?} otherwise than it was sent"),
            );
            return false;
        }
        for (to, number, bytes) in &step.said {
            self.on_the_way.insert((place, *to, *number), bytes);
            self.said.insert((place, *to), *number);
        }
        if let Some(input) = &step.input {
            self.relive(step.at_ms, place, input);
        }
        true
    }

    fn relive(&mut self, at_ms: u64, place: Place, input: &Input) {
        let Some(action) = action_of(place, input) else {
            self.world.relive(place, input.clone());
            self.inspector.remember(&self.world, Some(place));
            return;
        };
        let outputs = self.world.relive(place, input.clone());
        if let Action::Cloud(vm) = action
            && !self.is_given(Place::Agent(vm))
        {
            // Nothing is known of what it did; so it is looked at as a VM that is not there.
            self.world.change(Place::Agent(vm), |part| *part = Part::Halted);
        }
        let event = Event { action, input: Some((place, input.clone())), outputs };
        let found = self.inspector.look(&self.world, &event);
        self.events.push((at_ms, event));
        if let Some(found) = found {
            self.breach = Some((self.events.len(), found));
        }
    }

    fn breach(&mut self, property: &'static str, detail: String) {
        self.breach = Some((self.events.len(), Breach { property, detail }));
    }

    fn close(mut self) -> Audit {
        let book = self.world.manager().book();
        let vms = book.vms().filter_map(|vm| vm.id);
        let missing: Vec<VmId> = vms.filter(|vm| !self.is_given(Place::Agent(*vm))).collect();
        let beyond = self.pasts.iter().zip(&self.heard).map(|(past, heard)| past.steps.len() - heard).sum();
        let busy = self.busy(&missing, beyond);
        if busy.is_none() && self.breach.is_none() {
            self.breach = property::at_end(&self.world).map(|found| (self.events.len(), found));
        }
        let with_manager = self.is_given(Place::Manager);
        let agents = self.pasts.iter().filter(|past| matches!(past.place, Place::Agent(_))).count();
        Audit { events: self.events, breach: self.breach, missing, beyond, busy, with_manager, agents }
    }

    /// What is going on at the end of the journals, if anything is.
    fn busy(&self, missing: &[VmId], beyond: usize) -> Option<String> {
        let book = self.world.manager().book();
        if !self.is_given(Place::Manager) || !missing.is_empty() {
            return Some("a journal is missing".into());
        }
        if beyond > 0 {
            return Some("one journal ends earlier than another".into());
        }
        // What was sent to a VM that is gone never arrives.
        let alive = |place: &Place| if let Place::Agent(vm) = place { self.world.agent(*vm).is_some() } else { true };
        if let Some((from, to, _)) = self.on_the_way.keys().find(|(from, to, _)| alive(from) && alive(to)) {
            return Some(format!("a message from {from:?} to {to:?} has not arrived"));
        }
        let coming = book.vms().find(|vm| vm.health == Health::Awaited || vm.is_leaving() && vm.health != Health::Dead);
        if let Some(vm) = coming {
            return Some(format!("vm {} is being made or destroyed", vm.name));
        }
        let components = self.world.agents().flat_map(|agent| agent.components().values());
        components.into_iter().find_map(|component| match component.task_state() {
            TaskState::None => None,
            TaskState::UnderWay(operation) => Some(format!("{} is under way: {operation}", component.name())),
            TaskState::Pausing(operation) => Some(format!("{} waits to retry: {operation}", component.name())),
            TaskState::Aborting => Some(format!("the start of {} is being aborted", component.name())),
        })
    }
}

/// The action that brings about such an input in the explorer's world; nothing for what has no counterpart there.
fn action_of(place: Place, input: &Input) -> Option<Action> {
    Some(match (place, input) {
        (_, Input::Manager(manager::Input::FromOperator(_))) => Action::Ask,
        (_, Input::Manager(manager::Input::FromAgent(vm, _))) => Action::Report(*vm),
        (_, Input::Manager(manager::Input::FromCloud(CloudOutcome::Created(vm) | CloudOutcome::Destroyed(vm)))) => {
            Action::Cloud(*vm)
        }
        (_, Input::Manager(manager::Input::FromCloud(CloudOutcome::Lost(vm)))) => Action::Declare(*vm),
        (_, Input::Manager(manager::Input::FromCloud(_) | manager::Input::SuspicionLimit(_))) => return None,
        (_, Input::Manager(manager::Input::AlarmRang(alarm))) => Action::RingManager(*alarm),
        (Place::Agent(vm), Input::Agent(input)) => match input {
            agent::Input::FromManager(_) => Action::Order(vm),
            agent::Input::FromPeer(from, _) => Action::Notice(*from, vm),
            agent::Input::FromHost(HostOutcome::Done { component, .. }) => Action::Finish(vm, *component),
            agent::Input::FromHost(HostOutcome::Failed { component, .. }) => Action::Fail(vm, *component),
            agent::Input::FromHost(HostOutcome::Died { component, .. }) => Action::Die(vm, *component),
            agent::Input::AlarmRang(alarm) => Action::Ring(vm, *alarm),
        },
        (_, Input::Agent(_)) => return None,
    })
}

impl World {
    /// Lets a machine take a step that it took in a recorded run, and says what it said. What it sends goes nowhere: the
    /// record tells what arrived. A VM begins with its first step, and ends when the manager says so.
    pub fn relive(&mut self, place: Place, input: Input) -> Vec<Output> {
        let born = match (&place, &input) {
            (Place::Agent(vm), _) | (_, Input::Manager(manager::Input::FromCloud(CloudOutcome::Created(vm)))) => {
                Some(*vm)
            }
            _ => None,
        };
        if let Some(vm) = born.filter(|vm| *self.part(Place::Agent(*vm)) == Part::Nothing) {
            self.change(Place::Agent(vm), |part| world::put(part, Item::Boot(vm)));
        }
        if let (Place::Agent(vm), Input::Agent(agent::Input::FromHost(outcome))) = (place, &input) {
            let action = match outcome {
                HostOutcome::Done { component, .. } => Action::Finish(vm, *component),
                HostOutcome::Failed { component, .. } => Action::Fail(vm, *component),
                HostOutcome::Died { component, .. } => Action::Die(vm, *component),
            };
            self.change(Place::Host(vm), |part| world::take(part, action, false));
        }
        let outputs = self.change(place, |part| world::step(part, input));
        for (place, item) in outputs.iter().filter_map(|output| world::follow(place, output, false)) {
            if let Item::Task(_) = item {
                self.change(place, |part| world::put(part, item));
            }
        }
        for vm in gone(&outputs) {
            self.change(Place::Agent(vm), |part| world::put(part, Item::Halt));
            self.change(Place::Host(vm), |part| world::put(part, Item::Halt));
        }
        outputs
    }
}

/// The VMs that are gone for ever after these outputs.
fn gone(outputs: &[Output]) -> impl Iterator<Item = VmId> {
    outputs.iter().filter_map(|output| match output {
        Output::Manager(manager::Output::ToOperator(News::VmLost(vm) | News::VmDestroyed(vm))) => Some(*vm),
        Output::Manager(_) | Output::Agent(_) => None,
    })
}
