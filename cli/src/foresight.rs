//! What a change will do, as the simulator sees it: who stops, who starts, in which order, how long and why so long.

use crate::{
    application_file::no_secrets,
    applied::{Around, Learned},
    audit::Stage,
    screen::{counted, lasting},
};
use application::{Difference, Expansion};
use model_check::{
    environment::Line,
    explore::retrace,
    inspector::Pace,
    simulate::{self, Activity, Report, Settings, Stretch, Timing, always},
    world::Output,
};
use protocol::{Change, Edit, Kind, Name, Operation, Strategy, agent, manager::Request};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use vm_agent::recipe::{At, Recipe};

/// How long an operation takes of which nothing is known.
const UNKNOWN: Duration = Duration::from_secs(1);
/// A trace is kept of so many messages, and not of more.
const TRACE_MAX: u64 = 5_000;
/// Names on one line.
const NAMES_MAX: usize = 6;
/// Lines about who starts and stops when.
const MOMENTS_MAX: usize = 30;

/// What a change will do.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Foresight {
    /// Why the manager would refuse it.
    pub(crate) refused: Vec<String>,
    /// How long it takes, in seconds of known and supposed operations; nothing if it never ends.
    pub(crate) seconds: Option<f64>,
    /// The operations that add up to that.
    pub(crate) critical_path: Vec<String>,
    /// Who stops on the way and is there in the end.
    pub(crate) stopped: Vec<String>,
    /// How many are started.
    pub(crate) starts: u64,
    /// How many are stopped.
    pub(crate) stops: u64,
    /// How many messages are sent.
    pub(crate) messages: u64,
    /// What begins when, in order.
    pub(crate) moments: Vec<Moment>,
    /// Who sends what to whom, in one of the orders in which it may happen; nothing if it is much.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) trace: Vec<String>,
    /// Whether the lengths of all operations that add up to that were declared or learned.
    pub(crate) known: bool,
}

/// What begins at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Moment {
    /// In seconds after the first change was accepted.
    pub(crate) at: f64,
    /// In which of several changes, one after the other, from 0.
    pub(crate) step: usize,
    /// Who begins to stop.
    pub(crate) stop: Vec<String>,
    /// Who begins to start.
    pub(crate) start: Vec<String>,
}

/// Lets changes happen, one after the other, after all that is there has come up.
pub(crate) fn foresee(before: &Expansion, after: &Expansion, around: &Around, changes: Vec<Change>) -> Foresight {
    let (past, script) = scripts(before, after, around, changes);
    let place = past.len();
    let (timing, unknown) = timing(&[before, after], &around.learned);
    let pace = Pace::Named { whole_every: u64::MAX };
    let settings = Settings { timing, pace, record: true, ..Settings::seeded(0) };
    let (was, _) = simulate::simulate(&past, &Settings { record: false, ..settings.clone() });
    let (report, _) = simulate::simulate(&script, &settings);
    if let Some((_, reasons)) = report.refused.iter().find(|(line, _)| *line >= place) {
        let refused = reasons.iter().map(|it| within(&after.application, &it.to_string())).collect();
        return Foresight { refused, ..Foresight::default() };
    }
    let own = |name: &Name| within(&after.application, name.as_str());
    let changes = report.changes.get(place..).unwrap_or_default();
    // What takes no time is not what anybody waits for.
    let path = changes.iter().flat_map(|it| &it.critical_path);
    let is_known = |it: &Stretch| match it.activity {
        Activity::Operation(operation) => !unknown.contains(&(it.name.clone(), operation)),
        Activity::Create | Activity::Destroy | Activity::Pause | Activity::Declare => true,
    };
    let known = path.clone().all(is_known);
    let stays = |name: &Name| after.components.keys().any(|key| key.scoped(&after.application) == *name);
    Foresight {
        refused: Vec::new(),
        seconds: changes.iter().map(|it| it.took().map(|it| it.as_secs_f64())).sum(),
        critical_path: path.filter(|it| it.to > it.from).map(|it| stretch(it, &after.application)).collect(),
        stopped: report.stopped.iter().filter(|name| stays(name)).map(own).collect(),
        starts: report.starts - was.starts,
        stops: report.stops - was.stops,
        messages: report.messages.total() - was.messages.total(),
        trace: if report.messages.total() <= TRACE_MAX { trace(&script, &report, place) } else { Vec::new() },
        moments: moments(&script, &report, place, &after.application),
        known,
    }
}

/// What brings up all that is there, and the same followed by changes.
pub(crate) fn scripts(
    before: &Expansion,
    after: &Expansion,
    around: &Around,
    changes: Vec<Change>,
) -> (Arc<[Line]>, Arc<[Line]>) {
    // All that is there comes up at once: applications may use each other.
    let mut edits = Vec::new();
    let others = around.others.iter().filter(|it| it.application != after.application);
    for it in others.chain([before]) {
        let empty = Expansion::empty(it.application.clone());
        let made = Difference::between(&empty, it).planned(&empty, it, &[], Strategy::Together, &no_secrets(it));
        edits.extend(made.change.edits);
    }
    let past = Change { incomplete: true, edits, ..Change::default() };
    let place = usize::from(!past.edits.is_empty());
    let mut all: Vec<Change> = [past].into_iter().take(place).chain(changes).collect();
    keep_what_is_known(&mut all);
    let lines: Vec<Line> =
        all.into_iter().map(|change| Line { request: Request::Make(change), patient: true }).collect();
    (lines[..place].to_vec().into(), lines.into())
}

/// A simulated component that takes another's place has values of its own. Where it is known that they are the same, there is
/// nothing to be told of.
fn keep_what_is_known(changes: &mut [Change]) {
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
    let mut texts: BTreeMap<Name, Vec<Option<Texts>>> = BTreeMap::new();
    for edit in changes.iter().flat_map(|change| &change.edits) {
        if let Edit::AddComponent { component, vm, kind } = edit {
            texts.entry(component.clone()).or_default().push(known(vm, kind));
        }
    }
    texts.retain(|_, all| all.len() > 1 && all[0].is_some() && all.iter().all(|it| *it == all[0]));
    for edit in changes.iter_mut().flat_map(|change| &mut change.edits) {
        if let Edit::AddComponent { component, kind, .. } = edit
            && texts.contains_key(component)
        {
            Arc::make_mut(kind).exports.values_mut().for_each(|export| export.values.clear());
        }
    }
}

/// Declared lengths, else what they were the last time, else what they were for another of the group; a second for what is
/// done on purpose and of which nothing is known, and nothing for messages and clouds. Which those are is returned, too.
fn timing(expansions: &[&Expansion], learned: &Learned) -> (Timing, BTreeSet<(Name, Operation)>) {
    let mut timing = Timing::uniform(Duration::ZERO);
    timing.operations = BTreeMap::from([(Operation::Start, always(UNKNOWN)), (Operation::Stop, always(UNKNOWN))]);
    let mut unknown = BTreeSet::new();
    let mut of_groups: BTreeMap<(String, Operation), Duration> = BTreeMap::new();
    for ((name, operation), length) in learned {
        let group = name.as_str().split('[').next().unwrap_or_default().to_owned();
        let longest = of_groups.entry((group, *operation)).or_default();
        *longest = (*longest).max(*length);
    }
    for expansion in expansions {
        timing.components.extend(declared(expansion).map(|(what, length)| (what, always(length))));
        for key in expansion.components.keys() {
            let Some(definition) = expansion.definition_of(key) else { continue };
            let name = key.scoped(&expansion.application);
            let operations = &definition.recipe.operations;
            let prepares = operations.install.is_some() || operations.announce.is_some();
            for operation in [Operation::Prepare, Operation::Start, Operation::Stop] {
                if definition.takes_ms.contains_key(&operation) || (operation == Operation::Prepare && !prepares) {
                    continue;
                }
                let group = format!("{}/{}", expansion.application, key.group);
                let length = learned.get(&(name.clone(), operation)).or_else(|| of_groups.get(&(group, operation)));
                if length.is_none() {
                    unknown.insert((name.clone(), operation));
                }
                let length = *length.unwrap_or(&UNKNOWN);
                timing.components.insert((name.clone(), operation), always(length));
            }
        }
    }
    (timing, unknown)
}

/// How long operations take, where a type says it.
pub(crate) fn declared(expansion: &Expansion) -> impl Iterator<Item = ((Name, Operation), Duration)> {
    expansion.components.keys().flat_map(|key| {
        let name = key.scoped(&expansion.application);
        let lengths = expansion.definition_of(key).into_iter().flat_map(|it| &it.takes_ms);
        lengths.map(move |(operation, ms)| ((name.clone(), *operation), Duration::from_millis(*ms)))
    })
}

/// Who sends what to whom, once the change is asked for.
fn trace(script: &Arc<[Line]>, report: &Report, place: usize) -> Vec<String> {
    let Some(trace) = &report.trace else { return Vec::new() };
    let asks = trace.actions.iter().enumerate().filter(|(_, action)| **action == model_check::Action::Ask);
    let Some((first, _)) = asks.clone().nth(place) else { return Vec::new() };
    let (past, coming) = trace.actions.split_at(first);
    let (world, _) = retrace(script, trace.faults, past);
    let mut end = world.clone();
    let events = coming.iter().map(|action| end.apply(*action)).collect();
    Stage { world, events, moments: Vec::new() }.messages()
}

/// What begins when, read off what agents ask of their hosts.
fn moments(script: &Arc<[Line]>, report: &Report, place: usize, application: &Name) -> Vec<Moment> {
    let Some(trace) = &report.trace else { return Vec::new() };
    let Some(accepted) = report.changes.get(place).map(|it| it.accepted) else { return Vec::new() };
    let (_, events) = retrace(script, trace.faults, &trace.actions);
    let mut asked = 0;
    let mut moments: Vec<Moment> = Vec::new();
    for (event, at) in events.iter().zip(&report.moments) {
        asked += usize::from(event.action == model_check::Action::Ask);
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
            let who = if operation == Operation::Start { &mut moment.start } else { &mut moment.stop };
            who.push(within(application, task.name.as_str()));
        }
    }
    moments
}

/// A text that speaks of this application, without repeating its name.
pub(crate) fn within(application: &Name, text: &str) -> String {
    text.replace(&format!("{application}/"), "")
}

fn stretch(stretch: &Stretch, application: &Name) -> String {
    let name = within(application, stretch.name.as_str());
    let length = lasting(stretch.to.saturating_sub(stretch.from));
    match stretch.activity {
        Activity::Operation(operation) => format!("{operation} {name} {length}"),
        Activity::Create => format!("create {name} {length}"),
        Activity::Destroy => format!("destroy {name} {length}"),
        Activity::Pause | Activity::Declare => format!("wait for {name} {length}"),
    }
}

/// For people.
pub(crate) fn told(foresight: &Foresight) -> String {
    let Foresight { refused, seconds, critical_path, stopped, starts, stops, messages, moments, known, trace: _ } =
        foresight;
    if !refused.is_empty() {
        let reasons: String = refused.iter().map(|it| format!("  ✗ {it}\n")).collect();
        return format!("The manager would refuse this:\n{reasons}");
    }
    let mut text = String::from("What will happen:\n");
    for Moment { at, stop, start, .. } in moments.iter().take(MOMENTS_MAX) {
        let at = lasting(Duration::from_secs_f64(*at));
        let verbs = [("stop", stop), ("start", start)];
        let words = verbs.iter().filter(|(_, who)| !who.is_empty()).map(|(verb, who)| format!("{verb} {}", few(who)));
        text += &format!("  {at:>8}  {}\n", words.collect::<Vec<_>>().join("; "));
    }
    if moments.len() > MOMENTS_MAX {
        text += &format!("  and {} more moments\n", moments.len() - MOMENTS_MAX);
    }
    let supposed = if *known {
        ""
    } else {
        " (1 s for each start, stop and install of which no type and no past says how long it takes)"
    };
    match seconds {
        Some(seconds) => text += &format!("  done after {}{supposed}\n", lasting(Duration::from_secs_f64(*seconds))),
        None => text += "  it is never done: somebody waits for ever\n",
    }
    if !critical_path.is_empty() {
        text += &format!("  critical path: {}\n", critical_path.join(" → "));
    }
    text += &format!("  {} started, {} stopped, {} messages\n", counted(*starts), counted(*stops), counted(*messages));
    let who = if stopped.is_empty() { "nobody".into() } else { few(stopped) };
    text + &format!("  stops and comes back: {who}\n")
}

/// A few names, and how many more there are.
pub(crate) fn few(names: &[String]) -> String {
    let told = names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => told,
        more => format!("{told} and {more} more"),
    }
}
