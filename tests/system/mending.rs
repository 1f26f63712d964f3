//! What happens to an application after it was applied: it drifts and is mended, its VMs are emptied, its components are
//! replaced a few at a time, its secrets stay secret; and two people do not step on each other's feet.

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
async fn drift_is_found_and_mended_in_safe_order() {
    let (site, path) = shop("drift");
    let told = site.done(&["check"]);
    assert!(told.contains("Everything is as it was asked for (5 components examined)"), "{told}");

    // Somebody edits a file, removes a component and adds one by hand.
    let edited = site.file("shop/database[0]", "database.conf").await;
    fs::write(&edited, "password 1234").unwrap();
    site.done(&["component", "remove", "shop/web[3]"]);
    site.done(&["component", "add", "shop/web[9]", "--on", "shop/web[0]", "--start", "exec sleep 100000"]);
    let told = site.refused(&["check", "shop"]);
    for sight in [
        "shop/database[0]: file database.conf was changed",
        "shop: web[3] is missing",
        "shop: web[9] was not asked for",
    ] {
        assert!(told.contains(sight), "{sight} is not in\n{told}");
    }
    let told = site.done(&["status"]);
    assert!(told.contains("shop: web[3] is missing (holdfast reconcile shop)"), "{told}");
    // A file that is applied again is made again, too; but it knows nothing of what is on the machines.
    let told = site.done(&["apply", path.to_str().unwrap(), "--dry-run"]);
    assert!(
        told.contains("+ web[3]") && told.contains("- web[9]") && !told.contains("database[0] is restarted"),
        "{told}"
    );

    let after = site.status().await.newest_event;
    let told = site.done(&["reconcile", "shop", "--yes"]);
    assert!(told.contains("↻ database[0] is restarted: file database.conf was changed"), "{told}");
    let told = site.told_since(after).await;
    // Whoever needs the database stops before it does, and starts after it has.
    assert!(order(&told, "stopped").contains(&"shop/web[0]".to_owned()), "{told:?}");
    assert!(order(&told, "started").contains(&"shop/database[0]".to_owned()), "{told:?}");
    assert_eq!(fs::read_to_string(&edited).unwrap(), "password swordfish");
    let told = site.done(&["check", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["applications"], &told["components"]), (&json!({}), &json!({})));
    assert!(site.done(&["reconcile", "shop", "--yes"]).contains("Nothing is different."));
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_component_is_mended_and_the_others_are_left() {
    let (site, _) = shop("single");
    for component in ["shop/database[0]", "shop/web[0]"] {
        let name = if component == "shop/web[0]" { "web.conf" } else { "database.conf" };
        fs::write(site.file(component, name).await, "nonsense").unwrap();
    }
    site.done(&["component", "remove", "shop/web[3]"]);
    site.done(&["component", "add", "shop/web[9]", "--on", "shop/web[0]", "--start", "exec sleep 100000"]);

    // Of each, only what is wrong with itself is told.
    let told = site.refused(&["check", "shop/web[3]"]);
    assert!(
        told.contains("shop: web[3] is missing") && told.contains("web[3].db → database[0].sql is missing"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 2, "{told}");
    assert!(site.done(&["check", "shop/web[1]"]).contains("(1 components examined)"));

    // One that is missing comes back with its bindings, and nothing else is touched.
    let after = site.status().await.newest_event;
    let told = site.done(&["reconcile", "shop/web[3]", "--yes"]);
    let left = "3 other things of shop differ from what was applied; holdfast reconcile shop mends them";
    assert!(told.contains("+ web[3] on web[1]") && told.contains(left), "{told}");
    let events = site.told_since(after).await;
    assert_eq!(order(&events, "started"), ["shop/web[3]"]);
    assert_eq!(order(&events, "stopping"), [""; 0]);

    // One whose file was changed starts again.
    let told = site.done(&["reconcile", "shop/web[0]", "--dry-run", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    let told = &told["applications"][0];
    assert_eq!((&told["restarts"], &told["left"]), (&json!({ "web[0]": ["file web.conf was changed"] }), &json!(2)));
    let after = site.status().await.newest_event;
    site.done(&["reconcile", "shop/web[0]", "--yes"]);
    assert_eq!(order(&site.told_since(after).await, "stopping"), ["shop/web[0]"]);
    assert_eq!(fs::read_to_string(site.file("shop/web[0]", "web.conf").await).unwrap(), "hello key-of-swordfish");

    // One that nobody asked for goes. What is left is still known to be wrong.
    let told = site.done(&["reconcile", "shop/web[9]", "--yes"]);
    assert!(
        told.contains("- web[9]") && told.contains("1 other thing of shop differs from what was applied"),
        "{told}"
    );
    let told = site.refused(&["check"]);
    assert_eq!(told, "✗ shop/database[0]: file database.conf was changed\n");
    let told = site.done(&["reconcile", "shop/web[2]", "--yes"]);
    assert!(told.contains("Nothing is different.\n1 other thing of shop"), "{told}");
    site.done(&["reconcile", "shop", "--yes"]);

    // One that was moved by hand goes back to where it was put.
    site.done(&["component", "replace", "shop/web[2]", "--on", "shop/web[1]"]);
    let told = site.refused(&["check", "shop"]);
    assert!(told.contains("web[2] differs from what was applied: moves from web[1] to web[0]"), "{told}");
    let told = site.done(&["reconcile", "shop/web[2]", "--yes"]);
    assert!(told.contains("± web[2] is moved: from web[1] to web[0]"), "{told}");
    site.done(&["check"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_mended_alone_is_refused_before_anything_is_touched() {
    let (site, _) = shop("alone");
    site.done(&["component", "remove", "shop/database[0]", "shop/web[3]", "--incomplete"]);
    site.done(&["component", "add", "helper", "--on", "shop/web[0]", "--start", "exec sleep 100000"]);
    let before = site.status().await.newest_event;
    let told = site.refused(&["reconcile", "shop/web[3]", "--yes"]);
    let together = "shop/web[3] needs shop/database[0], which is missing, too (holdfast reconcile 'shop/database[0]' 'shop/web[3]')";
    assert!(told.contains(together), "{told}");
    let told = site.refused(&["reconcile", "shop/wep[0]", "--yes"]);
    assert!(told.contains("no component shop/wep[0] (did you mean `shop/web[0]`?)"), "{told}");
    // What nobody applied can be looked at, and not made as it should be.
    let told = site.refused(&["reconcile", "shop", "helper", "--yes"]);
    assert!(told.contains("helper belongs to no application as it was applied"), "{told}");
    assert!(site.done(&["check", "helper"]).contains("(1 components examined)"));
    assert_eq!(site.status().await.newest_event, before);

    // A provider comes back with those who were bound to it.
    site.done(&["reconcile", "shop/database[0]", "shop/web[3]", "--yes"]);
    let all = components(&site).await;
    assert!(all.iter().all(|it| it.state == ComponentStatus::Started) && all.len() == 6, "{all:?}");
    site.done(&["check"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_under_the_same_name_is_found_and_replaced() {
    let (site, path) = shop("another");
    // The same again is no other one, whoever put it there.
    site.done(&["component", "replace", "shop/database[0]"]);
    site.done(&["check"]);

    // Somebody changes what a component does, what another is given, and what a third one needs.
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
    let told = site.refused(&["check"]);
    let wrong = [
        "✗ shop: database[0] differs from what was applied: operation start changed",
        "✗ shop: web[1] differs from what was applied: parameter greeting: \"go away\" → \"hello\", parameter haste removed",
        "✗ shop: web[2] differs from what was applied: import db needs strong 1 instead of 2",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), wrong);
    assert!(
        site.done(&["status"])
            .contains("database[0] differs from what was applied: operation start changed (holdfast reconcile shop)")
    );
    let told = site.done(&["apply", path.to_str().unwrap(), "--dry-run"]);
    assert!(
        told.contains("± database[0] is replaced: operation start changed") && !told.contains("swordfish"),
        "{told}"
    );

    let told = site.done(&["reconcile", "shop/web[1]", "--yes"]);
    assert!(told.contains("± web[1] is replaced") && told.contains("2 other things of shop"), "{told}");
    assert_eq!(site.refused(&["check"]).lines().collect::<Vec<_>>(), [wrong[0], wrong[2]]);
    let told = site.done(&["reconcile", "shop", "--yes"]);
    assert!(
        told.contains("± database[0] is replaced")
            && told.contains("↻ web[2] is restarted: import db needs strong 1 instead of 2"),
        "{told}"
    );
    site.done(&["check"]);
    assert_eq!(fs::read_to_string(site.file("shop/web[1]", "web.conf").await).unwrap(), "hello key-of-swordfish");
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_shown_a_secret() {
    let (site, _) = shop("secrets");
    // The component has it, and so has who it was handed to.
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

    // Whoever replaces the component by hand takes the secret over without seeing it.
    site.done(&["component", "replace", "shop/database[0]"]);
    let database = site.file("shop/database[0]", "database.conf").await;
    assert_eq!(fs::read_to_string(database).unwrap(), "password swordfish");
    // What nobody has cannot be taken over.
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
    // How long a start takes is known from the first time; nothing has been stopped so far.
    let planned: Value = serde_json::from_str(&site.done(&["plan", path.to_str().unwrap(), "--json"])).unwrap();
    let steps = planned["forecast"]["critical_path"].as_array().unwrap();
    let mut starts = steps.iter().filter_map(Value::as_str).filter(|it| it.starts_with("start "));
    assert!(starts.all(|it| !it.ends_with(" 1.00 s")), "{planned}");
    assert_eq!(planned["forecast"]["known"], false);
    // Each step has its own part of what will happen.
    let planned = site.done(&["plan", path.to_str().unwrap(), "--rolling", "1", "--json"]);
    let planned: Value = serde_json::from_str(&planned).unwrap();
    for moment in planned["forecast"]["moments"].as_array().unwrap() {
        let names = moment["stop"].as_array().unwrap().iter().chain(moment["start"].as_array().unwrap());
        let own = format!("web[{}]", moment["step"]);
        assert!(names.into_iter().all(|it| *it == own), "{moment}");
    }
    let after = site.status().await.newest_event;
    let told = site.done(&["apply", path.to_str().unwrap(), "--rolling", "1", "--yes"]);
    assert!(told.contains("In 4 steps, one after the other") && told.contains("Step 4 of 4"), "{told}");
    let told = site.told_since(after).await;
    // Never two of them out at once.
    let mut out: BTreeSet<String> = BTreeSet::new();
    for event in told.iter().filter(|it| it.component.is_some()) {
        let (component, state) =
            (event.component.clone().unwrap(), event.state.map(|it| it.to_string()).unwrap_or_default());
        if state == "started" {
            out.remove(&component);
        } else if event.what == EventKind::ComponentGone || !state.is_empty() {
            out.insert(component);
        }
        assert!(out.len() <= 1, "{out:?} are out");
    }
    assert!(!order(&told, "stopped").contains(&"shop/database[0]".to_owned()));
    for index in 0..4 {
        let file = site.file(&format!("shop/web[{index}]"), "web.conf").await;
        assert!(fs::read_to_string(file).unwrap().starts_with("welcome"));
    }
    let all = components(&site).await;
    let web = all.iter().find(|it| it.name == "shop/web[0]").unwrap();
    assert!(web.start_ms.is_some() && web.stop_ms.is_some(), "{web:?}");
    // All of it is remembered: the same again is nothing, and back is one command.
    assert!(site.done(&["apply", path.to_str().unwrap(), "--yes"]).contains("Nothing is different."));
    site.done(&["rollback", "shop", "--rolling", "2", "--yes"]);
    assert!(fs::read_to_string(site.file("shop/web[3]", "web.conf").await).unwrap().starts_with("hello"));
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_makes_no_difference_is_not_made() {
    let (site, path) = shop("same");
    fs::write(&path, SHOP.replace("count: 4", "count: 3")).unwrap();
    site.done(&["apply", "shop.yaml", "--yes"]);
    let before = site.status().await.newest_event;
    // The same from elsewhere, under another name, with a remark.
    fs::create_dir(site.place.join("copies")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(site.place.join("copies/copy.yaml"), &text).unwrap();
    fs::write(site.place.join("remark.yaml"), format!("# a shop\n{text}")).unwrap();
    for file in [path.to_str().unwrap(), "copies/copy.yaml", "remark.yaml"] {
        assert!(site.done(&["apply", file]).ends_with("Nothing is different.\n"));
    }
    assert_eq!(site.status().await.newest_event, before);
    // What may make a difference later is kept, and is nothing to go back to.
    fs::write(&path, text.replace("secrets:\n", "variables: { spare: 1 }\nsecrets:\n")).unwrap();
    site.done(&["apply", "shop.yaml"]);
    let told = site.done(&["rollback", "shop", "--yes"]);
    assert!(told.contains("+ web[3]"), "{told}");
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_long_it_took_to_install_is_remembered() {
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
    // Whoever comes when all that it needs is there waits for nothing but being prepared.
    for users in [0, 1] {
        fs::write(&path, text(1, users)).unwrap();
        site.done(&["apply", "tools.yaml", "--yes"]);
    }
    let all = components(&site).await;
    assert!(all.len() == 2 && all.iter().all(|it| it.prepare_ms.is_some()), "{all:?}");
    // Whoever comes now stops nobody, so how long that would take plays no part.
    fs::write(&path, text(1, 2)).unwrap();
    let planned = site.done(&["plan", "tools.yaml", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&planned).unwrap()["forecast"]["known"], true);
    // Once both were stopped, too, nothing has to be supposed.
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
async fn a_vm_is_emptied_and_used_again() {
    let (site, _) = shop("drain");
    let on_first = |all: &[Component]| all.iter().filter(|it| it.vm == "shop/web[0]" && !it.leaving).count();
    assert_eq!(on_first(&components(&site).await), 2);
    let told = site.done(&["vm", "drain", "shop/web[0]", "--yes"]);
    assert!(told.contains("is moved: from web[0] to web[1]"), "{told}");
    let all = components(&site).await;
    assert_eq!((on_first(&all), all.len()), (0, 5));
    assert!(all.iter().all(|it| it.state == ComponentStatus::Started), "{all:?}");
    // It is seen, and stays so whatever is applied meanwhile.
    for command in [&["vm", "list"][..], &["status"]] {
        let told = site.done(command);
        assert!(
            told.lines().any(|it| it.starts_with("shop/web[0] ") && it.contains("none") && it.ends_with("drained")),
            "{told}"
        );
    }
    assert!(site.done(&["apply", "shop.yaml"]).contains("Nothing is different."));
    let told = site.done(&["scale", "web=5", "--yes"]);
    assert!(told.contains("+ web[4] on web[1]"), "{told}");
    assert_eq!(on_first(&components(&site).await), 0);
    site.done(&["scale", "web=4", "--yes"]);
    assert!(site.refused(&["vm", "drain", "shop/web[1]", "--yes"]).contains("all its VMs are drained"));
    assert!(site.refused(&["vm", "undrain", "shop/web[7]"]).contains("the application has no such VM"));
    assert!(site.done(&["vm", "undrain", "shop/web[1]"]).contains("Nothing is different."));
    // Nothing moves, so nobody is asked.
    site.done(&["vm", "undrain", "shop/web[0]"]);
    assert!(!site.done(&["vm", "list"]).contains("drained"));
    let told = site.done(&["history"]);
    let asked = ["scale shop: ", "drain shop: ", "apply shop: "];
    assert!(asked.iter().all(|it| told.contains(&format!("  {it}"))), "{told}");
    let told = site.done(&["scale", "web=6", "--yes"]);
    assert!(told.contains("+ web[4] on web[0]") && told.contains("+ web[5] on web[0]"), "{told}");
    assert!(site.refused(&["vm", "drain", "shop/web[7]", "--yes"]).contains("the application has no such VM"));
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_under_way_can_be_followed_again() {
    let site = Site::open("follow");
    // It is ready once the test says so.
    let gate = site.place.join("gate");
    let text = format!(
        "holdfast: 1\napplication: slow\ntypes:\n  Slow:\n    operations:\n      start: {{ process: \"exec sleep 100000\" }}\n      check: {{ command: \"test -e {}\", interval: 50ms }}\nvms: {{ v: {{ cloud: local }} }}\ncomponents: {{ slow: {{ type: Slow }} }}\n",
        gate.display()
    );
    fs::write(site.place.join("slow.yaml"), text).unwrap();
    site.done(&["apply", "slow.yaml", "--yes", "--no-wait"]);
    assert!(site.done(&["show", "1"]).contains("not done"));
    let mut follower = Command::new(HOLDFAST)
        .args(["show", "1", "--follow"])
        .env("HOLDFAST_ACCESS", site.data().join("access.json"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(follower.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(told.any(|line| line.contains("not done")));
    fs::write(&gate, "").unwrap();
    assert!(told.any(|line| line.contains("✓ change 1 is done")));
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
        assert!(problems.error.contains("it was changed meanwhile"), "{problems:?}");
    }
    for fine in [vec![("shop".to_owned(), kept.version)], vec![]] {
        request.how.versions = fine.into_iter().collect();
        let submitted: Submitted = site.client.post("/v1/apply", &request).await.unwrap();
        assert_eq!((submitted.change, submitted.versions["shop"]), (None, kept.version));
    }
    site.remove_everything().await;
}
