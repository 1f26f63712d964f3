//! Answers to requests: a change number, a token; or why a request was refused.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use utoipa::ToSchema;

/// Why a request was not carried out. Nothing has changed, unless it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problems {
    /// What happened, in one sentence.
    pub error: String,
    /// All reasons, each in one sentence.
    pub problems: Vec<String>,
    /// Errors in application files, each with its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub places: Vec<::application::Problem>,
}

/// The request was checked and will be carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// The number of the change.
    pub change: u64,
    /// All events about it have higher numbers: `GET /v1/events?after=…` misses none.
    pub events_after: u64,
}

/// What a token permits; each role includes the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// To read.
    Read,
    /// To change things.
    Operate,
    /// To manage tokens.
    Admin,
}

impl Role {
    const NAMES: [(&'static str, Self); 3] = [("read", Self::Read), ("operate", Self::Operate), ("admin", Self::Admin)];
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = Self::NAMES.iter().find(|(_, role)| role == self).expect("NAMES lists every role");
        formatter.pad(name)
    }
}

impl FromStr for Role {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, role)| *role).ok_or_else(|| format!("{text:?} is not a role (use read, operate or admin)"))
    }
}

/// A token to be created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Its owner or purpose, shown in the list.
    #[serde(default)]
    pub name: String,
    /// What it permits.
    pub role: Role,
}

/// A token that was just created. Its text is shown this once and never again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperatorToken {
    /// The text to send with each request.
    pub text: String,
    /// The token as the list shows it.
    pub token: Token,
}

/// A token, as the list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its identifier, for revoking it.
    pub id: String,
    /// Its owner or purpose.
    pub name: String,
    /// What it permits.
    pub role: Role,
    /// When it was created, in milliseconds since 1970.
    pub created_at_ms: u64,
}

/// A join token to be created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJoinToken {
    /// Only an agent with this VM name may join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<String>,
    /// Validity in seconds; default one hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_for_s: Option<u64>,
}

/// A join token: one agent can join with it, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JoinToken {
    /// The text to give to the agent.
    pub text: String,
    /// When it expires, in milliseconds since 1970.
    pub expires_at_ms: u64,
}

/// The manager answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Well {
    /// Always true; a manager that is halting does not answer this.
    pub well: bool,
    /// The version of the program.
    pub version: String,
}
