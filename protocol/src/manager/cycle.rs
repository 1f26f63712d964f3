//! Strong imports form no cycle, ever: bindings that are still being removed count too.

use super::book::{Book, Entry};
use crate::Refusal;
use std::collections::BTreeMap;

/// How far the search is with a component.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    OnPath,
    Clear,
}

impl Book {
    /// A cycle over strong imports anywhere in the book, if there is one.
    pub fn any_cycle(&self) -> Option<Refusal> {
        self.find_cycle(self.components.keys().copied())
    }

    /// A cycle over strong imports through one of these clients, if there is one.
    pub(super) fn find_cycle(&self, clients: impl IntoIterator<Item = Entry>) -> Option<Refusal> {
        let mut marks: BTreeMap<Entry, Mark> = BTreeMap::new();
        for start in clients {
            // The path from `start`, each with the providers still to be looked at. No recursion: chains can be long.
            let mut path: Vec<(Entry, Vec<(Entry, bool)>)> = Vec::new();
            let mut next = Some((start, false));
            loop {
                match next.take() {
                    Some((entry, _)) if marks.get(&entry) == Some(&Mark::OnPath) => {
                        return Some(self.name_cycle(&path, entry));
                    }
                    Some((entry, _)) if marks.contains_key(&entry) => {}
                    Some((entry, _)) => {
                        marks.insert(entry, Mark::OnPath);
                        path.push((entry, self.strong_providers(entry)));
                    }
                    None => {}
                }
                let Some((entry, open)) = path.last_mut() else { break };
                next = open.pop();
                if next.is_none() {
                    marks.insert(*entry, Mark::Clear);
                    path.pop();
                }
            }
        }
        None
    }

    /// The providers of a component's strong imports, each with whether the binding is on its way out.
    fn strong_providers(&self, entry: Entry) -> Vec<(Entry, bool)> {
        let bindings = self.components[&entry].borrows().map(|binding| &self.bindings[&binding]);
        bindings.filter(|binding| binding.need.is_strong()).map(|binding| (binding.provider, binding.leaving)).collect()
    }

    fn name_cycle(&self, path: &[(Entry, Vec<(Entry, bool)>)], closing: Entry) -> Refusal {
        let from = path.iter().position(|(entry, _)| *entry == closing).expect("the closing component is on the path");
        let mut entries: Vec<Entry> = path[from..].iter().map(|(entry, _)| *entry).collect();
        entries.push(closing);
        let is_leaving = |pair: &[Entry]| {
            let fits = |(provider, leaving): &(Entry, bool)| *provider == pair[1] && !leaving;
            !self.strong_providers(pair[0]).iter().any(fits)
        };
        Refusal::Cycle {
            removing: entries.windows(2).any(is_leaving),
            cycle: entries.iter().map(|entry| self.components[entry].name.clone()).collect(),
        }
    }
}
