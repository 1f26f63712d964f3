//! One world: the machines, the links between them, their hosts, the cloud and the operator.
//!
//! A world is a set of parts, each at its place. An action takes something out of one part (`take`), which makes at most
//! one machine step (`step`), and what comes out is put into other parts (`put`). These three are pure functions of
//! single parts; the plain [`World`] here and the interned one of the explorer are both nothing but their composition.

use crate::{
    action::Action,
    environment::{Cloud, Faults, Host, Letter, Line, Operator, Queue},
    parts::Parts,
    sabotage,
};
use protocol::{
    CloudManager, HostTask, VmAgent, VmId, agent,
    manager::{self, CloudOutcome, CloudTask},
};
use serde::Serialize;
use std::{collections::BTreeSet, sync::Arc};

/// Where a part of the world is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Place {
    /// The operator's desk.
    Operator,
    /// The manager.
    Manager,
    /// The cloud.
    Cloud,
    /// The agent of a VM.
    Agent(VmId),
    /// The host of a VM.
    Host(VmId),
    /// Orders on their way to a VM.
    Orders(VmId),
    /// Reports on their way from a VM.
    Reports(VmId),
    /// Notices on their way from the first VM to the second.
    Notices(VmId, VmId),
}

/// A part of the world. What is not there yet is `Nothing`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Part {
    /// Not there yet, or empty.
    #[default]
    Nothing,
    /// The operator.
    Operator(Operator),
    /// The manager's machine.
    Manager(CloudManager),
    /// The cloud.
    Cloud(Cloud),
    /// An agent's machine.
    Agent(VmAgent),
    /// The agent of a VM that is lost or destroyed.
    Halted,
    /// A host.
    Host(Host),
    /// One direction of a link.
    Queue(Queue),
}

impl Part {
    /// Whether it is a link whose next letter has arrived before and will be dropped.
    pub fn repeats(&self) -> bool {
        let Self::Queue(queue) = self else { return false };
        let (next, last) = (queue.letters.front(), queue.arrived.as_ref());
        next.zip(last).is_some_and(|(next, last)| next.0 <= last.0)
    }
}

/// Something that is put into a part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    /// A letter is sent; whether it must be numbered.
    Letter(Letter, bool),
    /// A task for a host.
    Task(HostTask),
    /// An alarm of an agent.
    Alarm(agent::Alarm, u64),
    /// A task for the cloud.
    CloudTask(CloudTask),
    /// An alarm of the manager.
    ManagerAlarm(manager::Alarm, u64),
    /// The VM is there: its agent begins.
    Boot(VmId),
    /// The VM is no more.
    Halt,
    /// A fault has used up a part of the budget.
    Spend(Action),
    /// A VM was lost.
    Lost(VmId),
    /// The link was broken and made again.
    Resend,
}

/// What makes a machine step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Input {
    /// For the manager.
    Manager(manager::Input),
    /// For an agent.
    Agent(agent::Input),
}

/// What a machine said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Output {
    /// The manager.
    Manager(manager::Output),
    /// An agent.
    Agent(agent::Output),
}

/// What taking an action out of its part leads to.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// The machine that steps, and on what.
    pub input: Option<(Place, Input)>,
    /// What happens besides.
    pub effects: Vec<(Place, Item)>,
}

/// The place that an action is taken from.
pub fn source(action: Action) -> Place {
    match action {
        Action::Ask | Action::Declare(_) | Action::Crash(_) | Action::CrashManager | Action::Break(..) => {
            Place::Operator
        }
        Action::Cloud(_) | Action::RingManager(_) => Place::Cloud,
        Action::Order(vm) => Place::Orders(vm),
        Action::Report(vm) => Place::Reports(vm),
        Action::Notice(from, to) => Place::Notices(from, to),
        Action::Finish(vm, _)
        | Action::Fail(vm, _)
        | Action::Abort(vm, _)
        | Action::Die(vm, _)
        | Action::Ring(vm, _) => Place::Host(vm),
        Action::Lose(vm) => Place::Agent(vm),
    }
}

/// Takes an action out of the part at its source. `numbered`: links number their letters.
pub fn take(part: &mut Part, action: Action, numbered: bool) -> Taken {
    let mut taken = Taken::default();
    if action.is_fault() {
        taken.effects.push((Place::Operator, Item::Spend(action)));
    }
    let to_manager = |input| Some((Place::Manager, Input::Manager(input)));
    let to_agent = |vm, input| Some((Place::Agent(vm), Input::Agent(input)));
    match (action, &mut *part) {
        (Action::Ask, Part::Operator(operator)) => {
            let request = operator.script[operator.asked].request.clone();
            operator.asked += 1;
            taken.input = to_manager(manager::Input::FromOperator(request));
        }
        (Action::Declare(vm), Part::Operator(operator)) => {
            operator.lost.remove(&vm);
            taken.input = to_manager(manager::Input::FromCloud(CloudOutcome::Lost(vm)));
        }
        (Action::Cloud(vm), Part::Cloud(cloud)) => match cloud.tasks.remove(&vm) {
            Some(CloudTask::Create(..)) => {
                taken.input = to_manager(manager::Input::FromCloud(CloudOutcome::Created(vm)));
                taken.effects.push((Place::Agent(vm), Item::Boot(vm)));
            }
            Some(CloudTask::Destroy(_)) => {
                taken.input = to_manager(manager::Input::FromCloud(CloudOutcome::Destroyed(vm)));
                taken.effects.extend([(Place::Agent(vm), Item::Halt), (Place::Host(vm), Item::Halt)]);
            }
            None => {}
        },
        (Action::RingManager(alarm), Part::Cloud(cloud)) => {
            cloud.alarms.remove(&alarm);
            taken.input = to_manager(manager::Input::AlarmRang(alarm));
        }
        (Action::Order(vm), Part::Queue(queue)) => {
            if let Some(Letter::Order(order)) = queue.receive(numbered) {
                taken.input = to_agent(vm, agent::Input::FromManager(order));
            }
        }
        (Action::Report(vm), Part::Queue(queue)) => {
            if let Some(Letter::Report(report)) = queue.receive(numbered) {
                taken.input = to_manager(manager::Input::FromAgent(vm, report));
            }
        }
        (Action::Notice(from, to), Part::Queue(queue)) => {
            if let Some(Letter::Notice(notice)) = queue.receive(numbered) {
                taken.input = to_agent(to, agent::Input::FromPeer(from, notice));
            }
        }
        (Action::Finish(vm, component), Part::Host(host)) => {
            taken.input = host.finish(component).and_then(|outcome| to_agent(vm, agent::Input::FromHost(outcome)));
        }
        (Action::Fail(vm, component), Part::Host(host)) => {
            taken.input = host.fail(component).and_then(|outcome| to_agent(vm, agent::Input::FromHost(outcome)));
        }
        (Action::Abort(vm, component), Part::Host(host)) => {
            taken.input = host.abort(component).and_then(|outcome| to_agent(vm, agent::Input::FromHost(outcome)));
        }
        (Action::Die(vm, component), Part::Host(host)) => {
            taken.input = host.die(component).and_then(|outcome| to_agent(vm, agent::Input::FromHost(outcome)));
        }
        (Action::Ring(vm, alarm), Part::Host(host)) => {
            host.alarms.remove(&alarm);
            taken.input = to_agent(vm, agent::Input::AlarmRang(alarm));
        }
        (Action::Lose(vm), part) => {
            *part = Part::Halted;
            taken.effects.extend([(Place::Host(vm), Item::Halt), (Place::Operator, Item::Lost(vm))]);
        }
        // A crash or a break is felt on the links; what is not possible here does nothing.
        (_, _) => {}
    }
    // An empty part is nothing, so that a world that was and a world that will be the same are the same.
    if is_bare(part) {
        *part = Part::Nothing;
    }
    taken
}

/// Whether there is nothing left in a part that was put there.
fn is_bare(part: &Part) -> bool {
    match part {
        Part::Host(host) => *host == Host::default(),
        Part::Queue(queue) => queue.is_bare(),
        Part::Cloud(cloud) => *cloud == Cloud::default(),
        Part::Nothing | Part::Operator(_) | Part::Manager(_) | Part::Agent(_) | Part::Halted => false,
    }
}

/// Lets a machine take a step.
pub fn step(part: &mut Part, input: Input) -> Vec<Output> {
    match sabotage::current() {
        None => honest_step(part, input),
        Some(saboteur) => saboteur(part, input),
    }
}

/// Lets a machine take a step, whatever a test has in mind.
pub fn honest_step(part: &mut Part, input: Input) -> Vec<Output> {
    match (part, input) {
        (Part::Manager(machine), Input::Manager(input)) => {
            machine.step(input).into_iter().map(Output::Manager).collect()
        }
        (Part::Agent(machine), Input::Agent(input)) => machine.step(input).into_iter().map(Output::Agent).collect(),
        // A VM that is lost hears nothing.
        (_, _) => Vec::new(),
    }
}

/// Where something goes that the machine at a place said. `numbered`: links number their letters.
pub fn follow(place: Place, output: &Output, numbered: bool) -> Option<(Place, Item)> {
    let effect = match (place, output) {
        (_, Output::Manager(manager::Output::ToAgent(vm, order))) => {
            (Place::Orders(*vm), Item::Letter(Letter::Order(order.clone()), numbered))
        }
        (_, Output::Manager(manager::Output::ToCloud(task))) => (Place::Cloud, Item::CloudTask(task.clone())),
        (_, Output::Manager(manager::Output::SetAlarm(alarm, length))) => {
            (Place::Cloud, Item::ManagerAlarm(*alarm, *length))
        }
        (Place::Agent(vm), Output::Agent(agent::Output::ToManager(report))) => {
            (Place::Reports(vm), Item::Letter(Letter::Report(report.clone()), numbered))
        }
        (Place::Agent(vm), Output::Agent(agent::Output::ToPeer(to, notice))) => {
            (Place::Notices(vm, *to), Item::Letter(Letter::Notice(notice.clone()), numbered))
        }
        (Place::Agent(vm), Output::Agent(agent::Output::ToHost(task))) => (Place::Host(vm), Item::Task(task.clone())),
        (Place::Agent(vm), Output::Agent(agent::Output::SetAlarm(alarm, length))) => {
            (Place::Host(vm), Item::Alarm(*alarm, *length))
        }
        (_, Output::Manager(manager::Output::ToOperator(_) | manager::Output::Note(_)) | Output::Agent(_)) => {
            return None;
        }
    };
    Some(effect)
}

/// Puts something into a part.
pub fn put(part: &mut Part, item: Item) {
    if let Part::Nothing = part {
        *part = match item {
            Item::Letter(..) | Item::Resend => Part::Queue(Queue::default()),
            Item::Task(_) | Item::Alarm(..) => Part::Host(Host::default()),
            Item::CloudTask(_) | Item::ManagerAlarm(..) => Part::Cloud(Cloud::default()),
            Item::Boot(_) | Item::Halt | Item::Spend(_) | Item::Lost(_) => Part::Nothing,
        };
    }
    match (item, &mut *part) {
        (Item::Letter(letter, numbered), Part::Queue(queue)) => queue.send(letter, numbered),
        (Item::Resend, Part::Queue(queue)) => queue.resend(),
        (Item::Task(task), Part::Host(host)) => host.take_on(task),
        (Item::Alarm(alarm, length), Part::Host(host)) => drop(host.alarms.insert(alarm, length)),
        (Item::CloudTask(task), Part::Cloud(cloud)) => {
            let (CloudTask::Create(vm, _) | CloudTask::Destroy(vm)) = task;
            cloud.tasks.insert(vm, task);
        }
        (Item::ManagerAlarm(alarm, length), Part::Cloud(cloud)) => drop(cloud.alarms.insert(alarm, length)),
        (Item::Boot(vm), part) => *part = Part::Agent(VmAgent::new(vm)),
        (Item::Halt, part) => *part = Part::Halted,
        (Item::Spend(fault), Part::Operator(operator)) => operator.faults.spend(fault),
        (Item::Lost(vm), Part::Operator(operator)) => drop(operator.lost.insert(vm)),
        // A halted host takes nothing on.
        (_, _) => {}
    }
    if matches!(part, Part::Queue(_)) && is_bare(part) {
        *part = Part::Nothing;
    }
}

/// What happened in one action: which machine stepped, on what, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub action: Action,
    /// The machine that stepped, if any, and on what.
    pub input: Option<(Place, Input)>,
    /// What it said.
    pub outputs: Vec<Output>,
}

/// A whole world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    parts: Parts,
    numbered: bool,
}

impl World {
    /// A world with nothing in it but a manager and an operator with a script.
    pub fn new(script: Arc<[Line]>, faults: Faults) -> Self {
        let operator = Operator { script, asked: 0, lost: BTreeSet::new(), faults };
        let parts = [
            (Place::Operator, Arc::new(Part::Operator(operator))),
            (Place::Manager, Arc::new(Part::Manager(CloudManager::new(None)))),
        ];
        Self::assemble(parts, faults.repeats())
    }

    /// A world put together from its parts.
    pub fn assemble(parts: impl IntoIterator<Item = (Place, Arc<Part>)>, numbered: bool) -> Self {
        Self { parts: parts.into_iter().collect(), numbered }
    }

    /// Whether links number their letters, because they may come twice.
    pub fn is_numbered(&self) -> bool {
        self.numbered
    }

    /// Everything there is, in the order of places.
    pub fn parts(&self) -> impl Iterator<Item = (Place, &Arc<Part>)> + Clone {
        self.parts.iter()
    }

    /// The part at a place.
    pub fn part(&self, place: Place) -> &Part {
        self.parts.get(place)
    }

    /// The part at a place, to be kept while the world goes on.
    pub(crate) fn shared(&self, place: Place) -> Option<&Arc<Part>> {
        self.parts.shared(place)
    }

    /// The manager.
    pub fn manager(&self) -> &CloudManager {
        match self.part(Place::Manager) {
            Part::Manager(manager) => manager,
            _ => unreachable!("a world is made with a manager"),
        }
    }

    /// The operator.
    pub fn operator(&self) -> &Operator {
        match self.part(Place::Operator) {
            Part::Operator(operator) => operator,
            _ => unreachable!("a world is made with an operator"),
        }
    }

    /// The agents of the VMs that are up.
    pub fn agents(&self) -> impl Iterator<Item = &VmAgent> + Clone {
        self.parts.agents().filter_map(|part| if let Part::Agent(agent) = part { Some(agent) } else { None })
    }

    /// The agent of a VM, if it is up.
    pub fn agent(&self, vm: VmId) -> Option<&VmAgent> {
        if let Part::Agent(agent) = self.part(Place::Agent(vm)) { Some(agent) } else { None }
    }

    /// The VMs to which notices are on their way from a VM.
    pub fn neighbours(&self, vm: VmId) -> impl Iterator<Item = VmId> {
        self.parts.neighbours(vm)
    }

    /// Everything that can happen next, sorted.
    pub fn actions(&self) -> Vec<Action> {
        let is_up = |vm| self.agent(vm).is_some();
        let mut actions = Vec::new();
        for (place, part) in self.parts() {
            possible(place, part, is_up, &mut actions);
        }
        let faults = self.operator().faults;
        actions.retain(|action| is_within(faults, *action));
        if self.operator().next().is_some_and(|line| line.patient) && actions.iter().all(|action| action.is_fault()) {
            actions.push(Action::Ask);
        }
        let agents = self.agents().map(VmAgent::id);
        faults_around(faults, agents, self.parts().map(|(place, _)| place), &mut actions);
        actions.sort_unstable();
        actions
    }

    /// Lets an action happen.
    pub fn apply(&mut self, action: Action) -> Event {
        let numbered = self.numbered;
        let around = effects_around(action, self.parts().map(|(place, _)| place));
        let taken = self.change(source(action), |part| take(part, action, numbered));
        let input = taken.input;
        let outputs = match &input {
            Some((place, input)) => self.change(*place, |part| step(part, input.clone())),
            None => Vec::new(),
        };
        for (place, item) in taken.effects.into_iter().chain(around) {
            self.change(place, |part| put(part, item));
        }
        let said = input.iter().flat_map(|(place, _)| outputs.iter().map(|output| (*place, output)));
        for (place, item) in said.filter_map(|(place, output)| follow(place, output, numbered)) {
            self.change(place, |part| put(part, item));
        }
        Event { action, input, outputs }
    }

    pub(crate) fn change<R>(&mut self, place: Place, change: impl FnOnce(&mut Part) -> R) -> R {
        self.parts.change(place, change)
    }
}

/// What can happen next because of one part; faults are listed whatever the budget. What a patient operator asks for is
/// not listed: that depends on everything else.
pub fn possible(place: Place, part: &Part, is_up: impl Fn(VmId) -> bool, actions: &mut Vec<Action>) {
    match (place, part) {
        (_, Part::Operator(operator)) => {
            actions.extend(operator.next().filter(|line| !line.patient).map(|_| Action::Ask));
            actions.extend(operator.lost.iter().map(|vm| Action::Declare(*vm)));
        }
        (_, Part::Cloud(cloud)) => {
            actions.extend(cloud.tasks.keys().map(|vm| Action::Cloud(*vm)));
            actions.extend(cloud.alarms.keys().map(|alarm| Action::RingManager(*alarm)));
        }
        (Place::Orders(vm), Part::Queue(queue)) if is_up(vm) && !queue.letters.is_empty() => {
            actions.push(Action::Order(vm));
        }
        (Place::Reports(vm), Part::Queue(queue)) if !queue.letters.is_empty() => actions.push(Action::Report(vm)),
        (Place::Notices(from, to), Part::Queue(queue)) if is_up(to) && !queue.letters.is_empty() => {
            actions.push(Action::Notice(from, to));
        }
        (Place::Host(vm), Part::Host(host)) => {
            for component in host.tasks.keys() {
                actions.extend([Action::Finish(vm, *component), Action::Fail(vm, *component)]);
            }
            actions.extend(host.aborting.iter().map(|component| Action::Abort(vm, *component)));
            actions.extend(host.running.keys().map(|component| Action::Die(vm, *component)));
            actions.extend(host.alarms.keys().map(|alarm| Action::Ring(vm, *alarm)));
        }
        (_, _) => {}
    }
}

/// Whether an action is no fault, or one that the budget allows.
pub fn is_within(faults: Faults, action: Action) -> bool {
    match action {
        Action::Fail(..) => faults.failures > 0,
        Action::Die(..) => faults.deaths > 0,
        _ => true,
    }
}

/// Faults that no single part holds.
pub fn faults_around(
    faults: Faults,
    agents: impl Iterator<Item = VmId> + Clone,
    places: impl Iterator<Item = Place>,
    actions: &mut Vec<Action>,
) {
    if faults.crashes > 0 {
        actions.push(Action::CrashManager);
        actions.extend(agents.clone().map(Action::Crash));
    }
    if faults.breaks > 0 {
        let pairs = places.filter_map(|place| match place {
            Place::Notices(from, to) => Some((from.min(to), from.max(to))),
            _ => None,
        });
        let pairs: BTreeSet<(VmId, VmId)> = pairs.collect();
        actions.extend(pairs.into_iter().map(|(from, to)| Action::Break(from, to)));
    }
    if faults.losses > 0 {
        actions.extend(agents.map(Action::Lose));
    }
}

/// What a crash or a break does to links.
pub fn effects_around(action: Action, places: impl Iterator<Item = Place>) -> Vec<(Place, Item)> {
    let touches = |place: &Place| match (action, *place) {
        (Action::Crash(vm), Place::Orders(at) | Place::Reports(at)) => vm == at,
        (Action::Crash(vm), Place::Notices(from, to)) => vm == from || vm == to,
        (Action::CrashManager, Place::Orders(_) | Place::Reports(_)) => true,
        (Action::Break(one, other), Place::Notices(from, to)) => (one, other) == (from.min(to), from.max(to)),
        (_, _) => false,
    };
    match action {
        Action::Crash(_) | Action::CrashManager | Action::Break(..) => {
            places.filter(touches).map(|place| (place, Item::Resend)).collect()
        }
        _ => Vec::new(),
    }
}
