//! Builds mutants: a copy of two crates in a workspace of its own, below `target`.

use super::patch::Mutant;
use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

const CRATES: &[&str] = &["protocol", "model-check"];
const STATES_MAX: u64 = 2_000_000;
const SECONDS_MAX: u64 = 60;
const MEMORY_KIB_MAX: u64 = 4_000_000;

/// Quick to build again after a small edit, and quick enough to explore.
const PROFILE: &str = "[profile.dev]\nopt-level = 1\ndebug = false\nincremental = true\n";

/// The directory of a scenario.
pub(super) fn scenario(name: &str) -> String {
    format!("model-check/tests/scenarios/{name}.txt")
}

/// The result of an exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A property does not hold.
    Breach { property: String, detail: String, actions: u64, deliveries: u64 },
    /// A machine panicked because its state was inconsistent.
    Panic(String),
    /// Everything holds, in this number of worlds; whether these are all worlds.
    Nothing { states: u64, complete: bool },
}

/// The copy, in its state without a patch.
pub(super) struct Workshop {
    root: PathBuf,
    folder: PathBuf,
    files: BTreeMap<String, String>,
}

impl Workshop {
    pub(super) fn open(root: &Path) -> Result<Self, String> {
        Self::open_in(root, "target/mutants")
    }

    /// The same in another directory.
    pub(super) fn open_in(root: &Path, folder: &str) -> Result<Self, String> {
        let unreadable = |error| format!("the crates could not be read: {error}");
        let mut files = BTreeMap::new();
        for name in CRATES {
            let manifest = fs::read_to_string(root.join(name).join("Cargo.toml")).map_err(unreadable)?;
            files.insert(format!("{name}/Cargo.toml"), without_tests(&manifest));
            read_folder(root, &format!("{name}/src"), &mut files).map_err(unreadable)?;
        }
        let example = "model-check/examples/verdict.rs";
        files.insert(example.into(), fs::read_to_string(root.join(example)).map_err(unreadable)?);
        let manifest = fs::read_to_string(root.join("Cargo.toml")).map_err(unreadable)?;
        files.insert("Cargo.toml".into(), workspace(&manifest));
        let workshop = Self { root: root.into(), folder: root.join(folder), files };
        fs::create_dir_all(&workshop.folder).map_err(unreadable)?;
        fs::copy(root.join("Cargo.lock"), workshop.folder.join("Cargo.lock")).map_err(unreadable)?;
        Ok(workshop)
    }

    /// Where the copy is.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The files of the copy.
    pub(super) fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Permanently replaces the text of a file of the copy.
    pub(super) fn replace(&mut self, place: &str, text: String) {
        self.files.insert(place.into(), text);
    }

    /// A program of the copy, once it is built.
    pub(super) fn program(&self, example: &str) -> PathBuf {
        self.folder.join("target/debug/examples").join(example)
    }

    /// Builds the copy as it is now.
    pub(super) fn build(&self, example: &str) -> Result<(), String> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--offline", "--package", "model-check", "--example", example]);
        build.current_dir(&self.folder).env("CARGO_TARGET_DIR", self.folder.join("target"));
        build.env("RUSTFLAGS", "--cap-lints allow");
        let built = build.output().map_err(|error| format!("cargo could not be run: {error}"))?;
        match built.status.success() {
            true => Ok(()),
            false => Err(format!("a mutant does not build:\n{}", String::from_utf8_lossy(&built.stderr))),
        }
    }

    /// Makes the copy equal to the working tree.
    pub(super) fn restore(&self) -> Result<(), String> {
        self.put(&BTreeMap::new())
    }

    /// Makes the copy equal to the working tree with one patch.
    pub(super) fn apply(&self, mutant: &Mutant) -> Result<(), String> {
        self.put(&mutant.files(&self.root)?)
    }

    fn put(&self, changed: &BTreeMap<String, String>) -> Result<(), String> {
        for (place, text) in &self.files {
            let (path, text) = (self.folder.join(place), changed.get(place).unwrap_or(text));
            // Unchanged files keep their modification time, so that nothing is rebuilt needlessly.
            if fs::read_to_string(&path).is_ok_and(|present| present == *text) {
                continue;
            }
            let parent = path.parent().unwrap_or(&self.folder);
            let written = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text));
            written.map_err(|error| format!("{place} could not be copied: {error}"))?;
        }
        Ok(())
    }

    /// Builds the copy and explores one scenario with it, perhaps without a property.
    pub(super) fn explore(&self, name: &str, without: Option<&str>) -> Result<Found, String> {
        self.build("verdict")?;
        let program = self.program("verdict");
        let mut explore = Command::new("sh");
        explore.args(["-c", &format!("ulimit -v {MEMORY_KIB_MAX}; exec \"$0\" \"$@\"")]);
        explore.arg(program).arg(self.root.join(scenario(name)));
        explore.args([STATES_MAX.to_string(), SECONDS_MAX.to_string()]).args(without);
        let output = explore.output().map_err(|error| format!("the explorer could not be run: {error}"))?;
        let (line, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() {
            return read(&line).ok_or_else(|| format!("not understood: {line}"));
        }
        let panicked = errors.lines().skip_while(|line| !line.contains("panicked at")).nth(1);
        panicked.map(|message| Found::Panic(message.into())).ok_or_else(|| format!("{name}: not explored:\n{errors}"))
    }
}

/// Reads the line that the explorer prints.
fn read(line: &str) -> Option<Found> {
    let number = |name| field(line, name).and_then(|text| text.parse().ok());
    let Some(property) = field(line, "property") else {
        return Some(Found::Nothing { states: number("states")?, complete: field(line, "complete")? == "true" });
    };
    let (detail, actions, deliveries) = (field(line, "detail")?, number("actions")?, number("deliveries")?);
    Some(Found::Breach { property, detail, actions, deliveries })
}

/// One field of a flat JSON object.
fn field(line: &str, name: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
    let Some(text) = rest.strip_prefix('"') else {
        return rest.split([',', '}']).next().map(String::from);
    };
    let mut found = String::new();
    let mut letters = text.chars();
    loop {
        match letters.next()? {
            '"' => return Some(found),
            '\\' => found.push(letters.next()?),
            letter => found.push(letter),
        }
    }
}

/// The manifest of the workspace, with two members and another profile.
fn workspace(manifest: &str) -> String {
    let members = CRATES.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let kept = manifest.lines().take_while(|line| !line.starts_with("[profile"));
    let lines = kept.filter(|line| !line.starts_with("default-members")).map(|line| match line {
        line if line.starts_with("members = ") => format!("members = [{members}]"),
        line => line.into(),
    });
    format!("{}\n\n{PROFILE}", lines.collect::<Vec<_>>().join("\n"))
}

/// A manifest without the dependencies of tests.
fn without_tests(manifest: &str) -> String {
    let mut inside = false;
    let kept = manifest.lines().filter(|line| {
        if line.starts_with('[') {
            inside = *line == "[dev-dependencies]";
        }
        !inside
    });
    kept.map(|line| format!("{line}\n")).collect()
}

fn read_folder(root: &Path, place: &str, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(place))? {
        let entry = entry?;
        let place = format!("{place}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            read_folder(root, &place, files)?;
        } else {
            files.insert(place, fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_explorer_says_is_understood() {
        let line = r#"{"actions":12,"complete":true,"deliveries":7,"detail":"say \"a\"","property":"A2 b","states":9}"#;
        let breach = Found::Breach { property: "A2 b".into(), detail: "say \"a\"".into(), actions: 12, deliveries: 7 };
        assert_eq!(read(line), Some(breach));
        let nothing = Found::Nothing { states: 9, complete: false };
        assert_eq!(read(r#"{"complete":false,"states":9}"#), Some(nothing));
        assert_eq!(read("?"), None);
    }

    #[test]
    fn the_copy_has_a_small_workspace() {
        let manifest = "[workspace]\nmembers = [\"a\", \"b\"]\ndefault-members = [\"a\"]\n[profile.dev]\ndebug = 2\n";
        let small = workspace(manifest);
        assert!(small.starts_with("[workspace]\nmembers = [\"protocol\", \"model-check\"]\n\n[profile.dev]\nopt"));
        assert_eq!(without_tests("[dev-dependencies]\na = 1\n[lints]\nb = 2\n"), "[lints]\nb = 2\n");
    }
}
