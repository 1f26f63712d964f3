//! What becomes of each component of an application, in one word, and why.

use super::targets::Target;
use crate::document::quoted;
use crate::document::{ComponentFate, DataEffect, DataFate, Fate, Forecast};
use application::{Difference, How, Key};
use std::collections::{BTreeMap, BTreeSet};

/// What becomes of each component. The forecast says which of those that stay stop on the way.
pub(super) fn fates(
    target: &Target,
    difference: &Difference,
    forecast: &Forecast,
    data: &[DataEffect],
) -> BTreeMap<Key, ComponentFate> {
    let application = &target.after.application;
    let kept: BTreeSet<&str> =
        data.iter().filter(|it| it.fate == DataFate::Kept).map(|it| it.component.as_str()).collect();
    // Names are shortened where a plan is about one application only.
    let mut stops: BTreeSet<&str> = forecast.stopped.iter().map(String::as_str).collect();
    if forecast.not_simulated.is_some() {
        stops.extend(forecast.may_stop.iter().map(String::as_str));
    }
    let mut fates = BTreeMap::new();
    for key in target.before.components.keys().chain(target.after.components.keys()) {
        let name = key.scoped(application);
        let stops = stops.contains(name.as_str()) || stops.contains(key.to_string().as_str());
        let (is, why) = match difference.components.get(key) {
            Some(How::Added) => (Fate::Added, Vec::new()),
            Some(How::Removed) => (Fate::Removed, Vec::new()),
            Some(How::Replaced(why)) => {
                let vm = |it: &application::Expansion| it.components.get(key).map(|it| it.vm.clone());
                let is = if vm(&target.before) == vm(&target.after) { Fate::Replaced } else { Fate::Moved };
                (is, why.clone())
            }
            Some(How::Adjusted(why)) if !stops && !target.late_restarts.contains(key) => {
                (told(target, key), why.clone())
            }
            _ => match target.restarts.get(key) {
                Some(why) => (Fate::Restarted, why.clone()),
                None if target.late_restarts.contains(key) => {
                    (Fate::Restarted, vec!["its bindings change, and its type says rebind: restart".into()])
                }
                None if stops => {
                    let mut why = match difference.components.get(key) {
                        Some(How::Adjusted(why)) => why.clone(),
                        _ => Vec::new(),
                    };
                    why.push(because_of_providers(target, difference, key));
                    (Fate::Restarted, why)
                }
                None if is_told(difference, key) => (told(target, key), vec!["its bindings change".into()]),
                None => (Fate::Untouched, Vec::new()),
            },
        };
        fates.insert(key.clone(), ComponentFate { is, data_kept: kept.contains(name.as_str()), why });
    }
    fates
}

/// Components that run on and get or lose bindings, and whose type says that only a restart tells them. The forecast says
/// which stop anyway.
pub(super) fn late_restarts(target: &Target, forecast: &Forecast) -> Vec<Key> {
    let difference = Difference::between(&target.before, &target.after);
    let says_so = |key: &&Key| {
        let definition = target.after.definition_of(key);
        definition.is_some_and(|it| matches!(it.recipe.operations.rebind, Some(recipe::Rebind::Restart)))
    };
    let stays = |key: &&Key| target.before.components.contains_key(key) && target.after.components.contains_key(key);
    let runs_on = |key: &&Key| {
        let names = [key.scoped(&target.after.application).to_string(), key.to_string()];
        let stops = if forecast.not_simulated.is_some() { &forecast.may_stop } else { &forecast.stopped };
        !names.iter().any(|it| stops.contains(it))
    };
    let late = target.after.components.keys().filter(|key| is_told(&difference, key)).filter(stays);
    late.filter(says_so).filter(runs_on).cloned().collect()
}

/// Remarks on components that run on without being told of their new bindings: their type has no way to tell them.
pub(super) fn not_told(target: &Target, fates: &BTreeMap<Key, ComponentFate>, difference: &Difference) -> Vec<String> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, _) in fates.iter().filter(|(_, fate)| fate.is == Fate::Told) {
        let Some(definition) = target.after.definition_of(key) else { continue };
        if !definition.recipe.rebinds() && is_told(difference, key) {
            groups
                .entry(definition.type_name.clone())
                .or_default()
                .push(key.scoped(&target.after.application).to_string());
        }
    }
    let remark = |(type_name, names): (String, Vec<String>)| {
        let commands: Vec<String> = names.iter().map(|it| quoted(it)).collect();
        format!(
            "{} {} not told of the changed bindings while running, because type `{type_name}` has neither `rebind` nor \
             `reload` (holdfast component restart {})",
            names.join(", "),
            if names.len() == 1 { "is" } else { "are" },
            commands.join(" ")
        )
    };
    groups.into_iter().map(remark).collect()
}

/// How a running component is told of new bindings.
fn told(target: &Target, key: &Key) -> Fate {
    let operations = target.after.definition_of(key).map(|it| &it.recipe.operations);
    let reloads = operations.is_some_and(|it| it.rebind.is_none() && it.reload.is_some());
    if reloads { Fate::Reloaded } else { Fate::Told }
}

/// Whether a component gets or loses a binding.
fn is_told(difference: &Difference, key: &Key) -> bool {
    difference.bound.iter().chain(&difference.unbound).any(|it| it.client == *key)
}

/// Which of its providers make a component stop for a while.
fn because_of_providers(target: &Target, difference: &Difference, key: &Key) -> String {
    let bound = target.after.components.get(key).into_iter().flat_map(|it| it.bound.values().flatten());
    let changed = bound.filter(|it| {
        it.application.is_none()
            && (matches!(difference.components.get(&it.key), Some(How::Replaced(_) | How::Added))
                || target.restarts.contains_key(&it.key))
    });
    let names: BTreeSet<String> = changed.map(|it| it.key.to_string()).collect();
    match names.is_empty() {
        true => "a provider that it depends on stops for a while".into(),
        false => format!("it depends on {}", names.into_iter().collect::<Vec<_>>().join(", ")),
    }
}
