//! Lower bounds that are certain, computed in whole numbers from multipliers of any origin.
//!
//! Multiply each row by its multiplier and add it to the goal: whatever the multipliers (non-negative where the row is
//! an inequality), the least value of the sum over all placements that merely respect the boxes and the number of nodes
//! is a lower bound of the goal. That least value splits into one choice for each variable and the best columns for
//! each group, so it is computed exactly. Floating point only chose the multipliers; rounding them costs sharpness,
//! never truth.

use crate::model::columns::Column;
use crate::model::{Model, Relation, Row};

/// Multipliers are whole multiples of one over this.
pub(crate) const SCALE: i128 = 1 << 36;

/// Multipliers beyond this are cut off.
const MULTIPLIER_MAX: f64 = 1e9;

#[expect(clippy::cast_possible_truncation, reason = "clamped first; anything is a valid multiplier")]
fn scaled(value: f64) -> i128 {
    let value = if value.is_nan() { 0.0 } else { value.clamp(-MULTIPLIER_MAX, MULTIPLIER_MAX) };
    (value * (1_u64 << 36) as f64).round() as i128
}

/// The goal, plus rows times multipliers, minus links times prices: everything but the columns.
#[derive(Clone, Debug)]
pub(crate) struct Relaxed {
    /// The least value of all that concerns rows and variables, scaled.
    pub(crate) fixed: i128,
    /// What one unit of each variable is worth to a column, scaled.
    pub(crate) prices: Vec<i128>,
}

impl Relaxed {
    /// From multipliers for the links of measures (by variable) and for rows; `None` if numbers become too large.
    pub(crate) fn new(
        model: &Model,
        objective: &[i64],
        bounds: &[(i64, i64)],
        rows: &[Row],
        link_multipliers: &[f64],
        row_multipliers: &[f64],
    ) -> Option<Self> {
        let mut worth: Vec<i128> = objective.iter().map(|factor| i128::from(*factor) * SCALE).collect();
        let mut fixed = 0_i128;
        for (row, multiplier) in rows.iter().zip(row_multipliers) {
            let mut multiplier = scaled(*multiplier);
            if row.relation == Relation::AtLeast {
                multiplier = multiplier.max(0);
            }
            if multiplier == 0 {
                continue;
            }
            fixed = add_product(fixed, multiplier, i128::from(row.amount))?;
            for (variable, factor) in &row.terms {
                worth[*variable] = add_product(worth[*variable], -multiplier, i128::from(*factor))?;
            }
        }
        let mut prices = vec![0_i128; worth.len()];
        for (variable, (low, high)) in bounds.iter().enumerate() {
            if model.measures[variable].is_some() {
                // A price that makes the variable itself free of charge, unless the engine wants it at a bound.
                let wanted = scaled(link_multipliers[variable]);
                let left = worth[variable] + wanted;
                let noise = SCALE >> 20;
                prices[variable] = if left.abs() <= noise { -worth[variable] } else { wanted };
            }
            let left = worth[variable] + prices[variable];
            fixed = add_product(fixed, left, i128::from(if left >= 0 { *low } else { *high }))?;
        }
        prices.iter().all(|price| price.abs() <= PRICE_MAX).then_some(Self { fixed, prices })
    }

    /// The bound when each group's best column is worth this much; `None` if numbers become too large.
    pub(crate) fn with_best(&self, model: &Model, best: &[i128]) -> Option<i128> {
        let mut groups = model.groups.iter().zip(best);
        groups.try_fold(self.fixed, |sum, (group, worth)| add_product(sum, -worth, i128::from(group.number())))
    }

    /// The bound over the given columns only, each used between its limits.
    pub(crate) fn over(&self, model: &Model, columns: &[Column], limits: &[(i64, i64)]) -> Over {
        let mut choices: Vec<Vec<(i128, i64)>> = vec![Vec::new(); model.groups.len()];
        let mut free: Vec<i64> = model.groups.iter().map(|group| group.number()).collect();
        let mut sum = Some(self.fixed);
        for (column, (low, high)) in columns.iter().zip(limits) {
            let worth = column.worth(&self.prices);
            sum = sum.and_then(|sum| add_product(sum, -worth, i128::from(*low)));
            free[column.group] -= low;
            choices[column.group].push((worth, high - low));
        }
        for (choices, free) in choices.iter_mut().zip(free) {
            choices.sort_unstable_by_key(|(worth, _)| std::cmp::Reverse(*worth));
            let mut free = free;
            for (worth, most) in choices {
                let used = (*most).min(free.max(0));
                sum = sum.and_then(|sum| add_product(sum, -*worth, i128::from(used)));
                free -= used;
            }
            if free != 0 {
                return Over::Nothing;
            }
        }
        sum.map_or(Over::TooLarge, Over::Bound)
    }
}

/// A bound over given columns.
pub(crate) enum Over {
    Bound(i128),
    /// The limits of the columns cannot be met.
    Nothing,
    /// Numbers became too large to say.
    TooLarge,
}

/// Prices beyond this could overflow when a column's worth is summed up.
const PRICE_MAX: i128 = 1 << 68;

fn add_product(sum: i128, a: i128, b: i128) -> Option<i128> {
    a.checked_mul(b)?.checked_add(sum)
}

/// A scaled bound as a whole number, rounded up: goals have whole values, multiples of `step` beyond `constant`.
pub(crate) fn rounded_up(scaled: i128, step: i128) -> i128 {
    let unit = SCALE * step;
    -((-scaled).div_euclid(unit)) * step
}
