//! The guides work as written: each command is run, and its output is compared with the text below it.

use crate::{session, site::Site};
use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

/// Time limit for the expected output.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn the_operator_s_guide_works_as_written() {
    let site = Site::open("guide");
    follow(&site, "docs/OPERATING.md");
}

#[test]
fn the_readme_works_as_written() {
    let site = Site::open("readme");
    session::copy(&session::root().join("examples"), &site.place.join("examples"));
    follow(&site, "README.md");
}

#[test]
fn the_tutorial_works_as_written() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("left out: there is no python3");
        return;
    }
    let site = Site::open("tutorial");
    session::copy(&session::root().join("examples"), &site.place.join("examples"));
    follow(&site, "docs/TUTORIAL.md");
}

/// Runs the commands of a guide for which the manager is already running.
fn follow(site: &Site, guide: &str) {
    let text = fs::read_to_string(session::root().join(guide)).unwrap();
    fs::copy(site.data().join("access.json"), site.place.join("access.json")).unwrap();
    let blocks = text.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let is_done = |command: &str| command.starts_with("holdfast manager run") || command.starts_with("cargo");
    let turns: Vec<_> = blocks.flat_map(session::turns).filter(|turn| !is_done(&turn.command)).collect();
    assert!(turns.len() >= 5, "{guide} has too few sessions");
    for turn in turns {
        // A query may come too early: agents act on a change after the command that requested it has returned.
        let only_looks = ["holdfast why", "holdfast status"].iter().any(|it| turn.command.starts_with(it));
        let give_up = Instant::now() + PATIENCE;
        loop {
            let shown = session::run(&site.place, &turn.command);
            let Some(line) = missing(&shown, &turn.shown) else { break };
            if !only_looks || Instant::now() > give_up {
                panic!("$ {}\nshould show\n{line}\nbut shows\n{}", turn.command, shown.join("\n"));
            }
        }
    }
}

/// The first line of a guide that is not in the output. Reports of two VMs at the same time may come in another order
/// than in the guide.
fn missing<'a>(shown: &[String], written: &'a [String]) -> Option<&'a String> {
    let mut rest: Vec<&String> = shown.iter().collect();
    written.iter().filter(|line| !line.is_empty() && line.as_str() != "…").find(|line| {
        let found = rest.iter().position(|it| fits(it, line));
        found.map(|place| rest.remove(place)).is_none()
    })
}

/// Whether a line matches; `…` stands for anything. The width of a column depends on its content, so any run of spaces
/// matches any other.
fn fits(shown: &str, written: &str) -> bool {
    let narrow =
        |line: &str| line.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect::<Vec<_>>().join("  ");
    let (shown, written) = (narrow(shown), narrow(written));
    let mut parts = written.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = shown.strip_prefix(first) else { return false };
    for part in parts {
        let Some(place) = rest.find(part) else { return false };
        rest = &rest[place + part.len()..];
    }
    rest.is_empty() || written.ends_with('…')
}
