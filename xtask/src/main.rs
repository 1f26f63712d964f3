//! The developer's and the build machine's commands: `cargo xtask test`.
//!
//! Only the standard library: the gate must build in a second, and before anything else does.

mod gate;
mod mutants;
mod packages;
mod proof;
mod rules;
mod tidy;

use std::{env, path::PathBuf, process::ExitCode};

const HELP: &str = "\
usage: cargo xtask <command>

  test    the gate: format, lint, project rules, all tests
  tidy    only the project rules
  packages
          installs the servers and the browser that some tests really run (root, on Debian)
  screenshots
          makes pictures of the dashboard: all in target/screenshots, some in docs/screenshots
  soak [FIRST] [LAST]
          long explorations of random applications, by seed
  differential [FIRST] [LAST]
          random scenarios with faults, by seed: each reduction of the explorer against none
  proof
          the proof for every size: abstract systems explored to the end, and again by Spin
  properties
          writes docs/PROPERTIES.md: which property is evaluated in which mode
  mutants [ROW…]
          removes each guard in a copy; the explorer must notice
  mutants --all [FILE…]
          the same by rule: negated conditions, dropped statements, swapped arms

example: cargo xtask test";

fn main() -> ExitCode {
    let root = root();
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["test"] => tidy::check(&root).and_then(|()| gate::run(&root)),
        ["tidy"] => tidy::check(&root),
        ["packages"] => {
            packages::ensure();
            Ok(())
        }
        ["proof"] => proof::run(&root),
        ["screenshots"] => gate::screenshots(&root),
        ["properties"] => gate::properties(&root),
        ["soak", ref words @ ..] => gate::soak(&root, words),
        ["differential", ref words @ ..] => gate::differential(&root, words),
        ["mutants", ref rows @ ..] => mutants::run(&root, rows),
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace.
fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}
