//! The stories of the catalogue: every scenario file beside the tests.
//!
//! Each test program that includes this module uses some of it.
#![allow(dead_code)]

use model_check::Scenario;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Every scenario file, by name: what these expect comes true.
pub(crate) fn all() -> Vec<Scenario> {
    read("tests/scenarios")
}

/// Every story that claims too much, by name: each has a breach, whatever the reductions.
pub(crate) fn refuted() -> Vec<Scenario> {
    read("tests/refuted")
}

fn read(folder: &str) -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(folder).expect("the scenarios are beside the tests");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("a scenario is a readable text");
        Scenario::parse(&path.to_string_lossy(), &text).unwrap_or_else(|error| panic!("{error}"))
    };
    paths.iter().map(read).collect()
}
