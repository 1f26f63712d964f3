//! Stories of an agent that goes and comes back, while components do not notice.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod stage;

use protocol::{HostOutcome, HostTask, Work};
use rustix::process::Signal;
use serde_json::json;
use stage::{
    Cleaning, Stage, eventually, fresh_directory, is_alive, kill, marked, recipe, settings, sleeper, start, task,
    task_of,
};
use std::{fs, os::unix::process::ExitStatusExt, path::PathBuf, process::Command, time::Duration};
use tokio::sync::mpsc;
use vm_agent::host::{Host, Moment};

#[tokio::test]
async fn a_component_outlives_the_agent_and_is_watched_by_the_next_one() {
    let mut stage = Stage::new().await;
    let start = task(1, &sleeper(), start());
    stage.carry_out(&start).await;
    let pid = stage.pid(1);
    stage.reopen(Vec::new()).await;
    assert!(is_alive(pid));
    assert!(stage.is_silent());
    kill(pid, Signal::KILL);
    let detail = stage.died(&start).await;
    assert!(detail.starts_with("ended"), "{detail}");
}

#[tokio::test]
async fn a_death_in_the_agents_absence_is_told_when_it_is_back_and_again_if_nobody_heard() {
    let mut stage = Stage::new().await;
    let start = task(1, &sleeper(), start());
    stage.carry_out(&start).await;
    stage.host = None;
    kill(stage.pid(1), Signal::KILL);
    for _ in 0..2 {
        stage.reopen(Vec::new()).await;
        stage.died(&start).await;
    }
    // The next start makes it a thing of the past.
    stage.carry_out(&task(2, &sleeper(), Work::Start { bindings: Vec::new() })).await;
    eventually("it has begun", || stage.read(1, "starts").lines().count() == 2).await;
    stage.reopen(Vec::new()).await;
    stage.carry_out(&task(3, &sleeper(), Work::Stop)).await;
}

#[tokio::test]
async fn a_stop_reaches_what_an_earlier_life_has_started() {
    let mut stage = Stage::new().await;
    stage.carry_out(&task(1, &sleeper(), start())).await;
    let stop = task(2, &sleeper(), Work::Stop);
    stage.reopen(vec![stop.clone()]).await;
    stage.done(&stop).await;
    assert_eq!(marked(&stage.home(1)), [0; 0]);
    assert!(stage.is_silent());
}

#[tokio::test]
async fn a_start_that_was_done_is_not_done_again_and_hands_out_the_same_values() {
    let mut stage = Stage::new().await;
    let mut recipe = sleeper();
    recipe["values"] = json!({ "port": { "template": "{{ free_port() }}", "at": "start" } });
    let start = task(1, &recipe, start());
    let values = stage.carry_out(&start).await;
    let pid = stage.pid(1);
    // Its outcome was never journalled.
    stage.reopen(vec![start.clone()]).await;
    assert_eq!(stage.done(&start).await, values);
    assert_eq!((stage.pid(1), stage.read(1, "starts").lines().count()), (pid, 1));
    kill(pid, Signal::KILL);
    stage.died(&start).await;
}

#[tokio::test]
async fn a_script_is_watched_by_the_next_agent_too() {
    let mut stage = Stage::new().await;
    let recipe = recipe(json!({
        "start": { "script": { "run": "sleep 1000 & touch up" } },
        "check": { "probe": { "command": { "run": "test -e up" } }, "liveness_ms": 20, "failures_max": 2 },
        "stop": { "command": { "run": "true" } }
    }));
    let start = task(1, &recipe, start());
    stage.carry_out(&start).await;
    stage.reopen(Vec::new()).await;
    fs::remove_file(stage.home(1).join("up")).unwrap();
    stage.died(&start).await;
    // What the script started is ended, though neither script nor agent is what it was.
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn a_process_that_has_got_the_same_number_is_not_taken_for_the_component() {
    let mut stage = Stage::new().await;
    let start = task(1, &sleeper(), start());
    stage.carry_out(&start).await;
    stage.host = None;
    let pid = stage.pid(1);
    let mut record = stage.record(1);
    let start_time = record["run"]["process"]["start_time"].as_u64().unwrap();
    record["run"]["process"]["start_time"] = json!(start_time - 1);
    stage.write_record(1, &record);
    stage.reopen(Vec::new()).await;
    stage.died(&start).await;
    // Whoever it is now, it is left alone; also by a stop.
    stage.carry_out(&task(2, &sleeper(), Work::Stop)).await;
    assert!(is_alive(pid));
}

#[tokio::test]
async fn what_ran_before_the_machine_was_restarted_is_not_looked_for() {
    let mut stage = Stage::new().await;
    let start = task(1, &sleeper(), start());
    stage.carry_out(&start).await;
    stage.host = None;
    let pid = stage.pid(1);
    let mut record = stage.record(1);
    record["run"]["process"]["boot"] = json!("another");
    stage.write_record(1, &record);
    stage.reopen(Vec::new()).await;
    assert!(stage.died(&start).await.starts_with("ended by a reboot"));
    assert!(is_alive(pid));
}

#[tokio::test]
async fn children_of_a_component_that_died_in_the_agents_absence_are_ended() {
    let mut stage = Stage::new().await;
    let recipe = recipe(json!({ "start": { "process": { "run": "sleep 1000 & wait" } } }));
    let start = task(1, &recipe, start());
    stage.carry_out(&start).await;
    eventually("it has a child", || marked(&stage.home(1)).len() == 2).await;
    stage.host = None;
    kill(stage.pid(1), Signal::KILL);
    eventually("only the child is left", || marked(&stage.home(1)).len() == 1).await;
    stage.reopen(Vec::new()).await;
    stage.died(&start).await;
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn a_command_that_outlived_the_agent_is_ended_before_it_is_run_again() {
    let mut stage = Stage::new().await;
    // Twice at the same time it would fail. The first one never ends by itself.
    let install = "if [ -e ../began ]; then rmdir lock || mkdir lock; else mkdir lock; touch ../began; sleep 1000; fi";
    let prepare = task(1, &recipe(json!({ "install": { "run": install } })), Work::Prepare);
    stage.begin(&prepare);
    eventually("it has begun", || stage.place(1).join("began").exists()).await;
    stage.host = None;
    assert!(!marked(&stage.home(1)).is_empty());
    stage.reopen(vec![prepare.clone()]).await;
    stage.done(&prepare).await;
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn a_record_that_was_being_written_is_as_if_it_had_not_been() {
    let mut stage = Stage::new().await;
    let start = task(1, &sleeper(), start());
    stage.carry_out(&start).await;
    let pid = stage.pid(1);
    stage.host = None;
    fs::write(stage.place(1).join("record.new"), "{\"ports\":{").unwrap();
    fs::write(stage.place(1).join("install.mark"), "{\"pid\":").unwrap();
    fs::create_dir(stage.directory.join("17")).unwrap();
    stage.reopen(vec![start.clone()]).await;
    stage.done(&start).await;
    assert_eq!(stage.pid(1), pid);
}

#[tokio::test]
async fn what_a_damaged_record_spoke_of_is_ended_and_told() {
    let mut stage = Stage::new().await;
    let first = task(1, &sleeper(), start());
    stage.carry_out(&first).await;
    stage.host = None;
    fs::write(stage.place(1).join("record.json"), b"\xff garbage").unwrap();
    stage.reopen(Vec::new()).await;
    stage.died(&first).await;
    assert_eq!(marked(&stage.home(1)), [0; 0]);
    stage.carry_out(&task(2, &sleeper(), start())).await;
}

/// The agent of the stories below: it starts a component and is killed at a moment that its environment tells.
#[tokio::test]
async fn an_agent_is_played_by_this_very_program() {
    let (Ok(directory), Ok(_)) = (std::env::var("DIRECTORY"), std::env::var("MOMENT")) else { return };
    let mut settings = settings(&PathBuf::from(directory));
    settings.witness = Some(|moment| {
        if std::env::var("MOMENT").is_ok_and(|last| last == format!("{moment:?}")) {
            kill(i32::try_from(std::process::id()).unwrap(), Signal::KILL);
        }
    });
    let (tell, mut outcomes) = mpsc::unbounded_channel();
    let host = Host::open(settings, Vec::new(), tell).await.unwrap();
    host.carry_out(first_start());
    outcomes.recv().await;
    panic!("was not killed");
}

fn first_start() -> HostTask {
    task(1, &sleeper(), start())
}

/// Kills an agent at this moment, looks at what is left once nothing more happens by itself, and lets another agent go on.
async fn check(moment: Moment, left_running: usize, starts: usize) {
    let directory = fresh_directory();
    let _cleaning = Cleaning(directory.clone());
    let agent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "an_agent_is_played_by_this_very_program"])
        .envs([("DIRECTORY", directory.display().to_string()), ("MOMENT", format!("{moment:?}"))])
        .output()
        .unwrap();
    assert_eq!(agent.status.signal(), Some(9), "{}", String::from_utf8_lossy(&agent.stderr));
    let home = directory.join("1/home");
    // What was let go has also begun: then both starts can be counted.
    let begun = || fs::read_to_string(home.join("starts")).unwrap_or_default().lines().count();
    eventually("only what was let go is left", || marked(&home).len() == left_running && begun() == left_running).await;

    let mut stage = Stage::at(directory, vec![first_start()]).await;
    stage.done(&first_start()).await;
    assert_eq!(marked(&home), [stage.pid(1)]);
    eventually("it has begun", || stage.read(1, "starts").lines().count() == starts).await;
    stage.carry_out(&task(2, &sleeper(), Work::Stop)).await;
    assert_eq!(marked(&home), [0; 0]);
    assert!(stage.is_silent());
}

#[tokio::test]
async fn an_agent_killed_before_it_wrote_the_process_down_leaves_no_orphan() {
    check(Moment::Spawned, 0, 1).await;
}

#[tokio::test]
async fn an_agent_killed_before_it_let_the_process_go_leaves_no_orphan() {
    check(Moment::Recorded, 0, 1).await;
}

#[tokio::test]
async fn an_agent_killed_after_it_let_the_process_go_leaves_one_that_is_replaced() {
    check(Moment::Released, 1, 2).await;
}

#[tokio::test]
async fn an_agent_killed_before_it_could_note_that_all_is_well_leaves_one_that_is_replaced() {
    check(Moment::Ready, 1, 2).await;
}

/// The agent of the story below: it carries out what is pending until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hunted_agent_is_played_by_this_very_program() {
    let Ok(directory) = std::env::var("HUNTED") else { return };
    let (tell, mut outcomes) = mpsc::unbounded_channel();
    let _host = Host::open(settings(&PathBuf::from(directory)), pending_starts(), tell).await.unwrap();
    loop {
        outcomes.recv().await;
    }
}

fn pending_starts() -> Vec<HostTask> {
    let mut recipe = sleeper();
    recipe["operations"]["install"] = json!({ "run": "true" });
    recipe["operations"]["configure"] = json!({ "run": "sleep 0.01" });
    (1..=4).map(|component| task_of(component, 1, &recipe, start())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_killed_again_and_again_leaves_one_copy_of_each_component() {
    let directory = fresh_directory();
    let _cleaning = Cleaning(directory.clone());
    for round in 0..16 {
        let mut agent = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_hunted_agent_is_played_by_this_very_program"])
            .env("HUNTED", &directory)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Each time it gets a little further; what it was doing then is what this is about.
        tokio::time::sleep(Duration::from_millis(7 * round)).await;
        agent.kill().unwrap();
        agent.wait().unwrap();
    }
    let mut stage = Stage::at(directory, pending_starts()).await;
    for _ in pending_starts() {
        let outcome = stage.outcome().await;
        assert!(matches!(outcome, HostOutcome::Done { .. }), "{outcome:?}");
    }
    for component in 1..=4 {
        // One that was never let go may need a moment to see that it never will be.
        eventually("one copy is left", || marked(&stage.home(component)) == [stage.pid(component)]).await;
    }
}

#[tokio::test]
async fn half_a_start_that_no_task_stands_behind_is_ended_and_told() {
    let mut stage = Stage::new().await;
    let start = first_start();
    stage.carry_out(&start).await;
    stage.host = None;
    // As if the agent had been killed before it was ready.
    fs::remove_file(stage.place(1).join("done.json")).unwrap();
    stage.reopen(Vec::new()).await;
    let outcome = stage.outcome().await;
    assert!(matches!(outcome, HostOutcome::Died { serial: 1, .. }), "{outcome:?}");
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}
