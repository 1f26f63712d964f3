//! `holdfast status`: an overview of everything.

use crate::{
    Ending,
    commands::component,
    commands::vm,
    failure::Failure,
    input::names::{self, Meant},
    operator::{EventStream, NextEvent, Operator, OperatorOptions},
    rendering::moment,
    rendering::screen,
};
use clap::Args;
use cloud_manager::{
    client::ClientError,
    document::{
        ApplicationDocument, Component, ComponentStatus, Phase, RolloutDocument, RolloutState, RunningChange, Status,
        Summary, VmHealth, reason,
    },
};
use std::{
    collections::BTreeSet,
    io::{self, IsTerminal},
    mem,
    time::Duration,
};

/// How long to wait for further events before redrawing.
const BREATHE: Duration = Duration::from_millis(200);
/// How long to wait for the first event.
const PATIENCE: Duration = Duration::from_secs(10);

/// Show an overview: problems first, then what runs and what waits for what
#[derive(Args)]
#[command(after_help = "\
Example: holdfast status
         holdfast status shop --watch")]
pub(crate) struct Arguments {
    /// Show only this application, component or VM; `web[0]` is enough where only one can be meant
    #[arg(value_name = "NAME")]
    name: Option<String>,
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
        if let Some(name) = &arguments.name
            && !narrow(&mut status, name)?
        {
            return component::show(&operator, name, arguments.operator.json);
        }
        if arguments.operator.json {
            screen::print_document(&status)?;
        } else {
            let text = shown(&status);
            let redraw = arguments.watch && io::stdout().is_terminal();
            screen::print(&if redraw { in_place(&text) } else { text })?;
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

/// Leaves only what belongs to an application or a VM; `false` if the name means a component.
fn narrow(status: &mut Status, name: &str) -> Result<bool, Failure> {
    let prefix = format!("{name}/");
    if status.applications.iter().any(|it| it.name == name) {
        status.applications.retain(|it| it.name == name);
        status.vms.retain(|it| it.name.starts_with(&prefix));
        let vms: BTreeSet<&String> = status.vms.iter().map(|it| &it.name).collect();
        status.components.retain(|it| it.name.starts_with(&prefix) || vms.contains(&it.vm));
    } else if status.vms.iter().any(|it| it.name == name) {
        status.applications.clear();
        status.vms.retain(|it| it.name == name);
        status.components.retain(|it| it.vm == name);
    } else {
        let names: Vec<&str> = status.components.iter().map(|it| it.name.as_str()).collect();
        if names::meant(name, &names) != Meant::None {
            return Ok(false);
        }
        let applications = status.applications.iter().map(|it| it.name.as_str());
        let known = names.iter().copied().chain(applications).chain(status.vms.iter().map(|it| it.name.as_str()));
        return Err(names::unknown(name, known.collect::<Vec<_>>()));
    }
    let kept: BTreeSet<&String> = status.components.iter().map(|it| &it.name).collect();
    status.bindings.retain(|it| kept.contains(&it.client) || kept.contains(&it.provider));
    status.attention.retain(|line| line.contains(&prefix) || line.contains(name));
    let asks = |it: &RunningChange| it.asked.as_ref().is_none_or(|asked| asked.contains(name));
    status.changes.retain(asks);
    let started = |it: &&Component| it.state == ComponentStatus::Started;
    let loops = |it: &Component| it.retrying.as_ref().is_some_and(|it| it.crash_looping);
    status.summary = Summary {
        vms: status.vms.len(),
        vms_well: status.vms.iter().filter(|it| it.health == VmHealth::Well).count(),
        components: status.components.len(),
        components_started: status.components.iter().filter(started).count(),
        components_failed: status.components.iter().filter(|it| it.failed_operation.is_some()).count(),
        components_crash_looping: status.components.iter().filter(|it| loops(it)).count(),
        bindings: status.bindings.len(),
        bindings_held: status.bindings.iter().filter(|it| it.held).count(),
        changes: status.changes.len(),
    };
    Ok(true)
}

/// Text over what was drawn before, without flicker: each line erases its old rest, and the end erases what is below.
fn in_place(text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("{line}\x1b[K\n")).collect();
    format!("\x1b[H{lines}\x1b[J")
}

/// What an operator should look at; for failed operations, with the reason and the end of the output.
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

/// Renders a status.
fn shown(status: &Status) -> String {
    let Summary { vms, vms_well, components, components_started, bindings, bindings_held, changes, .. } =
        &status.summary;
    let count = |number: usize, what: &str| if number > 0 { format!(", {number} {what}") } else { String::new() };
    let failed = count(status.summary.components_failed, "failed")
        + &count(status.summary.components_crash_looping, "crash-looping");
    let summary = screen::bold(&format!(
        "{}, {vms_well} well · {}, {components_started} started{failed} · {}, {bindings_held} held · {} under way\n",
        screen::several(*vms, "VM"),
        screen::several(*components, "component"),
        screen::several(*bindings, "binding"),
        screen::several(*changes, "change"),
    ));
    let mut parts = vec![
        screen::coloured(&attention(status)),
        status.changes.iter().map(running).collect(),
        status.applications.iter().filter_map(rollout).collect(),
        component::shown(&status.components, status.at_ms),
        vm::shown(&status.vms),
        summary,
    ];
    parts.retain(|part| !part.is_empty());
    fitted(&parts.join("\n"))
}

/// Lines cut to the width of the terminal; elsewhere, as they are.
fn fitted(text: &str) -> String {
    match terminal_size::terminal_size() {
        Some((width, _)) if io::stdout().is_terminal() => {
            text.lines().map(|line| cut(line, usize::from(width.0)) + "\n").collect()
        }
        _ => text.to_owned(),
    }
}

/// The first columns of a line. Colours take no room.
fn cut(line: &str, columns: usize) -> String {
    let plain = anstream::adapter::strip_str(line).to_string();
    if plain.chars().count() <= columns {
        return line.to_owned();
    }
    plain.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
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
