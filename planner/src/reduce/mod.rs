//! Makes a model smaller without losing its optimum, before any column is made.
//!
//! Four reductions, in this order:
//!
//! 1. Rows bound the number of instances of each type, in all and on each group of nodes.
//! 2. [`surplus`]: instances that neither a row, a goal nor a client needs are superfluous, so the number of instances
//!    is bounded even where the specification does not name a type.
//! 3. [`dominated`]: a type that another type can always replace is left out.
//! 4. [`roomy`]: a free node with room for everything that could ever be placed on it is split into independent slots,
//!    so that its columns are a sum and not a product.
//!
//! Steps 2 and 3 remove solutions, but never all of the best ones. Each states its argument at the head of its module.
//! The solver works on [`Reduced::model`]; [`Reduced::restored`] translates its answer back.

mod dominated;
mod filters;
mod roomy;
mod surplus;

use crate::memory::Seed;
use crate::model::columns::Column;
use crate::model::{Measure, Model, Row};
use crate::solve::Uses;
use crate::solve::boxes::tighten;
use std::collections::BTreeSet;

/// Rounds of bounding; each round may use the bounds of the round before.
const ROUNDS_MAX: usize = 8;
/// Counts for each group and type are bounded by rows only up to this many of them.
const SPREAD_MAX: usize = 200_000;

/// A smaller model, and the way back.
pub(crate) struct Reduced {
    pub(crate) model: Model,
    /// The group of the original model that each group was made from.
    origins: Vec<usize>,
    /// Groups of the original model that were split into slots.
    split: BTreeSet<usize>,
}

impl Reduced {
    pub(crate) fn new(original: &Model) -> Self {
        let mut model = original.clone();
        let origins = (0..model.groups.len()).collect();
        if !bounded(&mut model) {
            // The solver finds the same contradiction and proves it.
            return Self { model: original.clone(), origins, split: BTreeSet::new() };
        }
        let mut reduced = roomy::split(model);
        cover(&mut reduced.model);
        reduced
    }

    /// The group of the original model that a group was made from.
    pub(crate) fn origin(&self, group: usize) -> usize {
        self.origins[group]
    }

    /// Columns of remembered contents; and, if there are nodes enough for all that was used, a placement of it.
    pub(crate) fn seeded(&self, seeds: &[Seed]) -> (Vec<Column>, Option<Uses>) {
        let mut columns: Vec<Column> = Vec::new();
        let mut left: Vec<i64> = seeds.iter().map(|seed| seed.used).collect();
        let mut uses: Uses = Vec::new();
        let mut complete = seeds.iter().any(|seed| seed.used > 0);
        let nothing = vec![0_i64; self.model.types()];
        for (position, group) in self.model.groups.iter().enumerate() {
            let split = self.split.contains(&self.origins[position]);
            let first = self.model.groups[..position].iter().all(|other| other.class != group.class);
            let own = || seeds.iter().enumerate().filter(|(_, seed)| seed.class == group.class);
            let mut free = group.number();
            if split {
                // Slots hold one instance each: as many are used as the node hosted, today's first.
                let kind = group.most.iter().position(|most| *most > 0).unwrap_or(0);
                let earlier: i64 = uses
                    .iter()
                    .filter(|(column, _)| {
                        self.origins[column.group] == self.origins[position] && column.counts[kind] > 0
                    })
                    .map(|(_, number)| number)
                    .sum();
                let wanted: i64 = own().map(|(_, seed)| seed.used * seed.counts[kind]).sum();
                let number = (wanted - earlier).clamp(0, free);
                free -= number;
                if number > 0 {
                    uses.push((self.model.column(position, group.most.clone()), number));
                }
            } else {
                // Nodes that can keep what they host come first.
                for same in [true, false] {
                    for (place, seed) in own().filter(|(_, seed)| (seed.counts == group.today) == same) {
                        if !self.model.allows(position, &seed.counts) {
                            continue;
                        }
                        let number = left[place].min(free);
                        if first || number > 0 {
                            columns.push(self.model.column(position, seed.counts.clone()));
                        }
                        if number > 0 {
                            left[place] -= number;
                            free -= number;
                            uses.push((self.model.column(position, seed.counts.clone()), number));
                        }
                    }
                }
            }
            if free > 0 {
                complete &= self.model.allows(position, &nothing);
                uses.push((self.model.column(position, nothing.clone()), free));
            }
        }
        columns.sort_unstable();
        columns.dedup();
        (columns, complete.then_some(uses))
    }

    /// The answer in terms of the original model: how often each column is used, and the value of each variable.
    pub(crate) fn restored(&self, original: &Model, uses: Uses, values: &[i64]) -> (Uses, Vec<i64>) {
        let mut restored: Uses = Vec::new();
        let mut slots: Vec<(usize, Vec<i64>)> = Vec::new();
        for (column, number) in uses {
            let origin = self.origins[column.group];
            if !self.split.contains(&origin) {
                restored.push((original.column(origin, column.counts), number));
                continue;
            }
            let place = slots.iter().position(|(group, _)| *group == origin).unwrap_or_else(|| {
                slots.push((origin, vec![0; original.types()]));
                slots.len() - 1
            });
            for (sum, count) in slots[place].1.iter_mut().zip(&column.counts) {
                *sum += count * number;
            }
        }
        for (group, counts) in slots {
            restored.extend(roomy::joined(original, group, counts));
        }
        let mut all = values.to_vec();
        for (variable, value) in all.iter_mut().enumerate() {
            if original.measures[variable].is_some() {
                *value = 0;
            }
        }
        for (column, number) in &restored {
            for (variable, value) in &column.values {
                all[*variable] += value * number;
            }
        }
        (restored, all)
    }
}

/// Fills in the cases that cover what the filters of each group allow.
pub(crate) fn cover(model: &mut Model) {
    for group in &mut model.groups {
        group.cases = filters::covered(&group.filters, &group.most, &model.sizes, &group.room);
    }
}

/// Tightens all bounds; false if the rows contradict each other.
fn bounded(model: &mut Model) -> bool {
    for round in 0..ROUNDS_MAX {
        let before: Vec<(i64, i64)> = model.bounds.clone();
        let interface_rows = model.interfaces.rows(&model.bounds, &[]);
        let mut bounds = model.bounds.clone();
        if !tighten(&mut bounds, &model.rows) || !tighten(&mut bounds, &interface_rows) {
            return false;
        }
        model.bounds = bounds;
        if !spread(model) {
            return false;
        }
        settle(model);
        surplus::limit(model);
        settle(model);
        dominated::drop(model);
        settle(model);
        if round > 0 && model.bounds == before {
            break;
        }
    }
    true
}

/// Bounds the number of each type on each group by rows that speak of some groups only.
fn spread(model: &mut Model) -> bool {
    let types = model.types();
    if model.groups.len().saturating_mul(types) > SPREAD_MAX {
        return true;
    }
    let partial = |variable: usize| match &model.measures[variable] {
        Some(Measure::Count { groups, .. }) => !groups.iter().all(|included| *included),
        _ => false,
    };
    let rows: Vec<&Row> = model.rows.iter().filter(|row| row.terms.iter().any(|(it, _)| partial(*it))).collect();
    let links: Vec<usize> = (0..model.bounds.len()).filter(|variable| partial(*variable)).collect();
    if rows.is_empty() && links.is_empty() {
        return true;
    }
    // The bounds of all variables, then one number for each group and type.
    let first = model.bounds.len();
    let mut bounds = model.bounds.clone();
    for group in &model.groups {
        bounds.extend(group.most.iter().map(|most| (0, most.saturating_mul(group.number()))));
    }
    let counted = |variable: usize, factor: i64| -> Option<Vec<(usize, i64)>> {
        let Some(Measure::Count { kind, groups }) = &model.measures[variable] else { return None };
        let included = groups.iter().enumerate().filter(|(_, included)| **included);
        Some(included.map(|(group, _)| (first + group * types + kind, factor)).collect())
    };
    let mut spread: Vec<Row> = Vec::new();
    for row in rows {
        let mut terms = std::collections::BTreeMap::new();
        for (variable, factor) in &row.terms {
            let parts = counted(*variable, *factor).unwrap_or_else(|| vec![(*variable, *factor)]);
            for (variable, factor) in parts {
                *terms.entry(variable).or_insert(0) += factor;
            }
        }
        let terms = terms.into_iter().filter(|(_, factor)| *factor != 0).collect();
        spread.push(Row { terms, relation: row.relation, amount: row.amount });
    }
    for variable in links {
        let terms = counted(variable, -1).expect("only counts are listed");
        spread.push(Row { terms, relation: crate::model::Relation::AtLeast, amount: -model.bounds[variable].1 });
    }
    if !tighten(&mut bounds, &spread) {
        return false;
    }
    for (group, described) in model.groups.iter_mut().enumerate() {
        for (kind, most) in described.most.iter_mut().enumerate() {
            *most = (*most).min(bounds[first + group * types + kind].1);
        }
    }
    true
}

/// Carries bounds of counts over to single nodes and back, and drops filters that always hold.
fn settle(model: &mut Model) {
    let nothing = vec![0_i64; model.types()];
    for group in &mut model.groups {
        for (most, (_, high)) in group.most.iter_mut().zip(&model.bounds) {
            *most = (*most).min(*high).max(0);
        }
        let most = &group.most;
        group.filters.retain(|filter| !filters::surely(filter.range(&nothing, most)));
    }
    for variable in 0..model.bounds.len() {
        if let Some(measure) = &model.measures[variable] {
            let high: i128 = model
                .groups
                .iter()
                .enumerate()
                .map(|(position, group)| i128::from(measure.range(position, group).1) * i128::from(group.number()))
                .sum();
            let bounds = &mut model.bounds[variable];
            bounds.1 = bounds.1.min(i64::try_from(high).unwrap_or(i64::MAX).max(bounds.0));
        }
    }
}
