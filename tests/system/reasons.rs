//! Whole systems in trouble: what an operator sees of components that died, wait or are lost.

use crate::site::{self, Site, provider, vm};
use cloud_manager::document::{EventKind, VmHealth};
use serde_json::{Value, json};

fn json_of(site: &Site, arguments: &[&str]) -> Value {
    serde_json::from_str(&site.done(&[arguments, &["--json"]].concat())).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deaths_are_shown_with_count_time_and_reason() {
    let mut site = Site::open("deaths");
    let mut database = provider("database", "data", "sql");
    // Its last line has no newline.
    let start = &mut database["add-component"]["recipe"]["operations"]["start"];
    *start = json!({ "process": { "run": "printf serving; exec sleep 1000" } });
    site.make(&json!({ "edits": [vm("data"), database] })).await;
    assert!(!site.done(&["status"]).contains("DIED"), "no component died");
    for died in ["once, ", "2 times, last "] {
        let seen = site.status().await.newest_event;
        for pid in site::processes_of(&site.vm(1).join("components"), None) {
            std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
        }
        site.events_until(seen, |event| event.text == "database is started").await;
        assert!(site.done(&["component", "list"]).contains(died));
    }
    // A stop by an operator does not count as a death.
    site.done(&["component", "restart", "database"]);
    for round in ["before", "after"] {
        let deaths = &json_of(&site, &["component", "list"])[0]["deaths"];
        assert_eq!(deaths["times"], 2, "{round} a restart of the manager");
        for command in [&["status"][..], &["component", "list"]] {
            let shown = site.done(command);
            assert!(shown.contains("DIED (UTC)") && shown.contains("2 times, last "), "{shown}");
        }
        let shown = site.done(&["component", "logs", "database"]);
        assert_eq!(shown.matches("task 2: died: ended by signal 9").count(), 1, "{shown}");
        assert_eq!(shown.matches(": died: ").count(), 2, "{shown}");
        assert!(shown.contains("\ndatabase died 2 times since 2"), "{shown}");
        assert_eq!(json_of(&site, &["component", "logs", "database"])["deaths"], *deaths);
        site.kill_manager();
        site.restart_manager();
    }
    site.audit(&[]);
    site.remove_everything().await;
}

/// A database that cannot start as long as a file exists, an application that needs it, and a page that needs that.
fn shop(site: &Site) -> String {
    let bad = site.place.join("bad").display().to_string();
    let text = format!(
        "holdfast: 1
application: shop
types:
  Database:
    exports: {{ sql: {{ values: [host] }} }}
    operations:
      start: {{ process: \"test ! -e {bad} || {{ echo the disk is missing; exit 3; }}; touch ready; exec sleep 100000\" }}
      check: {{ command: \"test -e ready\", interval: 20ms }}
    patience: {{ start: {{ retries: 0 }} }}
  App:
    imports: {{ db: {{ export: sql }} }}
    exports: {{ http: {{ values: [host] }} }}
    operations: {{ start: {{ process: exec sleep 100000 }} }}
  Page:
    imports: {{ app: {{ export: http }} }}
    operations: {{ start: {{ process: exec sleep 100000 }} }}
vms: {{ data: {{ cloud: local }}, web: {{ cloud: local, count: 2 }} }}
components:
  database: {{ type: Database, on: data }}
  app: {{ type: App, on: web, count: 2, bind: {{ db: one }} }}
  page: {{ type: Page, on: data, bind: {{ app: 'app[1]' }} }}
"
    );
    std::fs::write(site.place.join("shop.yaml"), text).unwrap();
    "shop.yaml".into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_follows_the_reasons_across_machines_to_a_remedy() {
    let site = Site::open("why");
    std::fs::write(site.place.join("bad"), "").unwrap();
    site.refused(&["apply", &shop(&site), "--yes"]);
    let shown = site.done(&["why", "shop/page[0]"]);
    let lines: Vec<&str> = shown.lines().map(|line| line.split(" (since 2").next().unwrap()).collect();
    assert_eq!(
        lines,
        [
            "✗ shop/page[0] on vm shop/data[0] is stopped: its import app needs 1 and holds 0",
            "  → shop/app[1] on vm shop/web[1] is stopped: its import db needs 1 and holds 0",
            "    → shop/database[0] on vm shop/data[0]: start failed; manual action required",
            "        start: ended before it was ready: exit code 3",
            "        the disk is missing",
            "What you can do:",
            "  holdfast component logs 'shop/database[0]' shows all its output",
            "  holdfast component retry 'shop/database[0]' retries it, once the cause is fixed",
            "  holdfast component skip 'shop/database[0]' marks it as done",
            "  holdfast apply FILE with a corrected file continues from there",
            "  holdfast cancel 1 takes back change 1, which waits for it",
        ]
    );
    let why = &json_of(&site, &["why", "shop/web[1]"])[0];
    assert_eq!((&why["what"], &why["well"]), (&json!("vm"), &json!(false)), "{why:#}");
    std::fs::remove_file(site.place.join("bad")).unwrap();
    let seen = site.status().await.newest_event;
    site.done(&["component", "retry", "shop/database[0]"]);
    site.events_until(seen, |event| event.text == "shop/page[0] is started").await;
    let shown = site.done(&["why", "shop/page[0]"]);
    assert!(shown.starts_with("✓ shop/page[0]") && shown.ends_with("nothing is wrong\n"), "{shown}");

    // An agent that does not answer: its components may still be running, and a removal waits for it.
    let away = site.kill_agent_for_good(2).await;
    site.events_until(seen, |event| event.what == EventKind::VmSuspected).await;
    let vm = site.status().await.vms.into_iter().find(|it| it.health == VmHealth::Suspected).unwrap().name;
    let shown = site.done(&["why", &vm]);
    assert!(shown.contains("does not answer; its components may still be running"), "{shown}");
    assert!(shown.contains(&format!("holdfast vm lost '{vm}'")), "{shown}");
    drop(away);

    // A component that was removed by hand is missing; a name that no application has is unknown.
    site.done(&["component", "remove", "shop/page[0]"]);
    let shown = site.done(&["why", "shop/page[0]"]);
    assert!(shown.contains("shop/page[0] is missing: application shop requests it"), "{shown}");
    assert!(shown.contains("holdfast reconcile 'shop/page[0]' creates it"), "{shown}");
    let shown = site.refused(&["why", "shop/pge[0]"]);
    assert_eq!(shown, "there is no component and no VM shop/pge[0] (did you mean `shop/page[0]`?)\n");
    let shown = site.refused(&["component", "logs", "shop/ap[0]"]);
    assert_eq!(shown, "there is no component shop/ap[0] (did you mean `shop/app[0]`?)\n");
    for command in [&["rollback", "shp", "--yes"], &["remove", "shp", "--yes"]] {
        assert_eq!(site.refused(command), "the manager has no application shp (did you mean `shop`?)\n");
    }
    site.done(&["remove", "shop", "--yes"]);
    site.audit(&[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_vm_is_listed_as_long_as_it_is_needed() {
    let site = Site::open("missed");
    let file = shop(&site);
    site.done(&["apply", &file, "--yes"]);
    let seen = |command: &[&str]| site.done(command).contains("shop/web[1]");
    site.done(&["vm", "lost", "shop/web[1]"]);
    let shown = site.done(&["status"]);
    assert!(shown.contains("✗ vm shop/web[1] is lost (holdfast reconcile shop)\n"), "{shown}");
    // Its name is reused when it is created again.
    site.done(&["reconcile", "shop", "--yes"]);
    assert!(!site.done(&["status"]).contains("is lost"));

    // Lost again, and no longer requested: it is no longer needed.
    site.done(&["vm", "lost", "shop/web[1]"]);
    assert!(seen(&["status"]) && seen(&["vm", "list"]));
    let text = std::fs::read_to_string(site.place.join(&file)).unwrap();
    let text =
        text.replace("local, count: 2", "local").replace("on: web, count: 2", "on: web").replace("app[1]", "app[0]");
    std::fs::write(site.place.join(&file), text).unwrap();
    site.done(&["apply", &file, "--yes"]);
    let shown = site.done(&["status"]);
    assert!(shown.contains("\n2 VMs, 2 well ") && !seen(&["status"]) && !seen(&["status", "--json"]), "{shown}");
    let shown = site.done(&["vm", "list"]);
    assert!(shown.ends_with("\n1 lost VM that is no longer needed is not shown (--all shows it)\n"), "{shown}");
    assert!(
        !seen(&["vm", "list", "--json"]) && seen(&["vm", "list", "--all"]) && seen(&["vm", "list", "--all", "--json"])
    );
    site.done(&["remove", "shop", "--yes"]);
    assert!(site.done(&["status"]).starts_with("0 VMs"));

    // For one that belongs to no application it is unknown whether it is needed, until another has its name.
    site.done(&["vm", "add", "edge", "--cloud", "local"]);
    site.done(&["vm", "lost", "edge"]);
    let shown = site.done(&["status"]);
    assert!(shown.contains("✗ vm edge is lost (place its components elsewhere; it is listed until"), "{shown}");
    site.done(&["vm", "add", "edge", "--cloud", "local"]);
    site.done(&["vm", "remove", "edge"]);
    assert!(site.done(&["status"]).starts_with("0 VMs"));
    site.audit(&[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_whose_change_is_overtaken_is_notified() {
    let site = Site::open("overtaken");
    let text = |word: &str| {
        format!(
            "holdfast: 1
application: a
types:
  P:
    parameters: {{ word: {word} }}
    operations:
      start: {{ process: \"exec sleep 100000 # {{{{ parameters.word }}}}\" }}
      check: {{ command: \"test -e {}\", interval: 20ms }}
vms: {{ v: {{ cloud: local }} }}
components: {{ p: {{ type: P }} }}
",
            site.place.join("go").display()
        )
    };
    std::fs::write(site.place.join("one.yaml"), text("one")).unwrap();
    std::fs::write(site.place.join("two.yaml"), text("two")).unwrap();
    let first = std::process::Command::new(crate::HOLDFAST)
        .args(["apply", "one.yaml", "--yes"])
        .current_dir(&site.place)
        .env("HOLDFAST_ACCESS", site.data().join("access.json"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    site.events_until(0, |event| event.text == "a/p[0] is starting").await;
    site.done(&["apply", "two.yaml", "--yes", "--no-wait"]);
    std::fs::write(site.place.join("go"), "").unwrap();
    let first = first.wait_with_output().unwrap();
    let output = String::from_utf8(first.stderr).unwrap();
    assert!(first.status.success() && output.starts_with("application a was changed in the meantime"), "{output}");
    // The operator of the last change gets no such note.
    let seen = site.status().await.newest_event;
    let output = site.holdfast(&["apply", "one.yaml", "--yes"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(site.status().await.newest_event > seen);
    site.done(&["remove", "a", "--yes"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_show_a_component_stuck_in_removal_although_another_has_its_name() {
    let site = Site::open("last-words");
    let bad = site.place.join("bad");
    let purge = format!("test ! -e {} || {{ echo it is in use; exit 7; }}", bad.display());
    let add = ["component", "add", "p", "--on", "v", "--start", "exec sleep 1000"];
    site.done(&["vm", "add", "v", "--cloud", "local"]);
    site.done(&[&add[..], &["--purge", &purge]].concat());
    std::fs::write(&bad, "").unwrap();
    let accepted = site.post(&json!({ "edits": [{ "remove-component": "p" }] })).await;
    site.events_until(accepted.events_after, |event| event.what == EventKind::OperationFailed).await;
    for another in [false, true] {
        if another {
            site.done(&add);
        }
        let shown = site.done(&["component", "logs", "p"]);
        assert!(
            shown.contains(": purge\nit is in use\n") && shown.contains("✗ p: purge failed: exit code 7\n"),
            "{shown}"
        );
        let shown = site.done(&["why", "p"]);
        assert!(shown.contains("✗ p on vm v: purge failed; manual action required"), "{shown}");
        assert_eq!(shown.contains("✓ p on vm v is started"), another, "{shown}");
    }
    std::fs::remove_file(&bad).unwrap();
    site.done(&["component", "retry", "p"]);
    site.until_done(&accepted).await;
    let shown = site.done(&["component", "logs", "p"]);
    assert!(!shown.contains("it is in use"), "{shown}");
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applying_again_reports_components_that_wait_for_a_failure_elsewhere() {
    let site = Site::open("elsewhere");
    let bad = site.place.join("bad");
    let base = format!(
        "holdfast: 1
application: base
types:
  P:
    exports: {{ x: {{ values: [host] }} }}
    operations: {{ start: {{ process: exec sleep 100000 }}, configure: \"test ! -e {}\" }}
    patience: {{ start: {{ retries: 0 }} }}
vms: {{ v: {{ cloud: local }} }}
components: {{ p: {{ type: P }} }}
",
        bad.display()
    );
    let user = "holdfast: 1
application: user
variables: { unused: one }
types:
  C:
    imports: { x: x }
    operations: { start: { process: exec sleep 100000 } }
vms: { v: { cloud: local } }
components: { c: { type: C, bind: { x: { from: base/p } } } }
";
    std::fs::write(site.place.join("base.yaml"), base).unwrap();
    std::fs::write(site.place.join("user.yaml"), user).unwrap();
    site.done(&["apply", "base.yaml", "--yes"]);
    site.done(&["apply", "user.yaml", "--yes"]);
    std::fs::write(&bad, "").unwrap();
    site.refused(&["component", "restart", "base/p[0]"]);
    let output = "✗ user/c[0]: is stopped, not started; it waits for base/p[0] (failed to start) for x\n";
    for command in [
        &["apply", "user.yaml", "--yes"][..],
        &["reconcile", "user", "--yes"],
        // This is recorded, although it makes no difference.
        &["apply", "user.yaml", "--yes", "--set", "unused=two"],
    ] {
        let shown = site.refused(command);
        assert!(shown.contains("No changes.") && shown.ends_with(output), "{shown}");
    }
    let output = site.holdfast(&["apply", "user.yaml", "--yes", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    std::fs::remove_file(&bad).unwrap();
    site.done(&["reconcile", "base", "--yes"]);
    let seen = site.status().await;
    if seen.summary.components_started < 2 {
        site.events_until(seen.newest_event, |event| event.text == "user/c[0] is started").await;
    }
    site.done(&["apply", "user.yaml", "--yes"]);
    site.done(&["remove", "base", "--with-users", "--yes"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_waits_for_a_change_that_requires_manual_action_is_pointed_to_it() {
    let site = Site::open("behind");
    site.make(&json!({ "edits": [vm("v"), provider("app", "v", "x")] })).await;
    let mut new = provider("new", "v", "y");
    new["add-component"]["patience"] = json!({ "start": { "retries": 0, "pause_ms_first": 0 } });
    let go = site.place.join("go");
    new["add-component"]["recipe"]["operations"]["configure"] = json!({ "run": format!("test -e {}", go.display()) });
    let first = site.post(&json!({ "strategy": "up-then-down", "edits": [new, { "restart-component": "app" }] })).await;
    site.events_until(first.events_after, |event| event.what == EventKind::OperationFailed).await;
    let shown = site.refused(&["component", "restart", "app"]);
    assert!(shown.contains("✗ change 3 needs manual action\n"), "{shown}");
    assert!(shown.contains("  retry:   holdfast component retry new\n"), "{shown}");
    std::fs::write(&go, "").unwrap();
    let seen = site.status().await.newest_event;
    site.done(&["component", "retry", "new"]);
    site.events_until(seen, |event| event.what == EventKind::ChangeDone && event.change == Some(3)).await;
    assert_eq!(site.state("app").await, "started");
    site.audit(&[]);
    site.remove_everything().await;
}
