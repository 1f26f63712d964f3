//! The example applications, really run: planned, applied, scaled, changed, rolled back and removed on one machine.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod site;

use cloud_manager::document::{Component, EventDocument};
use serde_json::Value;
use site::{Site, order};
use std::path::{Path, PathBuf};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/applications").join(name)
}

/// Runs a command that must end well, and says what it printed.
#[track_caller]
fn done(site: &Site, arguments: &[&str]) -> String {
    let output = site.holdfast(arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{arguments:?}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[track_caller]
fn apply(site: &Site, path: &Path) -> String {
    done(site, &["apply", path.to_str().unwrap(), "--yes"])
}

async fn states(site: &Site) -> Vec<(String, String)> {
    let components: Vec<Component> = site.client.get("/v1/components").await.unwrap();
    components.into_iter().map(|it| (it.name, it.state)).collect()
}

async fn all_started(site: &Site, number: usize) {
    let states = states(site).await;
    assert_eq!(states.len(), number, "{states:?}");
    assert!(states.iter().all(|(_, state)| state == "started"), "{states:?}");
}

async fn log(site: &Site, component: &str) -> String {
    let path = format!("/v1/components/{}/logs", cloud_manager::client::segment(component));
    site.client.text(&path).await.unwrap()
}

/// What was told since a number, up to now.
async fn told_since(site: &Site, after: u64) -> Vec<EventDocument> {
    let newest = site.status().await.newest_event;
    site.events_until(after, |event| event.number >= newest).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_three_tiers_go_up_change_and_come_down_as_planned() {
    let mut site = Site::open("three-tiers");
    let path = site.place.join("shop.yaml");
    let text = std::fs::read_to_string(example("three-tier.yaml")).unwrap();
    std::fs::write(&path, &text).unwrap();
    let told = apply(&site, &path);
    assert!(told.contains("✓ change 1 is done"), "{told}");
    all_started(&site, 5).await;
    let started = order(&told_since(&site, 0).await, "started");
    let place = |name: &str| started.iter().position(|it| it == name).unwrap();
    assert!(place("shop/mysql[0]") < place("shop/tomcat[0]") && place("shop/tomcat[0]") < place("shop/apache[0]"));
    assert!(log(&site, "shop/tomcat[0]").await.contains("database = 127.0.0.1:"));

    // The same again is nothing, and says so; what the manager knows outlives it.
    site.kill_manager();
    site.restart_manager();
    let told = apply(&site, &path);
    assert!(told.contains("Nothing is different.") && !told.contains("change 2"), "{told}");

    // A changed database: the plan says who will stop and start and in which order, and that is what happens.
    std::fs::write(&path, text.replace("echo database at", "echo another database at")).unwrap();
    let planned = done(&site, &["plan", path.to_str().unwrap(), "--live", "--json"]);
    let planned: Value = serde_json::from_str(&planned).unwrap();
    assert_eq!(planned["difference"]["components"]["mysql[0]"]["replaced"][0], "operation start");
    assert_eq!(planned["difference"]["unchanged"]["components"], 4);
    let after = site.status().await.newest_event;
    apply(&site, &path);
    let told = told_since(&site, after).await;
    for (verb, state) in [("stop", "stopped"), ("start", "started")] {
        let moments = planned["foresight"]["moments"].as_array().unwrap();
        let foreseen: Vec<String> = moments
            .iter()
            .flat_map(|it| it[verb].as_array().unwrap())
            .map(|it| format!("shop/{}", it.as_str().unwrap()))
            .collect();
        // The new one begins as a stopped one, under the name of the old.
        let mut seen = order(&told, state);
        seen.retain(|it| foreseen.contains(it));
        seen.dedup();
        assert_eq!(seen, foreseen, "{verb}");
        assert!(seen.contains(&"shop/apache[0]".to_owned()) && seen.contains(&"shop/tomcat[0]".to_owned()));
    }
    assert!(log(&site, "shop/mysql[0]").await.contains("another database at"));

    // Back to what it was, with one command; then all of it goes.
    done(&site, &["rollback", "shop", "--yes"]);
    all_started(&site, 5).await;
    assert!(!log(&site, "shop/mysql[0]").await.contains("another database at"));
    done(&site, &["remove", "shop", "--yes"]);
    assert!(states(&site).await.is_empty());
    assert!(!site.holdfast(&["remove", "shop", "--yes"]).status.success());
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_balancer_and_its_servers_know_each_other_and_grow_without_a_stop() {
    let site = Site::open("balanced");
    apply(&site, &example("load-balancer.yaml"));
    all_started(&site, 4).await;
    assert_eq!(log(&site, "balanced/balancer[0]").await.matches("server 127.0.0.1:").count(), 3);
    assert!(log(&site, "balanced/server[2]").await.contains("clients come by 127.0.0.1:"));
    let after = site.status().await.newest_event;
    let told = done(&site, &["scale", "server=4", "--yes"]);
    assert!(told.contains("+ server[3]") && told.contains("Unchanged: 3 VMs, 3 components, 6 bindings"), "{told}");
    all_started(&site, 5).await;
    let told = told_since(&site, after).await;
    // A new one is stopped before it is started; nobody else ever is.
    assert_eq!(order(&told, "stopped"), ["balanced/server[3]"]);
    assert_eq!(order(&told, "started"), ["balanced/server[3]"]);
    let heard = log(&site, "balanced/balancer[0]").await;
    assert!(heard.rsplit("told of").next().unwrap().matches("server 127.0.0.1:").count() == 4, "{heard}");
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_s_key_is_on_all_hosts_before_they_start() {
    let site = Site::open("controller");
    apply(&site, &example("ssh-controller.yaml"));
    all_started(&site, 4).await;
    assert!(log(&site, "cluster/controller[0]").await.contains("controls 3 hosts"));
    for host in 0..3 {
        let told = log(&site, &format!("cluster/host[{host}]")).await;
        assert!(told.contains("lets in key-") && told.contains("-of-cluster/controller[0]"), "{told}");
    }
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_deployments_of_the_same_types_live_side_by_side() {
    let site = Site::open("tiers");
    let mut number = 0;
    for (name, bindings) in [("d1", 4), ("d2", 8), ("d3", 4), ("d4", 8)] {
        let path = example(&format!("tiers/{name}.yaml"));
        let told = apply(&site, &path);
        assert!(told.contains(&format!("6 components, {bindings} bindings")), "{told}");
        number += 6;
        all_started(&site, number).await;
    }
    site.audit(&[]);
    site.remove_everything().await;
}
