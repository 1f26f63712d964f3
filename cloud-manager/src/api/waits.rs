//! What a change or a component waits for, in words.

use super::view::state;
use crate::{document::quoted, handle::Clouds};
use protocol::{
    ChangeId, ComponentState, Name, Need, Operation,
    manager::{BindingEntry, Book, ChangeState, ComponentEntry, Health, Waiting},
};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of reasons of one sort that are listed; the rest are only counted.
const REASONS_MAX: usize = 5;

/// Says what changes wait for. Built once for many changes, because the book has no index by name of components that
/// are being removed.
pub(super) struct Waits<'a> {
    book: &'a Book,
    clouds: &'a Clouds,
    leaving: BTreeMap<&'a Name, &'a ComponentEntry>,
    leaving_vms: BTreeSet<&'a Name>,
    /// VMs that cannot be removed yet, because a component that is being removed is still there.
    full_vms: BTreeSet<&'a Name>,
    /// VMs that have not acknowledged every order: the work ordered there may not have begun.
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

    /// Whether the agent of a component has yet to acknowledge an order.
    pub(super) fn is_unanswered(&self, entry: &ComponentEntry) -> bool {
        self.silent_vms.contains(&self.book.vm_of(entry).name)
    }

    /// One thing that a change waits for, with its reason if the book knows one.
    pub(super) fn in_words(&self, waiting: &Waiting) -> String {
        let entry = match waiting {
            // A component that is being removed may share its name with its replacement.
            Waiting::Component(name) => self.leaving.get(name).copied().or_else(|| self.book.component(name)),
            Waiting::Started(name, _) => self.book.component(name),
            Waiting::Vm(_) | Waiting::Binding(_) | Waiting::Answer(_) | Waiting::Change(_) => None,
        };
        let reasons = |entry| match waiting {
            Waiting::Started(_, true) if is_to_restart(self.book, entry) && is_answering(self.book, entry) => {
                loans_out(self.book, entry)
            }
            _ => of_component(self.book, entry),
        };
        // An order that its agent has not acknowledged has not begun; the missing answer is listed separately.
        let entry = entry.filter(|it| !(is_started(it) && is_answering(self.book, it) && self.is_unanswered(it)));
        let reasons = entry.map(reasons).unwrap_or_default();
        let because =
            if reasons.is_empty() { String::new() } else { format!(", which waits for {}", reasons.join(" and ")) };
        self.briefly(waiting) + &because
    }

    /// The same, without the reason.
    pub(super) fn briefly(&self, waiting: &Waiting) -> String {
        match waiting {
            Waiting::Vm(vm) if self.leaving_vms.contains(&vm) && self.full_vms.contains(&vm) => {
                format!("vm {vm} to be empty")
            }
            Waiting::Vm(vm) if self.leaving_vms.contains(&vm) => format!("the cloud to destroy vm {vm}"),
            Waiting::Vm(vm) if self.clouds.contains_key(vm) => format!("the cloud to create vm {vm}"),
            Waiting::Vm(vm) => {
                format!("an agent to join as vm {vm} (holdfast token create --vm {})", quoted(vm.as_str()))
            }
            Waiting::Component(name) if self.leaving.contains_key(name) => format!("{name} to be gone"),
            Waiting::Component(name) => format!("{name} to restart"),
            Waiting::Binding(wire) => format!("{wire} to be returned"),
            Waiting::Answer(vm) => format!("vm {vm} to answer"),
            Waiting::Started(name, true) => match self.book.component(name) {
                Some(entry) if is_to_restart(self.book, entry) => format!("{name} to restart"),
                Some(entry) if is_started(entry) && holds_all(self.book, entry) => {
                    format!("{name} to stay up, after it died")
                }
                Some(entry) if is_started(entry) => format!("{name} to use all its bindings"),
                _ => format!("{name} to start"),
            },
            Waiting::Started(name, false) => format!("{name} to stop"),
            Waiting::Change(change) => self.change_in_words(*change),
        }
    }

    /// The components a change waits for that have a permanently failed operation. If the change waits for another change,
    /// includes the components that block that one.
    pub(super) fn stuck_on(&self, change: &ChangeState) -> Vec<String> {
        let mut stuck: Vec<String> = Vec::new();
        for waiting in &change.waiting {
            match waiting {
                Waiting::Component(name) | Waiting::Started(name, _) if self.has_failed(name) => {
                    stuck.push(name.to_string());
                }
                // A change only ever waits for earlier ones, so the recursion ends.
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
        let manual_action = match stuck.as_slice() {
            [] => String::new(),
            _ => format!(" and requires manual action on {}", few(stuck.into_iter()).join(" and ")),
        };
        format!("{id}, which affects the same components{manual_action}")
    }
}

/// Whether nothing is missing, and nothing that it lent is recalled.
fn holds_all(book: &Book, entry: &ComponentEntry) -> bool {
    let lacks = |it: &BindingEntry| !it.is_held() && !it.is_leaving();
    !book.borrowed(entry).any(lacks) && loans_out(book, entry).is_empty()
}

/// What a component waits for, if it is not as expected.
pub(super) fn of_component(book: &Book, entry: &ComponentEntry) -> Vec<String> {
    let vm = book.vm_of(entry);
    match (vm.health, state(entry)) {
        (Health::Awaited, None) => return vec![format!("vm {} to be there", vm.name)],
        (Health::Suspected(_), _) => return vec![format!("vm {} to answer again", vm.name)],
        (Health::Dead, _) => return vec![],
        (_, None) => return vec![format!("vm {} to acknowledge it", vm.name)],
        (_, Some(ComponentState::Failed(operation))) => {
            return vec![format!("an operator to retry or skip its failed {operation}")];
        }
        (_, Some(ComponentState::Starting)) => return vec!["its start to finish".into()],
        (_, Some(ComponentState::Stopping)) => return vec!["its stop to finish".into()],
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
            if nothing { vec!["its host to prepare it or to retry".into()] } else { missing }
        }
    }
}

/// Bindings that a started component could use but does not hold yet.
fn not_held(book: &Book, entry: &ComponentEntry) -> Vec<String> {
    let awaited = |it: &&BindingEntry| !it.is_held() && !it.is_leaving() && book.provider_of(it).expected;
    let awaited = worst_first(book, book.borrowed(entry).filter(awaited).collect());
    few(awaited.into_iter().map(|it| provider_in_words(book, it)))
}

/// Sorts bindings so that those to failed components come first: only the first few are listed.
pub(super) fn worst_first<'a>(book: &Book, mut bindings: Vec<&'a BindingEntry>) -> Vec<&'a BindingEntry> {
    bindings.sort_by_key(|it| urgency(book, book.provider_of(it)));
    bindings
}

/// Sort key: components that require manual action first.
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

/// A provider, its state, and the import that needs it.
fn provider_in_words(book: &Book, binding: &BindingEntry) -> String {
    let provider = book.provider_of(binding);
    let how = state(provider).map_or("awaited".to_string(), |state| state.to_string());
    format!("{} ({how}) for {}", provider.name, book.wire(binding).import)
}

/// Whether a component that a change waits for is already started and holds everything it should: then the change waits
/// for its next run.
pub(super) fn is_to_restart(book: &Book, entry: &ComponentEntry) -> bool {
    is_started(entry) && book.borrowed(entry).all(|it| it.is_held() || it.is_leaving())
}

/// Whether its VM answers.
pub(super) fn is_answering(book: &Book, entry: &ComponentEntry) -> bool {
    book.vm_of(entry).health == Health::Well
}

fn is_started(entry: &ComponentEntry) -> bool {
    state(entry) == Some(ComponentState::Started)
}

/// The clients that still hold its loans.
fn loans_out(book: &Book, entry: &ComponentEntry) -> Vec<String> {
    let out = book.lent(entry).filter(|it| is_in_use(book, it)).map(|it| book.wire(it));
    few(out.map(|wire| format!("{} to return {wire}", wire.client)))
}

/// Whether a binding keeps its provider from stopping. Once the loan is recalled, the client reports that it no longer
/// holds it; but if the client needs it, it returns the loan only when it has stopped.
pub(super) fn is_in_use(book: &Book, binding: &BindingEntry) -> bool {
    let runs = match state(book.client_of(binding)) {
        Some(ComponentState::Starting | ComponentState::Started | ComponentState::Stopping) => true,
        // A client that could not be stopped still holds its loans.
        Some(ComponentState::Failed(operation)) => operation == Operation::Stop,
        Some(ComponentState::Stopped) | None => false,
    };
    !binding.need().is_value() && (binding.is_held() || (binding.need().is_strong() && runs))
}

/// The providers that its imports lack before it can start.
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
            missing.push(format!("{name} to be bound ({} of {number} bound)", own.len()));
        }
        let awaited = worst_first(book, own.into_iter().filter(|it| !it.is_held()).collect());
        missing.extend(few(awaited.into_iter().map(|it| provider_in_words(book, it))));
    }
    missing
}

/// The first few of many, and the number of the rest.
fn few(reasons: impl Iterator<Item = String>) -> Vec<String> {
    let mut reasons = reasons.fuse();
    let mut few: Vec<String> = reasons.by_ref().take(REASONS_MAX).collect();
    match reasons.count() {
        0 => {}
        more => few.push(format!("{more} more")),
    }
    few
}
