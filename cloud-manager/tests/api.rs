//! The API over real sockets: roles, documents, and agreement with its OpenAPI description.

mod shape;
mod test_manager;

use cloud_manager::document::ComponentStatus;
use cloud_manager::{
    api::Api,
    client::{Client, ClientError},
    document::{Accepted, ChangeRecord, ComponentDetail, OperatorToken, Role, Status, Token, Well},
};
use hyper::Method;
use protocol::{Need, Strategy};
use serde_json::{Value, json};
use test_manager::{
    TestManager,
    stage::{Move, add, add_vm, bind, change, kind, remove_vm},
};

/// A database and an application that needs it, each on its own VM.
pub(crate) fn shop() -> Value {
    json!({ "edits": [
        { "add-vm": { "name": "data", "cloud": "local" } },
        { "add-vm": { "name": "web" } },
        { "add-component": { "name": "database", "vm": "data", "exports": { "sql": { "values": ["host", "port"] } },
            "recipe": { "operations": { "start": { "process": { "run": "mydb" } } } } } },
        { "add-component": { "name": "app", "vm": "web", "imports": { "db": { "export": "sql" } } } },
        { "bind": "app.db → database.sql" },
    ] })
}

async fn status(client: &Client) -> Status {
    client.get("/v1/status").await.expect("there is a status")
}

fn refused(error: ClientError) -> (u16, String, Vec<String>) {
    match error {
        ClientError::Refused(status, problems) => (status, problems.error, problems.problems),
        other => panic!("not refused: {other}"),
    }
}

#[tokio::test]
async fn a_change_is_accepted_carried_out_and_shown() {
    let manager = TestManager::new("accepted");
    let client = manager.client();
    let accepted: Accepted = client.post("/v1/changes", &shop()).await.unwrap();
    assert_eq!(accepted, Accepted { change: 1, events_after: 0 });
    let seen = status(&client).await;
    assert_eq!((seen.summary.components_started, seen.summary.bindings_held, seen.summary.changes), (2, 1, 0));
    assert_eq!(seen.attention, [""; 0]);
    assert!(
        seen.components
            .iter()
            .all(|it| it.state == ComponentStatus::Started && it.since_ms.is_some() && it.waits_for.is_empty())
    );
    let app: ComponentDetail = client.get("/v1/components/app").await.unwrap();
    assert_eq!((app.imports[0].need.to_string().as_str(), app.imports[0].held), ("strong 1", 1));
    let record: ChangeRecord = client.get("/v1/changes/1").await.unwrap();
    assert_eq!(record.asked.as_deref(), Some("add vm data, add vm web, add database on data and 2 more"));
    assert!(record.done_at_ms.is_some());
    let texts: Vec<&str> = record.events.iter().map(|event| event.text.as_str()).collect();
    assert_eq!((texts.first(), texts.last()), (Some(&record.events[0].text.as_str()), Some(&"change 1 done")));
    assert!(texts.contains(&"app is started"), "{texts:#?}");
    // The history has the same record, without its events.
    let history: Vec<ChangeRecord> = client.get("/v1/history").await.unwrap();
    assert_eq!(history, [ChangeRecord { events: Vec::new(), ..record }]);
}

#[tokio::test]
async fn a_change_in_progress_says_what_it_waits_for() {
    let manager = TestManager::new("waiting");
    let client = manager.client();
    // The hosts are slow.
    manager.hold_back(|it| matches!(it, Move::Finish(..)));
    let _: Accepted = client.post("/v1/changes", &shop()).await.unwrap();
    let seen = status(&client).await;
    assert_eq!(seen.changes[0].phase, Some(cloud_manager::document::Phase::Both));
    assert_eq!(
        seen.changes[0].waits_for,
        [
            "database to start, which waits for its start to finish",
            "app to start, which waits for database (starting) for db",
        ]
    );
    manager.act(|backend| backend.stage.fail("database"));
    // It is retried; when the retries are used up, manual action is required.
    let alarms = manager.act(|backend| backend.stage.alarms.len());
    assert_eq!(alarms, 1);
    manager.release();
    manager.hold_back(|it| matches!(it, Move::Cloud(_)));
    let _: Accepted = client
        .post(
            "/v1/changes",
            &json!({ "edits": [
            { "add-vm": { "name": "more", "cloud": "local" } },
            { "add-vm": { "name": "edge" } },
        ] }),
        )
        .await
        .unwrap();
    let seen = status(&client).await;
    let waits: Vec<&String> = seen.changes.iter().flat_map(|change| &change.waits_for).collect();
    assert!(waits.contains(&&"the cloud to create vm more".to_string()), "{waits:?}");
    // No cloud creates this one: manual action is required.
    let joins = "an agent to join as vm edge (holdfast token create --vm edge)".to_string();
    assert!(waits.contains(&&joins), "{waits:?}");
}

#[tokio::test]
async fn a_failed_operation_requires_manual_action_and_can_be_retried_or_skipped() {
    let manager = TestManager::new("failed");
    let client = manager.client();
    manager.hold_back(|it| matches!(it, Move::Finish(..)));
    let mut edits = shop();
    edits["edits"][2]["add-component"]["patience"] = json!({ "start": { "retries": 0, "pause_ms_first": 0 } });
    let _: Accepted = client.post("/v1/changes", &edits).await.unwrap();
    manager.act(|backend| backend.stage.fail("database"));
    let seen = status(&client).await;
    let database = seen.components.iter().find(|it| it.name == "database").unwrap();
    assert_eq!((database.state.to_string().as_str(), database.failure.as_deref()), ("failed", Some("failed")));
    assert_eq!(database.waits_for, ["an operator to retry or skip its failed start"]);
    assert_eq!(seen.attention.len(), 1, "{:?}", seen.attention);
    assert_eq!(seen.changes[0].stuck_on, ["database"]);
    let log = client.text("/v1/components/database/logs").await.unwrap();
    assert_eq!(log, "database wrote this\n");
    // Only a failed operation can be retried.
    let error = client.post::<Accepted>("/v1/components/app/retry", &json!(null)).await.unwrap_err();
    assert_eq!(refused(error).2, ["component \"app\" has no failed operation to retry or skip"]);
    manager.release();
    let _: Accepted = client.post("/v1/components/database/retry", &json!(null)).await.unwrap();
    let seen = status(&client).await;
    assert_eq!((seen.summary.components_started, seen.summary.components_failed, seen.changes.len()), (2, 0, 0));
}

#[tokio::test]
async fn all_refusals_are_returned_at_once_and_nothing_has_changed() {
    let manager = TestManager::new("refusals");
    let client = manager.client();
    let wrong = json!({ "edits": [
        { "remove-component": "nobody" },
        { "remove-vm": "nowhere" },
        { "bind": "a.b → c.d" },
    ] });
    let (status_code, error, problems) = refused(client.post::<Accepted>("/v1/changes", &wrong).await.unwrap_err());
    assert_eq!((status_code, error.as_str()), (409, "the manager refused; nothing has changed"));
    assert_eq!(problems.len(), 4, "{problems:#?}");
    assert_eq!(status(&client).await.summary, Default::default());
    // A malformed request is refused with the place of the error.
    let broken = client.request(Method::POST, "/v1/changes", b"{\n  \"edits\": [ { \"fly\": 1 } ] }".to_vec()).await;
    let (status_code, _, problems) = refused(broken.unwrap_err());
    assert_eq!(status_code, 400);
    assert!(problems[0].contains("unknown variant `fly`") && problems[0].contains("line 2 column"), "{problems:?}");
    let malformed = json!({ "edits": [{ "bind": "x" }, { "add-vm": { "name": "" } }] });
    let (status_code, _, problems) = refused(client.post::<Accepted>("/v1/changes", &malformed).await.unwrap_err());
    assert_eq!((status_code, problems.len()), (400, 2), "{problems:?}");
    // A misspelt option must not turn a dry run into a change.
    let (status_code, ..) = refused(client.post::<Accepted>("/v1/changes?dryrun=true", &shop()).await.unwrap_err());
    assert_eq!((status_code, status(&client).await.summary.vms), (400, 0));
}

#[tokio::test]
async fn a_dry_run_predicts_the_end_and_changes_nothing() {
    let manager = TestManager::new("dry-run");
    let client = manager.client();
    let _: Accepted = client.post("/v1/changes", &shop()).await.unwrap();
    let before = manager.act(|backend| backend.stage.manager.clone());
    let replace = json!({ "strategy": "down-then-up", "edits": [
        { "remove-component": "database" },
        { "add-component": { "name": "database2", "vm": "data", "exports": { "sql": {} } } },
        { "bind": "app.db → database2.sql" },
    ] });
    let predicted: Value = client.post("/v1/changes?dry-run=true", &replace).await.unwrap();
    let end = |it: &Value| {
        let fields = ["started", "not_started", "may_stop", "differences"];
        fields.iter().map(|name| (name.to_string(), it["forecast"][name].clone())).collect::<serde_json::Map<_, _>>()
    };
    assert_eq!(
        Value::Object(end(&predicted)),
        json!({ "started": 2, "not_started": 0, "may_stop": ["app"], "differences": [
            { "component": "database", "vm": "data", "now": "started", "then": "absent" },
            { "component": "database2", "vm": "data", "now": "absent", "then": "started" },
        ] })
    );
    // With make-before-break, nothing stops.
    let mut gently = replace.clone();
    gently["strategy"] = json!("up-then-down");
    let predicted: Value = client.post("/v1/changes?dry-run=true", &gently).await.unwrap();
    assert_eq!(predicted["forecast"]["may_stop"], json!([]));
    // A component that restarts makes its clients restart.
    let restart = json!({ "edits": [{ "restart-component": "database" }] });
    let predicted: Value = client.post("/v1/changes?dry-run=true", &restart).await.unwrap();
    assert_eq!(predicted["forecast"]["may_stop"], json!(["app", "database"]));
    // Removing a provider without a replacement is refused, unless it is intended; then the application is predicted to wait.
    let mut remove = json!({ "edits": [{ "remove-component": "database" }] });
    let (status_code, _, problems) =
        refused(client.post::<Value>("/v1/changes?dry-run=true", &remove).await.unwrap_err());
    assert_eq!((status_code, problems.len()), (409, 1));
    remove["incomplete"] = json!(true);
    let predicted: Value = client.post("/v1/changes?dry-run=true", &remove).await.unwrap();
    assert_eq!(predicted["forecast"]["differences"][0]["because"], json!(["db to be bound (0 of 1 bound)"]));
    assert_eq!(manager.act(|backend| backend.stage.manager.clone()), before);
    // The predicted end is the actual end.
    let _: Accepted = client.post("/v1/changes", &replace).await.unwrap();
    let seen = status(&client).await;
    let names: Vec<&str> = seen.components.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((names, seen.summary.components_started), (vec!["app", "database2"], 2));
}

#[tokio::test]
async fn each_route_requires_its_role() {
    let manager = TestManager::new("roles");
    let description = Api::description();
    let clients = [Role::Read, Role::Operate, Role::Admin].map(|role| (role, manager.client_with_role(role)));
    let stranger = manager.client_with("holdfast_00000000_0123");
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap().iter().filter(|it| it.1.is_object()) {
            let needed: Option<Role> = operation["security"][0]["token"][0].as_str().map(|it| it.parse().unwrap());
            let method: Method = method.to_uppercase().parse().unwrap();
            let path = path.replace("{name}", "nobody").replace("{id}", "none");
            if path == "/v1/events" {
                continue;
            }
            let outcome = stranger.request(method.clone(), &path, b"{}".to_vec()).await;
            let turned_away = matches!(outcome, Err(ClientError::Refused(401, _)));
            assert_eq!(turned_away, needed.is_some(), "{method} {path}");
            for (role, client) in &clients {
                let outcome = client.request(method.clone(), &path, b"{}".to_vec()).await;
                let turned_away = matches!(outcome, Err(ClientError::Refused(401 | 403, _)));
                assert_eq!(turned_away, needed.is_some_and(|needed| needed > *role), "{method} {path} as {role}");
            }
        }
    }
}

#[tokio::test]
async fn tokens_are_created_listed_revoked_and_stored_as_hashes() {
    let manager = TestManager::new("tokens");
    let client = manager.client();
    let made: OperatorToken = client.post("/v1/tokens", &json!({ "name": "dashboard", "role": "read" })).await.unwrap();
    let reader = manager.client_with(&made.text);
    assert!(reader.get::<Status>("/v1/status").await.is_ok());
    let listed: Vec<Token> = client.get("/v1/tokens").await.unwrap();
    assert_eq!(listed.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["first", "dashboard"]);
    // The file on disk grants no access, and a restarted manager reads it.
    let file = std::fs::read_to_string(manager.folder.join("tokens.json")).unwrap();
    assert!(!file.contains(&made.text) && file.contains(&made.token.id));
    let again = cloud_manager::api::Tokens::open(&manager.folder.join("tokens.json")).unwrap();
    assert_eq!(again.recognise(&made.text), Some(made.token.clone()));
    assert_eq!(again.recognise(&format!("{}0", made.text)), None);
    client.delete(&format!("/v1/tokens/{}", made.token.id)).await.unwrap();
    assert_eq!(refused(reader.get::<Status>("/v1/status").await.unwrap_err()).0, 401);
    assert_eq!(refused(client.delete(&format!("/v1/tokens/{}", made.token.id)).await.unwrap_err()).0, 404);
    // The last admin token cannot be revoked.
    assert_eq!(refused(client.delete(&format!("/v1/tokens/{}", listed[0].id)).await.unwrap_err()).0, 409);
}

#[tokio::test]
async fn every_route_is_described_and_answers_as_described() {
    let manager = TestManager::new("described");
    let client = manager.client();
    let described: Value = client.get("/v1/openapi.json").await.unwrap();
    assert_eq!(described, Api::description());
    assert_eq!(shape::dangling(&described), [""; 0]);
    assert!(described["openapi"].as_str().is_some_and(|version| version.starts_with("3.")));
    manager.act(|backend| {
        // Something of every sort: a VM that is added, one that is removed, one that is suspected, and a change that waits.
        let database = kind(&[], &["sql"]);
        let app = kind(&[("db", "sql", Need::Strong(1)), ("cache", "objects", Need::Weak(0))], &["http"]);
        let edits = [
            add_vm("data"),
            add_vm("web"),
            add_vm("old"),
            add("database", "data", database),
            add("app", "web", app),
            bind("app.db → database.sql"),
        ];
        backend.ask(change(Strategy::Together, edits));
        backend.run();
        let failing = kind(&[], &[]);
        backend.held_back = Box::new(|it| matches!(it, Move::Finish(..) | Move::Cloud(_)));
        backend.ask(change(Strategy::Together, [remove_vm("old"), add("failing", "web", failing)]));
        backend.run();
        backend.stage.fail("failing");
        backend.run();
    });
    let token: Value = client.post("/v1/tokens", &json!({ "role": "read" })).await.unwrap();
    let id = token["token"]["id"].as_str().unwrap().to_string();
    let calls: Vec<(&str, &str, String, Value, u16)> = vec![
        ("get", "/v1/health", "/v1/health".into(), json!(null), 200),
        ("get", "/v1/openapi.json", "/v1/openapi.json".into(), json!(null), 200),
        ("get", "/v1/status", "/v1/status".into(), json!(null), 200),
        ("get", "/v1/vms", "/v1/vms".into(), json!(null), 200),
        ("get", "/v1/components", "/v1/components".into(), json!(null), 200),
        ("get", "/v1/components/{name}", "/v1/components/app".into(), json!(null), 200),
        ("get", "/v1/components/{name}/definition", "/v1/components/app/definition".into(), json!(null), 200),
        ("get", "/v1/components/{name}", "/v1/components/nobody".into(), json!(null), 404),
        ("get", "/v1/why/{name}", "/v1/why/failing".into(), json!(null), 200),
        ("get", "/v1/why/{name}", "/v1/why/nobody".into(), json!(null), 404),
        ("post", "/v1/apply", "/v1/apply?dry-run=true".into(), apply("holdfast: 1\napplication: shop\n"), 200),
        ("post", "/v1/apply", "/v1/apply?dry-run=true".into(), apply("application: [\n"), 422),
        ("post", "/v1/apply", "/v1/apply".into(), json!({}), 400),
        ("post", "/v1/scale", "/v1/scale?dry-run=true".into(), json!({ "counts": { "none": 1 } }), 404),
        ("post", "/v1/rollback", "/v1/rollback".into(), json!({ "application": "shop" }), 409),
        ("post", "/v1/reconcile", "/v1/reconcile?dry-run=true".into(), json!({ "names": ["shop"] }), 200),
        ("post", "/v1/drain", "/v1/drain".into(), json!({ "vm": "shop/web[0]" }), 404),
        ("post", "/v1/undrain", "/v1/undrain".into(), json!({ "vm": "web" }), 409),
        ("post", "/v1/remove", "/v1/remove".into(), json!({ "application": "none" }), 404),
        ("post", "/v1/check", "/v1/check".into(), json!({ "names": ["shop"] }), 200),
        ("get", "/v1/planning", "/v1/planning".into(), json!(null), 200),
        ("post", "/v1/changes/{id}/cancel", "/v1/changes/1/cancel".into(), json!(null), 409),
        ("post", "/v1/changes/{id}/promote", "/v1/changes/1/promote".into(), json!(null), 409),
        ("get", "/v1/applications", "/v1/applications".into(), json!(null), 200),
        ("get", "/v1/applications/{name}", "/v1/applications/shop".into(), json!(null), 200),
        ("get", "/v1/applications/{name}", "/v1/applications/nobody".into(), json!(null), 404),
        ("get", "/v1/data", "/v1/data".into(), json!(null), 200),
        ("delete", "/v1/data/{name}", "/v1/data/database".into(), json!(null), 404),
        ("get", "/v1/autoscale", "/v1/autoscale".into(), json!(null), 200),
        ("post", "/v1/autoscale/{name}/pause", "/v1/autoscale/shop/pause".into(), json!(null), 404),
        ("post", "/v1/autoscale/{name}/resume", "/v1/autoscale/shop/resume".into(), json!(null), 404),
        ("get", "/v1/bindings", "/v1/bindings".into(), json!(null), 200),
        ("get", "/v1/changes", "/v1/changes".into(), json!(null), 200),
        ("get", "/v1/changes/{id}", "/v1/changes/1".into(), json!(null), 200),
        ("get", "/v1/changes/{id}", "/v1/changes/one".into(), json!(null), 404),
        ("get", "/v1/changes/{id}/story", "/v1/changes/1/story".into(), json!(null), 200),
        ("get", "/v1/changes/{id}/story", "/v1/changes/99/story".into(), json!(null), 404),
        ("get", "/v1/history", "/v1/history?limit=1".into(), json!(null), 200),
        ("post", "/v1/changes", "/v1/changes?dry-run=true".into(), shop(), 409),
        ("post", "/v1/changes", "/v1/changes?dry-run=true".into(), json!({ "edits": [] }), 200),
        ("post", "/v1/changes", "/v1/changes".into(), json!({ "edits": [] }), 202),
        ("post", "/v1/changes", "/v1/changes".into(), json!([]), 400),
        ("post", "/v1/components/{name}/retry", "/v1/components/failing/retry".into(), json!(null), 202),
        ("post", "/v1/components/{name}/skip", "/v1/components/app/skip".into(), json!(null), 409),
        ("post", "/v1/vms/{name}/lost", "/v1/vms/data/lost".into(), json!(null), 202),
        ("post", "/v1/join-tokens", "/v1/join-tokens".into(), json!({ "vm": "web" }), 201),
        ("post", "/v1/tokens", "/v1/tokens".into(), json!({ "role": "operate" }), 201),
        ("post", "/v1/dashboard-links", "/v1/dashboard-links".into(), json!({}), 201),
        ("get", "/v1/tokens", "/v1/tokens".into(), json!(null), 200),
        ("delete", "/v1/tokens/{id}", format!("/v1/tokens/{id}"), json!(null), 204),
        ("delete", "/v1/tokens/{id}", "/v1/tokens/none".into(), json!(null), 404),
    ];
    let mut unseen: Vec<(String, String)> = described["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (method.clone(), path.clone())).collect::<Vec<_>>()
        })
        .collect();
    let mut misfits = Vec::new();
    for (method, template, path, body, expected) in calls {
        let verb: Method = method.to_uppercase().parse().unwrap();
        let (status_code, answer) = match client.request(verb, &path, body.to_string().into_bytes()).await {
            Ok((status, bytes)) if bytes.is_empty() => (status, json!(null)),
            Ok((status, bytes)) => (status, serde_json::from_slice(&bytes).unwrap()),
            Err(ClientError::Refused(status, problems)) => (status, serde_json::to_value(problems).unwrap()),
            Err(other) => panic!("{method} {path}: {other}"),
        };
        assert_eq!(status_code, expected, "{method} {path}: {answer}");
        misfits.extend(shape::misfits(&described, method, template, status_code, &answer));
        unseen.retain(|(seen, at)| (seen.as_str(), at.as_str()) != (method, template));
    }
    assert_eq!(misfits, [""; 0]);
    // The others do not answer in JSON.
    let rest: Vec<&str> = unseen.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(rest, ["/metrics", "/v1/components/{name}/drift", "/v1/components/{name}/logs", "/v1/events"]);
    let numbers = client.text("/metrics").await.unwrap();
    for line in ["holdfast_components{state=\"started\"}", "holdfast_changes_total{outcome=\"done\"}", "# EOF"] {
        assert!(numbers.contains(line), "{line}: {numbers}");
    }
    assert_eq!(client.text("/v1/components/app/drift").await.unwrap(), "file a.conf was changed");
    assert_eq!(client.text("/v1/components/app/logs?bytes=8").await.unwrap(), "app wrot");
}

#[tokio::test]
async fn names_in_addresses_may_have_any_character_that_names_have() {
    let manager = TestManager::new("addresses");
    let client = manager.client();
    let edits = json!({ "edits": [
        { "add-vm": { "name": "web" } },
        { "add-component": { "name": "shop/app[2]'", "vm": "web" } },
    ] });
    let _: Accepted = client.post("/v1/changes", &edits).await.unwrap();
    let path = format!("/v1/components/{}", cloud_manager::client::segment("shop/app[2]'"));
    let found: ComponentDetail = client.get(&path).await.unwrap();
    assert_eq!(found.component.name, "shop/app[2]'");
}

#[tokio::test]
async fn a_halting_manager_says_so_and_then_stops_answering() {
    let mut manager = TestManager::new("halting");
    let client = manager.client();
    let well: Well = client.get("/v1/health").await.unwrap();
    assert!(well.well);
    let mut events = client.events(0).await.unwrap();
    tokio::task::spawn_blocking(move || {
        manager.halt();
        manager
    })
    .await
    .unwrap();
    // Streams end rather than hang.
    while let Ok(Some(_)) = events.next().await {}
    let error = client.get::<Well>("/v1/health").await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(..)), "{error}");
    assert!(error.to_string().contains("start one with: holdfast manager run"), "{error}");
}

#[tokio::test]
async fn the_history_describes_each_request() {
    let manager = TestManager::new("words");
    let client = manager.client();
    let _: Accepted = client.post("/v1/changes", &shop()).await.unwrap();
    let _: Accepted = client.post("/v1/vms/data/lost", &json!(null)).await.unwrap();
    let history: Vec<ChangeRecord> = client.get("/v1/history?limit=1").await.unwrap();
    assert_eq!(history[0].asked.as_deref(), Some("declare vm data lost"));
}

#[tokio::test]
async fn a_change_with_many_edits_is_described_briefly() {
    let manager = TestManager::new("many");
    let client = manager.client();
    manager.hold_back(|it| matches!(it, Move::Finish(..)));
    let mut edits = vec![json!({ "add-vm": { "name": "web" } })];
    for number in 0..300 {
        edits.push(
            json!({ "add-component": { "name": format!("database{number}"), "vm": "web", "exports": { "sql": {} } } }),
        );
        edits.push(json!({ "bind": format!("app.db -> database{number}.sql") }));
    }
    edits.push(json!({ "add-component": { "name": "app", "vm": "web", "imports": { "db": { "export": "sql", "strong": 300 } } } }));
    let _: Accepted = client.post("/v1/changes", &json!({ "edits": edits })).await.unwrap();
    let seen = status(&client).await;
    assert_eq!((seen.changes[0].waiting, seen.changes[0].waits_for.len()), (301, 100));
    let app = seen.components.iter().find(|it| it.name == "app").unwrap();
    assert_eq!((app.waits_for.len(), app.waits_for[5].as_str()), (6, "295 more"));
}

#[tokio::test]
async fn a_binding_shows_what_its_import_needs_now() {
    let manager = TestManager::new("need-now");
    let client = manager.client();
    let mut edits = shop();
    edits["edits"][3]["add-component"]["imports"]["db"]["value"] = json!(1);
    let _: Accepted = client.post("/v1/changes", &edits).await.unwrap();
    let more = json!({ "edits": [
        { "add-component": { "name": "second", "vm": "data", "exports": { "sql": {} } } },
        { "bind": "app.db → second.sql" },
        { "set-need": { "component": "app", "import": "db", "number": 2 } },
    ] });
    let _: Accepted = client.post("/v1/changes", &more).await.unwrap();
    let needs: Vec<String> = status(&client).await.bindings.into_iter().map(|it| it.need.to_string()).collect();
    assert_eq!(needs, ["value 2", "value 2"]);
    let database: ComponentDetail = client.get("/v1/components/database").await.unwrap();
    assert_eq!(database.lends[0].need.to_string(), "value 2");
}

#[tokio::test]
async fn an_unknown_cloud_is_refused_before_anything_is_asked_of_it() {
    let manager = TestManager::new("clouds");
    let client = manager.client();
    let mut edits = shop();
    edits["edits"][0]["add-vm"]["cloud"] = json!("loacl");
    for path in ["/v1/changes?dry-run=true", "/v1/changes"] {
        let (code, _, problems) = refused(client.post::<Value>(path, &edits).await.unwrap_err());
        assert_eq!((code, problems), (400, vec!["there is no cloud \"loacl\" (known: local)".to_owned()]));
    }
    let seen = status(&client).await;
    assert_eq!((seen.vms.len(), seen.clouds), (0, vec!["local".to_owned()]));
}

/// A request to apply an application of one file.
fn apply(text: &str) -> Value {
    json!({ "application": { "main": "shop.yaml", "files": { "shop.yaml": text } } })
}
