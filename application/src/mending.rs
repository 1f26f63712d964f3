//! Reconciles some components of an application, while everything else stays as it is.

use crate::{
    difference::{Difference, How},
    expansion::{Expansion, Key, Reference},
};
use protocol::{Name, Need};
use std::collections::BTreeSet;

impl Expansion {
    /// The same expansion, with these components as they are wanted. Missing ones are added, with their VMs and with
    /// the bindings of both sides; unwanted ones are removed. A binding to a component that does not exist is omitted.
    #[must_use]
    pub fn mended(&self, wanted: &Self, chosen: &BTreeSet<Key>) -> Self {
        let mut mended = Self {
            vms: self.vms.clone(),
            definitions: self.definitions.clone(),
            choice: self.choice.clone(),
            ..Self::empty(self.application.clone())
        };
        mended.definitions.extend(wanted.definitions.clone());
        let comes = |it: &Reference| it.application.is_none() && chosen.contains(&it.key) && !self.has(&it.key);
        let keys: BTreeSet<&Key> = self.components.keys().chain(wanted.components.keys()).collect();
        for key in keys {
            let (found, right) = (self.components.get(key), wanted.components.get(key));
            let mut component = match (found, right) {
                (_, Some(right)) if chosen.contains(key) => right.clone(),
                (Some(found), _) if !chosen.contains(key) => found.clone(),
                _ => continue,
            };
            if chosen.contains(key) {
                let vm = wanted.vms.get(&component.vm).cloned().unwrap_or_default();
                mended.vms.entry(component.vm.clone()).or_insert(vm);
            } else {
                for (import, providers) in right.into_iter().flat_map(|it| &it.bound) {
                    let back = providers.iter().filter(|it| comes(it)).cloned();
                    component.bound.entry(import.clone()).or_default().extend(back);
                }
                let own = self.definition_of(key).filter(|it| Some(*it) != wanted.definition_of(key));
                mended.older.extend(own.map(|it| (key.clone(), it.clone())));
            }
            let stays = |it: &Reference| {
                let side = if chosen.contains(&it.key) { wanted } else { self };
                it.application.is_some() || side.has(&it.key)
            };
            for providers in component.bound.values_mut() {
                providers.retain(stays);
                providers.sort();
            }
            component.bound.retain(|_, providers| !providers.is_empty());
            mended.components.insert(key.clone(), component);
        }
        mended
    }

    /// The other components that these need in order to start, each with the component that needs it. `elsewhere` knows
    /// those of other applications.
    pub fn lacking(
        &self,
        wanted: &Self,
        chosen: &BTreeSet<Key>,
        elsewhere: impl Fn(&Name, &Key) -> bool,
    ) -> Vec<(Key, Reference)> {
        let mut lacking: Vec<(Key, Reference)> = Vec::new();
        let mut waiting: Vec<Key> = chosen.iter().cloned().collect();
        let mut seen = chosen.clone();
        while let Some(key) = waiting.pop() {
            for (import, providers) in wanted.components.get(&key).into_iter().flat_map(|it| &it.bound) {
                let need = wanted.need(&key, import).filter(|it| !matches!(it, Need::Weak(_)));
                let Some(need) = need else { continue };
                let is_there = |it: &Reference| match &it.application {
                    Some(application) => elsewhere(application, &it.key),
                    None => self.has(&it.key) || chosen.contains(&it.key),
                };
                let (there, missing): (Vec<&Reference>, Vec<&Reference>) =
                    providers.iter().partition(|it| is_there(it));
                if there.len() >= need.number() as usize {
                    continue;
                }
                for it in missing {
                    if it.application.is_none() && seen.insert(it.key.clone()) {
                        waiting.push(it.key.clone());
                    }
                    lacking.push((key.clone(), it.clone()));
                }
            }
        }
        lacking
    }

    fn has(&self, key: &Key) -> bool {
        self.components.contains_key(key)
    }
}

impl Difference {
    /// The part of it that concerns these components: they themselves, their bindings, and the clients of those that
    /// are added or removed.
    #[must_use]
    pub fn about(&self, chosen: &BTreeSet<Key>) -> Self {
        let moves = |it: &Reference| {
            let how = self.components.get(&it.key).filter(|_| it.application.is_none() && chosen.contains(&it.key));
            matches!(how, Some(How::Added | How::Removed))
        };
        let mut about = Self { bound: self.bound.clone(), unbound: self.unbound.clone(), ..Self::default() };
        let own = self.components.iter().filter(|(key, _)| chosen.contains(*key));
        about.components = own.map(|(key, how)| (key.clone(), how.clone())).collect();
        for bindings in [&mut about.bound, &mut about.unbound] {
            bindings.retain(|it| chosen.contains(&it.client) || moves(&it.provider));
        }
        about
    }

    /// How many things differ.
    pub fn count(&self) -> usize {
        self.vms.len() + self.components.len() + self.bound.len() + self.unbound.len()
    }
}
