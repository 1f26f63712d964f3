//! Every example holds, and so does the page on scenarios.

mod session;

use session::{Turn, folder, root, run, turns};
use std::fs;

/// The program under test.
const HOLDFAST: &str = env!("CARGO_BIN_EXE_holdfast");

#[test]
fn every_example_file_holds_in_every_order_of_events() {
    let place = folder("every-example");
    let mut names: Vec<_> = fs::read_dir(place.join("examples")).expect("there are examples").flatten().collect();
    // Application files have tests of their own, which run them.
    names.retain(|entry| entry.path().extension().is_some());
    names.sort_by_key(fs::DirEntry::file_name);
    for name in names.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        let command = if name.ends_with(".json") { "optimize" } else { "explore" };
        let shown = run(&place, &format!("holdfast {command} examples/{name}"));
        let last = shown.last().cloned().unwrap_or_default();
        assert!(!last.starts_with("exit code"), "{name}: {}", shown.join("\n"));
    }
}

#[test]
fn the_page_on_scenarios_works_as_written() {
    let text = fs::read_to_string(root().join("docs/SCENARIOS.md")).expect("there is a page on scenarios");
    follow("scenarios", &text, 4);
    let place = folder("scenarios-of-the-page");
    let scenarios: Vec<&str> = blocks(&text, "scenario").collect();
    assert!(scenarios.len() >= 9, "examples are missing");
    for (number, scenario) in scenarios.into_iter().enumerate() {
        let file = format!("example-{number}.txt");
        fs::write(place.join(&file), scenario).expect("a scenario can be written");
        let shown = run(&place, &format!("holdfast explore {file}"));
        assert!(shown[0].contains("everything holds in every state"), "{scenario}\n{}", shown.join("\n"));
    }
}

/// Runs each command of the sessions in a text. Each line below it must be in its output, in this order.
fn follow(name: &str, text: &str, turns_min: usize) {
    let place = folder(name);
    let turns: Vec<Turn> = blocks(text, "console").flat_map(turns).collect();
    assert!(turns.len() >= turns_min, "sessions are missing");
    for turn in turns.iter().filter(|turn| !turn.command.starts_with("cargo")) {
        let shown = run(&place, &turn.command);
        let mut rest = shown.iter();
        for line in turn.shown.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty() && line.trim() != "…")
        {
            let line = if line.trim_start().starts_with("took ") { "  took …" } else { line };
            let found = rest.any(|it| it == line);
            assert!(found, "$ {}\nshould show\n{line}\nbut shows\n{}", turn.command, shown.join("\n"));
        }
    }
}

/// The blocks of one language in a text.
fn blocks<'a>(text: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
    let opening = format!("```{language}\n");
    let blocks: Vec<&str> = text.split(&opening).skip(1).filter_map(|rest| rest.split("```").next()).collect();
    blocks.into_iter()
}

#[test]
fn every_command_prints_json() {
    let place = folder("json");
    for command in [
        "demo --simulated",
        "explore examples/make-before-break.txt",
        "simulate examples/make-before-break.txt --seeds 3",
        "simulate examples/make-before-break.txt --seed 3 --save run.json",
        "replay run.json --expect examples/make-before-break.txt",
        "explore examples/applications/three-tier.yaml",
        "plan examples/applications/three-tier.yaml --explore",
        "optimize examples/mail.json",
    ] {
        let shown = run(&place, &format!("holdfast {command} --json")).join("\n");
        let value: serde_json::Value = serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown}"));
        let good = value["good"] == true || value["explored"]["good"] == true || value["status"] == "optimal";
        assert!(good, "{command}: {shown}");
    }
}

#[test]
fn completions_and_manual_pages_are_generated() {
    let place = folder("manual");
    for shell in ["bash", "zsh", "fish"] {
        let shown = run(&place, &format!("holdfast completions {shell}")).join("\n");
        assert!(shown.contains("explore") && shown.contains("holdfast"), "{shown}");
    }
    run(&place, "holdfast man pages");
    assert!(place.join("pages/holdfast-explore.1").exists());
}
