//! Departures: VMs that are destroyed or lost, and whatever is struck out of the book because it is gone.

use super::{
    News, Output, PhaseKind, Turn,
    book::{Entry, Health},
    phases::{Phase, Running},
    posting::Posting,
};
use crate::{Instruction, OrderNumber};
use std::collections::{BTreeMap, BTreeSet};

impl Turn<'_> {
    /// A VM that is to go and has no component left is destroyed, and its neighbours forget it.
    pub(super) fn destroy_if_empty(&mut self, entry: Entry, unanswered: &mut BTreeMap<Entry, OrderNumber>) {
        let Some(vm) = self.manager.book.vms.get(&entry) else { return };
        let (Some(id), true, true) = (vm.id, vm.left, vm.components.is_empty()) else { return };
        self.outputs.push(Output::ToCloud(super::CloudTask::Destroy(id)));
        let neighbours = vm.neighbours.clone();
        let told = self.book().forget_withdrawals(entry);
        self.touched.extend(told);
        for neighbour in neighbours {
            if let Some(number) = self.order(neighbour, |_| Instruction::ForgetVm { vm: id }) {
                unanswered.insert(neighbour, number);
            }
        }
    }

    /// Rule M7: declares a VM lost: its components are struck out, its neighbours forget it, and what depended on it is watched.
    pub(super) fn lose(&mut self, entry: Entry) -> Running {
        let vm = self.book().vms.get_mut(&entry).expect("only known VMs are lost");
        let awaited = std::mem::replace(&mut vm.health, Health::Dead) == Health::Awaited;
        let (id, components, neighbours) = (vm.id, vm.components.clone(), vm.neighbours.clone());
        let mut posting = Posting::new(PhaseKind::Forget);
        for component in components {
            let book = &self.manager.book;
            let lends = book.components[&component].lends.iter().map(|binding| &book.bindings[binding]);
            let stops = lends.filter(|it| !it.need.is_weak() || book.follows(it));
            posting.stopping.extend(stops.map(|it| it.client));
            posting.suspects.extend(self.strike(component));
        }
        self.struck(entry);
        if let Some(id) = id {
            // What is lost before it came need not come.
            if awaited {
                self.outputs.push(Output::ToCloud(super::CloudTask::Destroy(id)));
            }
            self.tell(News::VmLost(id));
            let told = self.book().forget_withdrawals(entry);
            self.touched.extend(told);
            for neighbour in neighbours {
                if let Some(number) = self.order(neighbour, |_| Instruction::ForgetVm { vm: id }) {
                    posting.expect_answer(neighbour, number);
                }
            }
        }
        let phase = self.finish_posting(posting);
        Running { phase: Some(phase), ..Running::default() }
    }

    /// A component is gone for good, with its bindings; says which components had bindings to it.
    pub(super) fn strike(&mut self, component: Entry) -> BTreeSet<Entry> {
        let (clients, bindings) = self.book().strike_component(component);
        self.struck(component);
        bindings.into_iter().for_each(|binding| self.struck(binding));
        clients
    }

    /// Something is gone for good: no phase waits for it any more.
    pub(super) fn struck(&mut self, entry: Entry) {
        for phase in self.manager.running.values_mut().filter_map(|running| running.phase.as_mut()) {
            phase.outstanding.remove(&entry);
            phase.coming.remove(&entry);
            phase.restarted.remove(&entry);
            phase.watched.remove(&entry);
            phase.unsettled.remove(&entry);
            phase.unanswered.remove(&entry);
            phase.roll.remove(&entry);
            phase.circuit.remove(&entry);
        }
    }

    /// A VM has lost a component; if it was the last of a VM that is to go, the VM goes.
    pub(super) fn vacated(&mut self, vm: Entry) {
        let holds = |phase: &&mut Phase| phase.outstanding.contains(&vm);
        let phases = self.manager.running.values_mut().filter_map(|running| running.phase.as_mut());
        let Some(phase) = phases.into_iter().find(holds) else { return };
        let mut unanswered = std::mem::take(&mut phase.unanswered);
        self.destroy_if_empty(vm, &mut unanswered);
        let phases = self.manager.running.values_mut().filter_map(|running| running.phase.as_mut());
        if let Some(phase) = phases.into_iter().find(holds) {
            phase.unanswered = unanswered;
        }
    }

    /// A VM has come: whoever waited for that goes on; whoever already waits for it to go again does not.
    pub(super) fn came(&mut self, vm: Entry) {
        for phase in self.manager.running.values_mut().filter_map(|running| running.phase.as_mut()) {
            if phase.coming.remove(&vm) {
                phase.outstanding.remove(&vm);
            }
        }
    }
}
