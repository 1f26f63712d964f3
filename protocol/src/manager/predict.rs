//! Rule M3: prediction, which components will be started when everything posted has come to rest.
//!
//! It is the least fixed point of "posted, not removed, and enough providers expected". Strong imports form no cycle, so
//! it is found by looking again at whatever may have changed, and at its clients, until nothing changes.

use super::book::{BindingEntry, Book, Entry, Hearing};
use crate::Need;
use std::collections::BTreeSet;

impl Book {
    /// Looks again at these components and at all that follows from them; returns all that it looked at, because what
    /// they are expected to hold may have changed even where they are up or down as before, and those that will come up.
    pub(super) fn predict(&mut self, mut suspects: BTreeSet<Entry>) -> (BTreeSet<Entry>, Vec<Entry>) {
        let (mut seen, mut rising) = (BTreeSet::new(), Vec::new());
        while let Some(entry) = suspects.pop_first() {
            let Some(component) = self.components.get(&entry) else { continue };
            seen.insert(entry);
            let enough = component.imports.values().all(|import| import.need.is_met_by(import.tally.ready));
            let expected = component.is_present() && enough;
            if expected == component.expected {
                continue;
            }
            rising.extend(expected.then_some(entry));
            let lends: Vec<Entry> = component.lends.iter().copied().collect();
            self.components.get_mut(&entry).expect("it was just looked up").expected = expected;
            for binding in lends {
                suspects.extend(self.recount(binding));
            }
        }
        (seen, rising)
    }

    /// Looks again at whether a client counts on a binding; returns the client if that has changed.
    pub(super) fn recount(&mut self, entry: Entry) -> Option<Entry> {
        let binding = self.bindings.get(&entry)?;
        let provider = &self.components[&binding.provider];
        let usable = if binding.need.is_value() { provider.is_present() } else { provider.expected };
        let counted = usable && binding.id.is_some() && !binding.left;
        if counted == binding.counted {
            return None;
        }
        let client = binding.client;
        self.change_binding(entry, |binding| binding.counted = counted);
        Some(client)
    }

    /// Takes note of whether a client holds a binding; returns the client if that is new.
    pub(super) fn note_held(&mut self, entry: Entry, held: bool) -> Option<Entry> {
        let client = self.bindings.get(&entry).filter(|binding| binding.held != held)?.client;
        self.change_binding(entry, |binding| binding.held = held);
        Some(client)
    }

    /// The components that may have to stop or to rebind when these do, or when these come back: the backward closure over
    /// strong imports and over those whose clients follow, and the clients that are told of its members. Says, too, whether
    /// any of them follows something.
    pub(super) fn dependents(&self, roots: impl IntoIterator<Item = Entry>) -> (BTreeSet<Entry>, bool) {
        let mut open: Vec<Entry> = roots.into_iter().collect();
        let borrows = |entry: &Entry| self.components.get(entry).into_iter().flat_map(|it| it.borrows());
        let mut followed = open.iter().flat_map(borrows).any(|binding| self.follows(&self.bindings[&binding]));
        let (mut found, mut told) = (BTreeSet::new(), BTreeSet::new());
        while let Some(entry) = open.pop() {
            let Some(component) = self.components.get(&entry) else { continue };
            if !found.insert(entry) {
                continue;
            }
            for lent in component.lends.iter().map(|lent| &self.bindings[lent]).filter(|lent| lent.id.is_some()) {
                let follows = self.follows(lent);
                followed |= follows;
                open.extend((follows || lent.need.is_strong()).then_some(lent.client));
                let is_told = lent.hearing == Hearing::ByRebind && !lent.need.is_value();
                told.extend(is_told.then_some(lent.client));
            }
        }
        found.append(&mut told);
        (found, followed)
    }

    /// The clients that follow a component when it comes back.
    pub(super) fn followers(&self, component: Entry) -> impl Iterator<Item = Entry> {
        let lends = self.components[&component].lends.iter().map(|lent| &self.bindings[lent]);
        lends.filter(|lent| lent.id.is_some() && self.follows(lent)).map(|lent| lent.client)
    }

    /// Whether a client may go on without a provider and restart when that comes back with other values: it hears of values
    /// only when it starts.
    pub(super) fn follows(&self, binding: &BindingEntry) -> bool {
        let import = || &self.components[&binding.client].imports[&binding.import];
        let spares = || match import().need {
            Need::Weak(_) => true,
            Need::Strong(number) | Need::Value(number) => import().tally.posted > number.min(import().ordered),
        };
        binding.hearing == Hearing::ByRestart && spares()
    }
}
