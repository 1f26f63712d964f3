//! What an operator can ask for.

use crate::{Kind, Name};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, sync::Arc};

/// What the operator asks for as a whole. Removals speak of what was before the change, additions of what will be after
/// it; so a component can be replaced by another of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Change {
    /// How additions and removals meet.
    pub strategy: Strategy,
    /// Whether imports may be left without providers; their components then wait.
    pub incomplete: bool,
    /// What is to be different.
    pub edits: Vec<Edit>,
}

/// How the up phase (additions) and the down phase (removals) of a change meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Replace in place: the up phase is posted when the down phase is complete.
    DownThenUp,
    /// Make before break: the down phase is posted when the up phase is complete.
    UpThenDown,
    /// No barrier; safe, because loans make it so.
    #[default]
    Together,
}

impl Strategy {
    /// All of them, with the names that people use.
    pub const NAMES: [(&'static str, Self); 3] =
        [("down-then-up", Self::DownThenUp), ("up-then-down", Self::UpThenDown), ("together", Self::Together)];
}

impl fmt::Display for Strategy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = Self::NAMES.iter().find(|(_, strategy)| strategy == self).expect("NAMES lists every strategy");
        formatter.write_str(name)
    }
}

/// A text that names no strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no strategy (use down-then-up, up-then-down or together)")]
pub struct StrategyError(String);

impl FromStr for Strategy {
    type Err = StrategyError;
    fn from_str(text: &str) -> Result<Self, StrategyError> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, strategy)| *strategy).ok_or_else(|| StrategyError(text.into()))
    }
}

/// One thing that is to be different.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Edit {
    /// A new VM.
    AddVm {
        /// Its name.
        vm: Name,
    },
    /// The VM goes, with all its components.
    RemoveVm {
        /// Its name.
        vm: Name,
    },
    /// A new component.
    AddComponent {
        /// Its name.
        component: Name,
        /// Where it lives.
        vm: Name,
        /// What it is.
        kind: Arc<Kind>,
    },
    /// The component goes, with all its bindings.
    RemoveComponent {
        /// Its name.
        component: Name,
    },
    /// The component stops and starts again.
    RestartComponent {
        /// Its name.
        component: Name,
    },
    /// The import of a client now needs this number of providers.
    SetNeed {
        /// The client.
        component: Name,
        /// Its import.
        import: Name,
        /// The number.
        number: u32,
    },
    /// A new binding.
    AddBinding(Wire),
    /// The binding goes.
    RemoveBinding(Wire),
}

/// A binding as people see it: the import of a client, joined to the export of a provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Wire {
    /// The component that borrows.
    pub client: Name,
    /// Its import.
    pub import: Name,
    /// The component that lends.
    pub provider: Name,
    /// Its export.
    pub export: Name,
}

impl fmt::Display for Wire {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{} → {}.{}", self.client, self.import, self.provider, self.export)
    }
}
