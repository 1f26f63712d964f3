//! Splits a free node with room for everything into independent slots.
//!
//! If a node costs nothing, no filter binds it, and all instances that could ever be placed on it fit there together, then
//! the numbers of its types do not depend on each other. A column for each combination would be a product over types;
//! instead each type gets a group of slots that hold one instance each, a sum. Today's instances get slots of their own, in
//! which an instance counts as one that stays.

use super::{Reduced, filters};
use crate::model::columns::Column;
use crate::model::{Group, Measure, Model};
use std::collections::BTreeSet;

/// A group is split into at most this many slots.
const SLOTS_MAX: i64 = 1_000_000;

/// The model with each roomy group split.
pub(super) fn split(model: Model) -> Reduced {
    let chosen: BTreeSet<usize> = (0..model.groups.len()).filter(|group| is_roomy(&model, *group)).collect();
    let mut groups = Vec::new();
    let mut origins = Vec::new();
    for (position, group) in model.groups.iter().enumerate() {
        let parts = if chosen.contains(&position) { slots(&model, group) } else { vec![group.clone()] };
        origins.extend(parts.iter().map(|_| position));
        groups.extend(parts);
    }
    let moved = |included: &[bool]| origins.iter().map(|origin| included[*origin]).collect::<Vec<bool>>();
    let measures = model.measures.iter().map(|measure| match measure {
        Some(Measure::Count { kind, groups }) => Some(Measure::Count { kind: *kind, groups: moved(groups) }),
        Some(Measure::Local { number, groups }) => {
            let mut included = moved(groups);
            // Nothing on a split node adds to such a measure.
            for (included, origin) in included.iter_mut().zip(&origins) {
                *included &= !chosen.contains(origin);
            }
            Some(Measure::Local { number: number.clone(), groups: included })
        }
        Some(Measure::Cost | Measure::Inhabited { .. } | Measure::Kept { .. }) | None => measure.clone(),
    });
    let measures = measures.collect();
    Reduced { model: Model { groups, measures, ..model }, origins, split: chosen }
}

/// Whether the numbers of the types on a group's nodes do not depend on each other.
pub(super) fn is_roomy(model: &Model, position: usize) -> bool {
    let group = &model.groups[position];
    let some = group.most.iter().filter(|most| **most > 0).count() > 1;
    let slots = group.most.iter().fold(0_i64, |sum, most| sum.saturating_add(most.saturating_mul(group.number())));
    let fits = group.room.iter().enumerate().all(|(resource, room)| {
        let sizes = group.most.iter().zip(&model.sizes);
        let used: i128 = sizes.map(|(most, size)| i128::from(*most) * i128::from(size[resource])).sum();
        used <= i128::from(*room)
    });
    let nothing = vec![0_i64; model.types()];
    let free = model.measures.iter().flatten().all(|measure| match measure {
        Measure::Count { .. } => true,
        Measure::Cost => group.cost == 0,
        Measure::Inhabited { group } => *group != position,
        Measure::Kept { kind } => group.number() == 1 || group.today[*kind] == 0,
        Measure::Local { number, groups } => !groups[position] || number.range(&nothing, &group.most) == (0, 0),
    });
    let open = group.filters.iter().all(|filter| filters::surely(filter.range(&nothing, &group.most)));
    some && slots <= SLOTS_MAX && fits && free && open
}

/// Groups of slots for one instance each, one group for each type (two where some of it is there today).
fn slots(model: &Model, group: &Group) -> Vec<Group> {
    let kept = |kind: usize| model.measures.contains(&Some(Measure::Kept { kind }));
    let mut slots = Vec::new();
    for (kind, most) in group.most.iter().enumerate().filter(|(_, most)| **most > 0) {
        let today = if kept(kind) { group.today[kind].min(*most) } else { 0 };
        for (number, here) in [(today, 1), (most * group.number() - today, 0)] {
            if number == 0 {
                continue;
            }
            let single = |amount: i64| {
                let mut counts = vec![0; model.types()];
                counts[kind] = amount;
                counts
            };
            slots.push(Group {
                class: group.class,
                members: (0..number).collect(),
                room: model.sizes[kind].clone(),
                cost: 0,
                today: single(here),
                most: single(1),
                filters: Vec::new(),
                cases: Vec::new(),
            });
        }
    }
    slots
}

/// The columns of an original group that hold these instances: nodes are filled one after the other.
pub(super) fn joined(original: &Model, group: usize, counts: Vec<i64>) -> Vec<(Column, i64)> {
    let described = &original.groups[group];
    let mut left = counts;
    let mut joined: Vec<(Column, i64)> = Vec::new();
    for _ in 0..described.number() {
        let here: Vec<i64> = left.iter().zip(&described.most).map(|(left, most)| *left.min(most)).collect();
        left.iter_mut().zip(&here).for_each(|(left, here)| *left -= here);
        match joined.last_mut() {
            Some((column, number)) if column.counts == here => *number += 1,
            _ => joined.push((original.column(group, here), 1)),
        }
    }
    joined
}
