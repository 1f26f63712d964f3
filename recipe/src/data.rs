//! What outlives a component: directories that are kept under its name when it is restarted, replaced or removed.
//!
//! A recipe only names them. Where they are, and when they end, is decided by `vm-agent` and by the manager's planning.

use protocol::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The directories that are kept for a component, whatever happens to its definition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Their names. Templates see the path of each as `data.<name>`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub directories: BTreeSet<Name>,
    /// What becomes of them when the component is removed and no other takes its name.
    #[serde(default, skip_serializing_if = "OnRemove::is_keep")]
    pub on_remove: OnRemove,
}

/// What becomes of data when the component is removed for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnRemove {
    /// It stays on the VM, until a component of the same name uses it again or an operator deletes it.
    #[default]
    Keep,
    /// It is deleted with the component.
    Delete,
}

impl Data {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.directories.is_empty()
    }
}

impl OnRemove {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is Serde's")]
    fn is_keep(&self) -> bool {
        *self == Self::Keep
    }
}
