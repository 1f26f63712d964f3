//! The project rules that can be checked by reading: dependencies between crates, words, names and sizes of files.
//!
//! It is a ratchet: existing exceptions are listed with a reason, new code must comply, and a listed exception that is no
//! longer needed must be removed.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// Crates by level. A crate depends only on crates of lower levels, and crates of one level do not know each other.
const LEVELS: &[&[&str]] = &[
    &["protocol"],
    &["planner", "recipe", "runtime"],
    // The manager's cloud on this machine runs agents, and the manager holds applications.
    &["application", "model-check", "vm-agent"],
    &["cloud-manager"],
    &["cli"],
    // They depend on everything, and nothing depends on them.
    &["tests", "bench", "xtask"],
];

/// Crates that do no I/O, read no clock and draw no random number, and what would let them. They depend on no other crate
/// of this workspace than on each other, and the bans in their `clippy.toml` are the same.
const PURE: &[&str] = &["protocol", "planner", "recipe", "application"];
const IMPURE: &[&str] =
    &["tokio", "rand", "tracing", "log", "quinn", "ractor", "axum", "hyper", "rustix", "reqwest", "getrandom"];

/// Lines of one file. A longer one usually holds a second idea.
const LINES_MAX: usize = 600;

/// Files that are longer, each with the reason.
const LONG: &[(&str, &str)] = &[];

/// The glossary: what words mean, and their names in code.
const GLOSSARY: &str = "docs/GLOSSARY.md";

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "types", "helpers", "helper", "misc"];

/// Words that must not be left in any file, each with the reason. Written in two parts, so as not to find themselves.
const WORDS: &[(&str, &str, &str)] = &[
    ("to", "do!", "no placeholder code"),
    ("unimplement", "ed!", "no placeholder code"),
    ("#[ig", "nore", "a test that does not run shows nothing"),
    ("FIX", "ME", "say it in the tracker, or do it"),
    ("db", "g!(", "a value that is printed is for people"),
    ("/ho", "me/", "a path of one machine means nothing on another"),
    ("/Us", "ers/", "a path of one machine means nothing on another"),
    ("/ro", "ot/", "a path of one machine means nothing on another"),
    ("/wo", "rk/", "a path of one machine means nothing on another"),
];

/// Reports everything that is wrong at once.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let complaints = complaints(root).map_err(|error| format!("the files could not be read: {error}"))?;
    match complaints.len() {
        0 => Ok(()),
        number => Err(format!("{number} project rules are violated:\n{}", complaints.join("\n"))),
    }
}

fn complaints(root: &Path) -> io::Result<Vec<String>> {
    let mut complaints = Vec::new();
    let mut manifests = BTreeMap::new();
    let mut bans = BTreeMap::new();
    let mut lengths = BTreeMap::new();
    let (mut glossary, mut code) = (String::new(), BTreeMap::<String, String>::new());
    let (mut specification, mut sources) = (String::new(), Vec::new());
    for path in files(root)? {
        let place = place(root, &path);
        let Ok(text) = fs::read_to_string(&path) else { continue };
        complaints.extend(in_any_file(&place, &text));
        if place.ends_with(".rs") {
            complaints.extend(in_rust_file(&place, &text));
            lengths.insert(place.clone(), text.lines().count());
            *code.entry(folder_of(&place).to_owned()).or_default() += &text;
        }
        if place == GLOSSARY {
            glossary.clone_from(&text);
        }
        if place == "docs/PROTOCOL.md" {
            specification.clone_from(&text);
        }
        if place.starts_with("protocol/src/") {
            sources.push(text.clone());
        }
        if let Some(folder) = place.strip_suffix("/Cargo.toml") {
            manifests.insert(folder.to_string(), text);
        } else if let Some(folder) = place.strip_suffix("/clippy.toml") {
            bans.insert(folder.to_string(), text);
        }
    }
    complaints.extend(crate::rules::complaints(&specification, sources.iter().map(String::as_str)));
    complaints.extend(about_arrows(&manifests));
    complaints.extend(about_bans(&bans));
    complaints.extend(about_glossary(&glossary, &code));
    complaints.extend(about_lengths(&lengths, LONG));
    Ok(complaints)
}

fn in_any_file(place: &str, text: &str) -> Vec<String> {
    let found = |line: &str| {
        let broken = WORDS.iter().find(|(one, other, _)| line.contains(&format!("{one}{other}")));
        broken.map(|(one, other, reason)| format!("{one}{other}: {reason}"))
    };
    text.lines()
        .enumerate()
        .filter_map(|(number, line)| found(line).map(|what| format!("{place}:{}: {what}", number + 1)))
        .collect()
}

fn in_rust_file(place: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let stem = Path::new(place).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if EMPTY_NAMES.contains(&stem) {
        complaints.push(format!("{place}: the name does not say what is inside"));
    }
    if !text.starts_with("//!") {
        complaints.push(format!("{place}: a file opens with what it is for (//!)"));
    }
    // A module that is compiled only for tests says so in its name.
    let is_test = stem == "tests" || stem.ends_with("_tests");
    if place.contains("/src/") && !is_test {
        let shipped = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
        let careless = |line: &str| line.contains(concat!(".unw", "rap()")) && !line.trim_start().starts_with("//");
        let lines = shipped.enumerate().filter(|(_, line)| careless(line));
        complaints.extend(
            lines.map(|(number, _)| format!("{place}:{}: unwrap does not say why it cannot happen", number + 1)),
        );
    }
    complaints
}

fn about_arrows(manifests: &BTreeMap<String, String>) -> Vec<String> {
    let level = |name: &str| LEVELS.iter().position(|level| level.contains(&name));
    let mut complaints = Vec::new();
    for (folder, manifest) in manifests {
        let Some(own) = level(folder) else {
            complaints.push(format!("{folder}: no arrow leads to or from it (give it a level in tidy.rs)"));
            continue;
        };
        if !manifest.contains(&format!("name = \"{folder}\"")) {
            complaints.push(format!("{folder}: a crate is called like its folder"));
        }
        if !manifest.contains("[lints]\nworkspace = true") {
            complaints.push(format!("{folder}: a crate takes the lints of the workspace"));
        }
        for dependency in dependencies(manifest) {
            if level(dependency).is_some_and(|other| other >= own) {
                complaints.push(format!("{folder} → {dependency}: arrows point down, see ARCHITECTURE.md"));
            }
            let is_impure = IMPURE.contains(&dependency) || level(dependency).is_some() && !PURE.contains(&dependency);
            if PURE.contains(&folder.as_str()) && is_impure {
                complaints.push(format!("{folder} → {dependency}: {folder} is pure, {dependency} is not"));
            }
        }
    }
    complaints
}

/// Each pure crate has the same bans, those of the first.
fn about_bans(bans: &BTreeMap<String, String>) -> Vec<String> {
    let (first, others) = PURE.split_first().expect("there are pure crates");
    let wanted = bans.get(*first);
    let missing = wanted.is_none().then(|| format!("{first}: a pure crate has bans in its clippy.toml"));
    let differs = others.iter().filter(|folder| wanted.is_some() && bans.get(**folder) != wanted);
    missing.into_iter().chain(differs.map(|it| format!("{it}/clippy.toml: differs from {first}/clippy.toml"))).collect()
}

/// Each name in code that the glossary gives, such as `protocol::Change`, is found in that crate.
fn about_glossary(glossary: &str, code: &BTreeMap<String, String>) -> Vec<String> {
    let paths = glossary.split('`').skip(1).step_by(2).filter_map(|quoted| quoted.split_once("::"));
    let is_found = |(folder, path): (&str, &str)| {
        let name = path.rsplit("::").next().unwrap_or(path);
        let text = code.get(&folder.replace('_', "-")).map_or("", String::as_str);
        text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| word == name)
    };
    let missing = paths.filter(|path| !is_found(*path));
    missing.map(|(folder, path)| format!("{GLOSSARY}: `{folder}::{path}` is not found")).collect()
}

/// The top-level directory of a file.
fn folder_of(place: &str) -> &str {
    place.split_once('/').map_or("", |(folder, _)| folder)
}

/// The dependencies of a crate, without those for tests.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim() == "[dependencies]";
        } else if inside && let Some((name, _)) = line.split_once(['.', ' ', '=']) {
            found.push(name);
        }
    }
    found
}

fn about_lengths(lengths: &BTreeMap<String, usize>, listed: &[(&str, &str)]) -> Vec<String> {
    let is_listed = |place: &str| listed.iter().any(|(long, _)| *long == place);
    let long = lengths.iter().filter(|(place, lines)| **lines > LINES_MAX && !is_listed(place));
    let mut complaints: Vec<String> = long
        .map(|(place, lines)| format!("{place}: {lines} lines (split it, or list it in tidy.rs with a reason)"))
        .collect();
    let outdated = listed.iter().filter(|(place, _)| lengths.get(*place).is_none_or(|lines| *lines <= LINES_MAX));
    complaints.extend(outdated.map(|(place, _)| format!("{place}: no longer long (take it off the list in tidy.rs)")));
    complaints
}

/// Every file that people write, sorted.
fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)? {
            let (path, sort) = entry.map(|entry| (entry.path(), entry.file_type()))?;
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if sort?.is_dir() {
                let is_hidden = name.starts_with('.') && name != ".ci" && name != ".cargo";
                if !is_hidden && !["target", "node_modules"].contains(&name) {
                    open.push(path);
                }
            } else if name != "Cargo.lock" && name != ".git" {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A path relative to the workspace.
fn place(root: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(root).unwrap_or(path);
    inside.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        let found = complaints(&crate::root()).unwrap();
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    fn manifest(name: &str, dependencies: &str) -> (String, String) {
        let text = format!("[package]\nname = \"{name}\"\n[dependencies]\n{dependencies}\n[lints]\nworkspace = true\n");
        (name.into(), text)
    }

    #[test]
    fn arrows_point_down() {
        let right = [manifest("protocol", "serde.workspace = true"), manifest("runtime", "protocol.workspace = true")];
        assert_eq!(about_arrows(&right.into()), [""; 0]);
        let wrong = [
            manifest("protocol", "rand = \"1\""),
            manifest("planner", "runtime.workspace = true"),
            manifest("application", "runtime.workspace = true"),
            manifest("model-check", "cli = { path = \"../cli\" }"),
            manifest("attic", ""),
        ];
        assert_eq!(
            about_arrows(&wrong.into()),
            [
                "application → runtime: application is pure, runtime is not",
                "attic: no arrow leads to or from it (give it a level in tidy.rs)",
                "model-check → cli: arrows point down, see ARCHITECTURE.md",
                "planner → runtime: arrows point down, see ARCHITECTURE.md",
                "planner → runtime: planner is pure, runtime is not",
                "protocol → rand: protocol is pure, rand is not",
            ]
        );
    }

    #[test]
    fn pure_crates_share_their_bans() {
        let bans = |planner: &str| {
            let of = |folder: &&str| (folder.to_string(), if *folder == "planner" { planner } else { "bans" }.into());
            PURE.iter().map(of).collect()
        };
        assert_eq!(about_bans(&bans("bans")), [""; 0]);
        assert_eq!(about_bans(&bans("none")), ["planner/clippy.toml: differs from protocol/clippy.toml"]);
        assert_eq!(about_bans(&BTreeMap::new()), ["protocol: a pure crate has bans in its clippy.toml"]);
    }

    #[test]
    fn the_glossary_names_only_what_there_is() {
        let code = [("vm-agent".to_owned(), "pub struct Host<T> {\nmod presence;".to_owned())].into();
        assert_eq!(about_glossary("`apply` is | `vm_agent::Host`, `vm_agent::host::presence` |", &code), [""; 0]);
        assert_eq!(about_glossary("`vm_agent::Hos`, `planner::Host`", &code).len(), 2);
    }

    #[test]
    fn words_names_heads_and_unwraps_are_seen() {
        let word = format!("//! Head.\nfn later() {{ {}{}() }}\n", "to", "do!");
        assert_eq!(in_any_file("a.rs", &word), [format!("a.rs:2: {}{}: no placeholder code", "to", "do!")]);
        let careless = "//! Head.\n// .unwrap() in a comment\nfn f() { g().unwrap() }\n#[cfg(test)]\nh().unwrap()\n";
        assert_eq!(in_rust_file("a/src/b.rs", careless), ["a/src/b.rs:3: unwrap does not say why it cannot happen"]);
        for place in ["a/tests/b.rs", "a/src/b/tests.rs", "a/src/b/hostile_tests.rs"] {
            assert_eq!(in_rust_file(place, careless), [""; 0]);
        }
        assert_eq!(in_rust_file("a/src/utils.rs", "fn f() {}\n").len(), 2);
    }

    #[test]
    fn long_files_are_listed_and_listed_files_are_long() {
        let lengths = BTreeMap::from([("long.rs".to_string(), LINES_MAX + 1), ("short.rs".to_string(), 3)]);
        assert_eq!(about_lengths(&lengths, &[("long.rs", "reason")]), [""; 0]);
        assert_eq!(about_lengths(&lengths, &[("short.rs", "reason")]).len(), 2);
    }
}
