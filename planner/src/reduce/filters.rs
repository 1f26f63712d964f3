//! Whether a node still passes a filter after an instance of a type is removed from it.
//!
//! Two arguments are tried. Either the filter can only become truer as the number of instances falls; or it is a choice
//! of cases, and in each case the node without the instance passes for certain. The second one covers "if a load balancer is
//! here, nothing else is": a node with the balancer holds nothing else, so without it the node is empty.

use crate::language::syntax::Comparison;
use crate::model::columns::Case;
use crate::model::local::Local;
use crate::model::{Relation, Row};
use crate::solve::boxes::tighten;

/// A filter with more cases than this is not looked at.
const CASES_MAX: usize = 64;

/// The contents of a node are looked at in at most this many cases.
const COVER_MAX: usize = 16;

/// How a number changes as the number of instances of one type rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trend {
    Constant,
    Rising,
    Falling,
    Unknown,
}

impl Trend {
    fn reversed(self) -> Self {
        match self {
            Self::Rising => Self::Falling,
            Self::Falling => Self::Rising,
            Self::Constant | Self::Unknown => self,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Constant, other) => other,
            (this, Self::Constant) => this,
            (this, other) if this == other => this,
            _ => Self::Unknown,
        }
    }
}

/// How `number` changes with the number of instances of `kind`.
pub(super) fn trend(number: &Local, kind: usize) -> Trend {
    match number {
        Local::Integer(_) => Trend::Constant,
        Local::Count(counted) if *counted == kind => Trend::Rising,
        Local::Count(_) => Trend::Constant,
        Local::Add(parts) => parts.iter().fold(Trend::Constant, |all, part| all.and(trend(part, kind))),
        Local::Negate(inner) => trend(inner, kind).reversed(),
        Local::Multiply(left, right) => match (left.as_ref(), right.as_ref()) {
            (Local::Integer(factor), other) | (other, Local::Integer(factor)) => match factor.signum() {
                1 => trend(other, kind),
                -1 => trend(other, kind).reversed(),
                _ => Trend::Constant,
            },
            (left, right) => only_constant(&[trend(left, kind), trend(right, kind)]),
        },
        Local::Absolute(inner) => only_constant(&[trend(inner, kind)]),
        Local::Compare(operator, left, right) => {
            let (left, right) = (trend(left, kind), trend(right, kind));
            match operator {
                Comparison::AtLeast | Comparison::Greater => left.and(right.reversed()),
                Comparison::AtMost | Comparison::Less => right.and(left.reversed()),
                Comparison::Equal | Comparison::Different => only_constant(&[left, right]),
            }
        }
        Local::All(parts) | Local::Any(parts) => {
            parts.iter().fold(Trend::Constant, |all, part| all.and(truth_trend(part, kind)))
        }
        Local::Not(inner) => truth_trend(inner, kind).reversed(),
    }
}

/// How the truth of a number (whether it is not 0) changes.
fn truth_trend(number: &Local, kind: usize) -> Trend {
    match number {
        Local::Compare(..) | Local::All(_) | Local::Any(_) | Local::Not(_) | Local::Count(_) => trend(number, kind),
        _ => only_constant(&[trend(number, kind)]),
    }
}

fn only_constant(trends: &[Trend]) -> Trend {
    if trends.iter().all(|trend| *trend == Trend::Constant) { Trend::Constant } else { Trend::Unknown }
}

/// Whether every number in the range stands for true.
pub(super) fn surely((low, high): (i64, i64)) -> bool {
    low > 0 || high < 0
}

/// A part of a filter that must hold (or, if not `holds`, must not).
type Literal<'a> = (&'a Local, bool);

/// Whether each node that passes the filter and hosts an instance of `kind` passes without that instance, too.
pub(super) fn passes_without(filter: &Local, kind: usize, most: &[i64]) -> bool {
    if matches!(truth_trend(filter, kind), Trend::Constant | Trend::Falling) {
        return true;
    }
    let Some(cases) = cases(filter, true) else { return false };
    cases.iter().all(|case| {
        let mut bounds: Vec<(i64, i64)> = most.iter().map(|most| (0, *most)).collect();
        bounds[kind].0 = 1;
        let rows: Vec<Row> = case.iter().flat_map(rows).collect();
        if !tighten(&mut bounds, &rows) {
            return true;
        }
        let (mut least, mut most): (Vec<i64>, Vec<i64>) = bounds.into_iter().unzip();
        least[kind] -= 1;
        most[kind] -= 1;
        surely(filter.range(&least, &most))
            || case.iter().all(|(part, holds)| {
                let good = if *holds { Trend::Falling } else { Trend::Rising };
                let trend = truth_trend(part, kind);
                let range = part.range(&least, &most);
                trend == Trend::Constant || trend == good || if *holds { surely(range) } else { range == (0, 0) }
            })
    })
}

/// All nodes that pass the filters of a group, as cases that together cover them.
pub(super) fn covered(filters: &[Local], most: &[i64], sizes: &[Vec<i64>], room: &[i64]) -> Vec<Case> {
    let mut all: Vec<Vec<Literal<'_>>> = vec![Vec::new()];
    for filter in filters {
        let Some(own) = cases(filter, true) else { continue };
        // What makes too many cases is looked at as a whole, at each node.
        if all.len() * own.len() <= COVER_MAX {
            all = joined(&all, &own);
        }
    }
    let mut covered: Vec<Case> = Vec::new();
    for case in all {
        let mut bounds: Vec<(i64, i64)> = most.iter().map(|most| (0, *most)).collect();
        let rows: Vec<Row> = case.iter().flat_map(rows).collect();
        if !tighten(&mut bounds, &rows) {
            continue;
        }
        let most: Vec<i64> = bounds.into_iter().map(|(_, high)| high).collect();
        let mut case = Case { most, sizes: sizes.to_vec(), room: room.to_vec(), filters: Vec::new() };
        for row in rows {
            case.limit(&row, -1);
            if row.relation == Relation::Equal {
                case.limit(&row, 1);
            }
        }
        let nothing = vec![0_i64; case.most.len()];
        let open = filters.iter().filter(|filter| !surely(filter.range(&nothing, &case.most)));
        case.filters = open.cloned().collect();
        covered.push(case);
    }
    covered
}

impl Case {
    /// Takes `sign · Σ factor · count ≤ sign · amount` for a resource, if no factor is negative.
    fn limit(&mut self, row: &Row, sign: i64) {
        let factors: Vec<(usize, i64)> = row.terms.iter().map(|(kind, factor)| (*kind, sign * factor)).collect();
        let amount = sign * row.amount;
        if amount < 0 || factors.is_empty() || factors.iter().any(|(_, factor)| *factor < 0) {
            return;
        }
        for size in &mut self.sizes {
            size.push(0);
        }
        for (kind, factor) in factors {
            *self.sizes[kind].last_mut().expect("one was added") = factor;
        }
        self.room.push(amount);
    }
}

/// The filter as a choice of cases, each a conjunction of literals; `None` if there are too many.
fn cases(filter: &Local, holds: bool) -> Option<Vec<Vec<Literal<'_>>>> {
    let (parts, conjunction) = match filter {
        Local::Not(inner) => return cases(inner, !holds),
        Local::All(parts) => (parts, holds),
        Local::Any(parts) => (parts, !holds),
        _ => return Some(vec![vec![(filter, holds)]]),
    };
    let mut all: Vec<Vec<Literal<'_>>> = if conjunction { vec![Vec::new()] } else { Vec::new() };
    for part in parts {
        let own = cases(part, holds)?;
        if conjunction {
            all = joined(&all, &own);
        } else {
            all.extend(own);
        }
        if all.len() > CASES_MAX {
            return None;
        }
    }
    Some(all)
}

/// Each case of one list together with each of the other.
fn joined<'a>(some: &[Vec<Literal<'a>>], others: &[Vec<Literal<'a>>]) -> Vec<Vec<Literal<'a>>> {
    some.iter().flat_map(|case| others.iter().map(|more| [case.as_slice(), more].concat())).collect()
}

/// What a literal says about counts, as rows; nothing if it is not linear.
fn rows((part, holds): &Literal<'_>) -> Vec<Row> {
    let Local::Compare(operator, left, right) = part else { return Vec::new() };
    let (mut terms, mut constant) = (vec![], 0_i64);
    if !linear(left, 1, &mut terms, &mut constant) || !linear(right, -1, &mut terms, &mut constant) {
        return Vec::new();
    }
    terms.sort_unstable();
    terms.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
    terms.retain(|(_, factor)| *factor != 0);
    let operator = if *holds { *operator } else { opposite(*operator) };
    // left − right = Σ terms + constant, compared with 0.
    let at_least = |amount: i64| vec![Row { terms: terms.clone(), relation: Relation::AtLeast, amount }];
    let negated = || terms.iter().map(|(kind, factor)| (*kind, -factor)).collect();
    let at_most = |amount: i64| vec![Row { terms: negated(), relation: Relation::AtLeast, amount: -amount }];
    match operator {
        Comparison::AtLeast => at_least(-constant),
        Comparison::Greater => at_least(1 - constant),
        Comparison::AtMost => at_most(-constant),
        Comparison::Less => at_most(-1 - constant),
        Comparison::Equal => vec![Row { terms, relation: Relation::Equal, amount: -constant }],
        Comparison::Different => Vec::new(),
    }
}

fn opposite(operator: Comparison) -> Comparison {
    match operator {
        Comparison::AtMost => Comparison::Greater,
        Comparison::Less => Comparison::AtLeast,
        Comparison::AtLeast => Comparison::Less,
        Comparison::Greater => Comparison::AtMost,
        Comparison::Equal => Comparison::Different,
        Comparison::Different => Comparison::Equal,
    }
}

/// Adds `factor · number` to the terms; false if it is not linear or its numbers are large.
fn linear(number: &Local, factor: i64, terms: &mut Vec<(usize, i64)>, constant: &mut i64) -> bool {
    const LARGE: i64 = 1 << 30;
    match number {
        Local::Integer(value) if value.abs() < LARGE => {
            *constant += factor * value;
            constant.abs() < LARGE
        }
        Local::Count(kind) => {
            terms.push((*kind, factor));
            true
        }
        Local::Add(parts) => parts.iter().all(|part| linear(part, factor, terms, constant)),
        Local::Negate(inner) => linear(inner, -factor, terms, constant),
        Local::Multiply(left, right) => match (left.as_ref(), right.as_ref()) {
            (Local::Integer(value), other) | (other, Local::Integer(value)) if value.abs() < LARGE => {
                let factor = factor.saturating_mul(*value);
                factor.abs() < LARGE && linear(other, factor, terms, constant)
            }
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(kind: usize) -> Box<Local> {
        Box::new(Local::Count(kind))
    }

    fn compare(operator: Comparison, left: Local, right: i64) -> Local {
        Local::Compare(operator, Box::new(left), Box::new(Local::Integer(right)))
    }

    fn sum() -> Local {
        Local::Add(vec![Local::Count(0), Local::Count(1), Local::Count(2)])
    }

    /// Type 0 is alone on its node.
    fn alone() -> Local {
        let here = compare(Comparison::Greater, Local::Count(0), 0);
        Local::Any(vec![Local::Not(Box::new(here)), compare(Comparison::Equal, sum(), 1)])
    }

    #[test]
    fn a_component_that_is_alone_can_leave_and_so_can_others() {
        for kind in 0..3 {
            assert!(passes_without(&alone(), kind, &[3, 3, 3]));
        }
    }

    #[test]
    fn an_upper_limit_lets_everything_leave_and_a_lower_one_nothing() {
        assert!(passes_without(&compare(Comparison::AtMost, sum(), 2), 1, &[3, 3, 3]));
        assert!(!passes_without(&compare(Comparison::AtLeast, sum(), 2), 1, &[3, 3, 3]));
        assert!(!passes_without(&compare(Comparison::Different, sum(), 1), 1, &[3, 3, 3]));
    }

    #[test]
    fn what_another_type_needs_beside_it_cannot_leave() {
        let needs = Local::Any(vec![
            compare(Comparison::Equal, Local::Count(0), 0),
            compare(Comparison::AtLeast, Local::Count(1), 1),
        ]);
        assert!(passes_without(&needs, 0, &[3, 3, 3]));
        assert!(!passes_without(&needs, 1, &[3, 3, 3]));
        assert!(passes_without(&needs, 2, &[3, 3, 3]));
    }

    #[test]
    fn every_answer_agrees_with_trying_all_nodes() {
        let difference = Local::Add(vec![Local::Count(0), Local::Negate(count(1))]);
        let product = Local::Multiply(count(0), count(1));
        let size = Local::Absolute(Box::new(difference.clone()));
        let mut filters = vec![alone()];
        for operator in [Comparison::AtMost, Comparison::Less, Comparison::Equal, Comparison::Different] {
            for number in [sum(), difference.clone(), product.clone(), size.clone()] {
                for amount in 0..3 {
                    let filter = compare(operator, number.clone(), amount);
                    filters.push(Local::Not(Box::new(filter.clone())));
                    filters.push(Local::Any(vec![alone(), filter.clone()]));
                    filters.push(Local::All(vec![alone(), filter.clone()]));
                    filters.push(filter);
                }
            }
        }
        for filter in filters {
            for kind in 0..3 {
                let mut really = true;
                for node in 0..27 {
                    let mut counts = [node / 9, node / 3 % 3, node % 3];
                    if counts[kind] > 0 && filter.evaluate(&counts) != 0 {
                        counts[kind] -= 1;
                        really &= filter.evaluate(&counts) != 0;
                    }
                }
                // It may fail to see that something can leave, but never the other way round.
                assert!(really || !passes_without(&filter, kind, &[2, 2, 2]), "{filter:?} without {kind}");
            }
        }
    }
}
