//! Names to meanings: which type, which node, what a variable stands for, number or truth value.
//!
//! A pattern may stand for types or for nodes; how its variable is used decides (`?x.Web` makes it a node).

use std::collections::BTreeSet;

use super::complaint::{Complaint, Span};
use super::meaning::{PortReference, Range, Spot, Term, Which};
use super::pattern::Pattern;
use super::syntax::{Domain, Expression, Place, Quantified, Reference, Shape, TypeFilter};
use crate::configuration::Node;
use crate::problem::{ComponentType, NodeClass};

/// Whether a term is a number or a truth value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Number,
    Truth,
}

/// The names that a text may use.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) types: &'a [ComponentType],
    pub(crate) classes: &'a [NodeClass],
    /// Whether this is a binding preference: variables stand for single components then.
    pub(crate) bindings: bool,
}

/// What a variable stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    Type,
    Node,
    Component,
    Port,
}

struct Scope<'a, 'b> {
    names: Lookup<'a>,
    bound: Vec<(String, Stands)>,
    complaints: &'b mut Vec<Complaint>,
}

impl Lookup<'_> {
    /// The meaning of a formula; all complaints are added to `complaints`.
    pub(crate) fn formula(self, expression: &Expression, complaints: &mut Vec<Complaint>) -> Option<Term> {
        self.with(complaints, |scope| scope.truth(expression))
    }

    /// The meaning of a number (truth counts as 0 or 1).
    pub(crate) fn number(self, expression: &Expression, complaints: &mut Vec<Complaint>) -> Option<Term> {
        self.with(complaints, |scope| scope.term(expression).map(|(term, _)| term))
    }

    fn with(
        self,
        complaints: &mut Vec<Complaint>,
        look: impl FnOnce(&mut Scope<'_, '_>) -> Option<Term>,
    ) -> Option<Term> {
        look(&mut Scope { names: self, bound: Vec::new(), complaints })
    }
}

impl Scope<'_, '_> {
    fn truth(&mut self, expression: &Expression) -> Option<Term> {
        let (term, sort) = self.term(expression)?;
        if sort == Sort::Truth {
            return Some(term);
        }
        self.complain(
            expression.span,
            "expected something true or false, found a number: compare it, as in `> 0`".to_owned(),
        )
    }

    fn term(&mut self, expression: &Expression) -> Option<(Term, Sort)> {
        match &expression.shape {
            Shape::Integer(value) => Some((Term::Integer(*value), Sort::Number)),
            Shape::Truth(value) => Some((Term::Truth(*value), Sort::Truth)),
            Shape::Count { .. } if self.names.bindings => {
                self.complain(expression.span, "expected `bind(?x, ?y, port)`, found a count".to_owned())
            }
            Shape::Count { place, component } => {
                // Look up both, so that both complaints come at once.
                let place = place.as_ref().map(|place| self.spot(place, expression.span));
                let component = self.which(component, expression.span);
                let place = match place {
                    Some(spot) => Some(spot?),
                    None => None,
                };
                Some((Term::Count { place, component: component? }, Sort::Number))
            }
            Shape::Quantified(parts) => self.quantified(parts),
            Shape::Bind { one, other, port } => {
                let one = self.slot(one, Stands::Component, expression.span);
                let other = self.slot(other, Stands::Component, expression.span);
                let port = self.port(port, expression.span);
                Some((Term::Bind { one: one?, other: other?, port: port? }, Sort::Truth))
            }
            Shape::Arithmetic { operator, left, right } => {
                let (left, right) = self.two(left, right);
                let term = Term::Arithmetic { operator: *operator, left: Box::new(left?), right: Box::new(right?) };
                Some((term, Sort::Number))
            }
            Shape::Absolute(inner) => {
                let (inner, _) = self.term(inner)?;
                Some((Term::Absolute(Box::new(inner)), Sort::Number))
            }
            Shape::Comparison { operator, left, right } => {
                let (left, right) = self.two(left, right);
                let term = Term::Comparison { operator: *operator, left: Box::new(left?), right: Box::new(right?) };
                Some((term, Sort::Truth))
            }
            Shape::Connected { connective, parts } => {
                let parts: Vec<Option<Term>> = parts.iter().map(|part| self.truth(part)).collect();
                let parts = parts.into_iter().collect::<Option<Vec<Term>>>()?;
                Some((Term::Connected { connective: *connective, parts }, Sort::Truth))
            }
            Shape::Not(inner) => Some((Term::Not(Box::new(self.truth(inner)?)), Sort::Truth)),
        }
    }

    fn two(&mut self, left: &Expression, right: &Expression) -> (Option<Term>, Option<Term>) {
        let left = self.term(left).map(|(term, _)| term);
        let right = self.term(right).map(|(term, _)| term);
        (left, right)
    }

    fn quantified(&mut self, parts: &Quantified) -> Option<(Term, Sort)> {
        use super::syntax::Quantifier;
        let (range, stands) = self.range(parts)?;
        let slot = self.bound.len();
        self.bound.push((parts.variable.clone(), stands));
        let body = match parts.quantifier {
            Quantifier::Sum => self.term(&parts.body).map(|(term, _)| term),
            Quantifier::Forall | Quantifier::Exists => self.truth(&parts.body),
        };
        self.bound.pop();
        let sort = if parts.quantifier == Quantifier::Sum { Sort::Number } else { Sort::Truth };
        let term = Term::Quantified { quantifier: parts.quantifier, slot, range, body: Box::new(body?) };
        Some((term, sort))
    }

    fn range(&mut self, parts: &Quantified) -> Option<(Range, Stands)> {
        let types: Vec<usize> = (0..self.names.types.len()).collect();
        let classes: Vec<usize> = (0..self.names.classes.len()).collect();
        let in_bindings = self.names.bindings;
        match &parts.domain {
            Domain::Components => Some((Range::Types(types), Stands::Type)),
            Domain::Ports => Some((Range::Ports(self.ports()), Stands::Port)),
            Domain::Locations if in_bindings => self.components(parts, &classes),
            Domain::Locations => Some((Range::Nodes(classes), Stands::Node)),
            Domain::Pattern(text) => {
                let pattern = self.pattern(text, parts.domain_span)?;
                let classes: Vec<usize> =
                    classes.into_iter().filter(|class| pattern.matches(&self.names.classes[*class].name)).collect();
                if in_bindings {
                    return self.components(parts, &classes);
                }
                let types: Vec<usize> =
                    types.into_iter().filter(|kind| pattern.matches(&self.names.types[*kind].name)).collect();
                let as_node = used_as_node(&parts.body, &parts.variable);
                if as_node.unwrap_or(types.is_empty()) {
                    self.check_matches(text, classes.is_empty(), "location", parts.domain_span);
                    Some((Range::Nodes(classes), Stands::Node))
                } else {
                    self.check_matches(text, types.is_empty(), "component", parts.domain_span);
                    Some((Range::Types(types), Stands::Type))
                }
            }
        }
    }

    /// A pattern that matches nothing is almost surely a slip of the pen.
    fn check_matches(&mut self, text: &str, nothing: bool, what: &str, span: Span) {
        if nothing {
            let reason = format!("no {what} matches '{text}' (a pattern must match the whole name)");
            self.complaints.push(Complaint::new(span, reason));
        }
    }

    fn components(&mut self, parts: &Quantified, classes: &[usize]) -> Option<(Range, Stands)> {
        let types: BTreeSet<usize> = match &parts.of_type {
            None => (0..self.names.types.len()).collect(),
            Some(TypeFilter::Name(name)) => {
                let found = self.names.types.iter().position(|kind| kind.name == *name);
                BTreeSet::from([match found {
                    Some(kind) => kind,
                    None => return self.unknown("component", name, parts.variable_span),
                }])
            }
            Some(TypeFilter::Pattern(text)) => {
                let pattern = self.pattern(text, parts.variable_span)?;
                let all = self.names.types.iter().enumerate();
                all.filter(|(_, kind)| pattern.matches(&kind.name)).map(|(position, _)| position).collect()
            }
        };
        Some((Range::Components { types, classes: classes.iter().copied().collect() }, Stands::Component))
    }

    fn ports(&self) -> Vec<String> {
        let mut ports = BTreeSet::new();
        for kind in self.names.types {
            ports.extend(kind.requires().map(|(port, _)| port.to_owned()));
        }
        ports.into_iter().collect()
    }

    fn pattern(&mut self, text: &str, span: Span) -> Option<Pattern> {
        match Pattern::new(text) {
            Ok(pattern) => Some(pattern),
            Err(reason) => self.complain(span, format!("'{text}' is not a regular expression: {reason}")),
        }
    }

    fn spot(&mut self, place: &Place, span: Span) -> Option<Spot> {
        match place {
            Place::Variable(name) => self.slot(name, Stands::Node, span).map(Spot::Slot),
            Place::Node { class, index } => {
                let Some(position) = self.names.classes.iter().position(|known| known.name == *class) else {
                    return self.unknown("location", class, span);
                };
                let number = self.names.classes[position].number;
                if *index >= number {
                    let reason = format!("there are {number} of {class}: expected a number below {number}");
                    return self.complain(span, reason);
                }
                Some(Spot::Node(Node { class: position, index: *index }))
            }
        }
    }

    fn which(&mut self, reference: &Reference, span: Span) -> Option<Which> {
        match reference {
            Reference::Variable(name) => self.slot(name, Stands::Type, span).map(Which::Slot),
            Reference::Name(name) => match self.names.types.iter().position(|kind| kind.name == *name) {
                Some(position) => Some(Which::Type(position)),
                None => self.unknown("component", name, span),
            },
        }
    }

    fn port(&mut self, reference: &Reference, span: Span) -> Option<PortReference> {
        match reference {
            Reference::Variable(name) => self.slot(name, Stands::Port, span).map(PortReference::Slot),
            Reference::Name(name) if self.ports().contains(name) => Some(PortReference::Port(name.clone())),
            Reference::Name(name) => self.complain(span, format!("no component requires a port {name:?}")),
        }
    }

    fn slot(&mut self, name: &str, wanted: Stands, span: Span) -> Option<usize> {
        let Some(slot) = self.bound.iter().rposition(|(known, _)| known == name) else {
            return self.complain(span, format!("?{name} is not bound by a quantifier around it"));
        };
        let found = self.bound[slot].1;
        if found == wanted {
            return Some(slot);
        }
        self.complain(span, format!("?{name} stands for {}, expected {}", found.describe(), wanted.describe()))
    }

    fn unknown<T>(&mut self, what: &str, name: &str, span: Span) -> Option<T> {
        let names: Vec<&str> = match what {
            "location" => self.names.classes.iter().map(|class| class.name.as_str()).collect(),
            _ => self.names.types.iter().map(|kind| kind.name.as_str()).collect(),
        };
        let known = if names.len() > 8 { format!("{}, …", names[..8].join(", ")) } else { names.join(", ") };
        self.complain(span, format!("there is no {what} {name:?}; expected one of {known}"))
    }

    fn complain<T>(&mut self, span: Span, reason: String) -> Option<T> {
        self.complaints.push(Complaint::new(span, reason));
        None
    }
}

impl Stands {
    fn describe(self) -> &'static str {
        match self {
            Self::Type => "a component",
            Self::Node => "a location",
            Self::Component => "a single component",
            Self::Port => "a port",
        }
    }
}

fn children(expression: &Expression) -> Vec<&Expression> {
    match &expression.shape {
        Shape::Integer(_) | Shape::Truth(_) | Shape::Count { .. } | Shape::Bind { .. } => Vec::new(),
        Shape::Quantified(parts) => vec![&parts.body],
        Shape::Arithmetic { left, right, .. } | Shape::Comparison { left, right, .. } => vec![left, right],
        Shape::Connected { parts, .. } => parts.iter().collect(),
        Shape::Absolute(inner) | Shape::Not(inner) => vec![inner],
    }
}

/// Whether the variable is used as a node; `None` if it is not used at all.
fn used_as_node(expression: &Expression, variable: &str) -> Option<bool> {
    match &expression.shape {
        Shape::Count { place: Some(Place::Variable(name)), .. } if name == variable => Some(true),
        Shape::Count { component: Reference::Variable(name), .. } if name == variable => Some(false),
        Shape::Quantified(parts) if parts.variable == variable => None,
        _ => children(expression).into_iter().find_map(|child| used_as_node(child, variable)),
    }
}
