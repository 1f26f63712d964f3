//! Binding preferences over a network: as weights of single bindings where they are sums of such, as a whole-numbered
//! program where they are not.

use std::collections::BTreeMap;

use super::network::Network;
use crate::configuration::{ComponentName, Configuration};
use crate::language::syntax::{Arithmetic, Comparison, Connective, Quantifier};
use crate::language::{BindingGoal, PortReference, Range, Term};
use crate::model::compile::Compiler;
use crate::model::linear::{Formula, Linear};

/// A pair of a seat and a shelf.
pub(super) type Pair = (usize, usize);

/// What a slot stands for.
#[derive(Clone, Copy)]
enum Bound<'a> {
    Component(&'a ComponentName),
    Port(&'a str),
}

/// Looks terms up in a network.
pub(super) struct Reader<'a> {
    network: &'a Network<'a>,
    configuration: &'a Configuration,
    /// Pairs by client, provider and port.
    pairs: BTreeMap<(&'a ComponentName, &'a ComponentName, &'a str), Pair>,
    slots: Vec<Bound<'a>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(network: &'a Network<'a>, configuration: &'a Configuration) -> Self {
        let mut pairs = BTreeMap::new();
        for (position, seat) in network.seats.iter().enumerate() {
            for shelf in network.choices(position) {
                pairs.insert((seat.client, network.shelves[shelf].provider, seat.port), (position, shelf));
            }
        }
        Self { network, configuration, pairs, slots: Vec::new() }
    }

    /// The weight of each pair, if the goal is a sum of bindings with constant factors.
    pub(super) fn weights(&mut self, goal: &'a BindingGoal) -> Option<BTreeMap<Pair, i64>> {
        let mut weights = BTreeMap::new();
        match goal {
            BindingGoal::Local => {
                let node = |name| self.configuration.components.get(name).map(|component| component.node);
                for ((client, provider, _), pair) in &self.pairs {
                    if node(*client) == node(*provider) {
                        weights.insert(*pair, 1);
                    }
                }
            }
            BindingGoal::Term(term) => self.add_weights(term, 1, &mut weights)?,
        }
        Some(weights)
    }

    fn add_weights(&mut self, term: &'a Term, factor: i64, weights: &mut BTreeMap<Pair, i64>) -> Option<()> {
        match term {
            Term::Integer(_) => Some(()),
            Term::Bind { one, other, port } => {
                let pairs = self.bound_pairs(*one, *other, port);
                // Bound either way counts once: with two ways it is no longer a plain sum.
                if pairs.len() > 1 {
                    return None;
                }
                for pair in pairs {
                    *weights.entry(pair).or_insert(0) += factor;
                }
                Some(())
            }
            Term::Arithmetic { operator: Arithmetic::Add, left, right } => {
                self.add_weights(left, factor, weights)?;
                self.add_weights(right, factor, weights)
            }
            Term::Arithmetic { operator: Arithmetic::Subtract, left, right } => {
                self.add_weights(left, factor, weights)?;
                self.add_weights(right, -factor, weights)
            }
            Term::Arithmetic { operator: Arithmetic::Multiply, left, right } => match (left.as_ref(), right.as_ref()) {
                (Term::Integer(value), other) | (other, Term::Integer(value)) => {
                    self.add_weights(other, factor.checked_mul(*value)?, weights)
                }
                _ => None,
            },
            Term::Quantified { quantifier: Quantifier::Sum, range, body, .. } => {
                for member in self.members(range) {
                    self.slots.push(member);
                    let added = self.add_weights(body, factor, weights);
                    self.slots.pop();
                    added?;
                }
                Some(())
            }
            _ => None,
        }
    }

    fn members(&self, range: &'a Range) -> Vec<Bound<'a>> {
        match range {
            Range::Components { types, classes } => self
                .configuration
                .components
                .iter()
                .filter(|(_, component)| types.contains(&component.kind) && classes.contains(&component.node.class))
                .map(|(name, _)| Bound::Component(name))
                .collect(),
            Range::Ports(ports) => ports.iter().map(|port| Bound::Port(port)).collect(),
            // Counts have no place in binding preferences; the reader refuses them.
            Range::Types(_) | Range::Nodes(_) => Vec::new(),
        }
    }

    fn bound_pairs(&self, one: usize, other: usize, port: &'a PortReference) -> Vec<Pair> {
        let (Bound::Component(one), Bound::Component(other)) = (self.slots[one], self.slots[other]) else {
            unreachable!("the reader tells components from ports")
        };
        let port = match port {
            PortReference::Port(port) => port.as_str(),
            PortReference::Slot(slot) => match self.slots[*slot] {
                Bound::Port(port) => port,
                Bound::Component(_) => unreachable!("the reader tells ports from components"),
            },
        };
        let ways = [(one, other, port), (other, one, port)];
        ways.iter().filter_map(|way| self.pairs.get(way).copied()).collect()
    }

    /// The goal as a linear form over the variables of pairs.
    pub(super) fn form(
        &mut self,
        goal: &'a BindingGoal,
        variables: &BTreeMap<Pair, usize>,
        compiler: &mut Compiler<'_>,
    ) -> Linear {
        if let Some(weights) = self.weights(goal) {
            return weights.iter().fold(Linear::default(), |sum, (pair, weight)| {
                sum.plus(&Linear::variable(variables[pair]), i128::from(*weight))
            });
        }
        match goal {
            BindingGoal::Local => Linear::default(),
            BindingGoal::Term(term) => self.number(term, variables, compiler),
        }
    }

    fn number(&mut self, term: &'a Term, variables: &BTreeMap<Pair, usize>, compiler: &mut Compiler<'_>) -> Linear {
        match term {
            Term::Integer(value) => Linear::constant(i128::from(*value)),
            Term::Arithmetic { operator, left, right } => {
                let left = self.number(left, variables, compiler);
                let right = self.number(right, variables, compiler);
                match operator {
                    Arithmetic::Add => left.plus(&right, 1),
                    Arithmetic::Subtract => left.plus(&right, -1),
                    Arithmetic::Multiply => compiler.product(&left, &right),
                }
            }
            Term::Absolute(inner) => {
                let inner = self.number(inner, variables, compiler);
                compiler.absolute(&inner)
            }
            Term::Quantified { quantifier: Quantifier::Sum, range, body, .. } => {
                let mut sum = Linear::default();
                for member in self.members(range) {
                    self.slots.push(member);
                    sum = sum.plus(&self.number(body, variables, compiler), 1);
                    self.slots.pop();
                }
                sum
            }
            _ => {
                let formula = self.truth(term, variables, compiler);
                compiler.reified(formula)
            }
        }
    }

    fn truth(&mut self, term: &'a Term, variables: &BTreeMap<Pair, usize>, compiler: &mut Compiler<'_>) -> Formula {
        match term {
            Term::Truth(value) => Formula::Truth(*value),
            Term::Bind { one, other, port } => {
                let pairs = self.bound_pairs(*one, *other, port);
                let some = pairs
                    .iter()
                    .fold(Linear::constant(-1), |sum, pair| sum.plus(&Linear::variable(variables[pair]), 1));
                Formula::AtLeastZero(some)
            }
            Term::Not(inner) => self.truth(inner, variables, compiler).negated(),
            Term::Comparison { operator, left, right } => {
                let left = self.number(left, variables, compiler);
                let right = self.number(right, variables, compiler);
                crate::model::compile::compared(*operator, &left, &right)
            }
            Term::Connected { connective, parts } => {
                let mut parts: Vec<Formula> = parts.iter().map(|part| self.truth(part, variables, compiler)).collect();
                match connective {
                    Connective::And => Formula::All(parts),
                    Connective::Or => Formula::Any(parts),
                    Connective::Implies => {
                        parts[0] = parts[0].negated();
                        Formula::Any(parts)
                    }
                    Connective::Iff => {
                        let right = compiler.reified(parts.remove(1));
                        let left = compiler.reified(parts.remove(0));
                        crate::model::compile::compared(Comparison::Equal, &left, &right)
                    }
                }
            }
            Term::Quantified { quantifier, range, body, .. } => {
                let mut parts = Vec::new();
                for member in self.members(range) {
                    self.slots.push(member);
                    parts.push(self.truth(body, variables, compiler));
                    self.slots.pop();
                }
                if *quantifier == Quantifier::Exists { Formula::Any(parts) } else { Formula::All(parts) }
            }
            Term::Integer(_) | Term::Count { .. } | Term::Arithmetic { .. } | Term::Absolute(_) => {
                let number = self.number(term, variables, compiler);
                crate::model::compile::compared(Comparison::Different, &number, &Linear::default())
            }
        }
    }

    pub(super) fn network(&self) -> &'a Network<'a> {
        self.network
    }
}
