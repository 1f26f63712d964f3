//! The gate: what must pass before a change is merged. Each step is one command that a developer can run by hand.

use std::{
    env,
    ffi::OsString,
    path::Path,
    process::{Command, Stdio},
};

const FORMAT: &[&str] = &["fmt", "--all", "--check"];
const LINT: &[&str] = &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
/// Used where it is installed: each test in its own process, and a shorter report.
const NEXTEST: &[&str] = &["nextest", "run", "--workspace"];
const DOC_TESTS: &[&str] = &["test", "--workspace", "--doc"];
const TESTS: &[&str] = &["test", "--workspace"];

/// Thousands of random applications to the last state, reductions against none, every scenario without a state limit.
const SOAK: &[&str] = &["run", "--release", "--package", "model-check", "--example", "soak", "--"];

/// Runs the long explorations; further arguments are passed on.
pub(crate) fn soak(root: &Path, words: &[&str]) -> Result<(), String> {
    cargo(root, &[SOAK, words].concat())
}

/// Random scenarios with faults, with each reduction and with none.
const DIFFERENTIAL: &[&str] = &["run", "--release", "--package", "model-check", "--example", "differential", "--"];

/// Compares explorations with and without reductions; further arguments are passed on.
pub(crate) fn differential(root: &Path, words: &[&str]) -> Result<(), String> {
    cargo(root, &[DIFFERENTIAL, words].concat())
}

/// The test that looks at every page of the dashboard on every screen.
const SCREENS: &[&str] =
    &["test", "--package", "tests", "--test", "system", "every_page_fits_every_screen_in_light_and_dark"];

/// The pictures that documents show; all others stay in the folder of the build, for those who work on the pages.
const SHOWN: &[&str] = &[
    "overview-1440-light",
    "application-1440-light",
    "application-1440-dark",
    "change-1440-light",
    "change-1440-dark",
    "change-390-dark",
    "plan-1440-light",
];

/// Makes pictures of the dashboard in target/screenshots, and copies those that documents show to docs/screenshots.
pub(crate) fn screenshots(root: &Path) -> Result<(), String> {
    let (all, shown) = (root.join("target/screenshots"), root.join("docs/screenshots"));
    let failed = |error: std::io::Error| format!("the screenshots could not be made: {error}");
    for folder in [&all, &shown] {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    crate::packages::ensure();
    let mut command = Command::new(program());
    let status = command.args(SCREENS).env("HOLDFAST_SCREENSHOTS", &all).current_dir(root).status().map_err(failed)?;
    if !status.success() {
        return Err("the screenshots could not be made".into());
    }
    for name in SHOWN {
        let file = format!("{name}.png");
        std::fs::copy(all.join(&file), shown.join(&file)).map_err(failed)?;
    }
    Ok(())
}

/// Writes the table property × mode.
pub(crate) fn properties(root: &Path) -> Result<(), String> {
    const PAGE: &str = "docs/PROPERTIES.md";
    let words = ["run", "--quiet", "--package", "model-check", "--example", "properties"];
    let output = Command::new(program()).args(words).current_dir(root).output();
    let output = output.map_err(|error| format!("cargo could not be run: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    std::fs::write(root.join(PAGE), output.stdout).map_err(|error| format!("{PAGE} could not be written: {error}"))
}

/// Runs every step; stops at the first that fails.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tests: &[&[&str]] = if has_nextest(root) { &[NEXTEST, DOC_TESTS] } else { &[TESTS] };
    crate::packages::ensure();
    for step in [FORMAT, LINT].iter().chain(tests) {
        cargo(root, step)?;
    }
    Ok(())
}

fn cargo(root: &Path, words: &[&str]) -> Result<(), String> {
    let line = format!("cargo {}", words.join(" "));
    eprintln!("xtask: {line}");
    let status = Command::new(program()).args(words).current_dir(root).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("`{line}` failed (run it by hand to see more)")),
        Err(error) => Err(format!("`{line}` could not be run: {error}")),
    }
}

fn has_nextest(root: &Path) -> bool {
    let mut command = Command::new(program());
    command.args(["nextest", "--version"]).current_dir(root).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The cargo that runs this, so that one toolchain does everything.
fn program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
