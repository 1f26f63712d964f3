//! The demo, for real: its promises about requests, and that nothing remains of it, whenever it is stopped.
//!
//! Everything it starts inherits the directory for temporary files that is set here, and is recognised by it.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

#[test]
fn the_demo_serves_every_request_it_promises_and_leaves_nothing_behind() {
    let place = folder("demo-whole");
    let output = demo(&place).arg("--json").output().expect("the demo can be started");
    let (shown, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let value: serde_json::Value =
        serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown}{complaints}"));
    assert!(output.status.success() && value["good"] == true, "{shown}{complaints}");
    let acts = value["acts"].as_array().expect("there are acts");
    let number = |act: usize, what: &str| acts[act - 1][what].as_u64().expect("a number");
    let names = |act: usize, what: &str| {
        let names = acts[act - 1][what].as_array().expect("names").iter();
        let mut names: Vec<&str> = names.filter_map(|name| name.as_str()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(acts.len(), 5, "{shown}");
    assert_eq!(names(1, "started"), ["app-1", "app-2", "cache", "database-1", "web"]);

    // Down then up: the dependents of the database stop before it, so requests fail for a while.
    assert_eq!(names(2, "stopped"), ["app-1", "app-2", "database-1", "web"]);
    assert!(number(2, "served") > 0 && number(2, "failed") > 0, "{shown}");

    // Up then down: only the old database stops, and no request fails.
    assert_eq!((names(3, "started"), names(3, "stopped")), (vec!["database-3"], vec!["database-2"]));
    assert!(number(3, "served") > 0 && number(3, "failed") == 0, "{shown}");
    assert!(acts[2]["last_answer"].as_str().is_some_and(|it| it.ends_with("database-3)")), "{shown}");

    // The agent is down, its components are not; when it is back, it carries out orders.
    assert_eq!((names(4, "started"), names(4, "stopped")), (vec!["cache"], vec!["cache"]));
    assert!(number(4, "served") > 0 && number(4, "failed") == 0, "{shown}");

    for messages in ["orders", "reports", "notices"] {
        assert!(value["messages"][messages].as_u64().is_some_and(|number| number > 0), "{shown}");
    }
    assert_eq!(value["audit"]["good"], true, "{shown}");
    assert_eq!(value["left_behind"], serde_json::json!([]));
    assert_nothing_is_left(&place);
}

#[test]
fn interrupted_while_it_deploys_the_demo_leaves_nothing_behind() {
    stop_at("vm front is created", Signal::INT);
}

#[test]
fn interrupted_in_the_middle_of_a_replacement_the_demo_leaves_nothing_behind() {
    stop_at("○ app-1 stopped", Signal::TERM);
}

#[test]
fn interrupted_while_an_agent_is_down_the_demo_leaves_nothing_behind() {
    stop_at("killed the agent of", Signal::INT);
}

/// Interrupts the demo when it prints this.
fn stop_at(words: &str, signal: Signal) {
    let place = folder(&format!("demo-{}", words.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")));
    let mut child = demo(&place).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started");
    let mut shown = BufReader::new(child.stdout.take().expect("stdout is piped")).lines().map_while(Result::ok);
    let said = shown.find(|line| line.contains(words));
    assert!(said.is_some(), "it never said {words:?}: {}", complaints(&mut child));
    kill_process(Pid::from_child(&child), signal).expect("it runs");
    // It may continue for a few lines until it handles the signal, and must not block on a full pipe.
    shown.for_each(drop);
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130), "{}", complaints(&mut child));
    assert_nothing_is_left(&place);
}

fn complaints(child: &mut Child) -> String {
    let mut text = String::new();
    let read = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut text));
    read.map_or_else(String::new, |_| text)
}

fn demo(place: &Path) -> Command {
    let mut command = Command::new(crate::HOLDFAST);
    command.arg("demo").env("TMPDIR", place).env("NO_COLOR", "1");
    command
}

/// An empty directory for temporary files.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test can be made");
    folder
}

fn assert_nothing_is_left(place: &Path) {
    let mark = format!("TMPDIR={}", place.display());
    let processes = fs::read_dir("/proc").expect("there are processes").flatten().filter(|process| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    });
    let left: Vec<String> = processes
        .map(|it| String::from_utf8_lossy(&fs::read(it.path().join("cmdline")).unwrap_or_default()).replace('\0', " "))
        .collect();
    assert!(left.is_empty(), "still running: {left:#?}");
    let files: Vec<PathBuf> = fs::read_dir(place).expect("it is there").flatten().map(|it| it.path()).collect();
    assert!(files.is_empty(), "still there: {files:?}");
}
