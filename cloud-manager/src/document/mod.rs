//! The documents of the operator's API, as plain data.
//!
//! Input is text until it is checked: [`change`] turns it into a [`protocol::Change`], or returns all errors, each with
//! its place. Output is in [`state`] (the present state), [`event`] (events) and [`answer`] (answers to requests);
//! [`why`] has the reasons. [`application`] is about applications, and [`plan`] is the one document that says what will
//! happen.

pub mod answer;
pub mod application;
pub mod asked;
pub mod autoscale;
pub mod change;
pub mod dashboard;
mod data;
pub mod event;
pub mod plan;
pub mod reason;
pub mod recipe;
pub mod retrying;
mod secrets;
pub mod standing;
pub mod state;
pub mod why;

/// A name as a shell argument: names of applications' parts have brackets, which are special to shells.
pub fn quoted(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./:@".contains(letter);
    if name.chars().all(plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}

/// A duration, rounded for display.
pub fn lasting(time: std::time::Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        0.0 => "0 s".into(),
        0.0..0.001 => format!("{} µs", time.as_micros()),
        0.001..1.0 => format!("{} ms", time.as_millis()),
        1.0..100.0 => format!("{seconds:.2} s"),
        _ => format!("{} s", time.as_secs()),
    }
}

pub use answer::{Accepted, JoinToken, NewJoinToken, NewToken, OperatorToken, Problems, Role, Token, Well};
pub use application::{
    ApplicationDocument, ApplicationRequest, ApplyRequest, Cancellation, CheckRequest, DrainRequest, Drift, How,
    Intent, PlanningDocument, ReconcileRequest, RemoveRequest, RollbackRequest, RolloutDocument, RolloutState,
    ScaleRequest, Submitted, VersionDocument,
};
pub use autoscale::AutoscaleDocument;
pub use change::{EditDocument, NewChange, NewComponent, NewExport, NewImport, NewNeed, NewPatience, NewVm};
pub use dashboard::{
    ChangeStory, Configuration, DashboardLink, LifelineRecord, MarkRecord, MessageRecord, OperationRecord, RowRecord,
    Session,
};
pub use data::{DataDirectory, DataDocument};
pub use event::{ChangeRecord, EventDocument, Gap, Outcome, PhaseRecord};
pub use plan::{
    ApplicationPlan, ComponentDifference, ComponentFate, DataEffect, DataFate, Fate, Forecast, Moment, Plan, SecretUse,
    Standing, TradeOff,
};
pub use retrying::Retrying;
pub use standing::{ComponentStatus, EventKind, NeedText, Phase, VmHealth};
pub use state::{Binding, Component, ComponentDetail, Deaths, ImportState, RunningChange, Status, Summary, Vm};
pub use why::{Reason, Why};
