//! Closed lists for the documents: states of components, health of VMs, kinds of events, phases, needs.

use protocol::{ComponentState, Need, manager::PhaseKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use utoipa::ToSchema;

/// The state of a component; the failed operation is a separate field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComponentStatus {
    /// Its VM has not reported it.
    Awaited,
    /// It does not run.
    Stopped,
    /// It is being started.
    Starting,
    /// Its readiness check passes.
    Started,
    /// It is being stopped.
    Stopping,
    /// An operation failed permanently.
    Failed,
}

impl From<ComponentState> for ComponentStatus {
    fn from(state: ComponentState) -> Self {
        match state {
            ComponentState::Stopped => Self::Stopped,
            ComponentState::Starting => Self::Starting,
            ComponentState::Started => Self::Started,
            ComponentState::Stopping => Self::Stopping,
            ComponentState::Failed(_) => Self::Failed,
        }
    }
}

impl fmt::Display for ComponentStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Awaited => "awaited",
            Self::Stopped => "stopped",
            Self::Starting => "starting",
            Self::Started => "started",
            Self::Stopping => "stopping",
            Self::Failed => "failed",
        })
    }
}

/// The health of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VmHealth {
    /// Its agent has not joined yet.
    Awaited,
    /// Its agent answers.
    Well,
    /// Its agent has not answered for a while.
    Suspected,
    /// It was declared lost.
    Lost,
}

impl fmt::Display for VmHealth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Awaited => "awaited",
            Self::Well => "well",
            Self::Suspected => "suspected",
            Self::Lost => "lost",
        })
    }
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A request was accepted.
    #[default]
    Accepted,
    /// A request was refused.
    Refused,
    /// A phase of a change was posted.
    PhasePosted,
    /// A phase of a change is done.
    PhaseDone,
    /// A change is done.
    ChangeDone,
    /// A change is being cancelled.
    Cancelling,
    /// A cancelled change has ended.
    ChangeCancelled,
    /// The state of a component changed.
    ComponentIs,
    /// A component is gone.
    ComponentGone,
    /// An operation of a component failed permanently.
    OperationFailed,
    /// A VM was created.
    VmMade,
    /// A VM could not be created.
    VmNotMade,
    /// All components of a VM are started, or not any more.
    VmIs,
    /// A VM does not answer.
    VmSuspected,
    /// A VM answers again.
    VmWell,
    /// A VM was declared lost.
    VmLost,
    /// A VM was destroyed.
    VmDestroyed,
    /// An attempt at an operation of a component failed, or the component died; it is retried.
    AttemptFailed,
}

impl EventKind {
    /// Whether it ends a change.
    pub fn ends_change(self) -> bool {
        matches!(self, Self::ChangeDone | Self::ChangeCancelled)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As in JSON.
        self.serialize(formatter)
    }
}

/// Which part of a change a phase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Needs are lowered.
    Lower,
    /// Additions.
    Up,
    /// Removals and restarts.
    Down,
    /// Additions and removals at once.
    Both,
    /// A lost VM is forgotten.
    Forget,
}

impl From<PhaseKind> for Phase {
    fn from(kind: PhaseKind) -> Self {
        match kind {
            PhaseKind::Lower => Self::Lower,
            PhaseKind::Up => Self::Up,
            PhaseKind::Down => Self::Down,
            PhaseKind::Both => Self::Both,
            PhaseKind::Forget => Self::Forget,
        }
    }
}

/// A description.
impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Lower => "lowering needs",
            Self::Up => "adding",
            Self::Down => "removing",
            Self::Both => "applying",
            Self::Forget => "forgetting a lost VM",
        })
    }
}

/// What an import needs, written as text: `strong 1`, `weak 0`, `value 2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(value_type = String, example = "strong 1")]
pub struct NeedText(pub Need);

impl fmt::Display for NeedText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Serialize for NeedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for NeedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed = text.split_once(' ').and_then(|(kind, number)| {
            let number = number.parse().ok()?;
            match kind {
                "strong" => Some(Need::Strong(number)),
                "weak" => Some(Need::Weak(number)),
                "value" => Some(Need::Value(number)),
                _ => None,
            }
        });
        parsed.map(Self).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a need such as \"strong 1\"")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_written_as_text_and_read_back() {
        for need in [Need::Strong(1), Need::Weak(0), Need::Value(2)] {
            let text = serde_json::to_string(&NeedText(need)).unwrap();
            assert_eq!(serde_json::from_str::<NeedText>(&text).unwrap(), NeedText(need));
        }
        assert!(serde_json::from_str::<NeedText>("\"strong\"").is_err());
    }
}
