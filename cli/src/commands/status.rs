//! `holdfast status`: an overview of everything.

use crate::{
    Ending,
    commands::binding,
    commands::component,
    commands::vm,
    failure::Failure,
    operator::{EventStream, NextEvent, Operator, OperatorOptions},
    rendering::moment,
    rendering::screen,
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

/// How long to wait for further events before redrawing.
const BREATHE: Duration = Duration::from_millis(200);
/// How long to wait for the first event.
const PATIENCE: Duration = Duration::from_secs(10);

/// Show an overview: what runs, what waits and for what
#[derive(Args)]
#[command(after_help = "Example: holdfast status --watch")]
pub(crate) struct Arguments {
    /// Redraw whenever something happens
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

/// Waits until something has happened, and returns the new status. A manager that goes away is waited for.
fn changed(operator: &Operator, events: &mut EventStream<'_>) -> Result<Status, Failure> {
    let mut was_absent = false;
    loop {
        match events.next(PATIENCE)? {
            NextEvent::StreamItem(_) => {}
            NextEvent::Timeout if was_absent => {}
            NextEvent::Timeout => continue,
            NextEvent::Unreachable => {
                if !mem::replace(&mut was_absent, true) {
                    anstream::eprintln!("the manager does not answer; waiting for it");
                }
                continue;
            }
        }
        // Events come in bursts; shows the result of a burst.
        while matches!(events.next(BREATHE)?, NextEvent::StreamItem(_)) {}
        match looked(operator) {
            Err(Failure::Manager(ClientError::Unreachable(..) | ClientError::Broken(..))) => {}
            answer => return answer,
        }
    }
}

/// The present status, without lost VMs that are no longer needed.
fn looked(operator: &Operator) -> Result<Status, Failure> {
    let mut status: Status = operator.get("/v1/status")?;
    status.vms.retain(|it| !it.past);
    status.summary.vms = status.vms.len();
    Ok(status)
}

/// What an operator should look at; for failed operations, with the reason and the end of the output.
fn attention(status: &Status) -> String {
    let mut text = String::new();
    for line in &status.attention {
        text += &format!("✗ {line}\n");
        let failed = |it: &&Component| {
            it.failed_operation.as_ref().is_some_and(|op| line.starts_with(&format!("{}: {op} failed", it.name)))
        };
        let component = status.components.iter().find(failed);
        let Some(detail) = component.and_then(|it| it.failure.as_deref()) else { continue };
        let operation = component.and_then(|it| it.failed_operation.as_deref());
        text += &format!("    {}\n{}", reason::first(operation, detail), reason::rest(detail));
    }
    text
}

/// Renders a status.
fn shown(status: &Status) -> String {
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
    parts.push(screen::coloured(&attention(status)));
    parts.push(vm::shown(&status.vms));
    parts.push(component::shown(&status.components));
    parts.push(binding::shown(&status.bindings));
    parts.push(status.changes.iter().map(running).collect());
    parts.push(status.applications.iter().filter_map(rollout).collect());
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// A replacement in steps that is in progress.
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
