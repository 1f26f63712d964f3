//! Everything that can happen next in a world.

use protocol::{ComponentId, VmId, agent, manager};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing that can happen next. An action either makes one machine step, or does something to the world around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Action {
    /// The operator makes the next request of the script.
    Ask,
    /// The manager learns for certain that a lost VM is lost.
    Declare(VmId),
    /// The cloud carries out what it was asked for a VM.
    Cloud(VmId),
    /// The next order reaches a VM.
    Order(VmId),
    /// The next report of a VM reaches the manager.
    Report(VmId),
    /// The next notice from the first VM reaches the second.
    Notice(VmId, VmId),
    /// The host carries out the task of a component.
    Finish(VmId, ComponentId),
    /// The host fails in the task of a component.
    Fail(VmId, ComponentId),
    /// A started component dies.
    Die(VmId, ComponentId),
    /// An agent's alarm rings.
    Ring(VmId, agent::Alarm),
    /// The manager's alarm rings.
    RingManager(manager::Alarm),
    /// An agent crashes and comes back from its journal: what it sent or received last may come again.
    Crash(VmId),
    /// The manager crashes and comes back from its journal.
    CrashManager,
    /// The link between two VMs breaks and is made again: what was not acknowledged is sent again.
    Break(VmId, VmId),
    /// A VM is lost.
    Lose(VmId),
    /// The host ends the start of a component early, as it was asked to.
    Abort(VmId, ComponentId),
}

impl Action {
    /// Whether it is a fault, which happens only within a budget.
    pub fn is_fault(self) -> bool {
        match self {
            Self::Fail(..) | Self::Die(..) | Self::Crash(_) | Self::CrashManager | Self::Break(..) | Self::Lose(_) => {
                true
            }
            Self::Ask
            | Self::Declare(_)
            | Self::Cloud(_)
            | Self::Order(_)
            | Self::Report(_)
            | Self::Notice(..)
            | Self::Finish(..)
            | Self::Ring(..)
            | Self::RingManager(_)
            | Self::Abort(..) => false,
        }
    }

    /// Whether it is the arrival of a message.
    pub fn is_message(self) -> bool {
        matches!(self, Self::Order(_) | Self::Report(_) | Self::Notice(..))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask => formatter.write_str("the operator asks"),
            Self::Declare(vm) => write!(formatter, "{vm} is declared lost"),
            Self::Cloud(vm) => write!(formatter, "the cloud makes or destroys {vm}"),
            Self::Order(vm) => write!(formatter, "an order reaches {vm}"),
            Self::Report(vm) => write!(formatter, "a report of {vm} reaches the manager"),
            Self::Notice(from, to) => write!(formatter, "a notice from {from} reaches {to}"),
            Self::Finish(vm, component) => write!(formatter, "{vm} finishes a task of {component}"),
            Self::Fail(vm, component) => write!(formatter, "{vm} fails in a task of {component}"),
            Self::Die(vm, component) => write!(formatter, "{component} dies on {vm}"),
            Self::Ring(vm, alarm) => write!(formatter, "an alarm rings on {vm}: {alarm:?}"),
            Self::RingManager(alarm) => write!(formatter, "an alarm of the manager rings: {alarm:?}"),
            Self::Crash(vm) => write!(formatter, "the agent of {vm} crashes and comes back"),
            Self::CrashManager => formatter.write_str("the manager crashes and comes back"),
            Self::Break(from, to) => write!(formatter, "the link between {from} and {to} breaks and comes back"),
            Self::Lose(vm) => write!(formatter, "{vm} is lost"),
            Self::Abort(vm, component) => write!(formatter, "{vm} ends the start of {component} early"),
        }
    }
}
