//! The best placement, and the proof that it is: goals one after the other, each over columns.
//!
//! For each goal: bound it from below (`generate`), let the engine guess a placement, and if the two do not meet,
//! search through all columns that could still matter (`search`). Numbers in floating point come only from `engine`;
//! what is claimed rests on `bound`, `boxes` and exact checks in `stage`.

mod bound;
pub(crate) mod boxes;
mod branch_and_price;
mod dive;
pub(crate) mod engine;
mod generate;
mod search;
mod stage;
pub(crate) mod watch;

use crate::memory::Seed;
use crate::model::columns::Column;
use crate::model::linear::Linear;
use crate::model::{Model, Row};
use crate::reduce::Reduced;
use engine::Engine;
use search::Outcome;
use stage::{Incumbent, Stage, step_of, value_of};
use std::fmt;
use watch::Watch;

/// How often each column is used.
pub(crate) type Uses = Vec<(Column, i64)>;

/// What is known about one goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoalResult {
    pub(crate) value: i128,
    /// Nothing can be below this; equal to `value` when proven.
    pub(crate) bound: Option<i128>,
}

/// Contents that columns were made of, by group of the original model.
pub(crate) type Pool = Vec<(usize, Vec<i64>)>;

/// Why the best answer is not proven, or none was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// The caller stopped the search.
    Stopped,
    /// A linear program could not be solved, and there are too many columns to do without.
    Numerical,
    /// The optimum of a goal is too large a number to hold on to while later goals are optimised.
    TooLarge,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the search was stopped"),
            Self::Numerical => {
                let most = search::COLUMNS_MAX;
                write!(f, "a linear program could not be solved, and more than {most} columns are too many to list")
            }
            Self::TooLarge => f.write_str("a goal exceeds 2^52, beyond which the planner does not compute exactly"),
        }
    }
}

/// The answer of the solver.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A placement; it is optimal if every goal's bound equals its value.
    Placed {
        uses: Uses,
        values: Vec<i64>,
        goals: Vec<GoalResult>,
        /// Why a goal is not proven, if one is not.
        unfinished: Option<Unfinished>,
        pool: Pool,
    },
    Infeasible,
    /// Stopped before any placement was found; a bound for the first goal, if known.
    Unknown {
        bound: Option<i128>,
        reason: Unfinished,
    },
}

/// Solves the model, goal by goal.
pub(crate) fn solve(model: &Model, engine: &mut dyn Engine, watch: &mut Watch<'_>) -> Answer {
    solve_from(model, &[], engine, watch)
}

/// As [`solve`], with contents of nodes to begin with.
pub(crate) fn solve_from(original: &Model, seeds: &[Seed], engine: &mut dyn Engine, watch: &mut Watch<'_>) -> Answer {
    let reduced = Reduced::new(original);
    let model = &reduced.model;
    let mut rows = model.rows.clone();
    let (mut columns, mut guess) = reduced.seeded(seeds);
    let mut cuts = Vec::new();
    let mut best: Option<Incumbent> = None;
    let mut results: Vec<GoalResult> = Vec::new();
    let mut unfinished = None;
    let nothing = [Linear::default()];
    // Without goals, any placement will do.
    let goals = if model.goals.is_empty() { &nothing[..] } else { &model.goals[..] };
    for (position, goal) in goals.iter().enumerate() {
        watch.progress = watch::Progress { goal: position, steps: watch.progress.steps, ..Default::default() };
        let objective = objective(model, goal);
        let incumbent = best.clone().map(|mut best| {
            best.value = value_of(&objective, &best.values);
            best
        });
        let mut stage = Stage {
            model,
            engine: &mut *engine,
            watch: &mut *watch,
            step: step_of(model, &objective),
            objective,
            constant: goal.constant,
            rows: rows.clone(),
            cuts: &mut cuts,
            columns: &mut columns,
            incumbent,
        };
        if let Some(uses) = guess.take() {
            // The last answer may not be one any more.
            let _ = stage.consider(uses, &[]);
        }
        match stage.optimise() {
            Outcome::Infeasible if best.is_none() => return Answer::Infeasible,
            // It held a moment ago, so this is the engine's doing.
            Outcome::Infeasible => {
                unfinished = Some(Unfinished::Numerical);
                break;
            }
            Outcome::Optimal(found) => {
                let value = found.value + goal.constant;
                results.push(GoalResult { value, bound: Some(value) });
                let terms = goal.terms.iter().map(|(variable, factor)| (*variable, -factor)).collect();
                let kept = Row::at_least(terms, -found.value);
                best = Some(found);
                match kept {
                    Some(row) => rows.push(row),
                    // The optimum cannot be held on to exactly, so later goals are left unproven.
                    None => {
                        unfinished = Some(Unfinished::TooLarge);
                        break;
                    }
                }
            }
            Outcome::Unfinished { best: found, bound, reason } => {
                unfinished = Some(reason);
                let bound = bound.map(|bound| bound + goal.constant);
                match found {
                    Some(found) => {
                        results.push(GoalResult { value: found.value + goal.constant, bound });
                        best = Some(found);
                    }
                    None if best.is_none() => return Answer::Unknown { bound, reason },
                    None => {}
                }
                break;
            }
        }
    }
    match best {
        Some(best) => {
            let (uses, values) = reduced.restored(original, best.uses, &best.values);
            // Slots may understate how much stays; the restored columns say how much really does.
            for (result, goal) in results.iter_mut().zip(&original.goals) {
                result.value = value_of(&objective(original, goal), &values) + goal.constant;
            }
            let pool = columns.into_iter().map(|column| (reduced.origin(column.group), column.counts)).collect();
            Answer::Placed { uses, values, goals: results, unfinished, pool }
        }
        None => Answer::Unknown { bound: None, reason: Unfinished::Numerical },
    }
}

fn objective(model: &Model, goal: &Linear) -> Vec<i64> {
    let mut objective = vec![0_i64; model.bounds.len()];
    for (variable, factor) in &goal.terms {
        objective[*variable] = i64::try_from(*factor).expect("the model keeps its numbers below 2^52");
    }
    objective
}
