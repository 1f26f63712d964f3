//! Cycles of imports. In a cycle of strong imports no component could start first; in a cycle over which restarts are
//! passed on, they would never end.

use crate::{
    Application,
    expansion::{Definition, Expansion, Key, Reference},
    problem::Findings,
};
use protocol::{Export, Name, Need};
use std::collections::{BTreeMap, BTreeSet};

/// Reports each cycle of groups once, drawn.
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
        for (node, edge) in &circle {
            drawn += &format!("{node} ─{}→ ", edge.import);
        }
        let first = circle.first().map(|(node, _)| node.to_string()).unwrap_or_default();
        // Where one of our own imports is part of it.
        let own = circle.iter().find(|(node, _)| node.application.is_none());
        let Some((node, Edge { import, .. })) = own else { continue };
        let group = &application.components[&node.key.group];
        let span =
            group.wiring.get(*import).map_or_else(|| application.type_of(group).imports[*import].span, |it| it.span);
        let says = if circle.iter().all(|(_, edge)| edge.strong) {
            format!(
                "strong imports form a cycle, so no component could start first: {drawn}{first} (make one of them weak or value)"
            )
        } else {
            format!(
                "these components would restart each other forever, each with new values from the next: {drawn}{first} (give one of them a `rebind`, or choose its values `at: prepare`)"
            )
        };
        findings.add(span, says);
    }
}

/// The graph of dependencies.
struct Graph<'a> {
    nodes: Vec<Reference>,
    edges: Vec<Vec<Edge<'a>>>,
}

/// A component that may have to restart when another has restarted.
#[derive(Clone, Copy)]
struct Edge<'a> {
    provider: usize,
    import: &'a Name,
    strong: bool,
}

/// Whether a component that keeps running without a provider has to restart when that has restarted.
fn follows(client: &Definition, provider: &Definition, export: &Name) -> bool {
    let renews = || provider.recipe.renews(&provider.exports);
    !client.recipe.rebinds() && provider.exports.get(export).is_some_and(Export::has_values) && renews()
}

impl<'a> Graph<'a> {
    fn new(others: &'a [Expansion], expansion: &'a Expansion) -> Self {
        let seen = |home: &Name, key: &Key| Reference {
            application: Some(home.clone()).filter(|it| *it != expansion.application),
            key: key.clone(),
        };
        // The new description of an application replaces its old one.
        let all = || others.iter().filter(|it| it.application != expansion.application).chain([expansion]);
        let nodes: Vec<Reference> =
            all().flat_map(|it| it.components.keys().map(|key| seen(&it.application, key))).collect();
        let places: BTreeMap<&Reference, usize> = nodes.iter().enumerate().map(|(place, node)| (node, place)).collect();
        let definitions: Vec<Option<&Definition>> =
            all().flat_map(|it| it.components.keys().map(|key| it.definitions.get(&key.group))).collect();
        let mut edges = vec![Vec::new(); nodes.len()];
        let mut place = 0;
        for it in all() {
            for component in it.components.values() {
                for (import, providers) in &component.bound {
                    let Some(definition) = definitions[place] else { continue };
                    let Some(taken) = definition.imports.get(import) else { continue };
                    let strong = match taken.need {
                        Need::Strong(_) => true,
                        Need::Weak(_) => false,
                        Need::Value(_) => continue,
                    };
                    for provider in providers {
                        let provider = seen(provider.application.as_ref().unwrap_or(&it.application), &provider.key);
                        let Some(provider) = places.get(&provider).copied() else { continue };
                        let follows = |it: &Definition| follows(definition, it, &taken.export);
                        if strong || definitions[provider].is_some_and(follows) {
                            edges[place].push(Edge { provider, import, strong });
                        }
                    }
                }
                place += 1;
            }
        }
        drop(places);
        Self { nodes, edges }
    }

    /// One cycle through each edge that closes one, in a search that visits every node once.
    fn circles(&self) -> Vec<Vec<(&Reference, Edge<'a>)>> {
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
                let Some(Edge { provider: to, .. }) = self.edges[*node].get(*next) else {
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
                                .map(|(node, next)| (&self.nodes[*node], self.edges[*node][next - 1]))
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
