//! Data of real processes: what a database has written is there after every change, and ends only when an operator says so.

use crate::site::{Site, until};
use cloud_manager::document::{DataDocument, DataFate, Fate, Plan};
use std::path::{Path, PathBuf};

/// A database that writes one row at each start, and a page that needs it.
const LEDGER: &str = r#"holdfast: 1
application: ledger
types:
  Database:
    parameters: { memory: 64 }
    exports: { sql: { values: { address: text } } }
    values: { address: "{{ host }}:5432" }
    data: files
    operations:
      start: { process: "echo {{ parameters.memory }} >> {{ data.files }}/rows; echo started > ready; exec sleep 1000" }
      check: { command: "test -e ready" }
  Page:
    imports: { db: sql }
    operations: { start: { process: "exec sleep 1000" } }
vms:
  data: { count: 2, cloud: local }
components:
  database: { type: Database, on: data }
  page: { type: Page, on: "data[1]" }
"#;

/// The file of an application, below the place of the site.
fn written(site: &Site, text: &str) -> String {
    let path = site.place.join("ledger.yaml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

async fn kept(site: &Site) -> Vec<DataDocument> {
    site.client.get("/v1/data").await.unwrap()
}

/// The file of rows, as `data list` says where it is.
async fn rows_file(site: &Site) -> PathBuf {
    let kept = kept(site).await;
    Path::new(kept[0].directories[0].path.as_ref().unwrap()).join("rows")
}

fn rows(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

fn planned(site: &Site, path: &str, options: &[&str]) -> Plan {
    let arguments: Vec<&str> = ["plan", path, "--json"].into_iter().chain(options.iter().copied()).collect();
    let output = site.holdfast(&arguments);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_parameter_replaces_a_database_and_keeps_its_data() {
    let mut site = Site::open("data-kept");
    let path = written(&site, LEDGER);
    site.done(&["apply", &path, "--yes"]);
    let file = rows_file(&site).await;
    assert_eq!(rows(&file), "64\n");

    // The plan says of each component what becomes of it.
    let changed = LEDGER.replace("memory: 64", "memory: 128");
    written(&site, &changed);
    let plan = planned(&site, &path, &[]);
    let fate = |key: &str| plan.applications[0].fates[&key.parse().unwrap()].clone();
    assert_eq!((fate("database[0]").is, fate("database[0]").data_kept), (Fate::Replaced, true));
    assert_eq!(fate("database[0]").why, ["parameter memory: 64 → 128"]);
    assert_eq!(
        (fate("page[0]").is, fate("page[0]").why),
        (Fate::Restarted, vec!["it depends on database[0]".to_owned()])
    );
    assert_eq!(plan.data[0].fate, DataFate::Kept);
    let told = site.done(&["apply", &path, "--yes"]);
    assert!(told.contains("± database[0] is replaced (data kept): parameter memory: 64 → 128"), "{told}");
    assert_eq!(rows(&file), "64\n128\n");

    // A restart, a rollback, and new lives of the agent and of the manager.
    site.done(&["component", "restart", "ledger/database[0]"]);
    assert_eq!(rows(&file), "64\n128\n128\n");
    site.done(&["rollback", "ledger", "--yes"]);
    assert_eq!(rows(&file), "64\n128\n128\n64\n");
    site.kill_agent(1).await;
    site.kill_manager();
    site.restart_manager();
    site.done(&["component", "restart", "ledger/database[0]"]);
    assert_eq!(rows(&file), "64\n128\n128\n64\n64\n");
    let list = site.done(&["data", "list"]);
    assert!(list.contains("ledger/database[0]  ledger/data[0]  files  17 B  in use"), "{list}");

    // Two databases never run on the same data.
    let told = site.refused(&["apply", &path, "--yes", "--strategy", "up-then-down"]);
    assert!(told.contains("its replacement cannot start before it has stopped"), "{told}");

    // The scratch directory of the one before was kept, with its logs.
    let previous = site.done(&["component", "logs", "ledger/database[0]", "--previous"]);
    assert!(previous.contains("start"), "{previous}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_is_left_behind_adopted_again_and_deleted_only_on_demand() {
    let site = Site::open("data-ends");
    let path = written(&site, LEDGER);
    site.done(&["apply", &path, "--yes"]);
    let file = rows_file(&site).await;

    // A move is refused, with the reason; nothing has changed.
    written(&site, &LEDGER.replace("on: data }", "on: \"data[1]\" }"));
    let told = site.refused(&["apply", &path, "--yes"]);
    let reason = "ledger/database[0] would start without data on vm ledger/data[1]: its data is on vm ledger/data[0]";
    assert!(told.contains(reason) && told.contains("--start-empty 'ledger/database[0]'"), "{told}");
    let told = site.refused(&["vm", "drain", "ledger/data[0]", "--yes"]);
    assert!(told.contains("its data is on vm ledger/data[0]"), "{told}");
    assert_eq!(rows(&file), "64\n");

    // Removed, its data is left behind, and the plan says so. The same key adopts it again.
    let without = LEDGER
        .replace("database: { type: Database, on: data }", "")
        .replace("page: { type: Page, on: \"data[1]\" }", "");
    written(&site, &without);
    let plan = planned(&site, &path, &[]);
    assert_eq!((plan.data[0].fate, plan.data[0].component.as_str()), (DataFate::LeftBehind, "ledger/database[0]"));
    let told = site.done(&["apply", &path, "--yes"]);
    assert!(told.contains("✗ the data of ledger/database[0] is left behind on vm ledger/data[0]"), "{told}");
    assert_eq!(rows(&file), "64\n");
    assert!(!kept(&site).await[0].in_use);
    written(&site, LEDGER);
    let told = site.done(&["apply", &path, "--yes"]);
    assert!(told.contains("✓ ledger/database[0] adopts the data on vm ledger/data[0]"), "{told}");
    assert_eq!(rows(&file), "64\n64\n");

    // What is in use is not deleted by hand; what was left behind is.
    let told = site.refused(&["data", "delete", "ledger/database[0]", "--yes"]);
    assert!(told.contains("is in use on vm ledger/data[0]"), "{told}");
    written(&site, &without);
    site.done(&["apply", &path, "--yes"]);
    site.done(&["data", "delete", "ledger/database[0]", "--yes"]);
    assert!(!file.exists());
    assert_eq!(kept(&site).await, []);

    // With --delete-data it goes with its component; without, a VM that takes data with it does not go.
    written(&site, LEDGER);
    site.done(&["apply", &path, "--yes"]);
    assert_eq!(rows(&file), "64\n");
    let told = site.refused(&["remove", "ledger", "--yes"]);
    assert!(told.contains("would be deleted, because vm ledger/data[0] is removed (pass --delete-data"), "{told}");
    written(&site, &without);
    site.done(&["apply", &path, "--yes", "--delete-data"]);
    // The agent deletes it when the component is gone.
    until("the data is deleted", || !file.exists()).await;
    written(&site, LEDGER);
    site.done(&["apply", &path, "--yes"]);
    let told = site.done(&["remove", "ledger", "--yes", "--delete-data"]);
    assert!(told.contains("✗ the data of ledger/database[0] on vm ledger/data[0] is DELETED"), "{told}");
    assert_eq!(kept(&site).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_may_let_a_component_start_without_its_data() {
    let site = Site::open("data-empty");
    let path = written(&site, LEDGER);
    site.done(&["apply", &path, "--yes"]);
    let file = rows_file(&site).await;
    written(&site, &LEDGER.replace("on: data }", "on: \"data[1]\" }"));
    let told = site.done(&["apply", &path, "--yes", "--start-empty", "database[0]"]);
    assert!(told.contains("± database[0] is moved"), "{told}");
    assert_eq!(rows(&file), "64\n");
    let all = kept(&site).await;
    let states: Vec<(&str, bool)> = all.iter().map(|it| (it.vm.as_str(), it.in_use)).collect();
    assert_eq!(states, [("ledger/data[0]", false), ("ledger/data[1]", true)]);
    let told = site.refused(&["data", "delete", "ledger/database[0]", "--yes"]);
    assert!(told.contains("ledger/data[0] and ledger/data[1] keep data"), "{told}");
    site.done(&["data", "delete", "ledger/database[0]", "--vm", "ledger/data[0]", "--yes"]);
    assert!(!file.exists());
}
