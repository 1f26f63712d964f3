//! From uses of columns to components with names on nodes. Whatever can stay where it is, stays, under its name.

use std::collections::BTreeMap;

use crate::configuration::{Component, ComponentName, Configuration, Node};
use crate::model::Model;
use crate::problem::Problem;
use crate::solve::Uses;

/// The components of a placement; bindings are left to `wiring`.
pub(crate) fn placed(problem: &Problem, model: &Model, uses: &Uses) -> Configuration {
    let today = today_by_node(problem);
    let mut target = Configuration::default();
    let mut fresh: Vec<(Node, usize, i64)> = Vec::new();
    let mut next_member = vec![0_usize; model.groups.len()];
    // Full nodes first, so that the used ones have the lowest numbers.
    let mut ordered: Vec<_> = uses.iter().collect();
    ordered.sort_by_key(|(column, _)| (column.group, std::cmp::Reverse(column.counts.clone())));
    for (column, number) in ordered {
        let group = &model.groups[column.group];
        for _ in 0..*number {
            let index = group.members[next_member[column.group]];
            next_member[column.group] += 1;
            let node = Node { class: group.class, index };
            for (kind, count) in column.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let stay = today.get(&(node, kind)).map_or(&[][..], Vec::as_slice);
                let mut missing = *count;
                for name in stay.iter().take(usize::try_from(*count).expect("counts are not negative")) {
                    target.components.insert((*name).clone(), Component { kind, node });
                    missing -= 1;
                }
                if missing > 0 {
                    fresh.push((node, kind, missing));
                }
            }
        }
    }
    fresh.sort_unstable();
    name_fresh(problem, &fresh, &mut target);
    target
}

/// New components get names that nothing has today, so that old and new can exist side by side.
fn name_fresh(problem: &Problem, fresh: &[(Node, usize, i64)], target: &mut Configuration) {
    let mut numbers = vec![0_i64; problem.types.len()];
    for (node, kind, count) in fresh {
        for _ in 0..*count {
            let name = loop {
                let name = target.fresh_name(&problem.types[*kind].name, &mut numbers[*kind]);
                if !problem.today.components.contains_key(&name) {
                    break name;
                }
            };
            target.components.insert(name, Component { kind: *kind, node: *node });
        }
    }
}

/// Today's components by node and type; those that most others lean on come first, as they are best left alone.
fn today_by_node(problem: &Problem) -> BTreeMap<(Node, usize), Vec<&ComponentName>> {
    let mut clients: BTreeMap<&ComponentName, usize> = BTreeMap::new();
    for binding in &problem.today.bindings {
        let client = problem.today.components.get(&binding.client);
        let strong = client.is_some_and(|client| problem.types[client.kind].strong.contains_key(&binding.port));
        *clients.entry(&binding.provider).or_insert(0) += if strong { 1_000 } else { 1 };
    }
    let mut today: BTreeMap<(Node, usize), Vec<&ComponentName>> = BTreeMap::new();
    for (name, component) in &problem.today.components {
        today.entry((component.node, component.kind)).or_default().push(name);
    }
    for names in today.values_mut() {
        names.sort_by_key(|name| (std::cmp::Reverse(clients.get(*name).copied().unwrap_or(0)), *name));
    }
    today
}
