//! Stories of bounds: time limits, turns, sizes, garbage, and what is left at the end.

mod stage;

use protocol::{ComponentId, HostOutcome, HostTask, Kind, Work};
use serde_json::json;
use stage::{Stage, eventually, marked, name, recipe, settings, start, task, task_of};
use std::{fs, sync::Arc};

#[tokio::test]
async fn a_command_beyond_its_time_limit_is_ended_with_all_that_it_started() {
    let mut stage = Stage::new().await;
    let install =
        json!({ "run": "echo at work; trap '' TERM; (sleep 1000; true) & sleep 1000; true", "time_limit_ms": 200 });
    let detail = stage.fail(&task(1, &recipe(json!({ "install": install })), Work::Prepare)).await;
    assert_eq!(detail, "install: timed out after 200ms\nat work");
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn a_command_leaves_nothing_behind_even_when_it_succeeds() {
    let mut stage = Stage::new().await;
    stage.carry_out(&task(1, &recipe(json!({ "install": { "run": "sleep 1000 & true" } })), Work::Prepare)).await;
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn a_failure_tells_the_end_of_a_long_output() {
    let mut stage = Stage::new().await;
    let install = json!({ "run": "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; exit 9" });
    let detail = stage.fail(&task(1, &recipe(json!({ "install": install })), Work::Prepare)).await;
    assert!(detail.starts_with("install: exit code 9\nline ") && detail.ends_with("line 1999"), "{detail}");
    assert!(detail.len() < 2200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installations_take_turns() {
    let mut stage = Stage::new().await;
    // A directory can be made only by one: whoever meets another one fails.
    let install = json!({ "run": "mkdir ../../lock && sleep 0.1 && rmdir ../../lock" });
    let recipe = recipe(json!({ "install": install, "purge": install }));
    for component in 1..=4 {
        stage.begin(&task_of(component, 1, &recipe, Work::Prepare));
    }
    for _ in 1..=4 {
        let outcome = stage.outcome().await;
        assert!(matches!(outcome, HostOutcome::Done { .. }), "{outcome:?}");
    }
    // Removing takes turns with installing.
    stage.begin(&task_of(1, 2, &recipe, Work::Purge));
    stage.begin(&task_of(5, 1, &recipe, Work::Prepare));
    for _ in 1..=2 {
        let outcome = stage.outcome().await;
        assert!(matches!(outcome, HostOutcome::Done { .. }), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_purge_runs_its_command_once_and_removes_the_directory() {
    let mut stage = Stage::new().await;
    let recipe = recipe(json!({ "purge": { "run": "pwd >> ../../purged" } }));
    stage.carry_out(&task(1, &recipe, Work::Prepare)).await;
    assert!(stage.place(1).exists());
    let purge = task(2, &recipe, Work::Purge);
    stage.carry_out(&purge).await;
    assert!(!stage.place(1).exists());
    // Asked again, because nobody lived to hear the answer.
    stage.reopen(vec![purge.clone()]).await;
    stage.done(&purge).await;
    assert_eq!(fs::read_to_string(stage.directory.join("purged")).unwrap().lines().count(), 1);
    assert!(stage.host().logs(ComponentId(1), 100).await.is_err());
}

#[tokio::test]
async fn a_purge_that_fails_keeps_the_directory() {
    let mut stage = Stage::new().await;
    let recipe = recipe(json!({ "purge": { "run": "exit 1" } }));
    stage.carry_out(&task(1, &recipe, Work::Prepare)).await;
    assert_eq!(stage.fail(&task(2, &recipe, Work::Purge)).await, "purge: exit code 1");
    assert!(stage.place(1).exists());
}

#[tokio::test]
async fn garbage_for_a_recipe_fails_the_task_and_nothing_else() {
    let mut stage = Stage::new().await;
    for (serial, garbage) in
        [&b""[..], b"\xff\xfe", b"{\"version\":1,\"x\":1}", b"[[[[", b"{\"version\":9}"].iter().enumerate()
    {
        let kind = Arc::new(Kind { recipe: (*garbage).into(), ..Kind::default() });
        let serial = u64::try_from(serial).unwrap();
        for work in [Work::Prepare, start(), Work::Purge] {
            let task = HostTask { component: ComponentId(1), serial, name: name("app"), kind: kind.clone(), work };
            let detail = stage.fail(&task).await;
            assert!(detail.contains("recipe"), "{detail}");
        }
    }
    // What never started can be stopped, whatever its recipe.
    stage.carry_out(&task(9, &json!("garbage"), Work::Stop)).await;
}

#[tokio::test]
async fn silly_times_are_waited_for_without_a_panic() {
    let mut stage = Stage::new().await;
    let (long, none) = (u64::MAX, 0);
    let patient = recipe(json!({
        "install": { "run": "true", "time_limit_ms": long },
        "start": { "process": { "run": "exec sleep 1000" } },
        "check": {
            "probe": { "command": { "run": "true" } },
            "interval_ms": long, "ready_within_ms": long, "attempt_ms": long, "liveness_ms": long
        },
        "stop": { "grace_ms": long }
    }));
    stage.carry_out(&task(1, &patient, Work::Prepare)).await;
    stage.carry_out(&task(2, &patient, start())).await;
    stage.carry_out(&task(3, &patient, Work::Stop)).await;
    let hasty = recipe(json!({
        "start": { "process": { "run": "exec sleep 1000" } },
        "check": { "probe": { "command": { "run": "exec sleep 1000" } }, "interval_ms": none, "ready_within_ms": none },
        "stop": { "grace_ms": none }
    }));
    let detail = stage.fail(&task(4, &hasty, start())).await;
    assert!(detail.contains("not ready within 0ns"), "{detail}");
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn what_a_purge_has_left_is_removed_by_the_next_agent() {
    let mut stage = Stage::new().await;
    stage.host = None;
    fs::create_dir_all(stage.directory.join("7.leaving/home")).unwrap();
    stage.reopen(Vec::new()).await;
    assert!(!stage.directory.join("7.leaving").exists());
}

#[tokio::test]
async fn the_log_says_where_a_component_died_on_a_line_of_its_own() {
    let mut stage = Stage::new().await;
    let operations = json!({ "start": { "process": { "run": "printf 'half a line'; exec sleep 1000" } } });
    stage.carry_out(&task(1, &recipe(operations.clone()), start())).await;
    eventually("it has written", || stage.read(1, "../output.log").ends_with("half a line")).await;
    stage::kill(stage.pid(1), rustix::process::Signal::KILL);
    let outcome = stage.outcome().await;
    assert!(matches!(outcome, HostOutcome::Died { .. }), "{outcome:?}");
    stage.carry_out(&task(2, &recipe(operations), start())).await;
    let logs = stage.host().logs(ComponentId(1), 10_000).await.unwrap();
    let lines: Vec<&str> = logs.lines().map(|line| line.split("UTC, ").last().unwrap()).collect();
    let told = ["task 1: start", "half a line", "task 1: died: ended by signal 9 (KILL)", "task 2: start"];
    assert_eq!(lines[..4], told, "{logs}");
}

#[tokio::test]
async fn output_says_which_operation_wrote_it_and_is_kept_short() {
    let mut settings = settings(&stage::fresh_directory());
    settings.output_bytes_max = 10_000;
    let mut stage = Stage::with(settings, Vec::new()).await;
    let recipe = recipe(json!({
        "install": { "run": "echo installing" },
        "start": { "process": { "run": "while read -r line; do echo $line; done < talk; echo > said; exec sleep 1000" } },
        "configure": { "run": "mkfifo talk" }
    }));
    stage.carry_out(&task(1, &recipe, Work::Prepare)).await;
    stage.carry_out(&task(2, &recipe, start())).await;
    let logs = stage.host().logs(ComponentId(1), 10_000).await.unwrap();
    assert!(logs.contains("UTC, task 1: install\ninstalling\n=== ") && logs.contains("UTC, task 2: start\n"), "{logs}");

    // It talks more than is kept, while nobody asks anything of it.
    let talk = stage.home(1).join("talk");
    let text = (0..2_000).fold(String::new(), |text, line| format!("{text}line {line}\n"));
    tokio::task::spawn_blocking(move || fs::write(talk, text).unwrap()).await.unwrap();
    let (newer, older) = (stage.place(1).join("output.log"), stage.place(1).join("output.log.1"));
    let length = |path: &std::path::Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let said = stage.home(1).join("said");
    eventually("it is shortened", || said.exists() && length(&older) == 10_000 && length(&newer) < 10_000).await;
    let logs = stage.host().logs(ComponentId(1), 5_000).await.unwrap();
    assert!(logs.len() <= 5_000 && logs.ends_with("line 1999\n"), "{logs}");
    assert!(logs.starts_with("line "), "{logs}");
}
