//! The JSON Schema of the language, for editors. Which fields there are comes from the readers themselves, so that the two
//! cannot differ; what a field holds is said here.

use crate::{
    application::{BIND_FIELDS, COMPONENT_FIELDS, LOAD_FIELDS, SECRET_FIELDS, VM_FIELDS, WAYS},
    component_type::{EXPORT_FIELDS, IMPORT_FIELDS, PARAMETER_FIELDS, PATIENCE_FIELDS, TYPE_FIELDS, VALUE_SORTS},
    document::{FILE_FIELDS, OVERRIDE_FIELDS, VARIABLE_FIELDS, VARIABLE_SORTS, VERSION},
    driver::{CONTAINER_FIELDS, START_FIELDS},
    operations::{
        CHECK_FIELDS, COMMAND_FIELDS, FILE_TEMPLATE_FIELDS, OPERATION_FIELDS, REBIND_FIELDS, SIGNALS, STOP_FIELDS,
        VALUE_FIELDS,
    },
};
use protocol::Operation;
use serde_json::{Map, Value, json};
use vm_agent::sort::{SORTS, Sort};

/// What a field holds, and what it is for.
type Field = (&'static str, Value, &'static str);

/// The JSON Schema of the language.
pub fn schema() -> Value {
    let sections = || {
        vec![
            ("variables", map(part("variable")), "What differs between environments; filled in as ${name}"),
            ("secrets", map(part("secret")), "Where secrets come from; their texts are never in a file"),
            ("types", map(part("type")), "What components of one sort need, offer and do"),
            ("vms", map(part("vms")), "Groups of VMs"),
            ("components", map(part("component")), "Groups of components"),
        ]
    };
    let mut file = sections();
    file.extend([
        ("holdfast", json!({ "const": VERSION }), "The version of the language"),
        ("application", part("name"), "What the application is called"),
        ("include", one_or_many(text()), "Files whose sections are added to these"),
        ("constraints", one_or_many(text()), "What must hold of the placement"),
        (
            "prefer",
            one_or_many(text()),
            "What is to be as small as possible, what matters most first: cost, stopped, …",
        ),
        ("override", part("override"), "What is laid over the sections of all files, entry by entry"),
    ]);
    let value_sorts = map(json!({ "enum": VALUE_SORTS.map(|(word, _)| word) }));
    let mut whole = object(FILE_FIELDS, &file);
    whole["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    whole["title"] = json!("A Holdfast application file");
    whole["$defs"] = json!({
        "name": { "type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]*$" },
        "duration": { "type": "string", "pattern": "^[0-9]+(ms|s|m|h)$" },
        "count": { "anyOf": [{ "type": "integer", "minimum": 0 }, part("variable-use")] },
        "variable-use": { "type": "string", "pattern": "\\$\\{" },
        "override": { "type": "object", "additionalProperties": false, "properties": properties(OVERRIDE_FIELDS,
            &OVERRIDE_FIELDS.iter().map(|name| (*name, json!({ "type": "object" }), "Laid over the section of that name")).collect::<Vec<_>>()) },
        "variable": { "anyOf": [plain(), object(VARIABLE_FIELDS, &described("variable"))] },
        "secret": object(SECRET_FIELDS, &[
            ("environment", text(), "The environment variable that holds it"),
            ("file", text(), "The file that holds it"),
            ("command", text(), "The command that prints it"),
            ("version", json!({ "type": "integer" }), "Raised when its text has changed"),
        ]),
        "type": component_type(),
        "parameter": { "anyOf": [plain(), { "type": "array" }, object(PARAMETER_FIELDS, &described("parameter"))] },
        "need": { "anyOf": [{ "type": "integer", "minimum": 0 }, { "const": "all" }] },
        "import": { "anyOf": [part("name"), object(IMPORT_FIELDS, &[
            ("export", part("name"), "The export it takes"),
            ("strong", part("need"), "That many started providers, to start and to stay up"),
            ("weak", part("need"), "Runs without; that many should be bound in the end"),
            ("value", part("need"), "The announced values of that many providers, started or not"),
        ])] },
        "export": { "anyOf": [json!({ "type": "null" }), one_or_many(part("name")), object(EXPORT_FIELDS, &[
            ("values", any_of(vec![one_or_many(part("name")), value_sorts]), "The values that travel with it: texts, or what each is"),
            ("capacity", json!({ "type": "integer", "minimum": 0 }), "At most that many clients"),
        ])] },
        "line": one_or_many(plain()),
        "command": { "anyOf": [part("line"), object(COMMAND_FIELDS, &[
            ("run", part("line"), "What to run: a text for the shell, or words"),
            ("time-limit", part("duration"), "After this time it has failed"),
        ])] },
        "vms": nothing_or(object(VM_FIELDS, &[
            ("count", part("count"), "How many; 1 if nothing is said"),
            ("most", part("count"), "As many as are used, and at most so many"),
            ("cost", part("count"), "What each costs"),
            ("cloud", text(), "The cloud that makes them; without one, agents join by themselves"),
            ("labels", map(plain()), "What people say about them"),
            ("resources", map(json!({ "type": "integer" })), "What each has"),
        ])),
        "component": object(COMPONENT_FIELDS, &[
            ("type", text(), "What they are"),
            ("count", json!({ "anyOf": [part("count"), { "const": "any" }] }), "How many; 1 if nothing is said; any: as many as are needed"),
            ("on", one_or_many(text()), "The groups of VMs they are on, or single VMs such as web[0]; where it is left out, the planner decides"),
            ("load", json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, object(LOAD_FIELDS, &[
                ("each", json!({ "type": "integer", "minimum": 1 }), "The most that each takes"),
                ("factor", json!({ "type": "integer", "minimum": 0 }), "How much of it comes for each unit of the application's load"),
            ])] }), "What each can take, for scale --load"),
            ("parameters", map(json!({})), "What the type can be told"),
            ("bind", map(part("wiring")), "How imports are wired; what is not listed, by itself where only one choice exists"),
            ("description", text(), "For people"),
        ]),
        "way": { "enum": WAYS.map(|(word, _)| word) },
        "wiring": { "anyOf": [one_or_many(text()), object(BIND_FIELDS, &[
            ("from", one_or_many(text()), "Who provides: a component, one of them, or one of another application"),
            ("how", part("way"), "one, index, all or none"),
        ])] },
    });
    whole
}

fn component_type() -> Value {
    let commands = ["install", "announce", "configure", "purge"].map(|name| (name, part("command"), "A command"));
    let signal = || json!({ "enum": SIGNALS.map(|(word, _)| word) });
    let limit = || ("time-limit", part("duration"), "After this time it has failed");
    let container = object(
        CONTAINER_FIELDS,
        &[
            ("image", text(), "What is run"),
            ("command", one_or_many(plain()), "What it runs, if not what the image says"),
            ("volumes", one_or_many(text()), "What of the machine it sees, as SOURCE:TARGET[:ro]"),
            ("options", one_or_many(text()), "Further options of the engine's run"),
            ("job", json!({ "type": "boolean" }), "Whether it is started when it has ended"),
            ("engine", text(), "docker, if nothing is said; podman, or a path"),
        ],
    );
    let mut operations = commands.to_vec();
    operations.extend([
        (
            "start",
            object(
                START_FIELDS,
                &[
                    ("process", part("line"), "A program that runs for as long as the component does"),
                    ("script", part("line"), "A program that has ended once the component is started"),
                    ("systemd", text(), "A unit of systemd"),
                    ("container", any_of(vec![text(), container]), "A container: its image, or more"),
                    limit(),
                ],
            ),
            "Starts it",
        ),
        (
            "check",
            object(
                CHECK_FIELDS,
                &[
                    ("tcp", plain(), "A port that accepts connections"),
                    ("host", text(), "Its address, if it is not the VM's own"),
                    ("http", text(), "An address that is answered with a status from 200 to 399"),
                    ("command", part("line"), "A command that ends with exit code 0"),
                    ("interval", part("duration"), "The longest pause between two attempts while it is not ready"),
                    ("ready-within", part("duration"), "A start that is not ready by then has failed"),
                    ("attempt", part("duration"), "An attempt without an answer by then has failed"),
                    (
                        "liveness",
                        json!({ "anyOf": [part("duration"), { "const": "never" }] }),
                        "The pause between two attempts once it was ready",
                    ),
                    (
                        "failures",
                        json!({ "type": "integer", "minimum": 1 }),
                        "So many failed attempts in a row mean that it has died",
                    ),
                ],
            ),
            "Says whether it is ready",
        ),
        (
            "rebind",
            object(
                REBIND_FIELDS,
                &[("command", part("line"), "What to run"), ("signal", signal(), "What its process is sent"), limit()],
            ),
            "Tells it of new bindings while it runs",
        ),
        (
            "stop",
            object(
                STOP_FIELDS,
                &[
                    ("command", part("line"), "What is run first"),
                    ("signal", signal(), "What its processes are sent then"),
                    ("grace", part("duration"), "How long they have to end"),
                    limit(),
                ],
            ),
            "Stops it",
        ),
    ]);
    let by_operation = |value: Value| {
        let names = Operation::ALL.map(Operation::word);
        json!({ "type": "object", "additionalProperties": value, "propertyNames": { "enum": names } })
    };
    let value = object(
        VALUE_FIELDS,
        &[("template", plain(), "Its text"), ("at", json!({ "enum": ["prepare", "start"] }), "When it is chosen")],
    );
    let file = object(
        FILE_TEMPLATE_FIELDS,
        &[
            ("template", plain(), "What it holds"),
            ("from", text(), "The file that holds the template"),
            ("mode", text(), "Who may read it, in octal"),
        ],
    );
    let patience = object(
        PATIENCE_FIELDS,
        &[
            ("retries", json!({ "type": "integer", "minimum": 0 }), "How many times before a person is asked"),
            ("pause", part("duration"), "The pause before the first retry"),
            ("factor", json!({ "type": "integer", "minimum": 0 }), "By how much each further pause is longer"),
        ],
    );
    nothing_or(object(
        TYPE_FIELDS,
        &[
            ("extends", text(), "Another type, over which this one is laid"),
            ("description", text(), "For people"),
            ("parameters", map(part("parameter")), "What its components can be told"),
            ("imports", map(part("import")), "What it needs"),
            ("exports", map(part("export")), "What it offers"),
            ("resources", map(json!({ "type": "integer" })), "What it uses of its VM"),
            ("conflicts", one_or_many(text()), "Types that cannot be on the same VM"),
            ("values", map(json!({ "anyOf": [plain(), value] })), "Values that it hands out"),
            ("environment", map(plain()), "Environment variables of its operations"),
            ("files", map(json!({ "anyOf": [plain(), file] })), "Files that are written before it starts"),
            ("operations", object(OPERATION_FIELDS, &operations), "What is done when"),
            ("patience", by_operation(patience), "How stubbornly operations are tried again"),
            ("takes", by_operation(part("duration")), "How long operations usually take, for predictions"),
        ],
    ))
}

fn described(what: &str) -> Vec<Field> {
    let says = if what == "variable" { "The value if none is given" } else { "What it is if nothing is said" };
    let sorts: &[(&str, Sort)] = if what == "variable" { &VARIABLE_SORTS } else { &SORTS };
    let words: Vec<&str> = sorts.iter().map(|(word, _)| *word).collect();
    vec![
        ("type", json!({ "enum": words }), "What it holds"),
        ("default", json!({}), says),
        ("description", text(), "For people"),
    ]
}

fn part(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn plain() -> Value {
    json!({ "type": ["string", "number", "boolean", "null"] })
}

fn map(value: Value) -> Value {
    let mut map = json!({ "type": ["object", "null"] });
    map["additionalProperties"] = value;
    map
}

fn any_of(several: Vec<Value>) -> Value {
    let mut any = json!({});
    any["anyOf"] = Value::Array(several);
    any
}

fn one_or_many(one: Value) -> Value {
    let mut many = json!({ "type": "array" });
    many["items"] = one.clone();
    any_of(vec![one, many])
}

fn nothing_or(value: Value) -> Value {
    any_of(vec![json!({ "type": "null" }), value])
}

fn object(known: &[&str], fields: &[Field]) -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": properties(known, fields) })
}

/// Every known field, in the order of the reader. A field that is not described would be of any sort.
fn properties(known: &[&str], fields: &[Field]) -> Value {
    let mut described = Map::new();
    for name in known {
        let field = fields.iter().find(|(it, ..)| it == name);
        let mut value = field.map_or(json!({}), |(_, value, _)| value.clone());
        if let (Some(value), Some((.., says))) = (value.as_object_mut(), field) {
            value.insert("description".into(), json!(says));
        }
        described.insert((*name).into(), value);
    }
    Value::Object(described)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_that_a_reader_knows_is_described_and_no_other() {
        fn check(value: &Value) {
            if let Some(properties) = value.get("properties").and_then(Value::as_object) {
                for (name, field) in properties {
                    assert!(field.get("description").is_some(), "{name} is not described");
                }
            }
            match value {
                Value::Object(members) => members.values().for_each(check),
                Value::Array(items) => items.iter().for_each(check),
                _ => {}
            }
        }
        check(&schema());
    }
}
