//! How many instances of a type can be of use.
//!
//! The argument: take a best placement with more instances of a type than the number computed here, and remove one of
//! them. Nothing breaks and no goal becomes worse, so the smaller placement is a best one, too; repeat until no type has
//! more instances than its number. An instance can be removed if
//!
//! - its node passes the filters without it ([`super::filters`]),
//! - every row still holds. A row that asks for instances *protects* as many of them as can be needed to satisfy it;
//! - no goal rises. Goals that count what stays protect today's instances;
//! - its clients find other providers. Instances of a type are interchangeable for wiring, so only numbers matter
//!   here ([`needed`]).
//!
//! A client that disappears never hurts, and neither does the end of a conflict. The numbers of clients are taken from the
//! bounds, so the result of one round sharpens the next one.

use super::filters::{Trend, passes_without, trend};
use crate::model::{Measure, Model, Relation};
use std::collections::{BTreeMap, BTreeSet};

/// What keeps instances of one type in place, apart from clients.
#[derive(Clone, Default)]
struct Protection {
    /// Groups in which no instance can be removed.
    groups: BTreeSet<usize>,
    /// Instances that rows over all groups may need: each row by itself.
    anywhere: i128,
    /// Instances that rows over some groups, and goals about today, may need: all of them together.
    somewhere: i128,
}

/// Lowers the upper bound of each type to the number of instances that can be of use.
pub(super) fn limit(model: &mut Model) {
    for (kind, useful) in useful(model).into_iter().enumerate() {
        let (low, high) = model.bounds[kind];
        model.bounds[kind].1 = high.min(useful.map_or(high, |useful| useful.max(low)));
    }
}

/// How many instances of each type can be of use; `None` if there is no such number.
pub(super) fn useful(model: &Model) -> Vec<Option<i64>> {
    let protections = protections(model);
    let all = protections.iter().enumerate().map(|(kind, protection)| {
        let held: i128 = protection
            .groups
            .iter()
            .map(|group| &model.groups[*group])
            .map(|group| i128::from(group.most[kind]) * i128::from(group.number()))
            .sum();
        let needed = i128::from(needed(model, kind)?);
        let useful = needed.max(protection.anywhere).max(protection.somewhere.saturating_add(held));
        i64::try_from(useful).ok()
    });
    all.collect()
}

/// The most instances of a type that its clients can need; `None` if there is no such number.
///
/// With `n` instances, each client takes at most `arity` distinct ones of them on a port. Where capacity is unlimited, a client of
/// a removed instance finds another one as long as there are `arity` others. Where it is limited, all bindings can be
/// dealt out in turn: each instance then serves at most ⌈bindings / n⌉ clients, and a client with at most `n` bindings
/// never meets the same instance twice.
fn needed(model: &Model, kind: usize) -> Option<i64> {
    let interfaces = &model.interfaces;
    let mut needed = 0_i64;
    for stock in interfaces.stocks.iter().filter(|stock| stock.kind == kind) {
        let mut arity = 0_i64;
        let mut bindings = 0_i64;
        for need in interfaces.needs.iter().filter(|need| stock.ports.contains(&need.port)) {
            let clients = model.bounds[need.kind].1;
            if clients <= 0 {
                continue;
            }
            let own = need.kind == kind;
            if own && stock.capacity.is_some() {
                // Its clients are as many as its providers, whatever their number.
                return None;
            }
            // An instance cannot serve itself.
            arity = arity.max(need.number + i64::from(own));
            bindings = bindings.saturating_add(need.number.saturating_mul(clients));
        }
        let enough = match stock.capacity {
            None => arity,
            Some(0) => 0,
            Some(capacity) => arity.max(bindings / capacity + i64::from(bindings % capacity > 0)),
        };
        needed = needed.max(enough);
    }
    Some(needed)
}

/// What rows, goals and filters hold in place, for each type.
fn protections(model: &Model) -> Vec<Protection> {
    let mut all = vec![Protection::default(); model.types()];
    for row in &model.rows {
        protect_by_row(model, &row.terms, row.amount, &mut all);
        if row.relation == Relation::Equal {
            let negated: Vec<(usize, i64)> = row.terms.iter().map(|(it, factor)| (*it, -factor)).collect();
            protect_by_row(model, &negated, -row.amount, &mut all);
        }
    }
    for goal in &model.goals {
        let terms = goal.terms.iter().map(|(variable, factor)| (*variable, i64::try_from(*factor).unwrap_or(i64::MAX)));
        protect_by_goal(model, &terms.collect::<Vec<_>>(), &mut all);
    }
    for (position, group) in model.groups.iter().enumerate() {
        for (kind, protection) in all.iter_mut().enumerate().filter(|(kind, _)| group.most[*kind] > 0) {
            if !group.filters.iter().all(|filter| passes_without(filter, kind, &group.most)) {
                protection.groups.insert(position);
            }
        }
    }
    all
}

/// What one instance of each type adds to a sum of variables on each group, for measures that count.
pub(super) fn counted(model: &Model, terms: &[(usize, i64)]) -> BTreeMap<usize, BTreeMap<usize, i128>> {
    let mut counted: BTreeMap<usize, BTreeMap<usize, i128>> = BTreeMap::new();
    for (variable, factor) in terms {
        if let Some(Measure::Count { kind, groups }) = &model.measures[*variable] {
            let parts = counted.entry(*kind).or_default();
            for (position, group) in model.groups.iter().enumerate() {
                if group.most[*kind] > 0 {
                    *parts.entry(position).or_insert(0) += if groups[position] { i128::from(*factor) } else { 0 };
                }
            }
        }
    }
    counted
}

/// The row `Σ terms ≥ amount`.
fn protect_by_row(model: &Model, terms: &[(usize, i64)], amount: i64, all: &mut [Protection]) {
    let least = |skipped: usize| -> i128 {
        let others = terms.iter().filter(|(variable, _)| {
            !matches!(&model.measures[*variable], Some(Measure::Count { kind, .. }) if *kind == skipped)
        });
        let ends = others.map(|(variable, factor)| {
            let (low, high) = model.bounds[*variable];
            (i128::from(*factor) * i128::from(low)).min(i128::from(*factor) * i128::from(high))
        });
        ends.sum()
    };
    for (kind, parts) in counted(model, terms) {
        let raising: Vec<(usize, i128)> =
            parts.iter().map(|(group, part)| (*group, *part)).filter(|(_, part)| *part > 0).collect();
        let (Some(smallest), Some(largest)) =
            (raising.iter().map(|(_, part)| *part).min(), raising.iter().map(|(_, part)| *part).max())
        else {
            continue;
        };
        if parts.values().any(|part| *part < 0) {
            all[kind].groups.extend(raising.iter().map(|(group, _)| *group));
            continue;
        }
        // If removing one breaks the row, its sum was below amount + largest; so many instances there are at most.
        let below = i128::from(amount) - least(kind) + largest;
        let number = (below + smallest - 1).div_euclid(smallest) - 1;
        if raising.len() == parts.len() {
            all[kind].anywhere = all[kind].anywhere.max(number);
        } else {
            all[kind].somewhere = all[kind].somewhere.saturating_add(number.max(0));
        }
    }
    protect_by_other_measures(model, terms, 1, all);
}

/// A goal, which must not rise.
fn protect_by_goal(model: &Model, terms: &[(usize, i64)], all: &mut [Protection]) {
    for (kind, parts) in counted(model, terms) {
        let falling = parts.iter().filter(|(_, part)| **part < 0).map(|(group, _)| *group);
        all[kind].groups.extend(falling);
    }
    protect_by_other_measures(model, terms, -1, all);
}

/// Measures that are not counts: `sign · Σ terms` must not fall.
fn protect_by_other_measures(model: &Model, terms: &[(usize, i64)], sign: i64, all: &mut [Protection]) {
    for (variable, factor) in terms {
        let factor = factor.saturating_mul(sign);
        match &model.measures[*variable] {
            None | Some(Measure::Count { .. }) => {}
            // Removing an instance lowers the cost or leaves it.
            Some(Measure::Cost | Measure::Inhabited { .. }) if factor <= 0 => {}
            Some(Measure::Cost | Measure::Inhabited { .. }) => {
                all.iter_mut().for_each(|protection| protection.groups.extend(0..model.groups.len()));
            }
            Some(Measure::Kept { .. }) if factor <= 0 => {}
            Some(Measure::Kept { kind }) => {
                let today: i128 =
                    model.groups.iter().map(|group| i128::from(group.today[*kind]) * i128::from(group.number())).sum();
                all[*kind].somewhere = all[*kind].somewhere.saturating_add(today);
            }
            Some(Measure::Local { number, groups }) => {
                for (kind, protection) in all.iter_mut().enumerate() {
                    let good = match trend(number, kind) {
                        Trend::Constant => true,
                        Trend::Rising => factor <= 0,
                        Trend::Falling => factor >= 0,
                        Trend::Unknown => false,
                    };
                    if !good {
                        let included = groups.iter().enumerate().filter(|(_, included)| **included);
                        protection.groups.extend(included.map(|(group, _)| group));
                    }
                }
            }
        }
    }
}
