//! Renders a plan: what will be changed, what happens when, and what is affected.

use crate::{
    commands::data,
    rendering::screen::{bold, counted, lasting},
    rendering::table::table,
};
use application::{Choice, How, Key};
use cloud_manager::document::{
    ApplicationPlan, ComponentDifference, ComponentFate, Fate, Forecast, Moment, Plan, Standing,
};
use std::time::Duration;

/// Maximum number of lines of each kind.
const LINES_MAX: usize = 40;
/// Maximum number of names on one line.
const NAMES_MAX: usize = 6;
/// Maximum number of lines about what starts and stops when.
const MOMENTS_MAX: usize = 30;

/// A plan about applications.
pub(crate) fn plan(plan: &Plan) -> String {
    if plan.applications.is_empty() {
        return "No changes.\n".into();
    }
    let mut text: String = plan.applications.iter().map(application).collect();
    if plan.is_empty() {
        return text + "No changes.\n" + &left(plan);
    }
    text += &match plan.steps {
        0 | 1 => format!("Strategy: {}\n", plan.strategy),
        steps => format!("In {steps} steps, one after the other\n"),
    };
    text + &data::effects(&plan.data) + &forecast(&plan.forecast) + &left(plan)
}

/// What will be changed in one application.
fn application(plan: &ApplicationPlan) -> String {
    let ApplicationPlan { application, vms, components, bindings, difference, .. } = plan;
    let size = format!("{} VMs, {} components, {} bindings", counted(*vms), counted(*components), counted(*bindings));
    let mut text = format!("{}: {size}\n", bold(application));
    if !plan.counts.is_empty() {
        let counts: Vec<String> = plan.counts.iter().map(|(name, count)| format!("{name}={count}")).collect();
        text += &format!("The load needs {}\n", counts.join(" "));
    }
    text += &plan.placement.as_ref().map(placement).unwrap_or_default();
    if !plan.trade_offs.is_empty() {
        let rows = plan
            .trade_offs
            .iter()
            .map(|it| [it.cost.to_string(), it.stopped.to_string(), if it.proven { "yes" } else { "no" }.into()]);
        text += &table(["COST", "STOPPED", "PROVEN"], &rows.collect::<Vec<_>>());
    }
    if difference.is_empty() && plan.restarts.is_empty() {
        return text;
    }
    let place = |key: &Key| plan.places.get(key).map(|vm| format!(" on {vm}")).unwrap_or_default();
    let line = |what: &str, key: &Key, how: &How| match how {
        How::Added => format!("  + {what}{key}{}\n", place(key)),
        How::Removed => format!("  - {what}{key}\n"),
        How::Replaced(why) => format!("  ± {what}{key} is replaced: {}\n", why.join(", ")),
        How::Adjusted(why) => format!("  ~ {what}{key}: {}\n", why.join(", ")),
    };
    text += &some(difference.vms.iter().map(|(key, how)| line("vm ", key, how)), "VMs");
    let fate = |(key, it): (&Key, &ComponentFate)| {
        let why = it.why.join(", ");
        let kept = if it.data_kept { " (data kept)" } else { "" };
        match it.is {
            Fate::Added => Some(format!("  + {key}{}\n", place(key))),
            Fate::Removed => Some(format!("  - {key}\n")),
            Fate::Replaced => Some(format!("  ± {key} is replaced{kept}: {why}\n")),
            Fate::Moved => Some(format!("  ± {key} is moved: {}\n", why.replace("moves from ", "from "))),
            Fate::Reloaded => Some(format!("  ~ {key} is reloaded: {why}\n")),
            Fate::Restarted => Some(format!("  ↻ {key} is restarted: {why}\n")),
            // The bindings are listed below.
            Fate::Told if difference.components.contains_key(key) => Some(format!("  ~ {key}: {why}\n")),
            Fate::Told | Fate::Untouched => None,
        }
    };
    text += &some(plan.fates.iter().filter_map(fate), "components");
    text += &some(difference.unbound.iter().map(|it| format!("  - {it}\n")), "removed bindings");
    text += &some(difference.bound.iter().map(|it| format!("  + {it}\n")), "new bindings");
    let unchanged = &difference.unchanged;
    if unchanged.vms + unchanged.components + unchanged.bindings > 0 || plan.version > 0 {
        let (vms, components, bindings) = (unchanged.vms, unchanged.components, unchanged.bindings);
        text += &format!(
            "Unchanged: {} VMs, {} components, {} bindings\n",
            counted(vms),
            counted(components),
            counted(bindings)
        );
        let untouched = plan.fates.iter().filter(|(_, it)| it.is == Fate::Untouched);
        let untouched: Vec<String> = untouched.map(|(key, _)| key.to_string()).collect();
        if !untouched.is_empty() {
            text += &format!("Untouched: {}\n", few(&untouched));
        }
    }
    text
}

/// What differs from what was applied, and stays so.
pub(crate) fn left(plan: &Plan) -> String {
    let line = |it: &ApplicationPlan| {
        let application = &it.application;
        match it.left {
            0 => String::new(),
            1 => format!(
                "1 other thing of {application} differs from what was applied; holdfast reconcile {application} restores it\n"
            ),
            left => format!(
                "{} other things of {application} differ from what was applied; holdfast reconcile {application} restores them\n",
                counted(left)
            ),
        }
    };
    plan.applications.iter().map(line).collect()
}

/// What happens when.
fn forecast(forecast: &Forecast) -> String {
    let Forecast { refused, seconds, critical_path, stopped, starts, stops, messages, moments, known, .. } = forecast;
    if !refused.is_empty() {
        let reasons: String = refused.iter().map(|it| format!("  ✗ {it}\n")).collect();
        return format!("The manager would refuse this:\n{reasons}");
    }
    if let Some(why) = &forecast.not_simulated {
        let may_stop = &forecast.may_stop;
        let names = if may_stop.is_empty() { "none".into() } else { few(may_stop) };
        return format!("Not simulated: {why}\n  may stop temporarily: {names}\n");
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
    let assumed = if *known {
        ""
    } else {
        " (assuming 1 s for each start, stop and install whose duration is neither declared nor measured)"
    };
    match seconds {
        Some(seconds) => text += &format!("  done after {}{assumed}\n", lasting(Duration::from_secs_f64(*seconds))),
        None => text += "  this change would never complete: a component waits forever\n",
    }
    if !critical_path.is_empty() {
        text += &format!("  critical path: {}\n", critical_path.join(" → "));
    }
    text += &format!("  {} started, {} stopped, {} messages\n", counted(*starts), counted(*stops), counted(*messages));
    let names = if stopped.is_empty() { "none".into() } else { few(stopped) };
    text + &format!("  stop temporarily: {names}\n")
}

/// What a single change would lead to.
pub(crate) fn outcome(plan: &Plan) -> String {
    let Forecast { started, not_started, differences, may_stop, .. } = &plan.forecast;
    let mut text =
        format!("The manager would accept this. In the end {started} components are started, {not_started} are not.\n");
    for ComponentDifference { component, vm, now, then, because } in differences {
        text += &match (now, then) {
            (Standing::Absent, then) => format!("  + {component} on {vm}: {then}"),
            (_, Standing::Absent) => format!("  - {component} on {vm}"),
            (now, then) if now == then => format!("  ~ {component} moves to {vm}: {then}"),
            (now, then) => format!("  ~ {component} on {vm}: {now}, then {then}"),
        };
        text += &if because.is_empty() { "\n".into() } else { format!(" (waits for {})\n", because.join(", ")) };
    }
    if !may_stop.is_empty() {
        text += &format!("May stop on the way: {}\n", may_stop.join(", "));
    }
    text += &data::effects(&plan.data);
    text + "Nothing was changed.\n"
}

/// The planner's statement about a placement.
fn placement(choice: &Choice) -> String {
    let objective = |it: &application::Objective| match it.bound.filter(|bound| *bound != it.value) {
        Some(bound) => format!("{} {} (at least {bound})", it.text, it.value),
        None => format!("{} {}", it.text, it.value),
    };
    let objectives: Vec<String> = choice.objectives.iter().map(objective).collect();
    let proven = if choice.proven { "proven best" } else { "the best found within the time limit" };
    format!("Placement: {proven}: {}\n", objectives.join(", then "))
}

/// The first of many lines, and the number of the rest.
fn some(lines: impl Iterator<Item = String>, what: &str) -> String {
    let lines: Vec<String> = lines.collect();
    let shown: String = lines.iter().take(LINES_MAX).map(String::as_str).collect();
    match lines.len().saturating_sub(LINES_MAX) {
        0 => shown,
        more => shown + &format!("    and {} more {what} (--json lists all)\n", counted(more)),
    }
}

/// A few names, and the number of the rest.
pub(crate) fn few(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
