//! A change as operators write it, and its conversion to one that the manager can check.
//!
//! Names, needs and bindings are plain text here. [`NewChange::read`] checks all of them and returns every error at once;
//! whether the change *fits* the present configuration, only the manager can say.

use super::recipe;
use protocol::{Change, Edit, Export, Import, Kind, Name, Need, Operation, Patience, Strategy, Wire};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, sync::Arc};
use utoipa::ToSchema;

/// A change, as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewChange {
    /// Order of additions and removals: `down-then-up`, `up-then-down` or `together`.
    #[serde(default)]
    #[schema(value_type = String, example = "together")]
    pub strategy: Strategy,
    /// Whether imports may be left without providers; their components then wait.
    #[serde(default)]
    pub incomplete: bool,
    /// Delete data of components and VMs that the change removes. Without it, what would delete data is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete_data: bool,
    /// Components that may start without the data that is kept for them on another VM.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start_empty: Vec<String>,
    /// If an operation of the change fails permanently, the manager takes the change back by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rollback_on_failure: bool,
    /// The edits.
    pub edits: Vec<EditDocument>,
}

/// One edit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EditDocument {
    /// A new VM.
    AddVm(NewVm),
    /// Remove the VM with this name, with all its components.
    RemoveVm(String),
    /// A new component.
    AddComponent(NewComponent),
    /// Remove the component with this name, with all its bindings.
    RemoveComponent(String),
    /// Stop and start the component with this name.
    RestartComponent(String),
    /// Change the number of providers that an import needs.
    SetNeed(NewNeed),
    /// A new binding, written `client.import → provider.export`.
    Bind(String),
    /// Remove the binding.
    Unbind(String),
}

/// A new VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewVm {
    /// Its name.
    pub name: String,
    /// The cloud that creates it, such as `local`; without one, an agent joins by itself with a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<String>,
}

/// A new component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewComponent {
    /// Its name.
    pub name: String,
    /// Its VM.
    pub vm: String,
    /// Its imports, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub imports: BTreeMap<String, NewImport>,
    /// Its exports, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exports: BTreeMap<String, NewExport>,
    /// Retries of failed operations (`prepare`, `start`, `run`, `rebind`, `stop`, `purge`); the default for operations that
    /// are not listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub patience: BTreeMap<String, NewPatience>,
    /// How its operations are carried out; the VM's agent reads it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Object)]
    pub recipe: Value,
}

/// One import of a new component: at most one of `strong`, `weak` and `value`; `strong: 1` if none is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewImport {
    /// The export it can be bound to.
    pub export: String,
    /// This many started providers are needed to start and to stay up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strong: Option<u32>,
    /// Runs without; this many should be bound in the end. 0: optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weak: Option<u32>,
    /// The announced values of this many providers, started or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u32>,
}

/// One export of a new component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewExport {
    /// The names of its values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Maximum number of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
}

/// Retries of a failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPatience {
    /// The number of retries before manual action is required.
    pub retries: u32,
    /// The pause before the first retry.
    pub pause_ms_first: u64,
    /// The factor by which each further pause is longer.
    #[serde(default = "one")]
    pub factor: u32,
}

/// A new number of providers for an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewNeed {
    /// The client.
    pub component: String,
    /// Its import.
    pub import: String,
    /// The number.
    pub number: u32,
}

fn one() -> u32 {
    1
}

/// The default retries of an operation: three within about ten seconds; a component that dies is restarted a few times
/// before manual action is required.
pub fn default_patience(operation: Operation) -> Patience {
    let retries = if operation == Operation::Run { 5 } else { 3 };
    Patience { retries, pause_ms_first: 1_000, factor: 2 }
}

impl NewChange {
    /// Checks every name, need and binding; returns the change and the cloud of each new VM that has one, or all errors, each
    /// with its place.
    pub fn read(&self) -> Result<(Change, BTreeMap<Name, String>), Vec<String>> {
        let mut reading = Reading::default();
        let mut clouds = BTreeMap::new();
        let mut edits = Vec::with_capacity(self.edits.len());
        for (place, edit) in self.edits.iter().enumerate() {
            let read = reading.at(format!("edits[{place}]"), |reading| reading.edit(edit));
            if let (EditDocument::AddVm(NewVm { cloud: Some(cloud), .. }), Some(Edit::AddVm { vm })) = (edit, &read) {
                clouds.insert(vm.clone(), cloud.clone());
            }
            edits.extend(read);
        }
        if !reading.problems.is_empty() {
            return Err(reading.problems);
        }
        Ok((Change { strategy: self.strategy, incomplete: self.incomplete, edits }, clouds))
    }
}

impl NewComponent {
    /// A component in the form in which it can be added again.
    pub fn of(name: &Name, vm: &Name, kind: &Kind) -> Self {
        let import = |import: &Import| {
            let blank = NewImport { export: import.export.to_string(), ..NewImport::default() };
            match import.need {
                Need::Strong(number) => NewImport { strong: Some(number), ..blank },
                Need::Weak(number) => NewImport { weak: Some(number), ..blank },
                Need::Value(number) => NewImport { value: Some(number), ..blank },
            }
        };
        let export = |export: &Export| NewExport {
            values: export.values.iter().map(Name::to_string).collect(),
            capacity: export.capacity,
        };
        let patience =
            |it: &Patience| NewPatience { retries: it.retries, pause_ms_first: it.pause_ms_first, factor: it.factor };
        Self {
            name: name.to_string(),
            vm: vm.to_string(),
            imports: kind.imports.iter().map(|(name, it)| (name.to_string(), import(it))).collect(),
            exports: kind.exports.iter().map(|(name, it)| (name.to_string(), export(it))).collect(),
            patience: kind.patience.iter().map(|(operation, it)| (operation.to_string(), patience(it))).collect(),
            recipe: serde_json::from_slice(&kind.recipe).unwrap_or_default(),
        }
    }
}

/// Reads a binding, `client.import → provider.export`; `->` is accepted for the arrow. The last dot of each side
/// counts, so that component names may contain dots.
pub fn read_binding(text: &str) -> Result<Wire, String> {
    let wrong = || format!("{text:?} is not a binding (write it like \"app.db → database.sql\")");
    let (client, provider) = text.split_once('→').or_else(|| text.split_once("->")).ok_or_else(wrong)?;
    let port = |side: &str| {
        let (component, port) = side.trim().rsplit_once('.').ok_or_else(wrong)?;
        let name = |text: &str| Name::new(text).map_err(|error| format!("{text:?}: {error}"));
        Ok::<_, String>((name(component)?, name(port)?))
    };
    let ((client, import), (provider, export)) = (port(client)?, port(provider)?);
    Ok(Wire { client, import, provider, export })
}

/// The place that is being read, and all errors so far.
#[derive(Default)]
struct Reading {
    place: Vec<String>,
    problems: Vec<String>,
}

impl Reading {
    fn at<T>(&mut self, place: impl Into<String>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.place.push(place.into());
        let read = read(self);
        self.place.pop();
        read
    }

    fn wrong(&mut self, what: impl fmt::Display) {
        self.problems.push(format!("{}: {what}", self.place.join(".")));
    }

    fn take<T, E: fmt::Display>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.wrong(error)).ok()
    }

    fn name(&mut self, place: &str, text: &str) -> Option<Name> {
        self.at(place, |reading| reading.take(Name::new(text)))
    }

    /// The name of an import or export; it contains no dot, because bindings are written with a dot before it.
    fn port(&mut self, text: &str) -> Option<Name> {
        if text.contains('.') {
            self.wrong(
                "the name of an import or export must not contain a dot (bindings are written component.import)",
            );
        }
        self.take(Name::new(text))
    }

    fn edit(&mut self, edit: &EditDocument) -> Option<Edit> {
        match edit {
            EditDocument::AddVm(NewVm { name, .. }) => {
                self.at("add-vm", |reading| reading.name("name", name)).map(|vm| Edit::AddVm { vm })
            }
            EditDocument::RemoveVm(vm) => self.name("remove-vm", vm).map(|vm| Edit::RemoveVm { vm }),
            EditDocument::AddComponent(component) => {
                self.at(format!("add-component {:?}", component.name), |reading| reading.component(component))
            }
            EditDocument::RemoveComponent(component) => {
                self.name("remove-component", component).map(|component| Edit::RemoveComponent { component })
            }
            EditDocument::RestartComponent(component) => {
                self.name("restart-component", component).map(|component| Edit::RestartComponent { component })
            }
            EditDocument::SetNeed(NewNeed { component, import, number }) => self.at("set-need", |reading| {
                let (component, import) = (reading.name("component", component), reading.name("import", import));
                Some(Edit::SetNeed { component: component?, import: import?, number: *number })
            }),
            EditDocument::Bind(text) => {
                self.at("bind", |reading| reading.take(read_binding(text))).map(Edit::AddBinding)
            }
            EditDocument::Unbind(text) => {
                self.at("unbind", |reading| reading.take(read_binding(text))).map(Edit::RemoveBinding)
            }
        }
    }

    fn component(&mut self, component: &NewComponent) -> Option<Edit> {
        let (name, vm) = (self.name("name", &component.name), self.name("vm", &component.vm));
        let before = self.problems.len();
        let (mut imports, mut exports) = (BTreeMap::new(), BTreeMap::new());
        for (name, import) in &component.imports {
            let read = self.at(format!("imports.{name}"), |reading| reading.import(name, import));
            imports.extend(read);
        }
        for (name, export) in &component.exports {
            let read = self.at(format!("exports.{name}"), |reading| reading.export(name, export));
            exports.extend(read);
        }
        let mut patience_of: BTreeMap<Operation, Patience> =
            Operation::ALL.into_iter().map(|operation| (operation, default_patience(operation))).collect();
        for (text, patience) in &component.patience {
            let read = self.at(format!("patience.{text}"), |reading| reading.operation(text));
            let NewPatience { retries, pause_ms_first, factor } = *patience;
            patience_of.extend(read.map(|operation| (operation, Patience { retries, pause_ms_first, factor })));
        }
        let recipe = self.at("recipe", |reading| reading.take(recipe::read(&component.recipe)))?;
        let kind = recipe.kind(imports, exports, patience_of);
        let sound = self.problems.len() == before;
        Some(Edit::AddComponent { component: name?, vm: vm?, kind: sound.then(|| Arc::new(kind))? })
    }

    fn import(&mut self, name: &str, import: &NewImport) -> Option<(Name, Import)> {
        let name = self.port(name);
        let export = self.at("export", |reading| reading.port(&import.export));
        let need = match (import.strong, import.weak, import.value) {
            (None, None, None) => Need::Strong(1),
            (Some(number), None, None) => Need::Strong(number),
            (None, Some(number), None) => Need::Weak(number),
            (None, None, Some(number)) => Need::Value(number),
            _ => {
                self.wrong("an import can have only one of strong, weak and value");
                return None;
            }
        };
        Some((name?, Import { export: export?, need }))
    }

    fn export(&mut self, name: &str, export: &NewExport) -> Option<(Name, Export)> {
        let name = self.port(name);
        let mut values = Vec::new();
        for value in &export.values {
            values.extend(self.name("values", value));
        }
        Some((name?, Export { values, capacity: export.capacity }))
    }

    fn operation(&mut self, text: &str) -> Option<Operation> {
        let found = Operation::called(text);
        if found.is_none() {
            self.wrong("no such operation (use prepare, start, run, rebind, stop or purge)");
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_is_written_with_an_arrow_and_the_last_dot_counts() {
        let wire = read_binding("shop.app.db -> database.sql").unwrap();
        assert_eq!(wire.to_string(), "shop.app.db → database.sql");
        assert_eq!((wire.client.as_str(), wire.import.as_str()), ("shop.app", "db"));
        assert!(read_binding("app.db").unwrap_err().contains("write it like"));
        assert!(read_binding("app.db → database").is_err());
        assert!(read_binding(".db → database.sql").is_err());
    }

    #[test]
    fn a_component_document_can_be_added_again() {
        let text = r#"{ "name": "app", "vm": "web", "imports": { "db": { "export": "sql", "strong": 2 },
            "cache": { "export": "objects", "weak": 0 } }, "exports": { "http": { "values": ["port"], "capacity": 3 } },
            "patience": { "start": { "retries": 9, "pause_ms_first": 5 } },
            "recipe": { "operations": { "rebind": { "signal": "HUP" } } } }"#;
        let component: NewComponent = serde_json::from_str(text).unwrap();
        let read = |component: &NewComponent| {
            let edits = vec![EditDocument::AddComponent(component.clone())];
            NewChange { edits, ..NewChange::default() }.read().unwrap().0
        };
        let change = read(&component);
        let [Edit::AddComponent { component, vm, kind }] = change.edits.as_slice() else { panic!("one edit") };
        assert_eq!(read(&NewComponent::of(component, vm, kind)), change);
    }

    #[test]
    fn all_errors_are_reported_at_once_with_their_place() {
        let text = r#"{ "edits": [
            { "add-vm": { "name": "" } },
            { "bind": "nothing" },
            { "add-component": { "name": "a b", "vm": "web",
                "imports": { "d.b": { "export": "sql" }, "x": { "export": "sql", "strong": 1, "weak": 1 } },
                "patience": { "walk": { "retries": 1, "pause_ms_first": 1 } }, "recipe": 7 } } ] }"#;
        let problems = serde_json::from_str::<NewChange>(text).unwrap().read().unwrap_err();
        let places: Vec<&str> = problems.iter().filter_map(|problem| problem.split(": ").next()).collect();
        let component = "edits[2].add-component \"a b\"";
        assert_eq!(
            places,
            [
                "edits[0].add-vm.name".to_string(),
                "edits[1].bind".into(),
                format!("{component}.name"),
                format!("{component}.imports.d.b"),
                format!("{component}.imports.x"),
                format!("{component}.patience.walk"),
                format!("{component}.recipe"),
            ],
            "{problems:#?}"
        );
    }
}
