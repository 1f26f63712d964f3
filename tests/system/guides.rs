//! The guides work as they are written: each command is run, and what stands below it is what it shows.

use crate::{session, site::Site};
use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

/// What has not been shown by then will not be.
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

/// Runs the commands of a guide where its manager is running already.
fn follow(site: &Site, guide: &str) {
    let text = fs::read_to_string(session::root().join(guide)).unwrap();
    fs::copy(site.data().join("access.json"), site.place.join("access.json")).unwrap();
    let blocks = text.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let is_done = |command: &str| command.starts_with("holdfast manager run") || command.starts_with("cargo");
    let turns: Vec<_> = blocks.flat_map(session::turns).filter(|turn| !is_done(&turn.command)).collect();
    assert!(turns.len() >= 5, "{guide} has too few sessions");
    for turn in turns {
        // What only looks may look too early: agents act on a change after the command that asked for it has returned.
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

/// The first line of a guide that is not shown. What two VMs report at the same time may come in another order than the guide
/// has it.
fn missing<'a>(shown: &[String], written: &'a [String]) -> Option<&'a String> {
    let mut rest: Vec<&String> = shown.iter().collect();
    written.iter().filter(|line| !line.is_empty() && line.as_str() != "…").find(|line| {
        let found = rest.iter().position(|it| fits(it, line));
        found.map(|place| rest.remove(place)).is_none()
    })
}

/// Whether a line is as written; `…` stands for anything. How wide a column is depends on what stands in it, so a gap is a
/// gap, however wide.
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
