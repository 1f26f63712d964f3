//! The present state: VMs, components, bindings, and the changes that are not done.

use super::{ApplicationDocument, ComponentStatus, NeedText, Phase, Retrying, VmHealth};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Everything at a glance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The time of this state, in milliseconds since 1970.
    pub at_ms: u64,
    /// The latest event that is included.
    pub newest_event: u64,
    /// The numbers of each.
    pub summary: Summary,
    /// What an operator should look at, most urgent first.
    pub attention: Vec<String>,
    /// The clouds that can create VMs.
    #[serde(default)]
    pub clouds: Vec<String>,
    /// Every application.
    #[serde(default)]
    pub applications: Vec<ApplicationDocument>,
    /// Every VM.
    pub vms: Vec<Vm>,
    /// Every component.
    pub components: Vec<Component>,
    /// Every binding.
    pub bindings: Vec<Binding>,
    /// Every change that is not done.
    pub changes: Vec<RunningChange>,
}

/// The numbers of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// VMs.
    pub vms: usize,
    /// VMs that answer.
    pub vms_well: usize,
    /// Components.
    pub components: usize,
    /// Components that are started.
    pub components_started: usize,
    /// Components with a permanently failed operation.
    pub components_failed: usize,
    /// Components that die again and again.
    #[serde(default)]
    pub components_crash_looping: usize,
    /// Bindings.
    pub bindings: usize,
    /// Bindings that their clients may use.
    pub bindings_held: usize,
    /// Changes that are not done.
    pub changes: usize,
}

/// A VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Vm {
    /// Its name.
    pub name: String,
    /// Its number, once the cloud was asked to create it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Whether its agent answers.
    pub health: VmHealth,
    /// The number of its components.
    pub components: usize,
    /// The number of them that are started.
    pub started: usize,
    /// It is being removed.
    pub leaving: bool,
    /// An operator drained it: no component is placed on it.
    #[serde(default)]
    pub drained: bool,
    /// It is lost, every neighbour has forgotten it, and no application needs it any more.
    #[serde(default)]
    pub past: bool,
}

/// A component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// Its number, once it is ordered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Its VM.
    pub vm: String,
    /// Its state.
    pub state: ComponentStatus,
    /// Since when, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// How long its preparation took, in milliseconds, if it did not wait for providers and this is still stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare_ms: Option<u64>,
    /// How long its last start took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// How long its last stop took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_ms: Option<u64>,
    /// The failed operation, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_operation: Option<String>,
    /// The end of that operation's output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// How often it ended by itself, if it ever did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deaths: Option<Deaths>,
    /// The operation that failed last and is retried, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retrying: Option<Retrying>,
    /// Whether it should be started once all orders have been carried out.
    pub expected: bool,
    /// It is being removed.
    pub leaving: bool,
    /// What it waits for, if it is not yet in the expected state.
    pub waits_for: Vec<String>,
}

/// How often a started component ended by itself, as far as stored. The count restarts when the component is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deaths {
    /// The count.
    pub times: u32,
    /// The first time, in milliseconds since 1970.
    pub first_at_ms: u64,
    /// The last time.
    pub last_at_ms: u64,
}

/// A component with its imports, exports and bindings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComponentDetail {
    /// The component.
    pub component: Component,
    /// Its imports.
    pub imports: Vec<ImportState>,
    /// Its exports.
    pub exports: Vec<String>,
    /// The bindings of its imports.
    pub borrows: Vec<Binding>,
    /// The bindings of its exports.
    pub lends: Vec<Binding>,
}

/// The state of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportState {
    /// Its name.
    pub name: String,
    /// The export it can be bound to.
    pub export: String,
    /// What it needs.
    pub need: NeedText,
    /// The number of providers it is bound to.
    pub bound: usize,
    /// The number of them that it may use.
    pub held: usize,
}

/// A binding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Binding {
    /// Its text: `client.import → provider.export`.
    pub binding: String,
    /// Its number, once it is ordered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The client.
    pub client: String,
    /// Its import.
    pub import: String,
    /// The provider.
    pub provider: String,
    /// Its export.
    pub export: String,
    /// What the import needs.
    pub need: NeedText,
    /// Whether the client may use it now.
    pub held: bool,
    /// It is being removed.
    pub leaving: bool,
}

/// A change that is not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunningChange {
    /// Its number.
    pub change: u64,
    /// What was requested, in short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// When it was accepted, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_at_ms: Option<u64>,
    /// The phase in progress; absent while it waits for an earlier change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The phases that are done.
    pub phases_done: Vec<Phase>,
    /// The number of things it waits for.
    pub waiting: usize,
    /// What it waits for; only the first few.
    pub waits_for: Vec<String>,
    /// The components with a permanently failed operation among those, and among those that an earlier change waits for
    /// if this one waits for it: manual action required.
    pub stuck_on: Vec<String>,
}
