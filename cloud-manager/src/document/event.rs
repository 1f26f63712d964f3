//! Events, and the record of a change that follows from them.

use super::{ComponentStatus, EventKind, Phase, Retrying};
use crate::handle::Event;
use protocol::{
    ComponentState, Operation, Refusal,
    manager::{CancelOutlook, News},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventDocument {
    /// Its number.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Its kind.
    pub what: EventKind,
    /// A description, in one sentence.
    pub text: String,
    /// The change it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<u64>,
    /// The phase it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The component it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// The VM it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<String>,
    /// The state that the component is in now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ComponentStatus>,
    /// The operation that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// What was requested; or the end of an operation's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Events that were requested but are no longer stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Gap {
    /// The first one missing.
    pub from: u64,
    /// The last one missing.
    pub to: u64,
}

/// What is known about a change, done or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeRecord {
    /// Its number.
    pub change: u64,
    /// What was requested, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The name of the token that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// The change that went back to an earlier version of what this one made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back_by: Option<u64>,
    /// When it was accepted, in milliseconds since 1970; absent if that is no longer stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at_ms: Option<u64>,
    /// When it was done; absent if it is not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at_ms: Option<u64>,
    /// Whether it was cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Its phases so far.
    pub phases: Vec<PhaseRecord>,
    /// The events while it ran, if only this change was requested. Changes that run at the same time share the events that
    /// do not belong to one change alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventDocument>,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is not done yet.
    #[default]
    InProgress,
    /// It is not done, and waits for a failed operation that needs manual action.
    Failed,
    /// It is done.
    Done,
    /// It was cancelled.
    Cancelled,
    /// It was done or had failed, and a later change went back to an earlier version.
    RolledBack,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::InProgress => "in progress",
            Self::Failed => "failed",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::RolledBack => "rolled back",
        })
    }
}

/// One phase of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PhaseRecord {
    /// Which part of the change.
    pub phase: Phase,
    /// When it was posted, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted_at_ms: Option<u64>,
    /// When it was done; absent if it is not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at_ms: Option<u64>,
}

impl From<&Event> for EventDocument {
    fn from(event: &Event) -> Self {
        let about = event.about.clone();
        let blank = Self { number: event.number, at_ms: event.at_ms, ..Self::default() };
        let named = |fallback: String| about.clone().unwrap_or(fallback);
        let vm = |what: EventKind, id: protocol::VmId, says: &dyn Fn(&str) -> String| {
            let name = named(id.to_string());
            Self { what, text: says(&name), vm: Some(name), ..blank.clone() }
        };
        match &event.news {
            News::Accepted(change) => {
                let asked = about.as_ref().map(|asked| format!(": {asked}")).unwrap_or_default();
                let text = format!("{change} accepted{asked}");
                Self { what: EventKind::Accepted, text, change: Some(change.0), detail: about, ..blank }
            }
            News::Refused(refusals) => {
                let detail = refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("\n");
                Self { what: EventKind::Refused, text: "a request was refused".into(), detail: Some(detail), ..blank }
            }
            News::PhasePosted(change, phase) => {
                let phase = Phase::from(*phase);
                let text = format!("{change}: {phase}");
                let phase = Some(phase);
                Self { what: EventKind::PhasePosted, text, change: Some(change.0), phase, ..blank }
            }
            News::PhaseDone(change, phase) => {
                let phase = Phase::from(*phase);
                let text = format!("{change}: {phase}: done");
                let phase = Some(phase);
                Self { what: EventKind::PhaseDone, text, change: Some(change.0), phase, ..blank }
            }
            News::ChangeDone(change) => {
                let text = format!("{change} done");
                Self { what: EventKind::ChangeDone, text, change: Some(change.0), ..blank }
            }
            News::Cancelling(change, outlook) => {
                let becomes = match outlook {
                    CancelOutlook::Dropped => "it is dropped",
                    CancelOutlook::Finished => "what is under way is finished, and the rest is dropped",
                    CancelOutlook::Undone { .. } => "what was done is undone",
                };
                let text = format!("{change} is being cancelled: {becomes}");
                Self { what: EventKind::Cancelling, text, change: Some(change.0), ..blank }
            }
            News::ChangeCancelled(change) => {
                let text = format!("{change} cancelled");
                Self { what: EventKind::ChangeCancelled, text, change: Some(change.0), ..blank }
            }
            News::ComponentIs(id, condition) => {
                let name = named(id.to_string());
                let text = match condition.state {
                    ComponentState::Failed(_) => format!("{name} {}", condition.state),
                    state => format!("{name} is {state}"),
                };
                let state = Some(condition.state.into());
                let operation = match condition.state {
                    ComponentState::Failed(operation) => Some(operation.to_string()),
                    _ => None,
                };
                Self { what: EventKind::ComponentIs, text, component: Some(name), state, operation, ..blank }
            }
            News::ComponentGone(id) => {
                let name = named(id.to_string());
                let text = format!("{name} is gone");
                Self { what: EventKind::ComponentGone, text, component: Some(name), ..blank }
            }
            News::OperationFailed(id, operation, detail) => {
                let name = named(id.to_string());
                Self {
                    what: EventKind::OperationFailed,
                    text: format!("{name}: {operation} failed, manual action required"),
                    component: Some(name),
                    operation: Some(operation.to_string()),
                    detail: Some(detail.to_string()),
                    ..blank
                }
            }
            News::AttemptFailed(id, attempt) => {
                let name = named(id.to_string());
                let words = Retrying::new(attempt, event.at_ms).in_words(event.at_ms);
                let colon = if attempt.operation == Operation::Run { "" } else { ":" };
                Self {
                    what: EventKind::AttemptFailed,
                    text: format!("{name}{colon} {words}"),
                    component: Some(name),
                    operation: Some(attempt.operation.to_string()),
                    detail: Some(attempt.detail.to_string()),
                    ..blank
                }
            }
            News::VmInstantiated(id) => vm(EventKind::VmMade, *id, &|name| format!("vm {name} is created")),
            News::VmNotInstantiated(id, detail) => Self {
                detail: Some(detail.to_string()),
                ..vm(EventKind::VmNotMade, *id, &|name| format!("vm {name} could not be created; the cloud will retry"))
            },
            News::VmIs(id, state) => {
                let says = match state {
                    protocol::VmState::Empty => "has no components",
                    protocol::VmState::Started => "all components are started",
                    protocol::VmState::Stopped => "not all components are started",
                };
                vm(EventKind::VmIs, *id, &|name| format!("vm {name}: {says}"))
            }
            News::VmSuspected(id) => {
                vm(EventKind::VmSuspected, *id, &|name| format!("vm {name} has not answered for a while"))
            }
            News::VmWell(id) => vm(EventKind::VmWell, *id, &|name| format!("vm {name} answers again")),
            News::VmLost(id) => vm(EventKind::VmLost, *id, &|name| format!("vm {name} is lost")),
            News::VmDestroyed(id) => vm(EventKind::VmDestroyed, *id, &|name| format!("vm {name} is destroyed")),
        }
    }
}
