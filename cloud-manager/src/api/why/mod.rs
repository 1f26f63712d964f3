//! Why something is not as expected. Follows the chain of causes from a component to what it waits for, across
//! machines, until it finds a component or VM that waits for nothing: it has failed, is busy, or does not answer, and
//! there an operator can act.
//!
//! The book has the state of each one and the history since when; nothing here asks any other program. Each thing is
//! explained once, so that a chain ends even where there is a cycle.

mod component;
mod machine;
mod missing;

pub(super) use missing::missing;

use super::{history::History, waits::Waits};
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

/// Maximum number of reasons of one sort that are followed; the rest are only counted.
const FOLLOWED_MAX: usize = 5;
/// Maximum length of a chain.
const REASONS_MAX: usize = 60;

/// Why everything with that name is as it is: a VM, a component, and perhaps one that is being removed while its
/// replacement has the same name. `None` if there is nothing with that name.
pub(in crate::api) fn why(machine: &CloudManager, clouds: &Clouds, history: &History, name: &Name) -> Vec<Why> {
    let book = machine.book();
    let changes: Vec<ChangeState> = machine.changes().collect();
    let inquire = |what: &str| Inquiry {
        book,
        clouds,
        history,
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
    // A lost VM counts only if no other VM has its name.
    let bears_it = |vm: &VmEntry| book.vm(name).is_some_and(|it| ptr::eq(it, vm));
    for vm in book.vms().filter(|it| it.name == *name && (it.health != Health::Dead || bears_it(it))) {
        let mut inquiry = inquire("vm");
        inquiry.vm(0, vm);
        answers.push(inquiry.why);
    }
    answers
}

/// The inputs of a chain of reasons, and what has been found so far.
struct Inquiry<'a> {
    book: &'a Book,
    clouds: &'a Clouds,
    history: &'a History,
    changes: &'a [ChangeState],
    waits: Waits<'a>,
    /// What has been explained already.
    seen: BTreeSet<Seen<'a>>,
    why: Why,
}

/// Something that has been explained. A name alone would confuse a component that is being removed with its replacement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Seen<'a> {
    Component(&'a Name, Option<ComponentId>),
    Vm(&'a Name, Option<VmId>),
    Change(ChangeId),
}

impl<'a> Inquiry<'a> {
    /// Follows the first few of many, and counts the rest.
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

    /// Whether something has not been explained yet; if it has, adds a reference to it.
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
        let added = self.why.reasons.last_mut().expect("it was just added");
        added.since_ms = entry.id.and_then(|id| self.history.since(id));
        added.deaths = entry.id.and_then(|id| self.history.deaths(id));
    }

    fn tell_vm(&mut self, depth: usize, vm: &VmEntry, says: String) {
        self.push(depth, format!("vm {}", vm.name), says);
        let since = vm.id.and_then(|id| self.history.vm_since(id));
        self.why.reasons.last_mut().expect("it was just added").since_ms = since;
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
