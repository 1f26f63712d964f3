//! Values that change while clients run: whoever was told the old ones is told the new ones, by `rebind` or by a restart, in
//! safe order; and nobody else is disturbed.

use crate::site::{Site, order};
use std::{fs, path::PathBuf};

/// A cache with another mark after each start, one whose mark stays, and those who could do without either.
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

/// A site with all of it applied, the caches first: so everybody was told of one when it started.
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
async fn a_provider_comes_back_with_new_values_and_exactly_those_who_were_told_the_old_ones_follow() {
    let (site, _) = cached("following");
    let mark = site.file("cached/cache[0]", "mark").await;
    let (before, after) = (says(&mark), site.status().await.newest_event);
    // What is refused is told to whoever asked, and leaves no gap for those who follow.
    site.refused(&["component", "remove", "cached/cache[0]"]);
    site.done(&["component", "restart", "cached/cache[0]"]);
    // The command has waited for all of it: whoever has a `rebind` was told, whoever has none has restarted, and whoever needs
    // that one is back.
    for component in ["cached/app[0]", "cached/front[0]", "cached/listener[0]"] {
        assert_eq!(site.state(component).await, "started", "{component}");
    }
    assert_ne!(says(&mark), before);
    assert_eq!(says(&site.file("cached/app[0]", "told").await), says(&mark));
    assert_eq!(says(&site.file("cached/listener[0]", "heard").await), says(&mark));
    let told = site.told_since(after).await;
    assert_eq!(told.first().map(|event| event.number), Some(after + 1));
    assert_eq!(order(&told, "stopping"), ["cached/cache[0]", "cached/front[0]", "cached/app[0]"]);
    assert_eq!(order(&told, "started"), ["cached/cache[0]", "cached/app[0]", "cached/front[0]"]);

    // One that comes back as it was disturbs nobody.
    let after = site.status().await.newest_event;
    site.done(&["component", "restart", "cached/shelf[0]"]);
    assert_eq!(order(&site.told_since(after).await, "stopping"), ["cached/shelf[0]"]);
    site.audit(&[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_is_replaced_and_the_plan_says_who_restarts() {
    let (site, path) = cached("followed");
    let arguments = ["--set", "apps=1", "--set", "size=2"];
    let plan = site.done(&[&["plan", path.to_str().unwrap(), "--json"][..], &arguments].concat());
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    // Of the shelf it is known that it has the same mark again.
    let stops = ["app[0]", "cache[0]", "front[0]", "shelf[0]"];
    assert_eq!(plan["forecast"]["stopped"], serde_json::json!(stops));
    let after = site.status().await.newest_event;
    site.done(&[&["apply", path.to_str().unwrap(), "--yes"][..], &arguments].concat());
    let mut stopped = order(&site.told_since(after).await, "stopping");
    stopped.sort();
    assert_eq!(stopped, stops.map(|it| format!("cached/{it}")));
    let mark = site.file("cached/cache[0]", "mark").await;
    assert_eq!(says(&site.file("cached/app[0]", "told").await), says(&mark));
    site.audit(&[]);
}
