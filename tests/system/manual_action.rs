//! An operator can always act on a failure, even while a change waits for it.

use crate::site::Site;
use cloud_manager::document::EventKind;
use std::path::{Path, PathBuf};

/// An application whose providers fail to start, or to be purged, as long as a file exists.
fn file(site: &Site, name: &str, components: &str) -> PathBuf {
    let bad = |what: &str| site.place.join(what).display().to_string();
    let (start, purge) = (bad("start.bad"), bad("purge.bad"));
    let text = format!(
        "holdfast: 1
application: a
variables: {{ word: one }}
types:
  Provider:
    parameters: {{ word: one }}
    exports: {{ x: {{ values: [host] }} }}
    operations:
      start: {{ process: \"test ! -e {start} || exit 1; touch ready; exec sleep 100000\" }}
      check: {{ command: \"test -e ready\", interval: 20ms }}
      purge: \"test ! -e {purge} # {{{{ parameters.word }}}}\"
    patience: {{ start: {{ retries: 0 }}, purge: {{ retries: 0 }} }}
  Client:
    imports: {{ p: {{ export: x, strong: all }} }}
    operations: {{ start: {{ process: exec sleep 100000 }} }}
vms: {{ v: {{ cloud: local }} }}
components:
{components}"
    );
    let path = site.place.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn apply(site: &Site, path: &Path) -> String {
    site.done(&["apply", path.to_str().unwrap(), "--yes"])
}

/// Makes something fail, or not any more.
fn bad(site: &Site, what: &str, is: bool) {
    let path = site.place.join(what);
    if is { std::fs::write(path, "").unwrap() } else { std::fs::remove_file(path).unwrap() }
}

async fn states(site: &Site) -> Vec<(String, String)> {
    let components = site.status().await.components;
    components.into_iter().map(|it| (it.name, it.state.to_string())).collect()
}

fn started(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| ((*name).to_owned(), "started".to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_is_carried_out_in_the_middle_of_a_change() {
    let site = Site::open("retry-in-the-middle");
    let old = "  old: { type: Provider }\n  c: { type: Client, bind: { p: old } }\n";
    apply(&site, &file(&site, "one.yaml", old));
    bad(&site, "start.bad", true);
    // Make before break: the new one fails to start, and the old one is not removed yet.
    let new = "  new: { type: Provider }\n  c: { type: Client, bind: { p: new } }\n";
    let path = file(&site, "two.yaml", new);
    let refused = site.refused(&["apply", path.to_str().unwrap(), "--yes", "--strategy", "up-then-down"]);
    assert!(refused.contains("a/new[0]"), "{refused}");
    bad(&site, "start.bad", false);
    let seen = site.status().await.newest_event;
    site.done(&["component", "retry", "a/new[0]"]);
    site.events_until(seen, |event| event.what == EventKind::ChangeDone && event.change == Some(2)).await;
    assert_eq!(states(&site).await, started(&["a/c[0]", "a/new[0]"]));
    site.done(&["remove", "a", "--yes"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_proceeds_while_the_failed_change_still_waits() {
    let site = Site::open("rollback");
    let components = |count: u32| {
        format!("  p: {{ type: Provider, count: {count} }}\n  c: {{ type: Client, bind: {{ p: all }} }}\n")
    };
    apply(&site, &file(&site, "one.yaml", &components(1)));
    bad(&site, "start.bad", true);
    let path = file(&site, "one.yaml", &components(2));
    site.refused(&["apply", path.to_str().unwrap(), "--yes"]);
    site.done(&["rollback", "a", "--yes"]);
    assert_eq!(states(&site).await, started(&["a/c[0]", "a/p[0]"]));
    assert_eq!(site.status().await.changes.len(), 0);
    bad(&site, "start.bad", false);
    site.done(&["remove", "a", "--yes"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_purge_can_be_retried_although_another_component_has_the_same_name() {
    let site = Site::open("purge");
    let components = |word: &str| format!("  p: {{ type: Provider, parameters: {{ word: {word} }} }}\n");
    apply(&site, &file(&site, "one.yaml", &components("one")));
    bad(&site, "purge.bad", true);
    let path = file(&site, "one.yaml", &components("two"));
    site.refused(&["apply", path.to_str().unwrap(), "--yes"]);
    bad(&site, "purge.bad", false);
    let seen = site.status().await.newest_event;
    site.done(&["component", "retry", "a/p[0]"]);
    site.events_until(seen, |event| event.what == EventKind::ChangeDone && event.change == Some(2)).await;
    assert_eq!(states(&site).await, started(&["a/p[0]"]));
    site.done(&["remove", "a", "--yes"]);
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vm_that_never_joined_is_removed_with_its_components() {
    let site = Site::open("ghost");
    site.done(&["vm", "add", "ghost", "--no-wait"]);
    site.done(&["component", "add", "g", "--on", "ghost", "--start", "exec sleep 1000", "--no-wait"]);
    site.done(&["vm", "remove", "ghost"]);
    let status = site.status().await;
    assert!(status.changes.is_empty() && status.vms.is_empty() && status.components.is_empty(), "{status:?}");
}
