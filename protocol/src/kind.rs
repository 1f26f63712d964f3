//! What a component is: its imports, its exports, and how its operations behave.

use crate::Name;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// How many providers an import needs, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Need {
    /// That many started providers, to start and to stay up.
    Strong(u32),
    /// Runs without; a change is complete only when that many are bound. `Weak(0)` is an optional import.
    Weak(u32),
    /// The announced values of that many providers, started or not, to start and to stay up.
    Value(u32),
}

impl Need {
    /// The number, whatever the sort.
    pub fn number(self) -> u32 {
        match self {
            Self::Strong(number) | Self::Weak(number) | Self::Value(number) => number,
        }
    }

    /// Whether a client with this need goes down with its provider.
    pub fn is_strong(self) -> bool {
        matches!(self, Self::Strong(_))
    }

    /// Whether only announced values are needed, not the running provider.
    pub fn is_value(self) -> bool {
        matches!(self, Self::Value(_))
    }

    /// Whether a client with this need can do without any provider.
    pub fn is_weak(self) -> bool {
        matches!(self, Self::Weak(_))
    }

    /// Whether a client with this need may start and stay up with that many providers: started ones, or for values,
    /// announced ones.
    pub fn is_met_by(self, providers: u32) -> bool {
        match self {
            Self::Strong(number) | Self::Value(number) => providers >= number,
            Self::Weak(_) => true,
        }
    }

    /// The same sort of need with another number.
    pub fn with_number(self, number: u32) -> Self {
        match self {
            Self::Strong(_) => Self::Strong(number),
            Self::Weak(_) => Self::Weak(number),
            Self::Value(_) => Self::Value(number),
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Strong(number) => write!(formatter, "strong {number}"),
            Self::Weak(number) => write!(formatter, "weak {number}"),
            Self::Value(number) => write!(formatter, "value {number}"),
        }
    }
}

/// One import of a component.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Import {
    /// The export it can be bound to, by name.
    pub export: Name,
    /// How many providers, and when.
    pub need: Need,
}

/// One export of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Export {
    /// The names of the values that travel with it.
    pub values: Vec<Name>,
    /// At most that many clients; no limit if absent.
    pub capacity: Option<u32>,
}

impl Export {
    /// Whether values travel with it.
    pub fn has_values(&self) -> bool {
        !self.values.is_empty()
    }
}

/// The values a component hands out, by name.
pub type Values = BTreeMap<Name, Arc<str>>;

/// The operations an agent asks of its host for one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operation {
    /// Install it and announce its values; needs no other component.
    Prepare,
    /// Configure and start it, and wait until its readiness check passes.
    Start,
    /// Stay up. It fails by dying.
    Run,
    /// Take note, while running, of a new set of bindings.
    Rebind,
    /// Stop it.
    Stop,
    /// Remove what `Prepare` installed.
    Purge,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Prepare, Self::Start, Self::Run, Self::Rebind, Self::Stop, Self::Purge];

    /// What people call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Start => "start",
            Self::Run => "run",
            Self::Rebind => "rebind",
            Self::Stop => "stop",
            Self::Purge => "purge",
        }
    }

    /// The operation that people call so.
    pub fn called(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

/// How stubbornly a failed operation is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Patience {
    /// How many times it is retried before manual action is required.
    pub retries: u32,
    /// The pause before the first retry.
    pub pause_ms_first: u64,
    /// By how much each further pause is longer.
    pub factor: u32,
}

impl Patience {
    /// Manual action is required at the first failure.
    pub const NONE: Self = Self { retries: 0, pause_ms_first: 0, factor: 1 };

    /// The pause before retry `attempt` (1, 2, …), or nothing if patience is at its end.
    pub fn pause_ms(self, attempt: u32) -> Option<u64> {
        let growth = u64::from(self.factor).saturating_pow(attempt.saturating_sub(1));
        (attempt <= self.retries).then(|| self.pause_ms_first.saturating_mul(growth))
    }
}

/// A kind of component: what the protocol must know of it, and a recipe that it carries without reading.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Kind {
    /// What it needs, by the import's name.
    pub imports: BTreeMap<Name, Import>,
    /// What it offers, by the export's name.
    pub exports: BTreeMap<Name, Export>,
    /// Whether it has something to install or announce before it can be bound to.
    pub prepares: bool,
    /// Whether it has a `rebind` operation. Without one, loans that it can do without come and go without a word to it,
    /// and values that are no longer those it was started with restart it.
    pub rebinds: bool,
    /// Whether the values that it hands out may be others after each start. Those of other kinds are chosen once.
    pub renews: bool,
    /// Whether it has something to purge once it is removed.
    pub purges: bool,
    /// How stubbornly each operation is tried again; what is not listed is not tried again.
    pub patience: BTreeMap<Operation, Patience>,
    /// What the host needs to know to carry out the operations; opaque to the protocol.
    pub recipe: Arc<[u8]>,
}

impl Default for Kind {
    fn default() -> Self {
        Self {
            imports: BTreeMap::new(),
            exports: BTreeMap::new(),
            prepares: false,
            rebinds: false,
            renews: false,
            purges: false,
            patience: BTreeMap::new(),
            recipe: Arc::from([]),
        }
    }
}

impl Kind {
    /// How stubbornly an operation is tried again.
    pub fn patience(&self, operation: Operation) -> Patience {
        self.patience.get(&operation).copied().unwrap_or(Patience::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_by_the_factor_and_end_with_the_patience() {
        let patience = Patience { retries: 3, pause_ms_first: 100, factor: 2 };
        assert_eq!([1, 2, 3, 4].map(|attempt| patience.pause_ms(attempt)), [Some(100), Some(200), Some(400), None]);
        assert_eq!(Patience::NONE.pause_ms(1), None);
        // A silly factor saturates instead of overflowing.
        let silly = Patience { retries: u32::MAX, pause_ms_first: u64::MAX, factor: u32::MAX };
        assert_eq!(silly.pause_ms(1_000), Some(u64::MAX));
    }
}
