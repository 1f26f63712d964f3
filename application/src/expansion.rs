//! An expanded application: every VM, component and binding under its key.

use protocol::{Export, Name, Need, Operation, Patience};
use recipe::Recipe;
use serde::{Deserialize, Serialize, de::Error};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, str::FromStr};

/// One member of a group, such as `app[2]`. Keys are numbered from 0, even if there is only one: so a group that grows
/// changes no key, and one that shrinks loses the highest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The group.
    pub group: Name,
    /// Its place in the group.
    pub index: u32,
}

/// A component, here or in another application.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The other application; nothing if it is this one.
    pub application: Option<Name>,
    /// The component.
    pub key: Key,
}

/// An expanded application: counted, placed and wired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expansion {
    /// What it is called.
    pub application: Name,
    /// Its VMs.
    pub vms: BTreeMap<Key, Vm>,
    /// What the components of each group are.
    pub definitions: BTreeMap<Name, Definition>,
    /// Where each component is, and what it is bound to.
    pub components: BTreeMap<Key, Component>,
    /// Components that still have their old definition, between two steps of a rolling change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub older: BTreeMap<Key, Definition>,
    /// The planner's result, if it decided the placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
}

/// The planner's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The cost of all VMs.
    pub cost: i64,
    /// Whether it is proven that no placement is better.
    pub proven: bool,
    /// The objectives, the most important first.
    pub objectives: Vec<Objective>,
    /// Whether something has to be removed before there is room for what is added.
    pub scarce: bool,
}

/// An objective.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objective {
    /// As it was written.
    pub text: String,
    /// The value that was reached.
    pub value: i64,
    /// The proven lower bound, given the best of the more important objectives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<i64>,
}

/// A VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vm {
    /// The cloud that creates it; without one, an agent joins with a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<String>,
    /// Free text, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// The definition of the components of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// The name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// What it needs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub imports: BTreeMap<Name, Import>,
    /// What it offers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exports: BTreeMap<Name, Export>,
    /// How operations are retried; the default, if not listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub patience: BTreeMap<Operation, Patience>,
    /// How its operations are carried out; with the parameters that are not secret.
    pub recipe: Recipe,
    /// The secret parameters: where they come from, never their texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, Secret>,
    /// What each uses of its VM.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, u64>,
    /// How long operations usually take; for predictions only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub takes_ms: BTreeMap<Operation, u64>,
}

/// What a component needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The export it takes.
    pub export: Name,
    /// How many, and when.
    pub need: Need,
    /// Whether the number is as many as are bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// Where a secret comes from. The version is raised when its text has changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Secret {
    /// What it is called.
    pub name: String,
    /// `environment`, `file` or `command`.
    pub from: String,
    /// The variable, the file or the command.
    pub place: String,
    /// Version of the secret's text.
    pub version: u32,
}

/// Where a component is, and what it is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// Its VM.
    pub vm: Key,
    /// The providers of each import, in order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bound: BTreeMap<Name, Vec<Reference>>,
}

impl Expansion {
    /// An empty application of this name.
    pub fn empty(application: Name) -> Self {
        Self {
            application,
            vms: BTreeMap::new(),
            definitions: BTreeMap::new(),
            components: BTreeMap::new(),
            older: BTreeMap::new(),
            choice: None,
        }
    }

    /// How many bindings there are.
    pub fn bindings(&self) -> usize {
        self.components.values().flat_map(|it| it.bound.values()).map(Vec::len).sum()
    }

    /// How many providers an import of a component needs.
    pub fn need(&self, component: &Key, import: &Name) -> Option<Need> {
        let Import { need, all, .. } = self.definition_of(component)?.imports.get(import)?;
        let bound = self.components.get(component)?.bound.get(import).map_or(0, Vec::len);
        Some(if *all { need.with_number(u32::try_from(bound).unwrap_or(u32::MAX)) } else { *need })
    }

    /// What a component is.
    pub fn definition_of(&self, component: &Key) -> Option<&Definition> {
        self.older.get(component).or_else(|| self.definitions.get(&component.group))
    }

    /// The parameters of a group that are not secret.
    pub fn parameters(&self, group: &Name) -> BTreeMap<String, Value> {
        self.definitions.get(group).map(|it| it.recipe.parameters.clone()).unwrap_or_default()
    }
}

impl Key {
    /// The key of one of a group.
    pub fn new(group: &Name, index: u32) -> Self {
        Self { group: group.clone(), index }
    }

    /// Its name among all applications.
    pub fn scoped(&self, application: &Name) -> Name {
        Name::new(&format!("{application}/{self}")).expect("names of applications and groups are short")
    }
}

impl Reference {
    /// Its name among all applications, as seen from one of them.
    pub fn scoped(&self, application: &Name) -> Name {
        self.key.scoped(self.application.as_ref().unwrap_or(application))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}[{}]", self.group, self.index)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.application {
            Some(application) => write!(formatter, "{application}/{}", self.key),
            None => write!(formatter, "{}", self.key),
        }
    }
}

/// A text that is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a key (write it like app[2])")]
pub struct KeyError(String);

impl FromStr for Key {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let wrong = || KeyError(text.into());
        let (group, index) = text.strip_suffix(']').and_then(|it| it.rsplit_once('[')).ok_or_else(wrong)?;
        let short = Some(group).filter(|it| it.len() <= 64 && !it.contains('/'));
        let group = short.and_then(|it| Name::new(it).ok()).ok_or_else(wrong)?;
        Ok(Self { group, index: index.parse().map_err(|_| wrong())? })
    }
}

impl FromStr for Reference {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let Some((application, key)) = text.split_once('/') else {
            return Ok(Self { application: None, key: text.parse()? });
        };
        let short = Some(application).filter(|it| it.len() <= 32).and_then(|it| Name::new(it).ok());
        Ok(Self { application: Some(short.ok_or_else(|| KeyError(text.into()))?), key: key.parse()? })
    }
}

impl Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Reference {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_and_read_and_sorted_by_number() {
        for text in ["app[0]", "app[10]"] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
        assert_eq!("shared/db[1]".parse::<Reference>().unwrap().to_string(), "shared/db[1]");
        assert!("app[2]".parse::<Key>().unwrap() < "app[10]".parse::<Key>().unwrap());
        for text in ["", "app", "app[]", "app[-1]", "app[x]", "[0]", "a/b[0]", "app[99999999999]"] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
        assert_eq!("app[2]".parse::<Key>().unwrap().scoped(&Name::new("shop").unwrap()).as_str(), "shop/app[2]");
    }
}
