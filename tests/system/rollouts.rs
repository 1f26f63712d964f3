//! Replacements in steps: the manager carries them out, even if the client or the manager itself is killed.

use crate::HOLDFAST;
use crate::site::Site;
use cloud_manager::document::{ApplicationDocument, EventDocument, RolloutState};
use cloud_manager::document::{ComponentStatus, EventKind};
use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Stdio},
};

/// Components that start slowly, so that there is time to kill programs.
fn text(level: u32) -> String {
    format!(
        r#"holdfast: 1
application: a
types:
  App:
    parameters: {{ level: {level} }}
    operations:
      start: {{ process: "echo level {{{{ parameters.level }}}}; exec sleep 100000" }}
      check: {{ command: "sleep 0.1", interval: 20ms }}
vms: {{ v: {{ cloud: local, count: 2 }} }}
components: {{ app: {{ type: App, on: v, count: 6 }} }}
"#
    )
}

/// A site with six components at level 1, and a file with level 2.
fn site(name: &str) -> Site {
    let site = Site::open(name);
    fs::write(site.place.join("a.yaml"), text(1)).unwrap();
    site.done(&["apply", "a.yaml", "--yes"]);
    fs::write(site.place.join("a.yaml"), text(2)).unwrap();
    site
}

async fn application(site: &Site) -> ApplicationDocument {
    site.client.get("/v1/applications/a").await.unwrap()
}

/// The largest number of components that were not started at one time, according to the events.
fn down_at_once(events: &[EventDocument]) -> usize {
    let (mut down, mut most) = (BTreeSet::new(), 0);
    for event in events.iter().filter(|it| it.what == EventKind::ComponentIs) {
        let (Some(name), Some(state)) = (&event.component, event.state) else { continue };
        if state == ComponentStatus::Started {
            down.remove(name)
        } else {
            down.insert(name)
        };
        most = most.max(down.len());
    }
    most
}

fn stopped(events: &[EventDocument]) -> BTreeSet<String> {
    let stopping = events.iter().filter(|it| it.state == Some(ComponentStatus::Stopping));
    stopping.filter_map(|it| it.component.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_survives_its_client_and_its_manager() {
    let mut site = site("rollout");
    let before = site.status().await.newest_event;
    let mut client = Command::new(HOLDFAST)
        .args(["apply", "a.yaml", "--rolling", "1", "--yes"])
        .current_dir(&site.place)
        .env("HOLDFAST_ACCESS", site.data().join("access.json"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // In the middle of the second step.
    let is_second = |it: &EventDocument| it.text.contains("(step 2 of 6)");
    site.events_until(before, is_second).await;
    client.kill().unwrap();
    client.wait().unwrap();
    site.kill_manager();
    site.restart_manager();
    // Once more between two steps, wherever that is.
    site.events_until(before, |it| it.text.contains("(step 4 of 6)")).await;
    site.kill_manager();
    site.restart_manager();
    site.events_until(before, |it| it.text.contains("(step 6 of 6)")).await;
    let last = site.events_until(before, |it| it.text.contains("(step 6 of 6)")).await.last().unwrap().change;
    site.events_until(before, |it| it.what == EventKind::ChangeDone && it.change == last).await;
    let events = site.events_since(before).await;
    assert_eq!(stopped(&events).len(), 6, "{events:?}");
    assert_eq!(down_at_once(&events), 1, "{events:?}");
    let now = application(&site).await;
    assert_eq!((now.version, now.rollout), (2, None));
    for index in 0..6 {
        assert!(site.done(&["component", "logs", &format!("a/app[{index}]")]).contains("level 2"));
    }
    site.done(&["check"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn canaries_wait_to_be_promoted_or_are_undone() {
    let site = site("canary");
    let before = site.status().await.newest_event;
    let output = site.done(&["apply", "a.yaml", "--canary", "2", "--rolling", "2", "--yes"]);
    assert!(output.contains("The canaries are started. Continue: holdfast promote"), "{output}");
    assert_eq!(stopped(&site.events_since(before).await).len(), 2);
    let rollout = application(&site).await.rollout.unwrap();
    assert_eq!(rollout.state, RolloutState::Canary { promotes_at_ms: None });
    let change = rollout.change.to_string();

    // Cancelling first shows what it does, and then does it: the canaries are at level 1 again.
    let output = site.done(&["cancel", &change, "--dry-run"]);
    assert!(output.contains("return to version 1 of a"), "{output}");
    assert!(application(&site).await.rollout.is_some());
    site.done(&["cancel", &change, "--yes"]);
    let now = application(&site).await;
    assert_eq!((now.version, &now.rollout), (3, &None));
    for index in 0..6 {
        let output = site.done(&["component", "logs", &format!("a/app[{index}]")]);
        assert!(output.trim_end().ends_with("level 1"), "{index}: {output}");
    }

    // After promotion it replaces the rest; never more than two at once.
    let before = site.status().await.newest_event;
    site.done(&["apply", "a.yaml", "--canary", "1", "--rolling", "2", "--yes"]);
    let change = application(&site).await.rollout.unwrap().change.to_string();
    site.done(&["promote", &change]);
    let events = site.events_since(before).await;
    assert_eq!(stopped(&events).len(), 6);
    assert!(down_at_once(&events) <= 2, "{events:?}");
    assert_eq!(application(&site).await.rollout, None);
    assert!(site.refused(&["promote", &change]).contains("is not a step of a rollout under way"));

    // After a stated time it is promoted automatically.
    fs::write(site.place.join("a.yaml"), text(3)).unwrap();
    let before = site.status().await.newest_event;
    site.done(&["apply", "a.yaml", "--canary", "1", "--rolling", "5", "--promote-after", "1", "--yes"]);
    site.events_until(before, |it| it.text.contains("(step 2 of 2)")).await;
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_is_cancelled_between_two_components() {
    let site = site("cancelled");
    let before = site.status().await.newest_event;
    site.done(&["apply", "a.yaml", "--rolling", "1", "--yes", "--no-wait"]);
    site.events_until(before, |it| it.text.contains("(step 2 of 6)")).await;
    let change = application(&site).await.rollout.unwrap().change.to_string();
    let output = site.done(&["cancel", &change, "--yes"]);
    assert!(output.contains("the steps after it are dropped"), "{output}");
    let events = site.events_since(before).await;
    let replaced = stopped(&events).len();
    assert!((2..6).contains(&replaced), "{replaced}");
    assert_eq!(application(&site).await.rollout, None);
    // What exists is what was requested until then; applied again, the rest follows.
    site.done(&["check"]);
    let output = site.done(&["apply", "a.yaml", "--rolling", "1", "--yes"]);
    assert!(output.contains(&format!("{} of {0}", 6 - replaced)), "{output}");
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollback_reaches_any_kept_version() {
    let site = site("versions");
    site.done(&["apply", "a.yaml", "--yes"]);
    site.done(&["scale", "app=3", "--yes"]);
    let output = site.done(&["history", "--application", "a"]);
    assert!(output.lines().nth(1).unwrap().starts_with("3") && output.contains("scale"), "{output}");
    site.done(&["rollback", "a", "--to", "1", "--yes"]);
    assert_eq!(site.status().await.components.len(), 6);
    assert!(site.done(&["component", "logs", "a/app[0]"]).trim_end().ends_with("level 1"));
    // The history says what became of each change, and which token asked for it.
    let output = site.done(&["history"]);
    let lines: Vec<Vec<&str>> = output.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert!(lines[0].contains(&"done") && lines[0].contains(&"rollback"), "{output}");
    assert!(
        lines[1..3].iter().all(|it| it.join(" ").contains("rolled back by 4 created at the first start")),
        "{output}"
    );
    assert!(lines[3].contains(&"done"), "{output}");
    // A plain rollback returns to the previous version, which is version 3.
    site.done(&["rollback", "a", "--yes"]);
    assert_eq!(site.status().await.components.len(), 3);
    let output = site.refused(&["rollback", "a", "--to", "99", "--yes"]);
    assert!(output.contains("version 99 of application a is not kept (kept: 1, 2, 3, 4, 5)"), "{output}");
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_hangs_is_cancelled_and_undone() {
    let site = Site::open("hanging");
    let gate = site.place.join("gate");
    let text = |gate: &str| {
        format!(
            r#"holdfast: 1
application: a
types:
  Base: {{ exports: {{ e: {{}} }}, operations: {{ start: {{ process: "exec sleep 100000" }} }} }}
  App:
    imports: {{ base: e }}
    parameters: {{ gate: "{gate}" }}
    operations:
      start: {{ process: "exec sleep 100000 # {{{{ parameters.gate }}}}" }}
      check: {{ command: "test -e {{{{ parameters.gate }}}}", interval: 20ms, ready-within: 100000s }}
vms: {{ v: {{ cloud: local }} }}
components: {{ base: {{ type: Base }}, app: {{ type: App }} }}
"#
        )
    };
    fs::write(&gate, "").unwrap();
    fs::write(site.place.join("a.yaml"), text(gate.to_str().unwrap())).unwrap();
    site.done(&["apply", "a.yaml", "--yes"]);

    // The new version never becomes ready, and its time limit is far away.
    fs::write(site.place.join("a.yaml"), text("/nonexistent")).unwrap();
    let before = site.status().await.newest_event;
    site.done(&["apply", "a.yaml", "--yes", "--no-wait"]);
    site.events_until(before, |it| it.text == "a/app[0] is starting").await;
    let output = site.done(&["cancel", "2", "--dry-run"]);
    assert!(output.contains("what was done is undone") && output.contains("added again: a/app[0]"), "{output}");
    let output = site.done(&["cancel", "2", "--yes"]);
    assert!(output.contains("change 2 is cancelled"), "{output}");

    // It runs as before, and that is what the manager expects.
    assert_eq!(site.state("a/app[0]").await, "started");
    site.done(&["check"]);
    let now = application(&site).await;
    assert_eq!((now.version, now.versions.last().unwrap().by.as_str()), (3, "cancel"));
    assert!(site.refused(&["cancel", "2", "--yes"]).contains("change 2"));
    assert!(site.refused(&["cancel", "99", "--yes"]).contains("99"));
    site.audit(&[]);
    site.remove_everything().await;
}
