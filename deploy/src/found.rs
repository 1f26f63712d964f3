//! An application as it is found, beside what was applied: somebody may have added or removed something by hand, and a VM
//! may have been lost with all that was on it.

use crate::expansion::{Component, Expansion, Key, Reference};
use protocol::{Name, Wire};
use std::collections::{BTreeMap, BTreeSet};

/// What the manager has, of all applications.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// VMs.
    pub vms: BTreeSet<Name>,
    /// Components, and the VM of each.
    pub components: BTreeMap<Name, Name>,
    /// Bindings.
    pub bindings: BTreeSet<Wire>,
}

impl Expansion {
    /// What of it there really is. What somebody added under its name belongs to it, too: to be removed, if it is not
    /// wanted.
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
            // Of what nobody applied it is only known that it is there.
            expansion.definitions.entry(key.group.clone()).or_default();
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
        let older = self.older.iter().filter(|(key, _)| expansion.components.contains_key(*key));
        expansion.older = older.map(|(key, it)| (key.clone(), it.clone())).collect();
        for component in expansion.components.values_mut() {
            component.bound.values_mut().for_each(|providers| providers.sort());
        }
        expansion
    }
}
