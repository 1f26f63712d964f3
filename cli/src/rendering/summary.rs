//! The result of a simulated run, as text or JSON.

use crate::rendering::screen::{coloured, columns, counted, dim, draw_operations, lasting};
use model_check::{
    Scenario,
    chart::Chart,
    explore::retrace,
    simulate::{Activity, ChangeTimes, Messages, Report, Stretch},
};
use protocol::Name;
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};

/// The states of all components over virtual time; empty if the run was not recorded.
pub(crate) fn timeline(scenario: &Scenario, report: &Report) -> String {
    let Some(trace) = &report.trace else { return String::new() };
    let (_, events) = retrace(&scenario.lines, trace.faults, &trace.actions);
    let chart = Chart::new(&scenario.world(), &events);
    let bars = chart.to_timeline(&report.moments, columns().saturating_sub(2));
    let legend = "▼ submitted   · stopped   ▒ starting or stopping   █ started";
    let lives: String = (bars + "\n" + legend).lines().map(|line| format!("  {}", coloured(line))).collect();
    format!("{lives}\n{}", draw_operations(&events, &report.moments))
}

/// When each change was done and why it took so long, the messages, and which components stopped.
pub(crate) fn summary(scenario: &Scenario, report: &Report) -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for change in &report.changes {
        rows.push((change.change.to_string(), lasted(change)));
        rows.extend(path(&change.critical_path).map(|path| (String::new(), path)));
    }
    for (place, reasons) in &report.refused {
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        rows.push((format!("request {}", place + 1), format!("refused: {}", reasons.join("; "))));
    }
    let Messages { orders, reports, binds, loans, recalls, confirmations } = report.messages;
    let all = counted(report.messages.total());
    let notices = counted(binds + loans + recalls + confirmations);
    rows.push((
        "messages".into(),
        format!("{all}: {orders} orders, {reports} reports, and {notices} notices that never passed the manager"),
    ));
    let (stopped, never) = stopped(scenario, &report.stopped);
    rows.push(("stopped".into(), stopped));
    rows.push(("never".into(), never));
    rows.iter().map(|(label, text)| format!("  {} {text}\n", dim(&format!("{label:<10}")))).collect()
}

/// Which components stopped, and which never did.
pub(crate) fn stopped(scenario: &Scenario, stopped: &BTreeSet<Name>) -> (String, String) {
    let all = scenario.components();
    let list = |names: Vec<&Name>| {
        let names: Vec<&str> = names.into_iter().map(Name::as_str).collect();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    };
    (list(stopped.iter().collect()), list(all.difference(stopped).collect()))
}

fn lasted(change: &ChangeTimes) -> String {
    let asked = lasting(change.accepted);
    match change.took() {
        Some(took) => format!("submitted at {asked}, done after {}", lasting(took)),
        None => format!("submitted at {asked}, not done"),
    }
}

/// The critical path of a change.
pub(crate) fn path(stretches: &[Stretch]) -> Option<String> {
    let words = stretches.iter().map(|stretch| {
        let (name, length) = (&stretch.name, lasting(stretch.to.saturating_sub(stretch.from)));
        match stretch.activity {
            Activity::Operation(operation) => format!("{operation} {name} {length}"),
            Activity::Pause => format!("retry pause of {name} {length}"),
            Activity::Create => format!("create {name} {length}"),
            Activity::Destroy => format!("destroy {name} {length}"),
            Activity::Declare => format!("suspect {name} {length}"),
        }
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("critical path: {}", words.join(" → ")))
}

/// As JSON.
pub(crate) fn json(report: &Report) -> Value {
    let seconds = |time: Duration| time.as_secs_f64();
    let changes: Vec<Value> = report
        .changes
        .iter()
        .map(|change| {
            let path: Vec<Value> = change
                .critical_path
                .iter()
                .map(|it| json!({ "name": it.name, "activity": format!("{:?}", it.activity), "from": seconds(it.from), "to": seconds(it.to) }))
                .collect();
            let done = change.done.map(seconds);
            json!({ "change": change.change.0, "accepted": seconds(change.accepted), "done": done, "critical_path": path })
        })
        .collect();
    let Messages { orders, reports, binds, loans, recalls, confirmations } = report.messages;
    json!({
        "steps": report.steps,
        "seconds": seconds(report.took),
        "changes": changes,
        "refused": report.refused.iter().map(|(line, _)| line + 1).collect::<Vec<_>>(),
        "messages": { "orders": orders, "reports": reports, "binds": binds, "loans": loans, "recalls": recalls,
                      "confirmations": confirmations },
        "starts": report.starts,
        "stops": report.stops,
        "stopped": report.stopped,
        "faults": report.faults,
    })
}
