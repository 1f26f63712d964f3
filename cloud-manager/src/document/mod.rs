//! What the operator's API takes and gives: plain data, with names that people understand.
//!
//! What comes in is text until it is checked: [`change`] turns it into a [`protocol::Change`], or says everything that is
//! wrong with it, each with its place. What goes out is in [`state`] (how things are), [`event`] (what has happened) and
//! [`answer`] (what became of a request); [`why`] tells the reasons.

pub mod answer;
pub mod asked;
pub mod change;
pub mod digest;
pub mod event;
pub mod recipe;
mod secrets;
pub mod state;
pub mod why;

/// A name as a shell takes it: those of applications have brackets, which mean something else there.
pub fn quoted(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./:@".contains(letter);
    if name.chars().all(plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}

pub use answer::{
    Accepted, Difference, JoinToken, NewJoinToken, NewToken, OperatorToken, Prediction, Problems, Role, Token, Well,
};
pub use change::{
    ApplicationRecord, EditDocument, Intent, NewChange, NewComponent, NewExport, NewImport, NewNeed, NewPatience, NewVm,
};
pub use event::{ChangeRecord, EventDocument, Gap, PhaseRecord};
pub use state::{Binding, Component, ComponentDetail, Deaths, ImportState, RunningChange, Status, Summary, Vm};
pub use why::{Reason, Why};
