//! Terms that are about one node only: filters for columns, and measures of them.

use super::compile::{Bound, Compiler};
use super::local::Local;
use crate::language::Term;
use crate::language::syntax::{Arithmetic, Comparison, Connective, Quantifier};

impl Compiler<'_> {
    /// The body of a quantifier over locations.
    pub(super) fn local_body(&mut self, body: &Term) -> Local {
        self.slots.push(Bound::Here);
        let local = self.local(body);
        self.slots.pop();
        local
    }

    /// A term that is about one node only.
    fn local(&mut self, term: &Term) -> Local {
        match term {
            Term::Integer(value) => Local::Integer(*value),
            Term::Truth(value) => Local::Integer(i64::from(*value)),
            Term::Count { component, .. } => Local::Count(self.kind(*component)),
            Term::Arithmetic { operator, left, right } => {
                let (left, right) = (self.local(left), self.local(right));
                match operator {
                    Arithmetic::Add => Local::Add(vec![left, right]),
                    Arithmetic::Subtract => Local::Add(vec![left, Local::Negate(Box::new(right))]),
                    Arithmetic::Multiply => Local::Multiply(Box::new(left), Box::new(right)),
                }
            }
            Term::Absolute(inner) => Local::Absolute(Box::new(self.local(inner))),
            Term::Comparison { operator, left, right } => {
                Local::Compare(*operator, Box::new(self.local(left)), Box::new(self.local(right)))
            }
            Term::Not(inner) => Local::Not(Box::new(self.local(inner))),
            Term::Connected { connective, parts } => {
                let mut parts: Vec<Local> = parts.iter().map(|part| self.local(part)).collect();
                match connective {
                    Connective::And => Local::All(parts),
                    Connective::Or => Local::Any(parts),
                    Connective::Implies => {
                        let right = parts.remove(1);
                        Local::Any(vec![Local::Not(Box::new(parts.remove(0))), right])
                    }
                    Connective::Iff => {
                        let right = parts.remove(1);
                        Local::Compare(Comparison::Equal, Box::new(parts.remove(0)), Box::new(right))
                    }
                }
            }
            Term::Quantified { quantifier, range, body, .. } => {
                let parts = self.over_types(range, |compiler| compiler.local(body));
                match quantifier {
                    Quantifier::Forall => Local::All(parts),
                    Quantifier::Exists => Local::Any(parts),
                    Quantifier::Sum => Local::Add(parts),
                }
            }
            Term::Bind { .. } => unreachable!("the reader lets `bind` stand in binding preferences only"),
        }
    }
}
