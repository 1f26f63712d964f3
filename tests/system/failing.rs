//! What a person sees and does when something fails: the manager goes away, a start fails and is tried again or skipped, an
//! agent is silent.

use crate::HOLDFAST;
use crate::site::{Site, vm};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Lines},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

/// One component that is ready once a file is there, within a time; and one that needs it.
fn gated(gate: &Path, within: &str) -> String {
    format!(
        r#"holdfast: 1
application: a
types:
  Slow:
    exports: {{ it: {{ values: [host] }} }}
    operations:
      start: {{ process: "echo beginning; exec sleep 100000" }}
      check: {{ command: "test -e {} || {{ echo no gate; exit 3; }}", interval: 50ms, ready-within: {within} }}
    patience: {{ start: {{ retries: 0 }} }}
  User:
    imports: {{ it: it }}
    operations: {{ start: {{ process: "exec sleep 100000" }} }}
vms: {{ v: {{ cloud: local }} }}
components: {{ slow: {{ type: Slow }}, user: {{ type: User }} }}
"#,
        gate.display()
    )
}

/// The program, and what it says line by line.
fn spawn(site: &Site, arguments: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(HOLDFAST)
        .args(arguments)
        .current_dir(&site.place)
        .env("HOLDFAST_ACCESS", site.data().join("access.json"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_follows_waits_for_a_manager_that_goes_away() {
    let mut site = Site::open("away");
    let gate = site.place.join("gate");
    fs::write(site.place.join("a.yaml"), gated(&gate, "60s")).unwrap();
    let (mut apply, mut told) = spawn(&site, &["apply", "a.yaml", "--yes"]);
    assert!(told.any(|line| line.unwrap().ends_with("a/slow[0] is starting")));
    let (mut watch, mut shown) = spawn(&site, &["status", "--watch"]);
    assert!(shown.any(|line| line.unwrap().contains("1 change under way")));
    let mut complaints = BufReader::new(watch.stderr.take().unwrap()).lines();

    site.kill_manager();
    assert!(told.any(|line| line.unwrap() == "the manager does not answer; waiting for it"));
    assert!(complaints.any(|line| line.unwrap() == "the manager does not answer; waiting for it"));

    site.restart_manager();
    fs::write(&gate, "").unwrap();
    assert!(told.any(|line| line.unwrap().contains("✓ change 1 is done")));
    assert!(apply.wait().unwrap().success());
    assert!(shown.any(|line| line.unwrap().contains("2 started")));
    watch.kill().unwrap();
    watch.wait().unwrap();
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_a_start_failed_is_told_wherever_one_looks() {
    let site = Site::open("why");
    let gate = site.place.join("gate");
    fs::write(site.place.join("a.yaml"), gated(&gate, "200ms")).unwrap();
    let why = "not ready within 200ms; last check: exit code 3";
    let told = site.refused(&["apply", "a.yaml", "--yes"]);
    assert!(told.contains(why) && told.contains("    no gate\n    beginning\n"), "{told}");
    assert!(told.contains("try again: holdfast component retry 'a/slow[0]'\n"), "{told}");
    let told = site.done(&["status"]);
    assert!(told.contains(&format!("then retry 'a/slow[0]' or skip 'a/slow[0]')\n    {why}\n    no gate\n")), "{told}");
    for command in [&["show", "1"][..], &["component", "logs", "a/slow[0]"]] {
        let told = site.done(command);
        assert!(told.contains(why) && told.contains("no gate"), "{told}");
    }

    // It is not as it was asked for, nor is who needs it; and a file that is applied again does not change that.
    let failed = format!("✗ a/slow[0]: start failed: {why} (holdfast component retry 'a/slow[0]')\n");
    let told = site.refused(&["check"]);
    let waits = "✗ a/user[0]: is stopped, not started; it waits for a/slow[0] (failed to start) for it\n";
    assert_eq!(told, format!("{failed}{waits}"));
    let told = site.refused(&["apply", "a.yaml", "--yes"]);
    assert!(told.contains("Nothing is different.\n") && told.ends_with(&format!("{failed}{waits}")), "{told}");
    let told: Value = serde_json::from_str(&site.refused(&["apply", "a.yaml", "--yes", "--json"])).unwrap();
    assert!(told["not_started"]["a/slow[0]"].is_string() && told["changed"] == json!(false), "{told}");

    // Trying again ends when it is known what came of it.
    let told = site.refused(&["component", "retry", "a/slow[0]"]);
    assert!(told.contains("a/slow[0] is starting") && !told.contains('✓'), "{told}");
    assert!(told.ends_with(&format!("✗ a/slow[0]: start failed: {why}\n    no gate\n    beginning\n")), "{told}");
    let told = site.refused(&["reconcile", "a", "--yes"]);
    assert!(told.contains(&format!("↻ slow[0] is restarted: start failed: {why}")), "{told}");
    fs::write(&gate, "").unwrap();
    let seen = site.status().await.newest_event;
    let told = site.done(&["component", "retry", "a/slow[0]"]);
    assert!(told.ends_with("✓ a/slow[0] is started\n"), "{told}");
    // Whoever waited for it comes after it.
    site.events_until(seen, |event| event.text == "a/user[0] is started").await;
    site.done(&["check"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_failed_counts_among_those_that_are_out() {
    let site = Site::open("out");
    let starts = site.place.join("starts");
    // The fifth start of all fails.
    let text = |level: u32| {
        format!(
            r#"holdfast: 1
application: a
types:
  App:
    parameters: {{ level: {level} }}
    operations: {{ start: {{ script: "echo {{{{ parameters.level }}}} >> {0}; test $(wc -l < {0}) -ne 5" }}, stop: {{ command: "true" }} }}
    patience: {{ start: {{ retries: 0 }} }}
vms: {{ v: {{ cloud: local }} }}
components: {{ app: {{ type: App, count: 3 }} }}
"#,
            starts.display()
        )
    };
    let path = site.place.join("a.yaml");
    fs::write(&path, text(1)).unwrap();
    site.done(&["apply", "a.yaml", "--yes"]);
    fs::write(&path, text(2)).unwrap();
    let roll = ["apply", "a.yaml", "--rolling", "1", "--yes"];
    let told = site.refused(&roll);
    assert!(told.contains("Step 2 of 3") && told.contains("a/app[1]: start failed"), "{told}");
    let before = site.status().await.newest_event;
    let told = site.refused(&roll);
    let why = "app[1] is not started, so app[2] cannot be replaced with at most 1 of app out at once";
    assert!(told.contains(why), "{told}");
    assert_eq!(site.status().await.newest_event, before);
    assert!(site.refused(&["apply", "a.yaml", "--rolling", "0", "--yes"]).contains("--rolling"));
    // What is out is replaced first, if it is to be replaced.
    fs::write(&path, text(3)).unwrap();
    let told = site.done(&roll);
    let first = told.find("a/app[1] is started").unwrap();
    assert!(["a/app[0] is stopped", "a/app[2] is stopped"].iter().all(|it| told.find(it).unwrap() > first), "{told}");
    site.done(&["check"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_was_skipped_is_seen_and_can_be_made_up_for() {
    let site = Site::open("skipped");
    let gate = site.place.join("gate");
    fs::write(site.place.join("a.yaml"), gated(&gate, "200ms")).unwrap();
    site.refused(&["apply", "a.yaml", "--yes"]);
    let told = site.done(&["component", "skip", "a/slow[0]"]);
    assert!(told.ends_with("✓ a/slow[0] is started\n"), "{told}");
    let told = site.refused(&["check", "a/slow[0]"]);
    assert_eq!(told, "✗ a/slow[0]: not running (its start was skipped, or it is not started)\n");
    fs::write(&gate, "").unwrap();
    site.done(&["reconcile", "a", "--yes"]);
    site.done(&["check"]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_not_asked_is_not_well() {
    let mut site = Site::open("silent");
    let token = site.invite("edge").await;
    let joining = site.post(&json!({ "edits": [{ "add-vm": { "name": "edge" } }, vm("near")] })).await;
    site.start_agent("edge", Some(&token));
    site.until_done(&joining).await;
    for (component, vm) in [("far", "edge"), ("close", "near")] {
        site.done(&["component", "add", component, "--on", vm, "--start", "exec sleep 100000"]);
    }
    assert!(site.done(&["check"]).contains("✓ Everything is as it was asked for (2 components examined)"));
    site.kill_last_agent();
    let told = site.refused(&["check"]);
    assert!(told.starts_with("? far: ") && !told.contains('✓'), "{told}");
    assert!(told.ends_with("? 1 of 2 components could not be examined; nothing else is wrong.\n"), "{told}");
    site.start_agent("edge", None);
    site.done(&["check"]);
    site.remove_everything().await;
}
