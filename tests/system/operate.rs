//! Operating a running system from the command line: a real manager in this process, and the program beside it.
//!
//! In these sessions a line `$ # …` is what happens to the system meanwhile. `BLESS=1` writes them anew.

#[path = "../../cloud-manager/tests/stand/mod.rs"]
mod stand;

use crate::session::{folder, run, turns};
use stand::{
    Stand,
    stage::{self, Move},
};
use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

#[test]
fn a_shop_is_put_up_and_its_database_replaced() {
    check("shop");
}

#[test]
fn what_waits_and_what_failed_is_seen_and_helped() {
    check("trouble");
}

#[test]
fn what_is_refused_is_told_with_every_reason() {
    check("refusals");
}

#[test]
fn a_manager_that_is_not_there_is_told_with_what_to_do() {
    let place = folder("absent");
    assert_eq!(
        run(&place, "holdfast status"),
        [
            "stderr: access.json: there is no access file (start a manager with: holdfast manager run --data DIR; or name one with --access FILE)",
            "exit code 1"
        ]
    );
    let mut stand = Stand::new("absent");
    fs::copy(stand.folder.join("access.json"), place.join("access.json")).expect("it can be copied");
    stand.halt();
    let shown = run(&place, "holdfast status");
    let url = &stand.access.url;
    let expected =
        format!("stderr: no manager answers at {url}: is it running? start one with: holdfast manager run --data DIR");
    assert!(shown[0].starts_with(&expected), "{shown:?}");
    assert_eq!(shown.last().map(String::as_str), Some("exit code 1"));
    fs::write(place.join("access.json"), "{}").expect("it can be written");
    assert!(run(&place, "holdfast status")[0].contains("this is no access file"));
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let (place, stand) = begin("tokens");
    let made = run(&place, "holdfast token create --role read --name dashboard");
    assert_eq!(made.len(), 1, "{made:?}");
    // Whoever only may look is told so.
    let access = fs::read_to_string(place.join("access.json")).expect("there is an access file");
    fs::write(place.join("reader.json"), access.replace(&stand.access.token, &made[0])).expect("it can be written");
    assert_eq!(
        run(&place, "holdfast vm add web --access reader.json"),
        ["stderr: the token allows to read, and this needs operate", "exit code 1"]
    );
    let listed = run(&place, "holdfast token list");
    assert!(listed[2].ends_with("dashboard") && listed[2].contains("read"), "{listed:?}");
    let id = listed[2].split(' ').next().expect("the id comes first");
    assert_eq!(run(&place, &format!("holdfast token revoke {id}")), [format!("token {id} is revoked")]);
    let shown = run(&place, "holdfast status --access reader.json");
    assert_eq!(shown[0], "stderr: the token is unknown (it may have been revoked)");
    // Agents are let in by another sort of token.
    assert_eq!(run(&place, "holdfast token create --vm web --ttl 15m"), ["token for web and 900 s"]);
}

#[test]
fn programs_get_json_from_every_command_of_an_operator() {
    let (place, stand) = begin("operator-json");
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
    drop(stand);
}

#[test]
fn whoever_stops_looking_does_not_stop_the_change() {
    let (place, stand) = begin("interrupted");
    run(&place, "holdfast vm add data");
    stand.hold_back(|it| matches!(it, Move::Finish(..)));
    let mut child = holdfast(&place, &["component", "add", "database", "--on", "data"]);
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let starts = |line: std::io::Result<String>| line.expect("it speaks").ends_with("database is starting");
    assert!(lines.any(starts));
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert_eq!(run(&place, "holdfast component list")[1].split_whitespace().nth(2), Some("starting"));
    stand.let_go();
    assert_eq!(run(&place, "holdfast component list")[1].split_whitespace().nth(2), Some("started"));
}

#[test]
fn a_watched_status_is_shown_anew_when_something_happens() {
    let (place, stand) = begin("watched");
    let mut child = holdfast(&place, &["status", "--watch"]);
    let mut lines =
        BufReader::new(child.stdout.take().expect("it is piped")).lines().map(|line| line.expect("it speaks"));
    assert!(lines.any(|line| line.starts_with("0 VMs")));
    stand.direct(|theatre| {
        theatre.ask(stage::change(protocol::Strategy::Together, [stage::add_vm("data"), stage::add_vm("web")]));
    });
    assert!(lines.any(|line| line.starts_with("2 VMs, 2 well")));
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

/// The program, with its output at hand.
fn holdfast(place: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(crate::HOLDFAST);
    command.args(arguments).current_dir(place).env("HOLDFAST_ACCESS", "access.json");
    command.stdout(Stdio::piped()).spawn().expect("the program can be started")
}

/// A manager, and a folder in which it is found.
fn begin(name: &str) -> (PathBuf, Stand) {
    let (place, stand) = (folder(name), Stand::new(name));
    fs::copy(stand.folder.join("access.json"), place.join("access.json")).expect("it can be copied");
    (place, stand)
}

/// Runs each command of a session and compares all that it shows.
fn check(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("system/golden").join(name).with_extension("session");
    let (place, stand) = begin(name);
    let mut seen = String::new();
    for turn in turns(&fs::read_to_string(&path).expect("the session is written down")) {
        let shown = match turn.command.strip_prefix("# ") {
            Some(happening) => {
                happen(&stand, happening);
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
fn happen(stand: &Stand, what: &str) {
    match what.split(' ').collect::<Vec<_>>().as_slice() {
        ["hosts", "are", "slow"] => stand.hold_back(|it| matches!(it, Move::Finish(..))),
        ["hosts", "go", "on"] => stand.let_go(),
        [component, "cannot", "start"] => {
            let component = component.to_string();
            stand.direct(move |theatre| theatre.failing.insert(component));
        }
        [component, "can", "start"] => {
            let component = component.to_string();
            stand.direct(move |theatre| theatre.failing.remove(&component));
        }
        _ => panic!("{what:?} cannot happen"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_http_is_enough_to_run_an_application() {
    let site = crate::site::Site::open("plain-http");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/system/plain_http.py");
    let output = Command::new("python3").arg(script).arg(site.data().join("access.json")).output();
    let output = output.expect("Python is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    site.remove_everything().await;
}
