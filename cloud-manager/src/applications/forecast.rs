//! Forecasts what changes would do: what stops, what starts, in which order, how long it takes and why.
//!
//! Two answers are combined. A copy of the machine says whether the first change would be refused and what the end
//! would be. A simulation in virtual time, from the present configuration, says how it gets there.

use super::{
    outcome::outcome,
    present::{Learned, Present},
};
use crate::document::{Forecast, Moment, lasting};
use application::Expansion;
use model_check::{
    Action,
    chart::Chart,
    environment::Line,
    explore::retrace,
    inspector::Pace,
    simulate::{self, Activity, Report, Settings, Stretch, Timing, always},
    world::{Event, Output, World},
};
use protocol::{Change, Edit, Kind, Name, Operation, Refusal, agent, manager::Request};
use recipe::{At, Recipe};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// Assumed duration of an operation whose duration is unknown.
const UNKNOWN: Duration = Duration::from_secs(1);
/// Maximum number of messages for which a trace is kept.
const TRACE_MAX: u64 = 5_000;
/// Maximum number of simulated edits, including the present configuration: more would take gigabytes of memory.
const EDITS_MAX: usize = 1_000_000;

/// What these changes, one after the other, would do. `expansions` have the durations of operations that types declare.
/// Names of `application`'s components are shortened.
pub fn forecast(
    present: &Present,
    changes: &[Change],
    expansions: &[&Expansion],
    application: Option<&Name>,
) -> Forecast {
    let changes: Vec<Change> = changes.iter().filter(|it| !it.edits.is_empty()).cloned().collect();
    let Some(first) = changes.first() else {
        // What is only recorded takes no time.
        return Forecast { seconds: Some(0.0), known: true, ..Forecast::default() };
    };
    let own = |text: &str| application.map_or_else(|| text.to_owned(), |it| within(it, text));
    let say = |refusals: &[Refusal]| refusals.iter().map(|it| own(&it.to_string())).collect();
    let ended = match outcome(present.machine.clone(), first.clone()) {
        Ok(ended) => ended,
        Err(refusals) => return Forecast { refused: say(&refusals), ..Forecast::default() },
    };
    let configuration = present.configuration();
    let edits = configuration.len() + changes.iter().map(|it| it.edits.len()).sum::<usize>();
    if edits > EDITS_MAX {
        let why = format!("{edits} edits exceed the limit of {EDITS_MAX} for a simulation");
        return Forecast { not_simulated: Some(why), ..ended };
    }
    let (place, script) = script(configuration, changes);
    let past: Arc<[Line]> = script[..place].to_vec().into();
    let (timing, unknown) = timing(&script, expansions, &present.learned);
    let pace = Pace::Named { whole_every: u64::MAX };
    let settings = Settings { timing, pace, record: true, ..Settings::seeded(0) };
    let (was, _) = simulate::simulate(&past, &Settings { record: false, ..settings.clone() });
    let (report, _) = simulate::simulate(&script, &settings);
    if let Some((_, reasons)) = report.refused.iter().find(|(line, _)| *line >= place) {
        return Forecast { refused: say(reasons), ..Forecast::default() };
    }
    let made = report.changes.get(place..).unwrap_or_default();
    let path = made.iter().flat_map(|it| &it.critical_path);
    let is_known = |it: &Stretch| match it.activity {
        Activity::Operation(operation) => !unknown.contains(&(it.name.clone(), operation)),
        Activity::Create | Activity::Destroy | Activity::Pause | Activity::Declare => true,
    };
    let known = path.clone().all(is_known);
    let gone: BTreeSet<&Name> = removed(&script[place..]);
    Forecast {
        seconds: made.iter().map(|it| it.took().map(|it| it.as_secs_f64())).sum(),
        // Operations without a duration are not part of the critical path.
        critical_path: path.filter(|it| it.to > it.from).map(|it| own(&stretch(it))).collect(),
        stopped: report.stopped.iter().filter(|name| !gone.contains(name)).map(|it| own(it.as_str())).collect(),
        starts: report.starts - was.starts,
        stops: report.stops - was.stops,
        messages: report.messages.total() - was.messages.total(),
        trace: if report.messages.total() <= TRACE_MAX { trace(&script, &report, place) } else { Vec::new() },
        moments: moments(&script, &report, place, &own),
        known,
        ..ended
    }
}

/// The edits that create the present configuration, in one change because applications may use each other, and then the
/// changes; with the index of the first of those.
pub fn script(configuration: Vec<Edit>, changes: Vec<Change>) -> (usize, Arc<[Line]>) {
    let past = Change { incomplete: true, edits: configuration, ..Change::default() };
    let place = usize::from(!past.edits.is_empty());
    let mut all: Vec<Change> = [past].into_iter().take(place).chain(changes).collect();
    keep_known_values(&mut all);
    let lines = all.into_iter().map(|change| Line { request: Request::Make(change), patient: true });
    (place, lines.collect())
}

/// Components that are removed and not added again under the same name.
fn removed(lines: &[Line]) -> BTreeSet<&Name> {
    let mut gone = BTreeSet::new();
    for line in lines {
        let Request::Make(change) = &line.request else { continue };
        let remove = change.edits.iter().filter_map(|it| match it {
            Edit::RemoveComponent { component } => Some(component),
            _ => None,
        });
        gone.extend(remove);
        for edit in &change.edits {
            if let Edit::AddComponent { component, .. } = edit {
                gone.remove(component);
            }
        }
    }
    gone
}

/// A simulated replacement of a component has values of its own. Where the values are known to be the same, its clients
/// need not be notified.
fn keep_known_values(changes: &mut [Change]) {
    type Texts = BTreeMap<Name, String>;
    let known = |vm: &Name, kind: &Kind| -> Option<Texts> {
        let recipe = Recipe::decode(&kind.recipe).ok()?;
        let values = kind.exports.values().flat_map(|export| &export.values);
        let text = |value: &Name| {
            let handed = recipe.values.get(value).filter(|it| it.at == At::Prepare)?;
            Some((value.clone(), recipe.known_at(&handed.template, vm.as_str())?))
        };
        values.map(text).collect()
    };
    let mut count: BTreeMap<&Name, usize> = BTreeMap::new();
    for edit in changes.iter().flat_map(|change| &change.edits) {
        if let Edit::AddComponent { component, .. } = edit {
            *count.entry(component).or_default() += 1;
        }
    }
    let replaced: BTreeSet<Name> = count.into_iter().filter(|(_, it)| *it > 1).map(|(name, _)| name.clone()).collect();
    let mut texts: BTreeMap<Name, Vec<Option<Texts>>> = BTreeMap::new();
    for edit in changes.iter().flat_map(|change| &change.edits) {
        if let Edit::AddComponent { component, vm, kind } = edit
            && replaced.contains(component)
        {
            texts.entry(component.clone()).or_default().push(known(vm, kind));
        }
    }
    texts.retain(|_, all| all[0].is_some() && all.iter().all(|it| *it == all[0]));
    for edit in changes.iter_mut().flat_map(|change| &mut change.edits) {
        if let Edit::AddComponent { component, kind, .. } = edit
            && texts.contains_key(component)
        {
            Arc::make_mut(kind).exports.values_mut().for_each(|export| export.values.clear());
        }
    }
}

/// Durations: declared ones, else those of the last time, else those of another component of the group; one second for an
/// operation whose duration is unknown, and zero for messages and clouds. Also returns which operations are unknown.
fn timing(script: &[Line], expansions: &[&Expansion], learned: &Learned) -> (Timing, BTreeSet<(Name, Operation)>) {
    let mut timing = Timing::uniform(Duration::ZERO);
    timing.operations = BTreeMap::from([(Operation::Start, always(UNKNOWN)), (Operation::Stop, always(UNKNOWN))]);
    let group = |name: &Name| name.as_str().split('[').next().unwrap_or_default().to_owned();
    let mut of_groups: BTreeMap<(String, Operation), Duration> = BTreeMap::new();
    for ((name, operation), length) in learned {
        let longest = of_groups.entry((group(name), *operation)).or_default();
        *longest = (*longest).max(*length);
    }
    let declared: BTreeMap<(Name, Operation), Duration> = expansions.iter().flat_map(|it| declared(it)).collect();
    let mut unknown = BTreeSet::new();
    let mut prepares: BTreeMap<*const Kind, bool> = BTreeMap::new();
    // A component that only has values to announce is ready at once.
    let prepare = |kind: &Kind| {
        let operations = Recipe::decode(&kind.recipe).map(|it| it.operations);
        operations.is_ok_and(|it| it.install.is_some() || it.announce.is_some())
    };
    let requests =
        script.iter().filter_map(|it| if let Request::Make(change) = &it.request { Some(change) } else { None });
    for edit in requests.flat_map(|it| &it.edits) {
        let Edit::AddComponent { component, kind, .. } = edit else { continue };
        for operation in [Operation::Prepare, Operation::Start, Operation::Stop] {
            if operation == Operation::Prepare && !*prepares.entry(Arc::as_ptr(kind)).or_insert_with(|| prepare(kind)) {
                continue;
            }
            let key = (component.clone(), operation);
            let length = declared.get(&key).or_else(|| learned.get(&key));
            let length = length.or_else(|| of_groups.get(&(group(component), operation)));
            if length.is_none() {
                unknown.insert(key.clone());
            }
            timing.components.insert(key, always(*length.unwrap_or(&UNKNOWN)));
        }
    }
    (timing, unknown)
}

/// The durations of operations that a type declares.
pub fn declared(expansion: &Expansion) -> impl Iterator<Item = ((Name, Operation), Duration)> {
    expansion.components.keys().flat_map(|key| {
        let name = key.scoped(&expansion.application);
        let lengths = expansion.definition_of(key).into_iter().flat_map(|it| &it.takes_ms);
        lengths.map(move |(operation, ms)| ((name.clone(), *operation), Duration::from_millis(*ms)))
    })
}

/// The messages, with sender and receiver, from the change's request on.
fn trace(script: &Arc<[Line]>, report: &Report, place: usize) -> Vec<String> {
    let Some(trace) = &report.trace else { return Vec::new() };
    let asks = trace.actions.iter().enumerate().filter(|(_, action)| **action == Action::Ask);
    let Some((first, _)) = asks.clone().nth(place) else { return Vec::new() };
    let (past, coming) = trace.actions.split_at(first);
    let (world, _) = retrace(script, trace.faults, past);
    let mut end = world.clone();
    let events: Vec<Event> = coming.iter().map(|action| end.apply(*action)).collect();
    messages(&world, &events)
}

/// The messages, with sender and receiver, in order.
pub fn messages(world: &World, events: &[Event]) -> Vec<String> {
    let chart = Chart::new(world, events);
    let name = |lifeline: usize| chart.lifelines[lifeline].name.as_str();
    let sent = chart.arrows.iter().filter(|arrow| arrow.sent.is_some());
    sent.map(|arrow| format!("{} → {}: {}", name(arrow.from), name(arrow.to), arrow.label)).collect()
}

/// What begins when, taken from the tasks that agents give to their hosts.
fn moments(script: &Arc<[Line]>, report: &Report, place: usize, own: &dyn Fn(&str) -> String) -> Vec<Moment> {
    let Some(trace) = &report.trace else { return Vec::new() };
    let Some(accepted) = report.changes.get(place).map(|it| it.accepted) else { return Vec::new() };
    let (_, events) = retrace(script, trace.faults, &trace.actions);
    let mut asked = 0;
    let mut moments: Vec<Moment> = Vec::new();
    for (event, at) in events.iter().zip(&report.moments) {
        asked += usize::from(event.action == Action::Ask);
        if asked <= place {
            continue;
        }
        for output in &event.outputs {
            let Output::Agent(agent::Output::ToHost(task)) = output else { continue };
            let operation = task.work.operation();
            if !matches!(operation, Operation::Start | Operation::Stop) {
                continue;
            }
            let at = at.saturating_sub(accepted).as_secs_f64();
            let step = asked - place - 1;
            if moments.last().is_none_or(|it| it.at < at || it.step < step) {
                moments.push(Moment { at, step, ..Moment::default() });
            }
            let Some(moment) = moments.last_mut() else { continue };
            let names = if operation == Operation::Start { &mut moment.start } else { &mut moment.stop };
            names.push(own(task.name.as_str()));
        }
    }
    moments
}

/// A text about this application, without its name in front of components.
pub fn within(application: &Name, text: &str) -> String {
    text.replace(&format!("{application}/"), "")
}

fn stretch(stretch: &Stretch) -> String {
    let (name, length) = (&stretch.name, lasting(stretch.to.saturating_sub(stretch.from)));
    match stretch.activity {
        Activity::Operation(operation) => format!("{operation} {name} {length}"),
        Activity::Create => format!("create {name} {length}"),
        Activity::Destroy => format!("destroy {name} {length}"),
        Activity::Pause | Activity::Declare => format!("wait for {name} {length}"),
    }
}
