//! The meaning of requirements on a concrete configuration, by plain recursion over every component and every node.

use std::collections::BTreeMap;

use crate::configuration::{Binding, Configuration, Node};
use crate::language::syntax::{Arithmetic, Connective, Quantifier};
use crate::language::{PortReference, Range, Spot, Term, Which};
use crate::problem::Problem;

/// What a slot stands for.
#[derive(Clone)]
enum Bound<'a> {
    Type(usize),
    Node(Node),
    Component(&'a crate::configuration::ComponentName),
    Port(&'a str),
}

/// A configuration with its components counted.
pub(crate) struct Evaluator<'a> {
    problem: &'a Problem,
    configuration: &'a Configuration,
    on_node: BTreeMap<(Node, usize), i64>,
    in_all: Vec<i64>,
    slots: Vec<Bound<'a>>,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(problem: &'a Problem, configuration: &'a Configuration) -> Self {
        let mut on_node = BTreeMap::new();
        let mut in_all = vec![0; problem.types.len()];
        for component in configuration.components.values() {
            *on_node.entry((component.node, component.kind)).or_insert(0) += 1;
            in_all[component.kind] += 1;
        }
        Self { problem, configuration, on_node, in_all, slots: Vec::new() }
    }

    pub(crate) fn truth(&mut self, term: &'a Term) -> bool {
        self.number(term) != 0
    }

    /// The value; truth is 1.
    pub(crate) fn number(&mut self, term: &'a Term) -> i128 {
        match term {
            Term::Integer(value) => i128::from(*value),
            Term::Truth(value) => i128::from(*value),
            Term::Count { place, component } => self.count(*place, *component),
            Term::Quantified { quantifier, range, body, .. } => self.quantified(*quantifier, range, body),
            Term::Bind { one, other, port } => i128::from(self.bound(*one, *other, port)),
            Term::Arithmetic { operator, left, right } => {
                let (left, right) = (self.number(left), self.number(right));
                match operator {
                    Arithmetic::Add => left.saturating_add(right),
                    Arithmetic::Subtract => left.saturating_sub(right),
                    Arithmetic::Multiply => left.saturating_mul(right),
                }
            }
            Term::Absolute(inner) => self.number(inner).saturating_abs(),
            Term::Comparison { operator, left, right } => {
                use crate::language::syntax::Comparison;
                let order = self.number(left).cmp(&self.number(right));
                i128::from(match operator {
                    Comparison::AtMost => order.is_le(),
                    Comparison::Equal => order.is_eq(),
                    Comparison::AtLeast => order.is_ge(),
                    Comparison::Less => order.is_lt(),
                    Comparison::Greater => order.is_gt(),
                    Comparison::Different => order.is_ne(),
                })
            }
            Term::Connected { connective, parts } => i128::from(match connective {
                Connective::And => parts.iter().all(|part| self.truth(part)),
                Connective::Or => parts.iter().any(|part| self.truth(part)),
                Connective::Implies => !self.truth(&parts[0]) || self.truth(&parts[1]),
                Connective::Iff => self.truth(&parts[0]) == self.truth(&parts[1]),
            }),
            Term::Not(inner) => i128::from(!self.truth(inner)),
        }
    }

    fn count(&self, place: Option<Spot>, component: Which) -> i128 {
        let kind = match component {
            Which::Type(kind) => kind,
            Which::Slot(slot) => match self.slots[slot] {
                Bound::Type(kind) => kind,
                _ => unreachable!("the reader tells types from nodes"),
            },
        };
        let node = match place {
            None => return i128::from(self.in_all[kind]),
            Some(Spot::Node(node)) => node,
            Some(Spot::Slot(slot)) => match self.slots[slot] {
                Bound::Node(node) => node,
                _ => unreachable!("the reader tells nodes from types"),
            },
        };
        i128::from(self.on_node.get(&(node, kind)).copied().unwrap_or(0))
    }

    fn quantified(&mut self, quantifier: Quantifier, range: &'a Range, body: &'a Term) -> i128 {
        let members: Vec<Bound<'a>> = match range {
            Range::Types(kinds) => kinds.iter().map(|kind| Bound::Type(*kind)).collect(),
            Range::Nodes(classes) => classes
                .iter()
                .flat_map(|class| {
                    let number = self.problem.classes[*class].number;
                    (0..number).map(|index| Bound::Node(Node { class: *class, index }))
                })
                .collect(),
            Range::Components { types, classes } => self
                .configuration
                .components
                .iter()
                .filter(|(_, component)| types.contains(&component.kind) && classes.contains(&component.node.class))
                .map(|(name, _)| Bound::Component(name))
                .collect(),
            Range::Ports(ports) => ports.iter().map(|port| Bound::Port(port)).collect(),
        };
        let mut sum = 0_i128;
        for member in members {
            self.slots.push(member);
            let value = self.number(body);
            self.slots.pop();
            match quantifier {
                Quantifier::Forall if value == 0 => return 0,
                Quantifier::Exists if value != 0 => return 1,
                Quantifier::Sum => sum = sum.saturating_add(value),
                Quantifier::Forall | Quantifier::Exists => {}
            }
        }
        match quantifier {
            Quantifier::Forall => 1,
            Quantifier::Exists => 0,
            Quantifier::Sum => sum,
        }
    }

    fn bound(&self, one: usize, other: usize, port: &PortReference) -> bool {
        let (Bound::Component(one), Bound::Component(other)) = (&self.slots[one], &self.slots[other]) else {
            unreachable!("the reader tells components from the rest")
        };
        let port = match port {
            PortReference::Port(port) => port.as_str(),
            PortReference::Slot(slot) => match &self.slots[*slot] {
                Bound::Port(port) => port,
                _ => unreachable!("the reader tells ports from the rest"),
            },
        };
        let bound = |client: &crate::configuration::ComponentName, provider: &crate::configuration::ComponentName| {
            let binding = Binding { port: port.to_owned(), client: client.clone(), provider: provider.clone() };
            self.configuration.bindings.contains(&binding)
        };
        bound(one, other) || bound(other, one)
    }
}
