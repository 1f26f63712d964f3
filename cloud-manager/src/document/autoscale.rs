//! What the manager says of an application that follows its load.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// An application that follows its load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AutoscaleDocument {
    /// The application.
    pub application: String,
    /// What was found and done last, in a sentence.
    pub says: String,
    /// Whether it is only said what would be done.
    pub dry_run: bool,
    /// Where loads come from, by component; the load of the whole application under the empty name.
    pub sources: BTreeMap<String, String>,
    /// The load of the application, as it was measured last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<u64>,
    /// The loads of single components.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loads: BTreeMap<String, u64>,
    /// When, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_ms: Option<u64>,
    /// Who paused it, if it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_ms: Option<u64>,
    /// The last change that followed from a load, since the manager was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<u64>,
    /// Why it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_because: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_ms: Option<u64>,
}
