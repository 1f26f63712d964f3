//! What travels on the links between the manager and its agents: the protocol's own messages, and the few things that
//! the programs around the machines have to tell each other.
//!
//! The machines never see a letter; they see the order or the report in it. Between two agents there is nothing but
//! [`Notice`](crate::Notice)s.

use crate::wire::{self, WireError};
use crate::{BindingId, ComponentId, Name, Operation, Order, Report, VmId};
use serde::{Deserialize, Serialize};
use std::{net::SocketAddr, sync::Arc};

/// Manager to agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToAgent {
    /// For the machine.
    Order(Order),
    /// That is where a neighbour listens.
    Neighbour {
        /// Which VM.
        vm: VmId,
        /// Where.
        address: SocketAddr,
    },
    /// An operator wants to know something about a component.
    Ask {
        /// The number of the question, to be given back.
        number: u64,
        /// About which component.
        component: ComponentId,
        /// What.
        question: Question,
    },
    /// An operator asks something of the VM itself, or wants data deleted. The answer is a [`ToManager::Answer`].
    AskHost {
        /// The number of the question, to be given back.
        number: u64,
        /// What.
        question: HostQuestion,
    },
}

/// What an operator can ask of a VM, whichever components it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostQuestion {
    /// The data that is kept there, as JSON.
    Data,
    /// Delete the data that is kept for a component's name, unless a component uses it.
    DeleteData {
        /// The name.
        key: Name,
    },
    /// The end of what the programs of the last removed component of a name have written.
    PreviousOutput {
        /// The name.
        key: Name,
        /// At most so many bytes.
        bytes_max: u32,
    },
}

/// What an operator can ask about a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// The end of what its programs have written.
    Output {
        /// At most so many bytes.
        bytes_max: u32,
    },
    /// In what it is not as it was asked for, one thing on each line.
    Drift,
}

/// Agent to manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToManager {
    /// From the machine.
    Report(Report),
    /// That is where this agent listens.
    Listening {
        /// Where.
        address: SocketAddr,
    },
    /// What an operator wanted to know about a component or a VM, or why it cannot be said.
    Answer {
        /// The number of the question.
        number: u64,
        /// The answer.
        answer: Result<String, String>,
    },
    /// An attempt failed and will be retried. No rule depends on it; operators want to know the reason at once.
    AttemptFailed {
        /// Of which component.
        component: ComponentId,
        /// The attempt.
        attempt: FailedAttempt,
    },
}

/// An attempt at an operation that failed and will be retried.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// The operation; `Run` if the component died.
    pub operation: Operation,
    /// The number of failed attempts in a row, or of deaths since the component was last steady.
    pub failures: u32,
    /// The number of retries before manual action is required.
    pub retries: u32,
    /// The pause before the next attempt, in milliseconds.
    pub pause_ms: u64,
    /// How long it must stay up to be steady again, in milliseconds; 0 if it did not die.
    pub steady_ms: u64,
    /// The reason, and the end of its output below it.
    pub detail: Arc<str>,
}

/// What the manager signs when it orders a binding; the client's agent checks the signature before it believes a `Bind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The binding.
    pub binding: BindingId,
    /// Where the provider lives.
    pub provider_vm: VmId,
    /// Who borrows.
    pub client: ComponentId,
    /// For which import.
    pub import: Name,
}

impl Statement {
    /// The bytes that are signed.
    pub fn bytes(&self) -> Result<Vec<u8>, WireError> {
        wire::encode(self)
    }
}
