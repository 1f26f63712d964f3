//! Stories of data: what outlives a component, which component may use it, and how it ends.

mod stage;

use protocol::Work;
use serde_json::{Value, json};
use stage::{Stage, eventually, name, start, task_of};
use std::fs;

/// The file of all rows, below the directory of the host. The key is `app[0]`.
const ROWS: &str = "data/app@0=/files/rows";

/// A database that writes one row at each start.
fn database(row: &str) -> Value {
    let run = format!("echo {row} >> {{{{ data.files }}}}/rows; echo scratch >> rows; exec sleep 1000");
    json!({
        "version": 1,
        "data": { "directories": ["files"] },
        "operations": {
            "start": { "process": { "run": run } },
            "check": { "probe": { "command": { "run": "test -e rows" } }, "liveness_ms": null },
        },
    })
}

fn rows(stage: &Stage) -> String {
    fs::read_to_string(stage.directory.join(ROWS)).unwrap_or_default()
}

#[tokio::test]
async fn data_stays_when_a_component_is_restarted_and_replaced_and_its_scratch_directory_does_not() {
    let mut stage = Stage::new().await;
    let (old, new) = (database("old"), database("new"));
    stage.carry_out(&task_of(1, 1, &old, start())).await;
    stage.carry_out(&task_of(1, 2, &old, Work::Stop)).await;
    stage.carry_out(&task_of(1, 3, &old, start())).await;
    eventually("it has started twice", || rows(&stage) == "old\nold\n").await;
    // Another agent finds it; then another component takes the name.
    stage.reopen(Vec::new()).await;
    assert!(stage.host().data().await.unwrap()[0].in_use);
    stage.carry_out(&task_of(1, 4, &old, Work::Stop)).await;
    stage.carry_out(&task_of(1, 5, &old, Work::Purge)).await;
    let kept = stage.host().data().await.unwrap();
    assert_eq!((kept[0].key.as_str(), kept[0].in_use, kept[0].directories[0].bytes), ("app[0]", false, 8));

    stage.carry_out(&task_of(2, 1, &new, start())).await;
    assert_eq!(rows(&stage), "old\nold\nnew\n");
    assert_eq!(stage.read(2, "rows"), "scratch\n");
    assert!(stage.host().data().await.unwrap()[0].in_use);
    // The scratch directory of the last one is kept, until the next one goes.
    let scratch =
        |stage: &Stage| fs::read_to_string(stage.directory.join("previous/app@0=").join("home").join("rows")).unwrap();
    assert_eq!(scratch(&stage), "scratch\nscratch\n");
    stage.carry_out(&task_of(2, 2, &new, Work::Stop)).await;
    stage.carry_out(&task_of(2, 3, &new, Work::Purge)).await;
    assert_eq!(scratch(&stage), "scratch\n");
    assert!(stage.host().previous_logs(&name("app[0]"), 1_000).await.unwrap().contains("start"));
    assert!(stage.host().previous_logs(&name("app[1]"), 1_000).await.is_err());
}

#[tokio::test]
async fn data_that_is_in_use_is_not_deleted_and_not_used_twice() {
    let mut stage = Stage::new().await;
    let recipe = database("row");
    stage.carry_out(&task_of(1, 1, &recipe, start())).await;
    let refused = stage.host().delete_data(&name("app[0]")).await.unwrap_err().to_string();
    assert_eq!(refused, "the data of app[0] is in use");
    // Another one of the same name does not start before the run of the first has ended, whichever agent is asked.
    stage.reopen(Vec::new()).await;
    let failed = stage.fail(&task_of(2, 1, &recipe, start())).await;
    assert!(failed.contains("the data of app[0] is in use by another component of that name"), "{failed}");
    assert_eq!(rows(&stage), "row\n");
    stage.carry_out(&task_of(1, 2, &recipe, Work::Stop)).await;
    stage.carry_out(&task_of(1, 3, &recipe, Work::Purge)).await;
    stage.carry_out(&task_of(2, 2, &recipe, start())).await;
    stage.carry_out(&task_of(2, 3, &recipe, Work::Stop)).await;
    assert!(stage.host().delete_data(&name("app[0]")).await.is_err(), "it may start again");
    stage.carry_out(&task_of(2, 4, &recipe, Work::Purge)).await;
    assert!(stage.host().delete_data(&name("app[0]")).await.unwrap());
    assert_eq!(stage.host().data().await.unwrap(), []);
    // Asked again, because the answer was lost.
    assert!(!stage.host().delete_data(&name("app[0]")).await.unwrap());
}
