//! Why something is not as it should be: from a component to who it waits for, from there to the next, across machines, until
//! somebody is found who waits for nobody. That one has failed, is busy, or is not heard of, and there a person can help.
//!
//! The book says how each one is and the chronicle since when; nothing here asks anybody else. Each thing is told once, so
//! that a chain ends even where things wait for each other.

mod component;
mod machine;
mod missing;

pub(super) use missing::missing;

use super::{chronicle::Chronicle, waits::Waits};
use crate::{
    document::{Reason, Why},
    handle::Clouds,
};
use component::Desired;
use protocol::{
    ChangeId, CloudManager, ComponentId, Name, VmId,
    manager::{Book, ChangeState, ComponentEntry, Health, VmEntry},
};
use std::{collections::BTreeSet, ptr};

/// So many reasons of one sort are followed; the others are counted.
const FOLLOWED_MAX: usize = 5;
/// So many links a chain has at most; nobody reads more.
const REASONS_MAX: usize = 60;

/// Why everything of that name is as it is: a VM, a component, and perhaps one that is on its way out while another has its
/// name. Nothing, if there is nothing of that name.
pub(in crate::api) fn why(machine: &CloudManager, clouds: &Clouds, chronicle: &Chronicle, name: &Name) -> Vec<Why> {
    let book = machine.book();
    let changes: Vec<ChangeState> = machine.changes().collect();
    let inquire = |what: &str| Inquiry {
        book,
        clouds,
        chronicle,
        changes: &changes,
        waits: Waits::new(book, clouds, &changes),
        seen: BTreeSet::new(),
        why: Why { name: name.to_string(), what: what.into(), well: true, ..Why::default() },
    };
    let mut answers = Vec::new();
    for entry in book.components().filter(|it| it.name == *name) {
        let mut inquiry = inquire("component");
        inquiry.component(0, entry, Desired::AsExpected);
        answers.push(inquiry.why);
    }
    // Of those that are lost, one counts as long as no other has its name.
    let bears_it = |vm: &VmEntry| book.vm(name).is_some_and(|it| ptr::eq(it, vm));
    for vm in book.vms().filter(|it| it.name == *name && (it.health != Health::Dead || bears_it(it))) {
        let mut inquiry = inquire("vm");
        inquiry.vm(0, vm);
        answers.push(inquiry.why);
    }
    answers
}

/// What a chain hangs on and what was found so far.
struct Inquiry<'a> {
    book: &'a Book,
    clouds: &'a Clouds,
    chronicle: &'a Chronicle,
    changes: &'a [ChangeState],
    waits: Waits<'a>,
    /// What was told already.
    seen: BTreeSet<Seen<'a>>,
    why: Why,
}

/// Something that was told. Names alone would mix up what is on its way out and what replaces it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Seen<'a> {
    Component(&'a Name, Option<ComponentId>),
    Vm(&'a Name, Option<VmId>),
    Change(ChangeId),
}

impl<'a> Inquiry<'a> {
    /// Follows the first few of many, and counts the others.
    fn each<T: Copy>(&mut self, depth: usize, all: &[T], follow: impl Fn(&mut Self, usize, T)) {
        for it in all.iter().take(FOLLOWED_MAX) {
            if self.why.reasons.len() >= REASONS_MAX {
                return;
            }
            follow(self, depth, *it);
        }
        match all.len().saturating_sub(FOLLOWED_MAX) {
            0 => {}
            more => self.push(depth, String::new(), format!("and {more} more")),
        }
    }

    /// Whether something was not told yet; what was is only named again.
    fn is_news(&mut self, it: Seen<'a>, depth: usize, about: &str) -> bool {
        let is_news = self.seen.insert(it);
        if !is_news {
            self.push(depth, about.to_owned(), format!("{about}: see above"));
        }
        is_news
    }

    fn wrong(&mut self, depth: usize, entry: &ComponentEntry, says: String) {
        self.why.well = false;
        self.tell(depth, entry, says);
    }

    fn wrong_vm(&mut self, depth: usize, vm: &VmEntry, says: String) {
        self.why.well = false;
        self.tell_vm(depth, vm, says);
    }

    fn tell(&mut self, depth: usize, entry: &ComponentEntry, says: String) {
        self.push(depth, entry.name.to_string(), says);
        let told = self.why.reasons.last_mut().expect("it was just told");
        told.since_ms = entry.id.and_then(|id| self.chronicle.since(id));
        told.deaths = entry.id.and_then(|id| self.chronicle.deaths(id));
    }

    fn tell_vm(&mut self, depth: usize, vm: &VmEntry, says: String) {
        self.push(depth, format!("vm {}", vm.name), says);
        let since = vm.id.and_then(|id| self.chronicle.vm_since(id));
        self.why.reasons.last_mut().expect("it was just told").since_ms = since;
    }

    fn push(&mut self, depth: usize, about: String, says: String) {
        self.why.reasons.push(Reason { depth, about, says, ..Reason::default() });
    }

    fn remedy(&mut self, remedy: String) {
        if !self.why.remedies.contains(&remedy) {
            self.why.remedies.push(remedy);
        }
    }
}
