//! Every order of events.
//!
//! A breadth-first walk, level by level, on all cores, that remembers a 128-bit fingerprint of each world it has seen.
//! Every new world is checked; every world in which nothing can happen any more is an end and is checked as one. Because
//! the walk is breadth-first, the first breach found has a shortest counterexample.
//!
//! Two worlds with the same fingerprint are taken to be one. With 128 bits, among a thousand million worlds, the chance
//! that any two different ones collide is below one in 10^20.

mod atlas;
mod flatten;
mod graph;
mod intern;
mod orbit;
mod seen;
mod walker;

use crate::{
    action::Action,
    environment::{Faults, Line},
    property::{self, Breach, Disruption, End},
    scenario::{Answer, Expected, Scenario},
    world::{Event, World},
};
use atlas::{Atlas, Stepped};
use graph::Graph;
use orbit::Orbits;
use protocol::Name;
use seen::Seen;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use walker::{Row, Walker};

/// How to explore.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many threads walk.
    pub threads: usize,
    /// Whether actions that cannot make a difference are taken at once (ample sets).
    pub ample: bool,
    /// Whether worlds that differ only in which of several alike VMs is where are taken to be one.
    pub symmetry: bool,
    /// Give up beyond so many worlds.
    pub states_max: usize,
    /// A property that is not asked for, to see what the others notice without it.
    pub without: Option<&'static str>,
}

impl Default for Settings {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { threads, ample: true, symmetry: true, states_max: 10_000_000, without: None }
    }
}

impl Settings {
    /// Every single interleaving, with no reduction.
    pub fn full() -> Self {
        Self { ample: false, symmetry: false, ..Self::default() }
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Different worlds.
    pub states: usize,
    /// Ways from one to another.
    pub edges: usize,
    /// Worlds in which nothing can happen any more.
    pub ends: usize,
    /// The different ends, as an operator would describe them.
    pub outcomes: Vec<Arc<End>>,
    /// The least and the most messages on a way to an end; absent if there is a way that never ends.
    pub messages: Option<(u32, u32)>,
    /// The longest way to an end, in actions; absent if there is a way that never ends.
    pub longest: Option<u32>,
    /// Bytes held for each world at the end.
    pub bytes_per_state: usize,
    /// Different parts, over all places.
    pub parts: usize,
    /// Whether every world was looked at.
    pub complete: bool,
    /// The first breach, with the shortest way to it.
    pub breach: Option<(Breach, Vec<Action>)>,
    /// What happened at least once on the way.
    pub sometimes: BTreeSet<&'static str>,
    /// Whether components may stop by themselves or with a lost VM, so that not every property is asked for.
    pub disrupted: bool,
}

/// How far an exploration is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Different worlds so far.
    pub states: usize,
    /// Those among them that are still to be looked at.
    pub open: usize,
    /// How many actions lead to these.
    pub depth: usize,
}

/// Explores a script from an empty world.
pub fn explore(script: &Arc<[Line]>, faults: Faults, settings: Settings) -> Findings {
    Search::new(script, faults, None, settings).run(&mut |_| {})
}

/// The same without faults, for one who wants to be told how far it is.
pub fn explore_script(script: &Arc<[Line]>, settings: Settings, watch: &mut dyn FnMut(Progress)) -> Findings {
    Search::new(script, Faults::default(), None, settings).run(watch)
}

/// Explores a scenario, and holds every path against what it says must come of it.
pub fn explore_scenario(scenario: &Scenario, settings: Settings) -> Findings {
    explore_watched(scenario, settings, &mut |_| {})
}

/// The same, for one who wants to be told how far it is.
pub fn explore_watched(scenario: &Scenario, settings: Settings, watch: &mut dyn FnMut(Progress)) -> Findings {
    Search::new(&scenario.lines, scenario.faults, Some(&scenario.expected), settings).run(watch)
}

/// Lets a list of actions happen, one after the other.
pub fn retrace(script: &Arc<[Line]>, faults: Faults, actions: &[Action]) -> (World, Vec<Event>) {
    let mut world = World::new(script.clone(), faults);
    let events = actions.iter().map(|action| world.apply(*action)).collect();
    (world, events)
}

struct Search<'a> {
    script: &'a Arc<[Line]>,
    faults: Faults,
    settings: Settings,
    expected: Option<&'a Expected>,
    may_stop: Option<BTreeSet<Name>>,
    disruption: Disruption,
    /// Components that must be stopped on some path, and have not been seen to.
    unstopped: Mutex<BTreeSet<Name>>,
    orbits: Orbits,
    atlas: Atlas,
    seen: Seen,
    /// The first breach: the world that shows it, or the one before the step that does, with that step.
    breach: Mutex<Option<(Breach, u32, Option<u32>)>>,
    ends: Mutex<BTreeMap<Arc<End>, (usize, u32)>>,
}

/// A world still to be looked at.
#[derive(Clone, Copy)]
struct Open<'l> {
    index: u32,
    row: &'l [u32],
    print: u128,
}

/// Worlds still to be looked at, their rows in one piece: a list for each row would cost more than what is in it.
#[derive(Default)]
struct Level {
    /// Each with its number, its fingerprint, and where its row ends.
    worlds: Vec<(u32, u128, usize)>,
    rows: Vec<u32>,
}

impl Level {
    fn push(&mut self, open: Open<'_>) {
        self.rows.extend_from_slice(open.row);
        self.worlds.push((open.index, open.print, self.rows.len()));
    }

    fn world(&self, place: usize) -> Open<'_> {
        let (index, print, to) = self.worlds[place];
        let from = place.checked_sub(1).map_or(0, |before| self.worlds[before].2);
        Open { index, row: &self.rows[from..to], print }
    }

    fn append(&mut self, other: Self) {
        let moved = self.rows.len();
        self.rows.extend_from_slice(&other.rows);
        self.worlds.extend(other.worlds.into_iter().map(|(index, print, to)| (index, print, to + moved)));
    }
}

/// What one thread brings home from one level.
#[derive(Default)]
struct Harvest {
    next: Level,
    graph: Graph,
}

impl<'a> Search<'a> {
    fn new(script: &'a Arc<[Line]>, faults: Faults, expected: Option<&'a Expected>, settings: Settings) -> Self {
        let disrupted = faults.stop_components() || property::loses(script);
        let unstopped = expected.map(|expected| expected.sometimes_stopped.clone()).unwrap_or_default();
        Self {
            script,
            faults,
            settings,
            expected,
            may_stop: (!disrupted).then(|| property::may_stop(script)),
            disruption: Disruption::of(script),
            unstopped: Mutex::new(unstopped),
            orbits: if settings.symmetry { Orbits::find(script) } else { Orbits::default() },
            atlas: Atlas::new(),
            seen: Seen::default(),
            breach: Mutex::new(None),
            ends: Mutex::new(BTreeMap::new()),
        }
    }

    fn run(self, watch: &mut dyn FnMut(Progress)) -> Findings {
        let world = World::new(self.script.clone(), self.faults);
        let mut walkers: Vec<Walker<'_>> = (0..self.settings.threads.max(1)).map(|_| self.walker()).collect();
        let row = walkers[0].row(&world);
        let print = walkers[0].print(&row);
        let orbit = if self.orbits.is_empty() { print } else { walkers[0].print_of_orbit(&row) };
        self.seen.insert(orbit);
        let mut graph = Graph::default();
        graph.root();
        let mut level = Level::default();
        level.push(Open { index: 0, row: &row, print });
        let mut complete = true;
        let mut depth = 0;
        while !level.worlds.is_empty() && self.found().is_none() {
            if self.seen.count() > self.settings.states_max {
                complete = false;
                break;
            }
            let harvests = self.walk_level(&mut walkers, &level);
            level = Level::default();
            for harvest in harvests {
                level.append(harvest.next);
                graph.merge(harvest.graph);
            }
            depth += 1;
            watch(Progress { states: self.seen.count(), open: level.worlds.len(), depth });
        }
        let sometimes = walkers.iter().flat_map(|walker| walker.sights.iter().copied()).collect();
        drop(walkers);
        self.conclude(graph, complete, sometimes)
    }

    fn walker(&self) -> Walker<'_> {
        Walker::new(&self.atlas, self.faults.repeats(), self.may_stop.as_ref(), &self.orbits)
    }

    fn found(&self) -> Option<(Breach, u32, Option<u32>)> {
        self.breach.lock().expect("no thread panics while it holds the breach").clone()
    }

    /// Lets every thread take worlds of this level, a handful at a time.
    fn walk_level(&self, walkers: &mut [Walker<'_>], level: &Level) -> Vec<Harvest> {
        const HANDFUL: usize = 256;
        // A small level is not worth a second thread.
        let size = level.worlds.len();
        let threads = walkers.len().min(size.div_ceil(HANDFUL)).max(1);
        let next = AtomicUsize::new(0);
        let work = |walker: &mut Walker<'_>| {
            let mut harvest = Harvest::default();
            loop {
                let from = next.fetch_add(HANDFUL, Ordering::Relaxed);
                if from >= size {
                    return harvest;
                }
                for place in from..size.min(from + HANDFUL) {
                    self.expand(walker, level.world(place), &mut harvest);
                }
            }
        };
        if threads == 1 {
            return vec![work(&mut walkers[0])];
        }
        std::thread::scope(|scope| {
            let work = &work;
            let walking: Vec<_> =
                walkers[..threads].iter_mut().map(|walker| scope.spawn(move || work(walker))).collect();
            walking.into_iter().map(|thread| thread.join().expect("a walker does not panic")).collect()
        })
    }

    /// Looks at everything that can happen next in one world.
    fn expand(&self, walker: &mut Walker<'_>, open: Open<'_>, harvest: &mut Harvest) {
        let mut actions = walker.actions(open.row);
        if actions.iter().all(|(action, _)| action.is_fault()) {
            self.record_end(walker, open);
        }
        if self.settings.ample
            && let Some(quiet) = actions.iter().copied().find(|action| walker.is_quiet(open.row, *action))
        {
            actions = vec![quiet];
        }
        let (mut row, mut changed) = (Row::new(), Vec::new());
        for action in actions {
            row.clear();
            row.extend_from_slice(open.row);
            let mut print = open.print;
            let stepped = walker.apply(&mut row, &mut print, action, &mut changed);
            if let Some(breach) = stepped.and_then(|step| self.look_at_step(walker, open, &row, &step)) {
                self.record_step(breach, open.index, action.1);
            }
            let orbit = if self.orbits.is_empty() { print } else { walker.print_of_orbit(&row) };
            let (index, new) = self.seen.insert(orbit);
            harvest.graph.edge(open.index, index, action.0.is_message());
            if !new {
                continue;
            }
            harvest.graph.discover(index, open.index, action.1);
            if let Some(expected) = self.expected {
                self.compare(expected, walker, (open, action), (&row, &changed), index);
            }
            if walker.is_idle(&row)
                && let Some(breach) = property::while_idle(&walker.world(&row), &self.disruption)
            {
                self.record(breach, index);
            }
            if let Some(breach) = walker.breach(&row, &changed) {
                self.record(breach, index);
            }
            harvest.next.push(Open { index, row: &row, print });
        }
    }

    /// What is wrong with a step, alone or seen together with the whole world after it.
    fn look_at_step(&self, walker: &mut Walker<'_>, before: Open<'_>, row: &Row, step: &Stepped) -> Option<Breach> {
        let alone = step.breach.clone();
        alone.or_else(|| {
            let outputs = step.look.as_ref()?;
            let (before, after) = (walker.world(before.row), walker.world(row));
            property::of_event(before.manager(), &after, outputs, &self.disruption)
        })
    }

    /// Holds one event against what the scenario expects of it.
    fn compare(
        &self,
        expected: &Expected,
        walker: &mut Walker<'_>,
        (before, action): (Open<'_>, (Action, u32)),
        (row, changed): (&Row, &[usize]),
        index: u32,
    ) {
        for name in walker.stopping(row, changed) {
            self.unstopped.lock().expect("no thread panics while it holds the names").remove(&name);
            if expected.never_stopped.contains(&name) {
                let detail = format!("{name} is stopped, and must never be");
                self.record(Breach { property: property::AS_TOLD, detail }, index);
            }
        }
        // Only the answer to a request needs the event itself.
        if action.0 == Action::Ask {
            let mut world = walker.world(before.row);
            let event = world.apply(action.0);
            if let Some(detail) = expected.objection(&world, &event) {
                self.record(Breach { property: property::AS_TOLD, detail }, index);
            }
        }
    }

    fn record(&self, breach: Breach, index: u32) {
        if self.settings.without == Some(breach.property) {
            return;
        }
        let mut found = self.breach.lock().expect("no thread panics while it holds the breach");
        // Whatever thread comes first: the same breach of the same world each time.
        if found.as_ref().is_none_or(|(known, at, _)| (&breach, index) < (known, *at)) {
            *found = Some((breach, index, None));
        }
    }

    /// Records a breach that is shown by a step, which may lead to a world that was seen before.
    fn record_step(&self, breach: Breach, before: u32, action: u32) {
        if self.settings.without == Some(breach.property) {
            return;
        }
        let mut found = self.breach.lock().expect("no thread panics while it holds the breach");
        if found.as_ref().is_none_or(|(known, at, _)| (&breach, before) < (known, *at)) {
            *found = Some((breach, before, Some(action)));
        }
    }

    fn record_end(&self, walker: &mut Walker<'_>, open: Open<'_>) {
        let world = walker.world(open.row);
        if let Some(breach) = property::at_end(&world) {
            return self.record(breach, open.index);
        }
        let objections = self.expected.map(|expected| expected.objections_at_end(&world)).unwrap_or_default();
        if let Some(detail) = objections.into_iter().next() {
            return self.record(Breach { property: property::AS_TOLD, detail }, open.index);
        }
        let mut ends = self.ends.lock().expect("no thread panics while it holds the ends");
        ends.entry(property::end_of(&world)).or_insert((0, open.index)).0 += 1;
        // Only faults that change what there is may change the end, and requests that are accepted on some paths only.
        let undecided = self.expected.is_some_and(|expected| expected.answers.contains(&Answer::Either));
        if ends.len() > 1 && self.may_stop.is_some() && !undecided {
            drop(ends);
            let detail = "two ways of the same events end differently".into();
            self.record(Breach { property: property::ONE_END, detail }, open.index);
        }
    }

    fn conclude(self, mut graph: Graph, complete: bool, sometimes: BTreeSet<&'static str>) -> Findings {
        let states = self.seen.count();
        let way = |index: u32, last: Option<u32>, graph: &Graph| {
            graph.way(index).into_iter().chain(last).map(|it| *self.atlas.actions.value(it).0).collect()
        };
        let unstopped = self.unstopped.lock().expect("no thread panics while it holds the names").first().cloned();
        let missing = unstopped.filter(|_| complete).map(|name| {
            let detail = format!("{name} is stopped on no path, and should be on some");
            (Breach { property: property::AS_TOLD, detail }, 0, None)
        });
        let breach = self.found().or(missing).map(|(breach, index, last)| (breach, way(index, last, &graph)));
        let bytes_per_state = (self.seen.bytes() + graph.bytes()) / states.max(1);
        let edges = graph.edges();
        let ends = self.ends.into_inner().expect("no thread panics while it holds the ends");
        let explored = complete && breach.is_none();
        let lengths = explored.then(|| graph.lengths(states)).flatten();
        Findings {
            states,
            edges,
            ends: ends.values().map(|(count, _)| count).sum(),
            outcomes: ends.into_keys().collect(),
            messages: lengths.map(|lengths| (lengths.messages_min, lengths.messages_max)),
            longest: lengths.map(|lengths| lengths.longest),
            bytes_per_state,
            parts: self.atlas.parts.count(),
            complete,
            breach,
            sometimes,
            disrupted: self.may_stop.is_none(),
        }
    }
}
