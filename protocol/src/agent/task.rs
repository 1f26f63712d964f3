//! What the host does for a component, and how often that went wrong.

use crate::Operation;
use serde::{Deserialize, Serialize};

/// What the host is doing for a component, at most one thing at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaskState {
    /// Nothing.
    #[default]
    None,
    /// This operation is under way.
    UnderWay(Operation),
    /// This operation failed and is retried when the alarm rings.
    Pausing(Operation),
    /// A start is under way and was asked to end early.
    Aborting,
}

impl TaskState {
    /// The operation that the host has under way.
    pub fn under_way(self) -> Option<Operation> {
        match self {
            Self::UnderWay(operation) => Some(operation),
            Self::Aborting => Some(Operation::Start),
            Self::None | Self::Pausing(_) => None,
        }
    }
}

/// What was asked of the host for a component, and how it went.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Tasks {
    pub(super) state: TaskState,
    /// The number of the latest task.
    pub(super) serial: u64,
    /// The operation that failed last, and how often in a row.
    pub(super) failures: Option<(Operation, u32)>,
    /// Deaths since it was last steady.
    pub(super) deaths: u32,
    /// What was installed is removed again.
    pub(super) purged: bool,
}

impl Tasks {
    /// The operator asks to go on: earlier failures and deaths no longer count.
    pub(super) fn forgive(&mut self) {
        (self.failures, self.deaths) = (None, 0);
    }

    /// Counts one more failure of an operation. Returns how often it has failed in a row.
    pub(super) fn count_failure(&mut self, operation: Operation) -> u32 {
        let before = self.failures.filter(|(failed, _)| *failed == operation).map_or(0, |(_, times)| times);
        self.failures = Some((operation, before + 1));
        before + 1
    }
}
