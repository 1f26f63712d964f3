//! An application as it is found, compared with what was applied: something may have been added or removed by hand, and
//! a VM may have been lost with all its components.

use crate::expansion::{Component, Definition, Expansion, Import, Key, Reference, Secret};
use protocol::{Kind, Name, Wire};
use recipe::Recipe;
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

/// What the manager has, of all applications.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// VMs.
    pub vms: BTreeSet<Name>,
    /// Components, and the VM of each.
    pub components: BTreeMap<Name, Name>,
    /// Bindings.
    pub bindings: BTreeSet<Wire>,
    /// The definitions of components that may differ from what was applied.
    pub kinds: BTreeMap<Name, Kind>,
}

impl Expansion {
    /// The part of it that really exists. What was added by hand under its name belongs to it too: it is removed if it
    /// is not wanted.
    pub fn as_found(&self, found: &Found) -> Self {
        let prefix = format!("{}/", self.application);
        let own = |name: &Name| name.as_str().strip_prefix(&prefix)?.parse::<Key>().ok();
        let mut expansion = Self { definitions: self.definitions.clone(), ..Self::empty(self.application.clone()) };
        for key in found.vms.iter().filter_map(own) {
            let known = self.vms.get(&key).cloned().unwrap_or_default();
            expansion.vms.insert(key, known);
        }
        for (name, vm) in &found.components {
            let (Some(key), Some(vm)) = (own(name), own(vm)) else { continue };
            // Of what was never applied, only its existence is known.
            expansion.definitions.entry(key.group.clone()).or_default();
            let kind = found.kinds.get(name);
            let other = kind.and_then(|kind| self.definition_of(&key)?.as_found(kind));
            let own = other.or_else(|| self.older.get(&key).cloned());
            expansion.older.extend(own.map(|it| (key.clone(), it)));
            expansion.components.insert(key, Component { vm, bound: BTreeMap::new() });
        }
        for wire in &found.bindings {
            let Some(client) = own(&wire.client) else { continue };
            let provider = match own(&wire.provider) {
                Some(key) => Reference { application: None, key },
                None => match wire.provider.as_str().parse() {
                    Ok(reference) => reference,
                    Err(_) => continue,
                },
            };
            if let Some(component) = expansion.components.get_mut(&client) {
                component.bound.entry(wire.import.clone()).or_default().push(provider);
            }
        }
        for component in expansion.components.values_mut() {
            component.bound.values_mut().for_each(|providers| providers.sort());
        }
        expansion
    }
}

impl Definition {
    /// The definition of a component that should be this one. What only predictions use is assumed to be the same, and
    /// so are the texts of secrets, which are never shown; nothing, if it cannot be read.
    fn as_found(&self, kind: &Kind) -> Option<Self> {
        let mut recipe = Recipe::decode(&kind.recipe).ok()?;
        let secrets = mem::take(&mut recipe.secrets).into_keys().map(|parameter| {
            let unknown = || Secret { name: parameter.clone(), from: String::new(), place: String::new(), version: 0 };
            let secret = self.secrets.get(&parameter).cloned().unwrap_or_else(unknown);
            (parameter, secret)
        });
        let import = |it: &protocol::Import| Import { export: it.export.clone(), need: it.need, all: false };
        Some(Self {
            secrets: secrets.collect(),
            imports: kind.imports.iter().map(|(name, it)| (name.clone(), import(it))).collect(),
            exports: kind.exports.clone(),
            patience: kind.patience.clone(),
            recipe,
            ..self.clone()
        })
    }
}
