//! Branch and bound that makes its columns on the way, for problems with more columns than can be listed.
//!
//! Each branch is a box: bounds for all variables. Its linear program is solved over the columns known so far, and those
//! that are missing are made by pricing (`generate`), so each bound holds for all columns. Where the answer has fractions, the
//! box is divided at a number that any placement has as a whole one: a variable, else the nodes of a group that are used, else the
//! instances of a type on a group, else the nodes of a group that host certain numbers of certain types. The last three
//! become measures of the model when they are first needed. For any fractional answer one of these numbers is
//! fractional, so the search is complete.
//!
//! Branches with the lowest bound come first, deeper ones first among equals; so the lowest bound of an open branch is one for the
//! goal, and rises.

use super::bound::rounded_up;
use super::engine::Belief;
use super::generate::Root;
use super::search::WHOLE;
use super::stage::{Flaw, Stage, nearest};
use super::watch::Method;
use crate::language::syntax::Comparison;
use crate::model::columns::Column;
use crate::model::local::Local;
use crate::model::{Measure, Model};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The engine guesses a placement after this many branches, then after twice as many, and so on.
const FIRST_GUESS: u64 = 16;

/// A box that is still to be searched: its bound, its depth, the order of its making, and the bounds of all variables.
type Open = (Reverse<i128>, usize, u64, Vec<(i64, i64)>);

/// How the search ended.
pub(super) enum End {
    /// All of it has been searched.
    Complete,
    /// The caller stopped it; no placement in what is left is below this.
    Stopped(i128),
    /// Boxes remain that could neither be closed nor divided; no placement in them is below this.
    Stuck(i128),
}

/// What became of a box.
enum Fate {
    Closed,
    /// Bound from below, and divided: values of the variable up to `at`, and above it.
    Divided {
        bound: i128,
        variable: usize,
        at: i64,
    },
    Stopped,
    Stuck,
}

/// Where to divide a box.
enum Split {
    Variable(usize, f64),
    /// At a number that becomes a measure.
    Measure(Measure, f64),
}

impl Stage<'_, '_> {
    /// Searches everything; `bound` is known for the goal.
    pub(super) fn branch_and_price(&mut self, bound: i128, bounds: Vec<(i64, i64)>) -> End {
        self.watch.progress.method = Method::Branching;
        let variables = bounds.len();
        let mut model = self.model.clone();
        model.bounds.clone_from(&bounds);
        let mut open: BinaryHeap<Open> = BinaryHeap::from([(Reverse(bound), 0, 0, bounds)]);
        let mut stuck: Option<i128> = None;
        let mut looked = 0_u64;
        let mut next_guess = FIRST_GUESS;
        let end = loop {
            let Some((Reverse(bound), depth, _, mut bounds)) = open.pop() else {
                break stuck.map_or(End::Complete, End::Stuck);
            };
            let lowest = stuck.map_or(bound, |stuck| stuck.min(bound));
            self.watch.progress.bound = Some(lowest + self.constant);
            self.watch.progress.open = u64::try_from(open.len()).unwrap_or(u64::MAX) + 1;
            if self.incumbent.as_ref().is_some_and(|best| bound >= best.value) {
                continue;
            }
            if !self.watch.go() {
                break End::Stopped(lowest);
            }
            looked += 1;
            // Measures may have been added since the box was made.
            bounds.extend_from_slice(&model.bounds[bounds.len()..]);
            let guesses = looked == next_guess;
            next_guess *= if guesses { 2 } else { 1 };
            match self.examined(&mut model, &mut bounds, bound, guesses) {
                Fate::Closed => {}
                Fate::Stopped => break End::Stopped(lowest),
                Fate::Stuck => stuck = Some(lowest),
                Fate::Divided { bound, variable, at } => {
                    let mut more = bounds.clone();
                    bounds[variable].1 = at;
                    more[variable].0 = at + 1;
                    open.push((Reverse(bound), depth + 1, 2 * looked, bounds));
                    open.push((Reverse(bound), depth + 1, 2 * looked + 1, more));
                }
            }
        };
        // Measures that were added here mean nothing outside.
        self.columns.iter_mut().for_each(|column| column.values.retain(|(variable, _)| *variable < variables));
        if let Some(best) = &mut self.incumbent {
            best.values.truncate(variables);
            for (column, _) in &mut best.uses {
                column.values.retain(|(variable, _)| *variable < variables);
            }
        }
        end
    }

    /// Looks at one box. The model may get new measures.
    fn examined(&mut self, model: &mut Model, bounds: &mut Vec<(i64, i64)>, bound: i128, guesses: bool) -> Fate {
        let found = {
            let mut objective = self.objective.clone();
            objective.resize(model.bounds.len(), 0);
            let mut stage = Stage {
                model,
                engine: &mut *self.engine,
                watch: &mut *self.watch,
                objective,
                step: self.step,
                constant: self.constant,
                rows: self.rows.clone(),
                cuts: &mut *self.cuts,
                columns: &mut *self.columns,
                incumbent: self.incumbent.take(),
            };
            let found = stage.look(bounds, bound, guesses);
            self.incumbent = stage.incumbent;
            found
        };
        match found {
            Found::Closed => Fate::Closed,
            Found::Stopped => Fate::Stopped,
            Found::Stuck => Fate::Stuck,
            Found::Split { bound, split: Split::Variable(variable, value) } => divided(bounds, bound, variable, value),
            Found::Split { bound, split: Split::Measure(measure, value) } => {
                let variable = add_measure(model, measure, self.columns);
                bounds.extend_from_slice(&model.bounds[bounds.len()..]);
                divided(bounds, bound, variable, value)
            }
        }
    }
}

fn divided(bounds: &[(i64, i64)], bound: i128, variable: usize, value: f64) -> Fate {
    let (low, high) = bounds[variable];
    if low == high {
        return Fate::Stuck;
    }
    Fate::Divided { bound, variable, at: nearest(value.floor()).clamp(low, high - 1) }
}

/// Adds a variable for a measure to the model and its value to each column.
fn add_measure(model: &mut Model, measure: Measure, columns: &mut [Column]) -> usize {
    if let Some(known) = model.measures.iter().position(|known| known.as_ref() == Some(&measure)) {
        return known;
    }
    let variable = model.bounds.len();
    let (mut low, mut high) = (0_i64, 0_i64);
    for (position, group) in model.groups.iter().enumerate() {
        let (least, most) = measure.range(position, group);
        low = low.saturating_add(least.saturating_mul(group.number()));
        high = high.saturating_add(most.saturating_mul(group.number()));
    }
    for column in columns {
        let value = measure.value(column.group, &model.groups[column.group], &column.counts);
        if value != 0 {
            column.values.push((variable, value));
        }
    }
    model.bounds.push((low, high));
    model.measures.push(Some(measure));
    variable
}

/// What was found in a box.
enum Found {
    Closed,
    Split { bound: i128, split: Split },
    Stopped,
    Stuck,
}

impl Stage<'_, '_> {
    fn look(&mut self, bounds: &mut Vec<(i64, i64)>, known: i128, guesses: bool) -> Found {
        let mut guesses = guesses;
        let mut feasible = self.incumbent.is_some();
        loop {
            if self.tightened(bounds).is_none() {
                return Found::Closed;
            }
            // With an incumbent, a box without a placement is closed by its bound: multipliers are limited, but far beyond it.
            let (bound, tight) = match self.bounded_in(bounds.clone(), feasible, false) {
                Root::Infeasible | Root::Closed => return Found::Closed,
                Root::Unknown if self.watch.stopped => return Found::Stopped,
                Root::Unknown => return self.halved(bounds, known),
                Root::Bounded { bound, .. } if self.closes(bound) => return Found::Closed,
                Root::Bounded { bound, bounds, .. } => (rounded_up(bound, self.step).max(known), bounds),
            };
            if self.watch.stopped {
                return Found::Stopped;
            }
            bounds.clone_from(&tight);
            let cuts = self.cuts.len();
            if guesses {
                guesses = false;
                if self.guess(bounds) {
                    continue;
                }
            }
            let rows = self.rows_in(bounds);
            let columns = self.columns.clone();
            let program = self.program(&self.objective, bounds, &rows, &columns, None);
            let values = match self.engine.solve(&program) {
                Belief::Optimum(values) => values,
                // Then there may be no placement at all, which is proven or refuted first.
                Belief::Infeasible if feasible => {
                    feasible = false;
                    continue;
                }
                Belief::Infeasible | Belief::Unknown => return self.halved(bounds, bound),
            };
            self.round(&columns, &values);
            if self.incumbent.as_ref().is_some_and(|best| bound >= best.value) {
                return Found::Closed;
            }
            if self.cuts.len() > cuts {
                continue;
            }
            if let Some(split) = self.split(bounds, &columns, &values) {
                return Found::Split { bound, split };
            }
            match self.consider(self.uses(&columns, &values), &values) {
                Ok(value) if bound >= value => return Found::Closed,
                Err(Flaw::Unwirable(cut)) if !self.cuts.contains(&cut) => self.cuts.push(cut),
                Err(Flaw::Unwirable(cut)) => {
                    let kinds = self.model.interfaces.kinds_of(&cut);
                    let open = kinds.into_iter().find(|kind| bounds[*kind].0 < bounds[*kind].1);
                    return match open {
                        // Absent or present is the first question; then up to here or beyond.
                        Some(kind) if bounds[kind].0 == 0 => Found::Split { bound, split: Split::Variable(kind, 0.0) },
                        Some(kind) => Found::Split { bound, split: Split::Variable(kind, values[kind]) },
                        None => self.halved(bounds, bound),
                    };
                }
                Ok(_) | Err(Flaw::Broken) => return self.halved(bounds, bound),
            }
        }
    }

    /// A division of the box that the engine has no part in.
    fn halved(&self, bounds: &[(i64, i64)], bound: i128) -> Found {
        let widest = (0..bounds.len()).max_by_key(|variable| bounds[*variable].1 - bounds[*variable].0);
        match widest {
            Some(variable) if bounds[variable].0 < bounds[variable].1 => {
                let (low, high) = bounds[variable];
                let middle = super::engine::float(low + (high - low) / 2);
                Found::Split { bound, split: Split::Variable(variable, middle) }
            }
            _ => Found::Stuck,
        }
    }

    /// Where a fractional answer can be divided; `None` if it has no fractions.
    fn split(&self, bounds: &[(i64, i64)], columns: &[Column], values: &[f64]) -> Option<Split> {
        let variables = bounds.len();
        let open = |variable: &usize| {
            bounds[*variable].0 < bounds[*variable].1 && self.model.measures[*variable] != Some(Measure::Cost)
        };
        let most = |chosen: &dyn Fn(&usize) -> bool| {
            let fractions = (0..variables).filter(|it| chosen(it) && open(it) && distance(values[*it]) > WHOLE);
            fractions.max_by(|a, b| distance(values[*a]).total_cmp(&distance(values[*b])))
        };
        let auxiliary = |variable: &usize| self.model.measures[*variable].is_none();
        if let Some(variable) = most(&auxiliary).or_else(|| most(&|variable| !auxiliary(variable))) {
            return Some(Split::Variable(variable, values[variable]));
        }
        let used: Vec<(&Column, f64)> = columns
            .iter()
            .zip(&values[variables..])
            .filter(|(_, value)| **value > WHOLE)
            .map(|(column, value)| (column, *value))
            .collect();
        if used.iter().all(|(_, value)| distance(*value) <= WHOLE) {
            return None;
        }
        self.split_groups(&used)
    }

    fn split_groups(&self, used: &[(&Column, f64)]) -> Option<Split> {
        let groups: BTreeSet<usize> = used.iter().map(|(column, _)| column.group).collect();
        let mut best: Option<(f64, Split)> = None;
        let mut offer = |value: f64, split: &dyn Fn() -> Split| {
            let far = distance(value);
            if far > WHOLE && best.as_ref().is_none_or(|(known, _)| far > *known) {
                best = Some((far, split()));
            }
        };
        for group in &groups {
            let here = used.iter().filter(|(column, _)| column.group == *group);
            let inhabited = here.filter(|(column, _)| column.counts.iter().any(|count| *count > 0));
            let value: f64 = inhabited.map(|(_, value)| value).sum();
            offer(value, &|| Split::Measure(Measure::Inhabited { group: *group }, value));
        }
        if best.is_some() {
            return best.map(|(_, split)| split);
        }
        let mut offer = |value: f64, split: &dyn Fn() -> Split| {
            let far = distance(value);
            if far > WHOLE && best.as_ref().is_none_or(|(known, _)| far > *known) {
                best = Some((far, split()));
            }
        };
        for group in &groups {
            for kind in 0..self.model.types() {
                let here = used.iter().filter(|(column, _)| column.group == *group);
                let value: f64 = here.map(|(column, value)| super::engine::float(column.counts[kind]) * value).sum();
                let only = self.only(*group);
                offer(value, &|| Split::Measure(Measure::Count { kind, groups: only.clone() }, value));
            }
        }
        if best.is_some() {
            return best.map(|(_, split)| split);
        }
        let fractional = groups
            .into_iter()
            .find(|group| used.iter().any(|(column, value)| column.group == *group && distance(*value) > WHOLE))?;
        let here: Vec<(&Column, f64)> = used.iter().filter(|(it, _)| it.group == fractional).copied().collect();
        self.split_contents(fractional, here)
    }

    /// Nodes of a group that host certain numbers of certain types: the first such number that is fractional.
    fn split_contents(&self, group: usize, columns: Vec<(&Column, f64)>) -> Option<Split> {
        let mut left = columns;
        let mut conditions: Vec<Local> = Vec::new();
        loop {
            let mut next: Option<(Local, Vec<(&Column, f64)>)> = None;
            let mut best: Option<(f64, Local, f64)> = None;
            for kind in 0..self.model.types() {
                let levels: BTreeSet<i64> = left.iter().map(|(column, _)| column.counts[kind]).collect();
                for level in levels.into_iter().skip(1) {
                    let at_least = |it: &&(&Column, f64)| it.0.counts[kind] >= level;
                    let sum: f64 = left.iter().filter(at_least).map(|(_, value)| value).sum();
                    let condition = Local::Compare(
                        Comparison::AtLeast,
                        Box::new(Local::Count(kind)),
                        Box::new(Local::Integer(level)),
                    );
                    if distance(sum) > WHOLE {
                        if best.as_ref().is_none_or(|(known, ..)| distance(sum) > *known) {
                            best = Some((distance(sum), condition, sum));
                        }
                    } else if next.is_none() {
                        // Both halves have whole sums; one of them holds a fraction, and is divided further.
                        let (inside, outside): (Vec<_>, Vec<_>) = left.iter().partition(|it| at_least(it));
                        let fractional = inside.iter().any(|(_, value)| distance(*value) > WHOLE);
                        next = Some(match fractional {
                            true => (condition, inside),
                            false => (Local::Not(Box::new(condition)), outside),
                        });
                    }
                }
            }
            if let Some((_, condition, sum)) = best {
                conditions.push(condition);
                let number = Local::All(conditions);
                return Some(Split::Measure(Measure::Local { number, groups: self.only(group) }, sum));
            }
            let (condition, rest) = next?;
            conditions.push(condition);
            left = rest;
        }
    }

    fn only(&self, group: usize) -> Vec<bool> {
        (0..self.model.groups.len()).map(|other| other == group).collect()
    }

    /// Looks for a placement with the numbers that the answer has on each group, rounded: nodes are packed one by one.
    fn round(&mut self, columns: &[Column], values: &[f64]) {
        let variables = self.model.bounds.len();
        let mut wanted: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut uses: Vec<(Column, i64)> = Vec::new();
        let mut free: Vec<i64> = self.model.groups.iter().map(|group| group.number()).collect();
        for (column, value) in columns.iter().zip(&values[variables..]).filter(|(_, value)| **value > WHOLE) {
            let all = nearest((value + WHOLE).floor()).min(free[column.group]);
            if all > 0 {
                uses.push((column.clone(), all));
                free[column.group] -= all;
            }
            let rest = value - super::engine::float(all);
            if rest > WHOLE {
                let sums = wanted.entry(column.group).or_insert_with(|| vec![0.0; self.model.types()]);
                for (sum, count) in sums.iter_mut().zip(&column.counts) {
                    *sum += rest * super::engine::float(*count);
                }
            }
        }
        for (group, sums) in wanted {
            let mut left: Vec<i64> = sums.iter().map(|sum| nearest((sum - WHOLE).ceil())).collect();
            while free[group] > 0 && left.iter().any(|count| *count > 0) {
                let counts = self.packed(group, &left);
                if counts.iter().all(|count| *count == 0) {
                    return;
                }
                left.iter_mut().zip(&counts).for_each(|(left, count)| *left -= count);
                free[group] -= 1;
                uses.push((self.model.column(group, counts), 1));
            }
            if left.iter().any(|count| *count > 0) {
                return;
            }
        }
        let nothing = vec![0_i64; self.model.types()];
        for (group, free) in free.into_iter().enumerate().filter(|(_, free)| *free > 0) {
            if !self.model.allows(group, &nothing) {
                return;
            }
            uses.push((self.model.column(group, nothing.clone()), free));
        }
        match self.consider(uses, values) {
            Err(Flaw::Unwirable(cut)) if !self.cuts.contains(&cut) => self.cuts.push(cut),
            Ok(_) | Err(_) => {}
        }
    }

    /// As many of the wanted instances as fit on one node, large ones first.
    fn packed(&self, group: usize, wanted: &[i64]) -> Vec<i64> {
        let described = &self.model.groups[group];
        let share = |kind: usize| {
            let sizes = self.model.sizes[kind].iter().zip(&described.room);
            sizes.map(|(size, room)| i128::from(*size) * 1_000_000 / i128::from(*room).max(1)).max().unwrap_or(0)
        };
        let mut order: Vec<usize> = (0..wanted.len()).filter(|kind| wanted[*kind] > 0).collect();
        order.sort_by_key(|kind| Reverse(share(*kind)));
        let mut counts = vec![0_i64; wanted.len()];
        for kind in order {
            while counts[kind] < wanted[kind] {
                counts[kind] += 1;
                if !self.model.allows(group, &counts) {
                    counts[kind] -= 1;
                    break;
                }
            }
        }
        counts
    }
}

fn distance(value: f64) -> f64 {
    (value - value.round()).abs()
}
