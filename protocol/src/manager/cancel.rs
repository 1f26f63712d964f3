//! Rule M6: cancelling a change. What is not posted is dropped, and what is posted is taken back by an ordinary change.
//!
//! The book keeps, for each change that is not done, what would take it back (`Undo`). A removal or addition that was not
//! posted is struck out of the book as if it had never been asked for. What was posted is undone by edits like any others:
//! what the change added is removed, what it removed is added again under new numbers, and needs are set back. So every
//! rule about loans holds on the way back, too, and the end is the configuration from before the change, with whatever
//! later changes have made of it.
//!
//! The whole is written into a copy of the book first. If anything speaks against it, the copy is thrown away.

use super::{
    CloudManager, News, Output, Turn,
    accept::Draft,
    book::{Book, Entry, Health},
    edit::CheckedEdit,
    phases::Running,
};
use crate::{ChangeId, Edit, Name, Refusal, Strategy, Wire};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What becomes of a change that is cancelled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CancelOutlook {
    /// Nothing of it was posted: it is dropped, and nothing moves.
    Dropped,
    /// Nothing that was posted can or need be taken back: that is finished, and the rest is dropped.
    Finished,
    /// What was posted is taken back, and the rest is dropped: the configuration is again the one from before the change.
    Undone {
        /// The components that the change added and that are removed again.
        removes: Vec<Name>,
        /// The components that the change removed and that are added again.
        adds: Vec<Name>,
    },
}

/// What takes a change back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Undo {
    pub(super) strategy: Strategy,
    /// All that it adds has a place after the first of these in the book, and none after the second.
    pub(super) entries: (u64, u64),
    /// The VMs that it removes.
    pub(super) vms: BTreeMap<Entry, Name>,
    /// The components that it removes, each with the edits that add it again.
    pub(super) components: BTreeMap<Entry, Vec<Edit>>,
    /// The bindings that it removes, also those that go with a component.
    pub(super) bindings: BTreeMap<Entry, Wire>,
    /// The needs that it sets: the number before it, and its own.
    pub(super) needs: BTreeMap<(Entry, Name), (u32, u32)>,
    /// The names that its VMs took over from lost ones.
    pub(super) lost_names: BTreeMap<Name, Entry>,
    /// The imports that had too few providers before it.
    pub(super) short: BTreeSet<(Entry, Name)>,
}

impl Undo {
    fn has_added(&self, entry: Entry) -> bool {
        self.entries.0 < entry.0 && entry.0 <= self.entries.1
    }
}

/// A change that is taken back, in a copy of the book.
struct Cancelling {
    book: Book,
    edits: Vec<CheckedEdit>,
    outlook: CancelOutlook,
    /// The components that have to be looked at again.
    touched: BTreeSet<Entry>,
    /// The VMs that were to go and stay.
    kept: Vec<Entry>,
}

impl CloudManager {
    /// What would become of a change if it were cancelled now, or every reason why it cannot be. Changes nothing.
    pub fn cancel_outlook(&self, change: ChangeId) -> Result<CancelOutlook, Vec<Refusal>> {
        match self.cancelled(change)? {
            Some(outlook) => Ok(outlook.clone()),
            None => self.take_back(change).map(|cancelling| cancelling.outlook),
        }
    }

    /// What was said when a change was cancelled before.
    fn cancelled(&self, change: ChangeId) -> Result<Option<&CancelOutlook>, Vec<Refusal>> {
        match self.running.get(&change) {
            Some(running) => Ok(running.cancelled.as_ref()),
            None if change.0 == 0 || change > self.last_change => Err(vec![Refusal::UnknownChange { change }]),
            None => Err(vec![Refusal::ChangeIsDone { change }]),
        }
    }

    /// Takes a change that is not done back, in a copy of the book.
    fn take_back(&self, change: ChangeId) -> Result<Cancelling, Vec<Refusal>> {
        let running = &self.running[&change];
        let undo = running.undo.as_ref().ok_or_else(|| vec![Refusal::NothingToCancel { change }])?;
        let mut refusals: Vec<Refusal> = self.later_ones(change, undo).collect();
        let mut book = self.book.clone();
        let mut draft = Draft::new(&mut book);
        let mut back = TakingBack { draft: &mut draft, running, undo, touched: BTreeSet::new(), kept: Vec::new() };
        back.take_additions_back();
        back.take_removals_back();
        back.set_needs_back();
        let TakingBack { touched, kept, .. } = back;
        draft.order_needs();
        draft.check_whole(false, &undo.short);
        refusals.append(&mut draft.refusals);
        let edits = std::mem::take(&mut draft.edits);
        if !refusals.is_empty() {
            refusals.sort();
            refusals.dedup();
            return Err(refusals);
        }
        let outlook = outlook(running, &book, &edits);
        Ok(Cancelling { book, edits, outlook, touched, kept })
    }

    /// The later changes that build on what this one has not posted: they have to be cancelled first.
    fn later_ones(&self, change: ChangeId, undo: &Undo) -> impl Iterator<Item = Refusal> {
        let unposted = move |entry: &Entry| {
            undo.has_added(*entry)
                && (self.book.components.get(entry).is_some_and(|it| it.id.is_none())
                    || self.book.vms.get(entry).is_some_and(|it| it.id.is_none()))
        };
        let ahead = move |entry: &Entry| {
            let edits = self.running[&change].ahead.iter().flat_map(|(_, edits)| edits);
            edits.into_iter().any(|edit| edit.sets_need_of(*entry))
        };
        let builds = move |later: &&Running| later.touches.iter().any(|entry| unposted(entry) || ahead(entry));
        let later = self.running.range(ChangeId(change.0 + 1)..);
        later.filter(move |(_, it)| builds(it)).map(move |(later, _)| Refusal::NeededLater { change, later: *later })
    }
}

/// Says what becomes of a change whose posted part these edits take back.
fn outlook(running: &Running, book: &Book, edits: &[CheckedEdit]) -> CancelOutlook {
    let name = |entry: &Entry| book.components[entry].name.clone();
    let removes =
        edits.iter().filter_map(|it| if let CheckedEdit::RemoveComponent(it) = it { Some(name(it)) } else { None });
    let adds = edits.iter().filter_map(|it| if let CheckedEdit::AddComponent(it) = it { Some(name(it)) } else { None });
    match (edits.is_empty(), &running.phase) {
        (true, None) => CancelOutlook::Dropped,
        (true, Some(_)) => CancelOutlook::Finished,
        (false, _) => CancelOutlook::Undone { removes: removes.collect(), adds: adds.collect() },
    }
}

/// One change while it is taken back.
struct TakingBack<'t, 'b> {
    draft: &'t mut Draft<'b>,
    running: &'t Running,
    undo: &'t Undo,
    touched: BTreeSet<Entry>,
    kept: Vec<Entry>,
}

impl TakingBack<'_, '_> {
    /// What was added and posted is removed; what was not posted is struck out.
    fn take_additions_back(&mut self) {
        let (undo, first) = (self.undo, Entry(self.undo.entries.0 + 1));
        let book = &self.draft.book;
        let bindings: Vec<Entry> = book.bindings.keys_from(first).filter(|it| undo.has_added(*it)).collect();
        let components: Vec<Entry> = book.components.keys_from(first).filter(|it| undo.has_added(*it)).collect();
        let vms: Vec<Entry> = book.vms.keys_from(first).filter(|it| undo.has_added(*it)).collect();
        for entry in bindings {
            let binding = &self.draft.book.bindings[&entry];
            let goes_with_an_end = undo.has_added(binding.client) || undo.has_added(binding.provider);
            let (client, posted, leaving) = (binding.client, binding.id.is_some(), binding.leaving);
            self.touched.insert(client);
            if !posted {
                self.draft.recount.insert(client);
                self.draft.book.strike_binding(entry);
            } else if !leaving && !goes_with_an_end {
                self.draft.remove_binding(entry);
                self.draft.edits.push(CheckedEdit::RemoveBinding(entry));
            }
        }
        for entry in components {
            let component = &self.draft.book.components[&entry];
            self.touched.insert(entry);
            if component.id.is_none() {
                let (clients, _) = self.draft.book.strike_component(entry);
                self.draft.recount.extend(clients);
            } else if !component.leaving {
                self.draft.remove_component(entry);
            }
        }
        for entry in vms {
            let vm = &self.draft.book.vms[&entry];
            let (posted, leaving, name) = (vm.id.is_some(), vm.leaving, vm.name.clone());
            // A later change may have put something there.
            let stays = |it: &&Entry| !self.draft.book.components[*it].leaving;
            if let Some(component) = vm.components.iter().find(stays) {
                let component = self.draft.book.components[component].name.clone();
                self.draft.refusals.push(Refusal::VmInUse { vm: name, component });
            } else if !posted {
                self.draft.book.strike_vm(entry);
            } else if !leaving && vm.health != Health::Dead {
                self.draft.remove_vm_entry(entry);
            }
        }
        for (name, entry) in &undo.lost_names {
            if self.draft.book.vms.contains_key(entry) && !self.draft.book.vm_names.contains_key(name) {
                self.draft.book.vm_names.insert(name.clone(), *entry);
            }
        }
        // Whatever was struck out need not be looked at again.
        let book = &self.draft.book;
        self.touched.retain(|entry| book.components.contains_key(entry));
        self.draft.recount.retain(|entry| book.components.contains_key(entry));
    }

    /// What was to be removed stays, if that is not posted; what was posted is added again.
    fn take_removals_back(&mut self) {
        let undo = self.undo;
        let posted = !self.running.ahead.iter().flat_map(|(_, edits)| edits).any(CheckedEdit::is_removal);
        for (entry, name) in &undo.vms {
            self.keep_vm(*entry, name);
        }
        // Without its VM, nothing can be said of a component.
        if !self.draft.refusals.is_empty() {
            return;
        }
        for (entry, edits) in &undo.components {
            if posted {
                edits.iter().for_each(|edit| self.draft.add_component(edit));
                edits.iter().for_each(|edit| self.draft.set_need(edit));
            } else {
                self.keep_component(*entry);
            }
        }
        for (entry, wire) in &undo.bindings {
            if posted {
                self.bind_again(wire);
            } else {
                self.keep_binding(*entry, wire);
            }
        }
    }

    /// A VM that was to go stays, unless the cloud was asked to destroy it.
    fn keep_vm(&mut self, entry: Entry, name: &Name) {
        let taken = self.draft.book.vm_names.contains_key(name);
        let Some(vm) = self.draft.book.vms.get_mut(&entry).filter(|vm| !(vm.left && vm.components.is_empty())) else {
            return self.draft.refusals.push(Refusal::VmIsGoing { vm: name.clone() });
        };
        if vm.health == Health::Dead {
            return;
        }
        if taken {
            return self.draft.refusals.push(Refusal::DuplicateVm { vm: name.clone() });
        }
        (vm.leaving, vm.left) = (false, false);
        self.draft.book.vm_names.insert(name.clone(), entry);
        self.kept.push(entry);
    }

    /// A component whose removal is not posted stays.
    fn keep_component(&mut self, entry: Entry) {
        // It may have been lost with its VM.
        let Some(component) = self.draft.book.components.get(&entry) else { return };
        let (name, vm) = (component.name.clone(), &self.draft.book.vms[&component.vm]);
        if vm.leaving {
            return self.draft.refusals.push(Refusal::VmIsGoing { vm: vm.name.clone() });
        }
        if self.draft.book.component_names.contains_key(&name) {
            return self.draft.refusals.push(Refusal::DuplicateComponent { component: name });
        }
        self.draft.book.components.get_mut(&entry).expect("it was just looked up").leaving = false;
        self.draft.book.component_names.insert(name, entry);
        self.touched.insert(entry);
        self.draft.recount.insert(entry);
    }

    /// A binding whose removal is not posted stays, if both its ends do.
    fn keep_binding(&mut self, entry: Entry, wire: &Wire) {
        let book = &mut self.draft.book;
        let Some(binding) = book.bindings.get(&entry) else { return };
        let (client, provider) = (binding.client, binding.provider);
        if book.components[&client].leaving || book.components[&provider].leaving {
            return;
        }
        if book.components[&client].imports[&binding.import].bound.contains_key(&provider) {
            return self.draft.refusals.push(Refusal::DuplicateBinding { wire: wire.clone() });
        }
        book.mark_leaving(entry, false);
        self.touched.insert(client);
        self.draft.recount.insert(client);
        self.draft.check_capacity(provider, wire);
    }

    /// A binding whose removal is posted is made again, unless a later change has seen to it, or taken an end away.
    fn bind_again(&mut self, wire: &Wire) {
        let book = &self.draft.book;
        let (Some(client), Some(provider)) =
            (book.component_names.get(&wire.client), book.component_names.get(&wire.provider))
        else {
            return;
        };
        let import = book.components[client].imports.get(&wire.import);
        if !import.is_some_and(|import| import.bound.contains_key(provider)) {
            self.draft.add_binding(&Edit::AddBinding(wire.clone()));
        }
    }

    /// Needs get their number from before, unless a later change has set another.
    fn set_needs_back(&mut self) {
        let undo = self.undo;
        for ((entry, name), (before, after)) in &undo.needs {
            let Some(component) = self.draft.book.components.get_mut(entry).filter(|it| !it.leaving) else { continue };
            let Some(import) = component.imports.get_mut(name).filter(|it| it.accepted == *after) else { continue };
            let ahead = self.running.ahead.iter().flat_map(|(_, edits)| edits);
            if ahead.into_iter().any(|edit| edit.sets_need(*entry, name)) {
                import.accepted = *before;
            } else {
                self.draft.needs.insert((*entry, name.clone()), *before);
            }
            self.touched.insert(*entry);
            self.draft.recount.insert(*entry);
        }
    }
}

impl Turn<'_> {
    /// Cancels a change, or refuses with every reason. Asked again, it answers the same and does nothing.
    pub(super) fn cancel(&mut self, change: ChangeId) {
        let cancelled = self.manager.cancelled(change).map(Option::<&CancelOutlook>::cloned);
        let answer = cancelled.and_then(|before| match before {
            Some(outlook) => Ok(outlook),
            None => self.manager.take_back(change).map(|cancelling| self.carry_back(change, cancelling)),
        });
        // The answer comes first, whatever else this step has to say.
        let answer = answer.map_or_else(News::Refused, |outlook| News::Cancelling(change, outlook));
        self.outputs.insert(0, Output::ToOperator(answer));
    }

    fn carry_back(&mut self, change: ChangeId, cancelling: Cancelling) -> CancelOutlook {
        let Cancelling { book, edits, outlook, touched, kept } = cancelling;
        self.manager.book = book;
        self.touched.extend(touched);
        let CloudManager { running, book, .. } = &mut *self.manager;
        let running = running.get_mut(&change).expect("only a change that runs is cancelled");
        let strategy = running.undo.as_ref().map_or_else(Strategy::default, |undo| undo.strategy);
        running.ahead = Running::new(edits, strategy, None, book).ahead;
        running.cancelled = Some(outlook.clone());
        running.look_ahead(book);
        if let Some(phase) = &mut running.phase {
            kept.iter().for_each(|vm| phase.outstanding.remove(vm));
        }
        // What is under way would be waited for in vain: the way back begins beside it.
        if running.phase.is_some()
            && let Some((kind, edits)) = running.ahead.pop_front()
        {
            self.post(change, kind, edits);
        }
        outlook
    }
}
