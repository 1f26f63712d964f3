//! What a change that is not done waits for, for people to see.

use super::PhaseKind;
use crate::{ChangeId, Name};
use std::fmt;

/// A change that is not done, for people to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeState {
    /// Which one.
    pub change: ChangeId,
    /// The phase that is posted, if any.
    pub phase: Option<PhaseKind>,
    /// What it waits for.
    pub waiting: Vec<Waiting>,
    /// Whether it was cancelled.
    pub cancelled: bool,
}

/// One thing that a change waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The cloud, to make or destroy a VM.
    Vm(Name),
    /// A component, to be removed or restarted.
    Component(Name),
    /// A binding, to be removed.
    Binding(String),
    /// An agent, to answer an order.
    Answer(Name),
    /// A component, to be started (or stopped) as predicted.
    Started(Name, bool),
    /// An earlier change that is about the same components.
    Change(ChangeId),
}

impl fmt::Display for ChangeState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.change)?;
        if let Some(phase) = self.phase {
            write!(formatter, " in phase {phase}")?;
        }
        let waiting: Vec<String> = self.waiting.iter().map(ToString::to_string).collect();
        write!(formatter, " waits for {}", waiting.join(", "))
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vm(vm) => write!(formatter, "the cloud about vm {vm}"),
            Self::Component(component) => write!(formatter, "{component} to have gone"),
            Self::Binding(wire) => write!(formatter, "{wire} to be given back"),
            Self::Answer(vm) => write!(formatter, "vm {vm} to answer"),
            Self::Started(component, true) => write!(formatter, "{component} to start"),
            Self::Started(component, false) => write!(formatter, "{component} to stop"),
            Self::Change(change) => write!(formatter, "{change}, which is about the same components"),
        }
    }
}
