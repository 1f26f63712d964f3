//! Operating a running system from the command line: a real manager in this process, and the program beside it.
//!
//! In these sessions a line `$ # …` is what happens to the system meanwhile. `BLESS=1` rewrites them.

#[path = "../../cloud-manager/tests/test_manager/mod.rs"]
mod test_manager;

use crate::session::{folder, run, turns};
use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use test_manager::{
    TestManager,
    stage::{self, Move},
};

#[test]
fn a_shop_is_created_and_its_database_replaced() {
    check("shop");
}

#[test]
fn waiting_and_failed_components_are_shown_retried_and_skipped() {
    check("trouble");
}

#[test]
fn refusals_list_every_reason() {
    check("refusals");
}

#[test]
fn an_unreachable_manager_is_reported_with_what_to_do() {
    let place = folder("absent");
    assert_eq!(
        run(&place, "holdfast status"),
        [
            "stderr: access.json: there is no access file (start a manager with: holdfast manager run --data DIR; or name one with --access FILE)",
            "exit code 1"
        ]
    );
    let mut manager = TestManager::new("absent");
    fs::copy(manager.folder.join("access.json"), place.join("access.json")).expect("it can be copied");
    manager.halt();
    let shown = run(&place, "holdfast status");
    let url = &manager.access.url;
    let expected =
        format!("stderr: no manager answers at {url}: is it running? start one with: holdfast manager run --data DIR");
    assert!(shown[0].starts_with(&expected), "{shown:?}");
    assert_eq!(shown.last().map(String::as_str), Some("exit code 1"));
    fs::write(place.join("access.json"), "{}").expect("it can be written");
    assert!(run(&place, "holdfast status")[0].contains("not an access file"));
}

#[test]
fn tokens_are_created_listed_and_revoked() {
    let (place, manager) = begin("tokens");
    let made = run(&place, "holdfast token create --role read --name dashboard");
    assert_eq!(made.len(), 1, "{made:?}");
    // A token with the role `read` may not manage tokens.
    let access = fs::read_to_string(place.join("access.json")).expect("there is an access file");
    fs::write(place.join("reader.json"), access.replace(&manager.access.token, &made[0])).expect("it can be written");
    assert_eq!(
        run(&place, "holdfast vm add web --access reader.json"),
        ["stderr: the token has the role read, but this requires the role operate", "exit code 1"]
    );
    let listed = run(&place, "holdfast token list");
    assert!(listed[2].ends_with("dashboard") && listed[2].contains("read"), "{listed:?}");
    let id = listed[2].split(' ').next().expect("the id comes first");
    assert_eq!(run(&place, &format!("holdfast token revoke {id}")), [format!("token {id} is revoked")]);
    let shown = run(&place, "holdfast status --access reader.json");
    assert_eq!(shown[0], "stderr: the token is unknown (it may have been revoked)");
    // Agents join with another sort of token.
    assert_eq!(run(&place, "holdfast token create --vm web --ttl 15m"), ["token for web and 900 s"]);
}

#[test]
fn every_operator_command_prints_json() {
    let (place, manager) = begin("operator-json");
    for command in [
        "vm add data",
        "component add database --on data --export sql",
        "component add more --on data --export sql --no-wait",
        "component restart database --dry-run",
        "component replace database --with other",
        "vm list",
        "component list",
        "component logs other",
        "why other",
        "binding list",
        "status",
        "history",
        "show 1",
        "token create",
        "token create --role admin",
        "token list",
        "vm lost data",
    ] {
        let shown = run(&place, &format!("holdfast {command} --json")).join("\n");
        let value = serde_json::from_str::<serde_json::Value>(&shown);
        assert!(value.is_ok_and(|value| value.is_object() || value.is_array()), "{command}: {shown}");
    }
    drop(manager);
}

#[test]
fn interrupting_the_client_does_not_stop_the_change() {
    let (place, manager) = begin("interrupted");
    run(&place, "holdfast vm add data");
    manager.hold_back(|it| matches!(it, Move::Finish(..)));
    let mut child = holdfast(&place, &["component", "add", "database", "--on", "data"]);
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let starts = |line: std::io::Result<String>| line.expect("a line of text").ends_with("database is starting");
    assert!(lines.any(starts));
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert_eq!(run(&place, "holdfast component list")[1].split_whitespace().nth(2), Some("starting"));
    manager.release();
    assert_eq!(run(&place, "holdfast component list")[1].split_whitespace().nth(2), Some("started"));
}

#[test]
fn a_watched_status_is_redrawn_when_something_happens() {
    let (place, manager) = begin("watched");
    let mut child = holdfast(&place, &["status", "--watch"]);
    let mut lines =
        BufReader::new(child.stdout.take().expect("it is piped")).lines().map(|line| line.expect("a line of text"));
    assert!(lines.any(|line| line.starts_with("0 VMs")));
    manager.act(|backend| {
        backend.ask(stage::change(protocol::Strategy::Together, [stage::add_vm("data"), stage::add_vm("web")]));
    });
    assert!(lines.any(|line| line.starts_with("2 VMs, 2 well")));
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

/// The program, with its output.
fn holdfast(place: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(crate::HOLDFAST);
    command.args(arguments).current_dir(place).env("HOLDFAST_ACCESS", "access.json");
    command.stdout(Stdio::piped()).spawn().expect("the program can be started")
}

/// A manager, and a directory with its access file.
fn begin(name: &str) -> (PathBuf, TestManager) {
    let (place, manager) = (folder(name), TestManager::new(name));
    fs::copy(manager.folder.join("access.json"), place.join("access.json")).expect("it can be copied");
    (place, manager)
}

/// Runs each command of a session and compares its output.
fn check(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("system/golden").join(name).with_extension("session");
    let (place, manager) = begin(name);
    let mut seen = String::new();
    for turn in turns(&fs::read_to_string(&path).expect("the session is written down")) {
        let shown = match turn.command.strip_prefix("# ") {
            Some(happening) => {
                happen(&manager, happening);
                Vec::new()
            }
            None => run(&place, &turn.command),
        };
        seen += &format!("$ {}\n", turn.command.replace('\n', "\n> "));
        shown.iter().for_each(|line| seen += &format!("{line}\n"));
    }
    if env::var_os("BLESS").is_some() {
        fs::write(&path, &seen).expect("the session can be written");
    }
    let written = fs::read_to_string(&path).expect("the session is written down");
    assert!(seen == written, "{} differs; this is what came:\n{seen}", path.display());
}

/// What can happen to the system.
fn happen(manager: &TestManager, what: &str) {
    match what.split(' ').collect::<Vec<_>>().as_slice() {
        ["hosts", "are", "slow"] => manager.hold_back(|it| matches!(it, Move::Finish(..))),
        ["hosts", "go", "on"] => manager.release(),
        [component, "cannot", "start"] => {
            let component = component.to_string();
            manager.act(move |backend| backend.failing.insert(component));
        }
        [component, "can", "start"] => {
            let component = component.to_string();
            manager.act(move |backend| backend.failing.remove(&component));
        }
        _ => panic!("{what:?} cannot happen"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_can_be_run_with_plain_http() {
    let site = crate::site::Site::open("plain-http");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/system/plain_http.py");
    let output = Command::new("python3").arg(script).arg(site.data().join("access.json")).output();
    let output = output.expect("Python is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    site.remove_everything().await;
}
