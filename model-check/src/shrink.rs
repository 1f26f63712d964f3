//! Shortens a trace that breaks a property, as long as it still breaks the same one.
//!
//! Script, faults and actions are made smaller in turn, a half, a quarter, an eighth … at a time, until nothing more can
//! be left out. Leaving an edit out of the script renumbers everything after it; so actions are remembered by the names
//! of their VMs and components, and are looked up again in the smaller world. What is impossible there is skipped. After the
//! last action, the run goes on with the first possible action until it is at rest.

use crate::{
    action::Action,
    environment::{Faults, Line},
    inspector::{Inspector, Pace},
    property::{self, Breach},
    trace::{Property, Trace, is_at_rest, is_possible},
    world::{Event, Output, World},
};
use protocol::{
    ComponentId, Instruction, Name, VmId, agent,
    manager::{self, CloudTask, Request},
};
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// How many runs are tried before the shortest so far is good enough.
const ATTEMPTS_MAX: u32 = 5_000;

/// Beyond so many actions after the recorded ones, a run is given up.
const COURSE_MAX: usize = 100_000;

/// Shortens a trace that breaks a property. Returns the shorter trace and the breach; nothing if it breaks none.
pub fn shrink(trace: &Trace) -> Option<(Trace, Breach)> {
    shrink_with(trace, &|_, _| None)
}

/// The same with a further property.
pub fn shrink_with(trace: &Trace, further: Property<'_>) -> Option<(Trace, Breach)> {
    let story = Story::of(trace);
    let (actions, breach) = story.run(further)?;
    let mut shrinking = Shrinking { further, property: breach.property, attempts: 0, story, actions, breach };
    loop {
        let before = shrinking.story.size();
        shrinking.lines();
        shrinking.edits();
        shrinking.faults();
        shrinking.moves();
        if shrinking.story.size() == before || shrinking.attempts >= ATTEMPTS_MAX {
            break;
        }
    }
    shrinking.exact();
    let Shrinking { story, actions, breach, .. } = shrinking;
    Some((Trace::new(&story.script, story.faults, actions), breach))
}

/// A VM or component by its name, and its index among those of that name.
type Alias = (Name, usize);

/// An action by names instead of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Move {
    action: Action,
    vms: Vec<Option<Alias>>,
    component: Option<Alias>,
}

/// A run to be tried.
#[derive(Clone, Debug)]
struct Story {
    script: Vec<Line>,
    faults: Faults,
    moves: Vec<Move>,
    /// Whether the rest takes its course when the moves are used up.
    goes_on: bool,
}

impl Story {
    /// A trace with names instead of numbers.
    fn of(trace: &Trace) -> Self {
        let script: Arc<[Line]> = trace.script.clone().into();
        let mut world = World::new(script, trace.faults);
        let mut cast = Cast::default();
        let mut moves = Vec::new();
        for action in &trace.actions {
            moves.push(cast.disguise(*action));
            // The last action may be one that makes a machine panic.
            let Ok(event) = catch_unwind(AssertUnwindSafe(|| world.apply(*action))) else { break };
            cast.learn(&event);
        }
        Self { script: trace.script.clone(), faults: trace.faults, moves, goes_on: true }
    }

    fn size(&self) -> (usize, usize, u32, usize) {
        let Faults { failures, deaths, crashes, breaks, losses } = self.faults;
        let edits = self.script.iter().map(|line| wishes_of(line).unwrap_or(0)).sum();
        (self.script.len(), edits, failures + deaths + crashes + breaks + losses, self.moves.len())
    }

    /// Lets the story happen; returns what really happened and the breach it ends in, if it does.
    fn run(&self, further: Property<'_>) -> Option<(Vec<Action>, Breach)> {
        let script: Arc<[Line]> = self.script.clone().into();
        let mut stage = Stage {
            world: World::new(script, self.faults),
            inspector: Inspector::new(&self.script, self.faults, Pace::EveryStep),
            cast: Cast::default(),
            actions: Vec::new(),
        };
        for planned in &self.moves {
            let Some(action) = stage.cast.recognise(planned) else { continue };
            if !is_possible(&stage.world, action) {
                continue;
            }
            if let Some(breach) = stage.act(action, further) {
                return Some((stage.actions, breach));
            }
        }
        for _ in 0..if self.goes_on { COURSE_MAX } else { 0 } {
            let next = stage.world.actions().into_iter().find(|action| !action.is_fault());
            let Some(action) = next else { break };
            if let Some(breach) = stage.act(action, further) {
                return Some((stage.actions, breach));
            }
        }
        let breach = is_at_rest(&stage.world).then(|| property::at_end(&stage.world)).flatten()?;
        Some((stage.actions, breach))
    }
}

/// A world in which a story happens.
struct Stage {
    world: World,
    inspector: Inspector,
    cast: Cast,
    actions: Vec<Action>,
}

impl Stage {
    fn act(&mut self, action: Action, further: Property<'_>) -> Option<Breach> {
        self.actions.push(action);
        let world = &mut self.world;
        let Ok(event) = catch_unwind(AssertUnwindSafe(|| world.apply(action))) else {
            return Some(Breach { property: crate::simulate::NO_PANIC, detail: action.to_string() });
        };
        self.cast.learn(&event);
        self.inspector.look(&self.world, &event).or_else(|| further(&self.world, &event))
    }
}

/// The names and numbers of VMs and components in one run.
#[derive(Default)]
struct Cast {
    vms: BTreeMap<Alias, VmId>,
    components: BTreeMap<Alias, ComponentId>,
    vm_aliases: BTreeMap<VmId, Alias>,
    component_aliases: BTreeMap<ComponentId, Alias>,
}

impl Cast {
    /// Takes note of the VMs and components that the manager has numbered.
    fn learn(&mut self, event: &Event) {
        for output in &event.outputs {
            match output {
                Output::Manager(manager::Output::ToCloud(CloudTask::Create(id, name))) => {
                    let alias = next_alias(&self.vms, name);
                    self.vms.insert(alias.clone(), *id);
                    self.vm_aliases.insert(*id, alias);
                }
                Output::Manager(manager::Output::ToAgent(_, order)) => {
                    if let Instruction::AddComponent { name, .. } = &order.instruction {
                        let (id, alias) = (ComponentId(order.number.0), next_alias(&self.components, name));
                        self.components.insert(alias.clone(), id);
                        self.component_aliases.insert(id, alias);
                    }
                }
                Output::Manager(_) | Output::Agent(_) => {}
            }
        }
    }

    fn disguise(&self, action: Action) -> Move {
        let (vms, component) = subjects(action);
        Move {
            action,
            vms: vms.iter().map(|vm| self.vm_aliases.get(vm).cloned()).collect(),
            component: component.and_then(|id| self.component_aliases.get(&id).cloned()),
        }
    }

    fn recognise(&self, planned: &Move) -> Option<Action> {
        let vm = |index: usize| planned.vms.get(index)?.as_ref().and_then(|alias| self.vms.get(alias)).copied();
        let component = || planned.component.as_ref().and_then(|alias| self.components.get(alias)).copied();
        Some(match planned.action {
            Action::Ask => Action::Ask,
            Action::CrashManager => Action::CrashManager,
            Action::RingManager(manager::Alarm::CreateAgain(_)) => {
                Action::RingManager(manager::Alarm::CreateAgain(vm(0)?))
            }
            Action::RingManager(manager::Alarm::Suspicion(_, number)) => {
                Action::RingManager(manager::Alarm::Suspicion(vm(0)?, number))
            }
            Action::Declare(_) => Action::Declare(vm(0)?),
            Action::Cloud(_) => Action::Cloud(vm(0)?),
            Action::Order(_) => Action::Order(vm(0)?),
            Action::Report(_) => Action::Report(vm(0)?),
            Action::Crash(_) => Action::Crash(vm(0)?),
            Action::Lose(_) => Action::Lose(vm(0)?),
            Action::Notice(..) => Action::Notice(vm(0)?, vm(1)?),
            Action::Break(..) => Action::Break(vm(0)?.min(vm(1)?), vm(0)?.max(vm(1)?)),
            Action::Finish(..) => Action::Finish(vm(0)?, component()?),
            Action::Fail(..) => Action::Fail(vm(0)?, component()?),
            Action::Abort(..) => Action::Abort(vm(0)?, component()?),
            Action::Die(..) => Action::Die(vm(0)?, component()?),
            Action::Ring(_, agent::Alarm::Retry { serial, .. }) => {
                Action::Ring(vm(0)?, agent::Alarm::Retry { component: component()?, serial })
            }
            Action::Ring(_, agent::Alarm::Steady { serial, .. }) => {
                Action::Ring(vm(0)?, agent::Alarm::Steady { component: component()?, serial })
            }
        })
    }
}

/// The VMs and the component that an action is about.
fn subjects(action: Action) -> (Vec<VmId>, Option<ComponentId>) {
    match action {
        Action::Ask | Action::CrashManager => (Vec::new(), None),
        Action::Declare(vm)
        | Action::Cloud(vm)
        | Action::Order(vm)
        | Action::Report(vm)
        | Action::Crash(vm)
        | Action::Lose(vm)
        | Action::RingManager(manager::Alarm::CreateAgain(vm) | manager::Alarm::Suspicion(vm, _)) => (vec![vm], None),
        Action::Notice(one, other) | Action::Break(one, other) => (vec![one, other], None),
        Action::Finish(vm, component)
        | Action::Fail(vm, component)
        | Action::Abort(vm, component)
        | Action::Die(vm, component)
        | Action::Ring(vm, agent::Alarm::Retry { component, .. } | agent::Alarm::Steady { component, .. }) => {
            (vec![vm], Some(component))
        }
    }
}

fn next_alias<T>(known: &BTreeMap<Alias, T>, name: &Name) -> Alias {
    let count = known.range((name.clone(), 0)..=(name.clone(), usize::MAX)).count();
    (name.clone(), count)
}

/// A story on its way to its shortest.
struct Shrinking<'p> {
    further: Property<'p>,
    property: &'static str,
    attempts: u32,
    story: Story,
    actions: Vec<Action>,
    breach: Breach,
}

impl Shrinking<'_> {
    /// Keeps a smaller story if it still breaks the same property.
    fn attempt(&mut self, story: Story) -> bool {
        if self.attempts >= ATTEMPTS_MAX {
            return false;
        }
        self.attempts += 1;
        match story.run(self.further) {
            Some((actions, breach)) if breach.property == self.property => {
                (self.story, self.actions, self.breach) = (story, actions, breach);
                true
            }
            _ => false,
        }
    }

    fn lines(&mut self) {
        let count = self.story.script.len();
        self.leave_out(count, |story, from, to| {
            story.script.drain(from..to);
        });
    }

    fn edits(&mut self) {
        for line in 0..self.story.script.len() {
            let Some(count) = wishes_of(&self.story.script[line]) else { continue };
            self.leave_out(count, |story, from, to| {
                if let Request::Make(change) = &mut story.script[line].request {
                    change.edits.drain(from..to);
                }
            });
        }
    }

    fn faults(&mut self) {
        let sorts: [fn(&mut Faults) -> &mut u32; 5] = [
            |faults| &mut faults.failures,
            |faults| &mut faults.deaths,
            |faults| &mut faults.crashes,
            |faults| &mut faults.breaks,
            |faults| &mut faults.losses,
        ];
        for sort in sorts {
            while *sort(&mut self.story.faults) > 0 {
                let mut smaller = self.story.clone();
                *sort(&mut smaller.faults) -= 1;
                if !self.attempt(smaller) {
                    break;
                }
            }
        }
    }

    fn moves(&mut self) {
        let count = self.story.moves.len();
        self.leave_out(count, |story, from, to| {
            story.moves.drain(from..to);
        });
    }

    /// Makes the actions after the recorded ones explicit, and leaves out those that are not needed.
    fn exact(&mut self) {
        let trace = Trace::new(&self.story.script, self.story.faults, self.actions.clone());
        let exact = Story { goes_on: false, ..Story::of(&trace) };
        if self.attempt(exact) {
            self.moves();
        }
    }

    /// Tries to leave out a half, then each quarter, each eighth … of a list, down to single ones.
    fn leave_out(&mut self, count: usize, remove: impl Fn(&mut Story, usize, usize)) {
        let (mut count, mut piece) = (count, count.div_ceil(2));
        while piece > 0 && count > 0 {
            let mut from = 0;
            while from < count {
                let to = count.min(from + piece);
                let mut smaller = self.story.clone();
                remove(&mut smaller, from, to);
                if self.attempt(smaller) {
                    count -= to - from;
                } else {
                    from = to;
                }
            }
            piece /= 2;
        }
    }
}

fn wishes_of(line: &Line) -> Option<usize> {
    if let Request::Make(change) = &line.request { Some(change.edits.len()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        random::Random,
        shapes::{RandomShape, random_script},
        simulate::{Settings, simulate},
        trace,
    };
    use protocol::Work;

    /// A property that does not hold: that nothing is ever stopped.
    fn nothing_stops(_: &World, event: &Event) -> Option<Breach> {
        let stops =
            |output: &Output| matches!(output, Output::Agent(agent::Output::ToHost(task)) if task.work == Work::Stop);
        let detail = String::from("something is stopped");
        event.outputs.iter().any(stops).then_some(Breach { property: "nothing stops", detail })
    }

    fn recorded(seed: u64) -> Trace {
        let shape = RandomShape { vms: 6, components_per_vm_max: 2, changes: 4, retries: 20 };
        let script = random_script(&mut Random::new(seed), shape);
        let faults = Faults { failures: 2, deaths: 2, crashes: 2, breaks: 2, losses: 1 };
        let (report, _) = simulate(&script, &Settings { faults, record: true, ..Settings::seeded(seed) });
        assert_eq!(report.violation, None);
        report.trace.expect("it was recorded")
    }

    #[test]
    fn a_trace_is_shortened_to_what_breaks_the_property() {
        // What a trace is shortened to depends on where it began: the shortest of a few is short.
        let shortened = (1..=4).map(|seed| shrink_with(&recorded(seed), &nothing_stops).expect("something is stopped"));
        let (short, breach) = shortened.min_by_key(|(short, _)| short.actions.len()).expect("there are several");
        assert_eq!(breach.property, "nothing stops");
        // A component or two, with a reason to stop, are all it takes.
        let edits: usize = short.script.iter().filter_map(wishes_of).sum();
        assert!(edits <= 8 && short.actions.len() <= 25, "{short:?}");
        let Faults { failures, deaths, crashes, breaks, losses } = short.faults;
        assert!(failures + deaths + crashes + breaks + losses <= 1, "{short:?}");
        let again = trace::replay_with(&short, &nothing_stops).expect("what was shortened can be replayed");
        assert_eq!(again.breach.map(|(at, found)| (at, found.property)), Some((short.actions.len(), "nothing stops")));
    }

    #[test]
    fn a_trace_that_breaks_nothing_is_not_shortened() {
        assert!(shrink(&recorded(4)).is_none());
    }
}
