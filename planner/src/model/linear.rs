//! Linear forms over whole-numbered variables, and formulas built from them.

use std::collections::BTreeMap;

/// `constant + Σ factor · variable`. Wide numbers, so that no requirements can overflow them silently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Linear {
    pub(crate) constant: i128,
    pub(crate) terms: BTreeMap<usize, i128>,
}

impl Linear {
    pub(crate) fn constant(value: i128) -> Self {
        Self { constant: value, terms: BTreeMap::new() }
    }

    pub(crate) fn variable(variable: usize) -> Self {
        Self { constant: 0, terms: BTreeMap::from([(variable, 1)]) }
    }

    pub(crate) fn plus(mut self, other: &Self, factor: i128) -> Self {
        self.constant = self.constant.saturating_add(other.constant.saturating_mul(factor));
        for (variable, amount) in &other.terms {
            let sum = self.terms.entry(*variable).or_insert(0);
            *sum = sum.saturating_add(amount.saturating_mul(factor));
        }
        self.terms.retain(|_, amount| *amount != 0);
        self
    }

    pub(crate) fn add(mut self, constant: i128) -> Self {
        self.constant = self.constant.saturating_add(constant);
        self
    }

    pub(crate) fn times(&self, factor: i128) -> Self {
        Self::default().plus(self, factor)
    }

    /// Its value if it has no variables.
    pub(crate) fn fixed(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// Whether the solver can compute with its numbers exactly.
    pub(crate) fn is_exact(&self) -> bool {
        let limit = i128::from(super::EXACT_MAX);
        self.terms.values().chain([&self.constant]).all(|number| number.abs() < limit)
    }

    /// The least and greatest value within the given bounds of the variables.
    pub(crate) fn range(&self, bounds: &[(i64, i64)]) -> (i128, i128) {
        let (mut low, mut high) = (self.constant, self.constant);
        for (variable, amount) in &self.terms {
            let (lower, upper) = bounds[*variable];
            let ends = (amount.saturating_mul(lower.into()), amount.saturating_mul(upper.into()));
            low = low.saturating_add(ends.0.min(ends.1));
            high = high.saturating_add(ends.0.max(ends.1));
        }
        (low, high)
    }
}

/// A truth value about variables, with negation only at the leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Formula {
    Truth(bool),
    /// The form is zero or more.
    AtLeastZero(Linear),
    All(Vec<Formula>),
    Any(Vec<Formula>),
}

impl Formula {
    pub(crate) fn at_least(left: &Linear, right: &Linear) -> Self {
        Self::AtLeastZero(left.clone().plus(right, -1))
    }

    pub(crate) fn negated(&self) -> Self {
        match self {
            Self::Truth(value) => Self::Truth(!value),
            Self::AtLeastZero(form) => Self::AtLeastZero(form.times(-1).add(-1)),
            Self::All(parts) => Self::Any(parts.iter().map(Self::negated).collect()),
            Self::Any(parts) => Self::All(parts.iter().map(Self::negated).collect()),
        }
    }

    /// The same truth with everything decided that the bounds decide.
    pub(crate) fn settled(self, bounds: &[(i64, i64)]) -> Self {
        match self {
            Self::Truth(_) => self,
            Self::AtLeastZero(form) => {
                let (low, high) = form.range(bounds);
                if low >= 0 {
                    Self::Truth(true)
                } else if high < 0 {
                    Self::Truth(false)
                } else {
                    Self::AtLeastZero(form)
                }
            }
            Self::All(parts) => Self::joined(parts, bounds, true),
            Self::Any(parts) => Self::joined(parts, bounds, false),
        }
    }

    /// Joins parts with "and" (`all`) or "or".
    fn joined(parts: Vec<Self>, bounds: &[(i64, i64)], all: bool) -> Self {
        let mut kept = Vec::new();
        for part in parts {
            match part.settled(bounds) {
                Self::Truth(value) if value == all => {}
                Self::Truth(value) => return Self::Truth(value),
                Self::All(inner) if all => kept.extend(inner),
                Self::Any(inner) if !all => kept.extend(inner),
                other => kept.push(other),
            }
        }
        match kept.len() {
            0 => Self::Truth(all),
            1 => kept.remove(0),
            _ if all => Self::All(kept),
            _ => Self::Any(kept),
        }
    }
}
