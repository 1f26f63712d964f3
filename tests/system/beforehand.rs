//! What is told before anything is changed: what cannot be had, what nobody knows, who would be left alone. And where why
//! something failed is found.

use crate::site::Site;
use cloud_manager::document::ComponentStatus;

/// The components that are started, in order of their names.
async fn started(site: &Site) -> Vec<String> {
    let components = site.status().await.components.into_iter();
    let mut names: Vec<String> =
        components.filter(|it| it.state == ComponentStatus::Started).map(|it| it.name).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_that_is_used_only_if_it_is_there_cannot_be_removed_under_its_users() {
    let site = Site::open("optional");
    let own = "holdfast: 1\napplication: own\ntypes:\n  User: { imports: { store: { export: blobs, weak: 0 } } }\nvms: { v: { cloud: local } }\ncomponents: { user: { type: User, bind: { store: { from: shared/store } } } }\n";
    let shared = "holdfast: 1\napplication: shared\ntypes: { Store: { exports: { blobs: [] } } }\nvms: { v: { cloud: local } }\ncomponents: { store: { type: Store } }\n";
    std::fs::write(site.place.join("shared.yaml"), shared).unwrap();
    std::fs::write(site.place.join("own.yaml"), own).unwrap();
    site.done(&["apply", "shared.yaml", "--yes"]);
    site.done(&["apply", "own.yaml", "--yes"]);
    let told = site.refused(&["remove", "shared", "--yes"]);
    assert!(told.starts_with("own uses application shared (holdfast remove shared --with-users"), "{told}");
    assert_eq!(started(&site).await, ["own/user[0]", "shared/store[0]"]);
    site.done(&["remove", "shared", "--with-users", "--yes"]);
    assert_eq!(started(&site).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_had_is_told_with_its_place_before_anything_is_changed() {
    let mut site = Site::open("missing");
    let text = r#"holdfast: 1
application: a
include: sub/keys.yaml
secrets:
  word: { environment: HOLDFAST_TEST_WORD }
types:
  Top:
    parameters: { word: { type: secret }, key: { type: secret } }
    operations: { start: { process: "test {{ parameters.key }} = of-sub && exec sleep 100000" } }
vms: { v: { cloud: local } }
components:
  top: { type: Top, parameters: { word: { secret: word }, key: { secret: key } } }
"#;
    std::fs::write(site.place.join("a.yaml"), text).unwrap();
    std::fs::create_dir(site.place.join("sub")).unwrap();
    std::fs::write(site.place.join("sub/keys.yaml"), "secrets:\n  key: { file: key.pem }\n").unwrap();
    for command in [&["apply", "a.yaml", "--dry-run"][..], &["apply", "a.yaml", "--yes"]] {
        let told = site.refused(command);
        let word = "a.yaml:5:3: secret `word` is unavailable: the environment variable HOLDFAST_TEST_WORD is not set";
        let key = "sub/keys.yaml:2:3: secret `key` is unavailable: the file sub/key.pem cannot be read: No such file";
        assert!(told.contains(word) && told.contains(key), "{told}");
    }
    // What is empty is no secret.
    std::fs::write(site.place.join("sub/key.pem"), "\n").unwrap();
    site.environment.push(("HOLDFAST_TEST_WORD".into(), "word".into()));
    let told = site.refused(&["apply", "a.yaml", "--yes"]);
    assert!(told.contains("the file sub/key.pem is empty") && !told.contains("`word`"), "{told}");
    std::fs::write(site.place.join("sub/key.pem"), "of-sub\n").unwrap();

    // A cloud that is not there is told by plan, dry run and apply.
    std::fs::write(site.place.join("a.yaml"), text.replace("cloud: local", "cloud: loacl")).unwrap();
    for command in [&["plan", "a.yaml"][..], &["apply", "a.yaml", "--dry-run"], &["apply", "a.yaml", "--yes"]] {
        let told = site.refused(command);
        assert!(told.contains("✗ vms v: there is no cloud \"loacl\" (known: local)"), "{told}");
    }
    assert_eq!(started(&site).await, [""; 0]);
    std::fs::write(site.place.join("a.yaml"), text).unwrap();
    site.done(&["apply", "a.yaml", "--yes"]);
    assert_eq!(started(&site).await, ["a/top[0]"]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_what_failed_before_it_could_write_says_why() {
    let site = Site::open("silent");
    let text = "holdfast: 1\napplication: a\ntypes:\n  Base: { exports: { base: [host] }, values: { host: \"{{ [1][host | length] }}\" }, patience: { prepare: { retries: 0 } } }\nvms: { v: { cloud: local } }\ncomponents: { base: { type: Base } }\n";
    std::fs::write(site.place.join("a.yaml"), text).unwrap();
    site.refused(&["apply", "a.yaml", "--yes"]);
    let told = site.done(&["component", "logs", "a/base[0]"]);
    assert!(told.contains("prepare failed: template of value \"host\": "), "{told}");
    site.remove_everything().await;
}
