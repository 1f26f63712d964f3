//! What agents and the cloud say, recorded in the book.

use super::{
    Alarm, CREATE_AGAIN_MS, CloudOutcome, CloudTask, News, Note, Output, Turn,
    book::{Entry, Health},
};
use crate::{BindingId, ComponentId, ComponentState, Condition, Fact, Report, VmId};
use std::collections::BTreeSet;

impl Turn<'_> {
    /// Records a report; a VM that is lost or destroyed is not heard.
    pub(super) fn hear(&mut self, id: VmId, report: Report) {
        let Some(vm) = self.living(id) else { return self.note(Note::ReportFenced(id)) };
        for fact in report.facts {
            self.hear_fact(id, vm, fact);
        }
        let entry = self.book().vms.get_mut(&vm).expect("it was just found");
        entry.answered = report.through;
        self.answered(vm, report.through);
    }

    fn hear_fact(&mut self, id: VmId, vm: Entry, fact: Fact) {
        match fact {
            Fact::ComponentIs { component, condition } => self.hear_condition(vm, component, condition),
            Fact::BindingHeld { binding, held } => self.hear_held(vm, binding, held),
            Fact::OperationFailed { component, operation, detail } => {
                if self.component_on(vm, component).is_some() {
                    self.tell(News::OperationFailed(component, operation, detail));
                }
            }
            Fact::ComponentGone { component } => {
                let Some(entry) = self.component_on(vm, component) else { return };
                self.book().withdraw_values(entry);
                let suspects = self.strike(entry);
                let (touched, _) = self.book().predict(suspects);
                self.touched.extend(touched);
                self.tell(News::ComponentGone(component));
                self.vacated(vm);
            }
            Fact::BindingGone { binding } => {
                let Some(entry) = self.manager.book.binding_ids.get(&binding).copied() else { return };
                let gone = &self.manager.book.bindings[&entry];
                let (client, provider) = (gone.client, gone.provider);
                // Only the provider's VM knows that a binding is gone.
                if self.manager.book.components[&provider].vm == vm {
                    self.book().strike_binding(entry);
                    self.struck(entry);
                    let (touched, _) = self.book().predict(BTreeSet::from([client]));
                    self.touched.extend(touched);
                }
            }
            Fact::ValueWithdrawn { binding } => {
                let book = self.book();
                let posted = book.binding_ids.get(&binding).map(|entry| (book.bindings[entry].client, *entry));
                let withdrawn = || book.withdrawn.get(&binding).map(|(client, _)| *client);
                let Some(client) = posted.map(|(client, _)| client).or_else(withdrawn) else { return };
                // Only the client's VM knows what it knows.
                if book.components[&client].vm != vm {
                    return;
                }
                match posted {
                    Some((_, entry)) => book.bindings.get_mut(&entry).expect("it was just found").withdrawn = true,
                    None => drop(book.confirm_withdrawal(binding)),
                }
                self.touched.insert(client);
            }
            Fact::Pending { component, pending } => {
                let Some(entry) = self.component_on(vm, component) else { return };
                self.book().components.get_mut(&entry).expect("it was just found").pending = pending;
                self.touched.insert(entry);
            }
            Fact::VmIs { state } => {
                self.book().vms.get_mut(&vm).expect("it was just found").state = state;
                self.tell(News::VmIs(id, state));
            }
        }
    }

    fn hear_condition(&mut self, vm: Entry, id: ComponentId, condition: Condition) {
        let Some(entry) = self.component_on(vm, id) else { return };
        self.book().components.get_mut(&entry).expect("it was just found").condition = Some(condition);
        match condition.state {
            ComponentState::Failed(_) => self.book().failed.insert(entry),
            _ => self.book().failed.remove(&entry),
        };
        self.touched.insert(entry);
        self.tell(News::ComponentIs(id, condition));
    }

    /// Whether a client holds a binding: only its own agent is believed.
    fn hear_held(&mut self, vm: Entry, binding: BindingId, held: bool) {
        let Some(entry) = self.manager.book.binding_ids.get(&binding).copied() else { return };
        let client = self.manager.book.bindings[&entry].client;
        if self.manager.book.components[&client].vm != vm {
            return;
        }
        let touched = self.book().note_held(entry, held);
        self.touched.extend(touched);
    }

    /// The component of that number, if it lives on that VM: an agent speaks for its own VM only.
    fn component_on(&mut self, vm: Entry, id: ComponentId) -> Option<Entry> {
        let found = self.manager.book.component_ids.get(&id).copied();
        let found = found.filter(|entry| self.manager.book.components[entry].vm == vm);
        if found.is_none() {
            self.note(Note::ReportTooLate(id));
        }
        found
    }

    fn living(&self, id: VmId) -> Option<Entry> {
        let entry = self.manager.book.vm_ids.get(&id).copied()?;
        (self.manager.book.vms[&entry].health != Health::Dead).then_some(entry)
    }

    /// Records what the cloud says.
    pub(super) fn record(&mut self, outcome: CloudOutcome) {
        let id = match &outcome {
            CloudOutcome::Created(id)
            | CloudOutcome::CreateFailed(id, _)
            | CloudOutcome::Destroyed(id)
            | CloudOutcome::Silent(id)
            | CloudOutcome::Heard(id)
            | CloudOutcome::Lost(id) => *id,
        };
        let Some(entry) = self.living(id) else { return self.note(Note::TooLate(id)) };
        let patience = self.manager.suspicion_ms_max;
        let vm = self.book().vms.get_mut(&entry).expect("it was just found");
        match (outcome, vm.health) {
            (CloudOutcome::Created(_), Health::Awaited) => {
                vm.health = Health::Well;
                self.came(entry);
                self.tell(News::VmInstantiated(id));
            }
            (CloudOutcome::CreateFailed(_, detail), Health::Awaited) => {
                self.tell(News::VmNotInstantiated(id, detail));
                self.outputs.push(Output::SetAlarm(Alarm::CreateAgain(id), CREATE_AGAIN_MS));
            }
            (CloudOutcome::Destroyed(_), _) if vm.left && vm.components.is_empty() => {
                self.book().strike_vm(entry);
                self.struck(entry);
                self.tell(News::VmDestroyed(id));
            }
            // It was destroyed without a request.
            (CloudOutcome::Lost(_) | CloudOutcome::Destroyed(_), _) => {
                let running = self.lose(entry);
                let change = self.next_change();
                self.manager.running.insert(change, running);
            }
            (CloudOutcome::Silent(_), Health::Well) => {
                vm.suspicions += 1;
                let suspicion = vm.suspicions;
                vm.health = Health::Suspected(suspicion);
                self.tell(News::VmSuspected(id));
                if let Some(patience) = patience {
                    self.outputs.push(Output::SetAlarm(Alarm::Suspicion(id, suspicion), patience));
                }
            }
            (CloudOutcome::Heard(_), Health::Suspected(_)) => {
                vm.health = Health::Well;
                self.tell(News::VmWell(id));
            }
            (
                CloudOutcome::Created(_)
                | CloudOutcome::CreateFailed(..)
                | CloudOutcome::Silent(_)
                | CloudOutcome::Heard(_),
                Health::Awaited | Health::Well | Health::Suspected(_) | Health::Dead,
            ) => self.note(Note::TooLate(id)),
        }
    }

    /// An alarm rang; if its reason still stands, go on.
    pub(super) fn wake(&mut self, alarm: Alarm) {
        let (Alarm::CreateAgain(id) | Alarm::Suspicion(id, _)) = alarm;
        let found = self.living(id).map(|entry| (entry, &self.manager.book.vms[&entry]));
        match (alarm, found.map(|(entry, vm)| (entry, vm.health, vm.name.clone(), vm.left))) {
            (Alarm::CreateAgain(_), Some((_, Health::Awaited, name, false))) => {
                self.outputs.push(Output::ToCloud(CloudTask::Create(id, name)));
            }
            (Alarm::Suspicion(_, rang), Some((entry, Health::Suspected(present), ..))) if rang == present => {
                let running = self.lose(entry);
                let change = self.next_change();
                self.manager.running.insert(change, running);
            }
            (Alarm::CreateAgain(_) | Alarm::Suspicion(..), _) => self.note(Note::TooLate(id)),
        }
    }
}
