//! Formulas and non-linear numbers as rows, with auxiliary variables where they are needed.

use super::compile::Compiler;
use super::linear::{Formula, Linear};
use super::{Relation, Row};

const EXACT_MAX: i128 = super::EXACT_MAX as i128 - 1;

impl Compiler<'_> {
    /// Demands that the formula holds.
    pub(super) fn assert(&mut self, formula: Formula) {
        match formula.settled(&self.bounds) {
            Formula::Truth(true) => {}
            Formula::Truth(false) => self.row(&Linear::constant(-1), Relation::AtLeast),
            Formula::AtLeastZero(form) => self.row(&form, Relation::AtLeast),
            Formula::All(parts) => {
                // `a = b` arrives as two inequalities; one row says the same and says it better.
                if let [Formula::AtLeastZero(one), Formula::AtLeastZero(other)] = parts.as_slice()
                    && one.times(-1) == *other
                {
                    return self.row(one, Relation::Equal);
                }
                parts.into_iter().for_each(|part| self.assert(part));
            }
            Formula::Any(parts) => self.any(&Linear::constant(1), &parts),
        }
    }

    /// Demands the formula wherever `guard` (a form that is 0 or 1) is 1.
    fn imply(&mut self, guard: &Linear, formula: Formula) {
        match formula.settled(&self.bounds) {
            Formula::Truth(true) => {}
            Formula::Truth(false) => self.row(&guard.times(-1), Relation::AtLeast),
            Formula::AtLeastZero(form) => {
                let (low, _) = form.range(&self.bounds);
                // form + |low| · (1 - guard) >= 0
                self.row(&form.add(-low).plus(guard, low), Relation::AtLeast);
            }
            Formula::All(parts) => parts.into_iter().for_each(|part| self.imply(guard, part)),
            Formula::Any(parts) => self.any(guard, &parts),
        }
    }

    fn any(&mut self, guard: &Linear, parts: &[Formula]) {
        let mut some = guard.times(-1);
        for part in parts {
            let choice = Linear::variable(self.auxiliary(0, 1));
            self.imply(&choice, part.clone());
            some = some.plus(&choice, 1);
        }
        self.row(&some, Relation::AtLeast);
    }

    /// A form that is 1 exactly where the formula holds and 0 elsewhere.
    pub(crate) fn reified(&mut self, formula: Formula) -> Linear {
        let formula = formula.settled(&self.bounds);
        if let Formula::Truth(value) = formula {
            return Linear::constant(i128::from(value));
        }
        let truth = Linear::variable(self.auxiliary(0, 1));
        self.imply(&truth, formula.clone());
        let falsehood = truth.times(-1).add(1);
        self.imply(&falsehood, formula.negated());
        truth
    }

    pub(crate) fn absolute(&mut self, form: &Linear) -> Linear {
        let (low, high) = form.range(&self.bounds);
        if low >= 0 {
            return form.clone();
        }
        if high <= 0 {
            return form.times(-1);
        }
        let far = high.max(-low);
        let size = Linear::variable(self.auxiliary(0, far));
        let positive = Linear::variable(self.auxiliary(0, 1));
        self.row(&size.clone().plus(form, -1), Relation::AtLeast);
        self.row(&size.clone().plus(form, 1), Relation::AtLeast);
        let negative = positive.times(-1).add(1);
        self.imply(&positive, Formula::at_least(form, &size));
        self.imply(&negative, Formula::at_least(&form.times(-1), &size));
        size
    }

    /// The lesser of a form and a number.
    pub(super) fn least(&mut self, form: &Linear, most: i128) -> Linear {
        let (low, high) = form.range(&self.bounds);
        if high <= most {
            return form.clone();
        }
        if low >= most {
            return Linear::constant(most);
        }
        let least = Linear::variable(self.auxiliary(low, most));
        let bounded = Linear::variable(self.auxiliary(0, 1));
        self.row(&form.clone().plus(&least, -1), Relation::AtLeast);
        let free = bounded.times(-1).add(1);
        self.imply(&bounded, Formula::at_least(&least, &Linear::constant(most)));
        self.imply(&free, Formula::at_least(&least, form));
        least
    }

    /// The product of two forms: the one with the smaller range is written in binary, each digit times the other is a
    /// variable of its own.
    pub(crate) fn product(&mut self, left: &Linear, right: &Linear) -> Linear {
        if let Some(value) = left.fixed() {
            return right.times(value);
        }
        if let Some(value) = right.fixed() {
            return left.times(value);
        }
        let width = |form: &Linear, bounds: &[(i64, i64)]| {
            let (low, high) = form.range(bounds);
            high.saturating_sub(low)
        };
        let (short, long) =
            if width(left, &self.bounds) <= width(right, &self.bounds) { (left, right) } else { (right, left) };
        let (start, end) = short.range(&self.bounds);
        let (low, high) = long.range(&self.bounds);
        if start <= -EXACT_MAX || end >= EXACT_MAX || low <= -EXACT_MAX || high >= EXACT_MAX {
            self.too_large = true;
            return Linear::default();
        }
        let mut product = long.times(start);
        let mut digits = short.clone().add(-start);
        let mut weight = 1_i128;
        while weight <= end - start {
            let digit = Linear::variable(self.auxiliary(0, 1));
            digits = digits.plus(&digit, -weight);
            let part = Linear::variable(self.auxiliary(low.min(0), high.max(0)));
            let off = digit.times(-1).add(1);
            let zero = Linear::default();
            self.imply(&digit, Formula::All(vec![Formula::at_least(&part, long), Formula::at_least(long, &part)]));
            self.imply(&off, Formula::All(vec![Formula::at_least(&part, &zero), Formula::at_least(&zero, &part)]));
            product = product.plus(&part, weight);
            weight *= 2;
        }
        self.row(&digits, Relation::Equal);
        product
    }

    /// A new variable that is no measure.
    pub(crate) fn auxiliary(&mut self, low: i128, high: i128) -> usize {
        let bounds = (self.exact(low), self.exact(high));
        self.bounds.push(bounds);
        self.measures.push(None);
        self.bounds.len() - 1
    }

    pub(crate) fn row(&mut self, form: &Linear, relation: Relation) {
        let terms: Vec<(usize, i64)> =
            form.terms.iter().map(|(variable, amount)| (*variable, self.exact(*amount))).collect();
        let amount = self.exact(form.constant.saturating_neg());
        self.rows.push(Row { terms, relation, amount });
    }

    /// Notes when a number is beyond what the solver computes with exactly.
    fn exact(&mut self, value: i128) -> i64 {
        self.too_large |= value.saturating_abs() > EXACT_MAX;
        i64::try_from(value.clamp(-EXACT_MAX, EXACT_MAX)).expect("it was clamped")
    }
}
