//! A component described on the command line.

use clap::Args;
use cloud_manager::document::{EditDocument, NewComponent, NewExport, NewImport};
use serde_json::{Map, Value, json};
use std::str::FromStr;

/// The imports, exports and operations of a component.
#[derive(Args, Clone, Debug)]
pub(crate) struct ComponentOptions {
    /// Its VM
    #[arg(long, value_name = "VM")]
    pub(crate) on: Option<String>,
    /// An export: NAME[:VALUE,…[:CLIENTS]], such as sql:host,port:20
    #[arg(long = "export", value_name = "EXPORT")]
    exports: Vec<ExportOption>,
    /// An import: NAME=EXPORT[:SORT[:N]], such as db=sql:strong:1 or cache=objects:optional
    #[arg(long = "import", value_name = "IMPORT")]
    imports: Vec<ImportOption>,
    /// A binding: IMPORT=COMPONENT, such as db=database
    #[arg(long = "bind", value_name = "BINDING")]
    bindings: Vec<Pair>,
    /// An exported value: NAME=TEXT, such as port='{{ free_port() }}'
    #[arg(long = "value", value_name = "VALUE")]
    values: Vec<Pair>,
    /// A variable in the environment of its operations: NAME=TEXT
    #[arg(long = "env", value_name = "VALUE")]
    environment: Vec<Pair>,
    /// A directory that outlives it, called {{ data.NAME }} in its commands
    #[arg(long = "data", value_name = "NAME")]
    data: Vec<String>,
    /// Command to run before anything else
    #[arg(long, value_name = "COMMAND")]
    install: Option<String>,
    /// Command to run before each start
    #[arg(long, value_name = "COMMAND")]
    configure: Option<String>,
    /// The program that runs as long as the component does
    #[arg(long, value_name = "COMMAND")]
    start: Option<String>,
    /// Readiness check: tcp:PORT, http:URL or command:COMMAND
    #[arg(long, value_name = "CHECK")]
    check: Option<Probe>,
    /// Command to run when its bindings change while it runs
    #[arg(long, value_name = "COMMAND")]
    rebind: Option<String>,
    /// Command to stop it, before its processes are ended
    #[arg(long, value_name = "COMMAND")]
    stop: Option<String>,
    /// Command to run after it is removed
    #[arg(long, value_name = "COMMAND")]
    purge: Option<String>,
}

impl ComponentOptions {
    /// Whether any option was given.
    pub(crate) fn is_empty(&self) -> bool {
        let mut before = NewComponent::default();
        self.describe(&mut before);
        before == NewComponent::default() && self.bindings.is_empty()
    }

    /// Applies the given options to a component, and leaves the rest as it is.
    pub(crate) fn describe(&self, component: &mut NewComponent) {
        if let Some(vm) = &self.on {
            component.vm.clone_from(vm);
        }
        component.exports.extend(self.exports.iter().map(|it| (it.name.clone(), it.export.clone())));
        component.imports.extend(self.imports.iter().map(|it| (it.name.clone(), it.import.clone())));
        for Pair { name, text } in &self.values {
            set(&mut component.recipe, &["values", name], json!({ "template": text }));
        }
        for Pair { name, text } in &self.environment {
            set(&mut component.recipe, &["environment", name], json!(text));
        }
        if !self.data.is_empty() {
            set(&mut component.recipe, &["data", "directories"], json!(self.data));
        }
        let command = |run: &String| json!({ "run": run });
        let operations = [
            ("install", self.install.as_ref().map(command)),
            ("configure", self.configure.as_ref().map(command)),
            ("start", self.start.as_ref().map(|run| json!({ "process": { "run": run } }))),
            ("check", self.check.as_ref().map(|check| json!({ "probe": check.0 }))),
            ("rebind", self.rebind.as_ref().map(|run| json!({ "command": { "run": run } }))),
            ("stop", self.stop.as_ref().map(|run| json!({ "command": { "run": run } }))),
            ("purge", self.purge.as_ref().map(command)),
        ];
        for (operation, what) in operations {
            if let Some(what) = what {
                set(&mut component.recipe, &["operations", operation], what);
            }
        }
    }

    /// The imports that are bound here.
    pub(crate) fn bound_imports(&self) -> Vec<String> {
        self.bindings.iter().map(|it| it.name.clone()).collect()
    }

    /// The bindings of a described component; each import has the export it takes.
    pub(crate) fn bindings(&self, component: &NewComponent) -> Result<Vec<EditDocument>, String> {
        let bind = |Pair { name, text }: &Pair| {
            let import = component.imports.get(name);
            let import =
                import.ok_or_else(|| format!("--bind {name}={text}: there is no import {name:?} (see --import)"))?;
            Ok(EditDocument::Bind(format!("{}.{name} → {text}.{}", component.name, import.export)))
        };
        self.bindings.iter().map(bind).collect()
    }
}

/// Sets a value inside nested objects, which are created where they are missing.
fn set(target: &mut Value, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *target = value;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Some(members) = target.as_object_mut() {
        set(members.entry(*first).or_insert(Value::Null), rest, value);
    }
}

/// `NAME=TEXT`.
#[derive(Clone, Debug)]
struct Pair {
    name: String,
    text: String,
}

impl FromStr for Pair {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} has no ="))?;
        Ok(Self { name: name.into(), text: value.into() })
    }
}

/// `NAME[:VALUE,…[:CLIENTS]]`.
#[derive(Clone, Debug)]
struct ExportOption {
    name: String,
    export: NewExport,
}

impl FromStr for ExportOption {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ':');
        let name = parts.next().unwrap_or_default().to_string();
        let values = parts.next().unwrap_or_default();
        let values = values.split(',').filter(|it| !it.is_empty()).map(String::from).collect();
        let capacity = parts.next().map(str::parse).transpose();
        let capacity = capacity.map_err(|_| format!("{text:?}: the number of clients is not a number"))?;
        Ok(Self { name, export: NewExport { values, capacity } })
    }
}

/// `NAME=EXPORT[:SORT[:N]]`.
#[derive(Clone, Debug)]
struct ImportOption {
    name: String,
    import: NewImport,
}

impl FromStr for ImportOption {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let Pair { name, text: rest } = text.parse()?;
        let mut parts = rest.splitn(3, ':');
        let export = parts.next().unwrap_or_default().to_string();
        let sort = parts.next().unwrap_or("strong");
        let number = parts.next().map(str::parse).transpose();
        let number: Option<u32> = number.map_err(|_| format!("{text:?}: the number of providers is not a number"))?;
        let blank = NewImport { export, ..NewImport::default() };
        let import = match (sort, number) {
            ("strong", number) => NewImport { strong: Some(number.unwrap_or(1)), ..blank },
            ("weak", number) => NewImport { weak: Some(number.unwrap_or(1)), ..blank },
            ("value", number) => NewImport { value: Some(number.unwrap_or(1)), ..blank },
            ("optional", None) => NewImport { weak: Some(0), ..blank },
            _ => {
                return Err(format!(
                    "{text:?}: {sort:?} is not a sort of import (use strong, weak, value or optional)"
                ));
            }
        };
        Ok(Self { name, import })
    }
}

/// `tcp:PORT`, `http:URL` or `command:COMMAND`.
#[derive(Clone, Debug)]
struct Probe(Value);

impl FromStr for Probe {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("tcp", port)) => Ok(Self(json!({ "tcp": { "port": port } }))),
            Some(("http", rest)) if rest.starts_with("//") => Ok(Self(json!({ "http": { "url": text } }))),
            Some(("http", url)) => Ok(Self(json!({ "http": { "url": url } }))),
            Some(("command", run)) => Ok(Self(json!({ "command": { "run": run } }))),
            _ => Err(format!("{text:?} is not a check (use tcp:PORT, http:URL or command:COMMAND)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_exports_and_checks_are_read() {
        let import = |text: &str| text.parse::<ImportOption>().map(|it| it.import);
        let sql = NewImport { export: "sql".into(), ..NewImport::default() };
        assert_eq!(import("db=sql"), Ok(NewImport { strong: Some(1), ..sql.clone() }));
        assert_eq!(import("db=sql:strong:2"), Ok(NewImport { strong: Some(2), ..sql.clone() }));
        assert_eq!(import("db=sql:optional"), Ok(NewImport { weak: Some(0), ..sql.clone() }));
        assert_eq!(import("db=sql:value"), Ok(NewImport { value: Some(1), ..sql }));
        for wrong in ["db", "db=sql:maybe", "db=sql:weak:many", "db=sql:optional:2"] {
            assert!(import(wrong).is_err(), "{wrong}");
        }
        let export = "sql:host,port:20".parse::<ExportOption>().unwrap().export;
        assert_eq!(export, NewExport { values: vec!["host".into(), "port".into()], capacity: Some(20) });
        assert_eq!("http".parse::<ExportOption>().unwrap().export, NewExport::default());
        let check = |text: &str| text.parse::<Probe>().map(|it| it.0);
        assert_eq!(check("tcp:{{ port }}"), Ok(json!({ "tcp": { "port": "{{ port }}" } })));
        assert_eq!(check("http://x/y"), Ok(json!({ "http": { "url": "http://x/y" } })));
        assert!(check("ping").is_err());
    }
}
