//! The result of a run, as text or JSON.

use super::{
    record::{Act, Condition, Messages, Record, Verdict},
    timeline,
};
use crate::rendering::screen::{bold, coloured, columns, counted, dim, lasting};
use serde_json::{Value, json};
use std::{fmt::Write as _, time::Duration};

const LEGEND: &str = "· stopped   ▒ starting or stopping   █ started, served   ✗ a request failed";

/// As text.
pub(super) fn text(record: &Record) -> String {
    let mut text = format!("\n{}\n\n", bold("The whole run"));
    let mut line = |line: String| writeln!(text, "{line}").expect("writing to a string does not fail");
    line(dim(&format!(
        "  {:<34}{:>9}{:>8}{:>8}{:>9}{:>9}{:>10}",
        "act", "lasted", "served", "failed", "stopped", "started", "slowest"
    )));
    for (number, act) in (1..).zip(&record.acts) {
        line(row(number, act));
    }
    line(String::new());
    for bar in timeline::lines(record, columns().saturating_sub(2)) {
        line(coloured(&format!("  {bar}")).trim_end().to_owned());
    }
    line(coloured(&format!("  {LEGEND}")).trim_end().to_owned());
    line(String::new());
    let Messages { orders, reports, notices } = record.messages;
    let all = counted(orders + reports + notices);
    let label = |label: &str| dim(&format!("{label:<9}"));
    line(format!(
        "  {} {all}: {orders} orders, {reports} reports, and {notices} notices that never passed the manager",
        label("messages")
    ));
    line(format!("  {} {}", label("audit"), audit(&record.audit)));
    if record.left.is_empty() {
        line(format!("  {} ✓ nothing: no process, no port, no file", label("left")));
    }
    for left in &record.left {
        line(format!("  {} ✗ {left}", label("left")));
    }
    for (number, act) in (1..).zip(&record.acts) {
        if let Some(why) = act.unexpected_failure() {
            line(format!(
                "  {} ✗ {} requests of act {number} failed that should not have: {why}",
                label("failed"),
                act.failed()
            ));
        }
    }
    if record.is_good() {
        line(format!("\n{}\n", bold("What to try next")));
        for (command, what) in NEXT {
            line(format!("  {command:<60} {what}"));
        }
    }
    text
}

const NEXT: [(&str, &str); 3] = [
    ("holdfast demo --keep run && holdfast audit run --chart text", "the same, and a chart of every message"),
    ("holdfast demo --simulated", "every possible order of events"),
    (
        "holdfast explore examples/make-before-break.txt --crashes 1",
        "the second replacement, and a crash at any moment",
    ),
];

fn row(number: usize, act: &Act) -> String {
    let title = format!("{number} {}", act.title);
    let slowest = act.slowest().map(lasting).unwrap_or_default();
    let (served, failed) = (counted(act.served()), counted(act.failed()));
    let (stopped, started) = (act.stopped.len(), act.started.len());
    let lasted = lasting(act.lasted());
    format!("  {title:<34}{lasted:>9}{served:>8}{failed:>8}{stopped:>9}{started:>9}{slowest:>10}")
}

fn audit(verdict: &Verdict) -> String {
    let (steps, machines) = (counted(verdict.steps), verdict.machines);
    match &verdict.breach {
        None => format!("✓ everything held in {steps} steps of {machines} machines"),
        Some(breach) => format!("✗ {breach}"),
    }
}

/// As JSON.
pub(super) fn json(record: &Record) -> Value {
    let since = |at_ms: u64| at_ms.saturating_sub(record.began_ms);
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let acts = record.acts.iter().map(|act| {
        json!({
            "title": act.title,
            "began_ms": since(act.stretch.start),
            "lasted_ms": milliseconds(act.lasted()),
            "served": act.served(),
            "failed": act.failed(),
            "must_serve_all": act.serves_all,
            "why_failed": act.requests.iter().find_map(|request| request.answer.as_ref().err()),
            "slowest_ms": act.slowest().map(milliseconds),
            "last_answer": act.requests.iter().rev().find_map(|request| request.answer.as_ref().ok()),
            "stopped": act.stopped,
            "started": act.started,
        })
    });
    let lives = record.lives.iter().map(|(name, life)| {
        let life: Vec<Value> = life.iter().map(|(at, it)| json!({ "at_ms": since(*at), "is": word(*it) })).collect();
        json!({ "name": name, "life": life })
    });
    let Messages { orders, reports, notices } = record.messages;
    json!({
        "good": record.is_good(),
        "lasted_ms": since(record.ended_ms()),
        "acts": acts.collect::<Vec<_>>(),
        "timeline": lives.collect::<Vec<_>>(),
        "messages": { "orders": orders, "reports": reports, "notices": notices },
        "audit": { "good": record.audit.breach.is_none(), "steps": record.audit.steps,
                   "machines": record.audit.machines, "breach": record.audit.breach },
        "left_behind": record.left,
    })
}

fn word(condition: Condition) -> &'static str {
    match condition {
        Condition::Absent => "absent",
        Condition::Started => "started",
        Condition::Stopped => "stopped",
        Condition::Starting => "starting",
        Condition::Stopping => "stopping",
    }
}
