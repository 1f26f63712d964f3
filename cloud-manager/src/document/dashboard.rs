//! What the dashboard takes and gives beside the rest of the API: links, sessions, and the story of a change.

use super::{Binding, Component, Forecast, Role, Vm};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A link that opens one session in a browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DashboardLink {
    /// The address on the manager, with the secret after the `#`.
    pub path: String,
    /// When it expires, in milliseconds since 1970.
    pub expires_at_ms: u64,
}

/// Who is logged in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// The name of the token that the session belongs to.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// What each request that changes something must carry in the header `X-Holdfast-CSRF`.
    pub csrf: String,
    /// The version of the program.
    pub version: String,
}

/// What happened in a change, from the journals of the manager and of the VMs on its machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangeStory {
    /// The change.
    pub change: u64,
    /// What the plan predicted, if the change came from a plan that the manager still remembers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// How everything was before it.
    pub before: Configuration,
    /// How everything was after it, or is now.
    pub after: Configuration,
    /// What hosts did, in the order in which it began.
    pub operations: Vec<OperationRecord>,
    /// The manager first, then the VMs.
    pub lifelines: Vec<LifelineRecord>,
    /// What happened, one after the other.
    pub rows: Vec<RowRecord>,
    /// Messages, in the order in which they were sent.
    pub messages: Vec<MessageRecord>,
    /// VMs whose journals are on other machines, so that their side is missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Why there are no operations and no messages, if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// VMs, components and bindings at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Configuration {
    /// Every VM.
    pub vms: Vec<Vm>,
    /// Every component.
    pub components: Vec<Component>,
    /// Every binding.
    pub bindings: Vec<Binding>,
}

/// One operation of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationRecord {
    /// The component.
    pub component: String,
    /// What the host did: `prepare`, `start`, `stop`, …
    pub operation: String,
    /// When it began, in milliseconds since 1970.
    pub from_ms: u64,
    /// When it ended; not yet, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<u64>,
    /// Whether it failed.
    pub failed: bool,
    /// Whether the end of the change waited for it.
    pub critical: bool,
}

/// One machine of a sequence chart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LifelineRecord {
    /// Its name.
    pub name: String,
    /// Its components.
    pub components: Vec<String>,
}

/// One event of a sequence chart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RowRecord {
    /// When, in milliseconds since 1970. It never goes back, although clocks of several machines may differ.
    pub at_ms: u64,
    /// The lifeline on which it happened, from 0.
    pub lifeline: usize,
    /// What is to be seen there.
    pub marks: Vec<MarkRecord>,
}

/// Something to be seen on a lifeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MarkRecord {
    /// What sort of thing: a state of a component, `gone`, `loan`, `asked`, `news` or `fault`.
    pub sort: String,
    /// What it says.
    pub text: String,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageRecord {
    /// The lifeline that it comes from, from 0.
    pub from: usize,
    /// The lifeline that it goes to.
    pub to: usize,
    /// What sort: `order`, `report`, `acknowledgement`, `bind`, `lend`, `recall` or `home`.
    pub sort: String,
    /// What it says.
    pub text: String,
    /// The row in which it was sent; before the first if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<usize>,
    /// The row in which it arrived; not yet if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived: Option<usize>,
}
