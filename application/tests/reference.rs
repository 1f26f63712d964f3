//! The reference keeps its word: every example in it and every example application is read, fits the schema, and every field
//! of the schema is described.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use application::{Application, Existing, Inputs, schema};
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
        let expanded = read.and_then(|it| it.expand(&Existing::default()));
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

/// The published schema is that of this program. `BLESS=1` writes it anew.
#[test]
fn the_published_schema_is_the_language() {
    let path = root().join("docs/application.schema.json");
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap_or_default() == text, "{} differs (BLESS=1 writes it)", path.display());
}

/// One type, in a file of its own.
fn of_type(text: &str) -> String {
    format!("types:\n  Base: {{ exports: {{ e: [] }} }}\n  T: {text}\n")
}

#[track_caller]
fn check(text: &str, is_right: bool) {
    let text = format!("holdfast: 1\napplication: a\n{text}");
    let schema = schema();
    let data = Application::data(&text).unwrap_or_else(|| panic!("invalid YAML: {text}"));
    let seen = fits(&schema, &schema, &data);
    assert_eq!(seen.is_ok(), is_right, "{text}: {seen:?}");
}

#[test]
fn the_schema_takes_what_the_language_takes() {
    for text in [
        "{ extends: Base, operations: { check: ~, start: { process: x, script: ~ } }, imports: { x: ~ }, resources: ~ }",
        "{ extends: Base, imports: { x: { strong: ~, weak: 0 } }, patience: { start: { pause: 1s }, stop: ~ }, takes: ~ }",
        "{ extends: Base, operations: { stop: { grace: 5s }, install: { time-limit: 5m } } }",
        "{ description: 5, files: { x: { template: y, mode: 0600 }, z: { from: z.conf, mode: \"0640\" } } }",
        "{ parameters: { a: ~, b: [1, 2], c: { type: secret } }, values: { a: ~, b: { template: x, at: start } } }",
        "{ imports: { x: e, y: { export: e, value: all, strong: ~ } }, environment: { A_1: 5 }, conflicts: ~ }",
        "{ operations: { install: true, start: { container: { image: x, job: true } }, rebind: ~ } }",
    ] {
        check(&of_type(text), true);
    }
    for text in [
        "include:\noverride:\nconstraints: ~\n",
        "variables: { l: [1, 2], m: { default: { a: 1 } }, n: ~ }\n",
        "vms: { v: { resources: { cpu: \"${cpu}\" }, labels: \"${labels}\", count: \"${n}\" }, w: \"${w}\", x: ~ }\n",
        "components: { c: { type: T, load: \"${load}\", bind: { i: { from: d, how: \"${how}\" }, j: [\"d[0]\"] } } }\n",
        "components: { c: { type: T, load: { each: \"${each}\" }, parameters: { a: { secret: s }, b: ~ } } }\n",
        "secrets: { s: { file: x, version: 2 }, t: { environment: T, command: ~ } }\n",
        "override: { types: { T: { imports: { x: ~ } } }, vms: ~ }\n",
    ] {
        check(text, true);
    }
}

#[test]
fn the_schema_refuses_what_the_language_refuses() {
    for text in [
        "{ imports: { x: { weak: 0 } } }",
        "{ imports: { x: ~ } }",
        "{ imports: { x: { export: e, strong: 0 } } }",
        "{ imports: { x: { export: e, strong: 1, weak: 0 } } }",
        "{ imports: { 1x: e } }",
        "{ exports: { a-name-that-is-longer-than-anything: [] } }",
        "{ environment: { A-B: 5 } }",
        "{ values: { x: { at: start } } }",
        "{ files: { x: { mode: \"0600\" } } }",
        "{ files: { x: { template: a, from: b } } }",
        "{ patience: { start: { pause: 1s } } }",
        "{ operations: { start: { process: x, script: y } } }",
        "{ operations: { start: {} } }",
        "{ operations: { start: { container: { job: true } } } }",
        "{ operations: { check: { tcp: 5, http: x } } }",
        "{ operations: { rebind: { time-limit: 5s } } }",
        "{ operations: { install: { time-limit: 5s } } }",
        "{ extends: Base, imports: { x: { strong: 0 } } }",
    ] {
        check(&of_type(text), false);
    }
    for text in [
        "components: { c: { on: v } }\n",
        "components: { c: { type: ~ } }\n",
        "components: { all: { type: T } }\n",
        "components: { c d: { type: T } }\n",
        "components: { c: { type: T, load: { factor: 2 } } }\n",
        "secrets: { s: { version: 2 } }\n",
        "secrets: { s: { file: x, command: y } }\n",
        "variables: { v: { type: secret } }\n",
        "vms: { v: { count: many } }\n",
    ] {
        check(text, false);
    }
}

/// Holds a value against the part of JSON Schema that our schema uses.
fn fits(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        fits(root, &root["$defs"][name.rsplit('/').next().unwrap()], value)?;
    }
    let wrong = || Err(format!("{value} does not fit {schema}"));
    let is = |schema: &Value| fits(root, schema, value).is_ok();
    if let Some(several) = schema["anyOf"].as_array() {
        let tried: Vec<String> = several.iter().filter_map(|it| fits(root, it, value).err()).collect();
        if tried.len() == several.len() {
            return Err(tried.join(" or "));
        }
    }
    if schema["oneOf"].as_array().is_some_and(|several| several.iter().filter(|it| is(it)).count() != 1) {
        return wrong();
    }
    for demand in schema["allOf"].as_array().into_iter().flatten() {
        fits(root, demand, value)?;
    }
    if schema.get("not").is_some_and(is) {
        return wrong();
    }
    if schema.get("if").is_some_and(is) {
        fits(root, &schema["then"], value)?;
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
    let text = value.as_str().unwrap_or_default();
    let right_text = schema["pattern"].as_str().filter(|_| value.is_string()).is_none_or(|it| looks_like(it, text))
        && schema["maxLength"].as_u64().is_none_or(|most| text.len() as u64 <= most);
    let right_number = value.as_i64().is_none_or(|it| {
        schema["minimum"].as_i64().is_none_or(|least| least <= it)
            && schema["maximum"].as_i64().is_none_or(|most| it <= most)
    });
    if !right_sort || !right_value || !right_text || !right_number {
        return wrong();
    }
    for item in value.as_array().into_iter().flatten().filter(|_| schema.get("items").is_some()) {
        fits(root, &schema["items"], item)?;
    }
    let Some(members) = value.as_object() else { return Ok(()) };
    if schema["required"].as_array().into_iter().flatten().any(|it| !members.contains_key(it.as_str().unwrap())) {
        return wrong();
    }
    for (name, member) in members {
        if let Some(names) = schema.get("propertyNames") {
            fits(root, names, &name.as_str().into())?;
        }
        let known = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
        match known {
            Some(Value::Bool(false)) => return Err(format!("unknown field {name}")),
            Some(known) => fits(root, known, member).map_err(|why| format!("{name}: {why}"))?,
            None => {}
        }
    }
    Ok(())
}

/// The few patterns there are.
fn looks_like(pattern: &str, text: &str) -> bool {
    let all = |more: &str| text.chars().all(|it| it.is_ascii_alphanumeric() || more.contains(it));
    match pattern {
        "^[A-Za-z][A-Za-z0-9_-]*$" => text.starts_with(|it: char| it.is_ascii_alphabetic()) && all("_-"),
        "^[A-Za-z0-9_]+$" => !text.is_empty() && all("_"),
        "^[0-9]+(ms|s|m|h)$" => {
            let unit = text.trim_start_matches(|it: char| it.is_ascii_digit());
            unit.len() < text.len() && ["ms", "s", "m", "h"].contains(&unit)
        }
        "\\$\\{" => text.contains("${"),
        other => panic!("an unknown pattern {other}"),
    }
}
