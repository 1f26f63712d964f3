//! Strong imports that go round in a circle: nobody in it could ever start first.

use crate::{
    Application,
    expansion::{Expansion, Key, Reference},
    problem::Findings,
};
use protocol::{Name, Need};
use std::collections::{BTreeMap, BTreeSet};

/// Tells each circle of groups once, drawn.
pub(crate) fn check(application: &Application, others: &[Expansion], expansion: &Expansion, findings: &mut Findings) {
    let graph = Graph::new(others, expansion);
    let mut told: BTreeSet<Vec<(Option<Name>, Name)>> = BTreeSet::new();
    for circle in graph.circles() {
        let groups: Vec<(Option<Name>, Name)> =
            circle.iter().map(|(node, _)| (node.application.clone(), node.key.group.clone())).collect();
        let mut shape = groups.clone();
        shape.sort();
        shape.dedup();
        if !told.insert(shape) {
            continue;
        }
        let mut drawn = String::new();
        for (node, import) in &circle {
            drawn += &format!("{node} ─{import}→ ");
        }
        let first = circle.first().map(|(node, _)| node.to_string()).unwrap_or_default();
        // Where one of our own imports is part of it.
        let own = circle.iter().find(|(node, _)| node.application.is_none());
        let Some((node, import)) = own else { continue };
        let group = &application.components[&node.key.group];
        let span =
            group.wiring.get(*import).map_or_else(|| application.type_of(group).imports[*import].span, |it| it.span);
        findings.add(span, format!("strong imports go round in a circle, so that nobody could start first: {drawn}{first} (make one of them weak or value)"));
    }
}

/// Who holds on to whom.
struct Graph<'a> {
    nodes: Vec<Reference>,
    edges: Vec<Vec<(usize, &'a Name)>>,
}

impl<'a> Graph<'a> {
    fn new(others: &'a [Expansion], expansion: &'a Expansion) -> Self {
        let seen = |home: &Name, key: &Key| Reference {
            application: Some(home.clone()).filter(|it| *it != expansion.application),
            key: key.clone(),
        };
        // An application that is described anew takes the place of what it was.
        let all = || others.iter().filter(|it| it.application != expansion.application).chain([expansion]);
        let nodes: Vec<Reference> =
            all().flat_map(|it| it.components.keys().map(|key| seen(&it.application, key))).collect();
        let places: BTreeMap<&Reference, usize> = nodes.iter().enumerate().map(|(place, node)| (node, place)).collect();
        let mut edges = vec![Vec::new(); nodes.len()];
        let mut place = 0;
        for it in all() {
            for (key, component) in &it.components {
                for (import, providers) in &component.bound {
                    let need = it
                        .definitions
                        .get(&key.group)
                        .and_then(|definition| definition.imports.get(import))
                        .map(|it| it.need);
                    if !matches!(need, Some(Need::Strong(_))) {
                        continue;
                    }
                    for provider in providers {
                        let provider = seen(provider.application.as_ref().unwrap_or(&it.application), &provider.key);
                        edges[place].extend(places.get(&provider).map(|provider| (*provider, import)));
                    }
                }
                place += 1;
            }
        }
        drop(places);
        Self { nodes, edges }
    }

    /// One circle through each edge that closes one, in a walk that visits every node once.
    fn circles(&self) -> Vec<Vec<(&Reference, &'a Name)>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.nodes.len()];
        let mut circles = Vec::new();
        for start in 0..self.nodes.len() {
            // Each node on the way, with the edge that is taken next.
            let mut way: Vec<(usize, usize)> = Vec::new();
            if marks[start] == Mark::New {
                marks[start] = Mark::Open;
                way.push((start, 0));
            }
            while let Some((node, next)) = way.last_mut() {
                let Some((to, _)) = self.edges[*node].get(*next) else {
                    marks[*node] = Mark::Done;
                    way.pop();
                    continue;
                };
                *next += 1;
                match marks[*to] {
                    Mark::New => {
                        marks[*to] = Mark::Open;
                        way.push((*to, 0));
                    }
                    Mark::Open => {
                        let from = way.iter().position(|(node, _)| node == to).unwrap_or(0);
                        circles.push(
                            way[from..]
                                .iter()
                                .map(|(node, next)| (&self.nodes[*node], self.edges[*node][next - 1].1))
                                .collect(),
                        );
                    }
                    Mark::Done => {}
                }
            }
        }
        circles
    }
}
