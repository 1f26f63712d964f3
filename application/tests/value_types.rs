//! What is told of values that are not of their types, before anything runs.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod shop;

use application::{Existing, Inputs};
use shop::{expand, problems, read};

/// A provider whose values have types, and a client that reads them.
const TYPED: &str = r#"holdfast: 1
application: typed
types:
  Database:
    parameters: { offset: 0 }
    exports:
      sql: { values: { host: text, port: port, replicas: integer, ratio: number, tls: boolean, key: secret } }
    values:
      port: 5432
      replicas: "{{ parameters.offset + 2 }}"
      ratio: 0.5
      tls: false
      key: "{{ directory }}"
  App:
    imports: { db: sql }
    files: { conf: "{{ imports.db[0].port + 1 }}{% if imports.db[0].tls %} tls{% endif %}{{ imports.db[0].key }}" }
vms: { v: {} }
components:
  database: { type: Database }
  app: { type: App, bind: { db: database } }
"#;

#[track_caller]
fn check(from: &str, to: &str, expected: &[&str]) {
    assert!(TYPED.contains(from), "{from}");
    assert_eq!(problems(&TYPED.replacen(from, to, 1)), expected, "{to}");
}

#[test]
fn values_that_are_known_are_of_their_types() {
    check("", "", &[]);
    check("port: 5432", "port: sql", &["9:13 `port` must be a port from 1 to 65535, not `sql`"]);
    check("port: 5432", "port: 70000", &["9:13 `port` must be a port from 1 to 65535, not `70000`"]);
    check(
        "port: 5432",
        "port: { template: sql, at: start }",
        &["9:25 `port` must be a port from 1 to 65535, not `sql`"],
    );
    check("ratio: 0.5", "ratio: half", &["11:14 `ratio` must be a number, not `half`"]);
    check("tls: false", "tls: \"no\"", &["12:12 `tls` must be `true` or `false`, not `no`"]);
    check("key: \"{{ directory }}\"", "key: word", &[]);
    check(
        "offset: 0",
        "offset: 0.5",
        &["10:17 `replicas` must be a whole number, not `2.5` (the text that the parameters of `database` give)"],
    );
    check(
        "replicas: integer",
        "replicas: boolean",
        &["10:17 `replicas` must be `true` or `false`, not `2` (the text that the parameters of `database` give)"],
    );
    // All at once, with the place and what would be right.
    let wrong = TYPED.replace("port: 5432", "port: sql").replace("tls: boolean", "tls: bolean");
    let told = read(&wrong, &Inputs::default()).unwrap().expand(&Existing::default()).unwrap_err().to_string();
    let expected = r#"shop.yaml:7:87: the type of a value cannot be `bolean` (did you mean `boolean`?)
  |
7 |       sql: { values: { host: text, port: port, replicas: integer, ratio: number, tls: bolean, key: secret } }
  |                                                                                       ^^^^^^

shop.yaml:9:13: `port` must be a port from 1 to 65535, not `sql`
  |
9 |       port: sql
  |             ^^^"#;
    assert_eq!(told, expected);
}

#[test]
fn types_of_values_are_said_in_one_way() {
    check(
        "ratio: number",
        "ratio: any",
        &[
            "7:74 the type of a value cannot be `any` (known: `text`, `integer`, `number`, `boolean`, `port` and `secret`)",
        ],
    );
    check(
        "key: secret } }",
        "key: text }, secret: [key] }",
        &["7:109 a secret value has the type `secret` (`values: { NAME: secret }`)"],
    );
    check(
        "    values:\n",
        "      more: [port]\n    values:\n",
        &["8:14 `port` has the type `text` here and `port` in another export (a value has one type)"],
    );
}

#[test]
fn nothing_is_calculated_with_a_text() {
    let says = |name: &str| {
        format!(
            "the template calculates with `{name}`, which is a text (declare it with a type such as `integer`, or write `{name} | int`)"
        )
    };
    for (sum, name) in [
        ("imports.db[0].host + 1", "host"),
        ("2 * (imports.db[0].port - imports.db[0].key)", "key"),
        ("-name", "name"),
        ("imports.db[0].port // directory", "directory"),
    ] {
        let told = problems(&TYPED.replace("imports.db[0].port + 1", sum));
        assert!(told.len() == 1 && told[0].ends_with(&says(name)), "{sum}: {told:#?}");
    }
    // Texts are put together, repeated and turned into numbers; and of many things nobody knows what they are.
    for fine in [
        "imports.db[0].host + 'x'",
        "imports.db[0].host * 2",
        "imports.db[0].key | int + 1",
        "imports.db[0].port ~ 'x'",
        "imports.db | map(attribute='port') | sum + 1",
        "imports.db[0].port + imports.db[0].ratio / imports.db[0].replicas",
    ] {
        check("imports.db[0].port + 1", fine, &[]);
    }
}

#[test]
fn whoever_an_import_may_be_bound_to_agrees_on_what_it_reads() {
    let second = |values: &str| {
        let other = format!(
            "  Other:\n    exports: {{ sql: {{ values: {values} }} }}\n    operations: {{ announce: x }}\n  App:\n"
        );
        TYPED.replace("  App:\n", &other).replace("{ db: database }", "{ db: [database, other] }")
            + "  other: { type: Other }\n"
    };
    let told = problems(&second("[host, port, tls, key, ratio]"));
    let says = |value: &str, sort: &str| {
        format!(
            "23:33 import `db` of `app` may be bound to `database`, where `{value}` has the type `{sort}`, and to `other`, where it has the type `text` (use one type, or bind to one of them)"
        )
    };
    // What nobody reads may be anything.
    assert_eq!(told, [says("port", "port"), says("tls", "boolean")]);
    // A port is a whole number, and what is a secret of one of them is one.
    let agreed = expand(&second("{ host: text, port: integer, tls: boolean, key: text }"));
    let app = protocol::Name::new("app").unwrap();
    let recipe = serde_json::to_value(&agreed.definitions[&app].recipe).unwrap();
    let expected = serde_json::json!({ "db": { "port": "integer", "tls": "boolean", "key": "secret", "ratio": "number", "replicas": "integer" } });
    assert_eq!(recipe["sorts"]["imports"], expected);
    // Whoever is bound to one of them only is not concerned.
    let one = second("[host, port, tls]").replace("[database, other]", "database");
    assert_eq!(problems(&one), [""; 0]);
    // For whoever is bound to nobody so far, what is a secret of one of them is one, too.
    let nobody = second("[host, port, tls, key]").replace("[database, other]", "none");
    let nobody = nobody.replace("conf: \"", "conf: \"{% if imports.db %}").replace("key }}\"", "key }}{% endif %}\"");
    let nobody = expand(&nobody.replace("{ db: sql }", "{ db: { export: sql, weak: 0 } }"));
    let recipe = serde_json::to_value(&nobody.definitions[&app].recipe).unwrap();
    assert_eq!(recipe["sorts"]["imports"]["db"]["key"], "secret");
    assert_eq!(recipe["sorts"]["imports"]["db"].get("port"), None);
}

#[test]
fn a_file_with_a_secret_in_it_is_for_its_owner_if_nobody_says_otherwise() {
    let text = r#"holdfast: 1
application: modes
secrets: { password: { environment: PASSWORD } }
types:
  Database:
    parameters: { password: { type: secret }, size: 1 }
    exports: { sql: { values: { host: text, key: secret } } }
    values: { key: "{{ parameters.password }}-key" }
    files:
      parameter: "{{ parameters.password }}"
      value: "{% if key %}{{ values.key }}{% endif %}"
      said: { template: "{{ parameters.password }}", mode: "0640" }
      nothing: "password and key of {{ name }}: {{ parameters.size }}"
  App:
    imports: { db: sql }
    files:
      imported: "{% for db in imports.db %}{{ db.key }}{% endfor %}"
      other: { template: "the key of {{ imports.db[0].host }}" }
vms: { v: {} }
components:
  database: { type: Database, parameters: { password: { secret: password } } }
  app: { type: App }
"#;
    let expansion = expand(text);
    let files = expansion.definitions.values().flat_map(|it| &it.recipe.files);
    let modes: Vec<String> = files.map(|it| format!("{} {}", it.path, it.mode)).collect();
    let expected = ["imported 0600", "other 0644", "parameter 0600", "value 0600", "said 0640", "nothing 0644"];
    assert_eq!(modes, expected);
}
