//! What one VM means to each change that is not done: for the explorer, which asks whether a report makes a difference.

use super::{CloudManager, book::Entry};
use crate::{ChangeId, OrderNumber, VmId};

/// What one VM means to one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The change.
    pub change: ChangeId,
    /// Whether its last phase is posted and sets no need: then it orders nothing any more but roll calls, and predictions
    /// stay as they are.
    pub is_posted: bool,
    /// Whether it calls the roll, now or later.
    pub calls: bool,
    /// The last order to the VM that is not answered.
    pub unanswered: Option<OrderNumber>,
    /// Whether the VM has still to come.
    pub comes: bool,
    /// The components of the VM that have still to go.
    pub outstanding: Vec<Entry>,
    /// The components of the VM that are not as predicted.
    pub unsettled: Vec<Entry>,
    /// Whether components have moved since the roll was called.
    pub moved: bool,
}

impl Outlook {
    /// Whether the change waits for the VM to come, to answer or to remove something, whatever is predicted.
    pub fn awaits(&self) -> bool {
        self.unanswered.is_some() || self.comes || !self.outstanding.is_empty()
    }

    /// Whether the change cannot be done before the VM comes or reports something.
    pub fn is_held_up(&self) -> bool {
        self.awaits() || !self.unsettled.is_empty()
    }
}

impl CloudManager {
    /// What a VM means to each change that is not done, in the order in which they were accepted.
    pub fn outlook(&self, vm: VmId) -> Vec<Outlook> {
        let home = self.book.vm_ids.get(&vm).copied();
        let here = |entry: &Entry| self.book.components.get(entry).is_some_and(|it| Some(it.vm) == home);
        let of = |(change, running): (&ChangeId, &super::phases::Running)| match &running.phase {
            None => Outlook {
                change: *change,
                is_posted: false,
                calls: false,
                unanswered: None,
                comes: false,
                outstanding: Vec::new(),
                unsettled: Vec::new(),
                moved: false,
            },
            Some(phase) => Outlook {
                change: *change,
                is_posted: running.ahead.is_empty() && phase.needs.is_empty(),
                calls: !phase.roll.is_empty() || !phase.circuit.is_empty(),
                unanswered: home.and_then(|home| phase.unanswered.get(&home).copied()),
                comes: home.is_some_and(|home| phase.coming.contains(&home)),
                outstanding: phase.outstanding.iter().copied().filter(here).collect(),
                unsettled: phase.unsettled.iter().copied().filter(here).collect(),
                moved: phase.moved,
            },
        };
        self.running.iter().map(of).collect()
    }
}
