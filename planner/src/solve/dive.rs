//! Finds a good placement where there are many columns: settles what the linear program is sure of, and plans the rest anew.
//!
//! The linear program over all columns uses most of them a whole number of times and a remainder. A dive settles the whole
//! numbers, makes columns for what is left, and repeats; each round has fewer instances to place, so its program is smaller.
//! Once it is small enough, the engine searches it for a whole answer. A dive claims nothing: what it finds is checked as
//! every other candidate is, and a dive that fails costs only time.

use super::Uses;
use super::engine::{Belief, Engine};
use super::generate::Root;
use super::search::WHOLE;
use super::stage::{Flaw, Stage, nearest};
use super::watch::Watch;
use crate::model::columns::Column;
use crate::model::interfaces::Interfaces;
use crate::model::{Model, Row};

/// Up to this many columns the engine searches for a whole answer.
const WHOLE_MAX: usize = 250;
/// The effort of that search.
const EFFORT: u64 = 60;
/// A backstop; each round settles at least one node.
const ROUNDS_MAX: usize = 200;

/// The part of a placement that is still to be found.
struct Rest {
    model: Model,
    rows: Vec<Row>,
    objective: Vec<i64>,
    step: i128,
    columns: Vec<Column>,
    settled: Uses,
}

impl Stage<'_, '_> {
    /// Dives once within the box; true if a new cut was learned from what it found. Each `attempt` begins differently.
    pub(super) fn dive(&mut self, bounds: &[(i64, i64)], attempt: usize) -> bool {
        let rows = self.rows_in(bounds);
        let mut model = self.model.clone();
        model.bounds = bounds.to_vec();
        // Rows of the box stand for them.
        model.interfaces = Interfaces::default();
        let (objective, columns) = (self.objective.clone(), self.columns.clone());
        let mut rest = Rest { model, rows, objective, step: self.step, columns, settled: Vec::new() };
        let found = rest.placed(attempt, self.engine, self.watch);
        for column in rest.columns {
            self.add_column(column);
        }
        let Some((uses, hint)) = found else { return false };
        match self.consider(uses, &hint) {
            Err(Flaw::Unwirable(cut)) if !self.cuts.contains(&cut) => {
                self.cuts.push(cut);
                true
            }
            Ok(_) | Err(_) => false,
        }
    }
}

impl Rest {
    /// A placement, and values for the variables that columns do not decide.
    fn placed(&mut self, attempt: usize, engine: &mut dyn Engine, watch: &mut Watch<'_>) -> Option<(Uses, Vec<f64>)> {
        let variables = self.model.bounds.len();
        for round in 0..ROUNDS_MAX {
            let (program, values) = {
                let mut cuts = Vec::new();
                let mut stage = Stage {
                    model: &self.model,
                    engine: &mut *engine,
                    watch: &mut *watch,
                    objective: self.objective.clone(),
                    step: self.step,
                    constant: 0,
                    rows: self.rows.clone(),
                    cuts: &mut cuts,
                    columns: &mut self.columns,
                    incumbent: None,
                };
                let Root::Bounded { .. } = stage.bounded_in(self.model.bounds.clone(), true, false) else {
                    return None;
                };
                if stage.watch.stopped {
                    return None;
                }
                let program = stage.program(&self.objective, &self.model.bounds, &self.rows, stage.columns, None);
                let Belief::Optimum(values) = stage.engine.solve(&program) else { return None };
                (program, values)
            };
            if values[variables..].iter().all(|value| (value - value.round()).abs() <= WHOLE) {
                return Some(self.joined(&values));
            }
            if self.columns.len() <= WHOLE_MAX {
                let mut whole: Vec<bool> = self.model.measures.iter().map(Option::is_none).collect();
                whole.extend(self.columns.iter().map(|_| true));
                if let Belief::Optimum(values) = engine.solve_whole(&program, &whole, EFFORT) {
                    return Some(self.joined(&values));
                }
            }
            for (column, number) in self.next(&values, round, attempt)? {
                self.settle(column, number)?;
            }
            let model = &self.model;
            self.columns.retain(|column| model.allows(column.group, &column.counts));
        }
        None
    }

    fn joined(&self, values: &[f64]) -> (Uses, Vec<f64>) {
        let mut uses = self.settled.clone();
        for (column, value) in self.columns.iter().zip(&values[self.model.bounds.len()..]) {
            let number = nearest(*value);
            match uses.iter_mut().find(|(known, _)| known == column) {
                _ if number <= 0 => {}
                Some((_, known)) => *known += number,
                None => uses.push((column.clone(), number)),
            }
        }
        (uses, values.to_vec())
    }

    /// What to settle next: all that is whole, else one node more of the column with the largest remainder. Later attempts
    /// begin with one node of another column, so that they end elsewhere.
    fn next(&self, values: &[f64], round: usize, attempt: usize) -> Option<Uses> {
        let used = values[self.model.bounds.len()..].iter().zip(&self.columns);
        let inhabited = used.filter(|(value, column)| **value > WHOLE && column.counts.iter().any(|count| *count > 0));
        let sure: Uses = inhabited
            .clone()
            .map(|(value, column)| (column.clone(), nearest((value + WHOLE).floor())))
            .filter(|(_, number)| *number > 0)
            .collect();
        let first = round == 0 && attempt > 0;
        if !sure.is_empty() && !first {
            return Some(sure);
        }
        let mut remainders: Vec<(f64, &Column)> = inhabited.map(|(value, column)| (value.fract(), column)).collect();
        remainders.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let place = if first { attempt - 1 } else { 0 };
        let (_, column) = remainders.get(place)?;
        Some(vec![((*column).clone(), 1)])
    }

    /// Takes these nodes and what they host out of all that is left; `None` if there are not as many.
    fn settle(&mut self, column: Column, number: i64) -> Option<()> {
        let group = &mut self.model.groups[column.group];
        let free = group.number().checked_sub(number).filter(|free| *free >= 0)?;
        group.members.truncate(usize::try_from(free).ok()?);
        let mut taken = vec![0_i64; self.model.bounds.len()];
        for (variable, value) in &column.values {
            taken[*variable] = value.checked_mul(number)?;
            let (low, high) = &mut self.model.bounds[*variable];
            *low = low.checked_sub(taken[*variable])?;
            *high = high.checked_sub(taken[*variable])?;
        }
        for row in &mut self.rows {
            for (variable, factor) in &row.terms {
                row.amount = row.amount.checked_sub(factor.checked_mul(taken[*variable])?)?;
            }
        }
        let types = self.model.types();
        for (kind, (low, high)) in self.model.bounds[..types].iter_mut().enumerate() {
            *low = (*low).max(0);
            if *high < 0 {
                return None;
            }
            for group in &mut self.model.groups {
                group.most[kind] = group.most[kind].min(*high);
                group.cases.iter_mut().for_each(|case| case.most[kind] = case.most[kind].min(*high));
            }
        }
        self.settled.push((column, number));
        Some(())
    }
}
