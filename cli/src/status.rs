//! `holdfast status`: everything at a glance.

use crate::{
    Ending, applied, binding, component, drift,
    failure::Failure,
    moment,
    operator::{Heard, Operator, OperatorOptions},
    screen, vm,
};
use clap::Args;
use cloud_manager::document::{RunningChange, Status, Summary};
use std::{
    io::{self, IsTerminal},
    time::Duration,
};

/// How long to wait for more to happen before showing it.
const BREATHE: Duration = Duration::from_millis(200);
/// How long to wait for anything to happen.
const PATIENCE: Duration = Duration::from_secs(10);

/// See everything at a glance: what runs, what waits and for what
#[derive(Args)]
#[command(after_help = "Example: holdfast status --watch")]
pub(crate) struct Arguments {
    /// Show it anew whenever something happens
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    operator: OperatorOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.operator)?;
    let mut status: Status = operator.get("/v1/status")?;
    let mut events = operator.follow(status.newest_event);
    loop {
        if arguments.operator.json {
            screen::print_document(&status)?;
        } else {
            let clear = if arguments.watch && io::stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
            screen::print(&format!("{clear}{}", shown(&status, &drift(&operator, &status))))?;
        }
        if !arguments.watch {
            return Ok(Ending::Done);
        }
        while !matches!(events.next(PATIENCE)?, Heard::Happening(_)) {}
        // Things happen in bursts; show what came of them.
        while matches!(events.next(BREATHE)?, Heard::Happening(_)) {}
        status = operator.get("/v1/status")?;
    }
}

/// What of each application is not there, or is there and was not asked for.
fn drift(operator: &Operator, status: &Status) -> Vec<String> {
    // Whoever may only look does not see what was applied.
    let applications = applied::all(operator, status).unwrap_or_default();
    let mut lines = Vec::new();
    for applied in &applications {
        let name = &applied.record.expansion.application;
        // What is under way is on the books already.
        lines.extend(
            drift::on_the_books(applied, None).iter().map(|line| format!("{name}: {line} (holdfast reconcile {name})")),
        );
    }
    lines
}

/// A status for people.
fn shown(status: &Status, drift: &[String]) -> String {
    let Summary { vms, vms_well, components, components_started, components_failed, bindings, bindings_held, changes } =
        &status.summary;
    let failed = if *components_failed > 0 { format!(", {components_failed} failed") } else { String::new() };
    let mut parts = vec![screen::bold(&format!(
        "{}, {vms_well} well · {}, {components_started} started{failed} · {}, {bindings_held} held · {} under way\n",
        several(*vms, "VM"),
        several(*components, "component"),
        several(*bindings, "binding"),
        several(*changes, "change"),
    ))];
    parts.push(screen::coloured(
        &status.attention.iter().chain(drift).map(|it| format!("✗ {it}\n")).collect::<String>(),
    ));
    parts.push(vm::shown(&status.vms));
    parts.push(component::shown(&status.components));
    parts.push(binding::shown(&status.bindings));
    parts.push(status.changes.iter().map(running).collect());
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn several(number: usize, what: &str) -> String {
    format!("{} {what}{}", screen::counted(number), if number == 1 { "" } else { "s" })
}

fn running(change: &RunningChange) -> String {
    let asked = change.asked.as_deref().map(|asked| format!(": {asked}")).unwrap_or_default();
    let since = change.accepted_at_ms.map(|at| format!(", since {} UTC", moment::date_and_time(at)));
    let phase = change.phase.as_deref().map_or("not begun".into(), |phase| format!("phase {phase}"));
    let done =
        if change.phases_done.is_empty() { String::new() } else { format!(" after {}", change.phases_done.join(", ")) };
    let mut text = format!("change {}{asked}\n  {phase}{done}{}\n", change.change, since.unwrap_or_default());
    change.waits_for.iter().for_each(|wait| text += &format!("  waits for {wait}\n"));
    match change.waiting.saturating_sub(change.waits_for.len()) {
        0 => text,
        more => text + &format!("  and for {more} more\n"),
    }
}
