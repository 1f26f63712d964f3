//! Scenarios: stories with their expected end, as text.
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
//! The opening comment is the story. What comes first, the *setup*, is one change that adds VMs, components and bindings.
//! Then come requests of the operator, in their order. Lines of dashes divide; what follows the last one is the expected
//! end. Indented lines belong to the line above them.
//!
//! | setup | |
//! |---|---|
//! | `faults: 1 death, 2 crashes` | what may go wrong: `failure`, `death`, `crash`, `break`, `loss` |
//! | `vm NAME` or `vm NAME : COMPONENT` | a VM; further components on indented lines below |
//!
//! | COMPONENT: a name, then any of | |
//! |---|---|
//! | `exports NAME [values NAME…] [capacity N]` | what it offers |
//! | `imports EXPORT [as NAME] [NEED] [from PROVIDER…]` | what it needs, and to whom it is bound at once |
//! | NEED: `strong [N]`, `weak [N]`, `optional`, `value [N]` | `strong 1` if not said; `optional` is `weak 0` |
//! | `prepares`, `rebinds`, `purges` | which operations it has besides start and stop |
//! | `renews` | it hands out other values at each start; otherwise they are chosen once |
//! | `retry OPERATION N [pause MS] [factor N]` | how stubbornly an operation is tried again |
//!
//! | requests | |
//! |---|---|
//! | `change [STRATEGY] [incomplete]` | what is to be different, one edit on each indented line |
//! | `retry COMPONENT`, `skip COMPONENT` | a failed operation is tried again, or counts as done |
//! | `lose VM` | the operator declares a VM lost |
//! | `cancel N` | the change with that number is cancelled: the setup is 1, and what is accepted after it is 2, 3, … |
//! | … `at any time` | does not wait until all earlier changes are done (`after that`, if not said) |
//! | `  refused: TEXT` | it must be refused, for a reason that contains the text; may be said several times |
//! | `  maybe refused` | it may be accepted or refused; there may be an end for each |
//!
//! | edits | |
//! |---|---|
//! | `add vm NAME [: COMPONENT]` | |
//! | `add COMPONENT on VM …` | with exports and imports as above |
//! | `remove vm NAME`, `remove COMPONENT`, `restart COMPONENT` | |
//! | `replace OLD with NEW` | a component of the same kind takes over its place and its bindings |
//! | `bind COMPONENT.IMPORT to PROVIDER [at EXPORT]`, `unbind COMPONENT.IMPORT from PROVIDER [at EXPORT]` | |
//! | `need COMPONENT.IMPORT N` | |
//!
//! | expected end | |
//! |---|---|
//! | `COMPONENT started`, or `stopped`, `failed`, `gone` | several with `or` |
//! | `vm NAME started`, or `stopped`, `empty`, `lost`, `gone` | several with `or` |
//! | `COMPONENT holds PROVIDER…` or `holds nothing` | exactly these loans and values |
//! | `never stopped: COMPONENT…` | on no path |
//! | `sometimes stopped: COMPONENT…` | on at least one path, each |
//! | `changes unfinished`, `changes done or unfinished` | whether all is asked for and done; `done` if not said |
//!
//! A word in quotes is always a name. This module reads ([`Scenario::parse`]), writes ([`std::fmt::Display`]), makes
//! scenarios of any size ([`shapes`]), and says whether a run agrees with what was expected ([`Expected`]).

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
