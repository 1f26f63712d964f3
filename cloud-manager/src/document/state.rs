//! How things are: VMs, components, bindings, and the changes that are not done.

use super::{ApplicationDocument, ComponentStatus, NeedText, Phase, Retrying, VmHealth};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Everything at a glance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// When this was so, in milliseconds since 1970.
    pub at_ms: u64,
    /// The latest event; what comes after it is not in here.
    pub newest_event: u64,
    /// How many there are of each.
    pub summary: Summary,
    /// What a person should look at, the worst first.
    pub attention: Vec<String>,
    /// The clouds that can make VMs.
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

/// How many there are of each.
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
    /// Components of which an operation failed for good.
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
    /// Its number, once it is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Whether its agent answers.
    pub health: VmHealth,
    /// How many components live there.
    pub components: usize,
    /// How many of them are started.
    pub started: usize,
    /// It is removed and on its way out.
    pub leaving: bool,
    /// An operator drained it: no component is placed on it.
    #[serde(default)]
    pub drained: bool,
    /// It is lost, every neighbour has forgotten it, and no application asks for it any more.
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
    /// Where it lives.
    pub vm: String,
    /// Its state.
    pub state: ComponentStatus,
    /// Since when, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// How long it was prepared, in milliseconds, if it waited for nobody meanwhile and it is remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare_ms: Option<u64>,
    /// How long its last start took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// How long its last stop took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_ms: Option<u64>,
    /// Which operation failed, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_operation: Option<String>,
    /// The end of what that operation wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// How often it ended by itself, if it ever did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deaths: Option<Deaths>,
    /// The operation that failed last and is retried, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retrying: Option<Retrying>,
    /// Whether it is expected to be started when all that was ordered has come to rest.
    pub expected: bool,
    /// It is removed and on its way out.
    pub leaving: bool,
    /// What it waits for, if it is not yet as expected.
    pub waits_for: Vec<String>,
}

/// How often a component that was started ended by itself, as far as it is remembered. Being replaced begins it anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deaths {
    /// How often.
    pub times: u32,
    /// When for the first time, in milliseconds since 1970.
    pub first_at_ms: u64,
    /// When last.
    pub last_at_ms: u64,
}

/// A component with all that it needs and offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComponentDetail {
    /// The component.
    pub component: Component,
    /// What it needs.
    pub imports: Vec<ImportState>,
    /// What it offers.
    pub exports: Vec<String>,
    /// What it borrows.
    pub borrows: Vec<Binding>,
    /// What it lends.
    pub lends: Vec<Binding>,
}

/// How an import stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportState {
    /// Its name.
    pub name: String,
    /// The export it can be bound to.
    pub export: String,
    /// What it needs.
    pub need: NeedText,
    /// How many providers it is bound to.
    pub bound: usize,
    /// How many of them it may use.
    pub held: usize,
}

/// A binding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Binding {
    /// As it is written: `client.import → provider.export`.
    pub binding: String,
    /// Its number, once it is ordered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The component that borrows.
    pub client: String,
    /// Its import.
    pub import: String,
    /// The component that lends.
    pub provider: String,
    /// Its export.
    pub export: String,
    /// What the import needs.
    pub need: NeedText,
    /// Whether the client may use it now.
    pub held: bool,
    /// It is removed and on its way out.
    pub leaving: bool,
}

/// A change that is not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunningChange {
    /// Its number.
    pub change: u64,
    /// What was asked, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// When it was accepted, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_at_ms: Option<u64>,
    /// The phase under way; none while it waits for an earlier change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The phases that are done.
    pub phases_done: Vec<Phase>,
    /// How many things it waits for.
    pub waiting: usize,
    /// What it waits for, the first of them.
    pub waits_for: Vec<String>,
    /// The components among them, and among those that an earlier change waits for which this one waits for, of which an
    /// operation failed for good: it waits until an operator acts.
    pub stuck_on: Vec<String>,
}
