//! Which components there are, where they live and how they are bound: today's configuration, and a target.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::problem::Problem;

/// One node: the position of its class and its index within the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    pub class: usize,
    pub index: i64,
}

/// The name of a component, unique within a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentName(pub String);

impl fmt::Display for ComponentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One component: its type (by position) and the node that hosts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Component {
    pub kind: usize,
    pub node: Node,
}

/// One client uses one provider on one port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    pub port: String,
    pub client: ComponentName,
    pub provider: ComponentName,
}

/// Components with their places, and the bindings among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    pub components: BTreeMap<ComponentName, Component>,
    pub bindings: BTreeSet<Binding>,
}

impl Configuration {
    /// How many components of each type each inhabited node hosts.
    pub fn contents(&self, types: usize) -> BTreeMap<Node, Vec<i64>> {
        let mut contents = BTreeMap::new();
        for component in self.components.values() {
            contents.entry(component.node).or_insert_with(|| vec![0; types])[component.kind] += 1;
        }
        contents
    }

    /// A name for a further component of this type: the type's name and the first free number.
    pub(crate) fn fresh_name(&self, kind: &str, from: &mut i64) -> ComponentName {
        loop {
            let name = ComponentName(format!("{kind}_{from}"));
            *from += 1;
            if !self.components.contains_key(&name) {
                return name;
            }
        }
    }

    /// What is wrong with it as a description of today: unknown nodes, overfull nodes, bindings between strangers.
    pub(crate) fn misfits(&self, problem: &Problem) -> Vec<(String, String)> {
        let mut misfits = Vec::new();
        for (name, component) in &self.components {
            let place = format!("component {:?}", name.0);
            match problem.classes.get(component.node.class) {
                None => misfits.push((place, "its location is unknown".to_owned())),
                Some(class) if !(0..class.number).contains(&component.node.index) => misfits.push((
                    place,
                    format!(
                        "lives on {}[{}], but there are {} of them",
                        class.name, component.node.index, class.number
                    ),
                )),
                Some(_) if component.kind >= problem.types.len() => {
                    misfits.push((place, "its type is unknown".to_owned()));
                }
                Some(_) => {}
            }
        }
        if misfits.is_empty() {
            misfits.extend(self.overfull(problem));
            misfits.extend(self.strangers(problem));
        }
        misfits
    }

    fn overfull(&self, problem: &Problem) -> Vec<(String, String)> {
        let mut misfits = Vec::new();
        for (node, counts) in self.contents(problem.types.len()) {
            let class = &problem.classes[node.class];
            for resource in problem.resources() {
                let used: i64 = counts
                    .iter()
                    .zip(&problem.types)
                    .map(|(count, kind)| count * kind.resources.get(resource).copied().unwrap_or(0))
                    .sum();
                let available = class.resources.get(resource).copied().unwrap_or(0);
                if used > available {
                    misfits.push((
                        format!("{}[{}]", class.name, node.index),
                        format!("today's components use {used} {resource}, it has {available}"),
                    ));
                }
            }
        }
        misfits
    }

    fn strangers(&self, problem: &Problem) -> Vec<(String, String)> {
        let mut misfits = Vec::new();
        for binding in &self.bindings {
            let place = format!("binding of {:?} to {:?} on {:?}", binding.client.0, binding.provider.0, binding.port);
            let client = self.components.get(&binding.client);
            let provider = self.components.get(&binding.provider);
            let (Some(client), Some(provider)) = (client, provider) else {
                misfits.push((place, "one of them does not exist".to_owned()));
                continue;
            };
            let kind = &problem.types[client.kind];
            if !kind.strong.contains_key(&binding.port) && !kind.weak.contains_key(&binding.port) {
                misfits.push((place, format!("{} does not require it", kind.name)));
            } else if problem.types[provider.kind].provision_of(&binding.port).is_none() {
                misfits.push((place, format!("{} does not provide it", problem.types[provider.kind].name)));
            } else if binding.client == binding.provider {
                misfits.push((place, "a component cannot provide for itself".to_owned()));
            }
        }
        misfits
    }
}
