//! Why there is no placement: demands that cannot hold together, in the user's words, and the arithmetic behind it.
//!
//! Everything that restricts a placement is a cause: parts of the requirements, requirements, capacities, conflicts, numbers of
//! nodes. `smallest` finds causes that contradict each other, as few as possible; `arithmetic` looks for a sum that
//! shows why they do.

mod arithmetic;
mod claims;
mod hitting;
mod smallest;

use std::collections::BTreeSet;
use std::fmt;

use crate::model::interfaces::Interfaces;
use crate::model::{Model, Selection};
use crate::problem::{AMOUNT_MAX, NodeClass, Problem};
use crate::solve::engine::Engine;
use crate::solve::watch::Watch;
use smallest::Search;

/// Something that restricts placements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A part of the requirements, by its position there.
    Demand(usize),
    /// Components of a type require providers of an interface.
    Need { kind: usize, port: String },
    /// A stock of a type has places for so many clients only.
    Capacity { kind: usize, stock: usize },
    /// A type cannot live with providers of an interface, of which this other type is one.
    Conflict { kind: usize, other: usize, port: String },
    /// There are no more nodes of a class than it says.
    Number(usize),
}

/// Causes that cannot hold together, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contradiction {
    /// Without any one of them, the others could hold together; unless the search was stopped.
    pub causes: Vec<Cause>,
    /// The causes as sentences, in the same order.
    pub demands: Vec<String>,
    /// Classes whose number of nodes is taken for granted, as one of the demands speaks of every node of them.
    pub given: BTreeSet<usize>,
    /// Those classes as sentences.
    pub granted: Vec<String>,
    /// Sentences with the numbers that do not meet; none, if no simple sum shows it.
    pub because: Vec<String>,
    /// Proven: no fewer causes contradict each other.
    pub smallest: bool,
}

/// Finds causes that contradict each other. They may be more than necessary if the caller stops early.
pub(crate) fn contradiction(problem: &Problem, engine: &mut dyn Engine, watch: &mut Watch<'_>) -> Contradiction {
    let mut problem = problem.clone();
    problem.requirements.goals.clear();
    let interfaces = Interfaces::new(&problem);
    let (causes, smallest) = Search::new(&problem, all_causes(&problem, &interfaces), engine, watch).run();
    let mut causes: Vec<Cause> = causes.into_iter().collect();
    causes.sort();
    let demands = causes.iter().map(|cause| cause.sentence(&problem, &interfaces)).collect();
    let selection = selection(&problem, &interfaces, &causes);
    let (given, because) = match Model::new(&problem, &selection) {
        Ok(model) => {
            let because = arithmetic::reasons(&problem, &selection, &model);
            (model.given, because)
        }
        Err(_) => (BTreeSet::new(), Vec::new()),
    };
    let granted = given.iter().map(|class| problem.classes[*class].sentence()).collect();
    Contradiction { causes, demands, given, granted, because, smallest }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = match self.smallest {
            true => "a smallest set of demands that cannot hold together",
            false => "these cannot hold together",
        };
        writeln!(f, "{head}")?;
        for sentence in &self.demands {
            writeln!(f, "  - {sentence}")?;
        }
        for sentence in &self.granted {
            writeln!(f, "  given that {sentence}")?;
        }
        for (number, sentence) in self.because.iter().enumerate() {
            writeln!(f, "{} {sentence}", if number == 0 { "because" } else { "    and" })?;
        }
        Ok(())
    }
}

/// Sentences with numbers that show that there is no placement; none, if there is one or no simple sum tells.
pub fn shortfall(problem: &Problem) -> Vec<String> {
    let selection = Selection::everything(problem);
    Model::new(problem, &selection)
        .map_or_else(|_| Vec::new(), |model| arithmetic::reasons(problem, &selection, &model))
}

/// Every cause. What comes first is least likely to be named: what the user wrote comes late, the machines last.
fn all_causes(problem: &Problem, interfaces: &Interfaces) -> Vec<Cause> {
    let mut causes: Vec<Cause> = Vec::new();
    for (kind, described) in problem.types.iter().enumerate() {
        let limited = described.provides.iter().enumerate().filter(|(_, offer)| offer.capacity.is_some());
        causes.extend(limited.map(|(stock, _)| Cause::Capacity { kind, stock }));
    }
    causes.extend(interfaces.conflicts.iter().map(|conflict| Cause::Conflict {
        kind: conflict.kind,
        other: conflict.other,
        port: conflict.port.clone(),
    }));
    causes.extend(interfaces.needs.iter().map(|need| Cause::Need { kind: need.kind, port: need.port.clone() }));
    causes.extend((0..problem.requirements.demands.len()).map(Cause::Demand));
    causes.extend((0..problem.classes.len()).map(Cause::Number));
    causes
}

/// The problem with these causes and no others.
fn selection<'a>(problem: &Problem, interfaces: &Interfaces, causes: impl IntoIterator<Item = &'a Cause>) -> Selection {
    let mut selection = Selection {
        demands: vec![false; problem.requirements.demands.len()],
        needs: vec![false; interfaces.needs.len()],
        capacities: vec![false; interfaces.stocks.len()],
        conflicts: vec![false; interfaces.conflicts.len()],
        numbers: vec![false; problem.classes.len()],
    };
    for cause in causes {
        match cause {
            Cause::Demand(position) => selection.demands[*position] = true,
            Cause::Number(class) => selection.numbers[*class] = true,
            Cause::Need { kind, port } => {
                for (need, selected) in interfaces.needs.iter().zip(&mut selection.needs) {
                    *selected |= need.kind == *kind && need.port == *port;
                }
            }
            Cause::Capacity { kind, stock } => {
                // The stocks of all types are listed one type after the other.
                let before: usize = problem.types[..*kind].iter().map(|described| described.provides.len()).sum();
                selection.capacities[before + stock] = true;
            }
            Cause::Conflict { kind, other, port } => {
                for (conflict, selected) in interfaces.conflicts.iter().zip(&mut selection.conflicts) {
                    *selected |= conflict.kind == *kind && conflict.other == *other && conflict.port == *port;
                }
            }
        }
    }
    selection
}

impl Cause {
    fn sentence(&self, problem: &Problem, interfaces: &Interfaces) -> String {
        let name = |kind: usize| problem.types[kind].name.as_str();
        match self {
            Self::Demand(position) => problem.requirements.demands[*position].text.clone(),
            Self::Need { kind, port } => {
                let found = interfaces.needs.iter().find(|need| need.kind == *kind && need.port == *port);
                let others = match found.map_or(0, |need| need.number) {
                    1 => "a provider".to_owned(),
                    number => format!("{number} different providers"),
                };
                format!("each {} requires {others} of {port}", name(*kind))
            }
            Self::Capacity { kind, stock } => {
                let offer = &problem.types[*kind].provides[*stock];
                let ports: Vec<&str> = offer.ports.iter().map(String::as_str).collect();
                let clients = match offer.capacity.unwrap_or(0) {
                    1 => "1 client".to_owned(),
                    number => format!("{number} clients"),
                };
                format!("each {} provides {} to at most {clients}", name(*kind), ports.join(", "))
            }
            Self::Conflict { kind, other, port } if kind == other => {
                format!("there can be only one {}: it conflicts with other providers of {port}", name(*kind))
            }
            Self::Conflict { kind, other, port } => {
                format!("{} conflicts with {port}, which {} provides", name(*kind), name(*other))
            }
            Self::Number(position) => problem.classes[*position].sentence(),
        }
    }
}

impl NodeClass {
    /// How many there are, and what they have.
    fn sentence(&self) -> String {
        // As much as can be is no limit.
        let limited = self.resources.iter().filter(|(_, amount)| **amount < AMOUNT_MAX);
        let amounts: Vec<String> = limited.map(|(name, amount)| format!("{name} {amount}")).collect();
        let with = if amounts.is_empty() { String::new() } else { format!(" with {}", amounts.join(", ")) };
        let are = if self.number == 1 { "is" } else { "are" };
        format!("there {are} {} {}{with}", self.number, self.name)
    }
}
