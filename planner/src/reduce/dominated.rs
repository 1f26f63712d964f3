//! Leaves out types that another type can always replace.
//!
//! Type A is dominated by type B if each instance of A can become an instance of B, on the same node or on a free node
//! with room for all of B, and nothing breaks or becomes worse: B provides at least what A provides, requires and conflicts
//! with no more, and counts the same in every row and goal. What is superfluous then is removed as
//! [`super::surplus`] argues, so the bounds of B need not be raised.

use super::filters::{Trend, passes_without, trend};
use super::surplus::{counted, useful};
use super::{Model, roomy};
use crate::model::{Measure, Relation};

/// Types are compared in pairs, up to this many types.
const TYPES_MAX: usize = 400;

/// Sets the number of each dominated type to 0.
pub(super) fn drop(model: &mut Model) {
    if model.types() > TYPES_MAX {
        return;
    }
    let useful = useful(model);
    // The replacement may have more instances at first. It must be surplus, not a lack of room, that limits it.
    let open: Vec<bool> = (0..model.types())
        .map(|kind| useful[kind].is_some_and(|useful| (1..=model.bounds[kind].1).contains(&useful)))
        .collect();
    let free: Vec<usize> = (0..model.groups.len()).filter(|group| roomy::is_roomy(model, *group)).collect();
    for kind in 0..model.types() {
        let (low, high) = model.bounds[kind];
        if low > 0 || high == 0 {
            continue;
        }
        let better = (0..model.types()).find(|other| {
            let known = *other != kind && open[*other] && model.bounds[*other].1 > 0;
            known && replaces(model, *other, kind, useful[*other].unwrap_or(i64::MAX), &free)
        });
        if better.is_some() {
            model.bounds[kind].1 = 0;
            model.groups.iter_mut().for_each(|group| group.most[kind] = 0);
        }
    }
}

/// Whether every instance of `worse` can become one of `better`, of which `useful` ones can be of use.
fn replaces(model: &Model, better: usize, worse: usize, useful: i64, free: &[usize]) -> bool {
    let conflicts = &model.interfaces.conflicts;
    provides_as_much(model, better, worse)
        && requires_no_more(model, better, worse)
        && !conflicts.iter().any(|conflict| conflict.kind == better || conflict.other == better)
        && !is_kept(model, worse)
        && (on_the_same_node(model, better, worse)
            || free.iter().any(|group| on_a_free_node(model, better, worse, useful, *group)))
}

fn provides_as_much(model: &Model, better: usize, worse: usize) -> bool {
    let stocks = |kind: usize| model.interfaces.stocks.iter().filter(move |stock| stock.kind == kind);
    let mut used = Vec::new();
    stocks(worse).all(|stock| {
        let found = stocks(better).enumerate().position(|(position, other)| {
            !used.contains(&position)
                && stock.ports.is_subset(&other.ports)
                && match (stock.capacity, other.capacity) {
                    (_, None) => true,
                    (None, Some(_)) => false,
                    (Some(needed), Some(given)) => needed <= given,
                }
        });
        used.extend(found);
        found.is_some()
    })
}

fn requires_no_more(model: &Model, better: usize, worse: usize) -> bool {
    let needs = |kind: usize| model.interfaces.needs.iter().filter(move |need| need.kind == kind);
    needs(better).all(|need| needs(worse).any(|other| other.port == need.port && other.number >= need.number))
}

/// Whether a goal counts which of today's instances stay, and there are some.
fn is_kept(model: &Model, kind: usize) -> bool {
    model.measures.contains(&Some(Measure::Kept { kind })) && model.groups.iter().any(|group| group.today[kind] > 0)
}

fn on_the_same_node(model: &Model, better: usize, worse: usize) -> bool {
    let smaller = model.sizes[better].iter().zip(&model.sizes[worse]).all(|(better, worse)| better <= worse);
    let constant = |number| trend(number, better) == Trend::Constant && trend(number, worse) == Trend::Constant;
    let hosts = || (0..model.groups.len()).filter(|group| model.groups[*group].most[worse] > 0);
    let local = |group: usize| {
        model.groups[group].filters.iter().all(constant)
            && model.measures.iter().flatten().all(|measure| match measure {
                Measure::Local { number, groups } => !groups[group] || constant(number),
                Measure::Count { .. } | Measure::Cost | Measure::Inhabited { .. } | Measure::Kept { .. } => true,
            })
    };
    smaller
        && hosts().all(local)
        && counts_alike(model, better, worse, &hosts().map(|group| (group, group)).collect::<Vec<_>>())
}

/// Whether instances of `worse` can move to a group that is roomy, where they are of type `better`.
fn on_a_free_node(model: &Model, better: usize, worse: usize, useful: i64, free: usize) -> bool {
    let room = model.groups[free].most[better] >= useful;
    let hosts: Vec<usize> = (0..model.groups.len()).filter(|group| model.groups[*group].most[worse] > 0).collect();
    let leaves = hosts.iter().all(|group| {
        let described = &model.groups[*group];
        described.filters.iter().all(|filter| passes_without(filter, worse, &described.most))
            && model.measures.iter().flatten().all(|measure| match measure {
                Measure::Local { number, groups } => !groups[*group] || trend(number, worse) == Trend::Constant,
                Measure::Count { .. } | Measure::Cost | Measure::Inhabited { .. } | Measure::Kept { .. } => true,
            })
    });
    // Leaving a node may lower the cost; no row or goal may want it high.
    let is_cost = |variable: &usize| model.measures[*variable] == Some(Measure::Cost);
    let cheap = !model.rows.iter().any(|row| row.terms.iter().any(|(variable, _)| is_cost(variable)))
        && !model.goals.iter().any(|goal| goal.terms.iter().any(|(variable, factor)| *factor < 0 && is_cost(variable)));
    room && leaves
        && cheap
        && counts_alike(model, better, worse, &hosts.iter().map(|group| (*group, free)).collect::<Vec<_>>())
}

/// Whether no row and no goal loses by an instance of `worse` becoming one of `better`, on these pairs of groups.
fn counts_alike(model: &Model, better: usize, worse: usize, places: &[(usize, usize)]) -> bool {
    let change = |terms: &[(usize, i64)]| -> Vec<i128> {
        let counted = counted(model, terms);
        let part = |kind: usize, group: usize| counted.get(&kind).and_then(|parts| parts.get(&group)).copied();
        places.iter().map(|(from, to)| part(better, *to).unwrap_or(0) - part(worse, *from).unwrap_or(0)).collect()
    };
    model.rows.iter().all(|row| {
        let change = change(&row.terms);
        match row.relation {
            Relation::AtLeast => change.iter().all(|change| *change >= 0),
            Relation::Equal => change.iter().all(|change| *change == 0),
        }
    }) && model.goals.iter().all(|goal| {
        let terms = goal.terms.iter().map(|(variable, factor)| (*variable, i64::try_from(*factor).unwrap_or(i64::MAX)));
        change(&terms.collect::<Vec<_>>()).iter().all(|change| *change <= 0)
    })
}
