//! Checks before anything is changed: unavailable secrets, unknown clouds, applications that are in use. And where the
//! reason of a failure is found.

use crate::site::Site;
use cloud_manager::document::ComponentStatus;

/// The started components, in order of their names.
async fn started(site: &Site) -> Vec<String> {
    let components = site.status().await.components.into_iter();
    let mut names: Vec<String> =
        components.filter(|it| it.state == ComponentStatus::Started).map(|it| it.name).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_with_only_optional_users_cannot_be_removed_before_them() {
    let site = Site::open("optional");
    let own = "holdfast: 1\napplication: own\ntypes:\n  User: { imports: { store: { export: blobs, weak: 0 } } }\nvms: { v: { cloud: local } }\ncomponents: { user: { type: User, bind: { store: { from: shared/store } } } }\n";
    let shared = "holdfast: 1\napplication: shared\ntypes: { Store: { exports: { blobs: [] } } }\nvms: { v: { cloud: local } }\ncomponents: { store: { type: Store } }\n";
    std::fs::write(site.place.join("shared.yaml"), shared).unwrap();
    std::fs::write(site.place.join("own.yaml"), own).unwrap();
    site.done(&["apply", "shared.yaml", "--yes"]);
    site.done(&["apply", "own.yaml", "--yes"]);
    let output = site.refused(&["remove", "shared", "--yes"]);
    assert!(output.starts_with("own uses application shared (holdfast remove shared --with-users"), "{output}");
    assert_eq!(started(&site).await, ["own/user[0]", "shared/store[0]"]);
    site.done(&["remove", "shared", "--with-users", "--yes"]);
    assert_eq!(started(&site).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_unavailable_is_reported_with_its_place_before_anything_is_changed() {
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
        let output = site.refused(command);
        let word = "a.yaml:5:3: secret `word` is unavailable: the environment variable HOLDFAST_TEST_WORD is not set";
        let key = "sub/keys.yaml:2:3: secret `key` is unavailable: the file sub/key.pem cannot be read: No such file";
        assert!(output.contains(word) && output.contains(key), "{output}");
    }
    // An empty text is not a secret.
    std::fs::write(site.place.join("sub/key.pem"), "\n").unwrap();
    site.environment.push(("HOLDFAST_TEST_WORD".into(), "word".into()));
    let output = site.refused(&["apply", "a.yaml", "--yes"]);
    assert!(output.contains("the file sub/key.pem is empty") && !output.contains("`word`"), "{output}");
    std::fs::write(site.place.join("sub/key.pem"), "of-sub\n").unwrap();

    // An unknown cloud is reported by plan, dry run and apply.
    std::fs::write(site.place.join("a.yaml"), text.replace("cloud: local", "cloud: loacl")).unwrap();
    for command in [&["plan", "a.yaml"][..], &["apply", "a.yaml", "--dry-run"], &["apply", "a.yaml", "--yes"]] {
        let output = site.refused(command);
        assert!(output.contains("✗ vms v: there is no cloud \"loacl\" (known: local)"), "{output}");
    }
    assert_eq!(started(&site).await, [""; 0]);
    std::fs::write(site.place.join("a.yaml"), text).unwrap();
    site.done(&["apply", "a.yaml", "--yes"]);
    assert_eq!(started(&site).await, ["a/top[0]"]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_show_why_an_operation_failed_before_it_wrote_anything() {
    let site = Site::open("silent");
    let text = "holdfast: 1\napplication: a\ntypes:\n  Base: { exports: { base: [host] }, values: { host: \"{{ [1][host | length] }}\" }, patience: { prepare: { retries: 0 } } }\nvms: { v: { cloud: local } }\ncomponents: { base: { type: Base } }\n";
    std::fs::write(site.place.join("a.yaml"), text).unwrap();
    site.refused(&["apply", "a.yaml", "--yes"]);
    let output = site.done(&["component", "logs", "a/base[0]"]);
    assert!(output.contains("prepare failed: template of value \"host\": "), "{output}");
    site.remove_everything().await;
}
