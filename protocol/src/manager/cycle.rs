//! Strong imports form no cycle, ever: bindings that are still being removed count too. Nor do they together with those
//! over which a restart is passed on: components would restart each other without end.

use super::book::{BindingEntry, Book, Entry};
use crate::{Need, Refusal};
use std::collections::BTreeMap;

/// How far the search is with a component.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    OnPath,
    Clear,
}

impl Book {
    /// A cycle anywhere in the book, if there is one.
    pub fn any_cycle(&self) -> Option<Refusal> {
        self.find_cycle(self.components.keys().copied())
    }

    /// A cycle through one of these clients, if there is one.
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
                        path.push((entry, self.providers(entry)));
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

    /// Whether a restart of the provider may be followed by one of the client.
    pub(super) fn passes_restarts_on(&self, binding: &BindingEntry) -> bool {
        match binding.need {
            Need::Strong(_) => true,
            // What was announced is the same after each start.
            Need::Value(_) => false,
            Need::Weak(_) => self.components[&binding.provider].kind.renews && self.follows(binding),
        }
    }

    /// The providers that pass restarts on to a component, each with whether the binding is on its way out.
    fn providers(&self, entry: Entry) -> Vec<(Entry, bool)> {
        let bindings = self.components[&entry].borrows().map(|binding| &self.bindings[&binding]);
        let passing = bindings.filter(|binding| self.passes_restarts_on(binding));
        passing.map(|binding| (binding.provider, binding.leaving)).collect()
    }

    fn name_cycle(&self, path: &[(Entry, Vec<(Entry, bool)>)], closing: Entry) -> Refusal {
        let from = path.iter().position(|(entry, _)| *entry == closing).expect("the closing component is on the path");
        let mut entries: Vec<Entry> = path[from..].iter().map(|(entry, _)| *entry).collect();
        entries.push(closing);
        let any = |pair: &[Entry], fits: fn(&BindingEntry) -> bool| {
            let mut bindings = self.components[&pair[0]].borrows().map(|binding| &self.bindings[&binding]);
            bindings.any(|binding| binding.provider == pair[1] && self.passes_restarts_on(binding) && fits(binding))
        };
        let removing = entries.windows(2).any(|pair| !any(pair, |binding| !binding.leaving));
        let strong = entries.windows(2).all(|pair| any(pair, |binding| binding.need.is_strong()));
        let cycle = entries.iter().map(|entry| self.components[entry].name.clone()).collect();
        if strong { Refusal::Cycle { cycle, removing } } else { Refusal::EndlessRestarts { cycle, removing } }
    }
}
