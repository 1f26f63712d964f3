//! Scenarios: what there is, what the operator asks for, what may go wrong, and how it must end, as text.
//!
//! ```text
//! # A component goes down after those that import from it.
//! vm db  : sql exports mysql
//! vm web : app imports mysql strong from sql
//! ----
//! change incomplete
//!   remove sql
//! ----
//! app stopped
//! sql gone
//! ```
//!
//! The language is described in `docs/SCENARIOS.md`, with examples that a test explores. What is added here is added there.
//!
//! This module reads ([`Scenario::parse`]), writes ([`std::fmt::Display`]), makes scenarios of any size ([`shapes`]), and says
//! whether a run agrees with what was expected ([`Expected`]).

pub mod arbitrary;
mod build;
mod component;
mod ends;
mod expected;
mod parse;
mod print;
mod problem;
pub mod shapes;
mod words;

pub use expected::{Answer, Changes, ComponentEnd, Expected, VmEnd};
pub use problem::{Problem, ScenarioError, Spot};

use crate::{Faults, Line, World};
use protocol::{Edit, Name, manager::Request};
use std::{collections::BTreeSet, sync::Arc};

/// A story with its expected end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scenario {
    /// What it is called; a file's name without its ending.
    pub name: String,
    /// What it is about, in prose.
    pub story: String,
    /// What the operator asks for; the setup is the first line.
    pub lines: Arc<[Line]>,
    /// What may go wrong.
    pub faults: Faults,
    /// What must come of it.
    pub expected: Expected,
}

impl Scenario {
    /// Reads a scenario. `file` is what problems call the text; without folder and ending it is the scenario's name.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let (sheet, mut problems) = parse::read(text);
        let mut scenario = build::scenario(sheet, &mut problems);
        problems.sort();
        problems.dedup();
        if !problems.is_empty() {
            return Err(ScenarioError { file: file.into(), problems });
        }
        let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
        scenario.name = name.strip_suffix(".txt").unwrap_or(name).into();
        Ok(scenario)
    }

    /// Every component that the story ever adds.
    pub fn components(&self) -> BTreeSet<Name> {
        let changes = self.lines.iter().filter_map(|line| match &line.request {
            Request::Make(change) => Some(&change.edits),
            Request::Retry(_) | Request::Skip(_) | Request::DeclareLost(_) | Request::Cancel(_) => None,
        });
        let added = changes.flatten().filter_map(|edit| match edit {
            Edit::AddComponent { component, .. } => Some(component.clone()),
            _ => None,
        });
        added.collect()
    }

    /// The world in which the story begins.
    pub fn world(&self) -> World {
        World::new(self.lines.clone(), self.faults)
    }
}
