//! Replacement in steps: one change after the other, each posted when the previous one is complete.
//!
//! To the protocol's machine a rollout is an operator that submits the next change once the last is done. It is part of
//! the manager's journalled state, so it continues after the client has gone, after a restart and after a crash between
//! two steps. The next step is posted only when every component of the application that should be started is started:
//! so at most one step's components are down.

use super::state::Step;
use crate::document::{RolloutDocument, RolloutState};
use protocol::{
    ComponentState, Name,
    manager::{Book, ComponentEntry},
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// A replacement in steps that is not finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rollout {
    /// Its first change, which identifies it.
    pub first: u64,
    /// The changes posted so far, in order.
    pub posted: Vec<u64>,
    /// The steps that were not posted yet.
    pub ahead: VecDeque<Step>,
    /// The number of steps.
    pub steps: usize,
    /// A short description, for the history.
    pub about: String,
    /// After this many steps, wait to be promoted; `None` once it was promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary_steps: Option<usize>,
    /// Promote automatically after this many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promote_after_ms: Option<u64>,
    /// When it is promoted automatically, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotes_at_ms: Option<u64>,
    /// Why the manager refused the next step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// Components that were not started when it began: it does not wait for them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub down_before: BTreeSet<Name>,
}

/// What a rollout may do now.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// It waits: for its change, or for these components.
    Wait(Vec<Name>),
    /// The canaries are replaced and started; it waits to be promoted.
    Canary,
    /// The next step may be posted.
    Post,
    /// There is no next step.
    Finished,
    /// The next step was refused.
    Blocked,
}

impl Rollout {
    /// Whether this change is one of its steps.
    pub fn has(&self, change: u64) -> bool {
        self.posted.contains(&change)
    }

    /// The change of the present step.
    pub fn present(&self) -> u64 {
        self.posted.last().copied().unwrap_or(self.first)
    }

    /// Whether it waits to be promoted once its canaries are started.
    fn is_canary(&self) -> bool {
        self.canary_steps == Some(self.posted.len())
    }

    /// What it may do now. `is_done` says whether the change of the present step is.
    pub fn next(&self, application: &Name, book: &Book, is_done: bool) -> Next {
        if !is_done {
            return Next::Wait(Vec::new());
        }
        if self.ahead.is_empty() {
            return Next::Finished;
        }
        if !self.blocked.is_empty() {
            return Next::Blocked;
        }
        let awaited = not_started(application, book).map(|it| &it.name).filter(|it| !self.down_before.contains(*it));
        let out: Vec<Name> = awaited.cloned().collect();
        match out.is_empty() {
            false => Next::Wait(out),
            true if self.is_canary() => Next::Canary,
            true => Next::Post,
        }
    }

    /// Its state, as a document.
    pub fn document(&self, application: &Name, book: &Book, is_done: bool) -> RolloutDocument {
        let state = match self.next(application, book, is_done) {
            Next::Canary => RolloutState::Canary { promotes_at_ms: self.promotes_at_ms },
            Next::Blocked => RolloutState::Blocked { reasons: self.blocked.clone() },
            Next::Wait(names) => RolloutState::Running { waits_for: names.iter().map(Name::to_string).collect() },
            Next::Post | Next::Finished => RolloutState::Running { waits_for: Vec::new() },
        };
        let (step, steps) = (self.posted.len(), self.steps);
        RolloutDocument { change: self.first, changes: self.posted.clone(), step, steps, state }
    }
}

/// Components of an application that should be started and are not.
pub(crate) fn not_started<'a>(application: &Name, book: &'a Book) -> impl Iterator<Item = &'a ComponentEntry> {
    let prefix = format!("{application}/");
    book.components().filter(move |it| {
        let is_started = it.condition.is_some_and(|condition| condition.state == ComponentState::Started);
        it.name.as_str().starts_with(&prefix) && it.expected && !it.is_leaving() && !is_started
    })
}
