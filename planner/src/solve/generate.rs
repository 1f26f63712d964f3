//! Columns when there are too many to list: start with few, ask which missing ones would help, repeat.
//!
//! The multipliers of the program over few columns give a price to everything a column offers; the column of greatest
//! worth at these prices either improves the program or proves, exactly, how good any placement can be.

use super::bound::{Relaxed, rounded_up};
use super::boxes::tighten;
use super::stage::Stage;
use crate::model::Row;
use crate::model::columns::{Column, Search};

/// Multipliers of the real goal are sought within this.
const MULTIPLIERS_MAX: f64 = 1e8;
/// A backstop against an engine that never settles.
const ROUNDS_MAX: usize = 2_000;

/// What is known at the root.
pub(crate) enum Root {
    /// There is no placement at all, certainly.
    Infeasible,
    /// No placement is better than the bound (scaled); the best column of each group is worth at most `best`.
    Bounded { bound: i128, relaxed: Relaxed, best: Vec<i128>, bounds: Vec<(i64, i64)> },
    /// The engine failed or the caller stopped; nothing is known.
    Unknown,
}

/// One round of pricing.
struct Round {
    bound: i128,
    best: Vec<i128>,
    found: Vec<Column>,
}

impl Stage<'_, '_> {
    /// Bounds the goal from below and gathers the columns that matter.
    pub(crate) fn root(&mut self) -> Root {
        let mut bounds = self.model.bounds.clone();
        let mut rows = self.rows_in(&bounds);
        // Bounds make rows sharper, and those make bounds tighter.
        for _ in 0..4 {
            if !tighten(&mut bounds, &rows) {
                return Root::Infeasible;
            }
            rows = self.rows_in(&bounds);
        }
        self.first_columns();
        match self.feasible(&bounds, &rows) {
            Some(true) => self.descend(bounds, &rows),
            Some(false) => Root::Infeasible,
            None => Root::Unknown,
        }
    }

    /// A few simple columns to start from.
    fn first_columns(&mut self) {
        for group in 0..self.model.groups.len() {
            let described = &self.model.groups[group];
            let none = vec![0_i64; self.model.types()];
            let mut candidates = vec![none.clone(), described.today.clone()];
            for kind in 0..self.model.types() {
                for count in [1, described.most[kind]] {
                    let mut counts = none.clone();
                    counts[kind] = count;
                    candidates.push(counts);
                }
            }
            for counts in candidates {
                if self.model.allows(group, &counts) {
                    self.add_column(self.model.column(group, counts));
                }
            }
        }
    }

    pub(crate) fn add_column(&mut self, column: Column) -> bool {
        let new = !self.columns.contains(&column);
        if new {
            self.columns.push(column);
        }
        new
    }

    /// Whether the rows can be met at all, fractions allowed; `None` if that cannot be told. Adds columns on the way.
    fn feasible(&mut self, bounds: &[(i64, i64)], rows: &[Row]) -> Option<bool> {
        let nothing = vec![0_i64; bounds.len()];
        for _ in 0..ROUNDS_MAX {
            if !self.watch.go() {
                return None;
            }
            let program = self.program(&nothing, bounds, rows, self.columns, None);
            let relaxed = self.relaxed(&program, &nothing, bounds, rows, 1.0)?;
            let round = self.price(&relaxed)?;
            if round.best.iter().any(|worth| *worth == i128::MIN) || round.bound > 0 {
                return Some(false);
            }
            let known: i128 = relaxed.with_best(self.model, &self.best_known(&relaxed));
            // Nothing is violated over the known columns, up to rounding: good enough to go on.
            if known <= super::bound::SCALE >> 20 {
                return Some(true);
            }
            if !self.add_all(round.found) {
                return Some(true);
            }
        }
        None
    }

    fn descend(&mut self, bounds: Vec<(i64, i64)>, rows: &[Row]) -> Root {
        let objective = self.objective.clone();
        let mut root: Option<(i128, Relaxed, Vec<i128>)> = None;
        for _ in 0..ROUNDS_MAX {
            if !self.watch.go() {
                break;
            }
            let program = self.program(&objective, &bounds, rows, self.columns, None);
            let Some(relaxed) = self.relaxed(&program, &objective, &bounds, rows, MULTIPLIERS_MAX) else { break };
            let Some(round) = self.price(&relaxed) else { break };
            let over_known = relaxed.with_best(self.model, &self.best_known(&relaxed));
            let done = rounded_up(round.bound, self.step)
                >= rounded_up(over_known - (super::bound::SCALE >> 16), self.step)
                && over_known - round.bound <= super::bound::SCALE >> 4;
            if root.as_ref().is_none_or(|(bound, ..)| round.bound > *bound) {
                self.watch.progress.bound = Some(rounded_up(round.bound, self.step));
                root = Some((round.bound, relaxed, round.best));
            }
            if done || root.as_ref().is_some_and(|(bound, ..)| self.closes(*bound)) || !self.add_all(round.found) {
                break;
            }
        }
        match root {
            Some((bound, relaxed, best)) => Root::Bounded { bound, relaxed, best, bounds },
            None => Root::Unknown,
        }
    }

    fn add_all(&mut self, found: Vec<Column>) -> bool {
        let mut some = false;
        for column in found {
            some |= self.add_column(column);
        }
        some
    }

    /// The worth of the best known column of each group.
    fn best_known(&self, relaxed: &Relaxed) -> Vec<i128> {
        let mut best = vec![i128::MIN; self.model.groups.len()];
        for column in self.columns.iter() {
            best[column.group] = best[column.group].max(column.worth(&relaxed.prices));
        }
        best
    }

    /// Finds columns that are worth more than the known ones, and the exact bound that follows.
    /// A group without any column has a best worth of `i128::MIN`. `None` if the caller stopped.
    fn price(&mut self, relaxed: &Relaxed) -> Option<Round> {
        let mut best = self.best_known(relaxed);
        let mut found = Vec::new();
        for group in 0..self.model.groups.len() {
            let number = i128::from(self.model.groups[group].number()).max(1);
            let tolerance = ((super::bound::SCALE >> 18) / number).max(1);
            let known = best[group] != i128::MIN;
            let floor = if known { best[group] + tolerance } else { i128::MIN / 4 };
            let watch = &mut *self.watch;
            let (columns, search) = self.model.best_columns(group, &relaxed.prices, floor, &mut || watch.go());
            if search != Search::Complete {
                return None;
            }
            best[group] = match columns.last() {
                Some(column) => column.worth(&relaxed.prices),
                None if known => floor,
                None => i128::MIN,
            };
            // The last few are the best ones.
            found.extend(columns.into_iter().rev().take(6));
        }
        let missing = best.contains(&i128::MIN);
        let bound = if missing { i128::MAX } else { relaxed.with_best(self.model, &best) };
        Some(Round { bound, best, found })
    }
}
