//! Which nodes are told apart: those that the requirements name, and those that host something today.

use std::collections::{BTreeMap, BTreeSet};

use super::simplify::{About, about, children};
use super::{Group, ModelError};
use crate::configuration::Node;
use crate::language::{Range, Spot, Term};
use crate::problem::{AMOUNT_MAX, NODES_MAX, Problem};

/// How many nodes can be told apart by a quantifier that compares them.
pub(super) const SINGLES_MAX: usize = 2_000;

/// With a limit on numbers lifted, a class has at least this many nodes more.
const NUMBER_LIFTED: i64 = 1_000;

/// How many instances of one type a node may host, at most.
const PER_NODE_MAX: i64 = 10_000;

/// The nodes that the requirements name individually.
pub(super) fn singled_out(terms: &[(&Term, &str)], problem: &Problem) -> Result<BTreeSet<Node>, ModelError> {
    let mut single = BTreeSet::new();
    for (term, text) in terms {
        single_out(term, problem, &mut single);
        if single.len() > SINGLES_MAX {
            return Err(ModelError::TooManyNodes((*text).to_owned()));
        }
    }
    Ok(single)
}

fn single_out(term: &Term, problem: &Problem, single: &mut BTreeSet<Node>) {
    match term {
        Term::Count { place: Some(Spot::Node(node)), .. } => {
            single.insert(*node);
        }
        Term::Quantified { slot, range: Range::Nodes(classes), body, .. } if about(body, *slot) == About::Both => {
            for class in classes {
                for index in 0..problem.classes[*class].number {
                    if single.len() > SINGLES_MAX {
                        return;
                    }
                    single.insert(Node { class: *class, index });
                }
            }
        }
        _ => {}
    }
    for child in children(term) {
        single_out(child, problem, single);
    }
}

/// Nodes in groups. A group of nodes that were singled out has one member.
pub(super) fn groups(problem: &Problem, lifted: &BTreeSet<usize>, single: &BTreeSet<Node>) -> Vec<Group> {
    let resources: Vec<&str> = problem.resources().into_iter().collect();
    let contents = problem.today.contents(problem.types.len());
    let numbers = all_numbers(problem);
    // A type that consumes nothing, or nothing that is limited, would fit without end.
    let weightless = numbers.clamp(1, PER_NODE_MAX);
    let mut groups = Vec::new();
    for (position, class) in problem.classes.iter().enumerate() {
        let room: Vec<i64> = resources.iter().map(|name| class.resources.get(*name).copied().unwrap_or(0)).collect();
        let most = problem.types.iter().map(|kind| {
            let fits = resources.iter().zip(&room).filter_map(|(name, available)| {
                let size = kind.resources.get(*name).copied().unwrap_or(0);
                // As much as can be is no limit.
                (size > 0 && *available < AMOUNT_MAX).then(|| available / size)
            });
            fits.min().unwrap_or(weightless).min(PER_NODE_MAX)
        });
        let most: Vec<i64> = most.collect();
        // Alike: the same contents today, and not singled out.
        let mut alike: BTreeMap<(Option<i64>, Vec<i64>), Vec<i64>> = BTreeMap::new();
        let enough = numbers.clamp(NUMBER_LIFTED, NODES_MAX);
        let number = if lifted.contains(&position) { class.number.saturating_add(enough) } else { class.number };
        for index in 0..number {
            let node = Node { class: position, index };
            let today = contents.get(&node).cloned().unwrap_or_default();
            let own = single.contains(&node).then_some(index);
            alike.entry((own, today)).or_default().push(index);
        }
        for ((_, today), members) in alike {
            let today = if today.is_empty() { vec![0; problem.types.len()] } else { today };
            let (room, most) = (room.clone(), most.clone());
            groups.push(Group {
                class: position,
                members,
                room,
                cost: class.cost,
                today,
                most,
                filters: Vec::new(),
                cases: Vec::new(),
            });
        }
    }
    groups
}

/// Nothing in the problem can need more instances than all its numbers together.
fn all_numbers(problem: &Problem) -> i64 {
    fn numbers(term: &Term) -> i64 {
        let own = if let Term::Integer(value) = term { value.saturating_abs() } else { 0 };
        children(term).into_iter().fold(own, |sum, child| sum.saturating_add(numbers(child)))
    }
    let asked =
        problem.requirements.demands.iter().fold(1_i64, |sum, demand| sum.saturating_add(numbers(&demand.term)));
    let required = problem.types.iter().flat_map(|kind| kind.requires().map(|(_, number)| number)).sum::<i64>();
    asked.saturating_add(required)
}
