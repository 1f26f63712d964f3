//! Zephyrus2's JSON input, read into a [`Problem`].
//!
//! Beyond the published format a file may hold, for each component, `weak` (required interfaces that may be missing
//! while a change is under way) and, at the top, `configuration`: today's components and bindings.
//!
//! ```json
//! { "configuration": {
//!     "components": { "web_0": { "type": "Web", "location": "large", "index": 0 } },
//!     "bindings": [ { "port": "sql", "client": "web_0", "provider": "db_0" } ] } }
//! ```

use serde_json::{Map, Value};

use crate::configuration::{Binding, Component, ComponentName, Configuration, Node};
use crate::language::{RequirementText, Requirements, TextComplaint};
use crate::problem::{ComponentType, Misfit, NodeClass, Problem, Provision};

/// Why a file could not be read; all reasons that could be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("not JSON: {0}")]
    Json(String),
    #[error("{}", lines(.0))]
    Shape(Vec<Misfit>),
    #[error("{}", lines(.0))]
    Requirements(Vec<TextComplaint>),
}

fn lines<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join("\n")
}

/// Reads a problem in Zephyrus2's format.
pub fn read(text: &str) -> Result<Problem, ReadError> {
    let value: Value = serde_json::from_str(text).map_err(|error| ReadError::Json(error.to_string()))?;
    let mut reader = Reader { misfits: Vec::new() };
    let Some(top) = reader.object(&value, "the file") else { return Err(ReadError::Shape(reader.misfits)) };
    for key in top.keys() {
        let known = ["components", "locations", "specification", "bind preferences", "configuration", "options"];
        if !known.contains(&key.as_str()) {
            reader.complain("the file", format!("unknown key {key:?}; expected one of {}", known.join(", ")));
        }
    }
    let types = reader.types(top.get("components"));
    let classes = reader.classes(top.get("locations"));
    let today = reader.configuration(top.get("configuration"), &types, &classes);
    let specification = match top.get("specification") {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(_) => {
            reader.complain("specification", "expected a text".to_owned());
            String::new()
        }
    };
    let preferences = reader.texts(top.get("bind preferences"), "bind preferences");
    if !reader.misfits.is_empty() {
        return Err(ReadError::Shape(reader.misfits));
    }
    let written = RequirementText {
        specification: &specification,
        binding_preferences: preferences.iter().map(String::as_str).collect(),
        ..RequirementText::default()
    };
    let requirements = Requirements::read(&written, &types, &classes).map_err(ReadError::Requirements)?;
    Problem::new(types, classes, today, requirements).map_err(ReadError::Shape)
}

struct Reader {
    misfits: Vec<Misfit>,
}

impl Reader {
    fn complain(&mut self, place: &str, reason: String) {
        self.misfits.push(Misfit { place: place.to_owned(), reason });
    }

    fn object<'a>(&mut self, value: &'a Value, place: &str) -> Option<&'a Map<String, Value>> {
        let object = value.as_object();
        if object.is_none() {
            self.complain(place, "expected an object".to_owned());
        }
        object
    }

    fn number(&mut self, value: &Value, place: &str, what: &str) -> i64 {
        let number = value.as_i64();
        if number.is_none() {
            self.complain(place, format!("{what}: expected a whole number, found {value}"));
        }
        number.unwrap_or(0)
    }

    fn numbers(&mut self, value: Option<&Value>, place: &str, what: &str) -> std::collections::BTreeMap<String, i64> {
        let Some(value) = value else { return Default::default() };
        let Some(object) = value.as_object() else {
            self.complain(place, format!("{what}: expected an object from names to whole numbers"));
            return Default::default();
        };
        object
            .iter()
            .map(|(name, value)| (name.clone(), self.number(value, place, &format!("{what} {name:?}"))))
            .collect()
    }

    fn texts(&mut self, value: Option<&Value>, place: &str) -> Vec<String> {
        let Some(value) = value else { return Vec::new() };
        let texts = value.as_array().map(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        match texts {
            Some(Some(texts)) => texts,
            _ => {
                self.complain(place, "expected a list of texts".to_owned());
                Vec::new()
            }
        }
    }

    fn types(&mut self, value: Option<&Value>) -> Vec<ComponentType> {
        let Some(value) = value else {
            self.complain("the file", "expected a key \"components\"".to_owned());
            return Vec::new();
        };
        let Some(object) = self.object(value, "components") else { return Vec::new() };
        object.iter().filter_map(|(name, value)| self.component_type(name, value)).collect()
    }

    fn component_type(&mut self, name: &str, value: &Value) -> Option<ComponentType> {
        let place = format!("component type {name:?}");
        let object = self.object(value, &place)?;
        for key in object.keys() {
            let known = ["resources", "requires", "weak", "provides", "conflicts"];
            if !known.contains(&key.as_str()) {
                self.complain(&place, format!("unknown key {key:?}; expected one of {}", known.join(", ")));
            }
        }
        let provides = match object.get("provides") {
            None => Vec::new(),
            Some(Value::Array(offers)) => offers.iter().filter_map(|offer| self.provision(offer, &place)).collect(),
            Some(_) => {
                self.complain(&place, "provides: expected a list of {\"ports\": […], \"num\": n}".to_owned());
                Vec::new()
            }
        };
        Some(ComponentType {
            name: name.to_owned(),
            resources: self.numbers(object.get("resources"), &place, "resources"),
            strong: self.numbers(object.get("requires"), &place, "requires"),
            weak: self.numbers(object.get("weak"), &place, "weak"),
            provides,
            conflicts: self.texts(object.get("conflicts"), &format!("{place}: conflicts")).into_iter().collect(),
        })
    }

    fn provision(&mut self, value: &Value, place: &str) -> Option<Provision> {
        let object = self.object(value, &format!("{place}: provides"))?;
        let ports = self.texts(object.get("ports"), &format!("{place}: ports")).into_iter().collect();
        let number = object.get("num").map_or(-1, |value| self.number(value, place, "num"));
        if number < -1 {
            self.complain(place, format!("num is {number}, expected -1 (no limit) or more"));
        }
        Some(Provision { ports, capacity: (number >= 0).then_some(number) })
    }

    fn classes(&mut self, value: Option<&Value>) -> Vec<NodeClass> {
        let Some(value) = value else {
            self.complain("the file", "expected a key \"locations\"".to_owned());
            return Vec::new();
        };
        let Some(object) = self.object(value, "locations") else { return Vec::new() };
        object.iter().filter_map(|(name, value)| self.class(name, value)).collect()
    }

    fn class(&mut self, name: &str, value: &Value) -> Option<NodeClass> {
        let place = format!("location {name:?}");
        let object = self.object(value, &place)?;
        for key in object.keys() {
            let known = ["num", "resources", "cost"];
            if !known.contains(&key.as_str()) {
                self.complain(&place, format!("unknown key {key:?}; expected one of {}", known.join(", ")));
            }
        }
        Some(NodeClass {
            name: name.to_owned(),
            number: object.get("num").map_or(1, |value| self.number(value, &place, "num")),
            resources: self.numbers(object.get("resources"), &place, "resources"),
            cost: object.get("cost").map_or(0, |value| self.number(value, &place, "cost")),
        })
    }

    fn configuration(
        &mut self,
        value: Option<&Value>,
        types: &[ComponentType],
        classes: &[NodeClass],
    ) -> Configuration {
        let mut configuration = Configuration::default();
        let Some(value) = value else { return configuration };
        let Some(object) = self.object(value, "configuration") else { return configuration };
        let components = object.get("components").and_then(Value::as_object);
        for (name, value) in components.into_iter().flatten() {
            let place = format!("component {name:?}");
            let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
            let location = value.get("location").and_then(Value::as_str).unwrap_or_default();
            let kind = types.iter().position(|known| known.name == kind);
            let class = classes.iter().position(|known| known.name == location);
            let index = value.get("index").map_or(0, |value| self.number(value, &place, "index"));
            match (kind, class) {
                (Some(kind), Some(class)) => {
                    let component = Component { kind, node: Node { class, index } };
                    configuration.components.insert(ComponentName(name.clone()), component);
                }
                (None, _) => self.complain(&place, "expected a known \"type\"".to_owned()),
                (_, None) => self.complain(&place, "expected a known \"location\"".to_owned()),
            }
        }
        for value in object.get("bindings").and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
            match (text("port"), text("client"), text("provider")) {
                (Some(port), Some(client), Some(provider)) => {
                    let (client, provider) = (ComponentName(client), ComponentName(provider));
                    configuration.bindings.insert(Binding { port, client, provider });
                }
                _ => self.complain("configuration", "a binding needs \"port\", \"client\" and \"provider\"".to_owned()),
            }
        }
        configuration
    }
}
