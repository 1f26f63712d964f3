//! What an operator sees and does when something fails: the manager goes away, a start fails and is retried or skipped, an
//! agent does not answer.

use crate::HOLDFAST;
use crate::site::{Site, vm};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Lines},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

/// One component that is ready once a file exists, with a time limit; and one that needs it.
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

/// The program, and its output line by line.
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
async fn a_client_that_follows_a_change_waits_for_a_manager_that_goes_away() {
    let mut site = Site::open("away");
    let gate = site.place.join("gate");
    fs::write(site.place.join("a.yaml"), gated(&gate, "60s")).unwrap();
    let (mut apply, mut output) = spawn(&site, &["apply", "a.yaml", "--yes"]);
    assert!(output.any(|line| line.unwrap().ends_with("a/slow[0] is starting")));
    let (mut watch, mut shown) = spawn(&site, &["status", "--watch"]);
    assert!(shown.any(|line| line.unwrap().contains("1 change under way")));
    let mut complaints = BufReader::new(watch.stderr.take().unwrap()).lines();

    site.kill_manager();
    assert!(output.any(|line| line.unwrap() == "the manager does not answer; waiting for it"));
    assert!(complaints.any(|line| line.unwrap() == "the manager does not answer; waiting for it"));

    site.restart_manager();
    fs::write(&gate, "").unwrap();
    assert!(output.any(|line| line.unwrap().contains("✓ change 1 is done")));
    assert!(apply.wait().unwrap().success());
    assert!(shown.any(|line| line.unwrap().contains("2 started")));
    watch.kill().unwrap();
    watch.wait().unwrap();
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_shows_why_a_start_failed() {
    let site = Site::open("why");
    let gate = site.place.join("gate");
    fs::write(site.place.join("a.yaml"), gated(&gate, "200ms")).unwrap();
    let why = "not ready within 200ms; last check: exit code 3";
    let output = site.refused(&["apply", "a.yaml", "--yes"]);
    assert!(output.contains(why) && output.contains("    no gate\n    beginning\n"), "{output}");
    assert!(output.contains("retry:   holdfast component retry 'a/slow[0]'\n"), "{output}");
    let output = site.done(&["status"]);
    assert!(
        output.contains(&format!("then retry 'a/slow[0]' or skip 'a/slow[0]')\n    {why}\n    no gate\n")),
        "{output}"
    );
    for command in [&["show", "1"][..], &["component", "logs", "a/slow[0]"]] {
        let output = site.done(command);
        assert!(output.contains(why) && output.contains("no gate"), "{output}");
    }

    // It is not as requested, nor is its client; and applying the file again does not change that.
    let failed = format!("✗ a/slow[0]: start failed: {why} (holdfast component retry 'a/slow[0]')\n");
    let output = site.refused(&["check"]);
    let waits = "✗ a/user[0]: is stopped, not started; it waits for a/slow[0] (failed to start) for it\n";
    assert_eq!(output, format!("{failed}{waits}"));
    let output = site.refused(&["apply", "a.yaml", "--yes"]);
    assert!(output.contains("No changes.\n") && output.ends_with(&format!("{failed}{waits}")), "{output}");
    let output: Value = serde_json::from_str(&site.refused(&["apply", "a.yaml", "--yes", "--json"])).unwrap();
    assert!(output["not_started"]["a/slow[0]"].is_string() && output["changed"] == json!(false), "{output}");

    // A retry ends when its outcome is known.
    let output = site.refused(&["component", "retry", "a/slow[0]"]);
    assert!(output.contains("a/slow[0] is starting") && !output.contains('✓'), "{output}");
    assert!(output.ends_with(&format!("✗ a/slow[0]: start failed: {why}\n    no gate\n    beginning\n")), "{output}");
    let output = site.refused(&["reconcile", "a", "--yes"]);
    assert!(output.contains(&format!("↻ slow[0] is restarted: start failed: {why}")), "{output}");
    fs::write(&gate, "").unwrap();
    let seen = site.status().await.newest_event;
    let output = site.done(&["component", "retry", "a/slow[0]"]);
    assert!(output.ends_with("✓ a/slow[0] is started\n"), "{output}");
    // Its client starts after it.
    site.events_until(seen, |event| event.text == "a/user[0] is started").await;
    site.done(&["check"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_component_counts_as_down_in_a_rolling_replacement() {
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
    let output = site.refused(&roll);
    assert!(output.contains("Step 2 of 3") && output.contains("a/app[1]: start failed"), "{output}");
    let before = site.status().await.newest_event;
    let output = site.refused(&roll);
    let why = "app[1] is not started, so app[2] cannot be replaced with at most 1 of app out at once";
    assert!(output.contains(why), "{output}");
    assert_eq!(site.status().await.newest_event, before);
    assert!(site.refused(&["apply", "a.yaml", "--rolling", "0", "--yes"]).contains("--rolling"));
    // Components that are down are replaced first, if they are to be replaced.
    fs::write(&path, text(3)).unwrap();
    let output = site.done(&roll);
    let first = output.find("a/app[1] is started").unwrap();
    assert!(
        ["a/app[0] is stopped", "a/app[2] is stopped"].iter().all(|it| output.find(it).unwrap() > first),
        "{output}"
    );
    site.done(&["check"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_skipped_start_is_shown_and_can_be_repeated() {
    let site = Site::open("skipped");
    let gate = site.place.join("gate");
    fs::write(site.place.join("a.yaml"), gated(&gate, "200ms")).unwrap();
    site.refused(&["apply", "a.yaml", "--yes"]);
    let output = site.done(&["component", "skip", "a/slow[0]"]);
    assert!(output.ends_with("✓ a/slow[0] is started\n"), "{output}");
    let output = site.refused(&["check", "a/slow[0]"]);
    assert_eq!(output, "✗ a/slow[0]: not running (its start was skipped, or it is not started)\n");
    fs::write(&gate, "").unwrap();
    site.done(&["reconcile", "a", "--yes"]);
    site.done(&["check"]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_was_not_examined_is_not_reported_as_well() {
    let mut site = Site::open("silent");
    let token = site.invite("edge").await;
    let joining = site.post(&json!({ "edits": [{ "add-vm": { "name": "edge" } }, vm("near")] })).await;
    site.start_agent("edge", Some(&token));
    site.until_done(&joining).await;
    for (component, vm) in [("far", "edge"), ("close", "near")] {
        site.done(&["component", "add", component, "--on", vm, "--start", "exec sleep 100000"]);
    }
    assert!(site.done(&["check"]).contains("✓ Everything is as requested (2 components examined)"));
    site.kill_last_agent();
    let output = site.refused(&["check"]);
    assert!(output.starts_with("? far: ") && !output.contains('✓'), "{output}");
    assert!(output.ends_with("? 1 of 2 components could not be examined; nothing else is wrong.\n"), "{output}");
    site.start_agent("edge", None);
    site.done(&["check"]);
    site.remove_everything().await;
}
