//! A copy of everything that planning reads: the machine with its book, the state of applications, how long operations
//! took.
//!
//! The copy is taken between two steps of the machine. Everything else is derived from it later, on another thread.

use super::state::{ApplicationState, Version};
use application::{ApplicationFiles, Difference, Expansion, Found, Key, SecretTexts, hint};
use protocol::{
    CloudManager, ComponentState, Edit, Kind, Name, Operation, Strategy, VmId,
    manager::{Book, ComponentEntry, Health, Input, Request},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// How long operations of components took.
pub type Learned = BTreeMap<(Name, Operation), Duration>;

/// Everything that planning reads.
#[derive(Clone, Debug)]
pub struct Present {
    /// The machine.
    pub machine: CloudManager,
    /// The state of each application.
    pub applications: BTreeMap<Name, Arc<ApplicationState>>,
    /// How long operations of components took when they were last done.
    pub learned: Learned,
    /// Why operations of components failed, where known.
    pub failures: BTreeMap<Name, String>,
    /// Differences between components and what their agents created, where examined.
    pub drifted: BTreeMap<Name, Vec<String>>,
    /// The clouds that can create VMs; empty without a manager.
    pub clouds: Vec<String>,
    /// The data that VMs keep.
    pub data: Vec<KeptData>,
}

/// The data that a VM keeps for the name of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptData {
    /// The VM.
    pub id: VmId,
    /// Its name.
    pub vm: Name,
    /// The cloud that made the VM and would take the data away with it, if one did.
    pub cloud: Option<String>,
    /// The name of the component.
    pub key: Name,
    /// The names of the directories.
    pub directories: BTreeSet<Name>,
}

impl Present {
    /// An empty system, or one with a single application in its requested state.
    pub fn offline(before: Option<(ApplicationFiles, Expansion)>) -> Self {
        let mut present = Self {
            machine: CloudManager::new(None),
            applications: BTreeMap::new(),
            learned: Learned::new(),
            failures: BTreeMap::new(),
            drifted: BTreeMap::new(),
            clouds: Vec::new(),
            data: Vec::new(),
        };
        if let Some((files, expansion)) = before {
            let empty = Expansion::empty(expansion.application.clone());
            let secrets = masked(&expansion);
            let made = Difference::between(&empty, &expansion);
            let mut change = made.planned(&empty, &expansion, &[], Strategy::Together, &secrets).change;
            change.incomplete = true;
            present.machine.step(Input::FromOperator(Request::Make(change)));
            let version = Version { number: 1, files, secrets, ..Version::default() };
            let name = expansion.application.clone();
            let state =
                ApplicationState { versions: vec![version], expansion, rollout: None, last_rollout: Vec::new() };
            present.applications.insert(name, Arc::new(state));
        }
        present
    }

    /// Whether a plan for this is also a plan for the other.
    pub fn is_same(&self, other: &Self) -> bool {
        self.drifted == other.drifted
            && self.data == other.data
            && self.applications == other.applications
            && self.machine == other.machine
    }

    /// The manager's book.
    pub fn book(&self) -> &Book {
        self.machine.book()
    }

    /// What exists of an application: something may have been changed by hand, or a VM was lost.
    pub fn found(&self, state: &ApplicationState) -> Expansion {
        let found = self.all_found(&state.expansion.application);
        let kinds = self.replaced_by_hand(state);
        state.expansion.as_found(&Found { kinds, ..found })
    }

    /// What exists of every application.
    pub fn all(&self) -> Vec<Expansion> {
        self.applications.values().map(|state| self.found(state)).collect()
    }

    /// An application; or an error that suggests the name that was probably meant.
    pub fn application(&self, name: &str) -> Result<&Arc<ApplicationState>, String> {
        let found = Name::new(name).ok().and_then(|name| self.applications.get(&name));
        found.ok_or_else(|| {
            let hint = hint(name, self.applications.keys().map(Name::as_str));
            let hint = if hint.is_empty() { " (holdfast apply creates one)".into() } else { hint };
            format!("the manager has no application {name}{hint}")
        })
    }

    /// Components of an application that are not started.
    pub fn down(&self, application: &Name) -> BTreeSet<Key> {
        let down = self.book().components().filter(|it| !it.is_leaving() && !is_started(it));
        down.filter_map(|it| key_of(application, &it.name)).collect()
    }

    /// The present configuration as edits, without what is being removed.
    pub fn configuration(&self) -> Vec<Edit> {
        let book = self.book();
        let is_gone = |name: &Name| book.vm(name).is_none_or(|vm| vm.is_leaving() || vm.health == Health::Dead);
        let vms = book.vms().filter(|it| !is_gone(&it.name)).map(|it| Edit::AddVm { vm: it.name.clone() });
        let stays = |it: &ComponentEntry| !it.is_leaving() && !is_gone(&book.vm_of(it).name);
        let components = book.components().filter(|it| stays(it)).map(|it| Edit::AddComponent {
            component: it.name.clone(),
            vm: book.vm_of(it).name.clone(),
            kind: with_needs(it),
        });
        let clients = book.components().filter(|it| stays(it));
        let bindings = clients.flat_map(|it| book.borrowed(it)).filter(|it| !it.is_leaving());
        let bindings = bindings.filter(|it| stays(book.provider_of(it))).map(|it| Edit::AddBinding(book.wire(it)));
        vms.chain(components).chain(bindings).collect()
    }

    /// What the book has under the names of one application.
    fn all_found(&self, application: &Name) -> Found {
        let book = self.book();
        let prefix = format!("{application}/");
        let is_own = |name: &Name| name.as_str().starts_with(&prefix);
        let vms = book.vms().filter(|it| !it.is_leaving() && it.health != Health::Dead && is_own(&it.name));
        let own: Vec<&ComponentEntry> = book.components().filter(|it| !it.is_leaving() && is_own(&it.name)).collect();
        let bindings = own.iter().flat_map(|it| book.borrowed(it)).filter(|it| !it.is_leaving());
        Found {
            vms: vms.map(|it| it.name.clone()).collect(),
            components: own.iter().map(|it| (it.name.clone(), book.vm_of(it).name.clone())).collect(),
            bindings: bindings.map(|it| book.wire(it)).collect(),
            kinds: BTreeMap::new(),
        }
    }

    /// The definitions of components that were replaced by hand: they differ from those that were applied.
    fn replaced_by_hand(&self, state: &ApplicationState) -> BTreeMap<Name, Kind> {
        let expansion = &state.expansion;
        let secrets = masked(expansion);
        let mut wanted: BTreeMap<&Name, Kind> = BTreeMap::new();
        let mut alike: BTreeMap<&Kind, Kind> = BTreeMap::new();
        let mut kinds = BTreeMap::new();
        for entry in self.book().components().filter(|it| !it.is_leaving()) {
            let Some(key) = key_of(&expansion.application, &entry.name) else { continue };
            if !expansion.components.contains_key(&key) {
                continue;
            }
            let older = expansion.older.get(&key).map(|it| comparable(&it.kind(&secrets)));
            let definition = expansion.definitions.get_key_value(&key.group);
            let is = alike.entry(&*entry.kind).or_insert_with(|| comparable(&entry.kind));
            let is_same = |wanted: &Kind| wanted == is && has_needs(entry, expansion, &key);
            let same = match (&older, definition) {
                (Some(older), _) => is_same(older),
                (None, Some((group, it))) => {
                    is_same(wanted.entry(group).or_insert_with(|| comparable(&it.kind(&secrets))))
                }
                (None, None) => continue,
            };
            if !same {
                let mut kind = Kind::clone(&with_needs(entry));
                let own = expansion.definition_of(&key);
                let is_usual = |operation: &Operation, it| {
                    !own.is_some_and(|own| own.patience.contains_key(operation))
                        && it == crate::document::change::default_patience(*operation)
                };
                kind.patience.retain(|operation, it| !is_usual(operation, *it));
                kinds.insert(entry.name.clone(), kind);
            }
        }
        kinds
    }
}

/// Whether a component needs as many providers of each import as it should.
fn has_needs(entry: &ComponentEntry, expansion: &Expansion, key: &Key) -> bool {
    let wanted = |import: &Name| expansion.need(key, import).map_or(0, protocol::Need::number);
    entry.imports().iter().all(|(name, import)| import.wanted() == wanted(name))
}

/// A key of this application in a full name.
pub(crate) fn key_of(application: &Name, name: &Name) -> Option<Key> {
    name.as_str().strip_prefix(application.as_str())?.strip_prefix('/')?.parse().ok()
}

pub(crate) fn is_started(entry: &ComponentEntry) -> bool {
    entry.condition.is_some_and(|condition| condition.state == ComponentState::Started)
}

/// The kind of a component, with the numbers of providers that it needs now.
fn with_needs(entry: &ComponentEntry) -> Arc<Kind> {
    let as_now = entry
        .imports()
        .iter()
        .all(|(name, it)| entry.kind.imports.get(name).is_some_and(|import| import.need.number() == it.wanted()));
    if as_now {
        return Arc::clone(&entry.kind);
    }
    let mut kind = Kind::clone(&entry.kind);
    for (name, import) in kind.imports.iter_mut() {
        if let Some(now) = entry.imports().get(name) {
            import.need = import.need.with_number(now.wanted());
        }
    }
    Arc::new(kind)
}

/// A kind without what may differ between two components with the same definition: texts of secrets, numbers of providers,
/// and retries that only spell out the default.
fn comparable(kind: &Kind) -> Kind {
    let mut kind = kind.clone();
    kind.imports.values_mut().for_each(|import| import.need = import.need.with_number(0));
    for operation in Operation::ALL {
        let usual = crate::document::change::default_patience(operation);
        kind.patience.entry(operation).or_insert(usual);
    }
    if let Ok(mut recipe) = recipe::Recipe::decode(&kind.recipe) {
        recipe.secrets.values_mut().for_each(String::clear);
        // It is asked of the application's files when a component is removed.
        recipe.data.on_remove = recipe::OnRemove::default();
        kind.recipe = recipe.encode().into();
    }
    kind
}

/// A placeholder for each secret of an application.
pub fn masked(expansion: &Expansion) -> SecretTexts {
    let definitions = expansion.definitions.values().chain(expansion.older.values());
    definitions.flat_map(|it| it.secrets.values()).map(|secret| (secret.name.clone(), "•••".into())).collect()
}
