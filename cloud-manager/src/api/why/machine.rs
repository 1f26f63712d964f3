//! VMs, and the changes that what is not ordered yet waits for.

use super::{Inquiry, Seen, component::Desired};
use crate::{
    api::{view::state, waits::urgency},
    document::quoted,
};
use protocol::{
    ComponentState,
    manager::{ChangeState, ComponentEntry, Health, VmEntry, Waiting},
};
use std::ptr;

impl<'a> Inquiry<'a> {
    /// A VM, and why it is not as it should be.
    pub(super) fn vm(&mut self, depth: usize, vm: &'a VmEntry) {
        let name = &vm.name;
        if !self.is_news(Seen::Vm(name, vm.id), depth, &format!("vm {name}")) {
            return;
        }
        let word = quoted(name.as_str());
        match vm.health {
            Health::Awaited if vm.id.is_none() => {
                self.wrong_vm(depth, vm, format!("vm {name} is not asked for yet: it waits for its turn"));
                self.all_changes(depth + 1);
            }
            Health::Awaited if self.clouds.contains_key(name) => {
                let failed = vm.id.and_then(|id| self.chronicle.not_made(id)).map(str::to_owned);
                let says = match failed {
                    Some(_) => format!("vm {name} could not be made, and the cloud is asked again"),
                    None => format!("vm {name} is being made by the cloud, and its agent has not been heard of yet"),
                };
                self.wrong_vm(depth, vm, says);
                self.why.reasons.last_mut().expect("it was just told").detail = failed;
                self.remedy(format!("holdfast vm remove {word} gives it up, with what was to run on it"));
            }
            Health::Awaited => {
                self.wrong_vm(depth, vm, format!("vm {name} waits for an agent to join"));
                self.remedy(format!("holdfast token create --vm {word} makes the token with which its agent joins"));
                self.remedy(format!("holdfast vm remove {word} gives it up, with what was to run on it"));
            }
            Health::Suspected(_) => {
                self.wrong_vm(depth, vm, format!("vm {name} has not been heard of; its components may run on"));
                self.remedy(format!(
                    "start the agent of vm {name} again, or mend the network between it and the manager"
                ));
                self.remedy(format!("holdfast vm lost {word} declares it lost, if it will never come back"));
            }
            Health::Dead => {
                self.wrong_vm(depth, vm, format!("vm {name} is lost, with all that ran on it"));
                match name.as_str().split_once('/') {
                    Some((application, _)) => {
                        self.remedy(format!("holdfast reconcile {application} makes again what is still asked for"));
                    }
                    None => self.remedy(format!("holdfast vm add {word} makes another of its name")),
                }
            }
            Health::Well => self.well_vm(depth, vm),
        }
    }

    /// A VM that answers: what of it is not as it should be.
    fn well_vm(&mut self, depth: usize, vm: &'a VmEntry) {
        let name = &vm.name;
        let mut own: Vec<&ComponentEntry> =
            self.book.components().filter(|it| ptr::eq(self.book.vm_of(it), vm)).collect();
        let is_well =
            |it: &&&ComponentEntry| state(it) == Some(ComponentState::Started) && it.expected && !it.is_leaving();
        own.sort_by_key(|it| urgency(self.book, it));
        let others: Vec<&ComponentEntry> = own.iter().filter(|it| !is_well(it)).copied().collect();
        if vm.is_leaving() {
            let says = match others.len() {
                0 if own.is_empty() => format!("vm {name} is empty, and the cloud has yet to destroy it"),
                _ => format!("vm {name} is to be removed, and {} not gone", are(own.len(), "component")),
            };
            self.why.well = false;
            self.push(depth, format!("vm {name}"), says);
            return self.each(depth + 1, &own, |inquiry, depth, it| inquiry.component(depth, it, Desired::AsExpected));
        }
        match (others.len(), own.len()) {
            (0, 0) => self.tell_vm(depth, vm, format!("vm {name} answers, and has no component")),
            (0, all) => self.tell_vm(depth, vm, format!("vm {name} answers, and {} started", are(all, "component"))),
            (some, all) => {
                let are = if some == 1 { "is not as it should be" } else { "are not as they should be" };
                self.why.well = false;
                // Since when it answers says nothing of them.
                let says = format!("vm {name} answers, but {some} of its {all} components {are}");
                self.push(depth, format!("vm {name}"), says);
                self.each(depth + 1, &others, |inquiry, depth, it| inquiry.component(depth, it, Desired::AsExpected));
            }
        }
    }

    /// What is not ordered yet waits for a change; which one nobody says, so all that are under way are told.
    pub(super) fn all_changes(&mut self, depth: usize) {
        let changes: Vec<&ChangeState> = self.changes.iter().collect();
        self.each(depth, &changes, Self::change);
    }

    fn change(&mut self, depth: usize, change: &'a ChangeState) {
        let id = change.change;
        if !self.is_news(Seen::Change(id), depth, &id.to_string()) {
            return;
        }
        let asked = self.chronicle.change(id).and_then(|it| it.asked.as_deref());
        let asked = asked.map(|it| format!(" ({it})")).unwrap_or_default();
        let others = change.waiting.len();
        let says = match change.waiting.as_slice() {
            [Waiting::Change(other)] => format!("{id}{asked} waits for {other}, which is about the same components"),
            [one] => format!("{id}{asked} waits for {}", self.waits.briefly(one)),
            _ => format!("{id}{asked} waits for {others} things"),
        };
        self.push(depth, id.to_string(), says);
        let waiting: Vec<&Waiting> = change.waiting.iter().collect();
        self.each(depth + 1, &waiting, |inquiry, depth, it| inquiry.waiting(depth, it));
    }

    fn waiting(&mut self, depth: usize, waiting: &'a Waiting) {
        let book = self.book;
        match waiting {
            Waiting::Change(id) => {
                if let Some(change) = self.changes.iter().find(|it| it.change == *id) {
                    self.change(depth, change);
                }
            }
            Waiting::Vm(name) | Waiting::Answer(name) => {
                let found = book.vms().find(|it| it.name == *name && it.health != Health::Dead);
                found.into_iter().for_each(|vm| self.vm(depth, vm));
            }
            Waiting::Component(name) => {
                let leaving = book.components().find(|it| it.name == *name && it.is_leaving());
                let found = leaving.or_else(|| book.component(name));
                found.into_iter().for_each(|it| self.component(depth, it, Desired::AsExpected));
            }
            Waiting::Started(name, _) => {
                let found = book.component(name);
                found.into_iter().for_each(|it| self.component(depth, it, Desired::AsExpected));
            }
            Waiting::Binding(wire) => self.push(depth, wire.clone(), format!("{wire} has to be given back")),
        }
    }
}

fn are(number: usize, what: &str) -> String {
    if number == 1 { format!("its only {what} is") } else { format!("all its {number} {what}s are") }
}
