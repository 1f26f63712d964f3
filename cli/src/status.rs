//! `holdfast status`: everything at a glance.

use crate::{
    Ending, binding, component,
    failure::Failure,
    moment,
    operator::{Following, Heard, Operator, OperatorOptions},
    screen, vm,
};
use clap::Args;
use cloud_manager::{
    client::ClientError,
    document::{
        ApplicationDocument, Component, Phase, RolloutDocument, RolloutState, RunningChange, Status, Summary, reason,
    },
};
use std::{
    io::{self, IsTerminal},
    mem,
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
    let mut status = looked(&operator)?;
    let mut events = operator.follow(status.newest_event);
    loop {
        if arguments.operator.json {
            screen::print_document(&status)?;
        } else {
            let clear = if arguments.watch && io::stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
            screen::print(&format!("{clear}{}", shown(&status)))?;
        }
        if !arguments.watch {
            return Ok(Ending::Done);
        }
        status = changed(&operator, &mut events)?;
    }
}

/// Waits until something has happened, and says how things are then. A manager that goes away is waited for.
fn changed(operator: &Operator, events: &mut Following<'_>) -> Result<Status, Failure> {
    let mut was_absent = false;
    loop {
        match events.next(PATIENCE)? {
            Heard::StreamItem(_) => {}
            Heard::Silence if was_absent => {}
            Heard::Silence => continue,
            Heard::Absent => {
                if !mem::replace(&mut was_absent, true) {
                    anstream::eprintln!("the manager does not answer; waiting for it");
                }
                continue;
            }
        }
        // Things happen in bursts; show what came of them.
        while matches!(events.next(BREATHE)?, Heard::StreamItem(_)) {}
        match looked(operator) {
            Err(Failure::Manager(ClientError::Unreachable(..) | ClientError::Broken(..))) => {}
            answer => return answer,
        }
    }
}

/// How things are now, without what is a thing of the past.
fn looked(operator: &Operator) -> Result<Status, Failure> {
    let mut status: Status = operator.get("/v1/status")?;
    status.vms.retain(|it| !it.past);
    status.summary.vms = status.vms.len();
    Ok(status)
}

/// What a person should look at; where an operation failed, why, and the end of its output.
fn attention(status: &Status) -> String {
    let mut text = String::new();
    for line in &status.attention {
        text += &format!("✗ {line}\n");
        let failed = |it: &&Component| {
            it.failed_operation.as_ref().is_some_and(|op| line.starts_with(&format!("{}: {op} failed", it.name)))
        };
        let begins = |name: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', ':']));
        let retried = |it: &&Component| begins(&it.name) && it.retrying.is_some();
        if let Some(retrying) = status.components.iter().find(retried).and_then(|it| it.retrying.as_ref()) {
            text += &reason::rest(&retrying.detail);
        }
        let component = status.components.iter().find(failed);
        let Some(detail) = component.and_then(|it| it.failure.as_deref()) else { continue };
        let operation = component.and_then(|it| it.failed_operation.as_deref());
        text += &format!("    {}\n{}", reason::first(operation, detail), reason::rest(detail));
    }
    text
}

/// A status for people.
fn shown(status: &Status) -> String {
    let Summary { vms, vms_well, components, components_started, bindings, bindings_held, changes, .. } =
        &status.summary;
    let count = |number: usize, what: &str| if number > 0 { format!(", {number} {what}") } else { String::new() };
    let failed = count(status.summary.components_failed, "failed")
        + &count(status.summary.components_crash_looping, "crash-looping");
    let mut parts = vec![screen::bold(&format!(
        "{}, {vms_well} well · {}, {components_started} started{failed} · {}, {bindings_held} held · {} under way\n",
        several(*vms, "VM"),
        several(*components, "component"),
        several(*bindings, "binding"),
        several(*changes, "change"),
    ))];
    parts.push(screen::coloured(&attention(status)));
    parts.push(vm::shown(&status.vms));
    parts.push(component::shown(&status.components));
    parts.push(binding::shown(&status.bindings));
    parts.push(status.changes.iter().map(running).collect());
    parts.push(status.applications.iter().filter_map(rollout).collect());
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// A replacement in steps that is under way.
fn rollout(application: &ApplicationDocument) -> Option<String> {
    let RolloutDocument { change, step, steps, state, .. } = application.rollout.as_ref()?;
    let state = match state {
        RolloutState::Running { waits_for } if waits_for.is_empty() => String::new(),
        RolloutState::Running { waits_for } => format!("\n  waits for {}", waits_for.join(", ")),
        RolloutState::Canary { .. } => {
            format!("\n  waits after its canaries (holdfast promote {change} or holdfast cancel {change})")
        }
        RolloutState::Blocked { reasons } => format!(
            "\n  the next step was refused: {} (holdfast promote {change} tries again, holdfast cancel {change} ends it)",
            reasons.join("; ")
        ),
    };
    Some(format!("rollout {change} of {}: step {step} of {steps}{state}\n", application.name))
}

fn phases(phases: &[Phase]) -> String {
    phases.iter().map(Phase::to_string).collect::<Vec<_>>().join(", ")
}

fn several(number: usize, what: &str) -> String {
    format!("{} {what}{}", screen::counted(number), if number == 1 { "" } else { "s" })
}

fn running(change: &RunningChange) -> String {
    let asked = change.asked.as_deref().map(|asked| format!(": {asked}")).unwrap_or_default();
    let since = change.accepted_at_ms.map(|at| format!(", since {} UTC", moment::date_and_time(at)));
    let phase = change.phase.map_or("not begun".into(), |phase| phase.to_string());
    let done =
        if change.phases_done.is_empty() { String::new() } else { format!(" after {}", phases(&change.phases_done)) };
    let mut text = format!("change {}{asked}\n  {phase}{done}{}\n", change.change, since.unwrap_or_default());
    change.waits_for.iter().for_each(|wait| text += &format!("  waits for {wait}\n"));
    match change.waiting.saturating_sub(change.waits_for.len()) {
        0 => text,
        more => text + &format!("  and for {more} more\n"),
    }
}
