//! What happens to an application after it was applied: drift and reconciliation, draining of VMs, rolling replacement,
//! secrets; and concurrent operators.

use crate::HOLDFAST;
use crate::site::{Site, bind, order};
use cloud_manager::client::{ClientError, segment};
use cloud_manager::document::{Accepted, ApplicationDocument, ApplyRequest, Component, NewComponent, Submitted};
use cloud_manager::document::{ComponentStatus, EventKind};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

/// Web servers that need a database, each with a file of its own.
const SHOP: &str = r#"holdfast: 1
application: shop
secrets:
  password: { environment: SHOP_PASSWORD }
types:
  Database:
    parameters: { password: { type: secret }, level: 1 }
    exports: { sql: { values: { host: text, port: port, key: secret } } }
    values: { port: "{{ free_port() }}", key: "key-of-{{ parameters.password }}" }
    files: { database.conf: "password {{ parameters.password }}" }
    operations:
      start: { process: "cat database.conf; echo; echo level {{ parameters.level }}; exec sleep 100000" }
  Web:
    parameters: { greeting: hello }
    imports: { db: sql }
    files: { web.conf: "{{ parameters.greeting }} {{ imports.db[0].key }}" }
    operations:
      start: { process: "cat web.conf; echo; exec sleep 100000" }
vms:
  data: { cloud: local }
  web: { count: 2, cloud: local }
components:
  database: { type: Database, on: data, parameters: { password: { secret: password } } }
  web: { type: Web, on: web, count: 4 }
"#;

/// A site with the shop applied, and its file.
fn shop(name: &str) -> (Site, PathBuf) {
    let mut site = Site::open(name);
    site.environment.push(("SHOP_PASSWORD".into(), "swordfish".into()));
    let path = site.place.join("shop.yaml");
    fs::write(&path, SHOP).unwrap();
    site.done(&["apply", path.to_str().unwrap(), "--yes"]);
    (site, path)
}

async fn components(site: &Site) -> Vec<Component> {
    site.client.get("/v1/components").await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_is_found_and_reconciled_in_safe_order() {
    let (site, path) = shop("drift");
    let output = site.done(&["check"]);
    assert!(output.contains("Everything is as requested (5 components examined)"), "{output}");

    // An operator edits a file, removes a component and adds one by hand.
    let edited = site.file("shop/database[0]", "database.conf").await;
    fs::write(&edited, "password 1234").unwrap();
    site.done(&["component", "remove", "shop/web[3]"]);
    site.done(&["component", "add", "shop/web[9]", "--on", "shop/web[0]", "--start", "exec sleep 100000"]);
    let output = site.refused(&["check", "shop"]);
    for sight in [
        "shop/database[0]: file database.conf was changed",
        "shop: web[3] is missing",
        "shop: web[9] was not requested",
    ] {
        assert!(output.contains(sight), "{sight} is not in\n{output}");
    }
    let output = site.done(&["status"]);
    assert!(output.contains("shop: web[3] is missing (holdfast reconcile shop)"), "{output}");
    // Applying the file again restores the configuration; but the manager does not know what was changed on the machines.
    let output = site.done(&["apply", path.to_str().unwrap(), "--dry-run"]);
    assert!(
        output.contains("+ web[3]") && output.contains("- web[9]") && !output.contains("database[0] is restarted"),
        "{output}"
    );

    let after = site.status().await.newest_event;
    let output = site.done(&["reconcile", "shop", "--yes"]);
    assert!(output.contains("↻ database[0] is restarted: file database.conf was changed"), "{output}");
    let events = site.events_since(after).await;
    // The clients of the database stop before it does, and start after it has.
    assert!(order(&events, "stopped").contains(&"shop/web[0]".to_owned()), "{events:?}");
    assert!(order(&events, "started").contains(&"shop/database[0]".to_owned()), "{events:?}");
    assert_eq!(fs::read_to_string(&edited).unwrap(), "password swordfish");
    let output = site.done(&["check", "--json"]);
    let output: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((&output["applications"], &output["components"]), (&json!({}), &json!({})));
    assert!(site.done(&["reconcile", "shop", "--yes"]).contains("No changes."));
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_component_is_reconciled_and_the_others_are_left_alone() {
    let (site, _) = shop("single");
    for component in ["shop/database[0]", "shop/web[0]"] {
        let name = if component == "shop/web[0]" { "web.conf" } else { "database.conf" };
        fs::write(site.file(component, name).await, "nonsense").unwrap();
    }
    site.done(&["component", "remove", "shop/web[3]"]);
    site.done(&["component", "add", "shop/web[9]", "--on", "shop/web[0]", "--start", "exec sleep 100000"]);

    // For each, only its own differences are reported.
    let output = site.refused(&["check", "shop/web[3]"]);
    assert!(
        output.contains("shop: web[3] is missing") && output.contains("web[3].db → database[0].sql is missing"),
        "{output}"
    );
    assert_eq!(output.lines().count(), 2, "{output}");
    assert!(site.done(&["check", "shop/web[1]"]).contains("(1 components examined)"));

    // A missing component is added with its bindings, and nothing else is changed.
    let after = site.status().await.newest_event;
    let output = site.done(&["reconcile", "shop/web[3]", "--yes"]);
    let left = "3 other things of shop differ from what was applied; holdfast reconcile shop restores them";
    assert!(output.contains("+ web[3] on web[1]") && output.contains(left), "{output}");
    let events = site.events_since(after).await;
    assert_eq!(order(&events, "started"), ["shop/web[3]"]);
    assert_eq!(order(&events, "stopping"), [""; 0]);

    // A component with a changed file is restarted.
    let output = site.done(&["reconcile", "shop/web[0]", "--dry-run", "--json"]);
    let output: Value = serde_json::from_str(&output).unwrap();
    let output = &output["applications"][0];
    assert_eq!(
        (&output["restarts"], &output["left"]),
        (&json!({ "web[0]": ["file web.conf was changed"] }), &json!(2))
    );
    let after = site.status().await.newest_event;
    site.done(&["reconcile", "shop/web[0]", "--yes"]);
    assert_eq!(order(&site.events_since(after).await, "stopping"), ["shop/web[0]"]);
    assert_eq!(fs::read_to_string(site.file("shop/web[0]", "web.conf").await).unwrap(), "hello key-of-swordfish");

    // A component that was not requested is removed. What is left is still reported as drift.
    let output = site.done(&["reconcile", "shop/web[9]", "--yes"]);
    assert!(
        output.contains("- web[9]") && output.contains("1 other thing of shop differs from what was applied"),
        "{output}"
    );
    let output = site.refused(&["check"]);
    assert_eq!(output, "✗ shop/database[0]: file database.conf was changed\n");
    let output = site.done(&["reconcile", "shop/web[2]", "--yes"]);
    assert!(output.contains("No changes.\n1 other thing of shop"), "{output}");
    site.done(&["reconcile", "shop", "--yes"]);

    // A component that was moved by hand returns to its VM.
    site.done(&["component", "replace", "shop/web[2]", "--on", "shop/web[1]"]);
    let output = site.refused(&["check", "shop"]);
    assert!(output.contains("web[2] differs from what was applied: moves from web[1] to web[0]"), "{output}");
    let output = site.done(&["reconcile", "shop/web[2]", "--yes"]);
    assert!(output.contains("± web[2] is moved: from web[1] to web[0]"), "{output}");
    site.done(&["check"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_cannot_be_reconciled_alone_is_refused_before_anything_changes() {
    let (site, _) = shop("alone");
    site.done(&["component", "remove", "shop/database[0]", "shop/web[3]", "--incomplete"]);
    site.done(&["component", "add", "helper", "--on", "shop/web[0]", "--start", "exec sleep 100000"]);
    let before = site.status().await.newest_event;
    let output = site.refused(&["reconcile", "shop/web[3]", "--yes"]);
    let together = "shop/web[3] needs shop/database[0], which is missing, too (holdfast reconcile 'shop/database[0]' 'shop/web[3]')";
    assert!(output.contains(together), "{output}");
    let output = site.refused(&["reconcile", "shop/wep[0]", "--yes"]);
    assert!(output.contains("no component shop/wep[0] (did you mean `shop/web[0]`?)"), "{output}");
    // A component of no application can be examined, but not reconciled.
    let output = site.refused(&["reconcile", "shop", "helper", "--yes"]);
    assert!(output.contains("helper belongs to no applied application"), "{output}");
    assert!(site.done(&["check", "helper"]).contains("(1 components examined)"));
    assert_eq!(site.status().await.newest_event, before);

    // A provider is restored together with its clients.
    site.done(&["reconcile", "shop/database[0]", "shop/web[3]", "--yes"]);
    let all = components(&site).await;
    assert!(all.iter().all(|it| it.state == ComponentStatus::Started) && all.len() == 6, "{all:?}");
    site.done(&["check"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_component_with_the_same_name_is_found_and_replaced() {
    let (site, path) = shop("another");
    // An identical component is no difference, however it was added.
    site.done(&["component", "replace", "shop/database[0]"]);
    site.done(&["check"]);

    // An operator changes what a component does, another's values, and the needs of a third.
    site.done(&["component", "replace", "shop/database[0]", "--start", "exec sleep 99999"]);
    let place = format!("/v1/components/{}/definition", segment("shop/web[1]"));
    let mut changed: NewComponent = site.client.get(&place).await.unwrap();
    changed.recipe["parameters"]["greeting"] = json!("go away");
    changed.recipe["parameters"]["haste"] = json!(1);
    let change = json!({ "strategy": "down-then-up", "incomplete": true, "edits": [
        { "remove-component": "shop/web[1]" },
        { "add-component": changed },
        bind("shop/web[1].db → shop/database[0].sql"),
        { "set-need": { "component": "shop/web[2]", "import": "db", "number": 2 } },
    ] });
    site.make(&change).await;
    let output = site.refused(&["check"]);
    let wrong = [
        "✗ shop: database[0] differs from what was applied: operation start changed",
        "✗ shop: web[1] differs from what was applied: parameter greeting: \"go away\" → \"hello\", parameter haste removed",
        "✗ shop: web[2] differs from what was applied: import db needs strong 1 instead of 2",
    ];
    assert_eq!(output.lines().collect::<Vec<_>>(), wrong);
    assert!(
        site.done(&["status"])
            .contains("database[0] differs from what was applied: operation start changed (holdfast reconcile shop)")
    );
    let output = site.done(&["apply", path.to_str().unwrap(), "--dry-run"]);
    assert!(
        output.contains("± database[0] is replaced: operation start changed") && !output.contains("swordfish"),
        "{output}"
    );

    let output = site.done(&["reconcile", "shop/web[1]", "--yes"]);
    assert!(output.contains("± web[1] is replaced") && output.contains("2 other things of shop"), "{output}");
    assert_eq!(site.refused(&["check"]).lines().collect::<Vec<_>>(), [wrong[0], wrong[2]]);
    let output = site.done(&["reconcile", "shop", "--yes"]);
    assert!(
        output.contains("± database[0] is replaced")
            && output.contains("↻ web[2] is restarted: import db needs strong 1 instead of 2"),
        "{output}"
    );
    site.done(&["check"]);
    assert_eq!(fs::read_to_string(site.file("shop/web[1]", "web.conf").await).unwrap(), "hello key-of-swordfish");
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_never_shown() {
    let (site, _) = shop("secrets");
    // The component has it, and so has the client that received it.
    let database = site.file("shop/database[0]", "database.conf").await;
    assert_eq!(fs::read_to_string(database).unwrap(), "password swordfish");
    let web = site.file("shop/web[0]", "web.conf").await;
    assert_eq!(fs::read_to_string(&web).unwrap(), "hello key-of-swordfish");

    // It is in no output, no document and no drawing.
    let logs = site.done(&["component", "logs", "shop/database[0]"]);
    assert!(logs.contains("password •••"), "{logs}");
    let logs = site.done(&["component", "logs", "shop/web[0]"]);
    assert!(logs.contains("hello •••"), "{logs}");
    let mut shown = vec![logs];
    for command in [
        &["status", "--json"][..],
        &["history", "--json"],
        &["show", "1", "--chart", "text"],
        &["plan", "shop.yaml", "--json"],
        &["component", "list", "--json"],
        &["binding", "list", "--json"],
    ] {
        shown.push(site.done(command));
    }
    let definition: NewComponent = site.client.get("/v1/components/shop%2Fdatabase%5B0%5D/definition").await.unwrap();
    assert_eq!(definition.recipe["secrets"]["password"], "••• of shop/database[0]");
    shown.push(serde_json::to_string(&definition).unwrap());
    shown.push(site.client.get::<Value>("/v1/applications").await.unwrap().to_string());
    for text in shown {
        assert!(!text.contains("swordfish"), "{text}");
    }

    // Replacing the component by hand keeps the secret without showing it.
    site.done(&["component", "replace", "shop/database[0]"]);
    let database = site.file("shop/database[0]", "database.conf").await;
    assert_eq!(fs::read_to_string(database).unwrap(), "password swordfish");
    // An unknown secret cannot be reused.
    let mut stranger = definition;
    stranger.recipe["secrets"]["password"] = json!("••• of shop/nobody[0]");
    let change = json!({ "edits": [{ "add-component": stranger }] });
    let refused = site.client.post::<Accepted>("/v1/changes", &change).await.unwrap_err();
    let ClientError::Refused(_, problems) = refused else { panic!("{refused}") };
    assert!(problems.problems[0].contains("shop/nobody[0] has no secret \"password\""), "{problems:?}");
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_replaced_a_few_at_a_time() {
    let (site, path) = shop("rolling");
    fs::write(&path, SHOP.replace("greeting: hello", "greeting: welcome")).unwrap();
    // The duration of a start is known from the first time; nothing has been stopped so far.
    let planned: Value = serde_json::from_str(&site.done(&["plan", path.to_str().unwrap(), "--json"])).unwrap();
    let steps = planned["forecast"]["critical_path"].as_array().unwrap();
    let mut starts = steps.iter().filter_map(Value::as_str).filter(|it| it.starts_with("start "));
    assert!(starts.all(|it| !it.ends_with(" 1.00 s")), "{planned}");
    assert_eq!(planned["forecast"]["known"], false);
    // The forecast has a part for each step.
    let planned = site.done(&["plan", path.to_str().unwrap(), "--rolling", "1", "--json"]);
    let planned: Value = serde_json::from_str(&planned).unwrap();
    for moment in planned["forecast"]["moments"].as_array().unwrap() {
        let names = moment["stop"].as_array().unwrap().iter().chain(moment["start"].as_array().unwrap());
        let own = format!("web[{}]", moment["step"]);
        assert!(names.into_iter().all(|it| *it == own), "{moment}");
    }
    let after = site.status().await.newest_event;
    let output = site.done(&["apply", path.to_str().unwrap(), "--rolling", "1", "--yes"]);
    assert!(output.contains("In 4 steps, one after the other"), "{output}");
    // However quick the steps are, each is shown, once and with its own edits.
    for index in 0..4 {
        for line in [
            format!("Step {} of 4\n", index + 1),
            format!("apply shop: remove shop/web[{index}], "),
            format!("shop/web[{index}] is stopping\n"),
        ] {
            assert_eq!(output.matches(&line).count(), 1, "{line:?} in {output}");
        }
    }
    let events = site.events_since(after).await;
    // Never two of them down at once.
    let mut out: BTreeSet<String> = BTreeSet::new();
    for event in events.iter().filter(|it| it.component.is_some()) {
        let (component, state) =
            (event.component.clone().unwrap(), event.state.map(|it| it.to_string()).unwrap_or_default());
        if state == "started" {
            out.remove(&component);
        } else if event.what == EventKind::ComponentGone || !state.is_empty() {
            out.insert(component);
        }
        assert!(out.len() <= 1, "{out:?} are out");
    }
    assert!(!order(&events, "stopped").contains(&"shop/database[0]".to_owned()));
    for index in 0..4 {
        let file = site.file(&format!("shop/web[{index}]"), "web.conf").await;
        assert!(fs::read_to_string(file).unwrap().starts_with("welcome"));
    }
    let all = components(&site).await;
    let web = all.iter().find(|it| it.name == "shop/web[0]").unwrap();
    assert!(web.start_ms.is_some() && web.stop_ms.is_some(), "{web:?}");
    // All of it is recorded: applying the same again changes nothing, and one command rolls back.
    assert!(site.done(&["apply", path.to_str().unwrap(), "--yes"]).contains("No changes."));
    site.done(&["rollback", "shop", "--rolling", "2", "--yes"]);
    assert!(fs::read_to_string(site.file("shop/web[3]", "web.conf").await).unwrap().starts_with("hello"));
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_without_a_difference_changes_nothing() {
    let (site, path) = shop("same");
    fs::write(&path, SHOP.replace("count: 4", "count: 3")).unwrap();
    site.done(&["apply", "shop.yaml", "--yes"]);
    let before = site.status().await.newest_event;
    // The same content from another place, under another name, with a comment.
    fs::create_dir(site.place.join("copies")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(site.place.join("copies/copy.yaml"), &text).unwrap();
    fs::write(site.place.join("remark.yaml"), format!("# a shop\n{text}")).unwrap();
    for file in [path.to_str().unwrap(), "copies/copy.yaml", "remark.yaml"] {
        assert!(site.done(&["apply", file]).ends_with("No changes.\n"));
    }
    assert_eq!(site.status().await.newest_event, before);
    // What may make a difference later is recorded, but is not a version to roll back to.
    fs::write(&path, text.replace("secrets:\n", "variables: { spare: 1 }\nsecrets:\n")).unwrap();
    site.done(&["apply", "shop.yaml"]);
    let output = site.done(&["rollback", "shop", "--yes"]);
    assert!(output.contains("+ web[3]"), "{output}");
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_duration_of_an_install_is_remembered() {
    let site = Site::open("installed");
    let text = |level: u32, users: u32| {
        format!(
            r#"holdfast: 1
application: tools
types:
  Tool:
    parameters: {{ level: {level} }}
    exports: {{ tool: {{ values: [host] }} }}
    operations:
      install: "true"
      start: {{ process: "exec sleep 100000" }}
  User:
    parameters: {{ level: {level} }}
    imports: {{ tool: tool }}
    operations:
      install: "true"
      start: {{ process: "exec sleep 100000" }}
vms: {{ v: {{ cloud: local }} }}
components: {{ tool: {{ type: Tool }}, user: {{ type: User, count: {users} }} }}
"#
        )
    };
    let path = site.place.join("tools.yaml");
    // A component that is added when all its providers are started only waits for its preparation.
    for users in [0, 1] {
        fs::write(&path, text(1, users)).unwrap();
        site.done(&["apply", "tools.yaml", "--yes"]);
    }
    let all = components(&site).await;
    assert!(all.len() == 2 && all.iter().all(|it| it.prepare_ms.is_some()), "{all:?}");
    // A new component stops nothing, so the duration of a stop does not matter.
    fs::write(&path, text(1, 2)).unwrap();
    let planned = site.done(&["plan", "tools.yaml", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&planned).unwrap()["forecast"]["known"], true);
    // Once both were stopped as well, no duration has to be assumed.
    let foreseen = || -> Value {
        fs::write(&path, text(2, 1)).unwrap();
        serde_json::from_str(&site.done(&["plan", "tools.yaml", "--json"])).unwrap()
    };
    assert_eq!(foreseen()["forecast"]["known"], false);
    site.done(&["component", "restart", "tools/tool[0]"]);
    assert_eq!(foreseen()["forecast"]["known"], true);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vm_is_drained_and_used_again() {
    let (site, _) = shop("drain");
    let on_first = |all: &[Component]| all.iter().filter(|it| it.vm == "shop/web[0]" && !it.leaving).count();
    assert_eq!(on_first(&components(&site).await), 2);
    let output = site.done(&["vm", "drain", "shop/web[0]", "--yes"]);
    assert!(output.contains("is moved: from web[0] to web[1]"), "{output}");
    let all = components(&site).await;
    assert_eq!((on_first(&all), all.len()), (0, 5));
    assert!(all.iter().all(|it| it.state == ComponentStatus::Started), "{all:?}");
    // It is shown as drained, and stays so whatever is applied meanwhile.
    for command in [&["vm", "list"][..], &["status"]] {
        let output = site.done(command);
        assert!(
            output.lines().any(|it| it.starts_with("shop/web[0] ") && it.contains("none") && it.ends_with("drained")),
            "{output}"
        );
    }
    assert!(site.done(&["apply", "shop.yaml"]).contains("No changes."));
    let output = site.done(&["scale", "web=5", "--yes"]);
    assert!(output.contains("+ web[4] on web[1]"), "{output}");
    assert_eq!(on_first(&components(&site).await), 0);
    site.done(&["scale", "web=4", "--yes"]);
    assert!(site.refused(&["vm", "drain", "shop/web[1]", "--yes"]).contains("all its VMs are drained"));
    assert!(site.refused(&["vm", "undrain", "shop/web[7]"]).contains("the application has no such VM"));
    assert!(site.done(&["vm", "undrain", "shop/web[1]"]).contains("No changes."));
    // Nothing is changed, so there is no confirmation.
    site.done(&["vm", "undrain", "shop/web[0]"]);
    assert!(!site.done(&["vm", "list"]).contains("drained"));
    let output = site.done(&["history"]);
    let asked = ["scale shop: ", "drain shop: ", "apply shop: "];
    assert!(asked.iter().all(|it| output.contains(&format!("  {it}"))), "{output}");
    let output = site.done(&["scale", "web=6", "--yes"]);
    assert!(output.contains("+ web[4] on web[0]") && output.contains("+ web[5] on web[0]"), "{output}");
    assert!(site.refused(&["vm", "drain", "shop/web[7]", "--yes"]).contains("the application has no such VM"));
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_in_progress_can_be_followed_again() {
    let site = Site::open("follow");
    // It is ready once the test allows it.
    let gate = site.place.join("gate");
    let text = format!(
        "holdfast: 1\napplication: slow\ntypes:\n  Slow:\n    operations:\n      start: {{ process: \"exec sleep 100000\" }}\n      check: {{ command: \"test -e {}\", interval: 50ms }}\nvms: {{ v: {{ cloud: local }} }}\ncomponents: {{ slow: {{ type: Slow }} }}\n",
        gate.display()
    );
    fs::write(site.place.join("slow.yaml"), text).unwrap();
    site.done(&["apply", "slow.yaml", "--yes", "--no-wait"]);
    assert!(site.done(&["show", "1"]).contains("in progress"));
    let mut follower = Command::new(HOLDFAST)
        .args(["show", "1", "--follow"])
        .env("HOLDFAST_ACCESS", site.data().join("access.json"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("in progress")));
    fs::write(&gate, "").unwrap();
    assert!(lines.any(|line| line.contains("✓ change 1 is done")));
    assert!(follower.wait().unwrap().success());
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_from_an_outdated_version_is_refused() {
    let (site, _) = shop("fence");
    let kept: ApplicationDocument = site.client.get("/v1/applications/shop").await.unwrap();
    let mut request = ApplyRequest { application: kept.files.unwrap(), ..ApplyRequest::default() };
    for outdated in [0, kept.version + 1] {
        request.how.versions = [("shop".to_owned(), outdated)].into();
        let refused = site.client.post::<Submitted>("/v1/apply", &request).await.unwrap_err();
        let ClientError::Refused(409, problems) = refused else { panic!("{refused}") };
        assert!(problems.error.contains("it has been changed in the meantime"), "{problems:?}");
    }
    for fine in [vec![("shop".to_owned(), kept.version)], vec![]] {
        request.how.versions = fine.into_iter().collect();
        let submitted: Submitted = site.client.post("/v1/apply", &request).await.unwrap();
        assert_eq!((submitted.change, submitted.versions["shop"]), (None, kept.version));
    }
    site.remove_everything().await;
}
