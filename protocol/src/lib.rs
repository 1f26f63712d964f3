//! The rules of reconfiguration: two pure state machines, [`manager::CloudManager`] and [`agent::VmAgent`], the messages
//! they exchange, and what must always hold of them.
//!
//! This crate knows no network, no disk, no clock, no thread and no random number. It does not know who calls it: the
//! programs, the simulator and the explorer all drive the same `step`.
//!
//! A machine has one door: `step(input) -> outputs`. Handlers record facts; then the rules do whatever the facts allow.
//!
//! Read next: `docs/PROTOCOL.md` for the rules in prose, [`agent`] for how a VM follows them, [`manager`] for how a
//! change becomes orders, [`invariant`] for what must hold, [`wire`] for how messages look on the wire.

pub mod agent;
pub mod bounds;
mod change;
pub mod invariant;
mod kind;
pub mod letter;
pub mod manager;
mod message;
mod name;
mod number;
pub mod paged;
mod refusal;
pub mod short;
pub mod wire;

pub use agent::{ComponentState, VmAgent};
pub use change::{Change, Edit, Strategy, StrategyError, Wire};
pub use kind::{Export, Import, Kind, Need, Operation, Patience, Values};
pub use manager::CloudManager;
pub use message::{
    Condition, Fact, HeldBinding, HostOutcome, HostTask, Instruction, Notice, Order, Report, Ticket, VmState, Work,
};
pub use name::{Name, NameError};
pub use number::{BindingId, ChangeId, ComponentId, OrderNumber, VmId};
pub use paged::{PagedMap, PagedSet};
pub use refusal::Refusal;
pub use short::{ShortMap, ShortSet};
