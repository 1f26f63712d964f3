//! The plan: the one document that says what a request would do, for applications and for single changes alike.

use application::{Choice, Difference, Key, Secret};
use protocol::Strategy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What a request would change, and the effects. Nothing was changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Each application concerned; empty for single components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<ApplicationPlan>,
    /// Order of additions and removals: `down-then-up`, `up-then-down` or `together`.
    #[schema(value_type = String, example = "up-then-down")]
    pub strategy: Strategy,
    /// The number of changes, one after the other.
    pub steps: usize,
    /// The number of edits in those changes.
    pub edits: usize,
    /// What becomes of data that is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<DataEffect>,
    /// The secrets of new components. The manager lacks the text of those that are not `kept`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretUse>,
    /// What happens when, and what is affected.
    pub forecast: Forecast,
    /// Warnings: what is valid, but perhaps not intended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// The application before and after, as SVG, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// The requests that lead there from an empty system, for the explorer, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub script: Option<serde_json::Value>,
}

impl Plan {
    /// Whether nothing would be changed.
    pub fn is_empty(&self) -> bool {
        self.edits == 0 && self.applications.iter().all(|it| it.difference.is_empty())
    }
}

/// What a request would change in one application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApplicationPlan {
    /// The application.
    pub application: String,
    /// The version that this plan starts from; 0 if it is new. A request with this version is refused if it has changed.
    pub version: u64,
    /// The resulting number of VMs.
    pub vms: usize,
    /// The resulting number of components.
    pub components: usize,
    /// The resulting number of bindings.
    pub bindings: usize,
    /// Differences from the present configuration.
    #[schema(value_type = Object)]
    pub difference: Difference,
    /// The VM of each new component.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object)]
    pub places: BTreeMap<Key, Key>,
    /// Components that restart, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object)]
    pub restarts: BTreeMap<Key, Vec<String>>,
    /// What becomes of each component, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object)]
    pub fates: BTreeMap<Key, ComponentFate>,
    /// How many other things differ from what was applied, and stay so.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left: usize,
    /// The number of components that a load needs, if a load was given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u32>,
    /// Whether the files are the same as those that were applied last.
    pub same_files: bool,
    /// The planner's statement about the placement, if it was left to the planner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub placement: Option<Choice>,
    /// Cost of moving fewer components, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trade_offs: Vec<TradeOff>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is Serde's")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What becomes of data that is kept for a component on a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DataEffect {
    /// The component that it is kept for.
    #[schema(example = "shop/database[0]")]
    pub component: String,
    /// The VM that keeps it.
    #[schema(example = "shop/data[0]")]
    pub vm: String,
    /// What becomes of it.
    pub fate: DataFate,
    /// Why.
    pub why: String,
}

/// What becomes of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DataFate {
    /// It is deleted, and cannot be brought back.
    Deleted,
    /// It stays on the VM, and no component uses it.
    LeftBehind,
    /// Its component starts without it, on another VM.
    NotUsed,
    /// A component of the same name uses it again.
    Adopted,
    /// The component is replaced and goes on with it.
    Kept,
}

/// What becomes of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComponentFate {
    /// What.
    pub is: Fate,
    /// Whether it has data that the new one goes on with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data_kept: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

/// What becomes of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It runs on.
    Untouched,
    /// It runs on, and is told of what is new.
    Told,
    /// It runs on with other files.
    Reloaded,
    /// It stops and starts again, as it is.
    Restarted,
    /// Another one takes its place on the same VM.
    Replaced,
    /// Another one takes its place on another VM.
    Moved,
    /// It is new.
    Added,
    /// It goes.
    Removed,
}

/// One choice between cost and disruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TradeOff {
    /// The cost of all VMs.
    pub cost: i64,
    /// The number of components that stop.
    pub stopped: i64,
    /// Whether it is proven optimal.
    pub proven: bool,
}

/// A secret of a new component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretUse {
    /// The source of its text.
    #[schema(value_type = Object)]
    #[serde(flatten)]
    pub secret: Secret,
    /// Whether the manager has its text from an earlier version.
    pub kept: bool,
}

/// What a change would do, according to the manager's own rules and a simulation of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Forecast {
    /// Why the manager would refuse it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The number of components that would be started in the end.
    pub started: usize,
    /// The number of components that would not be.
    pub not_started: usize,
    /// Every component that would be different in the end.
    pub differences: Vec<ComponentDifference>,
    /// The components that run now, stay, and may stop on the way, even if they are started again in the end.
    pub may_stop: Vec<String>,
    /// The duration in seconds, from known and assumed durations of operations; absent if it never ends or was not simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Whether the durations of all operations on the critical path were declared or learned.
    pub known: bool,
    /// Why it was not simulated, if it was not: then the fields below are empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_simulated: Option<String>,
    /// The critical path: the operations that add up to `seconds`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub critical_path: Vec<String>,
    /// Components that stop on the way and exist in the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<String>,
    /// The number of starts.
    pub starts: u64,
    /// The number of stops.
    pub stops: u64,
    /// The number of messages.
    pub messages: u64,
    /// What begins when, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moments: Vec<Moment>,
    /// The messages, with sender and receiver, in one of the possible orders; empty if there are too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<String>,
}

/// What begins at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Moment {
    /// In seconds after the first change was accepted.
    pub at: f64,
    /// The index of the change, from 0, if there are several.
    pub step: usize,
    /// Components that begin to stop.
    pub stop: Vec<String>,
    /// Components that begin to start.
    pub start: Vec<String>,
}

/// The standing of a component, now or in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It does not exist.
    Absent,
    /// It is started.
    Started,
    /// It exists and is not started.
    NotStarted,
}

impl std::fmt::Display for Standing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Absent => "absent",
            Self::Started => "started",
            Self::NotStarted => "not started",
        })
    }
}

/// A component that would be different in the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComponentDifference {
    /// Its name.
    pub component: String,
    /// Its VM.
    pub vm: String,
    /// Its present standing.
    pub now: Standing,
    /// Its standing in the end.
    pub then: Standing,
    /// Why it would not be started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
}
