//! The reference keeps its word: every example in it and every example application is read, fits the schema, and every field
//! of the schema is described.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use application::{Application, Inputs, Surroundings, schema};
use serde_json::Value;
use std::{fs, path::Path, path::PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every whole file: the examples of the reference and the example applications.
fn files() -> Vec<(PathBuf, String)> {
    let reference = fs::read_to_string(root().join("docs/LANGUAGE.md")).unwrap();
    let blocks = reference.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut files: Vec<_> = blocks.map(|text| (PathBuf::from("docs/LANGUAGE.md"), text.to_owned())).collect();
    assert!(files.len() >= 4, "the examples are missing");
    for folder in ["examples/applications", "examples/applications/tiers"] {
        for entry in fs::read_dir(root().join(folder)).unwrap().flatten() {
            if entry.path().extension().is_some_and(|it| it == "yaml") {
                files.push((entry.path(), fs::read_to_string(entry.path()).unwrap()));
            }
        }
    }
    files
}

#[test]
fn every_example_is_read_and_is_in_its_usual_form() {
    for (path, text) in files() {
        let written = application::format("example", &text).unwrap_or_else(|problems| panic!("{problems}"));
        let same = |text: &str| Application::data(text).unwrap();
        assert_eq!(same(&written), same(&text));
        if path.ends_with("types.yaml") {
            continue;
        }
        let name = path.to_string_lossy().into_owned();
        let mut open = |asked: &str| {
            if asked == name { Ok(text.clone()) } else { fs::read_to_string(asked).map_err(|error| error.to_string()) }
        };
        let read = Application::read(&name, &Inputs::default(), &mut open);
        let expanded = read.and_then(|it| it.expand(&Surroundings::default()));
        let expansion = expanded.unwrap_or_else(|problems| panic!("{problems}"));
        assert!(!expansion.components.is_empty());
    }
}

#[test]
fn every_example_fits_the_schema_and_a_wrong_one_does_not() {
    let schema = schema();
    for (path, text) in files() {
        let data = Application::data(&text).unwrap();
        fits(&schema, &schema, &data).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        let mut wrong = data;
        wrong["types"]["Wrong"] = serde_json::json!({ "import": {} });
        assert!(fits(&schema, &schema, &wrong).is_err());
        wrong["types"]["Wrong"] = serde_json::json!({ "operations": { "start": { "unit": "x" } } });
        assert!(fits(&schema, &schema, &wrong).is_err());
        for export in [r#"{ "values": { "port": "prot" } }"#, r#"{ "values": ["key"], "secret": ["key"] }"#] {
            let export: Value = serde_json::from_str(export).unwrap();
            wrong["types"]["Wrong"] = serde_json::json!({ "exports": { "sql": export } });
            assert!(fits(&schema, &schema, &wrong).is_err());
        }
    }
}

#[test]
fn every_field_is_described_in_the_reference() {
    let reference = fs::read_to_string(root().join("docs/LANGUAGE.md")).unwrap();
    fn check(value: &Value, reference: &str) {
        for name in value.get("properties").and_then(Value::as_object).into_iter().flat_map(|it| it.keys()) {
            assert!(
                reference.contains(&format!("`{name}`")) || reference.contains(&format!("{name}:")),
                "{name} is not described"
            );
        }
        match value {
            Value::Object(members) => members.values().for_each(|it| check(it, reference)),
            Value::Array(items) => items.iter().for_each(|it| check(it, reference)),
            _ => {}
        }
    }
    check(&schema(), &reference);
}

/// Holds a value against the part of JSON Schema that our schema uses.
fn fits(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        return fits(root, &root["$defs"][name.rsplit('/').next().unwrap()], value);
    }
    if let Some(several) = schema["anyOf"].as_array() {
        let tried: Vec<String> = several.iter().filter_map(|it| fits(root, it, value).err()).collect();
        return if tried.len() < several.len() { Ok(()) } else { Err(tried.join(" or ")) };
    }
    let sort = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_sort = |wanted: &Value| wanted == sort || (wanted == "number" && sort == "integer");
    let right_sort = match &schema["type"] {
        Value::Null => true,
        Value::Array(several) => several.iter().any(is_sort),
        one => is_sort(one),
    };
    let right_value = schema.get("const").is_none_or(|it| it == value)
        && schema["enum"].as_array().is_none_or(|it| it.contains(value));
    if !right_sort || !right_value {
        return Err(format!("{value} does not fit {schema}"));
    }
    for item in value.as_array().into_iter().flatten().filter(|_| schema.get("items").is_some()) {
        fits(root, &schema["items"], item)?;
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let known = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
        match known {
            Some(Value::Bool(false)) => return Err(format!("unknown field {name}")),
            Some(known) => fits(root, known, member).map_err(|why| format!("{name}: {why}"))?,
            None => {}
        }
    }
    Ok(())
}
