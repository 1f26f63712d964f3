//! One goal of the list: what is known about it while it is being optimised.

use super::bound::{Relaxed, rounded_up};
use super::engine::{Belief, Engine, LinearProgram, LinearRow, dual, float, linear_row};
use super::watch::Watch;
use crate::model::columns::Column;
use crate::model::interfaces::Cut;
use crate::model::{Measure, Model, Row};

/// How often each column is used, and the value of the goal.
#[derive(Clone, Debug)]
pub(crate) struct Incumbent {
    pub(crate) value: i128,
    pub(crate) uses: Vec<(Column, i64)>,
    /// The value of each variable, auxiliary ones included.
    pub(crate) values: Vec<i64>,
}

/// Why a candidate is none.
pub(crate) enum Flaw {
    /// A row, a bound or a number of nodes is violated.
    Broken,
    /// Its numbers of instances cannot be wired.
    Unwirable(Cut),
}

pub(crate) struct Stage<'a, 'w> {
    pub(crate) model: &'a Model,
    pub(crate) engine: &'a mut dyn Engine,
    pub(crate) watch: &'a mut Watch<'w>,
    /// The factor of each variable in the goal.
    pub(crate) objective: Vec<i64>,
    /// Values of the goal are multiples of this.
    pub(crate) step: i128,
    /// What is added to each value to get that of the goal as it is written.
    pub(crate) constant: i128,
    /// Rows of the model, and those that keep earlier goals at their optimum.
    pub(crate) rows: Vec<Row>,
    pub(crate) cuts: &'a mut Vec<Cut>,
    pub(crate) columns: &'a mut Vec<Column>,
    pub(crate) incumbent: Option<Incumbent>,
}

impl Stage<'_, '_> {
    /// All rows that hold within the box.
    pub(crate) fn rows_in(&self, bounds: &[(i64, i64)]) -> Vec<Row> {
        let mut rows = self.rows.clone();
        rows.extend(self.model.interfaces.rows(bounds, self.cuts));
        rows
    }

    /// The program for the engine: first the variables, then the columns; first the links between measures and
    /// columns, then the numbers of nodes, then the rows.
    pub(crate) fn program(
        &self,
        objective: &[i64],
        bounds: &[(i64, i64)],
        rows: &[Row],
        columns: &[Column],
        limits: Option<&[(i64, i64)]>,
    ) -> LinearProgram {
        let variables = bounds.len();
        let mut program = LinearProgram {
            objective: objective.iter().map(|factor| float(*factor)).collect(),
            bounds: bounds.iter().map(|(low, high)| (float(*low), float(*high))).collect(),
            rows: Vec::new(),
        };
        let mut links: Vec<Vec<(usize, f64)>> = vec![Vec::new(); variables];
        let mut nodes: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.model.groups.len()];
        for (position, column) in columns.iter().enumerate() {
            program.objective.push(0.0);
            // Without limits of its own a column is held back by the number of nodes.
            program.bounds.push(match limits.map(|limits| limits[position]) {
                Some((low, high)) if high < self.model.groups[column.group].number() => (float(low), float(high)),
                Some((low, _)) => (float(low), f64::INFINITY),
                None => (0.0, f64::INFINITY),
            });
            for (variable, value) in &column.values {
                links[*variable].push((variables + position, float(*value)));
            }
            nodes[column.group].push((variables + position, 1.0));
        }
        for (variable, mut terms) in links.into_iter().enumerate() {
            if self.model.measures[variable].is_some() {
                terms.push((variable, -1.0));
                program.rows.push(LinearRow { terms, equal: true, amount: 0.0 });
            }
        }
        for (group, terms) in self.model.groups.iter().zip(nodes) {
            program.rows.push(LinearRow { terms, equal: true, amount: float(group.number()) });
        }
        program.rows.extend(rows.iter().map(|row| linear_row(&row.terms, row.relation, row.amount)));
        program
    }

    /// Multipliers for the program's rows from the engine, turned into something that yields exact bounds.
    pub(crate) fn relaxed(
        &mut self,
        program: &LinearProgram,
        objective: &[i64],
        bounds: &[(i64, i64)],
        rows: &[Row],
        limit: f64,
    ) -> Option<Relaxed> {
        let Belief::Optimum(multipliers) = self.engine.solve(&dual(program, limit)) else { return None };
        self.relaxed_by(&multipliers, objective, bounds, rows)
    }

    /// The same, from multipliers for the program's rows.
    pub(crate) fn relaxed_by(
        &self,
        multipliers: &[f64],
        objective: &[i64],
        bounds: &[(i64, i64)],
        rows: &[Row],
    ) -> Option<Relaxed> {
        let mut all = multipliers.iter().copied();
        let mut links = Vec::with_capacity(bounds.len());
        for measure in &self.model.measures {
            links.push(if measure.is_some() { all.next()? } else { 0.0 });
        }
        let rest: Vec<f64> = all.skip(self.model.groups.len()).take(rows.len()).collect();
        if rest.len() < rows.len() {
            return None;
        }
        Relaxed::new(self.model, objective, bounds, rows, &links, &rest)
    }

    /// The exact values of all variables for these uses; auxiliary ones are taken from `hint`.
    fn values(&self, uses: &[(Column, i64)], hint: &[f64]) -> Vec<i64> {
        let mut values = vec![0_i64; self.model.bounds.len()];
        for (variable, value) in values.iter_mut().enumerate() {
            if self.model.measures[variable].is_none() {
                *value = nearest(hint.get(variable).copied().unwrap_or(0.0));
            }
        }
        for (column, number) in uses {
            for (variable, value) in &column.values {
                values[*variable] += value * number;
            }
        }
        values
    }

    /// Checks a candidate exactly; a better one becomes the incumbent. Returns its value.
    pub(crate) fn consider(&mut self, uses: Vec<(Column, i64)>, hint: &[f64]) -> Result<i128, Flaw> {
        let values = self.values(&uses, hint);
        let mut free: Vec<i64> = self.model.groups.iter().map(|group| group.number()).collect();
        for (column, number) in &uses {
            free[column.group] -= number;
        }
        let in_bounds = values.iter().zip(&self.model.bounds).all(|(value, (low, high))| (low..=high).contains(&value));
        let holds = free.iter().all(|free| *free == 0)
            && in_bounds
            && self.rows.iter().all(|row| row.holds(&values))
            && self.model.interfaces.violated_conflict(&values).is_none();
        if !holds {
            return Err(Flaw::Broken);
        }
        if let Some(cut) = self.model.interfaces.unwirable(&values) {
            return Err(Flaw::Unwirable(cut));
        }
        let value =
            self.objective.iter().zip(&values).map(|(factor, value)| i128::from(*factor) * i128::from(*value)).sum();
        if self.incumbent.as_ref().is_none_or(|best| value < best.value) {
            self.watch.progress.best = Some(value + self.constant);
            self.incumbent = Some(Incumbent { value, uses, values });
        }
        Ok(value)
    }

    /// The uses that an engine's values suggest, rounded.
    pub(crate) fn uses(&self, columns: &[Column], values: &[f64]) -> Vec<(Column, i64)> {
        let numbers = values.iter().skip(self.model.bounds.len()).map(|value| nearest(*value));
        columns.iter().cloned().zip(numbers).filter(|(_, number)| *number > 0).collect()
    }

    /// Whether a scaled bound shows that nothing better than the incumbent is left.
    pub(crate) fn closes(&self, bound: i128) -> bool {
        self.incumbent.as_ref().is_some_and(|best| rounded_up(bound, self.step) >= best.value)
    }
}

impl Row {
    pub(crate) fn holds(&self, values: &[i64]) -> bool {
        let sum: i128 =
            self.terms.iter().map(|(variable, factor)| i128::from(*factor) * i128::from(values[*variable])).sum();
        match self.relation {
            crate::model::Relation::AtLeast => sum >= i128::from(self.amount),
            crate::model::Relation::Equal => sum == i128::from(self.amount),
        }
    }
}

/// The value of a goal.
pub(crate) fn value_of(objective: &[i64], values: &[i64]) -> i128 {
    objective.iter().zip(values).map(|(factor, value)| i128::from(*factor) * i128::from(*value)).sum()
}

/// The greatest number that divides every value of the goal.
pub(crate) fn step_of(model: &Model, objective: &[i64]) -> i128 {
    let mut step = 0_i128;
    for (variable, factor) in objective.iter().enumerate().filter(|(_, factor)| **factor != 0) {
        let unit = match &model.measures[variable] {
            Some(Measure::Cost) => {
                model.groups.iter().fold(0, |unit, group| common_divisor(unit, i128::from(group.cost)))
            }
            _ => 1,
        };
        step = common_divisor(step, unit * i128::from(*factor).abs());
    }
    step.max(1)
}

fn common_divisor(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[expect(clippy::cast_possible_truncation, reason = "clamped first, and checked exactly later")]
pub(crate) fn nearest(value: f64) -> i64 {
    if value.is_nan() { 0 } else { value.round().clamp(-4e15, 4e15) as i64 }
}
