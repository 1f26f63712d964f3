//! Golden files: text that must stay as it is, and the one function that compares with it.

use std::{env, fs, path::Path};

/// Compares with a golden file; with `BLESS=1`, writes it instead.
pub(crate) fn check(file: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    if env::var_os("BLESS").is_some() {
        fs::write(&path, found).expect("the golden file can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    for (number, (expected, found)) in expected.lines().zip(found.lines()).enumerate() {
        assert_eq!(expected, found, "{file}, line {}: run with BLESS=1 if this is meant", number + 1);
    }
    assert_eq!(expected.lines().count(), found.lines().count(), "{file}: run with BLESS=1 if new lines are meant");
}
