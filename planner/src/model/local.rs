//! Numbers and truth values about one node: what a quantifier over locations says about each of them.
//!
//! They are evaluated on a multiset of components, and on ranges of multisets, so that a search can turn back early.

use crate::language::syntax::Comparison;

/// A number about the contents of one node; truth is 0 or 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Local {
    Integer(i64),
    /// How many components of this type the node hosts.
    Count(usize),
    Add(Vec<Local>),
    Negate(Box<Local>),
    Multiply(Box<Local>, Box<Local>),
    Absolute(Box<Local>),
    Compare(Comparison, Box<Local>, Box<Local>),
    All(Vec<Local>),
    Any(Vec<Local>),
    Not(Box<Local>),
}

impl Local {
    /// Adds the types that the number depends on.
    pub(crate) fn add_types(&self, types: &mut std::collections::BTreeSet<usize>) {
        match self {
            Self::Integer(_) => {}
            Self::Count(kind) => {
                types.insert(*kind);
            }
            Self::Add(parts) | Self::All(parts) | Self::Any(parts) => {
                parts.iter().for_each(|part| part.add_types(types));
            }
            Self::Multiply(left, right) | Self::Compare(_, left, right) => {
                left.add_types(types);
                right.add_types(types);
            }
            Self::Negate(inner) | Self::Absolute(inner) | Self::Not(inner) => inner.add_types(types),
        }
    }

    pub(crate) fn evaluate(&self, counts: &[i64]) -> i64 {
        match self {
            Self::Integer(value) => *value,
            Self::Count(kind) => counts[*kind],
            Self::Add(parts) => parts.iter().fold(0, |sum, part| part.evaluate(counts).saturating_add(sum)),
            Self::Negate(inner) => inner.evaluate(counts).saturating_neg(),
            Self::Multiply(left, right) => left.evaluate(counts).saturating_mul(right.evaluate(counts)),
            Self::Absolute(inner) => inner.evaluate(counts).saturating_abs(),
            Self::Compare(operator, left, right) => {
                i64::from(operator.holds(left.evaluate(counts), right.evaluate(counts)))
            }
            Self::All(parts) => i64::from(parts.iter().all(|part| part.evaluate(counts) != 0)),
            Self::Any(parts) => i64::from(parts.iter().any(|part| part.evaluate(counts) != 0)),
            Self::Not(inner) => i64::from(inner.evaluate(counts) == 0),
        }
    }

    /// The least and greatest value over all counts between `least` and `most`; perhaps wider, never narrower.
    pub(crate) fn range(&self, least: &[i64], most: &[i64]) -> (i64, i64) {
        match self {
            Self::Integer(value) => (*value, *value),
            Self::Count(kind) => (least[*kind], most[*kind]),
            Self::Add(parts) => parts.iter().fold((0, 0), |sum, part| {
                let (low, high) = part.range(least, most);
                (low.saturating_add(sum.0), high.saturating_add(sum.1))
            }),
            Self::Negate(inner) => {
                let (low, high) = inner.range(least, most);
                (high.saturating_neg(), low.saturating_neg())
            }
            Self::Multiply(left, right) => {
                let (a, b) = left.range(least, most);
                let (c, d) = right.range(least, most);
                let corners = [a.saturating_mul(c), a.saturating_mul(d), b.saturating_mul(c), b.saturating_mul(d)];
                let low = corners.iter().copied().min().expect("there are four corners");
                let high = corners.iter().copied().max().expect("there are four corners");
                (low, high)
            }
            Self::Absolute(inner) => {
                let (low, high) = inner.range(least, most);
                let far = low.saturating_abs().max(high.saturating_abs());
                if low <= 0 && high >= 0 { (0, far) } else { (low.saturating_abs().min(high.saturating_abs()), far) }
            }
            Self::Compare(operator, left, right) => {
                compare_ranges(*operator, left.range(least, most), right.range(least, most))
            }
            Self::All(parts) => parts.iter().fold((1, 1), |all, part| {
                let (low, high) = truth_range(part.range(least, most));
                (all.0.min(low), all.1.min(high))
            }),
            Self::Any(parts) => parts.iter().fold((0, 0), |any, part| {
                let (low, high) = truth_range(part.range(least, most));
                (any.0.max(low), any.1.max(high))
            }),
            Self::Not(inner) => {
                let (low, high) = truth_range(inner.range(least, most));
                (1 - high, 1 - low)
            }
        }
    }
}

/// The truth values that a range of numbers can stand for.
fn truth_range((low, high): (i64, i64)) -> (i64, i64) {
    let surely = low > 0 || high < 0;
    let possibly = low != 0 || high != 0;
    (i64::from(surely), i64::from(possibly))
}

fn compare_ranges(operator: Comparison, (a, b): (i64, i64), (c, d): (i64, i64)) -> (i64, i64) {
    let (surely, possibly) = match operator {
        Comparison::AtMost => (b <= c, a <= d),
        Comparison::Less => (b < c, a < d),
        Comparison::AtLeast => (a >= d, b >= c),
        Comparison::Greater => (a > d, b > c),
        Comparison::Equal => (a == b && c == d && a == c, a <= d && c <= b),
        Comparison::Different => (a > d || b < c, !(a == b && c == d && a == c)),
    };
    (i64::from(surely), i64::from(possibly))
}
