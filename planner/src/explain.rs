//! Why there is no placement: a smallest set of demands that cannot hold together, in the user's words.
//!
//! Everything that restricts a placement is a cause: parts of the wish, requirements, capacities, conflicts, numbers of
//! nodes. Causes are dropped one at a time; one without which a placement exists is kept. What is left cannot be made
//! smaller by dropping anything from it.

use crate::model::interfaces::Interfaces;
use crate::model::{Model, Selection};
use crate::problem::{AMOUNT_MAX, Problem};
use crate::solve::engine::Engine;
use crate::solve::watch::Watch;
use crate::solve::{Answer, solve};

/// Something that restricts placements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Capacity(usize),
    Conflict(usize),
    Need(usize),
    Demand(usize),
    Number(usize),
}

/// A set of causes that contradict each other, as sentences. May be larger than necessary if the caller stops early.
pub(crate) fn contradiction(problem: &Problem, engine: &mut dyn Engine, watch: &mut Watch<'_>) -> Vec<String> {
    let mut selection = Selection::everything(problem);
    let interfaces = Interfaces::new(problem);
    // What is dropped first is least likely to be named: what the user wrote comes late, the machines last.
    let mut causes: Vec<Cause> = Vec::new();
    causes.extend(
        (0..interfaces.stocks.len()).filter(|stock| interfaces.stocks[*stock].capacity.is_some()).map(Cause::Capacity),
    );
    causes.extend((0..interfaces.conflicts.len()).map(Cause::Conflict));
    causes.extend((0..interfaces.needs.len()).map(Cause::Need));
    causes.extend((0..problem.wish.demands.len()).map(Cause::Demand));
    causes.extend((0..problem.classes.len()).map(Cause::Number));
    let mut kept = Vec::new();
    drop_all(problem, &causes, &mut selection, &mut kept, engine, watch);
    kept.sort_by_key(|cause| cause.rank());
    let mut sentences: Vec<String> = kept.iter().map(|cause| cause.sentence(problem, &interfaces)).collect();
    if !kept.iter().any(|cause| matches!(cause, Cause::Number(_))) {
        sentences.extend(homeless(problem, &kept, &interfaces));
    }
    sentences
}

/// Types that have a part in the contradiction and fit on no node at all.
fn homeless(problem: &Problem, kept: &[Cause], interfaces: &Interfaces) -> Vec<String> {
    let mut sentences = Vec::new();
    for (position, kind) in problem.types.iter().enumerate() {
        let fits = problem.classes.iter().any(|class| {
            class.number > 0
                && kind
                    .resources
                    .iter()
                    .all(|(name, amount)| *amount <= class.resources.get(name).copied().unwrap_or(0))
        });
        let part = kept.iter().any(|cause| match cause {
            Cause::Demand(demand) => problem.wish.demands[*demand].text.contains(&kind.name),
            Cause::Need(need) => {
                let need = &interfaces.needs[*need];
                need.kind == position || kind.provision_of(&need.port).is_some()
            }
            Cause::Capacity(_) | Cause::Conflict(_) | Cause::Number(_) => false,
        });
        if part && !fits {
            let amounts: Vec<String> = kind.resources.iter().map(|(name, amount)| format!("{name} {amount}")).collect();
            sentences.push(format!("no location has room for one {}, which uses {}", kind.name, amounts.join(", ")));
        }
    }
    sentences
}

/// Drops as many of `causes` as possible. Halves are tried first, as most causes usually have no part in it.
fn drop_all(
    problem: &Problem,
    causes: &[Cause],
    selection: &mut Selection,
    kept: &mut Vec<Cause>,
    engine: &mut dyn Engine,
    watch: &mut Watch<'_>,
) {
    if causes.is_empty() {
        return;
    }
    causes.iter().for_each(|cause| cause.select(selection, false));
    if impossible(problem, selection, engine, watch) {
        return;
    }
    causes.iter().for_each(|cause| cause.select(selection, true));
    if let [only] = causes {
        kept.push(*only);
        return;
    }
    let (first, second) = causes.split_at(causes.len() / 2);
    drop_all(problem, first, selection, kept, engine, watch);
    drop_all(problem, second, selection, kept, engine, watch);
}

fn impossible(problem: &Problem, selection: &Selection, engine: &mut dyn Engine, watch: &mut Watch<'_>) -> bool {
    let Ok(mut model) = Model::new(problem, selection) else { return false };
    model.goals.clear();
    matches!(solve(&model, engine, watch), Answer::Infeasible)
}

impl Cause {
    fn select(self, selection: &mut Selection, chosen: bool) {
        match self {
            Self::Capacity(position) => selection.capacities[position] = chosen,
            Self::Conflict(position) => selection.conflicts[position] = chosen,
            Self::Need(position) => selection.needs[position] = chosen,
            Self::Demand(position) => selection.demands[position] = chosen,
            Self::Number(position) => selection.numbers[position] = chosen,
        }
    }

    /// What the user wrote comes first in the answer.
    fn rank(self) -> (usize, usize) {
        match self {
            Self::Demand(position) => (0, position),
            Self::Need(position) => (1, position),
            Self::Capacity(position) => (2, position),
            Self::Conflict(position) => (3, position),
            Self::Number(position) => (4, position),
        }
    }

    fn sentence(self, problem: &Problem, interfaces: &Interfaces) -> String {
        let name = |kind: usize| problem.types[kind].name.as_str();
        match self {
            Self::Demand(position) => problem.wish.demands[position].text.clone(),
            Self::Need(position) => {
                let need = &interfaces.needs[position];
                let others = if need.number == 1 {
                    "a provider".to_owned()
                } else {
                    format!("{} different providers", need.number)
                };
                format!("each {} requires {others} of {}", name(need.kind), need.port)
            }
            Self::Capacity(position) => {
                let stock = &interfaces.stocks[position];
                let ports: Vec<&str> = stock.ports.iter().map(String::as_str).collect();
                let clients = match stock.capacity.unwrap_or(0) {
                    1 => "1 client".to_owned(),
                    number => format!("{number} clients"),
                };
                format!("each {} provides {} to at most {clients}", name(stock.kind), ports.join(", "))
            }
            Self::Conflict(position) => {
                let conflict = &interfaces.conflicts[position];
                if conflict.kind == conflict.other {
                    format!(
                        "there can be only one {}: it conflicts with other providers of {}",
                        name(conflict.kind),
                        conflict.port
                    )
                } else {
                    format!(
                        "{} conflicts with {}, which {} provides",
                        name(conflict.kind),
                        conflict.port,
                        name(conflict.other)
                    )
                }
            }
            Self::Number(position) => {
                let class = &problem.classes[position];
                // As much as can be is no limit.
                let limited = class.resources.iter().filter(|(_, amount)| **amount < AMOUNT_MAX);
                let amounts: Vec<String> = limited.map(|(name, amount)| format!("{name} {amount}")).collect();
                let with = if amounts.is_empty() { String::new() } else { format!(" with {}", amounts.join(", ")) };
                let are = if class.number == 1 { "is" } else { "are" };
                format!("there {are} {} {}{with}", class.number, class.name)
            }
        }
    }
}
