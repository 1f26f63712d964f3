//! What differs between two expansions of one application: on keys, and on the content of each key.

use crate::expansion::{Component, Definition, Expansion, Key, Reference};
use protocol::Name;
use recipe::{Recipe, value_type::ValueTypes};
use serde::{Deserialize, Serialize, de::Error};
use std::collections::{BTreeMap, BTreeSet};

/// The difference between an application as it was and as it is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// VMs that differ.
    pub vms: BTreeMap<Key, How>,
    /// Components that differ, other than in their bindings.
    pub components: BTreeMap<Key, How>,
    /// Bindings that are added.
    pub bound: Vec<Binding>,
    /// Bindings that are removed.
    pub unbound: Vec<Binding>,
    /// How much is unchanged.
    pub unchanged: Unchanged,
}

/// How something differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// It is added.
    Added,
    /// It is removed.
    Removed,
    /// It is replaced under the same name, because of these changes.
    Replaced(Vec<String>),
    /// It is told of these changes while it runs.
    Adjusted(Vec<String>),
}

/// How much is unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unchanged {
    /// VMs.
    pub vms: usize,
    /// Components.
    pub components: usize,
    /// Bindings.
    pub bindings: usize,
}

/// A binding under its key, such as `app[2].db → database[0].sql`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    /// The component that borrows.
    pub client: Key,
    /// Its import.
    pub import: Name,
    /// The component that lends.
    pub provider: Reference,
    /// Its export.
    pub export: Name,
}

impl std::fmt::Display for Binding {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{} → {}.{}", self.client, self.import, self.provider, self.export)
    }
}

impl Serialize for Binding {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Binding {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || D::Error::custom(format!("{text:?} is not a binding of an application"));
        let (client, provider) = text.split_once(" → ").ok_or_else(wrong)?;
        let (client, import) = client.rsplit_once('.').ok_or_else(wrong)?;
        let (provider, export) = provider.rsplit_once('.').ok_or_else(wrong)?;
        let name = |text: &str| Name::new(text).map_err(D::Error::custom);
        Ok(Self {
            client: client.parse().map_err(D::Error::custom)?,
            import: name(import)?,
            provider: provider.parse().map_err(D::Error::custom)?,
            export: name(export)?,
        })
    }
}

impl Difference {
    /// What differs between two expansions.
    pub fn between(before: &Expansion, after: &Expansion) -> Self {
        let mut difference = Self::default();
        for key in keys(&before.vms, &after.vms) {
            let how = match (before.vms.get(key), after.vms.get(key)) {
                (None, _) => How::Added,
                (_, None) => How::Removed,
                (Some(one), Some(other)) if one.cloud != other.cloud => {
                    let cloud = |it: &Option<String>| it.clone().unwrap_or_else(|| "none".into());
                    How::Replaced(vec![format!("cloud {} → {}", cloud(&one.cloud), cloud(&other.cloud))])
                }
                (Some(one), Some(other)) if one.labels != other.labels => How::Adjusted(vec!["labels".into()]),
                _ => {
                    difference.unchanged.vms += 1;
                    continue;
                }
            };
            difference.vms.insert(key.clone(), how);
        }
        // The definition of a group is compared once for all its components.
        let mut groups: BTreeMap<&Name, Vec<String>> = BTreeMap::new();
        for (name, one) in &before.definitions {
            if let Some(other) = after.definitions.get(name) {
                groups.insert(name, changes(one, other));
            }
        }
        for key in keys(&before.components, &after.components) {
            let how = match (before.components.get(key), after.components.get(key)) {
                (None, _) => Some(How::Added),
                (_, None) => Some(How::Removed),
                (Some(one), Some(other)) => {
                    let by_itself = before.older.contains_key(key) || after.older.contains_key(key);
                    let mut reasons = match (by_itself, before.definition_of(key), after.definition_of(key)) {
                        (true, Some(one), Some(other)) => changes(one, other),
                        _ => groups.get(&key.group).cloned().unwrap_or_default(),
                    };
                    if one.vm != other.vm {
                        reasons.push(format!("moves from {} to {}", one.vm, other.vm));
                    } else if matches!(difference.vms.get(&one.vm), Some(How::Replaced(_))) {
                        reasons.push(format!("{} is replaced", one.vm));
                    }
                    let needs = needs(before, after, key);
                    match (reasons.is_empty(), needs.is_empty()) {
                        (false, _) => Some(How::Replaced(reasons)),
                        (true, false) => Some(How::Adjusted(needs)),
                        (true, true) => None,
                    }
                }
            };
            match how {
                Some(how) => drop(difference.components.insert(key.clone(), how)),
                None => difference.unchanged.components += 1,
            }
            difference.compare_bindings(before, after, key);
        }
        difference
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.vms.is_empty() && self.components.is_empty() && self.bound.is_empty() && self.unbound.is_empty()
    }

    /// Whether something is replaced under the same name.
    pub fn replaces(&self) -> bool {
        self.vms.values().chain(self.components.values()).any(|how| matches!(how, How::Replaced(_)))
    }

    /// Whether something is removed.
    pub fn removes(&self) -> bool {
        !self.unbound.is_empty() || self.vms.values().chain(self.components.values()).any(|how| *how == How::Removed)
    }

    /// Whether something is added.
    pub fn adds(&self) -> bool {
        !self.bound.is_empty() || self.vms.values().chain(self.components.values()).any(|how| *how == How::Added)
    }

    fn compare_bindings(&mut self, before: &Expansion, after: &Expansion, key: &Key) {
        let (one, other) = (bindings(before, key), bindings(after, key));
        let (mut one, mut other) = (one.peekable(), other.peekable());
        // Both are sorted.
        loop {
            let order = match (one.peek(), other.peek()) {
                (Some(old), Some(new)) => old.cmp(new),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => return,
            };
            match order {
                std::cmp::Ordering::Less => self.unbound.extend(one.next().map(|it| it.owned(key))),
                std::cmp::Ordering::Greater => self.bound.extend(other.next().map(|it| it.owned(key))),
                std::cmp::Ordering::Equal => {
                    one.next();
                    other.next();
                    self.unchanged.bindings += 1;
                }
            }
        }
    }
}

/// A binding of one client, borrowed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Borrowed<'a> {
    import: &'a Name,
    provider: &'a Reference,
    export: &'a Name,
}

impl Borrowed<'_> {
    fn owned(self, client: &Key) -> Binding {
        let Self { import, provider, export } = self;
        Binding { client: client.clone(), import: import.clone(), provider: provider.clone(), export: export.clone() }
    }
}

fn bindings<'a>(expansion: &'a Expansion, key: &Key) -> impl Iterator<Item = Borrowed<'a>> {
    let definition = expansion.definition_of(key);
    let component = expansion.components.get(key);
    let imports = component.into_iter().flat_map(|it: &Component| &it.bound);
    imports.flat_map(move |(import, providers)| {
        let export = definition.and_then(|it| it.imports.get(import)).map(|it| &it.export);
        let whole = move |provider| Some(Borrowed { import, provider, export: export? });
        providers.iter().filter_map(whole)
    })
}

/// Every binding of a component.
pub(crate) fn bindings_of(expansion: &Expansion, key: &Key) -> Vec<Binding> {
    bindings(expansion, key).map(|it| it.owned(key)).collect()
}

/// The keys of both, each once, in order.
fn keys<'a, T>(one: &'a BTreeMap<Key, T>, other: &'a BTreeMap<Key, T>) -> Vec<&'a Key> {
    let mut keys: Vec<&Key> = one.keys().chain(other.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The numbers of providers that an import needs now, if they have changed.
fn needs(before: &Expansion, after: &Expansion, key: &Key) -> Vec<String> {
    let imports = after.definition_of(key).into_iter().flat_map(|it| it.imports.keys());
    let changed = imports.filter_map(|import| {
        let (one, other) = (before.need(key, import)?, after.need(key, import)?);
        (one != other).then(|| format!("import {import} needs {other} instead of {}", one.number()))
    });
    changed.collect()
}

/// The differences of a group that require its components to be replaced. Numbers of providers do not: a running
/// component can be told of those.
fn changes(one: &Definition, other: &Definition) -> Vec<String> {
    let mut found = Vec::new();
    if one.type_name != other.type_name {
        found.push(format!("type {} → {}", one.type_name, other.type_name));
    }
    let kept = |it: &crate::expansion::Import| (it.export.clone(), it.need.with_number(0));
    entries(&mut found, "import", &one.imports, &other.imports, |one, other| kept(one) == kept(other));
    entries(&mut found, "export", &one.exports, &other.exports, |one, other| one == other);
    entries(&mut found, "secret", &one.secrets, &other.secrets, |one, other| one == other);
    if one.patience != other.patience {
        found.push("patience".into());
    }
    recipe(&mut found, &one.recipe, &other.recipe);
    found
}

fn recipe(found: &mut Vec<String>, one: &Recipe, other: &Recipe) {
    for (name, old) in &one.parameters {
        if let Some(new) = other.parameters.get(name).filter(|new| *new != old) {
            found.push(format!("parameter {name}: {old} → {new}"));
        }
    }
    if one.group_count != other.group_count {
        let count = |it: Option<u32>| it.map_or("unknown".into(), |it| it.to_string());
        found.push(format!("group.count: {} → {}", count(one.group_count), count(other.group_count)));
    }
    let (only_one, only_other) = (&one.parameters, &other.parameters);
    entries(found, "parameter", only_one, only_other, |_, _| true);
    entries(found, "value", &one.values, &other.values, |one, other| one == other);
    types(found, "value ", &one.types.values, &other.types.values);
    let imports: BTreeSet<&Name> = one.types.imports.keys().chain(other.types.imports.keys()).collect();
    for import in imports {
        let of = |it: &Recipe| it.types.imports.get(import).cloned().unwrap_or_default();
        types(found, &format!("{import}."), &of(one), &of(other));
    }
    entries(found, "environment", &one.environment, &other.environment, |one, other| one == other);
    let files = |it: &Recipe| it.files.iter().map(|file| (file.path.clone(), file.clone())).collect::<BTreeMap<_, _>>();
    entries(found, "file", &files(one), &files(other), |one, other| one == other);
    let directories =
        |it: &Recipe| it.data.directories.iter().map(|name| (name.clone(), ())).collect::<BTreeMap<_, _>>();
    entries(found, "data directory", &directories(one), &directories(other), |(), ()| true);
    // What becomes of data when a component is removed is asked when it is removed.
    let operations = |it: &Recipe| -> BTreeMap<String, serde_json::Value> {
        let value = serde_json::to_value(&it.operations).unwrap_or_default();
        value.as_object().map(|it| it.clone().into_iter().collect()).unwrap_or_default()
    };
    entries(found, "operation", &operations(one), &operations(other), |one, other| one == other);
}

/// Values whose types have changed.
fn types(found: &mut Vec<String>, whose: &str, one: &ValueTypes, other: &ValueTypes) {
    let names: BTreeSet<&Name> = one.iter().chain(other.iter()).map(|(name, _)| name).collect();
    for name in names.into_iter().filter(|name| one.of(name) != other.of(name)) {
        found.push(format!("type of {whose}{name}: {} → {}", one.of(name), other.of(name)));
    }
}

fn entries<K: Ord + std::fmt::Display, V>(
    found: &mut Vec<String>,
    what: &str,
    one: &BTreeMap<K, V>,
    other: &BTreeMap<K, V>,
    same: impl Fn(&V, &V) -> bool,
) {
    for (name, old) in one {
        match other.get(name) {
            None => found.push(format!("{what} {name} removed")),
            Some(new) if !same(old, new) => found.push(format!("{what} {name} changed")),
            Some(_) => {}
        }
    }
    found.extend(other.keys().filter(|name| !one.contains_key(name)).map(|name| format!("{what} {name} added")));
}
