//! The critical path: the chain of operations whose lengths add up to the length of a change.
//!
//! A machine acts on the last of the inputs it was waiting for. So whatever it then says was caused by that input; the
//! chain of such causes, back from the end of a change, is its critical path. Only operations are written down: between
//! two of them there are only messages.

use protocol::{Name, Operation};
use std::{fmt, time::Duration};

/// What takes time on a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// A host carries out an operation of a component.
    Operation(Operation),
    /// A failed operation waits to be tried again.
    Pause,
    /// The cloud makes a VM.
    Create,
    /// The cloud destroys a VM.
    Destroy,
    /// A lost VM is declared lost.
    Declare,
}

/// One stretch of a critical path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The component, or the VM.
    pub name: Name,
    /// What was done with it.
    pub activity: Activity,
    /// When it began.
    pub from: Duration,
    /// When it ended.
    pub to: Duration,
}

impl fmt::Display for Stretch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, length) = (&self.name, self.to.saturating_sub(self.from));
        match self.activity {
            Activity::Operation(operation) => write!(formatter, "{operation} {name} {length:?}"),
            Activity::Pause => write!(formatter, "wait to try {name} again {length:?}"),
            Activity::Create => write!(formatter, "create {name} {length:?}"),
            Activity::Destroy => write!(formatter, "destroy {name} {length:?}"),
            Activity::Declare => write!(formatter, "notice that {name} is lost {length:?}"),
        }
    }
}

/// The latest stretch that led to something; none at the beginning.
pub(super) type Cause = Option<u32>;

/// Every stretch, each with its own cause.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    all: Vec<(Stretch, Cause)>,
}

impl Stretches {
    /// Writes a stretch down; what follows from it names it as its cause.
    pub(super) fn add(&mut self, stretch: Stretch, cause: Cause) -> Cause {
        self.all.push((stretch, cause));
        u32::try_from(self.all.len() - 1).ok()
    }

    /// The way to something, from the first stretch that began no earlier than a moment.
    pub(super) fn path(&self, mut cause: Cause, since: Duration) -> Vec<Stretch> {
        let mut path = Vec::new();
        while let Some(found) = cause.and_then(|index| self.all.get(index as usize)) {
            if found.0.from < since {
                break;
            }
            path.push(found.0.clone());
            cause = found.1;
        }
        path.reverse();
        path
    }
}
