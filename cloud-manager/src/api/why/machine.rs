//! Why a VM is not as expected, and which changes an operation that is not ordered yet waits for.

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
    /// Adds a VM, and why it is not as expected.
    pub(super) fn vm(&mut self, depth: usize, vm: &'a VmEntry) {
        let name = &vm.name;
        if !self.is_news(Seen::Vm(name, vm.id), depth, &format!("vm {name}")) {
            return;
        }
        let word = quoted(name.as_str());
        match vm.health {
            Health::Awaited if vm.id.is_none() => {
                self.wrong_vm(depth, vm, format!("vm {name} is not requested yet: it waits for a change in progress"));
                self.all_changes(depth + 1);
            }
            Health::Awaited if self.clouds.contains_key(name) => {
                let failed = vm.id.and_then(|id| self.history.not_made(id)).map(str::to_owned);
                let says = match failed {
                    Some(_) => format!("vm {name} could not be created; retrying"),
                    None => format!("vm {name} is being created by the cloud; its agent has not joined yet"),
                };
                self.wrong_vm(depth, vm, says);
                self.why.reasons.last_mut().expect("it was just added").detail = failed;
                self.remedy(format!("holdfast vm remove {word} abandons it and its components"));
            }
            Health::Awaited => {
                self.wrong_vm(depth, vm, format!("vm {name} waits for an agent to join"));
                self.remedy(format!("holdfast token create --vm {word} creates the join token for its agent"));
                self.remedy(format!("holdfast vm remove {word} abandons it and its components"));
            }
            Health::Suspected(_) => {
                self.wrong_vm(depth, vm, format!("vm {name} does not answer; its components may still be running"));
                self.remedy(format!(
                    "start the agent of vm {name} again, or repair the network between it and the manager"
                ));
                self.remedy(format!("holdfast vm lost {word} declares it lost, if it will never come back"));
            }
            Health::Dead => {
                self.wrong_vm(depth, vm, format!("vm {name} is lost with all its components"));
                match name.as_str().split_once('/') {
                    Some((application, _)) => {
                        self.remedy(format!("holdfast reconcile {application} recreates what is missing"));
                    }
                    None => self.remedy(format!("holdfast vm add {word} creates a new VM of that name")),
                }
            }
            Health::Well => self.well_vm(depth, vm),
        }
    }

    /// A VM that answers: which of its components are not as expected.
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
                0 if own.is_empty() => format!("vm {name} is empty, but the cloud has not destroyed it yet"),
                _ => format!("vm {name} is to be removed, but still has {}", number(own.len(), "component")),
            };
            self.why.well = false;
            self.push(depth, format!("vm {name}"), says);
            return self.each(depth + 1, &own, |inquiry, depth, it| inquiry.component(depth, it, Desired::AsExpected));
        }
        match (others.len(), own.len()) {
            (0, 0) => self.tell_vm(depth, vm, format!("vm {name} answers and has no components")),
            (0, all) => self.tell_vm(depth, vm, format!("vm {name} answers, and {} started", are(all, "component"))),
            (some, all) => {
                let are = if some == 1 { "is not as expected" } else { "are not as expected" };
                self.why.well = false;
                // How long the VM has answered says nothing about its components.
                let says = format!("vm {name} answers, but {some} of its {all} components {are}");
                self.push(depth, format!("vm {name}"), says);
                self.each(depth + 1, &others, |inquiry, depth, it| inquiry.component(depth, it, Desired::AsExpected));
            }
        }
    }

    /// An operation that is not ordered yet waits for a change. Which one is not recorded, so all changes in progress
    /// are listed.
    pub(super) fn all_changes(&mut self, depth: usize) {
        let changes: Vec<&ChangeState> = self.changes.iter().collect();
        self.each(depth, &changes, Self::change);
    }

    fn change(&mut self, depth: usize, change: &'a ChangeState) {
        let id = change.change;
        if !self.is_news(Seen::Change(id), depth, &id.to_string()) {
            return;
        }
        let asked = self.history.change(id).and_then(|it| it.asked.as_deref());
        let asked = asked.map(|it| format!(" ({it})")).unwrap_or_default();
        let others = change.waiting.len();
        let says = match change.waiting.as_slice() {
            [Waiting::Change(other)] => format!("{id}{asked} waits for {other}, which affects the same components"),
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
            Waiting::Binding(wire) => self.push(depth, wire.clone(), format!("{wire} has to be returned")),
        }
    }
}

fn number(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn are(number: usize, what: &str) -> String {
    if number == 1 { format!("its only {what} is") } else { format!("all its {number} {what}s are") }
}
