//! Rollouts: replacements in steps that the manager carries out by itself. These commands follow, promote and cancel them.

use crate::{
    Ending,
    change::WaitOptions,
    failure::Failure,
    operator::{NextEvent, Operator},
    rendering::change_progress::{self, Output},
    rendering::screen,
    rendering::tiers::Tiers,
    request,
};
use clap::Args;
use cloud_manager::client::segment;
use cloud_manager::document::{
    Accepted, ApplicationDocument, Cancellation, ChangeRecord, RolloutDocument, RolloutState,
};
use std::time::Duration;

/// How long nothing may happen before the state of a rollout is requested again.
const SILENCE: Duration = Duration::from_secs(1);

/// Continue a rollout that waits after its canaries
#[derive(Args)]
#[command(after_help = "\
The rest is replaced as requested. A rollout whose next step was refused is retried.

Example: holdfast promote 12")]
pub(crate) struct PromoteArguments {
    /// The change, as holdfast apply and holdfast status name it
    change: u64,
    #[command(flatten)]
    waiting: WaitOptions,
}

/// Cancel a change
#[derive(Args)]
#[command(after_help = "\
Drops what has not begun, and undoes what was done where possible; shows the effect first.
A rollout ends between two of its steps; canaries that were not promoted are undone.

Example: holdfast cancel 12")]
pub(crate) struct CancelArguments {
    /// The change
    change: u64,
    /// Change nothing; show what cancelling would do
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    waiting: WaitOptions,
}

pub(crate) fn promote(arguments: &PromoteArguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.waiting.operator)?;
    let json = arguments.waiting.operator.json;
    let accepted: Accepted = operator.post(&format!("/v1/changes/{}/promote", arguments.change), &())?;
    if arguments.waiting.no_wait {
        screen::show(json, &accepted, || format!("change {} is promoted\n", accepted.change))?;
        return Ok(Ending::Done);
    }
    match of_change(&operator, arguments.change)? {
        Some((name, rollout)) => {
            let present = rollout.changes.last().copied().unwrap_or(rollout.change);
            let accepted = Accepted { change: present, ..accepted };
            follow(&operator, &name, &accepted, arguments.waiting.output(), &|_| Tiers::default())
        }
        None => Ok(Ending::Done),
    }
}

pub(crate) fn cancel(arguments: &CancelArguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.waiting.operator)?;
    let json = arguments.waiting.operator.json;
    let path = format!("/v1/changes/{}/cancel", arguments.change);
    let outlook: Cancellation = operator.post(&format!("{path}?dry-run=true"), &())?;
    let lines = |it: &Cancellation| it.will.iter().map(|line| format!("  {line}\n")).collect::<String>();
    if !json || arguments.dry_run {
        screen::show(json, &outlook, || format!("Cancelling change {}:\n{}", outlook.change, lines(&outlook)))?;
    }
    if arguments.dry_run {
        return Ok(Ending::Done);
    }
    if !arguments.yes && !request::confirmed()? {
        screen::print("Nothing was changed.\n")?;
        return Ok(Ending::Refuted);
    }
    let cancelled: Cancellation = operator.post(&path, &())?;
    let change = cancelled.undone_by.unwrap_or(cancelled.change);
    if arguments.waiting.no_wait {
        screen::show(json, &cancelled, || format!("change {} is cancelled\n", cancelled.change))?;
        return Ok(Ending::Done);
    }
    let accepted = Accepted { change, events_after: cancelled.events_after };
    change_progress::wait(&operator, &accepted, arguments.waiting.output(), Tiers::default())
}

/// An application as the manager has it.
pub(crate) fn application(operator: &Operator, name: &str) -> Result<Option<ApplicationDocument>, Failure> {
    use cloud_manager::client::ClientError;
    match operator.get(&format!("/v1/applications/{}", segment(name))) {
        Err(Failure::Manager(ClientError::Refused(404, _))) => Ok(None),
        found => found.map(Some),
    }
}

/// The rollout in progress that has this change among its steps, with its application.
pub(crate) fn of_change(operator: &Operator, change: u64) -> Result<Option<(String, RolloutDocument)>, Failure> {
    let all: Vec<ApplicationDocument> = operator.get("/v1/applications")?;
    let mut rollouts = all.into_iter().filter_map(|it| Some((it.name, it.rollout?)));
    Ok(rollouts.find(|(_, it)| it.changes.contains(&change)))
}

/// What is known about the rollout that a change is a step of. Steps may be quicker than the client that follows them, so
/// it relies on the list of changes and not on the present one.
struct Known {
    /// The changes of its steps so far, in order.
    changes: Vec<u64>,
    /// The number of steps; also after it has ended.
    steps: usize,
    /// Its state; absent once it has ended.
    state: Option<RolloutState>,
}

fn known(operator: &Operator, name: &str, change: u64) -> Result<Option<Known>, Failure> {
    let Some(ApplicationDocument { rollout, last_rollout, .. }) = application(operator, name)? else { return Ok(None) };
    let running = rollout.map(|it| Known { changes: it.changes, steps: it.steps, state: Some(it.state) });
    let ended = Known { steps: last_rollout.len(), changes: last_rollout, state: None };
    Ok(running.into_iter().chain([ended]).find(|it| it.changes.contains(&change)))
}

/// Follows a rollout, step by step, until it ends or waits for an operator.
pub(crate) fn follow(
    operator: &Operator,
    name: &str,
    accepted: &Accepted,
    output: Output,
    tiers: &dyn Fn(usize) -> Tiers,
) -> Result<Ending, Failure> {
    let mut accepted = accepted.clone();
    let mut step = 0;
    loop {
        if let Some(Known { changes, steps, .. }) = known(operator, name, accepted.change)? {
            step = changes.iter().position(|it| *it == accepted.change).unwrap_or(step);
            if !output.json {
                screen::print(&format!("Step {} of {steps}\n", step + 1))?;
            }
        }
        let ending = change_progress::follow(operator, &mut accepted, output, tiers(step))?;
        let next = match ending {
            Ending::Done => next_change(operator, name, &accepted, output.json)?,
            _ => Next::End(ending),
        };
        match next {
            Next::Change(change) => accepted.change = change,
            Next::End(ending) => {
                if output.json {
                    screen::print_document(
                        &operator.get::<ChangeRecord>(&format!("/v1/changes/{}", accepted.change))?,
                    )?;
                }
                return Ok(ending);
            }
        }
    }
}

/// What comes after a step.
enum Next {
    /// Another step, which is this change.
    Change(u64),
    /// Nothing, or nothing without an operator.
    End(Ending),
}

/// Waits for the step after a change.
fn next_change(operator: &Operator, name: &str, accepted: &Accepted, json: bool) -> Result<Next, Failure> {
    let mut events = operator.follow(accepted.events_after);
    let mut shown = Vec::new();
    loop {
        let known = known(operator, name, accepted.change)?;
        let after = known.iter().flat_map(|it| &it.changes).skip_while(|it| **it != accepted.change).nth(1);
        if let Some(next) = after {
            return Ok(Next::Change(*next));
        }
        let Some(Known { changes, state: Some(state), .. }) = known else { return Ok(Next::End(Ending::Done)) };
        let change = changes.first().copied().unwrap_or(accepted.change);
        let text = match &state {
            RolloutState::Running { waits_for } if *waits_for != shown => {
                shown.clone_from(waits_for);
                format!("  the next step waits for {} to start\n", waits_for.join(", "))
            }
            RolloutState::Running { .. } => String::new(),
            RolloutState::Canary { promotes_at_ms } => {
                let by_itself = promotes_at_ms.map(|at| {
                    format!("  it continues by itself at {} UTC\n", crate::rendering::moment::date_and_time(at))
                });
                let text = format!(
                    "The canaries are started. Continue: holdfast promote {change}; undo: holdfast cancel {change}\n{}",
                    by_itself.unwrap_or_default()
                );
                if !json {
                    screen::print(&text)?;
                }
                return Ok(Next::End(Ending::Done));
            }
            RolloutState::Blocked { reasons } => {
                let lines: String = reasons.iter().map(|it| format!("  ✗ {it}\n")).collect();
                let text = format!(
                    "The next step was refused:\n{lines}Try again: holdfast promote {change}; end it here: holdfast cancel {change}\n"
                );
                if !json {
                    screen::print(&screen::coloured(&text))?;
                }
                return Ok(Next::End(Ending::Refuted));
            }
        };
        if !json && !text.is_empty() && !shown.is_empty() {
            screen::print(&text)?;
        }
        // Any event may let the next step begin.
        let (NextEvent::StreamItem(_) | NextEvent::Timeout | NextEvent::Unreachable) = events.next(SILENCE)?;
    }
}
