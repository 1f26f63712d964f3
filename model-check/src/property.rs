//! What must hold, with names: always, and at every end.
//!
//! Each check looks at one part, at two agents, or at a whole world at rest, so that the explorer can remember the
//! verdict on parts that it has seen before.

use crate::{
    environment::Line,
    world::{Part, Place, World},
};
use protocol::{
    ComponentState, Edit, Export, HeldBinding, Kind, Name, Need, Operation, Values, Wire, Work,
    agent::{HoldingState, LoanState, TaskState},
    invariant::{self, View},
    manager::{ChangeState, ComponentEntry, Health, Request, Waiting},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

/// A property that does not hold, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Breach {
    /// The property's name.
    pub property: &'static str,
    /// What is wrong.
    pub detail: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.property, self.detail)
    }
}

/// Nothing is asked of a host that it cannot do.
pub const ONCE: &str = "nothing is started twice or stopped twice";
/// Only what depends on something that leaves is stopped.
pub const MINIMAL: &str = "only dependents of what leaves are stopped";
/// The machines come to rest with nothing left over.
pub const RESTS: &str = "the system comes to rest with every order and notice answered";
/// The end is the predicted one.
pub const PREDICTED: &str = "the end is the predicted one";
/// The end does not depend on timing.
pub const ONE_END: &str = "the end is always the same";

/// The story comes out as its scenario says.
pub const AS_TOLD: &str = "the story comes out as it is told";

/// Nobody runs on with what it was told of something that has come back as something else.
pub const FOLLOWED: &str = "whoever cannot rebind has restarted with values that changed";

/// Every property, with its word.
pub const ALL: [(&str, &str); 13] = [
    ("always", "A1 a running component holds what it needs"),
    ("always", "A2 every loan in use is on a started provider"),
    ("always", "A3 nothing touches a lost VM"),
    ("always", "A4 a stopped component answers every recall at once"),
    ("always", "A5 strong bindings form no cycle"),
    ("always", PRESENT),
    ("always", ONCE),
    ("always", MINIMAL),
    ("always", DONE),
    ("eventually", RESTS),
    ("eventually", PREDICTED),
    ("eventually", FOLLOWED),
    ("eventually", ONE_END),
];

/// Whether a script declares a VM lost, which may stop anything.
pub fn loses(script: &[Line]) -> bool {
    script.iter().any(|line| matches!(line.request, Request::DeclareLost(_)))
}

/// The components that a script may stop: what it removes or restarts, what it lets need more than it has, and all that
/// depends on these.
pub fn may_stop(script: &[Line]) -> BTreeSet<Name> {
    let edits = || {
        script.iter().flat_map(|line| match &line.request {
            Request::Make(change) => change.edits.iter(),
            Request::Retry(_) | Request::Skip(_) | Request::DeclareLost(_) | Request::Cancel(_) => [].iter(),
        })
    };
    let mut clients: BTreeMap<&Name, BTreeSet<&Name>> = BTreeMap::new();
    let mut kinds: BTreeMap<&Name, Vec<&Arc<Kind>>> = BTreeMap::new();
    // A name may be taken over, on another VM.
    let mut homes: BTreeSet<(&Name, &Name)> = BTreeSet::new();
    let mut open: Vec<&Name> = Vec::new();
    let is_incomplete = |line: &Line| matches!(&line.request, Request::Make(change) if change.incomplete);
    let incomplete = script.iter().any(is_incomplete);
    for edit in edits() {
        match edit {
            Edit::AddComponent { component, kind, vm } => {
                kinds.entry(component).or_default().push(kind);
                homes.insert((component, vm));
            }
            Edit::RemoveComponent { component } | Edit::RestartComponent { component } => open.push(component),
            // What is allowed to have too few providers may be told to need more than it has.
            Edit::SetNeed { component, .. } if incomplete => open.push(component),
            Edit::AddVm { .. }
            | Edit::RemoveVm { .. }
            | Edit::SetNeed { .. }
            | Edit::AddBinding(_)
            | Edit::RemoveBinding(_) => {}
        }
    }
    // Of several kinds that bore a name, any may be meant.
    let of = |name: &Name| kinds.get(name).into_iter().flatten();
    let has_values =
        |wire: &Wire| of(&wire.provider).any(|kind| kind.exports.get(&wire.export).is_some_and(Export::has_values));
    // Nobody stops for a provider that it can do without, unless it comes back with values that only a restart can tell.
    let may_pass = |wire: &Wire| {
        of(&wire.client).any(|kind| {
            let weak = kind.imports.get(&wire.import).is_some_and(|it| matches!(it.need, Need::Weak(_)));
            !weak || !kind.rebinds && has_values(wire)
        })
    };
    for edit in edits() {
        match edit {
            Edit::AddBinding(wire) if may_pass(wire) => {
                clients.entry(&wire.provider).or_default().insert(&wire.client);
            }
            Edit::RemoveBinding(wire) if may_pass(wire) => open.push(&wire.client),
            Edit::RemoveVm { vm } => open.extend(homes.iter().filter(|(_, home)| *home == vm).map(|(it, _)| *it)),
            _ => {}
        }
    }
    // What a cancelled change adds is taken away again. The setup is change 1.
    let cancels = |setup: bool| {
        let is_meant = |line: &Line| matches!(line.request, Request::Cancel(change) if (change.0 == 1) == setup);
        script.iter().any(is_meant)
    };
    for line in script.iter().enumerate().filter(|(place, _)| cancels(*place == 0)).map(|(_, line)| line) {
        let Request::Make(change) = &line.request else { continue };
        open.extend(change.edits.iter().filter_map(|edit| match edit {
            Edit::AddComponent { component, .. } => Some(component),
            Edit::AddBinding(wire) if may_pass(wire) => Some(&wire.client),
            _ => None,
        }));
    }
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        if found.insert(name.clone()) {
            open.extend(clients.get(name).into_iter().flatten());
        }
    }
    found
}

/// What one part shows by itself. `may_stop`: the components that may be stopped, if that is known.
pub fn of_part(part: &Part, may_stop: Option<&BTreeSet<Name>>) -> Option<Breach> {
    let breach =
        |violation: &invariant::Violation| Breach { property: violation.property(), detail: violation.to_string() };
    match part {
        Part::Agent(agent) => invariant::of_agent(agent).first().map(breach),
        Part::Manager(manager) => invariant::of_manager(manager).as_ref().map(breach),
        Part::Host(host) => {
            let scandal = host.scandal.clone().map(|detail| Breach { property: ONCE, detail });
            let stops = host.tasks.values().filter(|task| task.work == Work::Stop);
            let mut needless = stops.filter(|task| may_stop.is_some_and(|names| !names.contains(&task.name)));
            let needless =
                needless.next().map(|task| Breach { property: MINIMAL, detail: format!("{} is stopped", task.name) });
            scandal.or(needless)
        }
        Part::Nothing | Part::Operator(_) | Part::Cloud(_) | Part::Halted | Part::Queue(_) => None,
    }
}

/// What should be seen at least once in any exploration worth the name.
pub const SOMETIMES: [&str; 3] = ["a component is started", "a loan is lent", "a loan is recalled"];

/// Which of [`SOMETIMES`] a part shows.
pub fn sights(part: &Part) -> Vec<&'static str> {
    let Part::Agent(agent) = part else { return Vec::new() };
    let components = || agent.components().values();
    let loan =
        |state: fn(LoanState) -> bool| components().any(|it| it.loans().iter().any(|(_, loan)| state(loan.state())));
    let seen = [
        components().any(|component| component.state() == ComponentState::Started),
        loan(|state| state == LoanState::Lent),
        loan(|state| matches!(state, LoanState::Recalled { .. })),
    ];
    SOMETIMES.into_iter().zip(seen).filter(|(_, seen)| *seen).map(|(name, _)| name).collect()
}

/// What an agent's books show to others.
pub fn view(part: &Part) -> Option<View> {
    if let Part::Agent(agent) = part { Some(invariant::view(agent)) } else { None }
}

/// A client reaches its provider where that is now.
pub const PRESENT: &str = "A6 a client knows its provider's present values";

/// A2 and A6 between a client and one provider's VM.
pub fn between(client: &View, provider: &View) -> Option<Breach> {
    // What was declared lost and runs on is nobody's business any more.
    if client.vm.is_some_and(|vm| provider.forgotten.binary_search(&vm).is_ok()) {
        return None;
    }
    let here = |held: &&(protocol::BindingId, protocol::VmId, protocol::ComponentId)| Some(held.1) == provider.vm;
    let handed = |binding| provider.handed.iter().find(|(lent, _)| *lent == binding).map(|(_, values)| values);
    let stale = |known: &&(protocol::BindingId, protocol::VmId, Values)| {
        Some(known.1) == provider.vm && handed(known.0).is_some_and(|values| *values != known.2)
    };
    if let Some((binding, vm, values)) = client.known.iter().find(stale) {
        let detail = format!("{binding} of {vm} is used with {values:?}, which is no longer so");
        return Some(Breach { property: PRESENT, detail });
    }
    let broken = client.held.iter().filter(here).find(|(binding, _, _)| provider.lent.binary_search(binding).is_err());
    broken.map(|(binding, vm, component)| Breach {
        property: ALL[1].1,
        detail: format!("{component} is running and holds {binding} of {vm}, whose provider is not started"),
    })
}

/// Everything that must hold of a world at any time.
pub fn of_world(world: &World, may_stop: Option<&BTreeSet<Name>>) -> Option<Breach> {
    let alone = world.parts().find_map(|(_, part)| of_part(part, may_stop));
    alone.or_else(|| {
        let views: Vec<View> = world.parts().filter_map(|(_, part)| view(part)).collect();
        let pairs = views.iter().flat_map(|client| views.iter().map(move |provider| (client, provider)));
        pairs.into_iter().find_map(|(client, provider)| between(client, provider))
    })
}

/// Everything that must hold of a world in which nothing can happen any more.
pub fn at_end(world: &World) -> Option<Breach> {
    let rests = |detail: String| Some(Breach { property: RESTS, detail });
    let asked = world.operator().asked;
    if asked < world.operator().script.len() {
        return rests(format!("the operator waits for ever to make request {}", asked + 1));
    }
    for agent in world.agents() {
        if let Some(component) = agent.parked().keys().next() {
            return rests(format!("{} still has notices parked for {component}", agent.id()));
        }
    }
    let excused = excused(world);
    if let Some(change) = world.manager().changes().find(|change| !excused.may_wait(change)) {
        return rests(format!("it never ends: {change}"));
    }
    as_predicted(world, &excused.components).or_else(|| followed(world))
}

/// What a host has told a run, held against what its agent knows and holds now. Of each import and for each text of values,
/// there may be fewer bindings than the run was told of, or more: but not both in one import.
fn followed(world: &World) -> Option<Breach> {
    world.agents().find_map(|agent| {
        let Part::Host(host) = world.part(Place::Host(agent.id())) else { return None };
        host.told.iter().find_map(|(id, told)| {
            let component = agent.components().get(id)?;
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
    })
}

/// What failed for good waits for a person; and what cannot go on without that.
#[derive(Default)]
struct Excused {
    components: BTreeSet<Name>,
    vms: BTreeSet<Name>,
    bindings: BTreeSet<String>,
}

impl Excused {
    /// Whether everything that a change waits for is excused. What was accepted has to be posted, and what was posted
    /// answered, whoever failed.
    fn may_wait(&self, change: &ChangeState) -> bool {
        let excused = |waiting: &Waiting| match waiting {
            Waiting::Component(name) | Waiting::Started(name, _) => self.components.contains(name),
            Waiting::Vm(name) => self.vms.contains(name),
            Waiting::Binding(wire) => self.bindings.contains(wire),
            Waiting::Answer(_) => false,
            Waiting::Change(_) => change.phase.is_some(),
        };
        !self.components.is_empty() && change.waiting.iter().all(excused)
    }
}

/// Whoever failed; its clients, and theirs if they need it; and whoever waits for something back that one of these does
/// not let go of.
fn excused(world: &World) -> Excused {
    let book = world.manager().book();
    let state = |component: &ComponentEntry| {
        let agent = world.agent(book.vm_of(component).id?)?;
        Some(agent.components().get(&component.id?)?.state())
    };
    let mut found = Excused::default();
    let failed = |it: &&ComponentEntry| matches!(state(it), Some(ComponentState::Failed(_)));
    let mut open: Vec<&ComponentEntry> = book.components().filter(failed).collect();
    while let Some(component) = open.pop() {
        if !found.components.insert(component.name.clone()) {
            continue;
        }
        found.vms.insert(book.vm_of(component).name.clone());
        for binding in book.lent(component) {
            found.bindings.insert(book.wire(binding).to_string());
            let client = book.client_of(binding);
            match binding.need() {
                Need::Weak(_) => drop(found.components.insert(client.name.clone())),
                Need::Strong(_) | Need::Value(_) => open.push(client),
            }
        }
        for binding in book.borrowed(component) {
            found.bindings.insert(book.wire(binding).to_string());
            if state(component).is_some_and(ComponentState::is_running) {
                open.push(book.provider_of(binding));
            }
        }
    }
    found
}

/// Whoever is told that a change is done can rely on it: with no change under way, everything is as predicted.
pub const DONE: &str = "what is done is done: with no change under way, nothing moves";

/// What a manager has called done too early.
pub fn while_idle(world: &World) -> Option<Breach> {
    let (manager, book) = (world.manager(), world.manager().book());
    if !manager.is_idle() {
        return None;
    }
    let wrong = book.components().find_map(|entry| {
        let agent = world.agent(book.vm_of(entry).id?)?;
        let component = agent.components().get(&entry.id?)?;
        let (state, rebinds) = (component.state(), component.task_state() == TaskState::UnderWay(Operation::Rebind));
        let wrong = entry.expected != (state == ComponentState::Started);
        let how = if rebinds { "about to rebind".into() } else { state.to_string() };
        (wrong || rebinds).then(|| format!("{} is {how}", entry.name))
    });
    wrong.map(|detail| Breach { property: DONE, detail })
}

/// Whether the manager's prediction, its knowledge and the agents' books agree.
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
        if entry.condition.map(|condition| condition.state) != Some(component.state()) {
            return predicted(format!("the manager has not heard that {} is {}", entry.name, component.state()));
        }
    }
    // What was declared lost and runs on is nobody's business any more.
    let alive = |vm| book.vm_by_id(vm).is_some_and(|entry| entry.health != Health::Dead);
    for agent in world.agents().filter(|agent| alive(agent.id())) {
        let known = |id| book.component_by_id(id).is_some();
        if let Some((_, stray)) = agent.components().iter().find(|(id, _)| !known(**id)) {
            return predicted(format!("{} is on {} but not in the book", stray.name(), agent.id()));
        }
        let heard = book.vm_by_id(agent.id()).map(|vm| vm.state);
        if heard.is_some_and(|heard| heard != agent.state()) {
            return predicted(format!("the manager has not heard that {} is {:?}", agent.id(), agent.state()));
        }
    }
    None
}

/// The end as an operator would describe it: what is in which state and what it holds. Numbers are left out, because they
/// may depend on timing.
pub type End = BTreeMap<Name, (ComponentState, BTreeSet<(Name, Name, HoldingState)>)>;

/// Describes the end of a world.
pub fn end_of(world: &World) -> Arc<End> {
    let book = world.manager().book();
    let components = world.agents().flat_map(|agent| agent.components().values());
    let described = components.map(|component| {
        let held = component.holdings().iter().filter_map(|(binding, holding)| {
            let wire = book.wire_by_id(binding)?;
            Some((holding.import().clone(), wire.provider, holding.state()))
        });
        (component.name().clone(), (component.state(), held.collect()))
    });
    Arc::new(described.collect())
}
