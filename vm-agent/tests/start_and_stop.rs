//! Stories of one run: it starts, becomes ready, is stopped, or dies.

mod stage;

use protocol::{HostOutcome, Work};
use serde_json::{Value, json};
use stage::{Stage, eventually, is_alive, kill, marked, played, recipe, sleeper, start, task, task_of};
use std::{fs, net::TcpListener};

#[test]
fn a_component_is_played_by_this_very_program() {
    stage::play();
}

fn server(role: &str, probe: &Value) -> Value {
    json!({
        "version": 1,
        "values": { "port": { "template": "{{ free_port() }}" } },
        "environment": { "PORT": "{{ port }}" },
        "operations": {
            "start": { "process": { "run": played(role, "a_component_is_played_by_this_very_program") } },
            "check": { "probe": probe }
        }
    })
}

#[tokio::test]
async fn a_start_is_done_when_the_port_is_open_and_not_before() {
    let mut stage = Stage::new().await;
    let gate = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut recipe = server("tcp", &json!({ "tcp": { "port": "{{ port }}" } }));
    recipe["environment"]["GATE"] = json!(gate.local_addr().expect("it is bound").to_string());
    let start = task(1, &recipe, start());
    stage.begin(&start);
    let (held_shut, _) = tokio::task::spawn_blocking(move || gate.accept().expect("the component connects"))
        .await
        .expect("it does not panic");
    // The process runs, the port is not open: nothing is said.
    assert!(stage.is_silent());
    drop(held_shut);
    let values = stage.done(&start).await;
    assert!(values[&stage::name("port")].parse::<u16>().unwrap() > 0);
    stage.carry_out(&task(2, &recipe, Work::Stop)).await;
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

/// A start that waits at a gate before its port is open.
async fn held_at_a_gate(stage: &Stage) -> (protocol::HostTask, std::net::TcpStream) {
    let gate = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let mut recipe = server("tcp", &json!({ "tcp": { "port": "{{ port }}" } }));
    recipe["environment"]["GATE"] = json!(gate.local_addr().expect("it is bound").to_string());
    let start = task(1, &recipe, start());
    stage.begin(&start);
    let (held, _) = tokio::task::spawn_blocking(move || gate.accept().expect("the component connects"))
        .await
        .expect("it does not panic");
    (start, held)
}

#[tokio::test]
async fn a_start_that_is_aborted_fails_at_once_and_leaves_nothing_running() {
    let mut stage = Stage::new().await;
    let (start, _held) = held_at_a_gate(&stage).await;
    assert!(stage.is_silent());
    stage.begin(&protocol::HostTask { work: Work::Abort, ..start.clone() });
    assert!(stage.failed(&start).await.contains("aborted"));
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn an_abort_that_is_asked_for_again_after_a_crash_ends_what_the_start_has_left() {
    let mut stage = Stage::new().await;
    let (start, _held) = held_at_a_gate(&stage).await;
    let abort = protocol::HostTask { work: Work::Abort, ..start.clone() };
    stage.reopen(vec![abort]).await;
    assert!(stage.failed(&start).await.contains("aborted"));
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn an_http_answer_counts_only_with_a_good_status() {
    let mut stage = Stage::new().await;
    let recipe = server("http", &json!({ "http": { "url": "http://{{ host }}:{{ port }}/health" } }));
    stage.carry_out(&task(1, &recipe, start())).await;
    stage.carry_out(&task(2, &recipe, Work::Stop)).await;
}

#[tokio::test]
async fn a_process_that_ends_before_it_is_ready_fails_with_its_last_words() {
    let mut stage = Stage::new().await;
    let operations = json!({
        "start": { "process": { "run": "echo no disk >&2; exit 3" } },
        "check": { "probe": { "command": { "run": "false" } } }
    });
    let detail = stage.fail(&task(1, &recipe(operations), start())).await;
    assert!(detail.contains("ended before it was ready: exit code 3") && detail.ends_with("no disk"), "{detail}");
}

#[tokio::test]
async fn a_component_that_is_never_ready_fails_and_leaves_nothing_running() {
    let mut stage = Stage::new().await;
    let operations = json!({
        "start": { "process": { "run": "sleep 1000 & sleep 1000" } },
        "check": { "probe": { "command": { "run": "echo not yet; exit 1" } }, "ready_within_ms": 300 }
    });
    let detail = stage.fail(&task(1, &recipe(operations), start())).await;
    assert!(detail.contains("not ready within 300ms; last check: exit code 1\nnot yet"), "{detail}");
    assert_eq!(marked(&stage.home(1)), [0; 0]);
    assert_eq!(stage.record(1)["run"], Value::Null);
    // Nothing is left for the next agent to find: the next thing it says is an answer.
    stage.reopen(Vec::new()).await;
    stage.carry_out(&task(2, &json!({}), Work::Stop)).await;
}

#[tokio::test]
async fn a_stop_gives_the_process_time_to_tidy_up() {
    let mut stage = Stage::new().await;
    let operations = json!({
        "start": { "process": { "run": "trap 'echo tidy > tidied; exit 0' TERM; echo > up; while :; do sleep 0.05; done" } },
        "check": { "probe": { "command": { "run": "test -e up" } } }
    });
    let recipe = recipe(operations);
    stage.carry_out(&task(1, &recipe, start())).await;
    stage.carry_out(&task(2, &recipe, Work::Stop)).await;
    assert_eq!(stage.read(1, "tidied"), "tidy\n");
    // A stop is the end that was asked for, not a death.
    assert!(stage.is_silent());
}

#[tokio::test]
async fn a_group_that_ignores_the_signal_is_killed_down_to_the_last_grandchild() {
    let mut stage = Stage::new().await;
    let stubborn = "trap '' TERM; (trap '' TERM; (trap '' TERM; echo > up; sleep 1000) & sleep 1000) & sleep 1000";
    let recipe = recipe(json!({
        "start": { "process": { "run": stubborn } },
        "check": { "probe": { "command": { "run": "test -e up" } } },
        "stop": { "grace_ms": 50 }
    }));
    stage.carry_out(&task(1, &recipe, start())).await;
    assert!(marked(&stage.home(1)).len() >= 3);
    stage.carry_out(&task(2, &recipe, Work::Stop)).await;
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn a_process_that_dies_is_told_of_at_once_and_its_children_go_with_it() {
    let mut stage = Stage::new().await;
    let operations = json!({ "start": { "process": { "run": "echo last words; sleep 1000 & wait" } } });
    let start = task(1, &recipe(operations), start());
    stage.carry_out(&start).await;
    eventually("it has a child", || marked(&stage.home(1)).len() == 2).await;
    kill(stage.pid(1), rustix::process::Signal::KILL);
    let detail = stage.died(&start).await;
    assert!(detail.starts_with("ended by signal 9 (KILL)") && detail.ends_with("last words"), "{detail}");
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_told() {
    let mut stage = Stage::new().await;
    let operations = json!({ "start": { "process": { "run": ["no-such-program", "x"] } } });
    let start = task(1, &recipe(operations), start());
    let detail = stage.fail(&start).await;
    assert!(detail.starts_with("start: ended within 200ms: exit code 127"), "{detail}");
    assert!(detail.contains("no-such-program"), "{detail}");
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

fn script() -> Value {
    recipe(json!({
        "start": { "script": { "run": "sleep 1000 & echo $! > pid; echo key=k1 >> $HOLDFAST_VALUES" } },
        "check": { "probe": { "command": { "run": "test -e pid" } }, "liveness_ms": 20, "failures_max": 2 },
        "stop": { "command": { "run": "kill $(cat pid) && rm pid && echo stopped >> stops" } }
    }))
}

#[tokio::test]
async fn a_script_starts_something_that_outlives_it_and_is_stopped_by_its_command() {
    let mut stage = Stage::new().await;
    let values = stage.carry_out(&task(1, &script(), start())).await;
    assert_eq!(values[&stage::name("key")].as_ref(), "k1");
    let pid = stage.read(1, "pid").trim().parse().unwrap();
    assert!(is_alive(pid));
    stage.carry_out(&task(2, &script(), Work::Stop)).await;
    assert!(!is_alive(pid));
    assert_eq!(stage.read(1, "stops"), "stopped\n");
}

#[tokio::test]
async fn a_script_whose_check_fails_again_and_again_has_died() {
    let mut stage = Stage::new().await;
    let start = task(1, &script(), start());
    stage.carry_out(&start).await;
    fs::rename(stage.home(1).join("pid"), stage.home(1).join("elsewhere")).unwrap();
    let detail = stage.died(&start).await;
    assert!(detail.contains("check failed 2 times in a row: exit code 1"), "{detail}");
    // Its stop command could not find it, and yet nothing is left.
    assert!(detail.contains("stop: "), "{detail}");
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn a_process_that_runs_but_fails_its_check_is_ended_and_told_of_once() {
    let mut stage = Stage::new().await;
    let recipe = recipe(json!({
        "start": { "process": { "run": "echo > up; exec sleep 1000" } },
        "check": { "probe": { "command": { "run": "test -e up" } }, "liveness_ms": 20, "failures_max": 2 },
        "rebind": { "command": { "run": "true" } }
    }));
    let start = task(1, &recipe, start());
    stage.carry_out(&start).await;
    fs::remove_file(stage.home(1).join("up")).unwrap();
    stage.died(&start).await;
    assert_eq!(marked(&stage.home(1)), [0; 0]);
    // Who rebinds it without having heard does not make it die twice.
    stage.carry_out(&task(2, &recipe, Work::Rebind { bindings: Vec::new() })).await;
    stage.carry_out(&task(3, &recipe, Work::Stop)).await;
    assert!(stage.is_silent());
}

#[tokio::test]
async fn a_check_that_is_under_way_when_its_process_dies_is_not_left_behind() {
    let mut stage = Stage::new().await;
    let slow = "test -e up || exit 1; test ! -e slow || { echo > checking; exec sleep 1000; }";
    let recipe = recipe(json!({
        "start": { "process": { "run": "echo > up; exec sleep 1000" } },
        "check": { "probe": { "command": { "run": slow } }, "liveness_ms": 20, "attempt_ms": 100_000 }
    }));
    let start = task(1, &recipe, start());
    stage.carry_out(&start).await;
    fs::write(stage.home(1).join("slow"), "").unwrap();
    eventually("a check is under way", || stage.home(1).join("checking").exists()).await;
    kill(stage.pid(1), rustix::process::Signal::KILL);
    stage.died(&start).await;
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn a_stop_command_comes_first_and_its_failure_does_not_save_the_process() {
    let mut stage = Stage::new().await;
    let recipe = recipe(json!({
        "start": { "process": { "run": "exec sleep 1000" } },
        "stop": { "command": { "run": "echo asked > asked; exit 1" } }
    }));
    stage.carry_out(&task(1, &recipe, start())).await;
    stage.carry_out(&task(2, &recipe, Work::Stop)).await;
    assert_eq!(stage.read(1, "asked"), "asked\n");
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn a_script_that_cannot_be_stopped_has_failed_to_stop_and_may_be_asked_again() {
    let mut stage = Stage::new().await;
    let recipe = recipe(json!({
        "start": { "script": { "run": "true" } },
        "stop": { "command": { "run": "test -e allowed" } }
    }));
    stage.carry_out(&task(1, &recipe, start())).await;
    assert_eq!(stage.fail(&task(2, &recipe, Work::Stop)).await, "stop: exit code 1");
    fs::write(stage.home(1).join("allowed"), "").unwrap();
    stage.carry_out(&task(3, &recipe, Work::Stop)).await;
}

#[tokio::test]
async fn a_start_script_that_fails_leaves_nothing_running() {
    let mut stage = Stage::new().await;
    let operations = json!({
        "start": { "script": { "run": "sleep 1000 & echo out of luck; exit 7" } },
        "stop": { "command": { "run": "true" } }
    });
    let detail = stage.fail(&task(1, &recipe(operations), start())).await;
    assert_eq!(detail, "start: exit code 7\nout of luck");
    assert_eq!(marked(&stage.home(1)), [0; 0]);
}

#[tokio::test]
async fn what_was_never_started_is_not_told_to_stop() {
    let mut stage = Stage::new().await;
    let operations = json!({
        "configure": { "run": "exit 5" },
        "start": { "script": { "run": "true" } },
        "stop": { "command": { "run": "touch stopped" } }
    });
    assert_eq!(stage.fail(&task(1, &recipe(operations), start())).await, "configure: exit code 5");
    assert!(!stage.home(1).join("stopped").exists());
}

#[tokio::test]
async fn the_same_stop_asked_twice_is_done_once() {
    let mut stage = Stage::new().await;
    let (first, stop) = (task(1, &script(), start()), task(2, &script(), Work::Stop));
    stage.carry_out(&first).await;
    stage.carry_out(&stop).await;
    stage.carry_out(&stop).await;
    assert_eq!(stage.read(1, "stops"), "stopped\n");
}

#[tokio::test]
async fn the_same_start_asked_twice_is_one_process() {
    let mut stage = Stage::new().await;
    let start = task(1, &sleeper(), start());
    let values = stage.carry_out(&start).await;
    let pid = stage.pid(1);
    assert_eq!(stage.carry_out(&start).await, values);
    assert_eq!(stage.pid(1), pid);
    // It is still watched, by one watcher.
    kill(pid, rustix::process::Signal::TERM);
    stage.died(&start).await;
    assert!(stage.is_silent());
}

#[test]
fn a_host_can_be_shared_between_threads() {
    fn is_shared<T: Send + Sync + Clone>() {}
    is_shared::<vm_agent::host::Host>();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn components_start_side_by_side() {
    let mut stage = Stage::new().await;
    // Each becomes ready only when it has seen the other.
    let waits = |own: u64, other: u64| {
        recipe(json!({
            "start": { "process": { "run": format!("touch ../../met-{own}; exec sleep 1000") } },
            "check": { "probe": { "command": { "run": format!("test -e ../../met-{other}") } } }
        }))
    };
    for (own, other) in [(1, 2), (2, 1)] {
        stage.begin(&task_of(own, 1, &waits(own, other), start()));
    }
    for _ in 0..2 {
        assert!(matches!(stage.outcome().await, HostOutcome::Done { .. }));
    }
}
