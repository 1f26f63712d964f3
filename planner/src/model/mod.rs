//! A problem as an integer program over *columns*.
//!
//! Identical nodes form a group. A column is a multiset of components that fits on a node of a group and satisfies all
//! that is demanded of each node by itself; a placement says how often each column is used. Everything else that
//! requirements can mention is a *measure*: a number that each column has and that is summed over all nodes (instances of a
//! type, cost, nodes that host two of something …). Each measure has a variable; requirements become rows over variables.
//! So nothing grows with the number of identical nodes.

mod ceiling;
pub(crate) mod columns;
pub(crate) mod compile;
mod formula;
mod groups;
mod here;
pub(crate) mod interfaces;
pub(crate) mod linear;
pub(crate) mod local;
mod simplify;

use crate::problem::Problem;
use interfaces::Interfaces;
use local::Local;
use std::collections::BTreeSet;

/// Nodes that nothing tells apart.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) class: usize,
    /// Indices within the class.
    pub(crate) members: Vec<i64>,
    /// Available amount of each resource.
    pub(crate) room: Vec<i64>,
    pub(crate) cost: i64,
    /// How many components of each type live there today.
    pub(crate) today: Vec<i64>,
    /// The greatest number of each type that one node can host.
    pub(crate) most: Vec<i64>,
    /// What must hold for each node.
    pub(crate) filters: Vec<Local>,
    /// All contents that pass the filters, case by case.
    pub(crate) cases: Vec<columns::Case>,
}

impl Group {
    pub(crate) fn number(&self) -> i64 {
        i64::try_from(self.members.len()).expect("a class has at most a million nodes")
    }
}

/// A number that each column has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Instances of a type on nodes of some groups.
    Count { kind: usize, groups: Vec<bool> },
    /// The cost of the node if it hosts anything.
    Cost,
    /// 1 if a node of this group hosts anything.
    Inhabited { group: usize },
    /// Any other number about a node, over some groups.
    Local { number: Local, groups: Vec<bool> },
    /// Components of a type that stay where they are today.
    Kept { kind: usize },
}

impl Measure {
    /// The value of a column on a node of this group.
    pub(crate) fn value(&self, position: usize, group: &Group, counts: &[i64]) -> i64 {
        match self {
            Self::Count { kind, groups } => {
                if groups[position] {
                    counts[*kind]
                } else {
                    0
                }
            }
            Self::Cost => {
                if counts.iter().any(|count| *count > 0) {
                    group.cost
                } else {
                    0
                }
            }
            Self::Inhabited { group } => i64::from(*group == position && counts.iter().any(|count| *count > 0)),
            Self::Local { number, groups } => {
                if groups[position] {
                    number.evaluate(counts)
                } else {
                    0
                }
            }
            Self::Kept { kind } => counts[*kind].min(group.today[*kind]),
        }
    }

    /// The least and greatest value that a column of this group can have.
    pub(crate) fn range(&self, position: usize, group: &Group) -> (i64, i64) {
        self.range_within(position, group, &vec![0; group.most.len()], &group.most)
    }

    /// As [`Self::range`], for columns with counts between `least` and `most`.
    pub(crate) fn range_within(&self, position: usize, group: &Group, least: &[i64], most: &[i64]) -> (i64, i64) {
        match self {
            Self::Count { kind, groups } if groups[position] => (least[*kind], most[*kind]),
            Self::Local { number, groups } if groups[position] => number.range(least, most),
            Self::Count { .. } | Self::Local { .. } => (0, 0),
            Self::Cost => (0, group.cost),
            Self::Inhabited { group } => (0, i64::from(*group == position)),
            Self::Kept { kind } => (least[*kind].min(group.today[*kind]), most[*kind].min(group.today[*kind])),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    AtLeast,
    Equal,
}

/// `Σ factor · variable` compared with an amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) terms: Vec<(usize, i64)>,
    pub(crate) relation: Relation,
    pub(crate) amount: i64,
}

impl Row {
    /// The row, or nothing if its numbers are too large to compute with: leaving one out only loosens a bound.
    pub(crate) fn at_least(terms: std::collections::BTreeMap<usize, i128>, amount: i128) -> Option<Self> {
        let exact = |value: i128| i64::try_from(value).ok().filter(|value| value.abs() < EXACT_MAX);
        let terms: Option<Vec<(usize, i64)>> = terms
            .into_iter()
            .filter(|(_, factor)| *factor != 0)
            .map(|(variable, factor)| exact(factor).map(|factor| (variable, factor)))
            .collect();
        Some(Self { terms: terms?, relation: Relation::AtLeast, amount: exact(amount)? })
    }
}

/// Numbers from here on are not given to the solver: sums of a few of them must stay exact.
pub(crate) const EXACT_MAX: i64 = 1 << 52;

/// No type has more instances than this.
pub(crate) const INSTANCES_MAX: i64 = 1_000_000_000;

/// The program. Variable `t` below the number of types is the number of instances of type `t`.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) groups: Vec<Group>,
    /// Amount of each resource that one instance of each type consumes.
    pub(crate) sizes: Vec<Vec<i64>>,
    /// Bounds of each variable.
    pub(crate) bounds: Vec<(i64, i64)>,
    /// The measure whose sum a variable is; auxiliary variables have none.
    pub(crate) measures: Vec<Option<Measure>>,
    pub(crate) rows: Vec<Row>,
    pub(crate) interfaces: Interfaces,
    /// What is minimised, in order; constants are kept apart.
    pub(crate) goals: Vec<linear::Linear>,
    /// Classes whose number of nodes is limited although the selection says otherwise: the requirements mention each of their
    /// nodes, so with another number it would mean something else.
    pub(crate) given: BTreeSet<usize>,
}

/// Why a problem cannot be modelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A product or sum in the requirements exceeds what can be computed exactly.
    #[error("`{0}`: its numbers become too large to compute with")]
    TooLarge(String),
    /// A quantifier compares nodes with one another, and there are too many of them.
    #[error("`{0}`: it tells every node apart, which is supported for up to {most} nodes", most = groups::SINGLES_MAX)]
    TooManyNodes(String),
}

/// Which parts of a problem are taken into account; all of them, except when looking for the cause of a contradiction.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) demands: Vec<bool>,
    /// Requirements, by type and port position as in [`Interfaces::needs`].
    pub(crate) needs: Vec<bool>,
    /// Capacities, by position in [`Interfaces::stocks`].
    pub(crate) capacities: Vec<bool>,
    pub(crate) conflicts: Vec<bool>,
    /// Whether the number of nodes of a class is limited; if not, there are more than enough.
    pub(crate) numbers: Vec<bool>,
}

impl Selection {
    pub(crate) fn everything(problem: &Problem) -> Self {
        let interfaces = Interfaces::new(problem);
        Self {
            demands: vec![true; problem.requirements.demands.len()],
            needs: vec![true; interfaces.needs.len()],
            capacities: vec![true; interfaces.stocks.len()],
            conflicts: vec![true; interfaces.conflicts.len()],
            numbers: vec![true; problem.classes.len()],
        }
    }
}

impl Model {
    pub(crate) fn new(problem: &Problem, selection: &Selection) -> Result<Self, ModelError> {
        let mut model = compile::model(problem, selection)?;
        crate::reduce::cover(&mut model);
        Ok(model)
    }

    /// How many types there are.
    pub(crate) fn types(&self) -> usize {
        self.sizes.len()
    }
}
