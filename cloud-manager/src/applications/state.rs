//! What the manager stores about applications, and how a decision about them is journalled.
//!
//! Expansions and files are stored as JSON inside the journal's own format: their types grow fields from release to
//! release, and old journals must stay readable.

use super::rollout::Rollout;
use crate::document::Intent;
use application::{ApplicationFiles, Expansion, SecretTexts};
use protocol::{Change, Name};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{collections::BTreeMap, sync::Arc};

/// Number of versions of an application that are kept; beyond it, the oldest are dropped.
const VERSIONS_MAX: usize = 50;

/// An application as the manager stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplicationState {
    /// The kept versions, oldest first. There is at least one.
    pub versions: Vec<Version>,
    /// What was requested; in a rollout, what its steps so far have requested.
    pub expansion: Expansion,
    /// A replacement in steps that is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// The changes of the rollout that ended last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_rollout: Vec<u64>,
}

/// One version of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// Its number. Versions are counted from 1, and numbers are not reused while the application exists.
    pub number: u64,
    /// The name of the token that applied it.
    pub by: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The command that applied it.
    pub intent: Intent,
    /// Its files and inputs.
    pub files: ApplicationFiles,
    /// The texts of its secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: SecretTexts,
    /// The version that a plain rollback goes to from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolls_back_to: Option<u64>,
}

impl ApplicationState {
    /// The version that was applied last.
    pub fn version(&self) -> &Version {
        self.versions.last().expect("an application has at least one version")
    }

    /// A kept version.
    pub fn version_of(&self, number: u64) -> Option<&Version> {
        self.versions.iter().find(|it| it.number == number)
    }

    /// Adds a version; the oldest may be dropped.
    pub(crate) fn add(&mut self, version: Version) {
        self.versions.push(version);
        let surplus = self.versions.len().saturating_sub(VERSIONS_MAX);
        self.versions.drain(..surplus);
    }
}

/// The state of an application before a change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Before {
    pub(crate) application: Name,
    /// `None` if there was no such application.
    pub(crate) state: Option<Json<ApplicationState>>,
}

/// A decision about applications, as it is journalled: nothing in it is computed again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The name of the operator's token.
    pub by: String,
    /// A short description.
    pub about: String,
    /// The command.
    pub intent: Intent,
    /// What becomes of each application.
    pub applications: Vec<ApplicationUpdate>,
    /// The changes, one after the other; none, if there is only something to record.
    pub steps: Vec<Step>,
    /// After this many steps, wait to be promoted.
    pub canary_steps: Option<usize>,
    /// Promote automatically after this many milliseconds.
    pub promote_after_ms: Option<u64>,
}

/// What becomes of one application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationUpdate {
    /// The application.
    pub application: Name,
    /// The version that this was decided from; 0 if there was none.
    pub from_version: u64,
    /// What becomes of its versions.
    pub version: VersionUpdate,
}

/// What becomes of an application's versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VersionUpdate {
    /// The version stays as it is: what was applied is only restored.
    Same,
    /// There is a new version.
    New {
        /// Its files and inputs, an [`ApplicationFiles`].
        files: Json<ApplicationFiles>,
        /// The texts of its secrets.
        secrets: SecretTexts,
        /// The version that a plain rollback goes to from it.
        rolls_back_to: Option<u64>,
    },
    /// The application is removed.
    Removed,
}

/// One change of a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The change.
    pub change: Change,
    /// The cloud that creates each of these VMs.
    pub clouds: BTreeMap<Name, String>,
    /// What this step requests of each application that stays.
    pub expansions: Vec<Json<Expansion>>,
}

/// A value that is stored as JSON text.
#[derive(Clone, Debug)]
pub struct Json<T>(pub Arc<T>);

impl<T> Json<T> {
    /// Wraps a value.
    pub fn new(content: T) -> Self {
        Self(Arc::new(content))
    }
}

impl<T: PartialEq> PartialEq for Json<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

// The types inside have no floating-point numbers besides those of JSON parameters, which are never NaN.
impl<T: PartialEq> Eq for Json<T> {}

impl<T: Serialize> Serialize for Json<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(&*self.0).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Json<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        serde_json::from_str(&text).map(Self::new).map_err(serde::de::Error::custom)
    }
}

/// Applications by name, each written as JSON text.
pub mod as_json {
    use super::{ApplicationState, Former};
    use protocol::Name;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::{collections::BTreeMap, sync::Arc};

    type Applications = BTreeMap<Name, Arc<ApplicationState>>;

    /// Writes them.
    pub fn serialize<S: Serializer>(applications: &Applications, serializer: S) -> Result<S::Ok, S::Error> {
        let text = |state: &Arc<ApplicationState>| serde_json::to_string(&**state).map_err(serde::ser::Error::custom);
        let texts: Result<BTreeMap<&Name, String>, S::Error> =
            applications.iter().map(|(name, state)| Ok((name, text(state)?))).collect();
        texts?.serialize(serializer)
    }

    /// Reads them, also in the format of earlier releases.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Applications, D::Error> {
        let texts = BTreeMap::<Name, String>::deserialize(deserializer)?;
        let state = |text: &str| {
            let state = serde_json::from_str::<ApplicationState>(text).map_err(serde::de::Error::custom);
            state.or_else(|error: D::Error| Former::read(text).ok_or(error)).map(Arc::new)
        };
        texts.into_iter().map(|(name, text)| Ok((name, state(&text)?))).collect()
    }
}

/// The state of an application in earlier releases.
#[derive(Deserialize)]
pub(crate) struct Former {
    #[serde(flatten)]
    files: ApplicationFiles,
    expansion: Expansion,
    #[serde(default)]
    previous: Option<ApplicationFiles>,
}

impl Former {
    /// The application in a record of an earlier release: the state before it becomes version 1.
    pub(crate) fn read(text: &str) -> Option<ApplicationState> {
        let Self { files, expansion, previous } = serde_json::from_str(text).ok()?;
        let version = |number, files| Version { number, files, ..Version::default() };
        let mut versions: Vec<Version> = previous.into_iter().map(|files| version(1, files)).collect();
        let rolls_back_to = versions.last().map(|it| it.number);
        versions.push(Version { rolls_back_to, ..version(rolls_back_to.unwrap_or(0) + 1, files) });
        Some(ApplicationState { versions, expansion, rollout: None, last_rollout: Vec::new() })
    }
}
