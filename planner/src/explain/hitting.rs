//! A smallest set that has a member in each of several sets.

use std::collections::BTreeSet;

/// More choices than this are not tried.
const CHOICES_MAX: u64 = 200_000;

/// What the search for a smallest hitting set found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    /// No smaller set has a member in each.
    Smallest(BTreeSet<usize>),
    /// Every set that has a member in each has at least as many members as asked.
    NoneBelow,
    /// The search took too long.
    Unknown,
}

/// A smallest set with fewer than `limit` members that meets every one of `sets`.
pub(super) fn smallest(sets: &[BTreeSet<usize>], limit: usize) -> Hit {
    let mut choices = CHOICES_MAX;
    for size in 0..limit {
        let mut chosen = BTreeSet::new();
        match choose(sets, size, &mut chosen, &mut choices) {
            Some(true) => return Hit::Smallest(chosen),
            Some(false) => {}
            None => return Hit::Unknown,
        }
    }
    Hit::NoneBelow
}

/// Adds up to `left` members to `chosen` so that it meets every set; nothing if that takes too long.
fn choose(sets: &[BTreeSet<usize>], left: usize, chosen: &mut BTreeSet<usize>, choices: &mut u64) -> Option<bool> {
    *choices = choices.checked_sub(1)?;
    let open = || sets.iter().filter(|set| set.is_disjoint(chosen));
    // Sets without a common member need a member each.
    let mut apart: BTreeSet<usize> = BTreeSet::new();
    let mut needed = 0;
    for set in open() {
        if set.is_disjoint(&apart) {
            apart.extend(set);
            needed += 1;
        }
    }
    if needed > left {
        return Some(false);
    }
    let Some(tightest) = open().min_by_key(|set| set.len()) else { return Some(true) };
    for member in tightest {
        chosen.insert(*member);
        if choose(sets, left - 1, chosen, choices)? {
            return Some(true);
        }
        chosen.remove(member);
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smallest_set_meets_each() {
        let sets = |lists: &[&[usize]]| -> Vec<BTreeSet<usize>> {
            lists.iter().map(|list| list.iter().copied().collect()).collect()
        };
        assert_eq!(smallest(&[], 1), Hit::Smallest(BTreeSet::new()));
        assert_eq!(smallest(&sets(&[&[1, 2], &[2, 3], &[4]]), 9), Hit::Smallest(BTreeSet::from([2, 4])));
        assert_eq!(smallest(&sets(&[&[1, 2], &[2, 3], &[4]]), 2), Hit::NoneBelow);
        // Nothing meets an empty set.
        assert_eq!(smallest(&sets(&[&[]]), 5), Hit::NoneBelow);
    }
}
