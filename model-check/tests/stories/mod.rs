//! The stories of the catalogue: every scenario file beside the tests.

use model_check::Scenario;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Every scenario file, by name.
pub(crate) fn all() -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let entries = fs::read_dir(folder).expect("the scenarios are beside the tests");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("a scenario is a readable text");
        Scenario::parse(&path.to_string_lossy(), &text).unwrap_or_else(|error| panic!("{error}"))
    };
    paths.iter().map(read).collect()
}
