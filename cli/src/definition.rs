//! Whether components are what was applied under their names: somebody may have put another there by hand.
//!
//! The manager tells a number for each definition. Only where it is another than that of what was applied is the definition
//! asked for, and once for all components that are alike.

use crate::{application_file::no_secrets, operator::Operator};
use application::{Definition, Expansion, Key, SecretTexts};
use cloud_manager::{
    client::segment,
    document::{
        EditDocument, NewChange, NewComponent, Status,
        change::usual_patience,
        digest::{digest, with_needs},
    },
};
use protocol::{Edit, Kind, Name, Need};
use std::{collections::BTreeMap, sync::Arc};

/// What components are whose numbers are not those of what was applied. One that has gone by now is left out.
pub(crate) fn doubtful<'a>(
    operator: &Operator,
    status: &Status,
    applied: impl Iterator<Item = &'a Expansion>,
) -> BTreeMap<Name, Kind> {
    let mut applied: BTreeMap<&str, Numbers<'_>> =
        applied.map(|it| (it.application.as_str(), Numbers::new(it))).collect();
    // By group and number.
    let mut alike: BTreeMap<(&str, u64), (&Definition, Vec<Name>)> = BTreeMap::new();
    for component in status.components.iter().filter(|it| !it.leaving) {
        let Some((application, key)) = component.name.split_once('/') else { continue };
        let (Some(numbers), Ok(key)) = (applied.get_mut(application), key.parse::<Key>()) else { continue };
        let (Some(number), Ok(name)) = (component.definition, Name::new(&component.name)) else { continue };
        let expansion = numbers.expansion;
        let (Some(wanted), Some(definition)) = (numbers.of(&key), expansion.definition_of(&key)) else { continue };
        if number != wanted {
            let group = component.name.split('[').next().unwrap_or_default();
            alike.entry((group, number)).or_insert((definition, Vec::new())).1.push(name);
        }
    }
    let first = |names: &Vec<Name>| names.first().map(Name::as_str).unwrap_or_default().to_owned();
    let path = |names: &Vec<Name>| format!("/v1/components/{}/definition", segment(&first(names)));
    let answers = operator.texts(alike.values().map(|(_, names)| path(names)).collect());
    let mut kinds = BTreeMap::new();
    for ((definition, names), answer) in alike.into_values().zip(answers) {
        let Some(kind) = answer.ok().and_then(|text| read(&text, definition)) else { continue };
        kinds.extend(names.into_iter().map(|name| (name, kind.clone())));
    }
    kinds
}

/// The numbers of what was applied.
struct Numbers<'a> {
    expansion: &'a Expansion,
    secrets: SecretTexts,
    groups: BTreeMap<&'a Name, u64>,
}

impl<'a> Numbers<'a> {
    fn new(expansion: &'a Expansion) -> Self {
        Self { expansion, secrets: no_secrets(expansion), groups: BTreeMap::new() }
    }

    /// The number of a component, if there is to be one.
    fn of(&mut self, key: &Key) -> Option<u64> {
        let expansion: &'a Expansion = self.expansion;
        expansion.components.get(key)?;
        let reckon = |it: &Definition| digest(&it.kind(&self.secrets));
        let number = match (expansion.older.get(key), expansion.definitions.get_key_value(&key.group)) {
            (Some(older), _) => reckon(older),
            (None, Some((group, definition))) => *self.groups.entry(group).or_insert_with(|| reckon(definition)),
            (None, None) => return None,
        };
        let imports = expansion.definition_of(key)?.imports.keys();
        Some(with_needs(number, imports.map(|it| expansion.need(key, it).map_or(0, Need::number))))
    }
}

/// Reads a definition that is to be compared with one that leaves out what is as usual.
fn read(text: &str, wanted: &Definition) -> Option<Kind> {
    let component: NewComponent = serde_json::from_str(text).ok()?;
    let change = NewChange { edits: vec![EditDocument::AddComponent(component)], ..NewChange::default() };
    let (change, _) = change.read().ok()?;
    let Some(Edit::AddComponent { kind, .. }) = change.edits.into_iter().next() else { return None };
    let mut kind = Arc::unwrap_or_clone(kind);
    kind.patience.retain(|operation, it| wanted.patience.contains_key(operation) || *it != usual_patience(*operation));
    Some(kind)
}
