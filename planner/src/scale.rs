//! How many instances a load needs: the arithmetic behind autoscaling.
//!
//! Each component handles so many requests at a time; a request to the application makes so many requests to it. The
//! counts become ordinary demands, and the planner finds where the instances go.

use std::collections::BTreeMap;

/// What one instance of a component can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    pub component: String,
    /// The most simultaneous requests that one instance handles; `None` is no limit.
    pub load_max: Option<u64>,
    /// Requests to this component for each request to the application.
    pub factor: u64,
}

/// A load that cannot be turned into a count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error("{0}: the maximal load of an instance is 0, expected at least 1")]
    NoCapacity(String),
    #[error("{0}: the load is too large to compute with")]
    TooLarge(String),
}

/// The number of instances of each component under a load; at least one of each.
///
/// A component listed in `own` has that load, whatever the application's.
pub fn instances(
    load: u64,
    components: &[Load],
    own: &BTreeMap<String, u64>,
) -> Result<BTreeMap<String, u64>, LoadError> {
    let mut counts = BTreeMap::new();
    for described in components {
        let name = &described.component;
        let requests = match own.get(name) {
            Some(requests) => *requests,
            None => load.checked_mul(described.factor).ok_or_else(|| LoadError::TooLarge(name.clone()))?,
        };
        let count = match described.load_max {
            None => 1,
            Some(0) => return Err(LoadError::NoCapacity(name.clone())),
            Some(most) => requests.div_ceil(most).max(1),
        };
        counts.insert(name.clone(), count);
    }
    Ok(counts)
}

/// The counts as constraints of the specification language, one each.
pub fn constraints(counts: &BTreeMap<String, u64>) -> Vec<String> {
    counts.iter().map(|(component, count)| format!("{component} = {count}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(component: &str, load_max: u64, factor: u64) -> Load {
        Load { component: component.to_owned(), load_max: Some(load_max), factor }
    }

    #[test]
    fn counts_grow_with_the_load_and_never_fall_below_one() {
        let components = [load("Parser", 40_000, 1), load("Text", 15_000, 1), load("Analyzer", 70_000, 5)];
        let at = |requests| instances(requests, &components, &BTreeMap::new()).unwrap();
        let expect = |parser, text, analyzer| {
            BTreeMap::from([
                ("Parser".to_owned(), parser),
                ("Text".to_owned(), text),
                ("Analyzer".to_owned(), analyzer),
            ])
        };
        assert_eq!(at(0), expect(1, 1, 1));
        assert_eq!(at(10_000), expect(1, 1, 1));
        assert_eq!(at(20_000), expect(1, 2, 2));
        assert_eq!(at(50_000), expect(2, 4, 4));
        assert_eq!(at(80_000), expect(2, 6, 6));
    }

    #[test]
    fn a_component_can_have_a_load_of_its_own_and_no_limit() {
        let components = [load("Scanner", 13_000, 1), Load { load_max: None, ..load("Receiver", 1, 1) }];
        let own = BTreeMap::from([("Scanner".to_owned(), 52_000)]);
        let counts = instances(20_000, &components, &own).unwrap();
        assert_eq!(counts, BTreeMap::from([("Scanner".to_owned(), 4), ("Receiver".to_owned(), 1)]));
        assert_eq!(constraints(&counts), ["Receiver = 1", "Scanner = 4"]);
    }

    #[test]
    fn loads_that_make_no_sense_are_refused() {
        let nothing = BTreeMap::new();
        assert_eq!(instances(1, &[load("A", 0, 1)], &nothing), Err(LoadError::NoCapacity("A".to_owned())));
        assert_eq!(instances(u64::MAX, &[load("A", 1, 2)], &nothing), Err(LoadError::TooLarge("A".to_owned())));
    }
}
