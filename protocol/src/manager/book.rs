//! The manager's book: every VM, component and binding that was accepted and is not yet gone.
//!
//! An entry passes through the same stages whatever it is: *accepted* (checked, perhaps waiting for its phase), *posted*
//! (an order has gone out, and its number is its identity), *leaving* (its removal is accepted), *left* (its removal is
//! posted); then the reports say that it is gone and the entry is struck out. Checks look at what is accepted and not
//! leaving; predictions at what is posted and not left.

use super::import::ImportEntry;
use crate::{
    BindingId, ComponentId, Condition, Edit, Kind, Name, Need, OrderNumber, PagedMap, ShortMap, ShortSet, VmId,
    VmState, Wire, paged::Numbered,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The place of something in the book, given when it is accepted and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entry(pub(super) u64);

impl Numbered for Entry {
    fn number(self) -> u64 {
        self.0
    }
}

impl Entry {
    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What the manager knows of a VM's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Health {
    /// The cloud has not made it yet.
    Awaited,
    /// It answers.
    Well,
    /// It has been silent for a while; suspicions are numbered.
    Suspected(u32),
    /// It was declared lost.
    Dead,
}

/// A VM in the book.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VmEntry {
    /// What people call it.
    pub name: Name,
    /// Its identity, once posted.
    pub id: Option<VmId>,
    /// Its health.
    pub health: Health,
    /// What it last reported of itself.
    pub state: VmState,
    pub(super) leaving: bool,
    pub(super) left: bool,
    pub(super) components: ShortSet<Entry>,
    /// The VMs it ever shared a binding with: they are told when it is gone.
    pub(super) neighbours: ShortSet<Entry>,
    /// The last order answered.
    pub(super) answered: OrderNumber,
    /// How often it was suspected.
    pub(super) suspicions: u32,
}

impl VmEntry {
    /// The last order that it has answered.
    pub fn answered(&self) -> OrderNumber {
        self.answered
    }

    /// Whether it is removed and on its way out.
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }
}

/// A component in the book.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ComponentEntry {
    /// What people call it.
    pub name: Name,
    /// What it is.
    pub kind: Arc<Kind>,
    /// Its identity, once posted.
    pub id: Option<ComponentId>,
    /// What its agent last reported.
    pub condition: Option<Condition>,
    /// Whether it is expected to be started when everything posted has come to rest.
    pub expected: bool,
    /// Whether its agent last said that it waits for something, and has not come to rest.
    pub(super) pending: bool,
    /// How many values were withdrawn from it of which its agent has not said that it knows.
    pub(super) withdrawn: u32,
    pub(super) vm: Entry,
    pub(super) leaving: bool,
    pub(super) left: bool,
    /// The latest order that added or restarted it.
    pub(super) renewed: OrderNumber,
    pub(super) imports: ShortMap<Name, ImportEntry>,
    /// Its bindings as a provider.
    pub(super) lends: ShortSet<Entry>,
    /// How many clients each export has, leaving ones aside.
    pub(super) clients: ShortMap<Name, u32>,
}

impl ComponentEntry {
    /// Whether it is removed and on its way out.
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// How each of its imports stands.
    pub fn imports(&self) -> &ShortMap<Name, ImportEntry> {
        &self.imports
    }

    /// Whether it is posted and not removed: then its values are there for others.
    pub(super) fn is_present(&self) -> bool {
        self.id.is_some() && !self.left
    }

    /// Whether it holds exactly what it is expected to hold.
    pub(super) fn holds_as_expected(&self) -> bool {
        self.imports.values().all(|import| import.tally.astray == 0)
    }

    /// Whether its agent was told of everything it needs.
    pub(super) fn needs_are_ordered(&self) -> bool {
        !self.imports.values().any(ImportEntry::is_to_be_ordered)
    }

    /// Counts a client of an export in or out.
    pub(super) fn count_client(&mut self, export: &Name, joins: bool) -> u32 {
        let clients = self.clients.or_default(export);
        *clients = if joins { *clients + 1 } else { *clients - 1 };
        let clients = *clients;
        if clients == 0 {
            self.clients.remove(export);
        }
        clients
    }

    /// Its bindings as a client.
    pub(super) fn borrows(&self) -> impl Iterator<Item = Entry> {
        self.imports.values().flat_map(|import| import.bindings.iter().copied())
    }
}

/// How a client that runs hears of what it is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Hearing {
    /// There is nothing to hear.
    Never,
    /// It is told while it runs.
    ByRebind,
    /// It hears of values only when it starts.
    ByRestart,
}

/// A binding in the book.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BindingEntry {
    /// Its identity, once posted.
    pub id: Option<BindingId>,
    pub(super) client: Entry,
    pub(super) import: Name,
    pub(super) provider: Entry,
    pub(super) export: Name,
    pub(super) need: Need,
    pub(super) hearing: Hearing,
    pub(super) leaving: bool,
    pub(super) left: bool,
    /// Whether its client is expected to hold it.
    pub(super) counted: bool,
    /// Whether its client's agent last said that it does.
    pub(super) held: bool,
    /// Whether its client's agent said that it knows that its value is withdrawn.
    pub(super) withdrawn: bool,
}

impl BindingEntry {
    /// Whether it is held and should not be, or the other way round. What is on its way out may be either.
    pub(super) fn is_astray(&self) -> bool {
        !self.leaving && self.counted != self.held
    }

    /// Whether its client's agent last said that it may use it.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Whether it is removed and on its way out.
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// What the client's import needs.
    pub fn need(&self) -> Need {
        self.need
    }
}

/// Everything the manager keeps track of.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Book {
    pub(super) vms: PagedMap<Entry, VmEntry>,
    pub(super) components: PagedMap<Entry, ComponentEntry>,
    pub(super) bindings: PagedMap<Entry, BindingEntry>,
    /// Where to find what is accepted and not leaving, by the name people use.
    pub(super) vm_names: BTreeMap<Name, Entry>,
    pub(super) component_names: BTreeMap<Name, Entry>,
    /// Where to find what is posted, by its number.
    pub(super) vm_ids: PagedMap<VmId, Entry>,
    pub(super) component_ids: PagedMap<ComponentId, Entry>,
    pub(super) binding_ids: PagedMap<BindingId, Entry>,
    /// Values whose provider is gone, each with its VM and with the client whose agent has not said that it knows.
    pub(super) withdrawn: BTreeMap<BindingId, (Entry, Entry)>,
    /// The components that require manual action because an operation failed for good.
    pub(super) failed: BTreeSet<Entry>,
    pub(super) entries: u64,
}

impl Book {
    pub(super) fn next_entry(&mut self) -> Entry {
        self.entries += 1;
        Entry(self.entries)
    }

    /// Whether something has not been struck out.
    pub(super) fn has(&self, entry: Entry) -> bool {
        self.vms.contains_key(&entry) || self.components.contains_key(&entry) || self.bindings.contains_key(&entry)
    }

    /// Every VM.
    pub fn vms(&self) -> impl Iterator<Item = &VmEntry> {
        self.vms.values()
    }

    /// Every component.
    pub fn components(&self) -> impl Iterator<Item = &ComponentEntry> {
        self.components.values()
    }

    /// Every binding that is not on its way out, as people see it.
    pub fn wires(&self) -> impl Iterator<Item = (Wire, Option<BindingId>)> {
        self.bindings.values().filter(|binding| !binding.leaving).map(|binding| (self.wire(binding), binding.id))
    }

    /// The component of that name, if it is not on its way out.
    pub fn component(&self, name: &Name) -> Option<&ComponentEntry> {
        self.component_names.get(name).map(|entry| &self.components[entry])
    }

    /// The VM of that name, if it is not on its way out.
    pub fn vm(&self, name: &Name) -> Option<&VmEntry> {
        self.vm_names.get(name).map(|entry| &self.vms[entry])
    }

    /// The VM of that name, with its place in the book.
    pub fn vm_entry(&self, name: &Name) -> Option<(Entry, &VmEntry)> {
        self.vm_names.get(name).map(|entry| (*entry, &self.vms[entry]))
    }

    /// The component of that name, with its place in the book.
    pub fn component_entry(&self, name: &Name) -> Option<(Entry, &ComponentEntry)> {
        self.component_names.get(name).map(|entry| (*entry, &self.components[entry]))
    }

    /// Every binding, with its place in the book.
    pub fn bindings(&self) -> impl Iterator<Item = (Entry, Wire, Option<BindingId>)> {
        self.bindings.iter().map(|(entry, binding)| (*entry, self.wire(binding), binding.id))
    }

    /// Where a component lives.
    pub fn vm_of(&self, component: &ComponentEntry) -> &VmEntry {
        &self.vms[&component.vm]
    }

    /// What a component borrows.
    pub fn borrowed(&self, component: &ComponentEntry) -> impl Iterator<Item = &BindingEntry> {
        component.borrows().map(|entry| &self.bindings[&entry])
    }

    /// What a component lends.
    pub fn lent(&self, component: &ComponentEntry) -> impl Iterator<Item = &BindingEntry> {
        component.lends.iter().map(|entry| &self.bindings[entry])
    }

    /// The component that borrows.
    pub fn client_of(&self, binding: &BindingEntry) -> &ComponentEntry {
        &self.components[&binding.client]
    }

    /// The component that lends.
    pub fn provider_of(&self, binding: &BindingEntry) -> &ComponentEntry {
        &self.components[&binding.provider]
    }

    /// Whether a component is listed as requiring manual action.
    pub fn is_failed(&self, component: &ComponentEntry) -> bool {
        component.id.and_then(|id| self.component_ids.get(&id)).is_some_and(|entry| self.failed.contains(entry))
    }

    /// The component with that number.
    pub fn component_by_id(&self, id: ComponentId) -> Option<&ComponentEntry> {
        self.component_ids.get(&id).map(|entry| &self.components[entry])
    }

    /// The VM with that number.
    pub fn vm_by_id(&self, id: VmId) -> Option<&VmEntry> {
        self.vm_ids.get(&id).map(|entry| &self.vms[entry])
    }

    /// The binding with that number, as people see it.
    pub fn wire_by_id(&self, id: BindingId) -> Option<Wire> {
        self.binding_ids.get(&id).map(|entry| self.wire(&self.bindings[entry]))
    }

    /// A binding as people see it.
    pub fn wire(&self, binding: &BindingEntry) -> Wire {
        Wire {
            client: self.components[&binding.client].name.clone(),
            import: binding.import.clone(),
            provider: self.components[&binding.provider].name.clone(),
            export: binding.export.clone(),
        }
    }

    /// Finds a binding among those of its client's import.
    pub(super) fn find_binding(&self, wire: &Wire) -> Option<Entry> {
        let client = &self.components[self.component_names.get(&wire.client)?];
        let provider = self.component_names.get(&wire.provider)?;
        let found = *client.imports.get(&wire.import)?.bound.get(provider)?;
        (self.bindings[&found].export == wire.export).then_some(found)
    }

    /// The edits that add a component again as it is, without its bindings.
    pub(super) fn adding_again(&self, entry: Entry) -> Vec<Edit> {
        let it = &self.components[&entry];
        let (component, vm, kind) = (it.name.clone(), self.vms[&it.vm].name.clone(), it.kind.clone());
        let mut edits = vec![Edit::AddComponent { component: component.clone(), vm, kind }];
        let changed =
            it.imports.iter().filter(|(name, import)| it.kind.imports[*name].need.number() != import.accepted);
        edits.extend(changed.map(|(name, import)| {
            let (component, import, number) = (component.clone(), name.clone(), import.accepted);
            Edit::SetNeed { component, import, number }
        }));
        edits
    }

    /// The needs of a component that its agent can be told now.
    pub(super) fn orderable_needs(&self, entry: Entry) -> Vec<(Name, u32)> {
        let Some(component) = self.components.get(&entry) else { return Vec::new() };
        let due = component.imports.iter().filter(|(_, import)| import.is_to_be_ordered() && import.is_due());
        due.map(|(name, import)| (name.clone(), import.need.number())).collect()
    }

    /// Puts a binding in, under its client's import and its provider.
    pub(super) fn add_binding(&mut self, entry: Entry, binding: BindingEntry) {
        let client = self.components.get_mut(&binding.client).expect("a binding has a client");
        let import = client.imports.get_mut(&binding.import).expect("a binding has an import");
        import.bindings.insert(entry);
        import.bound.insert(binding.provider, entry);
        import.tally.count(&binding, true);
        let provider = self.components.get_mut(&binding.provider).expect("a binding has a provider");
        provider.lends.insert(entry);
        self.bindings.insert(entry, binding);
    }

    /// Changes a binding, and how it counts for its client's import.
    pub(super) fn change_binding(&mut self, entry: Entry, change: impl FnOnce(&mut BindingEntry)) {
        let binding = self.bindings.get_mut(&entry).expect("only known bindings are changed");
        let client = self.components.get_mut(&binding.client).expect("a binding has a client");
        let import = client.imports.get_mut(&binding.import).expect("a binding has an import");
        import.tally.count(binding, false);
        change(binding);
        import.tally.count(binding, true);
    }

    /// Notes that a binding is, or is after all not, on its way out.
    pub(super) fn mark_leaving(&mut self, entry: Entry, leaving: bool) {
        self.change_binding(entry, |binding| binding.leaving = leaving);
        let binding = &self.bindings[&entry];
        let client = self.components.get_mut(&binding.client).expect("a binding has a client");
        let import = client.imports.get_mut(&binding.import).expect("a binding has an import");
        if leaving {
            import.bound.remove(&binding.provider);
        } else {
            import.bound.insert(binding.provider, entry);
        }
        let provider = self.components.get_mut(&binding.provider).expect("a binding has a provider");
        provider.count_client(&binding.export, !leaving);
    }

    /// Strikes a binding out.
    pub(super) fn strike_binding(&mut self, entry: Entry) {
        let Some(binding) = self.bindings.remove(&entry) else { return };
        if let Some(id) = binding.id {
            self.binding_ids.remove(&id);
        }
        if let Some(client) = self.components.get_mut(&binding.client)
            && let Some(import) = client.imports.get_mut(&binding.import)
        {
            import.bindings.remove(&entry);
            if !binding.leaving {
                import.bound.remove(&binding.provider);
            }
            import.tally.count(&binding, false);
        }
        if let Some(provider) = self.components.get_mut(&binding.provider) {
            provider.lends.remove(&entry);
            if !binding.leaving {
                provider.count_client(&binding.export, false);
            }
        }
    }

    /// Strikes a component out, with its bindings; says which components had bindings to it, and which bindings.
    pub(super) fn strike_component(&mut self, entry: Entry) -> (BTreeSet<Entry>, Vec<Entry>) {
        let Some(component) = self.components.get(&entry) else { return Default::default() };
        let bindings: Vec<Entry> = component.borrows().chain(component.lends.iter().copied()).collect();
        let mut clients = BTreeSet::new();
        for binding in &bindings {
            clients.insert(self.bindings[binding].client);
            self.strike_binding(*binding);
        }
        clients.remove(&entry);
        let component = self.components.remove(&entry).expect("it was just looked up");
        self.failed.remove(&entry);
        if component.withdrawn > 0 {
            self.withdrawn.retain(|_, (client, _)| *client != entry);
        }
        if let Some(id) = component.id {
            self.component_ids.remove(&id);
        }
        if self.component_names.get(&component.name) == Some(&entry) {
            self.component_names.remove(&component.name);
        }
        if let Some(vm) = self.vms.get_mut(&component.vm) {
            vm.components.remove(&entry);
        }
        (clients, bindings)
    }

    /// A component is about to be struck out because it is gone. It did not wait for those that only know its values; so the
    /// manager does.
    pub(super) fn withdraw_values(&mut self, provider: Entry) {
        let component = &self.components[&provider];
        let vm = component.vm;
        let lends = component
            .lends
            .iter()
            .map(|binding| &self.bindings[binding])
            .filter(|it| it.need.is_value() && !it.withdrawn);
        let known: Vec<(BindingId, Entry)> = lends.filter_map(|it| Some((it.id?, it.client))).collect();
        for (id, client) in known {
            self.withdrawn.insert(id, (client, vm));
            self.components.get_mut(&client).expect("a binding has a client").withdrawn += 1;
        }
    }

    /// The agent of a client knows that a value was withdrawn; returns the client.
    pub(super) fn confirm_withdrawal(&mut self, id: BindingId) -> Option<Entry> {
        let (client, _) = self.withdrawn.remove(&id)?;
        self.components.get_mut(&client).expect("what is withdrawn has a client").withdrawn -= 1;
        Some(client)
    }

    /// The values of what was on a VM, once its neighbours are ordered to forget it: their answers say that they know.
    pub(super) fn forget_withdrawals(&mut self, vm: Entry) -> Vec<Entry> {
        let there = self.withdrawn.iter().filter(|(_, (_, at))| *at == vm).map(|(id, _)| *id);
        let there: Vec<BindingId> = there.collect();
        there.into_iter().filter_map(|id| self.confirm_withdrawal(id)).collect()
    }

    /// Strikes a VM out; its components are gone already.
    pub(super) fn strike_vm(&mut self, entry: Entry) {
        let Some(vm) = self.vms.remove(&entry) else { return };
        if let Some(id) = vm.id {
            self.vm_ids.remove(&id);
        }
        if self.vm_names.get(&vm.name) == Some(&entry) {
            self.vm_names.remove(&vm.name);
        }
        for neighbour in vm.neighbours {
            if let Some(neighbour) = self.vms.get_mut(&neighbour) {
                neighbour.neighbours.remove(&entry);
            }
        }
    }
}
