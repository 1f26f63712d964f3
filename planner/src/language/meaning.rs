//! Trees with their names looked up: what the solver compiles and the verifier evaluates.
//!
//! A variable has become a slot: the number of quantifiers around the one that binds it.

use std::collections::BTreeSet;

use super::syntax::{Arithmetic, Comparison, Connective, Quantifier};
use crate::configuration::Node;

/// A number or a truth value; truth counts as 1 where a number is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    Integer(i64),
    Truth(bool),
    /// How many components of a type, everywhere or on one node.
    Count {
        place: Option<Spot>,
        component: Which,
    },
    Quantified {
        quantifier: Quantifier,
        slot: usize,
        range: Range,
        body: Box<Term>,
    },
    /// Whether two components are bound on one of these ports.
    Bind {
        one: usize,
        other: usize,
        port: PortReference,
    },
    Arithmetic {
        operator: Arithmetic,
        left: Box<Term>,
        right: Box<Term>,
    },
    Absolute(Box<Term>),
    Comparison {
        operator: Comparison,
        left: Box<Term>,
        right: Box<Term>,
    },
    Connected {
        connective: Connective,
        parts: Vec<Term>,
    },
    Not(Box<Term>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    Node(Node),
    Slot(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Type(usize),
    Slot(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortReference {
    Port(String),
    Slot(usize),
}

/// What a variable runs over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// Types of components.
    Types(Vec<usize>),
    /// Every node of these classes.
    Nodes(Vec<usize>),
    /// Every component of these types on a node of these classes.
    Components {
        types: BTreeSet<usize>,
        classes: BTreeSet<usize>,
    },
    Ports(Vec<String>),
}

/// A part of the requirements that can be dropped on its own, with the text it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    pub text: String,
    pub term: Term,
}

/// What is minimised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    pub text: String,
    pub measure: GoalMeasure,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoalMeasure {
    Cost,
    Stopped,
    Moved,
    Term(Term),
}

/// What bindings are judged by, maximised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingGoal {
    Local,
    Term(Term),
}

/// Everything that is asked for: all demands must hold, goals are met as well as possible, earlier ones first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    pub demands: Vec<Demand>,
    pub goals: Vec<Goal>,
    pub binding_goals: Vec<BindingGoal>,
}
