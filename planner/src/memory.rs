//! What the planner remembers of a problem that it has solved, to solve a similar one sooner.
//!
//! A memory holds what nodes of each class hosted in the answer, and what else was of interest on the way. It is kept by
//! name, so types, classes and demands may change in between; what no longer fits is ignored. A memory never
//! changes what is proven, only how long it takes.

use crate::model::Model;
use crate::problem::Problem;
use crate::solve::{Pool, Uses};
use std::collections::{BTreeMap, BTreeSet};

/// More contents than this are not remembered for one class.
const CONTENTS_MAX: usize = 2_000;

/// Numbers of components by type.
type Contents = BTreeMap<String, i64>;

/// The last answer, and the columns that led to it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// By class: contents that were of interest.
    known: BTreeMap<String, BTreeSet<Contents>>,
    /// By class: contents of the nodes in the answer, and how many nodes there are of each.
    used: BTreeMap<String, BTreeMap<Contents, i64>>,
}

/// Contents for nodes of one class, by position of class and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seed {
    pub(crate) class: usize,
    pub(crate) counts: Vec<i64>,
    /// How many nodes had them in the last answer.
    pub(crate) used: i64,
}

impl Memory {
    /// What there is today, as if it had been the last answer.
    pub(crate) fn of_today(problem: &Problem) -> Self {
        let mut memory = Self::default();
        for (node, counts) in problem.today.contents(problem.types.len()) {
            let class = problem.classes[node.class].name.clone();
            *memory.used.entry(class).or_default().entry(named(problem, &counts)).or_insert(0) += 1;
        }
        memory
    }

    pub(crate) fn learn(&mut self, problem: &Problem, model: &Model, uses: &Uses, pool: &Pool) {
        self.known.clear();
        self.used.clear();
        for (group, counts) in pool {
            let class = &problem.classes[model.groups[*group].class].name;
            let known = self.known.entry(class.clone()).or_default();
            if known.len() < CONTENTS_MAX {
                known.insert(named(problem, counts));
            }
        }
        for (column, number) in uses.iter().filter(|(column, _)| column.counts.iter().any(|count| *count > 0)) {
            let class = &problem.classes[model.groups[column.group].class].name;
            let used = self.used.entry(class.clone()).or_default();
            *used.entry(named(problem, &column.counts)).or_insert(0) += number;
        }
    }

    /// What is remembered, in terms of a problem.
    pub(crate) fn seeds(&self, problem: &Problem) -> Vec<Seed> {
        let mut seeds = Vec::new();
        for (class, described) in problem.classes.iter().enumerate() {
            let used = self.used.get(&described.name).into_iter().flatten().map(|(contents, used)| (contents, *used));
            let known = self.known.get(&described.name).into_iter().flatten().map(|contents| (contents, 0));
            for (contents, used) in used.chain(known) {
                let mut counts = vec![0; problem.types.len()];
                let all_known = contents.iter().all(|(name, count)| {
                    let kind = problem.type_named(name);
                    kind.into_iter().for_each(|kind| counts[kind] = *count);
                    kind.is_some()
                });
                if all_known {
                    seeds.push(Seed { class, counts, used });
                }
            }
        }
        seeds
    }
}

fn named(problem: &Problem, counts: &[i64]) -> Contents {
    let some = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    some.map(|(kind, count)| (problem.types[kind].name.clone(), *count)).collect()
}
