//! Whole systems in trouble: what an operator is told of what ended, what waits, and what is lost.
#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod site;

use serde_json::{Value, json};
use site::{Site, provider, vm};

fn json_of(site: &Site, arguments: &[&str]) -> Value {
    serde_json::from_str(&site.done(&[arguments, &["--json"]].concat())).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_died_is_seen_with_how_often_when_and_why() {
    let mut site = Site::open("deaths");
    site.make(&json!({ "wishes": [vm("data"), provider("database", "data", "sql")] })).await;
    assert!(!site.done(&["status"]).contains("DIED"), "nobody did");
    for _ in 0..2 {
        let seen = site.status().await.newest_event;
        for pid in site::processes_of(&site.vm(1).join("components"), None) {
            std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
        }
        site.events_until(seen, |event| event.text == "database is started").await;
    }
    // To be stopped by somebody is no death.
    site.done(&["component", "restart", "database"]);
    for round in ["before", "after"] {
        let deaths = &json_of(&site, &["component", "list"])[0]["deaths"];
        assert_eq!(deaths["times"], 2, "{round} a restart of the manager");
        for command in [&["status"][..], &["component", "list"]] {
            let shown = site.done(command);
            assert!(shown.contains("DIED (UTC)") && shown.contains("2 times, last 2"), "{shown}");
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
