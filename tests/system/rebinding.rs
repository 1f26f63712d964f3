//! Values that change while clients run: clients that know the old values get the new ones, by `rebind` or by a
//! restart, in safe order; and no other component is disturbed.

use crate::site::{Site, order};
use std::{fs, path::PathBuf};

/// A cache with another mark after each start, one whose mark stays, and clients that need neither.
const CACHED: &str = r#"holdfast: 1
application: cached
variables: { apps: 0, size: 1 }
types:
  Cache:
    parameters: { size: 1 }
    exports: { objects: { values: { mark: text } } }
    operations:
      start: { script: "cat /proc/sys/kernel/random/uuid > mark; echo mark=$(cat mark) >> $HOLDFAST_VALUES" }
      stop: { command: "true" }
  Shelf:
    parameters: { size: 1 }
    exports: { objects: { values: { mark: text } } }
    values: { mark: constant }
    operations:
      start: { process: "exec sleep 100000" }
  App:
    imports: { cache: { export: objects, weak: 1 } }
    exports: { http: }
    files: { told: "{% for it in imports.cache %}{{ it.mark }} {% endfor %}" }
    operations:
      start: { process: "exec sleep 100000" }
  Listener:
    extends: App
    operations:
      rebind: { command: "cp told heard" }
  Front:
    imports: { app: http }
    operations:
      start: { process: "exec sleep 100000" }
vms:
  data: { cloud: local }
  web: { cloud: local }
components:
  cache: { type: Cache, on: data, parameters: { size: "${size}" } }
  shelf: { type: Shelf, on: data, parameters: { size: "${size}" } }
  app: { type: App, on: web, count: "${apps}", bind: { cache: cache } }
  listener: { type: Listener, on: web, count: "${apps}", bind: { cache: cache } }
  calm: { type: App, on: web, count: "${apps}", bind: { cache: shelf } }
  front: { type: Front, on: data, count: "${apps}", bind: { app: app } }
"#;

/// A site with all of it applied, the caches first: so every client knew one when it started.
fn cached(name: &str) -> (Site, PathBuf) {
    let site = Site::open(name);
    let path = site.place.join("cached.yaml");
    fs::write(&path, CACHED).unwrap();
    site.done(&["apply", path.to_str().unwrap(), "--yes"]);
    site.done(&["apply", path.to_str().unwrap(), "--yes", "--set", "apps=1"]);
    (site, path)
}

fn says(path: &PathBuf) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_restarts_with_new_values_and_exactly_the_clients_that_know_the_old_ones_follow() {
    let (site, _) = cached("following");
    let mark = site.file("cached/cache[0]", "mark").await;
    let (before, after) = (says(&mark), site.status().await.newest_event);
    // A refusal is returned to the client that made the request, and leaves no gap in the event numbers.
    site.refused(&["component", "remove", "cached/cache[0]"]);
    site.done(&["component", "restart", "cached/cache[0]"]);
    // The command has waited for all of it: a client with a `rebind` was notified, one without has restarted, and its
    // dependents are started again.
    for component in ["cached/app[0]", "cached/front[0]", "cached/listener[0]"] {
        assert_eq!(site.state(component).await, "started", "{component}");
    }
    assert_ne!(says(&mark), before);
    assert_eq!(says(&site.file("cached/app[0]", "told").await), says(&mark));
    assert_eq!(says(&site.file("cached/listener[0]", "heard").await), says(&mark));
    let told = site.events_since(after).await;
    assert_eq!(told.first().map(|event| event.number), Some(after + 1));
    assert_eq!(order(&told, "stopping"), ["cached/cache[0]", "cached/front[0]", "cached/app[0]"]);
    assert_eq!(order(&told, "started"), ["cached/cache[0]", "cached/app[0]", "cached/front[0]"]);

    // A provider that restarts with the same values disturbs no client.
    let after = site.status().await.newest_event;
    site.done(&["component", "restart", "cached/shelf[0]"]);
    assert_eq!(order(&site.events_since(after).await, "stopping"), ["cached/shelf[0]"]);
    site.audit(&[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_is_replaced_and_the_plan_says_which_clients_restart() {
    let (site, path) = cached("followed");
    let arguments = ["--set", "apps=1", "--set", "size=2"];
    let plan = site.done(&[&["plan", path.to_str().unwrap(), "--json"][..], &arguments].concat());
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    // The shelf is known to have the same mark again.
    let stops = ["app[0]", "cache[0]", "front[0]", "shelf[0]"];
    assert_eq!(plan["forecast"]["stopped"], serde_json::json!(stops));
    let after = site.status().await.newest_event;
    site.done(&[&["apply", path.to_str().unwrap(), "--yes"][..], &arguments].concat());
    let mut stopped = order(&site.events_since(after).await, "stopping");
    stopped.sort();
    assert_eq!(stopped, stops.map(|it| format!("cached/{it}")));
    let mark = site.file("cached/cache[0]", "mark").await;
    assert_eq!(says(&site.file("cached/app[0]", "told").await), says(&mark));
    site.audit(&[]);
}
