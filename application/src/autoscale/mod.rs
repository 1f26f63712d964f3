//! Following the load: what `autoscale:` in a file says, and what follows from a measured load.
//!
//! This module decides and does nothing else: measuring, planning and applying are the manager's. Components say how much load
//! each can take (`load:`), so one measured load gives the numbers of all of them at once. Growing is never delayed. Shrinking
//! waits for a pause without changes (`cool-down`) and must save enough (`saves`), because every change disturbs.

mod decide;
mod read;

pub use decide::{Measured, Wish};
pub(crate) use read::{AUTOSCALE_FIELDS, SOURCE_FIELDS, read};

use std::collections::BTreeMap;

/// How an application follows its load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autoscale {
    /// Where the load of the application comes from; every component with a `load` follows it.
    pub source: Option<Source>,
    /// Where the loads of single groups come from, which then do not follow the application's.
    pub sources: BTreeMap<String, Source>,
    /// There are never fewer components of a group than this.
    pub least: BTreeMap<String, u32>,
    /// There are never more.
    pub most: BTreeMap<String, u32>,
    /// Pause between two measurements.
    pub every_ms: u64,
    /// Time without changes before the number of components is lowered.
    pub cool_down_ms: u64,
    /// A plan that lowers numbers must save at least this share of the cost, in percent.
    pub saves_percent: u64,
    /// Whether the manager only says what it would do.
    pub dry_run: bool,
}

/// Where a load comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The answer of a Prometheus server to a query; several series are added.
    Prometheus {
        /// Where the server is, such as `http://127.0.0.1:9090`.
        url: String,
        /// The query.
        query: String,
    },
    /// A number that is read over HTTP.
    Http {
        /// From where.
        url: String,
        /// Where in a JSON document, such as `queue.length`; without it, the answer is the number.
        field: Option<String>,
    },
    /// A number that a command prints, run by the shell on the manager's machine.
    Command(String),
    /// A value that components report in their output as lines `NAME=NUMBER`; the last one of each counts, and they are added.
    Component {
        /// The group.
        component: String,
        /// The name.
        value: String,
    },
}

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Prometheus { url, query } => write!(formatter, "{query} at {url}"),
            Self::Http { url, field: None } => formatter.write_str(url),
            Self::Http { url, field: Some(field) } => write!(formatter, "{field} at {url}"),
            Self::Command(command) => write!(formatter, "the command `{command}`"),
            Self::Component { component, value } => write!(formatter, "{value} of {component}"),
        }
    }
}
