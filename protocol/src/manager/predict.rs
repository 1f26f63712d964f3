//! Prediction: which components will be started when everything posted has come to rest.
//!
//! It is the least fixed point of "posted, not removed, and enough providers expected". Strong imports form no cycle, so
//! it is found by looking again at whatever may have changed, and at its clients, until nothing changes.

use super::book::{Book, Entry};
use crate::Need;
use std::collections::BTreeSet;

impl Book {
    /// Looks again at these components and at all that follows from them; returns all that it looked at, because what
    /// they are expected to hold may have changed even where they are up or down as before.
    pub(super) fn predict(&mut self, mut suspects: BTreeSet<Entry>) -> BTreeSet<Entry> {
        let mut seen = BTreeSet::new();
        while let Some(entry) = suspects.pop_first() {
            let Some(component) = self.components.get(&entry) else { continue };
            seen.insert(entry);
            let enough = component.imports.values().all(|import| match import.need {
                Need::Strong(number) | Need::Value(number) => import.tally.ready >= number,
                Need::Weak(_) => true,
            });
            let expected = component.is_present() && enough;
            if expected == component.expected {
                continue;
            }
            let lends: Vec<Entry> = component.lends.iter().copied().collect();
            self.components.get_mut(&entry).expect("it was just looked up").expected = expected;
            for binding in lends {
                suspects.extend(self.recount(binding));
            }
        }
        seen
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

    /// The components that may have to stop when these do: the backward closure over strong imports.
    pub(super) fn dependents(&self, roots: impl IntoIterator<Item = Entry>) -> BTreeSet<Entry> {
        let mut found = BTreeSet::new();
        let mut open: Vec<Entry> = roots.into_iter().collect();
        while let Some(entry) = open.pop() {
            let Some(component) = self.components.get(&entry) else { continue };
            if !found.insert(entry) {
                continue;
            }
            let binding = |lent: &Entry| &self.bindings[lent];
            let strong = component.lends.iter().map(binding).filter(|lent| lent.need.is_strong() && lent.id.is_some());
            open.extend(strong.map(|lent| lent.client));
        }
        found
    }
}
