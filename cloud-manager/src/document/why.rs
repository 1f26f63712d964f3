//! Why something is as it is: the chain of reasons, and what a person can do.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a component or a VM is as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// What it is called.
    pub name: String,
    /// `component` or `vm`.
    pub what: String,
    /// Nothing is wrong with it, and it waits for nothing.
    pub well: bool,
    /// The chain, beginning with the thing itself. What stands deeper is why what stands above it is so.
    pub reasons: Vec<Reason>,
    /// What a person can do, each in one sentence. Nothing, if it goes on by itself or is well.
    pub remedies: Vec<String>,
}

/// One link of a chain of reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    /// How deep it stands; the thing itself stands at 0.
    pub depth: usize,
    /// The component, the VM or the change that it is about.
    pub about: String,
    /// How that is, in one sentence.
    pub says: String,
    /// Since when, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// The end of what an operation wrote that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How often the component ended by itself, if it ever did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deaths: Option<super::Deaths>,
}
