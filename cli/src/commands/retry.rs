//! `holdfast component retry` and `skip`, and the wait for their outcome.
//!
//! The change is done once the agent has acknowledged the order; whether the operation succeeds this time shows later. So
//! the component is followed until it is started, gone, or has failed again.

use crate::{
    Ending,
    change::WaitOptions,
    failure::Failure,
    input::names,
    operator::{NextEvent, Operator},
    rendering::change_progress::{Output, failure_text, view},
    rendering::screen,
    rendering::tiers::Tiers,
};
use cloud_manager::{
    client::{StreamItem, segment},
    document::{Accepted, Binding, ChangeRecord, Component, ComponentStatus, EventKind, Status, quoted},
};
use protocol::Need;
use std::collections::BTreeSet;

/// Sends the request about a component with a failed operation, and waits for the outcome, unless the options say
/// otherwise.
pub(crate) fn help(waiting: &WaitOptions, name: &str, word: &str) -> Result<Ending, Failure> {
    let operator = Operator::new(&waiting.operator)?;
    let name = &names::component(&operator, name)?;
    let path = format!("/v1/components/{}/{word}", segment(name));
    if waiting.no_wait {
        return waiting.ask(&operator, &path, &());
    }
    let accepted: Accepted = operator.post(&path, &())?;
    let json = waiting.operator.json;
    let end = follow(&operator, &accepted, name, waiting.output())?;
    if json {
        screen::print_document(&operator.get::<ChangeRecord>(&format!("/v1/changes/{}", accepted.change))?)?;
    } else {
        screen::print(&screen::coloured(&end.text(name)))?;
    }
    Ok(if matches!(end, End::Well(_)) { Ending::Done } else { Ending::Refuted })
}

/// The outcome.
enum End {
    /// It is as expected.
    Well(String),
    /// An operation failed again.
    Failed(Option<Box<Component>>),
    /// It waits for a component with a failed operation.
    Waits(String),
}

impl End {
    fn text(&self, name: &str) -> String {
        match self {
            Self::Well(state) => format!("✓ {name} is {state}\n"),
            Self::Failed(component) => {
                let why = component.as_ref().map_or_else(|| format!("{name}: failed\n"), |it| failure_text(it));
                format!("✗ {why}")
            }
            Self::Waits(provider) => {
                let retry = quoted(provider);
                format!("✗ {name} waits for {provider}, which failed (holdfast component retry {retry})\n")
            }
        }
    }
}

fn follow(operator: &Operator, accepted: &Accepted, name: &str, output: Output) -> Result<End, Failure> {
    let mut view = view(output.json, Tiers::default());
    let mut feed = output.feed(operator)?;
    let mut events = operator.follow(accepted.events_after);
    let (mut is_done, mut failed, mut quiet) = (false, false, false);
    let end = loop {
        let next = events.next(view.quiet_limit())?;
        // By then, all events about the component have been received, or are no longer stored.
        quiet |= matches!(next, NextEvent::Timeout | NextEvent::StreamItem(StreamItem::Gap(_)));
        let is_news = match next {
            NextEvent::StreamItem(StreamItem::Event(event)) => {
                let about = event.component.as_deref() == Some(name);
                failed |= about && event.what == EventKind::OperationFailed;
                let done = event.change == Some(accepted.change) && event.what.ends_change();
                is_done |= done;
                // The reason of the failure is shown at the end.
                if event.change.is_none_or(|it| it == accepted.change)
                    && event.what != EventKind::Refused
                    && !done
                    && !failed
                {
                    for event in feed.take(*event) {
                        view.tell(&event)?;
                    }
                }
                about || done
            }
            // The end of the change may be among the events that are no longer stored.
            NextEvent::StreamItem(StreamItem::Gap(_)) => {
                is_done = true;
                true
            }
            NextEvent::Timeout => true,
            NextEvent::Unreachable => {
                view.absent()?;
                continue;
            }
        };
        if !is_news {
            continue;
        }
        let Ok(status) = operator.get::<Status>("/v1/status") else { continue };
        // Until the order arrives, the component stays as it was.
        let Some(component) = status.components.iter().find(|it| it.name == name) else {
            break End::Well("gone".into());
        };
        match component.state {
            ComponentStatus::Failed if failed || (is_done && quiet) => {
                break End::Failed(Some(Box::new(component.clone())));
            }
            state if is_done && at_rest(component) => break End::Well(state.to_string()),
            _ if failed => break End::Failed(None),
            ComponentStatus::Stopped if is_done && let Some(provider) = failed_below(&status, name) => {
                break End::Waits(provider);
            }
            _ => view.waits(accepted.change, &component.waits_for, component.waits_for.len())?,
        }
    };
    view.end()?;
    Ok(end)
}

/// Whether it is in its expected state.
fn at_rest(component: &Component) -> bool {
    let wanted = if component.expected { ComponentStatus::Started } else { ComponentStatus::Stopped };
    !component.leaving && component.state == wanted
}

/// A component with a failed operation that this one waits for, directly or indirectly.
fn failed_below(status: &Status, name: &str) -> Option<String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![name]);
    while let Some(client) = open.pop() {
        let needs =
            |it: &&Binding| it.client == client && !it.held && !it.leaving && !matches!(it.need.0, Need::Weak(_));
        for binding in status.bindings.iter().filter(needs) {
            let failed =
                |it: &Component| it.name == binding.provider && it.state == ComponentStatus::Failed && !it.leaving;
            if status.components.iter().any(failed) {
                return Some(binding.provider.clone());
            }
            if seen.insert(&binding.provider) {
                open.push(&binding.provider);
            }
        }
    }
    None
}
