//! What became of a request: a number, a prediction, a token; or why not.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use utoipa::ToSchema;

/// Why a request was not carried out. Nothing has changed, unless it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problems {
    /// What happened, in one sentence.
    pub error: String,
    /// Everything that stands against it, each in one sentence.
    pub problems: Vec<String>,
    /// What is wrong with application files, each with its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub places: Vec<::application::Problem>,
}

/// The request is checked and will be carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// The number of the change.
    pub change: u64,
    /// Everything about it comes after this event: `GET /v1/events?after=…` misses none of it.
    pub events_after: u64,
}

/// What a token allows; each includes the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// To look.
    Read,
    /// To change things.
    Operate,
    /// To let others in.
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
        found.map(|(_, role)| *role).ok_or_else(|| format!("{text:?} is no role (use read, operate or admin)"))
    }
}

/// A token to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Whose it is, or what for, so that people know it again in the list.
    #[serde(default)]
    pub name: String,
    /// What it allows.
    pub role: Role,
}

/// A token that was just made. Its text is shown this once and never again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperatorToken {
    /// The text to be sent with each request.
    pub text: String,
    /// What the list says of it.
    pub token: Token,
}

/// A token, as the list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// What it is revoked by.
    pub id: String,
    /// Whose it is, or what for.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// When it was made, in milliseconds since 1970.
    pub created_at_ms: u64,
}

/// An invitation to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJoinToken {
    /// For this VM only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<String>,
    /// For so many seconds; an hour if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_for_s: Option<u64>,
}

/// An invitation: one agent can join with it, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JoinToken {
    /// The text to be given to the agent.
    pub text: String,
    /// When it expires, in milliseconds since 1970.
    pub expires_at_ms: u64,
}

/// The manager answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Well {
    /// Always true; a manager that is halting does not say this.
    pub well: bool,
    /// The version of the program.
    pub version: String,
}
