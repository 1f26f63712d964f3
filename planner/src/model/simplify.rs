//! Rewrites requirements so that quantifiers over locations are about as little as possible.
//!
//! `forall` is split over `and`, `exists` over `or`, `sum` over `+` and `-`, and negations are pushed through
//! quantifiers. What remains inside a quantifier is either about its own node only (then identical nodes need not be
//! told apart), or not about it at all, or a mix of both (then every node must be looked at on its own).

use crate::language::syntax::{Arithmetic, Connective, Quantifier};
use crate::language::{Range, Spot, Term};

/// What the body of a quantifier over locations is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Nothing that depends on the node.
    Elsewhere,
    /// Only the node itself.
    Here,
    Both,
}

/// What `body` says about the node in `slot`.
pub(super) fn about(body: &Term, slot: usize) -> About {
    let mut here = false;
    let mut elsewhere = false;
    survey(body, slot, &mut here, &mut elsewhere);
    match (here, elsewhere) {
        (false, _) => About::Elsewhere,
        (true, false) => About::Here,
        (true, true) => About::Both,
    }
}

fn survey(term: &Term, slot: usize, here: &mut bool, elsewhere: &mut bool) {
    if let Term::Count { place, .. } = term {
        if *place == Some(Spot::Slot(slot)) {
            *here = true;
        } else {
            *elsewhere = true;
        }
    }
    if let Term::Quantified { range: Range::Nodes(_), .. } = term {
        *elsewhere = true;
    }
    for child in children(term) {
        survey(child, slot, here, elsewhere);
    }
}

pub(super) fn children(term: &Term) -> Vec<&Term> {
    match term {
        Term::Integer(_) | Term::Truth(_) | Term::Count { .. } | Term::Bind { .. } => Vec::new(),
        Term::Quantified { body, .. } => vec![body],
        Term::Arithmetic { left, right, .. } | Term::Comparison { left, right, .. } => vec![left, right],
        Term::Connected { parts, .. } => parts.iter().collect(),
        Term::Absolute(inner) | Term::Not(inner) => vec![inner],
    }
}

/// The same meaning with quantifiers over locations split and pushed inwards.
pub(super) fn simplify(term: &Term) -> Term {
    match term {
        Term::Integer(_) | Term::Truth(_) | Term::Count { .. } | Term::Bind { .. } => term.clone(),
        Term::Quantified { quantifier, slot, range, body } => {
            let body = simplify(body);
            if matches!(range, Range::Nodes(_)) {
                split(*quantifier, *slot, range, body)
            } else {
                Term::Quantified { quantifier: *quantifier, slot: *slot, range: range.clone(), body: Box::new(body) }
            }
        }
        Term::Arithmetic { operator, left, right } => {
            Term::Arithmetic { operator: *operator, left: Box::new(simplify(left)), right: Box::new(simplify(right)) }
        }
        Term::Absolute(inner) => Term::Absolute(Box::new(simplify(inner))),
        Term::Comparison { operator, left, right } => {
            Term::Comparison { operator: *operator, left: Box::new(simplify(left)), right: Box::new(simplify(right)) }
        }
        Term::Connected { connective, parts } => {
            Term::Connected { connective: *connective, parts: parts.iter().map(simplify).collect() }
        }
        Term::Not(inner) => match inner.as_ref() {
            Term::Quantified { quantifier: Quantifier::Exists, slot, range: range @ Range::Nodes(_), body } => {
                simplify(&quantified(Quantifier::Forall, *slot, range, Term::Not(body.clone())))
            }
            Term::Quantified { quantifier: Quantifier::Forall, slot, range: range @ Range::Nodes(_), body } => {
                simplify(&quantified(Quantifier::Exists, *slot, range, Term::Not(body.clone())))
            }
            _ => Term::Not(Box::new(simplify(inner))),
        },
    }
}

fn quantified(quantifier: Quantifier, slot: usize, range: &Range, body: Term) -> Term {
    Term::Quantified { quantifier, slot, range: range.clone(), body: Box::new(body) }
}

/// Splits only a body that mixes: one that is about its node alone is best kept whole.
fn split(quantifier: Quantifier, slot: usize, range: &Range, body: Term) -> Term {
    let mixed = about(&body, slot) == About::Both;
    match (quantifier, body) {
        (Quantifier::Forall, Term::Connected { connective: Connective::And, parts }) => Term::Connected {
            connective: Connective::And,
            parts: parts.into_iter().map(|part| split(quantifier, slot, range, part)).collect(),
        },
        (Quantifier::Exists, Term::Connected { connective: Connective::Or, parts }) if mixed => Term::Connected {
            connective: Connective::Or,
            parts: parts.into_iter().map(|part| split(quantifier, slot, range, part)).collect(),
        },
        (Quantifier::Sum, Term::Arithmetic { operator, left, right }) if mixed && operator != Arithmetic::Multiply => {
            Term::Arithmetic {
                operator,
                left: Box::new(split(quantifier, slot, range, *left)),
                right: Box::new(split(quantifier, slot, range, *right)),
            }
        }
        (quantifier, body) => quantified(quantifier, slot, range, body),
    }
}
