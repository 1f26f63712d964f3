//! Bounds of variables, tightened by rows in exact whole numbers.

use crate::model::{Relation, Row};

/// Rounds of tightening; more would only help in rare chains, and the search goes on anyway.
const ROUNDS_MAX: usize = 20;

/// Tightens `bounds` until nothing changes; false if some variable has no value left.
pub(crate) fn tighten(bounds: &mut [(i64, i64)], rows: &[Row]) -> bool {
    if bounds.iter().any(|(low, high)| low > high) {
        return false;
    }
    for _ in 0..ROUNDS_MAX {
        let mut changed = false;
        for row in rows {
            match tighten_by(bounds, row, 1) {
                None => return false,
                Some(some) => changed |= some,
            }
            if row.relation == Relation::Equal {
                match tighten_by(bounds, row, -1) {
                    None => return false,
                    Some(some) => changed |= some,
                }
            }
        }
        if !changed {
            break;
        }
    }
    true
}

/// Uses `sign · (Σ factor · variable − amount) >= 0`; `None` if it cannot hold.
fn tighten_by(bounds: &mut [(i64, i64)], row: &Row, sign: i128) -> Option<bool> {
    let most = |bounds: &[(i64, i64)], variable: usize, factor: i128| -> i128 {
        let (low, high) = bounds[variable];
        (factor * i128::from(low)).max(factor * i128::from(high))
    };
    let mut slack = -sign * i128::from(row.amount);
    for (variable, factor) in &row.terms {
        slack += most(bounds, *variable, sign * i128::from(*factor));
    }
    if slack < 0 {
        return None;
    }
    let mut changed = false;
    for (variable, factor) in &row.terms {
        let factor = sign * i128::from(*factor);
        let (low, high) = bounds[*variable];
        // The variable may fall short of its best end by at most slack / |factor|.
        let reach = i64::try_from(slack / factor.abs()).unwrap_or(i64::MAX);
        if factor > 0 && high.saturating_sub(reach) > low {
            bounds[*variable].0 = high - reach;
            changed = true;
        } else if factor < 0 && low.saturating_add(reach) < high {
            bounds[*variable].1 = low + reach;
            changed = true;
        }
    }
    Some(changed)
}
