//! One checked part of a change: what is left of an edit once every name in it was found in the book.

use super::book::Entry;
use crate::Name;
use serde::{Deserialize, Serialize};

/// One checked part of a change, waiting to be posted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum CheckedEdit {
    AddVm(Entry),
    AddComponent(Entry),
    AddBinding(Entry),
    SetNeed(Entry, Name, u32),
    /// Lower the need of a component that is there, before anything is taken from it.
    LowerNeed(Entry, Name, u32),
    RemoveBinding(Entry),
    RemoveComponent(Entry),
    RemoveVm(Entry),
    Restart(Entry),
    Retry(Entry),
    Skip(Entry),
}

impl CheckedEdit {
    pub(super) fn is_up(&self) -> bool {
        matches!(self, Self::AddVm(_) | Self::AddComponent(_) | Self::AddBinding(_) | Self::SetNeed(..))
    }

    pub(super) fn is_lower(&self) -> bool {
        matches!(self, Self::LowerNeed(..))
    }

    /// Whether it takes something away.
    pub(super) fn is_removal(&self) -> bool {
        matches!(self, Self::RemoveBinding(_) | Self::RemoveComponent(_) | Self::RemoveVm(_))
    }

    /// Whether it sets a need of a component.
    pub(super) fn sets_need_of(&self, component: Entry) -> bool {
        matches!(self, Self::SetNeed(entry, ..) | Self::LowerNeed(entry, ..) if *entry == component)
    }

    /// Whether it sets this need of a component.
    pub(super) fn sets_need(&self, component: Entry, import: &Name) -> bool {
        matches!(self, Self::SetNeed(entry, name, _) | Self::LowerNeed(entry, name, _) if *entry == component && name == import)
    }
}
