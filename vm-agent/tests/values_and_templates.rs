//! Stories of what a component is told and what it hands out.

mod stage;

use protocol::{Export, HostTask, Import, Kind, Need, Work};
use serde_json::{Value, json};
use stage::{Stage, eventually, held, name, recipe, start, task, task_of};
use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, sync::Arc};

fn with_port() -> Value {
    json!({
        "version": 1,
        "values": {
            // They speak of each other, in no particular order.
            "address": { "template": "{{ host }}:{{ port }}" },
            "port": { "template": "{{ free_port() }}" },
            "run": { "template": "{{ name }} at {{ address }}", "at": "start" }
        },
        "operations": {
            "announce": { "run": "echo key=$HOLDFAST_NAME-{{ port }} >> $HOLDFAST_VALUES" },
            "start": { "process": { "run": "exec sleep 1000" } }
        }
    })
}

#[tokio::test]
async fn values_are_announced_before_anything_is_started() {
    let mut stage = Stage::new().await;
    let announced = stage.carry_out(&task(1, &with_port(), Work::Prepare)).await;
    let port = announced[&name("port")].as_ref();
    assert_eq!(announced[&name("address")].as_ref(), format!("127.0.0.1:{port}"));
    assert_eq!(announced[&name("key")].as_ref(), format!("app[0]-{port}"));
    assert!(!announced.contains_key(&name("run")));
    let chosen = stage.carry_out(&task(2, &with_port(), start())).await;
    assert_eq!(chosen.into_iter().collect::<Vec<_>>(), [(name("run"), format!("app[0] at 127.0.0.1:{port}").into())]);
}

#[tokio::test]
async fn a_kind_that_does_not_prepare_hands_everything_out_at_its_start() {
    let mut stage = Stage::new().await;
    let values = stage.carry_out(&task(1, &with_port(), start())).await;
    assert_eq!(values.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["address", "port", "run"]);
}

#[tokio::test]
async fn a_component_keeps_its_port_until_it_is_purged_and_nobody_else_gets_it() {
    let mut stage = Stage::new().await;
    let port = stage.carry_out(&task(1, &with_port(), Work::Prepare)).await[&name("port")].clone();
    // Prepared again, and by another life of the agent.
    stage.reopen(Vec::new()).await;
    assert_eq!(stage.carry_out(&task(2, &with_port(), Work::Prepare)).await[&name("port")], port);
    let mut ports = BTreeSet::from([port]);
    for component in 2..12 {
        let values = stage.carry_out(&task_of(component, 1, &with_port(), Work::Prepare)).await;
        assert!(ports.insert(values[&name("port")].clone()), "given out twice");
    }
}

#[tokio::test]
async fn what_is_no_value_fails_the_operation_that_wrote_it() {
    let mut stage = Stage::new().await;
    for (serial, (command, expected)) in [
        ("echo nonsense > $HOLDFAST_VALUES", "announce: line 1 of $HOLDFAST_VALUES: not of the form name=value"),
        ("echo 'a b=1' > $HOLDFAST_VALUES", "announce: line 1 of $HOLDFAST_VALUES: name \"a b\""),
        ("head -c 300000 /dev/zero > $HOLDFAST_VALUES", "announce: the file $HOLDFAST_VALUES is longer"),
        ("printf '\\377=1' > $HOLDFAST_VALUES", "announce: the file $HOLDFAST_VALUES is not UTF-8"),
    ]
    .into_iter()
    .enumerate()
    {
        let recipe = recipe(json!({ "announce": { "run": command } }));
        let detail = stage.fail(&task(u64::try_from(serial).unwrap(), &recipe, Work::Prepare)).await;
        assert!(detail.starts_with(expected), "{detail}");
    }
}

/// A task for a kind that exports these values as `sql`.
fn exporting(values: &[&str], task: HostTask) -> HostTask {
    let export = Export { values: values.iter().map(|it| name(it)).collect(), ..Export::default() };
    HostTask { kind: Arc::new(Kind { exports: [(name("sql"), export)].into(), ..(*task.kind).clone() }), ..task }
}

#[tokio::test]
async fn a_value_of_another_sort_fails_the_operation_that_chose_it() {
    let mut stage = Stage::new().await;
    let sorts = json!({ "values": { "port": "port", "tls": "boolean", "key": "secret" } });
    let says = |value: &str, operations: Value| json!({ "version": 1, "secrets": { "word": "hunter2" }, "sorts": sorts, "values": { "key": { "template": "key-of-{{ parameters.word }}" }, "port": { "template": value } }, "operations": operations });
    let port = "value \"port\" of export \"sql\" must be a port from 1 to 65535, not";
    let tls = "value \"tls\" of export \"sql\" must be `true` or `false`, not";
    let writes = |line: &str| json!({ "run": format!("echo '{line}' >> $HOLDFAST_VALUES") });
    let mut script = writes("tls=maybe");
    script = json!({ "start": { "script": script }, "stop": { "command": { "run": "true" } } });
    let told = [
        (says("{{ host }}", json!({})), Work::Prepare, format!("{port} \"127.0.0.1\"")),
        (says("{{ free_port() }}0000", json!({})), start(), port.to_owned()),
        // Another value cannot be rendered because of the wrong one: the wrong one is told.
        (
            json!({ "version": 1, "sorts": sorts, "values": { "port": { "template": "x" }, "next": { "template": "{{ port + 1 }}" } } }),
            Work::Prepare,
            format!("{port} \"x\""),
        ),
        (says("80", json!({ "install": writes("port=http") })), Work::Prepare, format!("install: {port} \"http\"")),
        (says("80", json!({ "announce": writes("tls=") })), Work::Prepare, format!("announce: {tls} \"\"")),
        (says("80", script), start(), format!("start: {tls} \"maybe\"")),
        (says(&"x".repeat(50), json!({})), Work::Prepare, format!("{port} a long text")),
        // A secret stays one, also where it went astray.
        (says("{{ key }}", json!({})), Work::Prepare, format!("{port} \"•••\"")),
        (says("{{ parameters.word }}", json!({})), Work::Prepare, format!("{port} \"•••\"")),
    ];
    for (serial, (recipe, work, expected)) in told.into_iter().enumerate() {
        let task = exporting(&["port", "tls", "key"], task(u64::try_from(serial).unwrap(), &recipe, work));
        let detail = stage.fail(&task).await;
        assert!(detail.starts_with(&expected), "{detail}, not {expected}");
    }
    // With the right one it goes on.
    let right = says("{{ free_port() }}", json!({ "announce": writes("tls=true") }));
    let values = stage.carry_out(&exporting(&["port", "tls", "key"], task(100, &right, Work::Prepare))).await;
    assert_eq!(values[&name("tls")].as_ref(), "true");
}

#[tokio::test]
async fn a_secret_is_concealed_in_every_failure_however_it_is_written() {
    let mut stage = Stage::new().await;
    let with = |secret: &str, more: Value| {
        let mut recipe = json!({ "version": 1, "secrets": { "word": secret } });
        recipe.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        recipe
    };
    let quoted = "a\"SEC\\x";
    let checked = |probe: Value| with(quoted, json!({ "operations": { "check": { "probe": probe } } }));
    let port = json!({ "sorts": { "values": { "port": "port" } }, "values": { "port": { "template": "{{ parameters.word }}" } } });
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----";
    let long = "Secret".repeat(50);
    let installs = |secret: &str, run: &str| with(secret, json!({ "operations": { "install": { "run": run } } }));
    let told = [
        (checked(json!({ "tcp": { "port": "{{ parameters.word }}" } })), start(), "check: \"•••\" is not a port"),
        (checked(json!({ "http": { "url": "{{ parameters.word }}" } })), start(), "check: \"•••\" is not http"),
        (with(quoted, port), Work::Prepare, "value \"port\" must be a port from 1 to 65535, not \"•••\""),
        (installs(key, "echo read kqhkiG9w0BAQEF; exit 1"), Work::Prepare, "install: exit code 1\nread •••"),
        // Only the end of it is told, and that begins in the middle of the secret.
        (
            installs(&long, "printf '{{ parameters.word }}%01900d' 0; exit 1"),
            Work::Prepare,
            "install: exit code 1\n•••000",
        ),
    ];
    for (serial, (recipe, work, expected)) in told.into_iter().enumerate() {
        let detail = stage.fail(&task(u64::try_from(serial).unwrap(), &recipe, work)).await;
        assert!(detail.starts_with(expected) && !detail.contains("SEC"), "{detail}, not {expected}");
    }
    let logs = stage.host().logs(protocol::ComponentId(1), 2000).await.unwrap();
    assert!(logs.contains(": failed: install: exit code 1") && !logs.contains("Secret"), "{logs}");
}

#[tokio::test]
async fn a_client_calculates_with_what_it_imports_and_does_not_start_with_something_else() {
    let mut stage = Stage::new().await;
    let recipe = json!({
        "version": 1,
        "sorts": { "imports": { "db": { "port": "port", "tls": "boolean" } } },
        "files": [{ "path": "conf", "template": "{{ imports.db[0].port + 1 }}{% if imports.db[0].tls %} tls{% endif %}" }],
        "operations": { "start": { "process": { "run": "exec sleep 1000" } }, "rebind": { "command": { "run": "true" } } }
    });
    let bound = |port: &str, tls: &str| vec![held("db", 7, &[("port", port), ("tls", tls)])];
    let with = |serial, work| importing(serial, &recipe, work);
    let detail = stage.fail(&with(1, Work::Start { bindings: bound("5432", "no") })).await;
    assert_eq!(detail, "value \"tls\" of import \"db\" must be `true` or `false`, not \"no\"");
    stage.carry_out(&with(2, Work::Start { bindings: bound("5432", "true") })).await;
    assert_eq!(stage.read(1, "conf"), "5433 tls");
    stage.carry_out(&with(3, Work::Rebind { bindings: bound("5432", "false") })).await;
    assert_eq!(stage.read(1, "conf"), "5433");
    let detail = stage.fail(&with(4, Work::Rebind { bindings: bound("", "false") })).await;
    assert_eq!(detail, "value \"port\" of import \"db\" must be a port from 1 to 65535, not \"\"");
}

/// A component that imports `db` and `cache`, and shows what it was told.
fn client() -> Value {
    json!({
        "version": 1,
        "parameters": { "greeting": "hello" },
        "environment": { "GREETING": "{{ parameters.greeting }}", "CACHES": "{{ imports.cache | length }}" },
        "files": [{
            "path": "conf/app.conf",
            "template": "{% for db in imports.db %}db {{ db.host }}:{{ db.port }}\n{% endfor %}",
            "mode": "0640"
        }],
        "operations": {
            "start": { "process": { "run": "trap 'cp conf/app.conf seen' HUP; env > new; mv new told; while :; do sleep 0.05; done" } },
            "check": { "probe": { "command": { "run": "test -e told" } } },
            "rebind": { "signal": "HUP" }
        }
    })
}

fn client_task(serial: u64, work: Work) -> HostTask {
    importing(serial, &client(), work)
}

fn importing(serial: u64, recipe: &Value, work: Work) -> HostTask {
    let import = Import { export: name("sql"), need: Need::Weak(0) };
    let task = task(serial, recipe, work);
    let imports = [(name("db"), import.clone()), (name("cache"), import)].into();
    HostTask { kind: Arc::new(Kind { imports, ..(*task.kind).clone() }), ..task }
}

#[tokio::test]
async fn a_client_is_told_of_its_imports_and_told_again_when_they_change() {
    let mut stage = Stage::new().await;
    let (first, second) =
        (held("db", 7, &[("host", "10.0.0.1"), ("port", "1")]), held("db", 9, &[("host", "10.0.0.2"), ("port", "2")]));
    stage.carry_out(&client_task(1, Work::Start { bindings: vec![second.clone(), first] })).await;
    assert_eq!(stage.read(1, "conf/app.conf"), "db 10.0.0.1:1\ndb 10.0.0.2:2\n");
    let mode = fs::metadata(stage.home(1).join("conf/app.conf")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let told = stage.read(1, "told");
    for line in
        ["HOLDFAST_NAME=app[0]", "HOLDFAST_DB_0_PORT=1", "HOLDFAST_DB_1_HOST=10.0.0.2", "GREETING=hello", "CACHES=0"]
    {
        assert!(told.lines().any(|found| found == line), "{line} is not in {told}");
    }
    // What is the agent's business only is not passed on.
    assert!(!told.contains("CARGO"), "{told}");

    stage.carry_out(&client_task(2, Work::Rebind { bindings: vec![second] })).await;
    assert_eq!(stage.read(1, "conf/app.conf"), "db 10.0.0.2:2\n");
    eventually("it reads its file again", || stage.read(1, "seen") == "db 10.0.0.2:2\n").await;
    assert!(stage.is_silent());
}

#[tokio::test]
async fn a_rebind_command_that_fails_says_so_and_the_component_runs_on() {
    let mut stage = Stage::new().await;
    let recipe = recipe(json!({
        "start": { "process": { "run": "exec sleep 1000" } },
        "rebind": { "command": { "run": "echo cannot; exit 4" } }
    }));
    stage.carry_out(&task(1, &recipe, start())).await;
    let detail = stage.fail(&task(2, &recipe, Work::Rebind { bindings: Vec::new() })).await;
    assert_eq!(detail, "rebind: exit code 4\ncannot");
    assert!(stage::is_alive(stage.pid(1)));
}

#[tokio::test]
async fn an_unknown_name_fails_the_start_and_is_told() {
    let mut stage = Stage::new().await;
    let sleeps = json!({ "process": { "run": "exec sleep 1000" } });
    let told = [
        (json!({ "version": 1, "environment": { "A": "{{ prot }}" }, "operations": { "start": sleeps } }), "`prot`"),
        (json!({ "version": 1, "files": [{ "path": "a", "template": "{{ imports.sql }}" }] }), "`imports.sql`"),
        (json!({ "version": 1, "values": { "a": { "template": "{{ parameters.b }}" } } }), "`parameters.b`"),
        (recipe(json!({ "start": { "process": { "run": ["{{ free_port() }}"] } } })), "`free_port"),
        (recipe(json!({ "start": sleeps, "check": { "probe": { "tcp": { "port": "{{ p }}" } } } })), "`p`"),
        (
            recipe(json!({ "start": sleeps, "check": { "probe": { "tcp": { "port": "http" } } } })),
            "\"http\" is not a port",
        ),
        (recipe(json!({ "start": sleeps, "check": { "probe": { "http": { "url": "ftp://a" } } } })), "\"ftp://a\""),
    ];
    for (serial, (recipe, expected)) in told.into_iter().enumerate() {
        let detail = stage.fail(&task(u64::try_from(serial).unwrap(), &recipe, start())).await;
        assert!(detail.contains(expected), "{detail}");
        assert_eq!(stage::marked(&stage.home(1)), [0; 0]);
    }
}
