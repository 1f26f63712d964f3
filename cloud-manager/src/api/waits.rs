//! What waits, and for what: the question that an operator asks at three in the morning.

use super::view::state;
use crate::{document::quoted, handle::Clouds};
use protocol::{
    ChangeId, ComponentState, Name, Need, Operation,
    manager::{BindingEntry, Book, ChangeState, ComponentEntry, Health, Waiting},
};
use std::collections::{BTreeMap, BTreeSet};

/// So many reasons of one sort are told; the others are counted.
const REASONS_MAX: usize = 5;

/// Says what changes wait for. Made once for many, because what is on its way out is not found by its name in the book.
pub(super) struct Waits<'a> {
    book: &'a Book,
    clouds: &'a Clouds,
    leaving: BTreeMap<&'a Name, &'a ComponentEntry>,
    leaving_vms: BTreeSet<&'a Name>,
    /// VMs that cannot go yet, because something on its way out is still there.
    full_vms: BTreeSet<&'a Name>,
    /// VMs that have not answered every order: what was ordered there may not have begun.
    silent_vms: BTreeSet<&'a Name>,
    changes: &'a [ChangeState],
}

impl<'a> Waits<'a> {
    pub(super) fn new(book: &'a Book, clouds: &'a Clouds, changes: &'a [ChangeState]) -> Self {
        let leaving: BTreeMap<_, _> = book.components().filter(|it| it.is_leaving()).map(|it| (&it.name, it)).collect();
        let leaving_vms = book.vms().filter(|it| it.is_leaving()).map(|it| &it.name).collect();
        let full_vms = leaving.values().map(|it| &book.vm_of(it).name).collect();
        let silent = |it: &'a Waiting| if let Waiting::Answer(vm) = it { Some(vm) } else { None };
        let silent_vms = changes.iter().flat_map(|change| &change.waiting).filter_map(silent).collect();
        Self { book, clouds, leaving, leaving_vms, full_vms, silent_vms, changes }
    }

    /// Whether the agent of a component has yet to answer an order.
    pub(super) fn is_unanswered(&self, entry: &ComponentEntry) -> bool {
        self.silent_vms.contains(&self.book.vm_of(entry).name)
    }

    /// One thing that a change waits for, with the reason behind it where the book knows one.
    pub(super) fn in_words(&self, waiting: &Waiting) -> String {
        let entry = match waiting {
            // A component on its way out may share its name with the one that replaces it.
            Waiting::Component(name) => self.leaving.get(name).copied().or_else(|| self.book.component(name)),
            Waiting::Started(name, _) => self.book.component(name),
            Waiting::Vm(_) | Waiting::Binding(_) | Waiting::Answer(_) | Waiting::Change(_) => None,
        };
        let reasons = |entry| match waiting {
            Waiting::Started(_, true) if is_to_restart(self.book, entry) && is_heard(self.book, entry) => {
                loans_out(self.book, entry)
            }
            _ => of_component(self.book, entry),
        };
        // What its agent has yet to hear of has not begun; that it has to answer is told beside it.
        let entry = entry.filter(|it| !(is_started(it) && is_heard(self.book, it) && self.is_unanswered(it)));
        let reasons = entry.map(reasons).unwrap_or_default();
        let because =
            if reasons.is_empty() { String::new() } else { format!(", which waits for {}", reasons.join(" and ")) };
        self.briefly(waiting) + &because
    }

    /// The same without the reason.
    pub(super) fn briefly(&self, waiting: &Waiting) -> String {
        match waiting {
            Waiting::Vm(vm) if self.leaving_vms.contains(&vm) && self.full_vms.contains(&vm) => {
                format!("vm {vm} to be empty")
            }
            Waiting::Vm(vm) if self.leaving_vms.contains(&vm) => format!("the cloud to destroy vm {vm}"),
            Waiting::Vm(vm) if self.clouds.contains_key(vm) => format!("the cloud to make vm {vm}"),
            Waiting::Vm(vm) => {
                format!("an agent to join as vm {vm} (holdfast token create --vm {})", quoted(vm.as_str()))
            }
            Waiting::Component(name) if self.leaving.contains_key(name) => format!("{name} to be gone"),
            Waiting::Component(name) => format!("{name} to restart"),
            Waiting::Binding(wire) => format!("{wire} to be given back"),
            Waiting::Answer(vm) => format!("vm {vm} to answer"),
            Waiting::Started(name, true) => match self.book.component(name) {
                Some(entry) if is_to_restart(self.book, entry) => format!("{name} to restart"),
                Some(entry) if is_started(entry) => format!("{name} to use all that it is bound to"),
                _ => format!("{name} to start"),
            },
            Waiting::Started(name, false) => format!("{name} to stop"),
            Waiting::Change(change) => self.change_in_words(*change),
        }
    }

    /// The components that a change waits for of which an operation failed for good. One that waits for another change
    /// waits for all that stops that one.
    pub(super) fn stuck_on(&self, change: &ChangeState) -> Vec<String> {
        let mut stuck: Vec<String> = Vec::new();
        for waiting in &change.waiting {
            match waiting {
                Waiting::Component(name) | Waiting::Started(name, _) if self.has_failed(name) => {
                    stuck.push(name.to_string());
                }
                // Only an earlier one is ever waited for, so this comes to an end.
                Waiting::Change(other) if *other < change.change => {
                    let earlier = self.changes.iter().find(|it| it.change == *other);
                    stuck.extend(earlier.map(|it| self.stuck_on(it)).unwrap_or_default());
                }
                _ => {}
            }
        }
        stuck
    }

    fn has_failed(&self, name: &Name) -> bool {
        let failed = |it: &ComponentEntry| matches!(state(it), Some(ComponentState::Failed(_)));
        // One that failed before it was to go, goes all the same; only a failed stop or purge holds it up.
        let cannot_go =
            |it: &ComponentEntry| matches!(state(it), Some(ComponentState::Failed(Operation::Stop | Operation::Purge)));
        self.leaving.get(name).copied().is_some_and(cannot_go) || self.book.component(name).is_some_and(failed)
    }

    fn change_in_words(&self, id: ChangeId) -> String {
        let change = self.changes.iter().find(|it| it.change == id);
        let stuck = change.map(|it| self.stuck_on(it)).unwrap_or_default();
        let person = match stuck.as_slice() {
            [] => String::new(),
            _ => format!(" and waits for a person to help {}", few(stuck.into_iter()).join(" and ")),
        };
        format!("{id}, which is about the same components{person}")
    }
}

/// What a component waits for, if it is not as expected.
pub(super) fn of_component(book: &Book, entry: &ComponentEntry) -> Vec<String> {
    let vm = book.vm_of(entry);
    match (vm.health, state(entry)) {
        (Health::Awaited, None) => return vec![format!("vm {} to be there", vm.name)],
        (Health::Suspected(_), _) => return vec![format!("vm {} to be heard of again", vm.name)],
        (Health::Dead, _) => return vec![],
        (_, None) => return vec![format!("vm {} to take it up", vm.name)],
        (_, Some(ComponentState::Failed(operation))) => {
            return vec![format!("a person to retry or skip its failed {operation}")];
        }
        (_, Some(ComponentState::Starting)) => return vec!["its start to end".into()],
        (_, Some(ComponentState::Stopping)) => return vec!["its stop to end".into()],
        (_, Some(ComponentState::Started | ComponentState::Stopped)) => {}
    }
    match (state(entry) == Some(ComponentState::Started), entry.is_leaving()) {
        // It may stop once every loan is home.
        (true, leaving) if leaving || !entry.expected => loans_out(book, entry),
        (true, _) => not_held(book, entry),
        (false, true) => vec![format!("vm {} to purge it", vm.name)],
        (false, false) => {
            let missing = missing(book, entry);
            let nothing = missing.is_empty() && entry.expected;
            if nothing { vec!["its host, which prepares it or pauses before the next attempt".into()] } else { missing }
        }
    }
}

/// What a started component could use and does not yet.
fn not_held(book: &Book, entry: &ComponentEntry) -> Vec<String> {
    let awaited = |it: &&BindingEntry| !it.is_held() && !it.is_leaving() && book.provider_of(it).expected;
    let awaited = worst_first(book, book.borrowed(entry).filter(awaited).collect());
    few(awaited.into_iter().map(|it| provider_in_words(book, it)))
}

/// Bindings to those first who need a person: only the first few of many are told.
pub(super) fn worst_first<'a>(book: &Book, mut bindings: Vec<&'a BindingEntry>) -> Vec<&'a BindingEntry> {
    bindings.sort_by_key(|it| urgency(book, book.provider_of(it)));
    bindings
}

/// How much a component needs a person, the most first.
pub(super) fn urgency(book: &Book, entry: &ComponentEntry) -> u8 {
    match (state(entry), book.vm_of(entry).health) {
        (Some(ComponentState::Failed(_)), _) => 0,
        (_, Health::Suspected(_)) => 1,
        (None, _) => 2,
        (Some(ComponentState::Stopped | ComponentState::Stopping), _) => 3,
        (Some(ComponentState::Starting), _) => 4,
        (Some(ComponentState::Started), _) => 5,
    }
}

/// A provider, how it is, and what it is needed for.
fn provider_in_words(book: &Book, binding: &BindingEntry) -> String {
    let provider = book.provider_of(binding);
    let how = state(provider).map_or("awaited".to_string(), |state| state.to_string());
    format!("{} ({how}) for {}", provider.name, book.wire(binding).import)
}

/// Whether a component that a change waits to see started is started already, and has all it should hold: then it is the
/// next run that is waited for.
pub(super) fn is_to_restart(book: &Book, entry: &ComponentEntry) -> bool {
    is_started(entry) && book.borrowed(entry).all(|it| it.is_held() || it.is_leaving())
}

/// Whether its VM answers.
pub(super) fn is_heard(book: &Book, entry: &ComponentEntry) -> bool {
    book.vm_of(entry).health == Health::Well
}

fn is_started(entry: &ComponentEntry) -> bool {
    state(entry) == Some(ComponentState::Started)
}

/// Who still holds what it lends.
fn loans_out(book: &Book, entry: &ComponentEntry) -> Vec<String> {
    let out = book.lent(entry).filter(|it| is_in_use(book, it)).map(|it| book.wire(it));
    few(out.map(|wire| format!("{} to give back {wire}", wire.client)))
}

/// Whether a provider may not stop because of a binding. Once it is recalled, its client says that it does not hold it any
/// more; but if it needs it, it gives it back only when it has stopped.
pub(super) fn is_in_use(book: &Book, binding: &BindingEntry) -> bool {
    let runs = match state(book.client_of(binding)) {
        Some(ComponentState::Starting | ComponentState::Started | ComponentState::Stopping) => true,
        // Whoever could not be stopped still holds on.
        Some(ComponentState::Failed(operation)) => operation == Operation::Stop,
        Some(ComponentState::Stopped) | None => false,
    };
    !binding.need().is_value() && (binding.is_held() || (binding.need().is_strong() && runs))
}

/// What its imports lack to let it start.
fn missing(book: &Book, entry: &ComponentEntry) -> Vec<String> {
    let mut missing = Vec::new();
    for (name, import) in entry.imports() {
        let number = match import.need {
            Need::Strong(number) | Need::Value(number) => usize::try_from(number).unwrap_or(usize::MAX),
            Need::Weak(_) => continue,
        };
        let own: Vec<&BindingEntry> =
            book.borrowed(entry).filter(|it| book.wire(it).import == *name && !it.is_leaving()).collect();
        if own.iter().filter(|it| it.is_held()).count() >= number {
            continue;
        }
        if own.len() < number {
            missing.push(format!("{name} to be bound ({} of {number} are)", own.len()));
        }
        let awaited = worst_first(book, own.into_iter().filter(|it| !it.is_held()).collect());
        missing.extend(few(awaited.into_iter().map(|it| provider_in_words(book, it))));
    }
    missing
}

/// The first few of many, and how many more there are.
fn few(reasons: impl Iterator<Item = String>) -> Vec<String> {
    let mut reasons = reasons.fuse();
    let mut few: Vec<String> = reasons.by_ref().take(REASONS_MAX).collect();
    match reasons.count() {
        0 => {}
        more => few.push(format!("{more} more")),
    }
    few
}
