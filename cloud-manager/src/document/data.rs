//! Data that VMs keep for components, as the API shows it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The data that one VM keeps for one component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DataDocument {
    /// The name of the component that it is kept for.
    #[schema(example = "shop/database[0]")]
    pub key: String,
    /// The VM that keeps it.
    #[schema(example = "shop/data[0]")]
    pub vm: String,
    /// Whether a component of that name is on that VM; otherwise the data was left behind.
    pub in_use: bool,
    /// Its directories.
    pub directories: Vec<DataDirectory>,
    /// Why sizes and paths are not known, if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// One directory of data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DataDirectory {
    /// What templates call it.
    #[schema(example = "files")]
    pub name: String,
    /// Where it is on the VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The size of all its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}
