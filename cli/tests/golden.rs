//! What people see, word for word: help, errors, verdicts, the demo.
//!
//! `BLESS=1 cargo test --package cli` writes the sessions anew; read the difference before you commit it.

mod session;

use session::{folder, run, turns};
use std::{env, fs, path::Path};

/// The program under test.
const HOLDFAST: &str = env!("CARGO_BIN_EXE_holdfast");

#[test]
fn help_fits_a_screen_and_is_as_written() {
    check("help");
}

#[test]
fn broken_files_and_wrong_usage_are_told_with_their_place() {
    check("errors");
}

#[test]
fn a_wrong_end_is_refuted_with_the_shortest_way_there() {
    check("refuted");
}

#[test]
fn the_demo_is_as_written() {
    check("demo");
}

#[test]
fn examples_of_all_commands_are_as_written() {
    check("examples");
}

#[test]
fn plans_and_mistakes_of_application_files_are_as_written() {
    check("applications");
}

#[test]
fn what_is_no_file_or_never_ends_is_not_waited_for() {
    check("unreadable");
}

/// Runs each command of a session and compares all that it shows.
fn check(name: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = golden.join(name).with_extension("session");
    let place = folder(name);
    for file in ["hopeful.txt", "broken.txt"] {
        fs::copy(golden.join(file), place.join(file)).expect("a scenario can be copied");
    }
    let mut seen = String::new();
    for turn in turns(&fs::read_to_string(&path).expect("the session is written down")) {
        let shown = run(&place, &turn.command);
        if name == "help" {
            assert!(shown.len() <= 44, "the help of {:?} does not fit a screen", turn.command);
        }
        seen += &format!("$ {}\n{}\n", turn.command.replace('\n', "\n> "), shown.join("\n"));
    }
    if env::var_os("BLESS").is_some() {
        fs::write(&path, &seen).expect("the session can be written");
    }
    let written = fs::read_to_string(&path).expect("the session is written down");
    assert!(seen == written, "{} differs; this is what came:\n{seen}", path.display());
}
