//! Every order of events.
//!
//! A breadth-first walk, level by level, on all cores, that remembers a 128-bit fingerprint of each world it has seen.
//! Every new world is checked; every world in which nothing can happen any more is an end and is checked as one. Because
//! the walk is breadth-first, the first breach found has a shortest counterexample; with reductions, shortest is meant
//! without the actions that are taken at once.
//!
//! Three reductions keep the number of worlds small, each with the argument for its soundness beside the code: ample sets
//! (`ample.rs`), links (below) and symmetry (`orbit.rs`).
//!
//! # Links
//!
//! A crash or a break sends the last letter of a link again. Letters are numbered, and a link drops what has arrived
//! before: taking such a letter changes nothing but the link itself, and commutes with everything, with another repetition
//! too. So it can be dropped at the moment at which it is sent again; then neither numbers nor the last letter are needed,
//! and links are explored as if letters were never repeated. Whatever else a crash does is explored. A counterexample is
//! told as it happens with repetitions.
//!
//! Two worlds with the same fingerprint are taken to be one. With 128 bits, among a thousand million worlds, the chance
//! that any two different ones collide is below one in 10^20.

mod ample;
mod atlas;
mod flatten;
mod graph;
pub mod independence;
mod intern;
mod orbit;
mod seen;
mod walker;

use crate::{
    action::Action,
    environment::{Faults, Line},
    property::{self, Breach, Disruption, End},
    scenario::{Answer, Expected, Scenario},
    world::{self, Event, World},
};
use atlas::{Atlas, MANAGER, Stepped};
use graph::{Graph, Span};
use orbit::Orbits;
use protocol::{Name, manager::Request};
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
    /// Whether a letter that comes a second time is dropped without a step of its own.
    pub links: bool,
    /// Whether worlds that differ only in which of several alike VMs is where are taken to be one.
    pub symmetry: bool,
    /// Give up beyond so many worlds.
    pub states_max: usize,
    /// Whether to go on after the first breach, so that [`Findings::breaches`] lists all of them.
    pub thorough: bool,
    /// A property that is not asked for, to see what the others notice without it.
    pub without: Option<&'static str>,
    /// Whether each step must be one that the proof for every size covers. Of a mutant of the rules this is the first thing
    /// to break, and what else breaks would not be seen.
    pub covered: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let states_max = 10_000_000;
        Self {
            threads,
            ample: true,
            links: true,
            symmetry: true,
            states_max,
            thorough: false,
            without: None,
            covered: true,
        }
    }
}

impl Settings {
    /// Every single interleaving, with no reduction.
    pub fn full() -> Self {
        Self { ample: false, links: false, symmetry: false, ..Self::default() }
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
    /// Every breach that was met: with [`Settings::thorough`] all there are.
    pub breaches: BTreeSet<Breach>,
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

/// Explores a script without faults, and reports progress after each level.
pub fn explore_script(script: &Arc<[Line]>, settings: Settings, watch: &mut dyn FnMut(Progress)) -> Findings {
    Search::new(script, Faults::default(), None, settings).run(watch)
}

/// Explores a scenario, and holds every path against what it says must come of it.
pub fn explore_scenario(scenario: &Scenario, settings: Settings) -> Findings {
    explore_watched(scenario, settings, &mut |_| {})
}

/// Explores a scenario, and reports progress after each level.
pub fn explore_watched(scenario: &Scenario, settings: Settings, watch: &mut dyn FnMut(Progress)) -> Findings {
    Search::new(&scenario.lines, scenario.faults, Some(&scenario.expected), settings).run(watch)
}

/// The replicas that symmetry takes to be alike, class by class: each as the names of its VM and its components. Two ends
/// that differ only in which of them is where are found once.
pub fn interchangeable(scenario: &Scenario) -> Vec<Vec<Vec<Name>>> {
    Orbits::find(&scenario.lines, Some(&scenario.expected)).classes()
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
    breaches: Mutex<BTreeSet<Breach>>,
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

/// What one thread found in one level.
#[derive(Default)]
struct Harvest {
    next: Level,
    graph: Graph,
}

impl<'a> Search<'a> {
    fn new(script: &'a Arc<[Line]>, faults: Faults, expected: Option<&'a Expected>, settings: Settings) -> Self {
        let disrupted = faults.stop_components() || property::loses(script);
        // Neither argument for soundness covers a cancellation, which takes back what others may depend on.
        let cancels = script.iter().any(|line| matches!(line.request, Request::Cancel(_)));
        let settings =
            Settings { ample: settings.ample && !cancels, symmetry: settings.symmetry && !cancels, ..settings };
        let unstopped = expected.map(|expected| expected.sometimes_stopped.clone()).unwrap_or_default();
        Self {
            script,
            faults,
            settings,
            expected,
            may_stop: (!disrupted).then(|| property::may_stop(script)),
            disruption: Disruption::of(script),
            unstopped: Mutex::new(unstopped),
            orbits: if settings.symmetry { Orbits::find(script, expected) } else { Orbits::default() },
            atlas: Atlas::new(),
            seen: Seen::default(),
            breach: Mutex::new(None),
            breaches: Mutex::default(),
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
        while !level.worlds.is_empty() && (self.settings.thorough || self.found().is_none()) {
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
        let numbered = self.faults.repeats() && !self.settings.links;
        Walker::new(&self.atlas, numbered, self.may_stop.as_ref(), &self.orbits)
    }

    fn found(&self) -> Option<(Breach, u32, Option<u32>)> {
        self.breach.lock().expect("no thread panics while it holds the breach").clone()
    }

    /// Lets the threads expand the worlds of this level, a batch at a time.
    fn walk_level(&self, walkers: &mut [Walker<'_>], level: &Level) -> Vec<Harvest> {
        const BATCH: usize = 256;
        // A small level is not worth a second thread.
        let size = level.worlds.len();
        let threads = walkers.len().min(size.div_ceil(BATCH)).max(1);
        let next = AtomicUsize::new(0);
        let work = |walker: &mut Walker<'_>| {
            let mut harvest = Harvest::default();
            loop {
                let from = next.fetch_add(BATCH, Ordering::Relaxed);
                if from >= size {
                    return harvest;
                }
                for place in from..size.min(from + BATCH) {
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
        let actions = walker.actions(open.row);
        if actions.iter().all(|(action, _)| action.is_fault()) {
            self.record_end(walker, open);
        }
        let (mut row, mut before, mut changed, mut quiet) = (Row::new(), Row::new(), Vec::new(), Vec::new());
        for action in actions {
            row.clear();
            row.extend_from_slice(open.row);
            let (mut print, mut span) = (open.print, Span::default());
            let stepped = walker.apply(&mut row, &mut print, action, &mut changed);
            if let Some(breach) = stepped.and_then(|step| self.look_at_step(walker, open.row, &row, &step)) {
                self.record_step(breach, open.index, action.1);
            }
            span.add(action.0.is_message());
            // What makes no difference is taken at once, and the worlds between are not kept.
            let mut broken = None;
            while let Some(next) = self.settings.ample.then(|| walker.next_ample(&row)).flatten() {
                broken = broken.or_else(|| walker.breach_of(row[MANAGER]));
                before.clone_from(&row);
                let stepped = walker.apply(&mut row, &mut print, next, &mut quiet);
                if let Some(breach) = stepped.and_then(|step| self.look_at_step(walker, &before, &row, &step)) {
                    // The way there goes on with all that is taken at once.
                    self.record_step(breach, open.index, action.1);
                }
                span.add(next.0.is_message());
                changed.extend(quiet.iter().copied().filter(|slot| !changed.contains(slot)).collect::<Vec<_>>());
            }
            let orbit = if self.orbits.is_empty() { print } else { walker.print_of_orbit(&row) };
            let (index, new) = self.seen.insert(orbit);
            harvest.graph.edge(open.index, index, span);
            if let Some(breach) = broken {
                self.record(breach, index);
            }
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
    fn look_at_step(&self, walker: &mut Walker<'_>, before: &[u32], row: &Row, step: &Stepped) -> Option<Breach> {
        let alone = step.breach.clone();
        alone.or_else(|| {
            let outputs = step.look.as_ref()?;
            let (before, after) = (walker.world(before), walker.world(row));
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
            // Where one of several replicas is stopped, another one is in a world that is taken to be the same.
            let mut unstopped = self.unstopped.lock().expect("no thread panics while it holds the names");
            unstopped.retain(|it| *it != name && !self.orbits.are_alike(it, &name));
            drop(unstopped);
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
        let mut breaches = self.breaches.lock().expect("no thread panics while it holds the breaches");
        if !breaches.contains(&breach) {
            breaches.insert(breach.clone());
        }
        drop(breaches);
        let mut found = self.breach.lock().expect("no thread panics while it holds the breach");
        // Whatever thread comes first: the same breach of the same world each time.
        let rank = |breach: &Breach| breach.property == property::COVERED;
        if found.as_ref().is_none_or(|(known, at, _)| (rank(&breach), &breach, index) < (rank(known), known, *at)) {
            *found = Some((breach, index, None));
        }
    }

    /// Records a breach that is shown by a step, which may lead to a world that was seen before.
    fn record_step(&self, breach: Breach, before: u32, action: u32) {
        let spared = !self.settings.covered && breach.property == property::COVERED;
        if spared || self.settings.without == Some(breach.property) {
            return;
        }
        let mut found = self.breach.lock().expect("no thread panics while it holds the breach");
        // A step that the proof does not cover is the cause; what it breaks is the better explanation.
        let rank = |breach: &Breach| breach.property == property::COVERED;
        if found.as_ref().is_none_or(|(known, at, _)| (rank(&breach), &breach, before) < (rank(known), known, *at)) {
            *found = Some((breach, before, Some(action)));
        }
    }

    fn record_end(&self, walker: &mut Walker<'_>, open: Open<'_>) {
        let world = walker.world(open.row);
        let as_told = |expected: &Expected| {
            let detail = expected.objections_at_end(&world).into_iter().next()?;
            Some(Breach { property: property::AS_TOLD, detail })
        };
        if let Some(breach) = property::at_end(&world).or_else(|| self.expected.and_then(as_told)) {
            self.record(breach, open.index);
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

    /// The actions of a way, with those that were taken at once on it, as they happen in a world without reductions.
    fn retell(&self, way: &[u32]) -> Vec<Action> {
        let mut world = World::new(self.script.clone(), self.faults);
        let mut walker = self.walker();
        let (mut row, mut print, mut changed) = (walker.row(&world), 0, Vec::new());
        let mut told = Vec::new();
        // Without the reduction of links, a letter that comes a second time is an action of the way itself.
        let drops = |world: &World, action: Action| self.settings.links && world.part(world::source(action)).repeats();
        for (place, number) in way.iter().enumerate() {
            let mut next = Some((*self.atlas.actions.value(*number).0, *number));
            while let Some(action) = next {
                // What comes a second time is dropped first.
                while drops(&world, action.0) {
                    told.push(action.0);
                    world.apply(action.0);
                }
                told.push(action.0);
                world.apply(action.0);
                walker.apply(&mut row, &mut print, action, &mut changed);
                // The way ends where something is broken, or else where all that is taken at once has happened.
                let broken = place + 1 == way.len() && walker.breach(&row, &changed).is_some();
                next = (self.settings.ample && !broken).then(|| walker.next_ample(&row)).flatten();
            }
        }
        // At an end nothing is left that could come a second time.
        while let Some(action) = world.actions().into_iter().find(|action| drops(&world, *action)) {
            told.push(action);
            world.apply(action);
        }
        told
    }

    fn conclude(self, mut graph: Graph, complete: bool, sometimes: BTreeSet<&'static str>) -> Findings {
        let states = self.seen.count();
        let way = |index: u32, last: Option<u32>, graph: &Graph| {
            self.retell(&graph.way(index).into_iter().chain(last).collect::<Vec<_>>())
        };
        let unstopped = self.unstopped.lock().expect("no thread panics while it holds the names").first().cloned();
        let missing = unstopped.filter(|_| complete).map(|name| {
            let detail = format!("{name} is stopped on no path, and should be on some");
            (Breach { property: property::AS_TOLD, detail }, 0, None)
        });
        let mut breaches = self.breaches.lock().expect("no thread panics while it holds the breaches").clone();
        breaches.extend(missing.iter().map(|(breach, ..)| breach.clone()));
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
            breaches,
            sometimes,
            disrupted: self.may_stop.is_none(),
        }
    }
}
