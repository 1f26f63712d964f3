//! A YAML file as plain data with positions, for small files that are not application files.

use crate::{
    node::{Content, Node},
    problem::{Findings, Problems},
    reading::Reading,
    source::{Sources, Span},
    yaml,
};
use serde_json::Value;

/// A file as plain data. All problems are reported together at the end.
#[derive(Debug)]
pub struct Data {
    sources: Sources,
    root: Option<Node>,
    reading: Reading,
}

impl Data {
    /// Reads a file. Invalid YAML is reported by [`Data::conclude`].
    pub fn read(name: &str, text: &str) -> Self {
        let mut sources = Sources::default();
        let file = sources.add(name, text);
        let mut findings = Findings::default();
        let (root, _) = yaml::parse(file, text, &mut findings);
        Self { sources, root, reading: Reading { findings, ..Reading::default() } }
    }

    /// The value at a path of names and indices, if there is one.
    pub fn value(&self, path: &[&str]) -> Value {
        self.node(path).map_or(Value::Null, Reading::value)
    }

    /// The names in a map, in order; unknown ones are reported, if known ones are given.
    pub fn names(&mut self, path: &[&str], what: &str, known: &[&str]) -> Vec<String> {
        let Some(node) = self.node(path).cloned() else { return Vec::new() };
        if !known.is_empty() {
            self.reading.fields(&node, what, known);
        } else {
            self.reading.entries(&node, what);
        }
        node.entries().iter().map(|(key, _)| key.text.clone()).collect()
    }

    /// How many items a list has.
    pub fn items(&mut self, path: &[&str], what: &str) -> usize {
        let Some(node) = self.node(path).cloned() else { return 0 };
        self.reading.items(&node, what).len()
    }

    /// Adds a problem with the value at a path.
    pub fn wrong(&mut self, path: &[&str], says: impl Into<String>) {
        let known = (0..=path.len()).rev().find_map(|length| self.node(&path[..length]));
        let span = known.map_or(Span::beginning(0), |node| node.span);
        self.reading.wrong(span, says);
    }

    /// All problems, if there are any.
    pub fn conclude(self) -> Result<(), Problems> {
        self.reading.findings.conclude(&self.sources)
    }

    fn node(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self.root.as_ref()?, |node, part| match &node.content {
            Content::List { items, .. } => items.get(part.parse::<usize>().ok()?),
            _ => node.get(part),
        })
    }
}
