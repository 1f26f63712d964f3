//! From one expansion to another in steps, so that only a few components of a group are out at once.
//!
//! Additions are in the first step, removals in the last. In between, components are replaced a few at a time,
//! providers before their clients. Each step is an expansion of its own: an interrupted one continues from there. A
//! component that is not started at the beginning is out already: it is replaced before others of its group are, and if
//! it is not to be replaced, it counts among those that may be out.

use crate::{
    difference::{Difference, How},
    expansion::{Expansion, Key},
};
use protocol::Name;
use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
};

/// Too many components of a group are out already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} {} not started, so {next} cannot be replaced with at most {out_max} of {group} out at once (repair {} first, pass a larger --rolling, or omit it)",
    listed(.out),
    if .out.len() == 1 { "is" } else { "are" },
    if .out.len() == 1 { "it" } else { "them" }
)]
pub struct OutAlready {
    /// The group.
    pub group: Name,
    /// Those of it that are not started and not to be replaced.
    pub out: Vec<Key>,
    /// The first that would be replaced.
    pub next: Key,
    /// How many may be out.
    pub out_max: NonZeroUsize,
}

fn listed(keys: &[Key]) -> String {
    keys.iter().map(Key::to_string).collect::<Vec<_>>().join(", ")
}

/// The steps from one expansion to another, each of which replaces components of one group, so that at most this many
/// of it are out. Some may be out already. The last step is the target.
pub fn rolling(
    before: &Expansion,
    after: &Expansion,
    out_max: NonZeroUsize,
    out: &BTreeSet<Key>,
) -> Result<Vec<Expansion>, OutAlready> {
    let difference = Difference::between(before, after);
    let mut replaced: BTreeMap<&Name, Vec<&Key>> = BTreeMap::new();
    for (key, how) in &difference.components {
        if matches!(how, How::Replaced(_)) {
            replaced.entry(&key.group).or_default().push(key);
        }
    }
    let mut waiting: Vec<Vec<&Key>> = Vec::new();
    for group in providers_first(after, replaced.keys().copied()) {
        let all = &replaced[group];
        let stay_out = out.iter().filter(|it| it.group == *group && after.components.contains_key(it));
        let stay_out: Vec<&Key> = stay_out.filter(|it| !all.contains(it)).collect();
        let (first, others): (Vec<&Key>, Vec<&Key>) = all.iter().partition(|it| out.contains(it));
        let at_once = out_max.get().saturating_sub(stay_out.len());
        match others.first() {
            Some(next) if at_once == 0 => {
                let out = stay_out.into_iter().cloned().collect();
                return Err(OutAlready { group: group.clone(), out, next: (*next).clone(), out_max });
            }
            _ => {}
        }
        for keys in [first, others] {
            waiting.extend(keys.chunks(at_once.max(1)).map(<[&Key]>::to_vec));
        }
    }
    let mut steps: Vec<Expansion> = Vec::new();
    let mut last = before.clone();
    // First only what is new, then one batch after the other.
    for done in 0..=waiting.len() {
        let left: BTreeSet<&Key> = waiting[done..].iter().flatten().copied().collect();
        let step = between(before, after, &left);
        if !Difference::between(&last, &step).is_empty() {
            steps.push(step.clone());
            last = step;
        }
    }
    if !Difference::between(&last, after).is_empty() || steps.is_empty() {
        steps.push(after.clone());
    }
    // The last step is exactly what was wanted, also in what makes no difference.
    if let Some(end) = steps.last_mut() {
        *end = after.clone();
    }
    Ok(steps)
}

/// The target, except for components that still have their old definition and for removals.
fn between(before: &Expansion, after: &Expansion, left: &BTreeSet<&Key>) -> Expansion {
    let mut step = after.clone();
    for (key, component) in &before.components {
        if left.contains(key) || !after.components.contains_key(key) {
            step.components.insert(key.clone(), component.clone());
            step.older.extend(before.definition_of(key).map(|it| (key.clone(), it.clone())));
            step.vms.extend(before.vms.get(&component.vm).map(|vm| (component.vm.clone(), vm.clone())));
        }
    }
    for (key, vm) in &before.vms {
        step.vms.entry(key.clone()).or_insert_with(|| vm.clone());
    }
    step
}

/// Groups, each after those that its components use.
fn providers_first<'a>(expansion: &Expansion, groups: impl Iterator<Item = &'a Name>) -> Vec<&'a Name> {
    let mut left: Vec<&Name> = groups.collect();
    let mut uses: BTreeMap<&Name, BTreeSet<&Name>> = BTreeMap::new();
    for (key, component) in &expansion.components {
        let providers = component.bound.values().flatten().filter(|it| it.application.is_none());
        uses.entry(&key.group).or_default().extend(providers.map(|it| &it.key.group));
    }
    let mut sorted = Vec::new();
    while !left.is_empty() {
        let waits = |group: &Name| {
            uses.get(group).is_some_and(|it| it.iter().any(|used| *used != group && left.contains(used)))
        };
        // Those that use each other in a circle come in order of names.
        let next = left.iter().position(|group| !waits(group)).unwrap_or(0);
        sorted.push(left.remove(next));
    }
    sorted
}
