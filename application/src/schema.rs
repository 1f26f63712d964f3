//! The JSON Schema of the language, for editors. The lists of fields are those of the readers themselves, so that the
//! two cannot differ; the contents of each field are described here.

use crate::reading::{APPLICATION_BYTES_MAX, NAME_BYTES_MAX};
use crate::{
    application::{BIND_FIELDS, COMPONENT_FIELDS, LOAD_FIELDS, SECRET_FIELDS, VM_FIELDS, WAYS},
    autoscale::{AUTOSCALE_FIELDS, SOURCE_FIELDS},
    component_type::{EXPORT_FIELDS, EXPORTED_TYPES, IMPORT_FIELDS, PARAMETER_FIELDS, PATIENCE_FIELDS, TYPE_FIELDS},
    document::{FILE_FIELDS, ON_FAILURE, OVERRIDE_FIELDS, VARIABLE_FIELDS, VARIABLE_TYPES, VERSION},
    driver::{CONTAINER_FIELDS, START_FIELDS},
    kept_data::{DATA_FIELDS, ON_REMOVE},
    operations::{
        CHECK_FIELDS, COMMAND_FIELDS, FILE_TEMPLATE_FIELDS, OPERATION_FIELDS, REBIND_FIELDS, RESTART, SIGNALS,
        STOP_FIELDS, VALUE_FIELDS,
    },
    restrictions::LIMITS_FIELDS,
};
use protocol::Operation;
use recipe::value_type::{VALUE_TYPES, ValueType};
use serde_json::{Map, Value, json};

/// What a name looks like.
const NAME: &str = "^[A-Za-z][A-Za-z0-9_-]*$";

/// What a field holds, and what it is for.
type Field = (&'static str, Value, &'static str);

/// The JSON Schema of the language.
pub fn schema() -> Value {
    let sections = || {
        vec![
            ("variables", map(part("variable")), "What differs between environments; used as ${name}"),
            ("secrets", named(part("secret")), "Where secrets come from; their texts never belong into a file"),
            ("types", named(part("type")), "What components of one type need, offer and do"),
            ("vms", named(or_variable(part("vms"))), "Groups of VMs"),
            ("components", components(), "Groups of components"),
        ]
    };
    let mut file = sections();
    file.extend([
        ("holdfast", json!({ "const": VERSION }), "The version of the language"),
        ("application", part("application"), "The name of the application"),
        ("include", one_or_many(text()), "Files whose sections are added to these"),
        ("constraints", one_or_many(text()), "What the placement has to satisfy"),
        ("prefer", one_or_many(text()), "What to minimise, the most important first: cost, stopped, …"),
        ("autoscale", part("autoscale"), "How the application follows its load"),
        (
            "on-failure",
            json!({ "enum": ON_FAILURE.map(|(word, _)| word) }),
            "What becomes of a change of which an operation fails permanently; default wait",
        ),
        ("override", part("override"), "Changes to the sections of all files, entry by entry"),
    ]);
    let value_types = named(json!({ "enum": EXPORTED_TYPES.map(|(word, _)| word) }));
    let need = |least: u32| json!({ "anyOf": [{ "type": "integer", "minimum": least }, { "const": "all" }] });
    let mut whole = object(FILE_FIELDS, &file);
    for field in ["holdfast", "application"] {
        whole["properties"][field] = properties(&[field], &file)[field].clone();
    }
    whole["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    whole["title"] = json!("A Holdfast application file");
    whole["$defs"] = json!({
        "name": { "type": "string", "pattern": NAME, "maxLength": NAME_BYTES_MAX },
        "application": { "type": "string", "pattern": NAME, "maxLength": APPLICATION_BYTES_MAX },
        "duration": { "type": "string", "pattern": "^[0-9]+(ms|s|m|h)$" },
        "amount": { "anyOf": [{ "type": "integer", "minimum": 0 }, part("variable-use")] },
        "count": { "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 1_000_000 }, part("variable-use")] },
        "variable-use": { "type": "string", "pattern": "\\$\\{" },
        "override": object(OVERRIDE_FIELDS, &OVERRIDE_FIELDS.iter()
            .map(|name| (*name, json!({ "type": "object" }), "Changes to the section of that name"))
            .collect::<Vec<_>>()),
        "variable": { "anyOf": [plain(), { "type": "array" }, object(VARIABLE_FIELDS, &described("variable"))] },
        "secret": with(object(SECRET_FIELDS, &[
            ("environment", text(), "The environment variable that contains it"),
            ("file", text(), "The file that contains it, relative to this one"),
            ("command", text(), "The command that prints it"),
            ("version", json!({ "type": "integer", "minimum": 0 }), "Version of the secret; raise it when its text has changed"),
        ]), one_of(&["environment", "file", "command"])),
        "type": component_type(),
        "type-of-its-own": demands(),
        "parameter": { "anyOf": [plain(), { "type": "array" }, object(PARAMETER_FIELDS, &described("parameter"))] },
        "import": { "anyOf": [part("name"), object(IMPORT_FIELDS, &[
            ("export", part("name"), "The export that is imported"),
            ("strong", need(1), "Number of started providers that it needs, to start and to stay up"),
            ("weak", need(0), "Runs without; number of providers to be bound when a change is complete"),
            ("value", need(1), "Number of providers whose announced values it needs, started or not"),
        ])] },
        "export": { "anyOf": [json!({ "type": "null" }), one_or_many(part("name")), object(EXPORT_FIELDS, &[
            ("values", any_of(vec![one_or_many(part("name")), value_types]), "The values that travel with it: names of texts, or the type of each"),
            ("capacity", json!({ "type": "integer", "minimum": 0 }), "Maximum number of clients"),
        ])] },
        "line": one_or_many(plain()),
        "command": { "anyOf": [part("line"), object(COMMAND_FIELDS, &[
            ("run", part("line"), "What to run: a text for the shell, or a list of words"),
            ("time-limit", part("duration"), "Time limit; after it, the operation has failed"),
        ])] },
        "vms": or_nothing(object(VM_FIELDS, &[
            ("count", part("count"), "How many; default 1"),
            ("most", part("count"), "As many as are needed, up to this number"),
            ("cost", part("amount"), "The cost of each"),
            ("cloud", text(), "The cloud that creates them; without one, agents join with a token"),
            ("labels", or_variable(map(plain())), "Free text, by name"),
            ("resources", or_variable(map(part("amount"))), "What each has"),
        ])),
        "component": with(object(COMPONENT_FIELDS, &[
            ("type", text(), "Their type"),
            ("count", json!({ "anyOf": [part("count"), { "const": "any" }] }), "How many; default 1; any: as many as are needed"),
            ("on", one_or_many(text()), "The VM groups that they run on, or single VMs such as web[0]; default: any VM"),
            ("load", or_variable(json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, with(object(LOAD_FIELDS, &[
                ("each", or_variable(json!({ "type": "integer", "minimum": 1 })), "The load that one component can take"),
                ("factor", part("amount"), "Load for each unit of the application's load"),
            ]), has("each"))] })), "The load that each can take, for scale --load"),
            ("parameters", or_variable(named(json!({}))), "Parameters of the type"),
            ("bind", or_variable(named(part("wiring"))), "How imports are wired; default: to the only component that has the export"),
            ("description", text(), "For people"),
        ]), has("type")),
        "autoscale": or_variable(object(AUTOSCALE_FIELDS, &[
            ("source", part("load-source"), "Where the load of the application comes from"),
            ("sources", or_variable(named(part("load-source"))), "Where the loads of single components come from"),
            ("least", or_variable(named(part("count"))), "Minimum number of each component"),
            ("most", or_variable(named(part("count"))), "Maximum number of each component"),
            ("every", or_variable(part("duration")), "Pause between two measurements; default 30s"),
            ("cool-down", or_variable(part("duration")), "Time without changes before numbers are lowered; default 5m"),
            ("saves", part("amount"), "Percentage of the cost that lowering numbers must save; default 0"),
            ("dry-run", or_variable(json!({ "type": "boolean" })), "Only say what would be done"),
        ])),
        "load-source": or_variable(with(object(SOURCE_FIELDS, &[
            ("prometheus", text(), "The address of a Prometheus server"),
            ("query", text(), "The query; several series are added"),
            ("http", text(), "The address of an HTTP endpoint"),
            ("field", text(), "Where the number is in its JSON answer, such as queue.length"),
            ("command", text(), "A command that prints the load, run on the manager's machine"),
            ("component", text(), "Components that write the load to their output"),
            ("value", text(), "Its name there: lines NAME=NUMBER"),
        ]), one_of(&["prometheus", "http", "command", "component"]))),
        "way": { "enum": WAYS.map(|(word, _)| word) },
        "wiring": { "anyOf": [one_or_many(text()), object(BIND_FIELDS, &[
            ("from", one_or_many(text()), "The providers: components, single ones such as database[0], or components of another application"),
            ("how", or_variable(part("way")), "one, index, all or none"),
        ])] },
    });
    whole
}

/// What must be said in a type that extends no other: what is laid over another may leave it to that one.
fn demands() -> Value {
    // What is no map has no fields to ask for.
    let fields = |fields: Value| json!({ "properties": fields });
    let each = |value: Value| json!({ "additionalProperties": value });
    let mut import = with(has("export"), at_most_one_of(&["strong", "weak", "value"]));
    import["not"] = json!({ "type": "null" });
    fields(json!({
        "imports": each(import),
        "values": each(has("template")),
        "files": each(one_of(&["template", "from"])),
        "patience": each(has("retries")),
        "data": has("directories"),
        "operations": fields(json!({
            "install": has("run"),
            "announce": has("run"),
            "configure": has("run"),
            "purge": has("run"),
            "start": with(one_of(&["process", "script", "systemd", "container"]), fields(json!({ "container": has("image") }))),
            "check": one_of(&["tcp", "http", "command"]),
            "rebind": one_of(&["command", "signal"]),
            "reload": one_of(&["command", "signal"]),
        })),
    }))
}

/// Components are called by names that are no ways to wire.
fn components() -> Value {
    let mut components = named(or_variable(part("component")));
    components["propertyNames"]["not"] = part("way");
    components
}

fn component_type() -> Value {
    let commands = ["install", "announce", "configure", "purge"].map(|name| (name, part("command"), "A command"));
    let signal = || json!({ "enum": SIGNALS.map(|(word, _)| word) });
    let limit = || ("time-limit", part("duration"), "Time limit; after it, the operation has failed");
    let container = object(
        CONTAINER_FIELDS,
        &[
            ("image", text(), "The image"),
            ("command", one_or_many(plain()), "The command, if it is not that of the image"),
            ("volumes", one_or_many(text()), "What it sees of the machine, as SOURCE:TARGET[:ro]"),
            ("options", one_or_many(text()), "Further options of the engine's run"),
            ("job", json!({ "type": "boolean" }), "Whether it counts as started when it has ended"),
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
                    ("process", part("line"), "A program that keeps running"),
                    ("script", part("line"), "A program that ends once the component is started"),
                    ("systemd", text(), "A systemd unit"),
                    ("container", any_of(vec![text(), container]), "A container: its image, or a map"),
                    (
                        "settle",
                        part("duration"),
                        "Without a check, a process is started once it has been running for this long",
                    ),
                    limit(),
                ],
            ),
            "Starts it",
        ),
        ("identify", part("command"), "Prints what belongs to the component"),
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
                    ("ready-within", part("duration"), "A start that is not ready within this time has failed"),
                    ("attempt", part("duration"), "An attempt without an answer within this time has failed"),
                    (
                        "every",
                        json!({ "anyOf": [part("duration"), { "const": "never" }] }),
                        "The pause between two attempts once it was ready",
                    ),
                    (
                        "liveness",
                        json!({ "anyOf": [part("duration"), { "const": "never" }] }),
                        "The older name of `every`",
                    ),
                    (
                        "failures",
                        json!({ "type": "integer", "minimum": 1 }),
                        "This many failed attempts in a row mean that it has died",
                    ),
                    (
                        "listener",
                        json!({ "enum": ["own", "any"] }),
                        "Whose listening socket may answer at an address of its VM",
                    ),
                ],
            ),
            "Readiness and liveness check",
        ),
        (
            "rebind",
            any_of(vec![
                json!({ "const": RESTART }),
                object(
                    REBIND_FIELDS,
                    &[
                        ("command", part("line"), "What to run"),
                        ("signal", signal(), "The signal to its process"),
                        limit(),
                    ],
                ),
            ]),
            "Tells it of new bindings while it runs",
        ),
        (
            "reload",
            object(
                REBIND_FIELDS,
                &[("command", part("line"), "What to run"), ("signal", signal(), "The signal to its process"), limit()],
            ),
            "Makes it read its files again while it runs; tells it of new bindings if there is no rebind",
        ),
        (
            "stop",
            object(
                STOP_FIELDS,
                &[
                    ("command", part("line"), "The command that is run first"),
                    ("signal", signal(), "The signal to its processes"),
                    ("grace", part("duration"), "Grace before SIGKILL"),
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
    let mut environment = map(plain());
    environment["propertyNames"] = json!({ "pattern": "^[A-Za-z0-9_]+$" });
    let value = object(
        VALUE_FIELDS,
        &[("template", plain(), "Its text"), ("at", json!({ "enum": ["prepare", "start"] }), "When it is chosen")],
    );
    let file = object(
        FILE_TEMPLATE_FIELDS,
        &[
            ("template", plain(), "Its contents"),
            ("from", text(), "The file that holds the template"),
            ("mode", text(), "Its mode, in octal"),
        ],
    );
    let paths = named(json!({ "type": ["string", "null"] }));
    let data = object(
        DATA_FIELDS,
        &[
            (
                "directories",
                any_of(vec![one_or_many(part("name")), paths]),
                "Their names; for a container, the path at which it sees each",
            ),
            (
                "on-remove",
                json!({ "enum": ON_REMOVE.map(|(word, _)| word) }),
                "What becomes of them when the component is removed; default keep",
            ),
        ],
    );
    let patience = object(
        PATIENCE_FIELDS,
        &[
            (
                "retries",
                json!({ "type": "integer", "minimum": 0 }),
                "Number of retries before manual action is required",
            ),
            ("pause", part("duration"), "The pause before the first retry"),
            ("factor", json!({ "type": "integer", "minimum": 0 }), "Factor by which each further pause is longer"),
        ],
    );
    let fields = object(
        TYPE_FIELDS,
        &[
            ("extends", text(), "Another type, which this one overrides"),
            ("description", text(), "For people"),
            ("parameters", named(part("parameter")), "Parameters of its components"),
            ("imports", named(or_nothing(part("import"))), "What it needs"),
            ("exports", named(part("export")), "What it offers"),
            ("resources", map(json!({ "type": ["integer", "null"], "minimum": 0 })), "What it uses of its VM"),
            ("conflicts", one_or_many(text()), "Types that cannot be on the same VM"),
            ("values", named(json!({ "anyOf": [plain(), value] })), "Values that it passes to its clients"),
            ("environment", environment, "Environment variables of its operations"),
            ("files", map(json!({ "anyOf": [plain(), file] })), "Files that are written before it starts"),
            ("data", any_of(vec![one_or_many(part("name")), data]), "Directories that outlive its components"),
            (
                "limits",
                object(
                    LIMITS_FIELDS,
                    &[
                        (
                            "memory",
                            json!({ "type": ["string", "integer"] }),
                            "Memory of all its processes, such as 512M",
                        ),
                        ("cpu", json!({ "type": ["number", "string"] }), "Number of CPUs, such as 1.5"),
                        ("files", json!({ "type": "integer", "minimum": 0 }), "Open files of each process"),
                    ],
                ),
                "What its processes may use",
            ),
            ("user", json!({ "type": ["string", "integer"] }), "The user that its processes run as"),
            ("no-new-privileges", json!({ "type": "boolean" }), "Whether its processes may gain no privileges"),
            ("private-tmp", json!({ "type": "boolean" }), "Whether it has a temporary directory of its own"),
            ("operations", object(OPERATION_FIELDS, &operations), "Its operations"),
            ("patience", by_operation(or_nothing(patience)), "How operations are retried"),
            ("takes", by_operation(or_nothing(part("duration"))), "How long operations usually take, for predictions"),
        ],
    );
    let mut fields = or_nothing(fields);
    fields["if"] = json!({ "not": has("extends") });
    fields["then"] = part("type-of-its-own");
    fields
}

fn described(what: &str) -> Vec<Field> {
    let says = if what == "variable" { "The value if none is given" } else { "The default" };
    let types: &[(&str, ValueType)] = if what == "variable" { &VARIABLE_TYPES } else { &VALUE_TYPES };
    let words: Vec<&str> = types.iter().map(|(word, _)| *word).collect();
    vec![
        ("type", json!({ "enum": words }), "Its type"),
        ("default", json!({}), says),
        ("description", text(), "For people"),
    ]
}

fn part(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A text that may be written without quotes: then an editor may take it for something else.
fn text() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

fn plain() -> Value {
    json!({ "type": ["string", "number", "boolean", "null"] })
}

fn map(value: Value) -> Value {
    let mut map = json!({ "type": ["object", "null"] });
    map["additionalProperties"] = value;
    map
}

/// A map whose keys are names.
fn named(value: Value) -> Value {
    let mut map = map(value);
    map["propertyNames"] = json!({ "pattern": NAME, "maxLength": NAME_BYTES_MAX });
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

/// The same, or nothing: `~` stands for what is not said, or takes away what is under it.
fn or_nothing(mut value: Value) -> Value {
    let nothing = json!({ "type": "null" });
    match (value["type"].clone(), value.get_mut("anyOf").and_then(Value::as_array_mut)) {
        (Value::String(value_type), _) => value["type"] = json!([value_type, "null"]),
        (Value::Array(mut types), _) => {
            types.push(json!("null"));
            types.dedup();
            value["type"] = Value::Array(types);
        }
        (_, Some(several)) if several.contains(&nothing) => {}
        (_, Some(several)) => several.push(nothing),
        (_, None) => return if value == json!({}) { value } else { any_of(vec![value, nothing]) },
    }
    value
}

/// The same, or a variable that stands for it.
fn or_variable(value: Value) -> Value {
    any_of(vec![value, part("variable-use")])
}

/// A schema and what it asks for besides.
fn with(mut schema: Value, more: Value) -> Value {
    schema["allOf"] = Value::Array(vec![more]);
    schema
}

/// Whether a map says something of this. What is no map is not asked.
fn has(field: &str) -> Value {
    let mut said = json!({ "required": [field] });
    said["properties"][field] = json!({ "not": { "type": "null" } });
    said
}

/// A map that says something of this.
fn map_with(field: &str) -> Value {
    let mut map = has(field);
    map["type"] = json!("object");
    map
}

/// Whether a map says exactly one of these.
fn one_of(fields: &[&str]) -> Value {
    let mut several: Vec<Value> = fields.iter().map(|it| map_with(it)).collect();
    several.push(json!({ "not": { "type": "object" } }));
    json!({ "oneOf": several })
}

/// Whether a map says no more than one of these.
fn at_most_one_of(fields: &[&str]) -> Value {
    let mut several: Vec<Value> = fields.iter().map(|it| map_with(it)).collect();
    several.push(json!({ "not": { "anyOf": several } }));
    json!({ "oneOf": several })
}

fn object(known: &[&str], fields: &[Field]) -> Value {
    let fields: Vec<Field> =
        fields.iter().map(|(name, value, says)| (*name, or_nothing(value.clone()), *says)).collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties(known, &fields) })
}

/// Every known field, in the order of the reader. A field that is not described would accept anything.
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
            let closed = value.get("additionalProperties") == Some(&json!(false));
            if let Some(properties) = value.get("properties").and_then(Value::as_object).filter(|_| closed) {
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
