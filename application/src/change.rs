//! From a difference to the change that the manager is asked for.

use crate::{
    difference::{Difference, How, bindings_of},
    expansion::{Definition, Expansion, Key},
};
use protocol::{Change, Edit, Import, Kind, Name, Strategy, Wire};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The texts of secrets, by name.
pub type SecretTexts = BTreeMap<String, String>;

/// What the manager is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The change.
    pub change: Change,
    /// The cloud that creates each new VM, if there is one.
    pub clouds: BTreeMap<Name, String>,
}

impl Difference {
    /// The default strategy for this difference: down-then-up if a component is replaced under its own name, because
    /// two of one name may need the same port or file; otherwise up-then-down, so that clients can switch to what is
    /// new. If room is scarce, removals come first too.
    pub fn usual_strategy(&self, after: &Expansion) -> Strategy {
        let scarce = after.choice.as_ref().is_some_and(|it| it.scarce);
        match (self.replaces() || (scarce && self.removes()), self.adds() && self.removes()) {
            (true, _) => Strategy::DownThenUp,
            (false, true) => Strategy::UpThenDown,
            (false, false) => Strategy::Together,
        }
    }

    /// The edits that turn `before` into `after`. A component that is replaced keeps its bindings: those to its own
    /// providers, and those of its clients, also of clients in `others`. A secret that is not among the texts is
    /// omitted; its templates then fail.
    pub fn planned(
        &self,
        before: &Expansion,
        after: &Expansion,
        others: &[Expansion],
        strategy: Strategy,
        secrets: &SecretTexts,
    ) -> Planned {
        let application = &after.application;
        let mut edits = Vec::new();
        let mut clouds = BTreeMap::new();
        for (key, how) in &self.vms {
            let vm = key.scoped(application);
            if matches!(how, How::Removed | How::Replaced(_)) {
                edits.push(Edit::RemoveVm { vm: vm.clone() });
            }
            if matches!(how, How::Added | How::Replaced(_)) {
                clouds.extend(after.vms[key].cloud.clone().map(|cloud| (vm.clone(), cloud)));
                edits.push(Edit::AddVm { vm });
            }
        }
        let leaving_vm = |key: &Key| matches!(self.vms.get(key), Some(How::Removed | How::Replaced(_)));
        let replaced: BTreeSet<&Key> =
            self.components.iter().filter(|(_, how)| matches!(how, How::Replaced(_))).map(|(key, _)| key).collect();
        let mut kinds = Kinds { expansion: after, secrets, made: BTreeMap::new() };
        for (key, how) in &self.components {
            let component = key.scoped(application);
            if matches!(how, How::Removed | How::Replaced(_)) && !leaving_vm(&before.components[key].vm) {
                edits.push(Edit::RemoveComponent { component: component.clone() });
            }
            match how {
                How::Removed => {}
                How::Added | How::Replaced(_) => {
                    let vm = after.components[key].vm.scoped(application);
                    edits.push(Edit::AddComponent { component, vm, kind: kinds.kind(key) });
                }
                How::Adjusted(_) => edits.extend(adjusted(before, after, key)),
            }
        }
        let goes = |key: &Key| matches!(self.components.get(key), Some(How::Removed | How::Replaced(_)));
        for it in &self.unbound {
            // The bindings of a removed component are removed with it.
            let provider_goes = it.provider.application.is_none() && goes(&it.provider.key);
            if !goes(&it.client) && !provider_goes {
                edits.push(Edit::RemoveBinding(wire(application, it)));
            }
        }
        edits.extend(self.bound.iter().map(|it| Edit::AddBinding(wire(application, it))));
        if !replaced.is_empty() {
            let new: BTreeSet<&crate::difference::Binding> = self.bound.iter().collect();
            for key in after.components.keys() {
                let kept = bindings_of(after, key).into_iter().filter(|it| !new.contains(it));
                let moved = kept.filter(|it| {
                    replaced.contains(key) || (it.provider.application.is_none() && replaced.contains(&it.provider.key))
                });
                edits.extend(moved.map(|it| Edit::AddBinding(wire(application, &it))));
            }
            for other in others.iter().filter(|it| it.application != *application) {
                let bindings = other.components.keys().flat_map(|key| bindings_of(other, key));
                let ours = bindings.filter(|it| {
                    it.provider.application.as_ref() == Some(application) && replaced.contains(&it.provider.key)
                });
                edits.extend(ours.map(|it| Edit::AddBinding(wire(&other.application, &it))));
            }
        }
        Planned { change: Change { strategy, incomplete: false, edits }, clouds }
    }
}

fn wire(application: &Name, binding: &crate::difference::Binding) -> Wire {
    Wire {
        client: binding.client.scoped(application),
        import: binding.import.clone(),
        provider: binding.provider.scoped(application),
        export: binding.export.clone(),
    }
}

fn adjusted(before: &Expansion, after: &Expansion, key: &Key) -> Vec<Edit> {
    let imports = after.definition_of(key).into_iter().flat_map(|it| it.imports.keys());
    let changed = imports.filter_map(|import| {
        let (one, other) = (before.need(key, import)?, after.need(key, import)?);
        let edit =
            Edit::SetNeed { component: key.scoped(&after.application), import: import.clone(), number: other.number() };
        (one != other).then_some(edit)
    });
    changed.collect()
}

/// Kinds, each built once for all components that share it.
struct Kinds<'a> {
    expansion: &'a Expansion,
    secrets: &'a SecretTexts,
    made: BTreeMap<(&'a Name, Vec<u32>), Arc<Kind>>,
}

impl<'a> Kinds<'a> {
    fn kind(&mut self, key: &Key) -> Arc<Kind> {
        let expansion: &'a Expansion = self.expansion;
        let definition = expansion.definition_of(key).expect("every component has a definition");
        let need = |import| expansion.need(key, import).map_or(0, protocol::Need::number);
        let numbers: Vec<u32> = definition.imports.keys().map(need).collect();
        let secrets = self.secrets;
        let group = expansion.definitions.get_key_value(&key.group).filter(|_| !expansion.older.contains_key(key));
        // A component that differs from its group for now is built separately.
        let Some((group, _)) = group else { return Arc::new(kind(definition, &numbers, secrets)) };
        let made = self
            .made
            .entry((group, numbers))
            .or_insert_with_key(|(_, numbers)| Arc::new(kind(definition, numbers, secrets)));
        made.clone()
    }
}

impl Definition {
    /// What the manager is asked for, except for how many providers each component of the group needs. A secret that is
    /// not among the texts is omitted.
    pub fn kind(&self, secrets: &SecretTexts) -> Kind {
        let numbers: Vec<u32> = self.imports.values().map(|it| it.need.number()).collect();
        kind(self, &numbers, secrets)
    }
}

fn kind(definition: &Definition, numbers: &[u32], secrets: &SecretTexts) -> Kind {
    let mut recipe = definition.recipe.clone();
    for (parameter, secret) in &definition.secrets {
        recipe.secrets.extend(secrets.get(&secret.name).map(|text| (parameter.clone(), text.clone())));
    }
    let import = |((name, it), number): ((&Name, &crate::expansion::Import), &u32)| {
        (name.clone(), Import { export: it.export.clone(), need: it.need.with_number(*number) })
    };
    let imports = definition.imports.iter().zip(numbers).map(import).collect();
    recipe.kind(imports, definition.exports.clone(), definition.patience.clone())
}
