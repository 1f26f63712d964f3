//! Why something is not as expected: one case for each sort of reason.

mod test_manager;

use cloud_manager::document::{Accepted, Component, NewChange, RunningChange, Why};
use protocol::{
    HostOutcome, agent,
    manager::{CloudOutcome, Input, Request},
};
use serde_json::{Value, json};
use std::sync::Arc;
use test_manager::{TestManager, stage::Move};

/// A database, an application that needs it, and a page that needs the application, each on its own VM.
fn shop() -> Value {
    json!({ "edits": [
        { "add-vm": { "name": "data", "cloud": "local" } },
        { "add-vm": { "name": "web" } },
        { "add-vm": { "name": "edge", "cloud": "local" } },
        { "add-component": { "name": "database", "vm": "data", "exports": { "sql": {} },
            "patience": { "start": { "retries": 0, "pause_ms_first": 0 } } } },
        { "add-component": { "name": "app", "vm": "web", "exports": { "http": {} },
            "imports": { "db": { "export": "sql" } } } },
        { "add-component": { "name": "page", "vm": "edge", "imports": { "app": { "export": "http" } } } },
        { "bind": "app.db → database.sql" },
        { "bind": "page.app → app.http" },
    ] })
}

/// Actions on a test manager.
type Actions = &'static [fn(&TestManager)];

/// Each case: what it shows, the actions before and after the shop is created, what is asked about, and the answer.
const CASES: &[(&str, Actions, Actions, &str, &str)] = &[
    ("all is well", &[], &[], "app", "well\napp on vm web is started\n"),
    ("a VM whose components all run", &[], &[], "data", "well\nvm data answers, and its only component is started\n"),
    (
        "a provider is busy",
        &[slow_hosts],
        &[],
        "page",
        "\
page on vm edge is stopped: its import app needs 1 and holds 0
  app on vm web is stopped: its import db needs 1 and holds 0
    database on vm data is starting
! holdfast component logs database shows its output so far
",
    ),
    (
        "a provider failed",
        &[slow_hosts],
        &[fail_database],
        "page",
        "\
page on vm edge is stopped: its import app needs 1 and holds 0
  app on vm web is stopped: its import db needs 1 and holds 0
    database on vm data: start failed; manual action required | failed
! holdfast component logs database shows all its output
! holdfast component retry database retries it, once the cause is fixed
! holdfast component skip database marks it as done
! holdfast cancel 1 takes back change 1, which waits for it
",
    ),
    (
        "the VM of a component that failed",
        &[slow_hosts],
        &[fail_database],
        "data",
        "\
vm data answers, but 1 of its 1 components is not as expected
  database on vm data: start failed; manual action required | failed
! holdfast component logs database shows all its output
! holdfast component retry database retries it, once the cause is fixed
! holdfast component skip database marks it as done
! holdfast cancel 1 takes back change 1, which waits for it
",
    ),
    (
        "no agent has joined",
        &[slow_clouds],
        &[],
        "app",
        "\
app on vm web does not exist yet: its VM has not joined
  vm web waits for an agent to join
! holdfast token create --vm web creates the join token for its agent
! holdfast vm remove web abandons it and its components
",
    ),
    (
        "the cloud is busy",
        &[slow_clouds],
        &[],
        "data",
        "\
vm data is being created by the cloud; its agent has not joined yet
! holdfast vm remove data abandons it and its components
",
    ),
    (
        "the cloud could not",
        &[slow_clouds],
        &[no_room],
        "database",
        "\
database on vm data does not exist yet: its VM has not joined
  vm data could not be created; retrying | no room
! holdfast vm remove data abandons it and its components
",
    ),
    (
        "a VM is silent",
        &[],
        &[silent_web],
        "app",
        "\
app on vm web was started when its agent last reported
  vm web does not answer; its components may still be running
! start the agent of vm web again, or repair the network between it and the manager
! holdfast vm lost web declares it lost, if it will never come back
",
    ),
    (
        "a provider does not answer, and its client keeps running",
        &[],
        &[silent_web],
        "page",
        "\
page on vm edge is started, but uses a provider whose VM does not answer
  app on vm web was started when its agent last reported
    vm web does not answer; its components may still be running
! start the agent of vm web again, or repair the network between it and the manager
! holdfast vm lost web declares it lost, if it will never come back
",
    ),
    (
        "an agent has yet to hear of it",
        &[],
        &[slow_orders, restart_database],
        "database",
        "\
database on vm data is started, but its agent has not acknowledged the order to stop it
! see to it that the agent of vm data runs, if this stays so
",
    ),
    (
        "a VM is lost",
        &[],
        &[lose_data],
        "page",
        "\
page on vm edge is stopped: its import app needs 1 and holds 0
  app on vm web is stopped: its import db needs 1 and holds 0
    import db of app is bound to 0 and needs 1
! holdfast binding add 'app.db -> PROVIDER.EXPORT' binds it to another provider
",
    ),
    (
        "the lost VM itself",
        &[],
        &[lose_data],
        "data",
        "vm data is lost with all its components\n! holdfast vm add data creates a new VM of that name\n",
    ),
    (
        "one that is to be restarted waits for its clients, which wait for theirs",
        &[],
        &[slow_hosts, restart_database],
        "database",
        "\
database on vm data is started and is to stop; one client has to return its loan first
  app on vm web is started and is to stop: its import db needs 1 and holds 0; one client has to return its loan first
    page on vm edge is stopping: its import app needs 1 and holds 0
! holdfast component logs page shows its output so far
",
    ),
    (
        "a removal waits for a client that does not answer",
        &[],
        &[slow_hosts, silent_web, remove_all],
        "database",
        "\
database on vm data is started and is to be removed; one client has to return its loan first
  app on vm web was started when its agent last reported
    vm web does not answer; its components may still be running
! start the agent of vm web again, or repair the network between it and the manager
! holdfast vm lost web declares it lost, if it will never come back
",
    ),
    (
        "a VM that is to go waits for its components",
        &[],
        &[slow_hosts, remove_all],
        "edge",
        "\
vm edge is to be removed, but still has 1 component
  page on vm edge is stopping
! holdfast component logs page shows its output so far
",
    ),
    (
        "a removal waits for what comes first",
        &[],
        &[slow_hosts, page_for_page],
        "page",
        "\
page on vm edge is started, and its removal waits for a change in progress
  change 2 (remove page, add new on edge, bind new.app → app.http) waits for new to start
    new on vm edge is starting
! holdfast component logs new shows its output so far
",
    ),
    (
        "a change waits for another",
        &[],
        &[slow_hosts, restart_app_and_add, third_page],
        "third",
        "\
third on vm edge is not ordered yet: it waits for a change in progress
  change 2 (restart app, add new on edge, bind new.app → app.http) waits for 2 things
    app on vm web is started and is to stop; one client has to return its loan first
      page on vm edge is stopping: its import app needs 1 and holds 0
    page: see above
  change 3 (add third on edge, bind third.app → app.http) waits for change 2, which affects the same components
    change 2: see above
! holdfast component logs page shows its output so far
",
    ),
    (
        "deaths are counted",
        &[],
        &[slow_hosts, database_dies],
        "database",
        "\
database on vm data is stopped: its host is preparing it, or pausing before a retry (died 1)
! holdfast component logs database shows its output so far
",
    ),
    (
        "two components with the same name are both explained",
        &[],
        &[slow_hosts, replace_page],
        "page",
        "\
page on vm edge is stopping
! holdfast component logs page shows its output so far
----
page on vm edge is not ordered yet: it waits for a change in progress
  change 2 (remove page, add page on edge, bind page.app → app.http) waits for page to be gone
    page on vm edge is stopping
! holdfast component logs page shows its output so far
",
    ),
    (
        "two that would use each other end a chain",
        &[],
        &[slow_hosts, add_friends],
        "left",
        "\
left on vm data is starting
! holdfast component logs left shows its output so far
",
    ),
];

#[tokio::test]
async fn every_sort_of_reason_is_explained_to_its_root() {
    let mut misfits = String::new();
    for (number, (what, before, after, name, told)) in CASES.iter().enumerate() {
        let manager = TestManager::new(&format!("why-{number}"));
        before.iter().for_each(|it| it(&manager));
        let _: Accepted = manager.client().post("/v1/changes", &shop()).await.expect("the shop is accepted");
        after.iter().for_each(|it| it(&manager));
        let answers: Vec<Why> = manager.client().get(&format!("/v1/why/{name}")).await.expect("there is an answer");
        let shown: Vec<String> = answers.iter().map(shown).collect();
        let shown = shown.join("----\n");
        if shown != *told {
            misfits += &format!("{what}, {name}:\n{shown}");
        }
    }
    assert!(misfits.is_empty(), "{misfits}");
}

#[tokio::test]
async fn removing_a_vm_waits_for_its_components_and_then_for_the_cloud() {
    let manager = TestManager::new("why-empty");
    let client = manager.client();
    let _: Accepted = client.post("/v1/changes", &shop()).await.expect("the shop is accepted");
    let waits = || async {
        let changes: Vec<RunningChange> = client.get("/v1/changes").await.expect("there are changes");
        changes[0].waits_for.iter().filter(|it| it.contains("vm edge")).cloned().collect::<Vec<_>>()
    };
    slow_hosts(&manager);
    remove_all(&manager);
    assert_eq!(waits().await, ["vm edge to be empty"]);
    slow_clouds(&manager);
    assert_eq!(waits().await, ["the cloud to destroy vm edge"]);
}

#[tokio::test]
async fn a_change_lists_only_the_missing_answer_of_an_agent_that_has_not_acknowledged() {
    let manager = TestManager::new("why-unanswered");
    let client = manager.client();
    let _: Accepted = client.post("/v1/changes", &shop()).await.expect("the shop is accepted");
    let waits = || async {
        let changes: Vec<RunningChange> = client.get("/v1/changes").await.expect("there are changes");
        changes[0].waits_for.iter().filter(|it| !it.starts_with("app") && !it.starts_with("page")).cloned().collect()
    };
    slow_orders(&manager);
    restart_database(&manager);
    let told: Vec<String> = waits().await;
    assert_eq!(told, ["vm data to answer", "database to restart"]);
    slow_hosts(&manager);
    let told: Vec<String> = waits().await;
    assert_eq!(told, ["database to restart, which waits for app to return app.db → database.sql"]);
}

#[tokio::test]
async fn a_change_that_waits_for_one_that_requires_manual_action_says_so() {
    let manager = TestManager::new("why-stuck");
    let client = manager.client();
    let _: Accepted = client.post("/v1/changes", &shop()).await.expect("the shop is accepted");
    slow_hosts(&manager);
    let patience = json!({ "start": { "retries": 0, "pause_ms_first": 0 } });
    let new = json!({ "add-component": { "name": "new", "vm": "edge", "patience": patience } });
    ask_by(&manager, "up-then-down", &json!([new, { "restart-component": "app" }]));
    manager.act(|backend| backend.stage.fail("new"));
    ask(&manager, &json!([{ "restart-component": "app" }]));
    let changes: Vec<RunningChange> = client.get("/v1/changes").await.expect("there are changes");
    let told: Vec<_> = changes.iter().map(|it| (it.stuck_on.clone(), it.waits_for.clone())).collect();
    let person = "new to start, which waits for an operator to retry or skip its failed start".to_owned();
    let other = "change 2, which affects the same components and requires manual action on new".to_owned();
    assert_eq!(told, [(vec!["new".to_owned()], vec![person]), (vec!["new".to_owned()], vec![other])]);
}

#[tokio::test]
async fn components_that_require_manual_action_are_listed_first() {
    let manager = TestManager::new("why-many");
    slow_hosts(&manager);
    let mut edits = vec![json!({ "add-vm": { "name": "v" } })];
    let provider = |number: u32| {
        json!({ "add-component": { "name": format!("p{number}"), "vm": "v", "exports": { "x": {} },
            "patience": { "start": { "retries": 0, "pause_ms_first": 0 } } } })
    };
    edits.extend((0..20).map(provider));
    edits.push(
        json!({ "add-component": { "name": "c", "vm": "v", "imports": { "x": { "export": "x", "strong": 20 } } } }),
    );
    edits.extend((0..20).map(|number| json!({ "bind": format!("c.x → p{number}.x") })));
    ask(&manager, &json!(edits));
    manager.act(|backend| backend.stage.fail("p13"));
    let why: Vec<Why> = manager.client().get("/v1/why/c").await.expect("there is an answer");
    assert!(why[0].reasons[1].says.starts_with("p13 on vm v: start failed"), "{why:#?}");
    assert_eq!(why[0].reasons.last().map(|it| it.says.as_str()), Some("and 15 more"));
    let why: Vec<Why> = manager.client().get("/v1/why/v").await.expect("there is an answer");
    assert!(why[0].reasons[1].says.starts_with("p13 on vm v: start failed"), "{why:#?}");
    let all: Vec<Component> = manager.client().get("/v1/components").await.expect("there are components");
    let client = all.iter().find(|it| it.name == "c").expect("it is there");
    assert_eq!(client.waits_for.first().map(String::as_str), Some("p13 (failed to start) for x"));
}

fn shown(why: &Why) -> String {
    let mut text = if why.well { "well\n".to_owned() } else { String::new() };
    for reason in &why.reasons {
        let detail = reason.detail.as_ref().map(|it| format!(" | {it}")).unwrap_or_default();
        let deaths = reason.deaths.map(|it| format!(" (died {})", it.times)).unwrap_or_default();
        text += &format!("{}{}{detail}{deaths}\n", "  ".repeat(reason.depth), reason.says);
    }
    why.remedies.iter().for_each(|it| text += &format!("! {it}\n"));
    text
}

fn slow_hosts(manager: &TestManager) {
    manager.hold_back(|it| matches!(it, Move::Finish(..)));
}

fn slow_orders(manager: &TestManager) {
    manager.hold_back(|it| matches!(it, Move::Order(_)));
}

fn slow_clouds(manager: &TestManager) {
    manager.hold_back(|it| matches!(it, Move::Cloud(_)));
}

fn fail_database(manager: &TestManager) {
    manager.act(|backend| backend.stage.fail("database"));
}

fn no_room(manager: &TestManager) {
    manager.act(|backend| {
        let outcome = CloudOutcome::CreateFailed(backend.stage.vm("data"), Arc::from("no room"));
        backend.stage.tell_manager(Input::FromCloud(outcome));
    });
}

fn silent_web(manager: &TestManager) {
    manager.act(|backend| {
        let vm = backend.stage.vm("web");
        backend.stage.lose(vm);
        backend.stage.tell_manager(Input::FromCloud(CloudOutcome::Silent(vm)));
    });
}

fn lose_data(manager: &TestManager) {
    manager.act(|backend| {
        let vm = backend.stage.vm("data");
        backend.stage.lose(vm);
        backend.stage.tell_manager(Input::FromCloud(CloudOutcome::Lost(vm)));
    });
}

fn database_dies(manager: &TestManager) {
    manager.act(|backend| {
        let (vm, component) = backend.stage.place("database");
        let outcome = HostOutcome::Died { component, serial: 1, detail: Arc::from("exit code 1") };
        backend.stage.tell_agent(vm, agent::Input::FromHost(outcome));
    });
}

fn restart_database(manager: &TestManager) {
    ask(manager, &json!([{ "restart-component": "database" }]));
}

fn remove_all(manager: &TestManager) {
    ask(manager, &json!([{ "remove-vm": "data" }, { "remove-vm": "web" }, { "remove-vm": "edge" }]));
}

fn replace_page(manager: &TestManager) {
    let page = json!({ "name": "page", "vm": "edge", "imports": { "app": { "export": "http" } } });
    let edits = json!([{ "remove-component": "page" }, { "add-component": page }, { "bind": "page.app → app.http" }]);
    ask_by(manager, "down-then-up", &edits);
}

fn page_for_page(manager: &TestManager) {
    let page = json!({ "name": "new", "vm": "edge", "imports": { "app": { "export": "http" } } });
    let edits = json!([{ "remove-component": "page" }, { "add-component": page }, { "bind": "new.app → app.http" }]);
    ask_by(manager, "up-then-down", &edits);
}

fn restart_app_and_add(manager: &TestManager) {
    let page = json!({ "name": "new", "vm": "edge", "imports": { "app": { "export": "http" } } });
    let edits = json!([{ "restart-component": "app" }, { "add-component": page }, { "bind": "new.app → app.http" }]);
    ask_by(manager, "down-then-up", &edits);
}

fn third_page(manager: &TestManager) {
    let page = json!({ "name": "third", "vm": "edge", "imports": { "app": { "export": "http" } } });
    ask(manager, &json!([{ "add-component": page }, { "bind": "third.app → app.http" }]));
}

fn add_friends(manager: &TestManager) {
    let friend = |name: &str| {
        json!({ "add-component": { "name": name, "vm": "data", "exports": { "x": {} },
            "imports": { "friend": { "export": "x", "weak": 1 } } } })
    };
    ask(
        manager,
        &json!([friend("left"), friend("right"), { "bind": "left.friend → right.x" }, { "bind": "right.friend → left.x" }]),
    );
}

fn ask(manager: &TestManager, edits: &Value) {
    ask_by(manager, "together", edits);
}

/// Asks for a change behind the manager, where a story need not wait for an answer.
fn ask_by(manager: &TestManager, strategy: &str, edits: &Value) {
    let change = json!({ "strategy": strategy, "edits": edits });
    let change: NewChange = serde_json::from_value(change).expect("it is a change");
    let (change, _) = change.read().expect("it is well written");
    manager.act(|backend| backend.ask(Request::Make(change)));
}
