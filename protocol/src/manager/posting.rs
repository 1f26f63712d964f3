//! Posting: the edits of one phase become orders, and the phase knows what it has to wait for.
//!
//! When a phase is done is for `phases` to say; what is struck out because it is gone, for `departures`.

use super::{
    News, Note, Output, PhaseKind, Turn,
    book::{Entry, Health},
    edit::CheckedEdit,
    phases::Phase,
};
use crate::{BindingId, ChangeId, ComponentId, Instruction, Order, OrderNumber, PagedSet, Ticket, VmId};
use std::collections::{BTreeMap, BTreeSet};

impl Turn<'_> {
    /// Sends one order, if its VM is there to take it.
    pub(super) fn order(
        &mut self,
        vm: Entry,
        instruction: impl FnOnce(OrderNumber) -> Instruction,
    ) -> Option<OrderNumber> {
        let found = self.manager.book.vms.get(&vm).filter(|vm| vm.health != Health::Dead);
        let id = found.and_then(|vm| vm.id)?;
        let number = self.next_number();
        self.outputs.push(Output::ToAgent(id, Order { number, instruction: instruction(number) }));
        Some(number)
    }

    /// Posts the edits of one phase. A phase that is still under way becomes part of it.
    pub(super) fn post(&mut self, change: ChangeId, kind: PhaseKind, edits: Vec<CheckedEdit>) {
        let mut posting = Posting::new(kind);
        posting.take_over(self.running(change).phase.take());
        for edit in edits {
            if self.post_deed(&mut posting, edit).is_none() {
                self.note(Note::DeedDropped(change));
            }
        }
        let phase = self.finish_posting(posting);
        self.running(change).phase = Some(phase);
        self.tell(News::PhasePosted(change, kind));
    }

    /// Predicts anew, and watches whatever the phase may touch.
    pub(super) fn finish_posting(&mut self, posting: Posting) -> Phase {
        let Posting { mut phase, suspects, mut stopping, added } = posting;
        let book = &mut self.manager.book;
        let (seen, rising) = book.predict(suspects);
        phase.watched.extend(seen);
        // Whoever was told of something else restarts when these have come.
        let followers: BTreeSet<Entry> = rising.into_iter().flat_map(|entry| book.followers(entry)).collect();
        stopping.extend(followers.difference(&added));
        // The dependents of what goes may stop on the way, even if they are up again in the end.
        let (dependents, followed) = book.dependents(stopping.iter().copied());
        let calls = |entry: &&Entry| !book.components[*entry].left && !phase.restarted.contains(*entry);
        let roll: Vec<Entry> = dependents.iter().filter(calls).map(|entry| book.components[entry].vm).collect();
        phase.roll.extend(roll);
        phase.followed |= followed;
        phase.circuit.extend(dependents.iter().map(|entry| book.components[entry].vm));
        phase.watched.extend(dependents);
        phase.moved |= book.is_any_pending(&phase);
        self.touched.extend(phase.watched.iter().copied());
        phase
    }

    /// Posts one edit; nothing if what it is about was lost meanwhile.
    fn post_deed(&mut self, posting: &mut Posting, edit: CheckedEdit) -> Option<()> {
        match edit {
            CheckedEdit::AddVm(entry) => {
                let name = self.manager.book.vms.get(&entry)?.name.clone();
                let id = VmId(self.next_number().0);
                self.book().vms.get_mut(&entry)?.id = Some(id);
                self.book().vm_ids.insert(id, entry);
                self.outputs.push(Output::ToCloud(super::CloudTask::Create(id, name)));
                posting.phase.outstanding.insert(entry);
                posting.phase.coming.insert(entry);
            }
            CheckedEdit::AddComponent(entry) => {
                let component = self.manager.book.components.get(&entry)?;
                let (vm, name, kind) = (component.vm, component.name.clone(), component.kind.clone());
                let number = self.order(vm, |_| Instruction::AddComponent { name, kind })?;
                let component = self.book().components.get_mut(&entry)?;
                component.id = Some(ComponentId(number.0));
                component.renewed = number;
                self.book().component_ids.insert(ComponentId(number.0), entry);
                posting.expect_answer(vm, number);
                posting.watch(entry);
                posting.added.insert(entry);
            }
            CheckedEdit::AddBinding(entry) => self.post_binding(posting, entry)?,
            CheckedEdit::SetNeed(entry, import, number) | CheckedEdit::LowerNeed(entry, import, number) => {
                // Its agent is told as soon as the component can bear it.
                let import = self.book().components.get_mut(&entry)?.imports.get_mut(&import)?;
                import.need = import.need.with_number(number);
                posting.phase.needs.insert(entry);
                posting.watch(entry);
            }
            CheckedEdit::RemoveBinding(entry) => {
                let binding = self.manager.book.bindings.get(&entry)?;
                let (client, provider, id) = (binding.client, binding.provider, binding.id?);
                let stops = !binding.need.is_weak() || self.manager.book.follows(binding);
                let vm = self.manager.book.components[&provider].vm;
                let number = self.order(vm, |_| Instruction::RemoveBinding { binding: id })?;
                self.book().bindings.get_mut(&entry)?.left = true;
                posting.suspects.extend(self.book().recount(entry));
                posting.expect_answer(vm, number);
                posting.phase.outstanding.insert(entry);
                posting.watch(client);
                posting.stopping.extend(stops.then_some(client));
            }
            CheckedEdit::RemoveComponent(entry) => {
                let id = self.manager.book.components.get(&entry)?.id?;
                self.order_component(posting, entry, Instruction::RemoveComponent { component: id })?;
                let component = self.book().components.get_mut(&entry)?;
                component.left = true;
                let lends: Vec<Entry> = component.lends.iter().copied().collect();
                for binding in lends {
                    let lent = &self.manager.book.bindings[&binding];
                    // It waits for none of those that only know its values, and yet they may have to stop.
                    if lent.need.is_value() && lent.id.is_some() {
                        posting.stopping.insert(lent.client);
                        posting.watch(lent.client);
                    }
                    posting.suspects.extend(self.book().recount(binding));
                }
                posting.phase.outstanding.insert(entry);
                posting.stopping.insert(entry);
                posting.watch(entry);
            }
            CheckedEdit::RemoveVm(entry) => {
                let vm = self.manager.book.vms.get(&entry).filter(|vm| vm.health != Health::Dead)?;
                // Whoever never came has nothing to stop and nobody to answer.
                if vm.health == Health::Awaited {
                    self.struck(entry);
                    posting.phase.unanswered.remove(&entry);
                    posting.phase.coming.remove(&entry);
                    for component in self.manager.book.vms[&entry].components.clone() {
                        posting.phase.watched.remove(&component);
                        posting.stopping.remove(&component);
                        posting.suspects.extend(self.strike(component));
                    }
                    // What went with it, bindings too, is not waited for.
                    let book = &self.manager.book;
                    posting.phase.outstanding.retain(|entry| book.has(*entry));
                }
                self.book().vms.get_mut(&entry)?.left = true;
                posting.phase.outstanding.insert(entry);
                self.destroy_if_empty(entry, &mut posting.phase.unanswered);
            }
            CheckedEdit::Restart(entry) => {
                let id = self.manager.book.components.get(&entry)?.id?;
                let number = self.order_component(posting, entry, Instruction::RestartComponent { component: id })?;
                self.book().components.get_mut(&entry)?.renewed = number;
                posting.phase.restarted.insert(entry);
                posting.stopping.insert(entry);
                posting.watch(entry);
            }
            CheckedEdit::Retry(entry) => {
                let id = self.manager.book.components.get(&entry)?.id?;
                self.order_component(posting, entry, Instruction::RetryComponent { component: id })?;
            }
            CheckedEdit::Skip(entry) => {
                let id = self.manager.book.components.get(&entry)?.id?;
                self.order_component(posting, entry, Instruction::SkipComponent { component: id })?;
            }
        }
        Some(())
    }

    fn order_component(
        &mut self,
        posting: &mut Posting,
        entry: Entry,
        instruction: Instruction,
    ) -> Option<OrderNumber> {
        let vm = self.manager.book.components.get(&entry)?.vm;
        let number = self.order(vm, |_| instruction)?;
        posting.expect_answer(vm, number);
        Some(number)
    }

    /// Tells an agent of the needs of a component that it can bear now; the phases that set them await the answer.
    pub(super) fn order_needs(&mut self, entry: Entry) {
        for (import, number) in self.manager.book.orderable_needs(entry) {
            let component = &self.manager.book.components[&entry];
            let (Some(id), vm) = (component.id, component.vm) else { continue };
            let instruction = Instruction::SetNeed { component: id, import: import.clone(), number };
            let Some(order) = self.order(vm, |_| instruction) else { continue };
            let imports = &mut self.book().components.get_mut(&entry).expect("it was just looked up").imports;
            imports.get_mut(&import).expect("it was just found").ordered = number;
            let phases = self.manager.running.values_mut().filter_map(|running| running.phase.as_mut());
            for phase in phases.filter(|phase| phase.needs.contains(&entry)) {
                phase.unanswered.insert(vm, order);
            }
        }
    }

    /// Only the provider's VM is told of a binding; the client hears of it from there.
    fn post_binding(&mut self, posting: &mut Posting, entry: Entry) -> Option<()> {
        let book = &self.manager.book;
        let binding = book.bindings.get(&entry)?.clone();
        let (client, provider) = (&book.components[&binding.client], &book.components[&binding.provider]);
        // A later change may have overtaken this one and taken an end away.
        if client.left || provider.left {
            return None;
        }
        let (client_home, provider_home) = (client.vm, provider.vm);
        let client_vm = book.vms.get(&client_home)?.id?;
        let (client_id, provider_id) = (client.id?, provider.id?);
        let number = self.order(provider_home, |_| Instruction::AddBinding {
            provider: provider_id,
            export: binding.export,
            client: client_id,
            client_vm,
            import: binding.import,
            value: binding.need.is_value(),
            ticket: Ticket::default(),
        })?;
        self.book().change_binding(entry, |binding| binding.id = Some(BindingId(number.0)));
        self.book().binding_ids.insert(BindingId(number.0), entry);
        if client_home != provider_home {
            self.book().vms.get_mut(&client_home)?.neighbours.insert(provider_home);
            self.book().vms.get_mut(&provider_home)?.neighbours.insert(client_home);
        }
        posting.suspects.extend(self.book().recount(entry));
        posting.expect_answer(provider_home, number);
        // Whoever is told of another provider that is no more restarts with this one.
        let follows = self.manager.book.follows(&self.manager.book.bindings[&entry]);
        posting.stopping.extend((follows && !posting.added.contains(&binding.client)).then_some(binding.client));
        posting.watch(binding.client);
        posting.watch(binding.provider);
        Some(())
    }
}

/// A phase while it is being posted.
pub(super) struct Posting {
    pub(super) phase: Phase,
    /// Components whose prediction must be looked at again.
    pub(super) suspects: BTreeSet<Entry>,
    /// Components that will, or may, stop because of this phase.
    pub(super) stopping: BTreeSet<Entry>,
    /// Components that it adds.
    added: BTreeSet<Entry>,
}

impl Posting {
    pub(super) fn new(kind: PhaseKind) -> Self {
        let phase = Phase {
            kind,
            unanswered: BTreeMap::new(),
            outstanding: PagedSet::default(),
            coming: BTreeSet::new(),
            restarted: PagedSet::default(),
            watched: PagedSet::default(),
            unsettled: PagedSet::default(),
            roll: BTreeSet::new(),
            circuit: BTreeSet::new(),
            followed: false,
            moved: false,
            needs: BTreeSet::new(),
        };
        Self { phase, suspects: BTreeSet::new(), stopping: BTreeSet::new(), added: BTreeSet::new() }
    }

    /// A phase that is under way goes on as a part of this one.
    fn take_over(&mut self, before: Option<Phase>) {
        let kind = self.phase.kind;
        if let Some(before) = before {
            // Whatever it moved may still be on its way, and look right again before it has arrived.
            self.stopping.extend(before.watched.iter().copied());
            self.phase = Phase { kind, unsettled: PagedSet::default(), ..before };
        }
    }

    pub(super) fn expect_answer(&mut self, vm: Entry, number: OrderNumber) {
        self.phase.unanswered.insert(vm, number);
    }

    fn watch(&mut self, component: Entry) {
        self.suspects.insert(component);
        self.phase.watched.insert(component);
    }
}
