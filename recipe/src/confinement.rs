//! What the processes of a component may use and do.

use serde::{Deserialize, Serialize};

/// Limits that are enforced for all processes of a component. What is not listed is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Memory of all processes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// CPU time of all processes together, in thousandths of one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_thousandths: Option<u64>,
    /// Open files of each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
}

/// How the processes of a component are confined: those of `configure`, `start`, `identify`, `check`, `rebind` and `stop`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confinement {
    /// The user that they run as, by name or number; default is the agent's own. It owns the component's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Whether no program that they execute may gain privileges, for example by its set-user-ID bit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_new_privileges: bool,
    /// Whether they see a directory of their own as `/tmp` and `/var/tmp`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private_temporary: bool,
}

impl Limits {
    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Confinement {
    /// Whether nothing is confined.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
