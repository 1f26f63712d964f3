//! What was observed of a run: its acts, the states of its components, its requests, its messages.

use super::traffic::Request;
use cloud_manager::document::{ComponentStatus, EventDocument, EventKind};
use model_check::{
    audit::{self, Past},
    world::Place,
};
use std::{ops::Range, time::Duration};

/// What was observed of a run.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// When it began, in milliseconds since 1970.
    pub(super) began_ms: u64,
    /// Its acts.
    pub(super) acts: Vec<Act>,
    /// The states of each component over time, in display order; and of the agent that is killed.
    pub(super) lives: Vec<(String, Vec<(u64, Condition)>)>,
    /// The messages of the protocol.
    pub(super) messages: Messages,
    /// What the audit of all journals says.
    pub(super) audit: Verdict,
    /// What was not removed.
    pub(super) left: Vec<String>,
}

/// One act.
#[derive(Debug, Default)]
pub(super) struct Act {
    pub(super) title: &'static str,
    /// No request may fail in it.
    pub(super) serves_all: bool,
    /// When, in milliseconds since 1970.
    pub(super) stretch: Range<u64>,
    /// The requests that were sent in it.
    pub(super) requests: Vec<Request>,
    /// The components that stopped in it.
    pub(super) stopped: Vec<String>,
    /// The components that started in it.
    pub(super) started: Vec<String>,
}

/// A condition, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Condition {
    Absent,
    Started,
    Stopped,
    Starting,
    Stopping,
}

/// The number of messages of each sort that were received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Messages {
    pub(super) orders: usize,
    pub(super) reports: usize,
    pub(super) notices: usize,
}

/// The result of an audit, in short.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdict {
    pub(super) steps: usize,
    pub(super) machines: usize,
    pub(super) breach: Option<String>,
}

impl Act {
    pub(super) fn lasted(&self) -> Duration {
        Duration::from_millis(self.stretch.end.saturating_sub(self.stretch.start))
    }

    pub(super) fn served(&self) -> usize {
        self.requests.iter().filter(|request| request.answer.is_ok()).count()
    }

    pub(super) fn failed(&self) -> usize {
        self.requests.len() - self.served()
    }

    /// The duration of the slowest successful answer.
    pub(super) fn slowest(&self) -> Option<Duration> {
        self.requests.iter().filter(|request| request.answer.is_ok()).map(|request| request.lasted).max()
    }

    /// Why a request failed that should not have.
    pub(super) fn unexpected_failure(&self) -> Option<&str> {
        let failed = self.requests.iter().find_map(|request| request.answer.as_ref().err());
        failed.filter(|_| self.serves_all).map(String::as_str)
    }
}

impl Condition {
    fn of(state: ComponentStatus) -> Self {
        match state {
            ComponentStatus::Started => Self::Started,
            ComponentStatus::Starting => Self::Starting,
            ComponentStatus::Stopping => Self::Stopping,
            ComponentStatus::Awaited | ComponentStatus::Stopped | ComponentStatus::Failed => Self::Stopped,
        }
    }
}

impl Record {
    pub(super) fn is_good(&self) -> bool {
        let promises_kept = self.acts.iter().all(|act| act.unexpected_failure().is_none());
        promises_kept && self.left.is_empty() && self.audit.breach.is_none()
    }

    /// The end of the last act.
    pub(super) fn ended_ms(&self) -> u64 {
        self.acts.last().map_or(self.began_ms, |act| act.stretch.end)
    }

    /// The states of something over time; shown last if it is new.
    pub(super) fn life(&mut self, name: &str) -> &mut Vec<(u64, Condition)> {
        let place = self.lives.iter().position(|(it, _)| it == name).unwrap_or_else(|| {
            self.lives.push((name.to_owned(), Vec::new()));
            self.lives.len() - 1
        });
        &mut self.lives[place].1
    }

    /// Records an event; returns the component that has just started or stopped, if any.
    pub(super) fn note(&mut self, event: &EventDocument, act: &mut Act) -> Option<(String, Condition)> {
        let component = event.component.clone()?;
        let condition = match event.what {
            EventKind::ComponentIs => Condition::of(event.state?),
            EventKind::ComponentGone => Condition::Absent,
            _ => return None,
        };
        let life = self.life(&component);
        // A restart may be too quick to show the stopped state in between.
        let was_up = life.last().is_some_and(|(_, it)| matches!(it, Condition::Started | Condition::Stopping));
        life.push((event.at_ms, condition));
        match condition {
            Condition::Started => {
                act.started.push(component.clone());
                Some((component, Condition::Started))
            }
            Condition::Stopped | Condition::Starting | Condition::Absent if was_up => {
                act.stopped.push(component.clone());
                Some((component, Condition::Stopped))
            }
            Condition::Stopped | Condition::Starting | Condition::Absent | Condition::Stopping => None,
        }
    }
}

impl Messages {
    /// Counts the messages of these recorded machines.
    pub(super) fn of(pasts: &[Past]) -> Self {
        let mut messages = Self::default();
        for past in pasts {
            let heard = past.steps.iter().filter(|step| step.input.is_some()).filter_map(|step| step.heard.as_ref());
            for (from, _, _) in heard {
                match (past.place == Place::Manager, *from == Place::Manager) {
                    (true, _) => messages.reports += 1,
                    (false, true) => messages.orders += 1,
                    (false, false) => messages.notices += 1,
                }
            }
        }
        messages
    }
}

impl Verdict {
    /// Audits these recorded machines.
    pub(super) fn on(pasts: &[Past]) -> Self {
        let audit = audit::audit(pasts);
        let breach = audit.breach.as_ref().map(|(after, breach)| format!("after {after} steps: {breach}"));
        Self { steps: audit.events.len(), machines: pasts.len(), breach }
    }
}
