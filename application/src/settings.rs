//! The settings of checks and retries that apply to each component group, with the defaults filled in.
//!
//! A file rarely says how long a start may take or how often it is retried. Before a file is applied, an operator can see what
//! applies.

use crate::Application;
use protocol::{Name, Operation, Patience};
use recipe::{Check, Probe, Recipe, Start};

/// What applies to the components of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// The group.
    pub group: Name,
    /// When a component of it counts as started and as dead.
    pub check: String,
    /// How its operations are retried.
    pub retries: Vec<String>,
}

impl Application {
    /// The settings of all groups. `usual` is how an operation is retried if the file does not say.
    pub fn settings(&self, usual: impl Fn(Operation) -> Patience) -> Vec<GroupSettings> {
        let group = |(name, group): (&Name, _)| {
            let component_type = self.type_of(group);
            let patience =
                |operation| component_type.patience.get(&operation).copied().unwrap_or_else(|| usual(operation));
            let retries = Operation::ALL.into_iter().map(|operation| retried(operation, patience(operation)));
            GroupSettings {
                group: name.clone(),
                check: started_when(&component_type.recipe),
                retries: retries.collect(),
            }
        };
        self.components.iter().map(group).collect()
    }
}

fn started_when(recipe: &Recipe) -> String {
    match (&recipe.operations.check, &recipe.operations.start) {
        (Some(check), _) => checked(check),
        (None, Some(Start::Process(process))) => {
            format!("no check: started once its process has been running for {}", duration(process.settle_ms))
        }
        (None, Some(Start::Script(_))) => "no check: started once its start script has succeeded".into(),
        (None, None) => "no check and no start: started at once".into(),
    }
}

fn checked(check: &Check) -> String {
    let probe = match &check.probe {
        Probe::Tcp { port, host: None } => format!("tcp {port}"),
        Probe::Tcp { port, host: Some(host) } => format!("tcp {host}:{port}"),
        Probe::Http { url } => format!("http {url}"),
        Probe::Command { .. } => "a command".into(),
    };
    let later = match check.liveness_ms {
        Some(every) => format!("then every {}, dead after {} failures", duration(every), check.failures_max),
        None => "not repeated after that".into(),
    };
    format!("check: {probe}, ready within {}, {later}", duration(check.ready_within_ms))
}

fn retried(operation: Operation, patience: Patience) -> String {
    let Patience { retries, pause_ms_first, factor } = patience;
    match (retries, factor) {
        (0, _) => format!("{operation}: not retried"),
        (retries, 0 | 1) => format!("{operation}: {retries} retries, {} apart", duration(pause_ms_first)),
        (retries, factor) => {
            format!(
                "{operation}: {retries} retries, first after {}, then {factor} times as long",
                duration(pause_ms_first)
            )
        }
    }
}

fn duration(ms: u64) -> String {
    match ms {
        ms if ms % 60_000 == 0 && ms > 60_000 => format!("{} min", ms / 60_000),
        ms if ms % 1_000 == 0 => format!("{} s", ms / 1_000),
        ms => format!("{ms} ms"),
    }
}
