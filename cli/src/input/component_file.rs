//! A small file of components and bindings, in YAML.
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
use application::Data;
use cloud_manager::document::{EditDocument, NewChange, NewComponent, NewExport, NewImport, NewPatience};
use serde::Deserialize;
use serde_json::Value;
use std::{collections::BTreeMap, path::Path};

const FIELDS: &[&str] = &["on", "imports", "exports", "patience", "recipe"];

#[derive(Deserialize)]
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

/// Reads the edits of a file. All errors are returned, each with its place.
pub(crate) fn read(path: &Path, text: &str) -> Result<Vec<EditDocument>, Failure> {
    let mut data = Data::read(&path.display().to_string(), text);
    data.names(&[], "a file of components", &["components", "bindings"]);
    let mut edits = Vec::new();
    let mut places: Vec<[String; 2]> = Vec::new();
    let mut names = data.names(&["components"], "`components`", &[]);
    names.sort();
    for name in names {
        let place = ["components", name.as_str()];
        data.names(&place, "a component", FIELDS);
        match serde_json::from_value(data.value(&place)) {
            Ok(FileComponent { on, imports, exports, patience, recipe }) => {
                places.push(place.map(str::to_owned));
                edits.push(EditDocument::AddComponent(NewComponent {
                    name,
                    vm: on,
                    imports,
                    exports,
                    patience,
                    recipe,
                }));
            }
            Err(error) => data.wrong(&place, format!("`{name}`: {error}")),
        }
    }
    for number in 0..data.items(&["bindings"], "`bindings`") {
        let place = ["bindings".to_owned(), number.to_string()];
        match data.value(&["bindings", &place[1]]) {
            Value::String(text) => {
                places.push(place);
                edits.push(EditDocument::Bind(text));
            }
            _ => data.wrong(&["bindings", &place[1]], "a binding is a text such as \"app.db → database.sql\""),
        }
    }
    let change = NewChange { edits, ..NewChange::default() };
    for problem in change.read().err().into_iter().flatten() {
        // A problem names its edit, which is translated to a place in the file.
        let inside = problem.strip_prefix("edits[").and_then(|it| it.split_once("]."));
        let found = inside.and_then(|(number, rest)| Some((places.get(number.parse::<usize>().ok()?)?, rest)));
        match found {
            Some(([section, entry], rest)) => data.wrong(&[section, entry], rest),
            None => data.wrong(&[], problem),
        }
    }
    data.conclude().map_err(Failure::Application)?;
    Ok(change.edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        match read(Path::new("shop.yaml"), text) {
            Err(Failure::Application(problems)) => {
                problems.0.iter().map(|it| format!("{}:{}:{}: {}", it.file, it.line, it.column, it.says)).collect()
            }
            other => panic!("no problems: {other:?}"),
        }
    }

    #[test]
    fn a_file_becomes_edits() {
        let text = "components:\n  database:\n    on: data\n    exports: { sql: { values: [port], capacity: 3 } }\n    recipe:\n      operations: { start: { process: { run: \"mydb --port {{ port }}\" } } }\n  app:\n    on: web\n    imports: { db: { export: sql } }\nbindings:\n  - app.db → database.sql\n";
        let edits = read(Path::new("shop.yaml"), text).unwrap();
        let shown = serde_json::to_value(&edits).unwrap();
        assert_eq!(shown[0]["add-component"]["name"], "app");
        assert_eq!(
            shown[1]["add-component"]["recipe"]["operations"]["start"]["process"]["run"],
            "mydb --port {{ port }}"
        );
        assert_eq!(shown[2]["bind"], "app.db → database.sql");
    }

    #[test]
    fn errors_are_reported_with_their_place() {
        assert_eq!(
            problems("components:\n  app:\n    on: web\n    import: {}\n"),
            ["shop.yaml:4:5: unknown field `import` (did you mean `imports`?)"]
        );
        assert_eq!(
            problems("components:\n  app:\n    on: 'w b'\nbindings:\n  - app.db → database.sql\n  - nothing\n"),
            [
                "shop.yaml:3:5: add-component \"app\".vm: name \"w b\" contains ' ' (allowed: letters, digits and - _ . ' [ ] /, starting with a letter or digit)",
                "shop.yaml:6:5: bind: \"nothing\" is not a binding (write it like \"app.db → database.sql\")",
            ]
        );
        assert_eq!(problems("components:\n  app:\n    on: web\n  app:\n    on: web\n").len(), 1);
        assert_eq!(problems("components: [\n").len(), 1);
    }
}
