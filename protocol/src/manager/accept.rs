//! Rule M1: from a change, as the operator wrote it, to checked edits; or to every reason why not.
//!
//! A change is first written into the book as a draft: removals, then additions, so that a name can be taken over. Each
//! check looks at the book as it would then be, after all that was accepted before. If there is any refusal the draft is
//! taken out again, to the last letter.

use super::{
    News, Request, Turn,
    book::{BindingEntry, Book, ComponentEntry, Entry, Health, Hearing, VmEntry},
    cancel::Undo,
    edit::CheckedEdit,
    import::ImportEntry,
    phases::Running,
};
use crate::{
    Change, Edit, Kind, Name, Need, OrderNumber, Refusal, ShortMap, ShortSet, Strategy, VmState, Wire, bounds,
};
use std::collections::{BTreeMap, BTreeSet};

impl Turn<'_> {
    /// Answers a request: accepted under a number, or refused with every reason.
    pub(super) fn consider(&mut self, request: Request) {
        let accepted = match request {
            Request::Make(change) => Draft::write(self.book(), &change).map(|(edits, undo, spared)| {
                // No change waits any more for what is on its way out.
                self.touched.extend(spared);
                Running::new(edits, change.strategy, Some(undo), &self.manager.book)
            }),
            Request::Retry(name) => self.failed_component(&name).map(|entry| self.help(CheckedEdit::Retry(entry))),
            Request::Skip(name) => self.failed_component(&name).map(|entry| self.help(CheckedEdit::Skip(entry))),
            Request::DeclareLost(name) => self.living_vm(&name).map(|entry| self.lose(entry)),
            Request::Cancel(change) => return self.cancel(change),
        };
        match accepted {
            Ok(running) => {
                let change = self.next_change();
                self.manager.running.insert(change, running);
                // The answer comes first, whatever else this step has to say.
                self.outputs.insert(0, super::Output::ToOperator(News::Accepted(change)));
            }
            Err(refusals) => self.tell(News::Refused(refusals)),
        }
    }

    /// What a person says to a component that failed, as a change.
    fn help(&self, edit: CheckedEdit) -> Running {
        Running::new(vec![edit], Strategy::Together, None, &self.manager.book)
    }

    fn failed_component(&mut self, name: &Name) -> Result<Entry, Vec<Refusal>> {
        let book = &self.manager.book;
        // One that is on its way out can be in need of a person, too, while another already has its name.
        let failed = book.failed.iter().find(|entry| book.components[entry].name == *name);
        let known = || book.components.values().any(|it| it.name == *name);
        failed.copied().ok_or_else(|| match known() {
            true => vec![Refusal::NothingFailed { component: name.clone() }],
            false => vec![Refusal::UnknownComponent { component: name.clone() }],
        })
    }

    fn living_vm(&mut self, name: &Name) -> Result<Entry, Vec<Refusal>> {
        let book = &self.manager.book;
        // A VM that is on its way out can be lost like any other. Of two of one name it is the one that is silent.
        let named = || book.vms.iter().filter(|(_, vm)| vm.name == *name && vm.id.is_some());
        let rank = |(entry, vm): &(&Entry, &VmEntry)| {
            let suspected = matches!(vm.health, Health::Suspected(_));
            (vm.health != Health::Dead, suspected, book.vm_names.get(name) == Some(*entry))
        };
        match named().max_by_key(rank) {
            Some((_, vm)) if vm.health == Health::Dead => Err(vec![Refusal::VmLost { vm: name.clone() }]),
            Some((entry, _)) => Ok(*entry),
            None => Err(vec![Refusal::UnknownVm { vm: name.clone() }]),
        }
    }
}

/// A change half written into the book: what has to be undone if it is refused, and what is still to be checked.
pub(super) struct Draft<'a> {
    pub(super) book: &'a mut Book,
    entries_before: u64,
    pub(super) edits: Vec<CheckedEdit>,
    pub(super) refusals: Vec<Refusal>,
    leaving_vms: Vec<Entry>,
    leaving_components: Vec<Entry>,
    leaving_bindings: Vec<Entry>,
    /// The names that new VMs took over from lost ones.
    lost_names: Vec<(Name, Entry)>,
    /// The names of the components that leave.
    removed: BTreeSet<Name>,
    new_bindings: Vec<Entry>,
    /// Components whose imports must be counted again.
    pub(super) recount: BTreeSet<Entry>,
    pub(super) needs: BTreeMap<(Entry, Name), u32>,
    /// What was accepted before, where another number was wished for.
    needs_before: Vec<(Entry, Name, u32)>,
}

impl<'a> Draft<'a> {
    /// A draft in which nothing is written yet.
    pub(super) fn new(book: &'a mut Book) -> Self {
        Draft {
            entries_before: book.entries,
            book,
            edits: Vec::new(),
            refusals: Vec::new(),
            leaving_vms: Vec::new(),
            leaving_components: Vec::new(),
            leaving_bindings: Vec::new(),
            lost_names: Vec::new(),
            removed: BTreeSet::new(),
            new_bindings: Vec::new(),
            recount: BTreeSet::new(),
            needs: BTreeMap::new(),
            needs_before: Vec::new(),
        }
    }

    /// Writes a change into the book and returns its edits, or leaves the book as it was.
    ///
    /// With the edits comes what would take them back, and the components for which no change need wait any more: those
    /// that leave, and the clients of bindings that do.
    fn write(book: &'a mut Book, change: &Change) -> Result<(Vec<CheckedEdit>, Undo, BTreeSet<Entry>), Vec<Refusal>> {
        let edits = change.edits.len();
        if edits > bounds::WISHES_MAX {
            return Err(vec![Refusal::TooManyWishes { edits }]);
        }
        let mut draft = Draft::new(book);
        // From small to large, so that the order in which edits are written makes no difference.
        change.edits.iter().for_each(|edit| draft.remove_wire(edit));
        change.edits.iter().for_each(|edit| draft.remove_named(edit));
        change.edits.iter().for_each(|edit| draft.remove_vm(edit));
        change.edits.iter().for_each(|edit| draft.restart(edit));
        // Bindings last: they may join components that the same change adds anywhere.
        change.edits.iter().for_each(|edit| draft.add_vm(edit));
        change.edits.iter().for_each(|edit| draft.add_component(edit));
        change.edits.iter().for_each(|edit| draft.add_binding(edit));
        change.edits.iter().for_each(|edit| draft.set_need(edit));
        draft.order_needs();
        let recount = draft.recount.iter().copied().filter(|entry| entry.0 <= draft.entries_before).collect();
        draft.check_whole(change.incomplete, &BTreeSet::new());
        draft.refusals.sort();
        draft.refusals.dedup();
        if draft.refusals.is_empty() {
            let clients = draft.leaving_bindings.iter().map(|entry| draft.book.bindings[entry].client);
            let spared = clients.chain(draft.leaving_components.iter().copied()).collect();
            let undo = draft.taken_back(change.strategy, &recount);
            return Ok((draft.edits, undo, spared));
        }
        draft.undo();
        Err(draft.refusals)
    }

    /// What takes the draft back once it is accepted.
    fn taken_back(&mut self, strategy: Strategy, recount: &BTreeSet<Entry>) -> Undo {
        let book = &*self.book;
        let wire = |entry: &Entry| (*entry, book.wire(&book.bindings[entry]));
        Undo {
            strategy,
            entries: (self.entries_before, book.entries),
            vms: self.leaving_vms.iter().map(|entry| (*entry, book.vms[entry].name.clone())).collect(),
            components: self.leaving_components.iter().map(|it| (*it, book.adding_again(*it))).collect(),
            bindings: self.leaving_bindings.iter().map(wire).collect(),
            needs: self
                .needs_before
                .iter()
                .filter(|(entry, ..)| entry.0 <= self.entries_before)
                .map(|(entry, name, before)| ((*entry, name.clone()), (*before, self.needs[&(*entry, name.clone())])))
                .collect(),
            short: self.short_before(recount.iter().copied()),
            lost_names: std::mem::take(&mut self.lost_names).into_iter().collect(),
        }
    }

    /// The imports of these components that had too few providers before this draft.
    fn short_before(&self, clients: impl Iterator<Item = Entry>) -> BTreeSet<(Entry, Name)> {
        let mut moved: BTreeMap<(Entry, &Name), (usize, usize)> = BTreeMap::new();
        for (bindings, comes) in [(&self.new_bindings, true), (&self.leaving_bindings, false)] {
            for binding in bindings.iter().map(|entry| &self.book.bindings[entry]) {
                let (came, went) = moved.entry((binding.client, &binding.import)).or_default();
                *(if comes { came } else { went }) += 1;
            }
        }
        let needs: BTreeMap<_, _> = self.needs_before.iter().map(|(entry, name, it)| ((*entry, name), *it)).collect();
        let imports = clients.flat_map(|client| {
            self.book.components[&client].imports.iter().map(move |(name, import)| ((client, name), import))
        });
        let short = imports.filter(|(key, import)| {
            let (came, went) = moved.get(key).copied().unwrap_or_default();
            let needed = needs.get(key).copied().unwrap_or(import.accepted);
            import.bound.len() + went < came + usize::try_from(needed).unwrap_or(usize::MAX)
        });
        short.map(|((client, name), _)| (client, name.clone())).collect()
    }

    fn remove_wire(&mut self, edit: &Edit) {
        let Edit::RemoveBinding(wire) = edit else { return };
        match self.book.find_binding(wire) {
            Some(entry) if self.is_reachable(self.book.bindings[&entry].provider) => {
                self.remove_binding(entry);
                self.edits.push(CheckedEdit::RemoveBinding(entry));
            }
            Some(_) => {}
            None => self.refusals.push(Refusal::UnknownBinding { wire: wire.clone() }),
        }
    }

    fn remove_named(&mut self, edit: &Edit) {
        let Edit::RemoveComponent { component } = edit else { return };
        if let Some(entry) = self.find_component_to_change(component) {
            self.remove_component(entry);
        }
    }

    fn remove_vm(&mut self, edit: &Edit) {
        let Edit::RemoveVm { vm } = edit else { return };
        if let Some(entry) = self.find_vm(vm) {
            self.remove_vm_entry(entry);
        }
    }

    /// Marks a VM as leaving, with all its components.
    pub(super) fn remove_vm_entry(&mut self, entry: Entry) {
        for component in self.book.vms[&entry].components.clone() {
            if !self.book.components[&component].leaving {
                self.remove_component(component);
            }
        }
        let vm = self.book.vms.get_mut(&entry).expect("only known VMs are removed");
        vm.leaving = true;
        let name = vm.name.clone();
        self.book.vm_names.remove(&name);
        self.leaving_vms.push(entry);
        self.edits.push(CheckedEdit::RemoveVm(entry));
    }

    fn restart(&mut self, edit: &Edit) {
        let Edit::RestartComponent { component } = edit else { return };
        if let Some(entry) = self.find_component_to_change(component) {
            self.edits.push(CheckedEdit::Restart(entry));
        }
    }

    /// Marks a component and all its bindings as leaving. The agents take the bindings back by themselves.
    pub(super) fn remove_component(&mut self, entry: Entry) {
        let component = self.book.components.get_mut(&entry).expect("only known components are removed");
        component.leaving = true;
        let bindings: Vec<Entry> = component.borrows().chain(component.lends.iter().copied()).collect();
        let name = component.name.clone();
        self.book.component_names.remove(&name);
        self.removed.insert(name);
        self.leaving_components.push(entry);
        self.edits.push(CheckedEdit::RemoveComponent(entry));
        for binding in bindings {
            if !self.book.bindings[&binding].leaving {
                self.remove_binding(binding);
            }
        }
    }

    pub(super) fn remove_binding(&mut self, entry: Entry) {
        self.book.mark_leaving(entry, true);
        self.recount.insert(self.book.bindings[&entry].client);
        self.leaving_bindings.push(entry);
    }

    fn add_vm(&mut self, edit: &Edit) {
        let Edit::AddVm { vm } = edit else { return };
        let taken = self.book.vm_names.get(vm).is_some_and(|entry| self.book.vms[entry].health != Health::Dead);
        if taken {
            return self.refusals.push(Refusal::DuplicateVm { vm: vm.clone() });
        }
        let entry = self.book.next_entry();
        let fresh = VmEntry {
            name: vm.clone(),
            id: None,
            health: Health::Awaited,
            state: VmState::Empty,
            leaving: false,
            left: false,
            components: ShortSet::default(),
            neighbours: ShortSet::default(),
            answered: OrderNumber::NONE,
            suspicions: 0,
        };
        self.book.vms.insert(entry, fresh);
        // The name of a lost VM can be taken over.
        self.lost_names.extend(self.book.vm_names.insert(vm.clone(), entry).map(|lost| (vm.clone(), lost)));
        self.edits.push(CheckedEdit::AddVm(entry));
    }

    pub(super) fn add_component(&mut self, edit: &Edit) {
        let Edit::AddComponent { component: name, vm, kind } = edit else { return };
        self.check_kind(name, kind);
        let home = self.find_vm(vm);
        if self.book.component_names.contains_key(name) {
            return self.refusals.push(Refusal::DuplicateComponent { component: name.clone() });
        }
        let Some(home) = home else { return };
        let entry = self.book.next_entry();
        let fresh = ComponentEntry {
            name: name.clone(),
            kind: kind.clone(),
            id: None,
            condition: None,
            expected: false,
            pending: false,
            withdrawn: 0,
            vm: home,
            leaving: false,
            left: false,
            renewed: OrderNumber::NONE,
            imports: kind.imports.iter().map(|(name, it)| (name.clone(), ImportEntry::new(it.need))).collect(),
            lends: ShortSet::default(),
            clients: ShortMap::default(),
        };
        self.book.components.insert(entry, fresh);
        self.book.component_names.insert(name.clone(), entry);
        let components = &mut self.book.vms.get_mut(&home).expect("it was just found").components;
        components.insert(entry);
        if components.len() > bounds::COMPONENTS_PER_VM_MAX {
            self.refusals.push(Refusal::TooManyComponents { vm: vm.clone() });
        }
        self.recount.insert(entry);
        self.edits.push(CheckedEdit::AddComponent(entry));
    }

    fn check_kind(&mut self, component: &Name, kind: &Kind) {
        if kind.recipe.len() > bounds::RECIPE_BYTES_MAX {
            self.refusals.push(Refusal::RecipeTooLong { component: component.clone() });
        }
        let values: usize = kind.exports.values().map(|export| export.values.len()).sum();
        if kind.imports.len() + kind.exports.len() + values > bounds::KIND_NAMES_MAX {
            self.refusals.push(Refusal::TooManyNames { component: component.clone() });
        }
        for (import, it) in &kind.imports {
            self.check_need(component, import, it.need);
        }
    }

    fn check_need(&mut self, component: &Name, import: &Name, need: Need) {
        let sort = match need {
            Need::Strong(0) => "strong",
            Need::Value(0) => "value",
            Need::Strong(_) | Need::Value(_) | Need::Weak(_) => return,
        };
        let (component, import) = (component.clone(), import.clone());
        self.refusals.push(Refusal::NeedsNothing { component, import, sort: sort.into() });
    }

    pub(super) fn add_binding(&mut self, edit: &Edit) {
        let Edit::AddBinding(wire) = edit else { return };
        let (client, provider) = (self.find_component(&wire.client), self.find_component(&wire.provider));
        let need = client.and_then(|entry| self.check_import(entry, wire));
        let exports = provider.map(|entry| self.check_export(entry, wire));
        let (Some(client), Some(provider), Some(need), Some(true)) = (client, provider, need, exports) else { return };
        if client == provider {
            return self.refusals.push(Refusal::BoundToItself { wire: wire.clone() });
        }
        if self.book.components[&client].imports[&wire.import].bound.contains_key(&provider) {
            return self.refusals.push(Refusal::DuplicateBinding { wire: wire.clone() });
        }
        let entry = self.book.next_entry();
        let hearing = match &self.book.components[&provider].kind.exports[&wire.export] {
            _ if self.book.components[&client].kind.rebinds => Hearing::ByRebind,
            export if export.has_values() => Hearing::ByRestart,
            _ => Hearing::Never,
        };
        let fresh = BindingEntry {
            hearing,
            id: None,
            client,
            import: wire.import.clone(),
            provider,
            export: wire.export.clone(),
            need,
            leaving: false,
            left: false,
            counted: false,
            held: false,
            withdrawn: false,
        };
        self.book.add_binding(entry, fresh);
        let lender = self.book.components.get_mut(&provider).expect("it was just found");
        lender.count_client(&wire.export, true);
        self.check_capacity(provider, wire);
        self.recount.insert(client);
        self.new_bindings.push(entry);
        self.edits.push(CheckedEdit::AddBinding(entry));
    }

    /// Refuses more clients than an export takes.
    pub(super) fn check_capacity(&mut self, provider: Entry, wire: &Wire) {
        let lender = &self.book.components[&provider];
        let clients = lender.clients.get(&wire.export).copied().unwrap_or(0);
        let capacity = lender.kind.exports[&wire.export].capacity;
        if let Some(capacity) = capacity.filter(|capacity| clients > *capacity) {
            let (provider, export) = (wire.provider.clone(), wire.export.clone());
            // The last word counts: each further binding replaces the refusal before it.
            self.refusals.retain(|refusal| {
                !matches!(refusal, Refusal::CapacityExceeded { provider: p, export: e, .. } if *p == provider && *e == export)
            });
            self.refusals.push(Refusal::CapacityExceeded { provider, export, capacity, clients });
        }
    }

    fn check_import(&mut self, client: Entry, wire: &Wire) -> Option<Need> {
        let kind = &self.book.components[&client].kind;
        match kind.imports.get(&wire.import) {
            Some(import) if import.export == wire.export => Some(import.need),
            Some(import) => {
                self.refusals.push(Refusal::PortsDiffer { wire: wire.clone(), takes: import.export.clone() });
                None
            }
            None => {
                let (component, import) = (wire.client.clone(), wire.import.clone());
                let known = list(kind.imports.keys());
                self.refusals.push(Refusal::UnknownImport { component, import, known });
                None
            }
        }
    }

    fn check_export(&mut self, provider: Entry, wire: &Wire) -> bool {
        let kind = &self.book.components[&provider].kind;
        let exists = kind.exports.contains_key(&wire.export);
        if !exists {
            let (component, export) = (wire.provider.clone(), wire.export.clone());
            let known = list(kind.exports.keys());
            self.refusals.push(Refusal::UnknownExport { component, export, known });
        }
        exists
    }

    pub(super) fn set_need(&mut self, edit: &Edit) {
        let Edit::SetNeed { component: name, import, number } = edit else { return };
        let Some(entry) = self.find_component(name) else { return };
        let component = &self.book.components[&entry];
        let Some(need) = component.imports.get(import).map(|import| import.need) else {
            let known = list(component.imports.keys());
            let (component, import) = (name.clone(), import.clone());
            return self.refusals.push(Refusal::UnknownImport { component, import, known });
        };
        self.check_need(name, import, need.with_number(*number));
        self.needs.insert((entry, import.clone()), *number);
        self.recount.insert(entry);
    }

    /// What was said last of each need is ordered: a lower number of providers before anything is taken away.
    pub(super) fn order_needs(&mut self) {
        for ((entry, name), number) in &self.needs {
            let component = self.book.components.get_mut(entry).expect("it was found when it was wished for");
            let import = component.imports.get_mut(name).expect("it was found when it was wished for");
            let before = std::mem::replace(&mut import.accepted, *number);
            self.needs_before.push((*entry, name.clone(), before));
            let lower = *number <= before && entry.0 <= self.entries_before;
            let edit = if lower { CheckedEdit::LowerNeed } else { CheckedEdit::SetNeed };
            self.edits.push(edit(*entry, name.clone(), *number));
        }
    }

    /// What can only be seen once everything is written down. `short`: imports that may have too few providers.
    pub(super) fn check_whole(&mut self, incomplete: bool, short: &BTreeSet<(Entry, Name)>) {
        let bindings = self.new_bindings.iter().map(|entry| &self.book.bindings[entry]);
        let closing = bindings.filter(|binding| self.book.passes_restarts_on(binding));
        let clients: BTreeSet<Entry> = closing.map(|binding| binding.client).collect();
        self.refusals.extend(self.book.find_cycle(clients));
        if incomplete {
            return;
        }
        for entry in std::mem::take(&mut self.recount) {
            let component = &self.book.components[&entry];
            if component.leaving {
                continue;
            }
            for (import, it) in &component.imports {
                let bound = u32::try_from(it.bound.len()).unwrap_or(u32::MAX);
                let needed = it.accepted;
                if bound < needed && !short.contains(&(entry, import.clone())) {
                    let (component, import) = (component.name.clone(), import.clone());
                    self.refusals.push(Refusal::TooFewProviders { component, import, needed, bound });
                }
            }
        }
    }

    /// The VM of that name, if orders can be posted to it.
    fn find_vm(&mut self, name: &Name) -> Option<Entry> {
        let Some(entry) = self.book.vm_names.get(name).copied() else {
            self.refusals.push(Refusal::UnknownVm { vm: name.clone() });
            return None;
        };
        if self.book.vms[&entry].health == Health::Dead {
            self.refusals.push(Refusal::VmLost { vm: name.clone() });
            return None;
        }
        Some(entry)
    }

    fn find_component(&mut self, name: &Name) -> Option<Entry> {
        let Some(entry) = self.book.component_names.get(name).copied() else {
            self.refusals.push(Refusal::UnknownComponent { component: name.clone() });
            return None;
        };
        self.is_reachable(entry).then_some(entry)
    }

    /// Like [`Self::find_component`], but one that this very change removes is not unknown.
    fn find_component_to_change(&mut self, name: &Name) -> Option<Entry> {
        if self.removed.contains(name) {
            self.refusals.push(Refusal::RemovedTwice { what: format!("component {name:?}") });
            return None;
        }
        self.find_component(name)
    }

    fn is_reachable(&mut self, component: Entry) -> bool {
        let vm = &self.book.vms[&self.book.components[&component].vm];
        let lost = vm.health == Health::Dead;
        if lost {
            self.refusals.push(Refusal::VmLost { vm: vm.name.clone() });
        }
        !lost
    }

    /// Takes the draft out of the book again.
    fn undo(&mut self) {
        for (entry, name, number) in self.needs_before.drain(..) {
            let component = self.book.components.get_mut(&entry).expect("a draft strikes nothing out");
            component.imports.get_mut(&name).expect("a draft strikes nothing out").accepted = number;
        }
        let fresh = Entry(self.entries_before + 1);
        let bindings: Vec<Entry> = self.book.bindings.keys_from(fresh).collect();
        bindings.into_iter().for_each(|entry| self.book.strike_binding(entry));
        let components: Vec<Entry> = self.book.components.keys_from(fresh).collect();
        components.into_iter().for_each(|entry| drop(self.book.strike_component(entry)));
        let vms: Vec<Entry> = self.book.vms.keys_from(fresh).collect();
        vms.into_iter().for_each(|entry| self.book.strike_vm(entry));
        for entry in &self.leaving_bindings {
            self.book.mark_leaving(*entry, false);
        }
        for entry in &self.leaving_components {
            let component = self.book.components.get_mut(entry).expect("a draft strikes nothing out");
            component.leaving = false;
            self.book.component_names.insert(component.name.clone(), *entry);
        }
        for entry in &self.leaving_vms {
            let vm = self.book.vms.get_mut(entry).expect("a draft strikes nothing out");
            vm.leaving = false;
            self.book.vm_names.insert(vm.name.clone(), *entry);
        }
        self.book.vm_names.extend(std::mem::take(&mut self.lost_names));
        self.book.entries = self.entries_before;
    }
}

fn list<'n>(names: impl Iterator<Item = &'n Name>) -> String {
    let names: Vec<&str> = names.map(Name::as_str).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
