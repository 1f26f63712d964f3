//! Mutants by rule: every condition negated, every statement dropped, neighbouring match arms swapped.
//!
//! All mutants are in one build. A copy of `protocol` is made in which each place asks a selector whether its mutant is
//! the one that is switched on; so a mutant costs the time to explore it and nothing to build. Each runs in a process
//! of its own, because it may panic, loop or use too much memory. Results are stored one by one, so that an interrupted
//! run can resume.

use super::{
    sites::{self, Site},
    workshop::Workshop,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::{Read as _, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const PAGE: &str = "docs/MUTANTS-BY-RULE.md";
const EQUIVALENT: &str = "model-check/mutants/equivalent.list";
const HUNT: &str = include_str!("hunt.rs.txt");
const SELECTOR: &str = include_str!("selector.rs.txt");
/// Time limit for a mutant.
const SECONDS_MAX: u64 = 120;
/// Maximum number of builds of the copy until every switch compiles.
const BUILDS_MAX: usize = 12;
const MEMORY_KIB_MAX: u64 = 4_000_000;

/// The result of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// It was noticed: by a property, a panic, or because it never ends.
    Killed(String),
    /// Nothing noticed.
    Survived,
}

/// Makes, runs and reports all mutants by rule, or those of files whose names contain one of these words.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let (workshop, sites) = build(root)?;
    let equivalent = equivalents(root)?;
    let kept = workshop.folder().join("results.tsv");
    let mut fates = read(&kept);
    let known: Vec<String> = sites.iter().map(Site::key).collect();
    fates.retain(|key, _| known.contains(key));
    let scenarios = root.join("model-check/tests/scenarios");
    if let Fate::Killed(reason) = hunt(&workshop, 0, &scenarios)? {
        return Err(format!("noticed without any mutant: {reason}"));
    }
    let wanted = |site: &&Site| words.is_empty() || words.iter().any(|word| site.file.contains(word));
    let open: Vec<&Site> = sites.iter().filter(wanted).filter(|site| !fates.contains_key(&site.key())).collect();
    let begun = Instant::now();
    for (place, site) in open.iter().enumerate() {
        let fate = hunt(&workshop, site.number, &scenarios)?;
        let seconds = begun.elapsed().as_secs();
        eprintln!("xtask: {} of {} after {seconds} s: {}: {fate:?}", place + 1, open.len(), site.key());
        append(&kept, &site.key(), &fate)?;
        fates.insert(site.key(), fate);
        // The page is useful while the run is in progress.
        if place % 50 == 0 {
            report(root, &sites, &fates, &equivalent)?;
        }
    }
    report(root, &sites, &fates, &equivalent)
}

/// Writes the copy with all mutants in it, and builds it.
fn build(root: &Path) -> Result<(Workshop, Vec<Site>), String> {
    let mut barred: BTreeSet<(String, usize)> = BTreeSet::new();
    for _ in 0..BUILDS_MAX {
        match build_without(root, &barred) {
            Ok(built) => {
                eprintln!("xtask: {} mutants; {} statements cannot be dropped", built.1.len(), barred.len());
                return Ok(built);
            }
            Err(errors) => {
                let before = barred.len();
                barred.extend(errors.lines().filter_map(error_place).flat_map(|(file, line)| {
                    // The line that the compiler reports may be a few lines after the one that moved the value.
                    (line.saturating_sub(6)..=line).map(move |line| (file.clone(), line))
                }));
                if barred.len() == before {
                    return Err(errors);
                }
            }
        }
    }
    Err("the mutants do not build".into())
}

/// The file and line of a compiler's error.
fn error_place(line: &str) -> Option<(String, usize)> {
    let (file, rest) = line.trim_start().strip_prefix("--> ")?.split_once(':')?;
    Some((file.to_owned(), rest.split(':').next()?.parse().ok()?))
}

fn build_without(root: &Path, barred: &BTreeSet<(String, usize)>) -> Result<(Workshop, Vec<Site>), String> {
    let mut workshop = Workshop::open_in(root, "target/mutants-by-rule")?;
    let mut sites = Vec::new();
    let places: Vec<String> = workshop.files().keys().filter(|place| sites::is_mutated(place)).cloned().collect();
    for place in places {
        let text = workshop.files()[&place].clone();
        let mutated = sites::mutate(&place, &text, barred, &mut sites)?;
        workshop.replace(&place, mutated);
    }
    let front = "protocol/src/lib.rs";
    let lib = format!("{}\npub mod selector;\n", workshop.files()[front]);
    workshop.replace(front, lib);
    workshop.replace("protocol/src/selector.rs", SELECTOR.into());
    workshop.replace("model-check/examples/hunt.rs", HUNT.into());
    workshop.restore()?;
    workshop.build("hunt")?;
    Ok((workshop, sites))
}

/// Explores every scenario with one mutant switched on.
fn hunt(workshop: &Workshop, number: u32, scenarios: &Path) -> Result<Fate, String> {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {MEMORY_KIB_MAX}; exec \"$0\" \"$@\"")]);
    command.arg(workshop.program("hunt")).arg(number.to_string()).arg(scenarios);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("the hunt could not be run: {error}"))?;
    let Some(success) = ended(&mut child) else { return Ok(Fate::Killed("it never ends".into())) };
    let mut line = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut line).map_err(|error| format!("the hunt could not be read: {error}"))?;
    }
    Ok(match (success, line.trim()) {
        (true, "survived") => Fate::Survived,
        (true, reason) => Fate::Killed(reason.into()),
        (false, _) => Fate::Killed("panic".into()),
    })
}

/// Waits for a process; returns whether it succeeded, or `None` if it had to be killed.
fn ended(child: &mut Child) -> Option<bool> {
    let begun = Instant::now();
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status.success());
        }
        if begun.elapsed() > Duration::from_secs(SECONDS_MAX) {
            // It may have ended in the meantime.
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn read(path: &Path) -> BTreeMap<String, Fate> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let fates = text.lines().filter_map(|line| line.split_once('\t')).map(|(key, fate)| match fate {
        "survived" => (key.into(), Fate::Survived),
        reason => (key.into(), Fate::Killed(reason.into())),
    });
    fates.collect()
}

fn append(path: &Path, key: &str, fate: &Fate) -> Result<(), String> {
    let word = if let Fate::Killed(reason) = fate { reason } else { "survived" };
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{key}\t{word}"));
    written.map_err(|error| format!("{}: not written: {error}", path.display()))
}

/// The equivalent mutants, each with the reason: a line `KEY => REASON`.
fn equivalents(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = fs::read_to_string(root.join(EQUIVALENT)).map_err(|error| format!("{EQUIVALENT}: not read: {error}"))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|line| {
        let pair = line.split_once(" => ").map(|(key, reason)| (key.to_owned(), reason.to_owned()));
        pair.ok_or_else(|| format!("{EQUIVALENT}: not `KEY => REASON`: {line}"))
    });
    pairs.collect()
}

fn report(
    root: &Path,
    sites: &[Site],
    fates: &BTreeMap<String, Fate>,
    equivalent: &BTreeMap<String, String>,
) -> Result<(), String> {
    let mut by: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut killed, mut survived, mut same, mut open) = (0_u32, Vec::new(), Vec::new(), 0_u32);
    for site in sites {
        match (fates.get(&site.key()), equivalent.get(&site.key())) {
            (Some(Fate::Killed(reason)), _) => {
                killed += 1;
                *by.entry(reason).or_default() += 1;
            }
            (_, Some(reason)) => same.push((site, reason)),
            (Some(Fate::Survived), None) => survived.push(site),
            (None, None) => open += 1,
        }
    }
    let run = killed + u32::try_from(survived.len()).unwrap_or(u32::MAX);
    let percent = f64::from(killed) * 100.0 / f64::from(run.max(1));
    let mut text = format!(
        "{HEAD}\n{} mutants: {killed} killed, {} survived, {} equivalent, {open} not run. Of those that were run and are not \
         equivalent, {percent:.1} % are killed.\n\n| killed by | mutants |\n|---|---:|\n",
        sites.len(),
        survived.len(),
        same.len()
    );
    let mut by: Vec<(&str, u32)> = by.into_iter().collect();
    by.sort_by_key(|(reason, count)| (u32::MAX - count, *reason));
    for (reason, count) in by {
        let _ = writeln!(text, "| {reason} | {count} |");
    }
    text += "\n## Survivors\n\n| place | rule | code |\n|---|---|---|\n";
    for site in survived {
        let _ =
            writeln!(text, "| `{}:{}` | {} | `{}` |", site.file, site.line, site.rule, site.code.replace('|', "\\|"));
    }
    text += "\n## Equivalent\n\n| place | rule | code | reason |\n|---|---|---|---|\n";
    for (site, reason) in same {
        let code = site.code.replace('|', "\\|");
        let _ = writeln!(text, "| `{}:{}` | {} | `{code}` | {reason} |", site.file, site.line, site.rule);
    }
    fs::write(root.join(PAGE), text).map_err(|error| format!("{PAGE} could not be written: {error}"))
}

const HEAD: &str = "\
# Mutants by rule

Written by `cargo xtask mutants --all`; do not edit. In a copy of the two machines (`protocol/src/agent`, `protocol/src/manager`,
`kind.rs`) every condition is negated, every statement that is a call or an assignment is dropped, and neighbouring match arms
are swapped where their patterns bind nothing; one at a time. With each, every scenario is explored, and random scenarios with
faults, within bounds. A mutant is *killed* if a property breaks, a machine panics, or it never ends. Golden files and unit
tests do not count. Conditions inside macros and the texts of messages are not mutated.
";
