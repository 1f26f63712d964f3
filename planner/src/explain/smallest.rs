//! As few causes as possible that contradict each other.
//!
//! First, causes are dropped as long as the rest still contradicts itself; what is left cannot be made smaller by
//! dropping from it, but another set may be smaller. Then sets that do *not* contradict themselves are collected, each
//! as large as possible: a set that contradicts itself must have a member outside of each. The smallest set with that
//! property is tried; either it contradicts itself, and nothing smaller can, or it leads to one more set.

use std::collections::BTreeSet;

use super::hitting::{Hit, smallest};
use super::{Cause, selection};
use crate::model::Model;
use crate::model::interfaces::Interfaces;
use crate::problem::Problem;
use crate::solve::engine::Engine;
use crate::solve::watch::{Progress, Watch};
use crate::solve::{Answer, solve};

/// How often it is asked whether some causes contradict each other, beyond what dropping them one by one takes.
const QUESTIONS_MAX: u32 = 500;

/// How many parts of a search such a question may look at, all of them together.
const STEPS_MAX: u64 = 2_000;

/// Causes by their position.
type Causes = BTreeSet<usize>;

pub(super) struct Search<'a, 'b> {
    problem: &'a Problem,
    interfaces: Interfaces,
    causes: Vec<Cause>,
    engine: &'a mut dyn Engine,
    watch: &'a mut Watch<'b>,
    /// What is left to spend; nothing is counted where there is none.
    budget: Option<Budget>,
    /// Whether every question so far had an answer.
    settled: bool,
}

struct Budget {
    questions: u32,
    steps: u64,
}

impl<'a, 'b> Search<'a, 'b> {
    pub(super) fn new(
        problem: &'a Problem,
        causes: Vec<Cause>,
        engine: &'a mut dyn Engine,
        watch: &'a mut Watch<'b>,
    ) -> Self {
        Self { problem, interfaces: Interfaces::new(problem), causes, engine, watch, budget: None, settled: true }
    }

    /// Causes that contradict each other, and whether it is proven that no fewer do.
    pub(super) fn run(mut self) -> (Vec<Cause>, bool) {
        let mut left: Causes = (0..self.causes.len()).collect();
        let all: Vec<usize> = left.iter().copied().collect();
        self.drop_from(&mut left, &all);
        self.budget = Some(Budget { questions: QUESTIONS_MAX, steps: STEPS_MAX });
        // Where dropping was cut short, something of it may be superfluous: nothing can be built on it.
        let fewest = if self.settled { self.fewest(&left) } else { None };
        let proven = fewest.is_some();
        let found = fewest.unwrap_or(left);
        (found.into_iter().map(|position| self.causes[position].clone()).collect(), proven)
    }

    /// Drops what can be dropped. Halves are tried first, as most causes usually have no part in it.
    fn drop_from(&mut self, left: &mut Causes, causes: &[usize]) {
        if causes.is_empty() {
            return;
        }
        let fewer = left.iter().filter(|cause| !causes.contains(cause)).copied().collect();
        let answer = self.contradict(&fewer);
        self.settled &= answer.is_some();
        if answer == Some(true) {
            *left = fewer;
        } else if causes.len() > 1 {
            let (first, second) = causes.split_at(causes.len() / 2);
            self.drop_from(left, first);
            self.drop_from(left, second);
        }
    }

    /// The fewest causes that contradict each other, given some that do; nothing if that is not settled in time.
    fn fewest(&mut self, known: &Causes) -> Option<Causes> {
        let mut outsides: Vec<Causes> = Vec::new();
        for cause in known {
            let mut others = known.clone();
            others.remove(cause);
            if outsides.iter().all(|outside| !outside.is_disjoint(&others)) {
                outsides.push(self.outside(others)?);
            }
        }
        loop {
            match smallest(&outsides, known.len()) {
                Hit::NoneBelow => return Some(known.clone()),
                Hit::Unknown => return None,
                Hit::Smallest(tried) => {
                    if self.contradict(&tried)? {
                        return Some(tried);
                    }
                    outsides.push(self.outside(tried)?);
                }
            }
        }
    }

    /// Adds to causes that can hold together as long as they can, and returns those that are left out.
    fn outside(&mut self, mut inside: Causes) -> Option<Causes> {
        let rest: Vec<usize> = (0..self.causes.len()).filter(|cause| !inside.contains(cause)).collect();
        self.add_to(&mut inside, &rest)?;
        Some((0..self.causes.len()).filter(|cause| !inside.contains(cause)).collect())
    }

    fn add_to(&mut self, inside: &mut Causes, causes: &[usize]) -> Option<()> {
        if causes.is_empty() {
            return Some(());
        }
        let more: Causes = inside.iter().chain(causes).copied().collect();
        if !self.contradict(&more)? {
            *inside = more;
        } else if causes.len() > 1 {
            let (first, second) = causes.split_at(causes.len() / 2);
            self.add_to(inside, first)?;
            self.add_to(inside, second)?;
        }
        Some(())
    }

    /// Whether these causes cannot hold together; nothing if that is not settled in time.
    fn contradict(&mut self, causes: &Causes) -> Option<bool> {
        let chosen = causes.iter().map(|position| &self.causes[*position]);
        let model = Model::new(self.problem, &selection(self.problem, &self.interfaces, chosen)).ok()?;
        if let Some(budget) = &mut self.budget {
            budget.questions = budget.questions.checked_sub(1)?;
        }
        let (budget, outer) = (&mut self.budget, &mut *self.watch);
        let mut ask = |_: &Progress| {
            let affordable = budget.as_mut().is_none_or(|budget| {
                budget.steps = budget.steps.saturating_sub(1);
                budget.steps > 0
            });
            affordable && outer.go()
        };
        match solve(&model, self.engine, &mut Watch::new(&mut ask)) {
            Answer::Infeasible => Some(true),
            Answer::Placed { .. } => Some(false),
            Answer::Unknown { .. } => None,
        }
    }
}
