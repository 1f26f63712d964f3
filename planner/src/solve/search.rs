//! Branch and bound, with every branch that is given up given up for an exact reason.

use super::Unfinished;
use super::bound::{Over, Relaxed, SCALE, rounded_up};
use super::boxes::tighten;
use super::branch_and_price::End;
use super::engine::Belief;
use super::generate::Root;
use super::stage::{Flaw, Incumbent, Stage, nearest};
use super::watch::Method;
use crate::model::Row;
use crate::model::columns::{Column, Search};

/// Up to this many columns are listed at once; with more, they are made while branching.
const LISTED_MAX: usize = 400;
/// Listed columns are searched through up to this many branches, before columns are made while branching.
const BRANCHES_MAX: u64 = 500;
/// More columns than this are never listed.
pub(super) const COLUMNS_MAX: usize = 20_000;
/// With more columns than this, a dive comes before the engine's guess, which grows too fast with their number.
const DIVE_COLUMNS_MIN: usize = 300;
/// So many dives are tried.
const DIVES_MAX: usize = 6;
/// The engine is not asked to guess over more columns than this.
const GUESS_COLUMNS_MAX: usize = 1_000;
/// The effort of the engine's own search for a good placement.
const EFFORT: u64 = 300;
/// How far a number may be from a whole one and still count as whole.
pub(super) const WHOLE: f64 = 1e-6;

/// How the optimisation of one goal ended.
pub(crate) enum Outcome {
    /// Proven: nothing is better.
    Optimal(Incumbent),
    /// Stopped early: the best found, and a bound that nothing can beat.
    Unfinished {
        best: Option<Incumbent>,
        bound: Option<i128>,
        reason: Unfinished,
    },
    Infeasible,
}

/// A part of the search space.
struct Branch {
    bounds: Vec<(i64, i64)>,
    /// How often each column may be used.
    limits: Vec<(i64, i64)>,
}

/// Where to divide a branch: values up to `at`, and values above it.
enum Split {
    Variable { variable: usize, at: i64 },
    Column { column: usize, at: i64 },
}

/// What became of a branch.
enum Fate {
    /// Nothing better than the incumbent is in it, certainly.
    Closed,
    Divided(Split),
    /// Neither could be done.
    Stuck,
}

impl Stage<'_, '_> {
    pub(crate) fn optimise(mut self) -> Outcome {
        let mut retries = 0;
        let (bound, relaxed, best, bounds) = loop {
            match self.root() {
                Root::Infeasible => return Outcome::Infeasible,
                Root::Closed => return self.finished(),
                Root::Unknown => {
                    let reason = if self.watch.stopped { Unfinished::Stopped } else { Unfinished::Numerical };
                    return Outcome::Unfinished { best: self.incumbent, bound: None, reason };
                }
                Root::Bounded { bound, relaxed, best, bounds } => {
                    if self.closes(bound) {
                        return self.finished();
                    }
                    // New cuts sharpen the root: look again, a few times.
                    retries += 1;
                    if self.columns.len() > DIVE_COLUMNS_MIN {
                        let learned = (0..DIVES_MAX).any(|attempt| self.dive(&bounds, attempt) || self.closes(bound));
                        if self.closes(bound) {
                            return self.finished();
                        }
                        if learned && retries <= 10 {
                            continue;
                        }
                    }
                    if !self.guess(&bounds) || retries > 10 {
                        break (bound, relaxed, best, bounds);
                    }
                }
            }
        };
        let whole_bound = rounded_up(bound, self.step);
        if self.closes(bound) {
            return self.finished();
        }
        self.guess_wider(bound, &relaxed, &best, &bounds);
        if self.columns.len() <= DIVE_COLUMNS_MIN {
            // Cuts that dives find are used by the search below.
            let _ = (0..DIVES_MAX).any(|attempt| self.dive(&bounds, attempt) || self.closes(bound));
        }
        if self.closes(bound) {
            return self.finished();
        }
        if let Some(columns) = self.relevant_columns(bound, &relaxed, &best, LISTED_MAX) {
            self.watch.progress.method = Method::Listing;
            if self.search(bounds.clone(), &columns, BRANCHES_MAX) {
                return self.searched();
            }
        }
        let (bound, reason) = match self.branch_and_price(whole_bound, bounds.clone()) {
            End::Complete => return self.searched(),
            End::Stopped(bound) => (bound, Unfinished::Stopped),
            End::Stuck(bound) => (bound, Unfinished::Numerical),
        };
        // The engine failed somewhere. What can be listed can be searched without it.
        if reason == Unfinished::Numerical
            && let Some(columns) = self.relevant_columns(bound * SCALE, &relaxed, &best, COLUMNS_MAX)
            && self.search(bounds, &columns, u64::MAX)
        {
            return self.searched();
        }
        let reason = if self.watch.stopped { Unfinished::Stopped } else { reason };
        Outcome::Unfinished { best: self.incumbent, bound: Some(bound), reason }
    }

    /// Everything has been searched.
    fn searched(self) -> Outcome {
        self.incumbent.map_or(Outcome::Infeasible, Outcome::Optimal)
    }

    fn finished(self) -> Outcome {
        Outcome::Optimal(self.incumbent.expect("a bound closes only against an incumbent"))
    }

    /// Lets the engine guess a whole placement over the known columns; true if a new cut was learned from it.
    pub(super) fn guess(&mut self, bounds: &[(i64, i64)]) -> bool {
        let rows = self.rows_in(bounds);
        let columns = self.columns.clone();
        let program = self.program(&self.objective, bounds, &rows, &columns, None);
        let mut whole: Vec<bool> = self.model.measures.iter().map(Option::is_none).collect();
        whole.extend(columns.iter().map(|_| true));
        let Belief::Optimum(values) = self.engine.solve_whole(&program, &whole, EFFORT) else { return false };
        let uses = self.uses(&columns, &values);
        match self.consider(uses, &values) {
            Err(Flaw::Unwirable(cut)) if !self.cuts.contains(&cut) => {
                self.cuts.push(cut);
                true
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Lets the engine guess again, over more and more columns of little extra cost.
    fn guess_wider(&mut self, bound: i128, relaxed: &Relaxed, best: &[i128], bounds: &[(i64, i64)]) {
        for part in [64, 8, 1] {
            let spare = self.incumbent.as_ref().map_or(SCALE * self.step * 64, |best| best.value * SCALE - bound);
            let mut new = false;
            for (group, best) in best.iter().enumerate() {
                let limit = GUESS_COLUMNS_MAX / self.model.groups.len();
                let watch = &mut *self.watch;
                let floor = best - spare / part - 1;
                let (found, _) = self.model.columns_above(group, &relaxed.prices, floor, limit, &mut || watch.go());
                for column in found {
                    new |= self.add_column(column);
                }
            }
            if new && (self.guess(bounds) || self.closes(bound) || !self.watch.go()) {
                return;
            }
        }
    }

    /// All columns that a better placement than the incumbent can use; `None` if they are too many to list.
    fn relevant_columns(&mut self, bound: i128, relaxed: &Relaxed, best: &[i128], limit: usize) -> Option<Vec<Column>> {
        // Using a column costs at least the difference to the best one of its group.
        let allowance = self.incumbent.as_ref().map(|best| (best.value - self.step) * SCALE - bound);
        let mut columns = Vec::new();
        for (group, best) in best.iter().enumerate() {
            let floor = allowance.map_or(i128::MIN / 4, |allowance| best - allowance - 1);
            let watch = &mut *self.watch;
            let (found, search) = self.model.columns_above(group, &relaxed.prices, floor, limit, &mut || watch.go());
            columns.extend(found);
            if search != Search::Complete || columns.len() > limit {
                return None;
            }
        }
        Some(columns)
    }

    /// Searches everything; false if it was stopped, got stuck somewhere, or needs more than `most` branches.
    fn search(&mut self, bounds: Vec<(i64, i64)>, columns: &[Column], most: u64) -> bool {
        let limits = columns.iter().map(|column| (0, self.model.groups[column.group].number())).collect();
        let mut open = vec![Branch { bounds, limits }];
        let mut complete = true;
        let mut looked = 0_u64;
        while let Some(branch) = open.pop() {
            looked += 1;
            if looked > most || !self.watch.go() {
                return false;
            }
            let mut branch = branch;
            match self.examine(&mut branch, columns) {
                Fate::Closed => {}
                Fate::Stuck => complete = false,
                Fate::Divided(split) => {
                    let (less, more) = branch.divided(&split);
                    open.push(more);
                    open.push(less);
                }
            }
        }
        complete
    }

    fn examine(&mut self, branch: &mut Branch, columns: &[Column]) -> Fate {
        loop {
            let Some(rows) = self.tightened(&mut branch.bounds) else { return Fate::Closed };
            let objective = self.objective.clone();
            let program = self.program(&objective, &branch.bounds, &rows, columns, Some(&branch.limits));
            let values = match self.engine.solve(&program) {
                Belief::Optimum(values) => values,
                Belief::Infeasible | Belief::Unknown => {
                    if self.certainly_closed(branch, &rows, columns, true) {
                        return Fate::Closed;
                    }
                    return branch
                        .any_split(self.model.types(), &[])
                        .map_or_else(|| self.last_look(branch, columns), Fate::Divided);
                }
            };
            let believed: f64 = program.objective.iter().zip(&values).map(|(cost, value)| cost * value).sum();
            if self.believes_closed(believed) && self.certainly_closed(branch, &rows, columns, false) {
                return Fate::Closed;
            }
            if let Some(split) =
                branch.fraction(&values, &self.model.measures.iter().map(Option::is_none).collect::<Vec<_>>())
            {
                return Fate::Divided(split);
            }
            let uses = self.uses(columns, &values);
            let kinds = match self.consider(uses, &values) {
                Ok(_) => Vec::new(),
                Err(Flaw::Broken) => Vec::new(),
                Err(Flaw::Unwirable(cut)) => {
                    let kinds = self.model.interfaces.kinds_of(&cut).into_iter().collect();
                    if !self.cuts.contains(&cut) {
                        self.cuts.push(cut);
                        continue;
                    }
                    kinds
                }
            };
            if self.certainly_closed(branch, &rows, columns, false) {
                return Fate::Closed;
            }
            return branch
                .split_near(&values, &kinds, self.model.types())
                .map_or_else(|| self.last_look(branch, columns), Fate::Divided);
        }
    }

    /// A branch that is a single point: either it is a solution or it is not.
    fn last_look(&mut self, branch: &Branch, columns: &[Column]) -> Fate {
        let single = branch.bounds.iter().chain(&branch.limits).all(|(low, high)| low == high);
        if !single {
            return Fate::Stuck;
        }
        let uses =
            columns.iter().cloned().zip(branch.limits.iter().map(|(low, _)| *low)).filter(|(_, number)| *number > 0);
        let hint: Vec<f64> = branch.bounds.iter().map(|(low, _)| super::engine::float(*low)).collect();
        // Good or not, the point has been looked at exactly.
        let _ = self.consider(uses.collect(), &hint);
        Fate::Closed
    }

    /// Tightens the box by all rows and by the requirements to beat the incumbent; `None` if nothing is left.
    pub(super) fn tightened(&self, bounds: &mut [(i64, i64)]) -> Option<Vec<Row>> {
        let better = self.incumbent.as_ref().and_then(|best| {
            let terms = self.objective.iter().enumerate().map(|(variable, factor)| (variable, -i128::from(*factor)));
            Row::at_least(terms.collect(), self.step - best.value)
        });
        for _ in 0..3 {
            let mut rows = self.rows_in(bounds);
            rows.extend(better.clone());
            let before = bounds.to_vec();
            if !tighten(bounds, &rows) {
                return None;
            }
            if *bounds == *before {
                break;
            }
        }
        Some(self.rows_in(bounds))
    }

    fn believes_closed(&self, value: f64) -> bool {
        let Some(best) = &self.incumbent else { return false };
        let ahead = i64::try_from(best.value - self.step).unwrap_or(i64::MIN);
        value > super::engine::float(ahead) + WHOLE
    }

    /// Whether an exact bound over the branch proves that it holds nothing better, or (`infeasible`) nothing at all.
    fn certainly_closed(&mut self, branch: &Branch, rows: &[Row], columns: &[Column], infeasible: bool) -> bool {
        let nothing = vec![0_i64; branch.bounds.len()];
        let objective = if infeasible { nothing } else { self.objective.clone() };
        let program = self.program(&objective, &branch.bounds, rows, columns, Some(&branch.limits));
        let limit = if infeasible { 1.0 } else { 1e8 };
        let Some(relaxed) = self.relaxed(&program, &objective, &branch.bounds, rows, limit) else { return false };
        match relaxed.over(self.model, columns, &branch.limits) {
            Over::Nothing => true,
            Over::TooLarge => false,
            Over::Bound(bound) if infeasible => bound > 0,
            Over::Bound(bound) => self.closes(bound),
        }
    }
}

impl Branch {
    fn divided(&self, split: &Split) -> (Self, Self) {
        let mut less = Self { bounds: self.bounds.clone(), limits: self.limits.clone() };
        let mut more = Self { bounds: self.bounds.clone(), limits: self.limits.clone() };
        match split {
            Split::Variable { variable, at } => {
                less.bounds[*variable].1 = *at;
                more.bounds[*variable].0 = at + 1;
            }
            Split::Column { column, at } => {
                less.limits[*column].1 = *at;
                more.limits[*column].0 = at + 1;
            }
        }
        (less, more)
    }

    /// The most fractional auxiliary variable, else the most fractional measure, else the most fractional column.
    fn fraction(&self, values: &[f64], auxiliary: &[bool]) -> Option<Split> {
        let distance = |value: f64| (value - value.round()).abs();
        let variables = self.bounds.len();
        let most = |chosen: &dyn Fn(usize) -> bool, from: usize, to: usize| -> Option<usize> {
            let fractions = (from..to).filter(|position| chosen(*position) && distance(values[*position]) > WHOLE);
            fractions.max_by(|a, b| distance(values[*a]).total_cmp(&distance(values[*b])))
        };
        let variable = most(&|position| auxiliary[position], 0, variables)
            .or_else(|| most(&|position| !auxiliary[position], 0, variables));
        if let Some(variable) = variable {
            let (low, high) = self.bounds[variable];
            let at = nearest(values[variable].floor());
            return (low <= at && at < high).then_some(Split::Variable { variable, at });
        }
        let position = most(&|_| true, variables, values.len())?;
        let column = position - variables;
        let (low, high) = self.limits[column];
        let at = nearest(values[position].floor());
        (low <= at && at < high).then_some(Split::Column { column, at })
    }

    /// Divides at a count that matters for wiring, next to its value; else anywhere.
    fn split_near(&self, values: &[f64], kinds: &[usize], types: usize) -> Option<Split> {
        for kind in kinds {
            let (low, high) = self.bounds[*kind];
            if low < high {
                // Absent or present is the first question; then up to here or beyond.
                let value = nearest(values[*kind]).clamp(low, high);
                let at = if low == 0 {
                    0
                } else if value < high {
                    value
                } else {
                    value - 1
                };
                return Some(Split::Variable { variable: *kind, at });
            }
        }
        self.any_split(types, values)
    }

    fn any_split(&self, types: usize, values: &[f64]) -> Option<Split> {
        let auxiliary_first = (types..self.bounds.len()).chain(0..types);
        for variable in auxiliary_first {
            let (low, high) = self.bounds[variable];
            if low < high {
                let middle = low + (high - low) / 2;
                let value = values.get(variable).map_or(middle, |value| nearest(*value));
                return Some(Split::Variable { variable, at: value.clamp(low, high - 1) });
            }
        }
        let column = self.limits.iter().position(|(low, high)| low < high)?;
        let (low, high) = self.limits[column];
        Some(Split::Column { column, at: low + (high - low) / 2 })
    }
}
