//! The best answer to a small problem by trying every placement. It shares no code with the solver.

use std::collections::BTreeMap;

use planner::configuration::{Component, ComponentName, Configuration, Node};
use planner::problem::Problem;
use planner::verify::{goal_values, unmet_demands};

/// The best objective values over all placements that can be wired.
pub(crate) fn best_by_trying(problem: &Problem) -> Option<Vec<i128>> {
    let mut nodes = Vec::new();
    for (class, described) in problem.classes.iter().enumerate() {
        let contents = fitting(problem, class, problem.types.len());
        nodes.extend((0..described.number).map(|index| (Node { class, index }, contents.clone())));
    }
    let mut best = None;
    let mut chosen = Vec::new();
    try_all(problem, &nodes, &mut chosen, &mut best);
    best
}

/// All multisets of the first `kinds` types that fit on a node of the class.
fn fitting(problem: &Problem, class: usize, kinds: usize) -> Vec<Vec<i64>> {
    if kinds == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for smaller in fitting(problem, class, kinds - 1) {
        for count in 0.. {
            let mut counts = smaller.clone();
            counts.push(count);
            let fits = problem.classes[class].resources.iter().all(|(name, room)| {
                let used: i64 = counts.iter().zip(&problem.types).map(|(n, kind)| n * kind.resources[name]).sum();
                used <= *room
            });
            if !fits {
                break;
            }
            all.push(counts);
        }
    }
    all
}

fn try_all(
    problem: &Problem,
    nodes: &[(Node, Vec<Vec<i64>>)],
    chosen: &mut Vec<(Node, Vec<i64>)>,
    best: &mut Option<Vec<i128>>,
) {
    if let Some((node, contents)) = nodes.get(chosen.len()) {
        for counts in contents {
            chosen.push((*node, counts.clone()));
            try_all(problem, nodes, chosen, best);
            chosen.pop();
        }
        return;
    }
    let mut configuration = Configuration::default();
    for (node, counts) in chosen.iter() {
        for (kind, count) in counts.iter().enumerate() {
            for number in 0..*count {
                let name = ComponentName(format!("{kind}-{}-{}-{number}", node.class, node.index));
                configuration.components.insert(name, Component { kind, node: *node });
            }
        }
    }
    if !unmet_demands(problem, &configuration).is_empty() {
        return;
    }
    let values = goal_values(problem, &configuration);
    if best.as_ref().is_none_or(|best| values < *best)
        && harmonious(problem, &configuration)
        && wirable(problem, &configuration)
    {
        *best = Some(values);
    }
}

/// Whether no component conflicts with what another one provides.
fn harmonious(problem: &Problem, configuration: &Configuration) -> bool {
    configuration.components.iter().all(|(name, component)| {
        problem.types[component.kind].conflicts.iter().all(|port| {
            configuration
                .components
                .iter()
                .all(|(other, provider)| other == name || problem.types[provider.kind].provision_of(port).is_none())
        })
    })
}

/// Whether every client finds enough distinct providers: unit by unit, moving others where that helps.
fn wirable(problem: &Problem, configuration: &Configuration) -> bool {
    let mut shelves: Vec<(&ComponentName, usize, Option<i64>)> = Vec::new();
    let mut seats: Vec<(&ComponentName, &str, i64)> = Vec::new();
    for (name, component) in &configuration.components {
        let kind = &problem.types[component.kind];
        shelves.extend(kind.provides.iter().enumerate().map(|(stock, offer)| (name, stock, offer.capacity)));
        seats.extend(kind.requires().map(|(port, number)| (name, port, number)));
    }
    let offers = |seat: usize, shelf: usize| {
        let (client, port, _) = seats[seat];
        let (provider, stock, _) = shelves[shelf];
        let kind = &problem.types[configuration.components[provider].kind];
        client != provider && kind.provides[stock].ports.contains(port)
    };
    let mut used: BTreeMap<(usize, usize), bool> = BTreeMap::new();
    for (seat, (_, _, number)) in seats.iter().enumerate() {
        for _ in 0..*number {
            let mut seen = vec![false; shelves.len()];
            if !seat_one_more(seat, seats.len(), &shelves, &offers, &mut used, &mut seen) {
                return false;
            }
        }
    }
    true
}

fn seat_one_more(
    seat: usize,
    seats: usize,
    shelves: &[(&ComponentName, usize, Option<i64>)],
    offers: &dyn Fn(usize, usize) -> bool,
    used: &mut BTreeMap<(usize, usize), bool>,
    seen: &mut [bool],
) -> bool {
    for shelf in 0..shelves.len() {
        let taken = used.get(&(seat, shelf)).copied().unwrap_or(false);
        if taken || seen[shelf] || !offers(seat, shelf) {
            continue;
        }
        seen[shelf] = true;
        let load = i64::try_from((0..seats).filter(|other| used.get(&(*other, shelf)) == Some(&true)).count()).unwrap();
        if shelves[shelf].2.is_none_or(|capacity| load < capacity) {
            used.insert((seat, shelf), true);
            return true;
        }
        for other in 0..seats {
            if other != seat && used.get(&(other, shelf)) == Some(&true) {
                used.insert((other, shelf), false);
                if seat_one_more(other, seats, shelves, offers, used, seen) {
                    used.insert((seat, shelf), true);
                    return true;
                }
                used.insert((other, shelf), true);
            }
        }
    }
    false
}
