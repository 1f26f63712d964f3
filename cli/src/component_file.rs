//! A small file of components and bindings, in YAML. This is the only place that reads YAML.
//!
//! ```yaml
//! components:
//!   database:
//!     on: data
//!     exports: { sql: { values: [host, port] } }
//!     recipe: { operations: { start: { process: { run: "mydb" } } } }
//!   app:
//!     on: web
//!     imports: { db: { export: sql } }
//! bindings:
//!   - app.db → database.sql
//! ```

use crate::failure::Failure;
use cloud_manager::document::{NewChange, NewComponent, NewExport, NewImport, NewPatience, WishDocument};
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::{Location, Spanned};
use std::{collections::BTreeMap, path::Path};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ComponentFile {
    #[serde(default)]
    components: BTreeMap<String, Spanned<FileComponent>>,
    #[serde(default)]
    bindings: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileComponent {
    on: String,
    #[serde(default)]
    imports: BTreeMap<String, NewImport>,
    #[serde(default)]
    exports: BTreeMap<String, NewExport>,
    #[serde(default)]
    patience: BTreeMap<String, NewPatience>,
    #[serde(default)]
    recipe: Value,
}

/// Reads the wishes of a file. Everything that can be seen to be wrong is told, each with its place.
pub(crate) fn read(path: &Path, text: &str) -> Result<Vec<WishDocument>, Failure> {
    let place = |location: Location| format!("{}:{}:{}", path.display(), location.line(), location.column());
    let file: ComponentFile = serde_saphyr::from_str(text).map_err(|error| {
        let said = error.without_snippet().to_string();
        let told = error.location().map_or_else(|| path.display().to_string(), place);
        Failure::Components(vec![format!("{told}: {}", without_place(&said))])
    })?;
    let mut wishes = Vec::new();
    let mut places = Vec::new();
    for (name, Spanned { value, referenced, .. }) in file.components {
        let FileComponent { on, imports, exports, patience, recipe } = value;
        places.push(referenced);
        wishes.push(WishDocument::AddComponent(NewComponent { name, vm: on, imports, exports, patience, recipe }));
    }
    for Spanned { value, referenced, .. } in file.bindings {
        places.push(referenced);
        wishes.push(WishDocument::Bind(value));
    }
    let change = NewChange { wishes, ..NewChange::default() };
    match change.read() {
        Ok(_) => Ok(change.wishes),
        Err(problems) => {
            // A problem says which wish it is about; here, that is a place in the file.
            let told = |problem: &String| {
                let inside = problem.strip_prefix("wishes[").and_then(|it| it.split_once("]."));
                let found = inside.and_then(|(number, rest)| Some((*places.get(number.parse::<usize>().ok()?)?, rest)));
                found.map_or_else(|| problem.clone(), |(location, rest)| format!("{}: {rest}", place(location)))
            };
            Err(Failure::Components(problems.iter().map(told).collect()))
        }
    }
}

/// The library says the place at the end, where we say it at the beginning.
fn without_place(said: &str) -> &str {
    said.split(" at line ").next().unwrap_or(said).lines().next().unwrap_or(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        match read(Path::new("shop.yaml"), text) {
            Err(Failure::Components(problems)) => problems,
            other => panic!("no problems: {other:?}"),
        }
    }

    #[test]
    fn a_file_becomes_wishes() {
        let text = "components:\n  database:\n    on: data\n    exports: { sql: { values: [port], capacity: 3 } }\n    recipe:\n      operations: { start: { process: { run: \"mydb --port {{ port }}\" } } }\n  app:\n    on: web\n    imports: { db: { export: sql } }\nbindings:\n  - app.db → database.sql\n";
        let wishes = read(Path::new("shop.yaml"), text).unwrap();
        let shown = serde_json::to_value(&wishes).unwrap();
        assert_eq!(shown[0]["add-component"]["name"], "app");
        assert_eq!(
            shown[1]["add-component"]["recipe"]["operations"]["start"]["process"]["run"],
            "mydb --port {{ port }}"
        );
        assert_eq!(shown[2]["bind"], "app.db → database.sql");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        assert_eq!(
            problems("components:\n  app:\n    on: web\n    import: {}\n"),
            ["shop.yaml:4:5: unknown field `import`, expected one of on, imports, exports, patience, recipe"]
        );
        assert_eq!(
            problems("components:\n  app:\n    on: 'w b'\nbindings:\n  - app.db → database.sql\n  - nothing\n"),
            [
                "shop.yaml:3:5: add-component \"app\".vm: name \"w b\" contains ' ' (allowed: letters, digits and - _ . ' [ ] /, starting with a letter or digit)",
                "shop.yaml:6:5: bind: \"nothing\" is no binding (write it like \"app.db → database.sql\")",
            ]
        );
        assert_eq!(problems("components:\n  app:\n    on: web\n  app:\n    on: web\n").len(), 1);
        assert_eq!(problems("components: [\n").len(), 1);
    }
}
