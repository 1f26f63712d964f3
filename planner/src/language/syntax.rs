//! The tree of a specification as it was written: names are still text.

use super::complaint::Span;

/// A number or a truth value, with its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    pub span: Span,
    pub shape: Shape,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    Integer(i64),
    Truth(bool),
    /// How many components: of one type, everywhere or on one node.
    Count {
        place: Option<Place>,
        component: Reference,
    },
    /// `forall`, `exists` or `sum`.
    Quantified(Box<Quantified>),
    /// 1 if one uses the other on this port, whichever is the client; only in binding preferences.
    Bind {
        one: String,
        other: String,
        port: Reference,
    },
    Arithmetic {
        operator: Arithmetic,
        left: Box<Expression>,
        right: Box<Expression>,
    },
    Absolute(Box<Expression>),
    Comparison {
        operator: Comparison,
        left: Box<Expression>,
        right: Box<Expression>,
    },
    /// Two or more parts for `and` and `or`, two for the others.
    Connected {
        connective: Connective,
        parts: Vec<Expression>,
    },
    Not(Box<Expression>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantified {
    pub quantifier: Quantifier,
    pub variable: String,
    pub variable_span: Span,
    /// `of type …`, only in binding preferences.
    pub of_type: Option<TypeFilter>,
    pub domain: Domain,
    pub domain_span: Span,
    pub body: Expression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    Forall,
    Exists,
    Sum,
}

/// A node: one that is quantified over, or a certain one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Variable(String),
    Node { class: String, index: i64 },
}

/// A name or a variable that stands for names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    Name(String),
    Variable(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeFilter {
    Name(String),
    Pattern(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    Components,
    Locations,
    /// Only in binding preferences.
    Ports,
    Pattern(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    AtMost,
    Equal,
    AtLeast,
    Less,
    Greater,
    Different,
}

impl Comparison {
    pub(crate) fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Self::AtMost => left <= right,
            Self::Equal => left == right,
            Self::AtLeast => left >= right,
            Self::Less => left < right,
            Self::Greater => left > right,
            Self::Different => left != right,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connective {
    And,
    Or,
    Implies,
    Iff,
}

/// What is minimised, in the order it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preference {
    /// The cost of all used nodes.
    Cost,
    /// The number of today's components that do not stay where they are.
    Stopped,
    /// The number of today's components whose type lives on, but on another node.
    Moved,
    Expression(Expression),
}

/// What bindings are judged by; maximised, in the order it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingPreference {
    /// Bindings between components on the same node.
    Local,
    Expression(Expression),
}

/// A constraint and the preferences that follow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Specification {
    pub constraint: Expression,
    pub preferences: Vec<(Preference, Span)>,
}
