//! Why something is as it is: the chain of reasons, and what an operator can do.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a component or a VM is as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// Its name.
    pub name: String,
    /// `component` or `vm`.
    pub what: String,
    /// Nothing is wrong with it, and it waits for nothing.
    pub well: bool,
    /// The chain, beginning with the thing itself. Deeper reasons explain the ones above them.
    pub reasons: Vec<Reason>,
    /// What an operator can do, each in one sentence. Empty if no action is needed.
    pub remedies: Vec<String>,
}

/// One link of a chain of reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    /// Its depth; the thing itself has depth 0.
    pub depth: usize,
    /// The component, the VM or the change that it is about.
    pub about: String,
    /// Its state, in one sentence.
    pub says: String,
    /// Since when, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// The end of the output of a failed operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How often the component ended by itself, if it ever did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deaths: Option<super::Deaths>,
}
