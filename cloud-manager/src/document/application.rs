//! Requests about applications, and the manager's documents about them.

use application::{ApplicationFiles, SecretTexts};
use protocol::Strategy;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    num::NonZeroUsize,
};
use utoipa::ToSchema;

/// Options of a request about applications. All may be left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct How {
    /// The version of each application that the client has seen (0: none). The request is refused if the version has changed;
    /// an application that is not listed may have any version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, u64>,
    /// The texts of secrets, by name. Texts that the manager has kept need not be sent again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object)]
    pub secrets: SecretTexts,
    /// Order of additions and removals: `down-then-up`, `up-then-down` or `together`; chosen automatically by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "up-then-down")]
    pub strategy: Option<Strategy>,
    /// Replace components in steps, with at most this many of a group down at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<usize>, example = 1)]
    pub rolling: Option<NonZeroUsize>,
    /// Replace this many components, then wait until the change is promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<usize>, example = 1)]
    pub canary: Option<NonZeroUsize>,
    /// Promote after this many seconds without a failure, even without an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promote_after_s: Option<u64>,
    /// Delete data of components and VMs that the change removes. Without it, what would delete data is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete_data: bool,
    /// Components that may start without the data that is kept for them on another VM.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!(["shop/database[0]"]))]
    pub start_empty: Vec<String>,
    /// If an operation of the change fails permanently, the manager takes the change back by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rollback_on_failure: bool,
    /// For placement by the planner: take the best solution after this many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 60)]
    pub time_limit_s: Option<u64>,
    /// Why; shown in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// In a plan: include the cost of moving fewer components.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trade_off: bool,
    /// In a plan: include a picture of the application before and after.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub picture: bool,
    /// In a plan: include the requests that lead there, for the explorer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub script: bool,
}

/// Create or change an application as its files describe it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// Its files: the name of the main one (`main`), the text of each by name (`files`), and `inputs`: `values` of
    /// variables, `values_files`, and `counts` of components.
    #[schema(value_type = Object, example = json!({ "main": "shop.yaml", "files": { "shop.yaml": "application: shop\n" } }))]
    pub application: ApplicationFiles,
    /// Options.
    #[serde(default)]
    pub how: How,
}

/// Change the number of components.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleRequest {
    /// The application; optional if only one application has components with these names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "shop")]
    pub application: Option<String>,
    /// The requested number of components, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(example = json!({ "app": 5 }))]
    pub counts: BTreeMap<String, u32>,
    /// Instead of `counts`: the load of the application. The capacity of each component determines how many are needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<u64>,
    /// The loads of single components, where they differ.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loads: BTreeMap<String, u64>,
    /// Options.
    #[serde(default)]
    pub how: How,
}

/// Return an application to an earlier version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// The application.
    #[schema(example = "shop")]
    pub application: String,
    /// The version; the previous one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Options.
    #[serde(default)]
    pub how: How,
}

/// Restore applications, or single components, to what was applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReconcileRequest {
    /// Applications or components.
    #[schema(example = json!(["shop", "shop/app[0]"]))]
    pub names: Vec<String>,
    /// Options.
    #[serde(default)]
    pub how: How,
}

/// Move all components of a VM elsewhere, or use it again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// The VM.
    #[schema(example = "shop/web[0]")]
    pub vm: String,
    /// Options.
    #[serde(default)]
    pub how: How,
}

/// Compare what runs with what was requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// Applications or components; all by default.
    #[serde(default)]
    #[schema(example = json!(["shop"]))]
    pub names: Vec<String>,
}

/// Remove an application with all its VMs and components.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveRequest {
    /// The application.
    #[schema(example = "shop")]
    pub application: String,
    /// Also remove the applications that use it.
    #[serde(default)]
    pub with_users: bool,
    /// Options.
    #[serde(default)]
    pub how: How,
}

/// A request about applications.
#[derive(Clone, Debug, PartialEq)]
pub enum ApplicationRequest {
    /// Create or change one as its files describe it.
    Apply(ApplyRequest),
    /// Change the number of components.
    Scale(ScaleRequest),
    /// Return to an earlier version.
    Rollback(RollbackRequest),
    /// Restore what was applied.
    Reconcile(ReconcileRequest),
    /// Empty a VM.
    Drain(DrainRequest),
    /// Use a VM again.
    Undrain(DrainRequest),
    /// Remove one.
    Remove(RemoveRequest),
}

impl ApplicationRequest {
    /// Its options.
    pub fn how(&self) -> &How {
        match self {
            Self::Apply(it) => &it.how,
            Self::Scale(it) => &it.how,
            Self::Rollback(it) => &it.how,
            Self::Reconcile(it) => &it.how,
            Self::Drain(it) | Self::Undrain(it) => &it.how,
            Self::Remove(it) => &it.how,
        }
    }

    /// Its options, mutable.
    pub fn how_mut(&mut self) -> &mut How {
        match self {
            Self::Apply(it) => &mut it.how,
            Self::Scale(it) => &mut it.how,
            Self::Rollback(it) => &mut it.how,
            Self::Reconcile(it) => &mut it.how,
            Self::Drain(it) | Self::Undrain(it) => &mut it.how,
            Self::Remove(it) => &mut it.how,
        }
    }

    /// What it does to the application.
    pub fn intent(&self) -> Intent {
        match self {
            Self::Apply(_) => Intent::Apply,
            Self::Scale(_) => Intent::Scale,
            Self::Rollback(_) => Intent::Rollback,
            Self::Reconcile(_) => Intent::Reconcile,
            Self::Drain(_) => Intent::Drain,
            Self::Undrain(_) => Intent::Undrain,
            Self::Remove(_) => Intent::Remove,
        }
    }

    /// The path it is sent to.
    pub fn path(&self) -> String {
        format!("/v1/{}", self.intent())
    }
}

impl Serialize for ApplicationRequest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Apply(it) => it.serialize(serializer),
            Self::Scale(it) => it.serialize(serializer),
            Self::Rollback(it) => it.serialize(serializer),
            Self::Reconcile(it) => it.serialize(serializer),
            Self::Drain(it) | Self::Undrain(it) => it.serialize(serializer),
            Self::Remove(it) => it.serialize(serializer),
        }
    }
}

/// What is done to an application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Intent {
    /// It is created or changed as a file describes it.
    #[default]
    Apply,
    /// It gets other numbers of components.
    Scale,
    /// It returns to an earlier version.
    Rollback,
    /// One of its VMs is emptied.
    Drain,
    /// One of its VMs is used again.
    Undrain,
    /// It is restored to what was applied.
    Reconcile,
    /// It is removed.
    Remove,
}

impl fmt::Display for Intent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Apply => "apply",
            Self::Scale => "scale",
            Self::Rollback => "rollback",
            Self::Drain => "drain",
            Self::Undrain => "undrain",
            Self::Reconcile => "reconcile",
            Self::Remove => "remove",
        })
    }
}

/// A request about applications was accepted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Submitted {
    /// The number of the change, or of the first of several; absent if there is nothing to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<u64>,
    /// The number of changes, one after the other.
    pub steps: usize,
    /// All events about it have higher numbers: `GET /v1/events?after=…` misses none.
    pub events_after: u64,
    /// The version that each application has now; 0 if it is removed.
    pub versions: BTreeMap<String, u64>,
    /// Components that are not started although there is nothing to change, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_started: BTreeMap<String, String>,
}

/// An application as the manager has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApplicationDocument {
    /// Its name.
    #[schema(example = "shop")]
    pub name: String,
    /// The version that was applied last.
    pub version: u64,
    /// The kept versions, oldest first.
    pub versions: Vec<VersionDocument>,
    /// A replacement in steps that is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutDocument>,
    /// The changes of the rollout that ended last, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_rollout: Vec<u64>,
    /// VMs that are drained.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub drained: BTreeSet<String>,
    /// The requested number of components, by name.
    pub counts: BTreeMap<String, u32>,
    /// The files of the version that was applied last; left out of lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub files: Option<ApplicationFiles>,
}

/// One version of an application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VersionDocument {
    /// Its number, counted from 1.
    pub version: u64,
    /// The name of the token that applied it.
    pub by: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The command that applied it.
    pub intent: Intent,
    /// The version that `rollback` returns to from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolls_back_to: Option<u64>,
}

/// A replacement in steps: one change after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RolloutDocument {
    /// Its first change, which identifies it: `cancel` and `promote` take it.
    pub change: u64,
    /// The changes of its steps so far, in order; the last is the present one.
    pub changes: Vec<u64>,
    /// The present step, counted from 1.
    pub step: usize,
    /// The number of steps.
    pub steps: usize,
    /// Its state.
    pub state: RolloutState,
}

/// The state of a replacement in steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum RolloutState {
    /// The change of the present step runs, or not all of its components are started yet.
    Running {
        /// Components that must start before the next step.
        waits_for: Vec<String>,
    },
    /// The canaries are replaced; the rest waits for `promote`.
    Canary {
        /// When it is promoted automatically, in milliseconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        promotes_at_ms: Option<u64>,
    },
    /// The manager refused the next step.
    Blocked {
        /// Why.
        reasons: Vec<String>,
    },
}

/// Differences between what runs and what was requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Drift {
    /// What is missing from each application, or exists and was not requested.
    pub applications: BTreeMap<String, Vec<String>>,
    /// Differences between each component and what its agent created.
    pub components: BTreeMap<String, Vec<String>>,
    /// Components that should be started and are not, and why.
    pub not_started: BTreeMap<String, String>,
    /// Components that could not be examined, and why.
    pub unknown: BTreeMap<String, String>,
    /// The number of components that were examined.
    pub examined: usize,
}

impl Drift {
    /// Whether nothing differs from what was requested.
    pub fn is_empty(&self) -> bool {
        self.applications.is_empty() && self.components.is_empty() && self.not_started.is_empty()
    }
}

/// A plan in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanningDocument {
    /// Its number.
    pub id: u64,
    /// What is planned.
    pub about: String,
    /// Time so far, in milliseconds.
    pub for_ms: u64,
    /// The planner's current goal, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<usize>,
    /// The best value so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<String>,
    /// Bound: no value can be better than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
}

/// What cancelling a change would do, or does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cancellation {
    /// The change.
    pub change: u64,
    /// What happens, in sentences.
    pub will: Vec<String>,
    /// The change to wait for: the present step of a rollout, or the change that puts canaries back; otherwise the change
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<u64>,
    /// All events about it have higher numbers.
    pub events_after: u64,
}
