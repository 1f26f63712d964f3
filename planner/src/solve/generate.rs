//! Columns when there are too many to list: start with few, ask which missing ones would help, repeat.
//!
//! The multipliers of the program over few columns give a price to everything a column offers; the column of greatest
//! worth at these prices either improves the program or proves, exactly, how good any placement can be.

use super::bound::{Relaxed, SCALE, rounded_up};
use super::boxes::tighten;
use super::engine::{Belief, LinearProgram, LinearRow, dual, float};
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
    /// The incumbent is optimal, certainly.
    Closed,
    /// No placement is better than the bound (scaled); the best column of each group is worth at most `best`.
    Bounded { bound: i128, relaxed: Relaxed, best: Vec<i128>, bounds: Vec<(i64, i64)> },
    /// The engine failed or the caller stopped; nothing is known.
    Unknown,
}

/// One round of pricing.
struct Round {
    /// No placement is better than this (scaled); `None` if numbers became too large to say.
    bound: Option<i128>,
    /// No column of the group is worth more than this.
    best: Vec<i128>,
    found: Vec<Column>,
    /// Whether some group has no column at all: not even an empty node is allowed there.
    empty_group: bool,
}

/// Multipliers for the rows of a program that gets more and more columns: for the engine, a program that gets more rows.
struct Multipliers {
    dual: LinearProgram,
    /// How many columns it has.
    columns: usize,
    begun: bool,
    /// The row of the program that links each variable to the columns.
    links: Vec<Option<usize>>,
    /// The first of the rows for numbers of nodes.
    groups: usize,
}

impl Multipliers {
    fn new(stage: &Stage<'_, '_>, objective: &[i64], bounds: &[(i64, i64)], rows: &[Row], limit: f64) -> Self {
        let program = stage.program(objective, bounds, rows, stage.columns, None);
        let mut groups = 0;
        let links = stage.model.measures.iter().map(|measure| {
            measure.as_ref().map(|_| {
                groups += 1;
                groups - 1
            })
        });
        let links = links.collect();
        Self { dual: dual(&program, limit), columns: stage.columns.len(), begun: false, links, groups }
    }

    /// The multipliers over all columns that are known now.
    fn next(&mut self, stage: &mut Stage<'_, '_>) -> Option<Vec<f64>> {
        let rows: Vec<LinearRow> = stage.columns[self.columns..].iter().map(|column| self.row(column)).collect();
        self.columns = stage.columns.len();
        self.dual.rows.extend(rows.iter().cloned());
        let belief = if self.begun { stage.engine.extended(&rows) } else { None };
        self.begun = true;
        match belief.unwrap_or_else(|| stage.engine.begin(&self.dual)) {
            Belief::Optimum(values) => Some(values),
            Belief::Infeasible | Belief::Unknown => None,
        }
    }

    fn row(&self, column: &Column) -> LinearRow {
        let mut terms: Vec<(usize, f64)> = column
            .values
            .iter()
            .filter_map(|(variable, value)| Some((self.links[*variable]?, -float(*value))))
            .collect();
        terms.push((self.groups + column.group, -1.0));
        LinearRow { terms, equal: false, amount: 0.0 }
    }
}

impl Stage<'_, '_> {
    /// Bounds the goal from below over the whole model and gathers the columns that matter.
    pub(crate) fn root(&mut self) -> Root {
        self.first_columns();
        // With a placement at hand there is nothing to ask.
        let known = self.incumbent.is_some();
        self.bounded_in(self.model.bounds.clone(), known, true)
    }

    /// Bounds the goal from below over a box. `feasible`: whether the box is known to hold a placement; `whole`: whether it
    /// is the whole model, so that its bound is one for the goal.
    pub(crate) fn bounded_in(&mut self, bounds: Vec<(i64, i64)>, feasible: bool, whole: bool) -> Root {
        let mut bounds = bounds;
        let mut rows = self.rows_in(&bounds);
        // Bounds make rows sharper, and those make bounds tighter.
        for _ in 0..4 {
            if !tighten(&mut bounds, &rows) {
                return Root::Infeasible;
            }
            rows = self.rows_in(&bounds);
        }
        if self.closed_by_boxes(&bounds) {
            return Root::Closed;
        }
        let feasible = if feasible { Some(true) } else { self.feasible(&bounds, &rows) };
        match feasible {
            Some(true) => self.descend(bounds, &rows, whole),
            Some(false) => Root::Infeasible,
            None => Root::Unknown,
        }
    }

    /// Whether the bounds of the variables alone show that the incumbent is optimal.
    fn closed_by_boxes(&self, bounds: &[(i64, i64)]) -> bool {
        let terms = self.objective.iter().zip(bounds);
        let least: i128 = terms
            .map(|(factor, (low, high))| i128::from(*factor) * i128::from(if *factor >= 0 { *low } else { *high }))
            .sum();
        self.incumbent.as_ref().is_some_and(|best| best.value <= least)
    }

    /// A few simple columns to start from.
    fn first_columns(&mut self) {
        for group in 0..self.model.groups.len() {
            let described = &self.model.groups[group];
            let none = vec![0_i64; self.model.types()];
            let mut candidates = vec![none.clone(), described.today.clone()];
            // One group of each class is enough to begin with; pricing finds the rest.
            let first = self.model.groups[..group]
                .iter()
                .all(|other| other.class != described.class || other.most != described.most);
            for kind in (0..self.model.types()).filter(|_| first) {
                let mut counts = none.clone();
                counts[kind] = described.most[kind];
                candidates.push(counts);
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

    /// Whether the rows can be met at all, fractions allowed; `None` if the caller stopped. Adds columns on the way.
    fn feasible(&mut self, bounds: &[(i64, i64)], rows: &[Row]) -> Option<bool> {
        let nothing = vec![0_i64; bounds.len()];
        let mut multipliers = Multipliers::new(self, &nothing, bounds, rows, 1.0);
        for _ in 0..ROUNDS_MAX {
            if !self.watch.go() {
                return None;
            }
            let found = multipliers.next(self);
            // Without an opinion of the engine there is no reason to give up.
            let Some(relaxed) = found.and_then(|found| self.relaxed_by(&found, &nothing, bounds, rows)) else {
                return Some(true);
            };
            let round = self.price(&relaxed)?;
            if round.empty_group || round.bound.is_some_and(|bound| bound > 0) {
                return Some(false);
            }
            // Nothing is violated over the known columns, up to rounding: good enough to go on.
            if self.over_known(&relaxed).is_some_and(|known| known <= SCALE >> 20) {
                return Some(true);
            }
            if !self.add_all(round.found) {
                return Some(true);
            }
        }
        Some(true)
    }

    fn descend(&mut self, bounds: Vec<(i64, i64)>, rows: &[Row], whole: bool) -> Root {
        let objective = self.objective.clone();
        let mut root: Option<(i128, Relaxed, Vec<i128>)> = None;
        let mut multipliers = Multipliers::new(self, &objective, &bounds, rows, MULTIPLIERS_MAX);
        for _ in 0..ROUNDS_MAX {
            if !self.watch.go() {
                break;
            }
            let Some(found) = multipliers.next(self) else { break };
            let Some(relaxed) = self.relaxed_by(&found, &objective, &bounds, rows) else { break };
            let Some(round) = self.price(&relaxed) else { break };
            let Some(bound) = round.bound else { break };
            let done = self.over_known(&relaxed).is_some_and(|known| {
                let most = rounded_up(known - (SCALE >> 16), self.step);
                rounded_up(bound, self.step) >= most && known - bound <= SCALE >> 4
            });
            if root.as_ref().is_none_or(|(known, ..)| bound > *known) {
                if whole {
                    self.watch.progress.bound = Some(rounded_up(bound, self.step) + self.constant);
                }
                root = Some((bound, relaxed, round.best));
            }
            if done || root.as_ref().is_some_and(|(bound, ..)| self.closes(*bound)) || !self.add_all(round.found) {
                break;
            }
        }
        match root.or_else(|| self.without_multipliers(&bounds)) {
            Some((bound, relaxed, best)) => Root::Bounded { bound, relaxed, best, bounds },
            None => Root::Unknown,
        }
    }

    /// Multipliers of zero give a poor bound, but a certain one, whatever the engine does.
    fn without_multipliers(&mut self, bounds: &[(i64, i64)]) -> Option<(i128, Relaxed, Vec<i128>)> {
        let relaxed = Relaxed::new(self.model, &self.objective, bounds, &[], &vec![0.0; bounds.len()], &[])?;
        let round = self.price(&relaxed)?;
        Some((round.bound?, relaxed, round.best))
    }

    fn add_all(&mut self, found: Vec<Column>) -> bool {
        let mut some = false;
        for column in found {
            some |= self.add_column(column);
        }
        some
    }

    /// The worth of the best known column of each group.
    fn best_known(&self, relaxed: &Relaxed) -> Vec<Option<i128>> {
        let mut best = vec![None; self.model.groups.len()];
        for column in self.columns.iter() {
            let known = &mut best[column.group];
            *known = (*known).max(Some(column.worth(&relaxed.prices)));
        }
        best
    }

    /// The bound as if there were no other columns than the known ones.
    fn over_known(&self, relaxed: &Relaxed) -> Option<i128> {
        let best: Option<Vec<i128>> = self.best_known(relaxed).into_iter().collect();
        relaxed.with_best(self.model, &best?)
    }

    /// Finds columns that are worth more than the known ones, and the exact bound that follows. `None` if the caller
    /// stopped.
    fn price(&mut self, relaxed: &Relaxed) -> Option<Round> {
        let mut best = Vec::new();
        let mut found = Vec::new();
        let mut empty_group = false;
        for (group, known) in self.best_known(relaxed).into_iter().enumerate() {
            let number = i128::from(self.model.groups[group].number()).max(1);
            let tolerance = ((SCALE >> 18) / number).max(1);
            let floor = known.map_or(i128::MIN / 4, |known| known + tolerance);
            let watch = &mut *self.watch;
            let (columns, search) = self.model.best_columns(group, &relaxed.prices, floor, &mut || watch.go());
            if search != Search::Complete {
                return None;
            }
            empty_group |= columns.is_empty() && known.is_none();
            best.push(columns.last().map_or(floor, |column| column.worth(&relaxed.prices)));
            // The last few are the best ones.
            found.extend(columns.into_iter().rev().take(6));
        }
        let bound = if empty_group { None } else { relaxed.with_best(self.model, &best) };
        Some(Round { bound, best, found, empty_group })
    }
}
