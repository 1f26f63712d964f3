//! One recorded run: a script, the faults that were allowed, and the actions in the order in which they happened.
//!
//! A trace is text (JSON, with a version). [`replay`] lets it happen again, looks at the world after each action, and
//! says where it breaks.

use crate::{
    action::Action,
    environment::{Faults, Line},
    inspector::{Inspector, Pace},
    property::{self, Breach},
    simulate::NO_PANIC,
    world::{self, Event, Part, World},
};
use serde::{Deserialize, Serialize};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// The version of traces that this program writes, and the only one it reads.
pub const VERSION: u32 = 1;

/// One recorded run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The version of this format.
    pub version: u32,
    /// What the operator asked for.
    pub script: Vec<Line>,
    /// What was allowed to go wrong.
    pub faults: Faults,
    /// What happened.
    pub actions: Vec<Action>,
}

/// Why a text is no trace, or a trace is not one of this program.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It does not say what a trace says.
    #[error("this is no trace (is it a file that `simulate` or `explore` wrote?)")]
    Malformed(#[source] serde_json::Error),
    /// It was written by another version.
    #[error("the trace has version {0}, this program reads version {VERSION} (record it again with this program)")]
    Version(u32),
    /// An action cannot happen at its place: the protocol has changed since, or the trace was edited.
    #[error("action {index} of the trace is not possible there: {action} (the trace does not fit this program)")]
    Impossible {
        /// Its place, from 1.
        index: usize,
        /// What was to happen.
        action: Action,
    },
}

/// How a replay went.
#[derive(Clone, Debug)]
pub struct Replay {
    /// What happened, in order.
    pub events: Vec<Event>,
    /// The world at the end.
    pub world: World,
    /// The first property that did not hold, and after how many actions.
    pub breach: Option<(usize, Breach)>,
}

impl Trace {
    /// A trace of this version.
    pub fn new(script: &[Line], faults: Faults, actions: Vec<Action>) -> Self {
        Self { version: VERSION, script: script.to_vec(), faults, actions }
    }

    /// Reads a trace.
    pub fn read(text: &str) -> Result<Self, TraceError> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        // The version first: a trace of another one may look different in every other way.
        let head: Head = serde_json::from_str(text).map_err(TraceError::Malformed)?;
        if head.version != VERSION {
            return Err(TraceError::Version(head.version));
        }
        serde_json::from_str(text).map_err(TraceError::Malformed)
    }

    /// Writes a trace.
    pub fn write(&self) -> String {
        serde_json::to_string(self).expect("a trace holds only what JSON can say")
    }
}

/// A further property, looked at after each action.
pub type Property<'p> = &'p dyn Fn(&World, &Event) -> Option<Breach>;

/// Lets a trace happen again, until it ends or a property does not hold.
pub fn replay(trace: &Trace) -> Result<Replay, TraceError> {
    replay_with(trace, &|_, _| None)
}

/// The same with a further property.
pub fn replay_with(trace: &Trace, further: Property<'_>) -> Result<Replay, TraceError> {
    let script: Arc<[Line]> = trace.script.clone().into();
    let mut world = World::new(script, trace.faults);
    let mut inspector = Inspector::new(&trace.script, trace.faults, Pace::EveryStep);
    let mut events = Vec::with_capacity(trace.actions.len());
    let mut breach = None;
    for (index, action) in trace.actions.iter().copied().enumerate() {
        if !is_possible(&world, action) {
            return Err(TraceError::Impossible { index: index + 1, action });
        }
        // A panic is a breach like any other; the world is not looked at again.
        let Ok(event) = catch_unwind(AssertUnwindSafe(|| world.apply(action))) else {
            let found = Breach { property: NO_PANIC, detail: action.to_string() };
            let world = World::new(trace.script.clone().into(), trace.faults);
            return Ok(Replay { events, world, breach: Some((index + 1, found)) });
        };
        let found = inspector.look(&world, &event).or_else(|| further(&world, &event));
        events.push(event);
        if let Some(found) = found {
            breach = Some((index + 1, found));
            break;
        }
    }
    if breach.is_none() && is_at_rest(&world) {
        breach = property::at_end(&world).map(|found| (events.len(), found));
    }
    Ok(Replay { events, world, breach })
}

/// Whether nothing can happen any more, faults aside.
pub fn is_at_rest(world: &World) -> bool {
    world.actions().into_iter().all(Action::is_fault)
}

/// Whether an action is one of [`World::actions`]; without listing them all, if it can be helped.
pub fn is_possible(world: &World, action: Action) -> bool {
    let operator = world.operator();
    let is_up = |vm| world.agent(vm).is_some();
    match action {
        Action::Ask => match operator.next() {
            Some(line) if line.patient => world.actions().contains(&action),
            next => next.is_some(),
        },
        Action::Crash(vm) => operator.faults.crashes > 0 && is_up(vm),
        Action::CrashManager => operator.faults.crashes > 0,
        Action::Lose(vm) => operator.faults.losses > 0 && is_up(vm),
        Action::Break(one, other) => {
            let link = |from, to| *world.part(world::Place::Notices(from, to)) != Part::Nothing;
            operator.faults.breaks > 0 && one <= other && (link(one, other) || link(other, one))
        }
        Action::Declare(_)
        | Action::Cloud(_)
        | Action::Order(_)
        | Action::Report(_)
        | Action::Notice(..)
        | Action::Finish(..)
        | Action::Fail(..)
        | Action::Abort(..)
        | Action::Die(..)
        | Action::Ring(..)
        | Action::RingManager(_) => {
            let place = world::source(action);
            let mut possible = Vec::new();
            world::possible(place, world.part(place), is_up, &mut possible);
            possible.contains(&action) && world::is_within(operator.faults, action)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        random::Random,
        shapes::{RandomShape, random_script},
        simulate::{Settings, simulate},
    };

    fn recorded(seed: u64) -> (Trace, World) {
        let shape = RandomShape { vms: 8, components_per_vm_max: 2, changes: 3, retries: 20 };
        let script = random_script(&mut Random::new(seed), shape);
        let faults = Faults { failures: 2, deaths: 2, crashes: 2, breaks: 2, losses: 1 };
        let (report, world) = simulate(&script, &Settings { faults, record: true, ..Settings::seeded(seed) });
        (report.trace.expect("it was recorded"), world)
    }

    #[test]
    fn a_recorded_run_happens_again_as_it_was() {
        for seed in 0..5 {
            let (trace, world) = recorded(seed);
            let read = Trace::read(&trace.write()).expect("what was written can be read");
            assert_eq!(read, trace);
            let replayed = replay(&read).expect("what happened is possible");
            assert_eq!(replayed.breach, None);
            assert_eq!(replayed.world, world);
        }
    }

    #[test]
    fn what_is_possible_is_what_the_world_lists() {
        let (trace, _) = recorded(1);
        let mut world = World::new(trace.script.clone().into(), trace.faults);
        for action in &trace.actions {
            let listed = world.actions();
            assert!(listed.iter().all(|action| is_possible(&world, *action)));
            assert!(trace.actions.iter().all(|other| is_possible(&world, *other) == listed.contains(other)));
            world.apply(*action);
        }
    }

    #[test]
    fn a_text_that_is_no_trace_is_refused_with_the_reason() {
        let error = |text: &str| Trace::read(text).expect_err("it is no trace").to_string();
        assert!(error("hello").starts_with("this is no trace"));
        assert!(error("{\"version\": 1}").starts_with("this is no trace"));
        assert!(error("{\"version\": 99}").starts_with("the trace has version 99"));
    }

    #[test]
    fn an_action_that_cannot_happen_is_named() {
        let (mut trace, _) = recorded(1);
        trace.actions.swap(0, 1);
        let error = replay(&trace).expect_err("nothing comes before the first request").to_string();
        assert!(error.starts_with("action 1 of the trace is not possible there"), "{error}");
    }
}
