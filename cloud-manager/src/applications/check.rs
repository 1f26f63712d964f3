//! Compares the manager's records with what was applied. What is on the machines is compared by their agents.

use super::{present::Present, state::ApplicationState};
use crate::document::{Component, ComponentStatus, quoted, reason};
use application::{Difference, How, Key};
use std::collections::{BTreeMap, BTreeSet};

/// What is missing from an application, or from some of its components, or exists and was not requested.
pub fn records(present: &Present, state: &ApplicationState, keys: Option<&BTreeSet<Key>>) -> Vec<String> {
    let mut difference = Difference::between(&present.found(state), &state.expansion);
    if let Some(keys) = keys {
        difference = difference.about(keys);
    }
    let line = |what: &str, key: &Key, how: &How| match how {
        How::Added => format!("{what}{key} is missing"),
        How::Removed => format!("{what}{key} was not requested"),
        How::Replaced(why) | How::Adjusted(why) => {
            format!("{what}{key} differs from what was applied: {}", why.join(", "))
        }
    };
    let vms = difference.vms.iter().map(|(key, how)| line("vm ", key, how));
    let components = difference.components.iter().map(|(key, how)| line("", key, how));
    let bound = difference.bound.iter().map(|it| format!("{it} is missing"));
    let unbound = difference.unbound.iter().map(|it| format!("{it} was not requested"));
    vms.chain(components).chain(bound).chain(unbound).collect()
}

/// Why a component is not started although it should be, and what to do; `None` if it is as expected.
pub fn not_started(component: &Component) -> Option<String> {
    let Component { name, state, failed_operation, failure, expected, leaving, waits_for, .. } = component;
    if *leaving || *state == ComponentStatus::Started {
        return None;
    }
    if let Some(operation) = failed_operation {
        let because = reason::first(Some(operation), failure.as_deref().unwrap_or_default());
        let because = if because.is_empty() { because } else { format!(": {because}") };
        return Some(format!("{operation} failed{because} (holdfast component retry {})", quoted(name)));
    }
    let waits = if waits_for.is_empty() { String::new() } else { format!("; it waits for {}", waits_for.join(", ")) };
    expected.then(|| format!("is {state}, not started{waits}"))
}

/// Components that are down although nothing has to be changed, and why. As long as a change makes progress, a component
/// that has not failed may still start.
pub fn late<'a>(components: impl Iterator<Item = &'a Component>, is_quiet: bool) -> BTreeMap<String, String> {
    let late = components.filter(|it| it.failed_operation.is_some() || is_quiet);
    late.filter_map(|it| Some((it.name.clone(), not_started(it)?))).collect()
}
