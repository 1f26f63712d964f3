//! What is asked for together with a change, and what is remembered for it. The protocol's machine knows nothing of it.

use super::data::{DataBook, DataPlace};
use super::origins::Origins;
use protocol::ChangeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// More state that survives restarts. It is stored as JSON after the rest, so that it can grow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Beside {
    /// The data that VMs keep.
    pub(super) data: DataBook,
    /// Changes that the manager cancels by itself if they fail.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) cancelled_on_failure: BTreeSet<ChangeId>,
    /// Who asked for each change.
    pub(super) origins: Origins,
}

/// What is asked for together with a change. It is stored as JSON, so that it can grow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wishes {
    /// Data that is deleted when the change has removed its component.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub delete_data: BTreeSet<DataPlace>,
    /// Whether the manager cancels the change by itself if an operation fails permanently.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rollback_on_failure: bool,
}

impl Wishes {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
