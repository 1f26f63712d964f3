//! Mutants: for each race, its guard is removed from a copy of the rules, and the explorer must notice.
//!
//! `--all` makes mutants by rule instead (`by_rule`).
//!
//! A checker that finds nothing may have nothing to find, or may not be looking. So each guard is removed in turn, in a
//! copy that is built separately, and the scenario of its race is explored in every order. The working tree is never
//! changed.

mod by_rule;
mod patch;
mod sites;
mod table;
mod workshop;

use patch::Mutant;
use std::{fs, path::Path};
use table::Verdict;
use workshop::{Found, Workshop};

/// The races of the catalogue whose guard can be removed; then the properties that one mutant each shows to be needed.
const ROWS: &[&str] = &[
    "R1", "R2", "R3", "R4", "R7", "R16", "R21", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "R17", "R18",
    "R20", "R23", "R29", "R30", "D1", "R22", "R24", "R26", "R31", "R32", "R34", "R36", "R37", "R38", "R39", "R40",
    "R41", "R42", "R43", "R44", "R45", "R46", "R47", "R48", "R49", "R50", "R51", "NEED", "REBOUND", "VMS", "MINIMAL",
    "FAILED", "PATIENCE", "P1", "STALE", "TRUST", "KNOWN", "OWN",
];

const TABLE: &str = "docs/MUTANTS.md";

/// Builds and explores the mutants of these rows, or of all if none is named, and writes their verdicts into the table.
pub(crate) fn run(root: &Path, rows: &[&str]) -> Result<(), String> {
    if let ["--all", words @ ..] = rows {
        return by_rule::run(root, words);
    }
    let every = all(root)?;
    if let Some(row) = rows.iter().find(|row| !ROWS.iter().any(|known| known.eq_ignore_ascii_case(row))) {
        return Err(format!("{row}: no such row (there are {})", ROWS.join(", ")));
    }
    let is_named = |mutant: &&Mutant| rows.is_empty() || rows.iter().any(|row| mutant.row.eq_ignore_ascii_case(row));
    let mutants: Vec<Mutant> = every.iter().filter(is_named).cloned().collect();
    // Stale patches are noticed before anything is built.
    for mutant in &mutants {
        mutant.files(root)?;
    }
    let workshop = Workshop::open(root)?;
    let sound = hold_without_patch(&workshop, &mutants)?;
    let (mut verdicts, mut shared) = (Vec::new(), Vec::new());
    for (mutant, sound) in mutants.into_iter().zip(sound) {
        workshop.apply(&mutant)?;
        let found = workshop.explore(&mutant.scenario, None)?;
        if let Some(alone) = &mutant.alone {
            let noticed = matches!(&found, Found::Breach { property, .. } if property == alone);
            let others = workshop.explore(&mutant.scenario, Some(alone))?;
            if !noticed || !matches!(others, Found::Nothing { .. }) {
                let name = &mutant.name;
                shared.push(format!("{name}: {alone:?} alone should notice it: {found:?}; without it, {others:?}"));
            }
        }
        let verdict = Verdict { mutant, sound, found };
        eprintln!("xtask: {verdict}");
        verdicts.push(verdict);
    }
    let before = fs::read_to_string(root.join(TABLE)).unwrap_or_default();
    let text = table::write(&every, &before, &verdicts);
    fs::write(root.join(TABLE), text).map_err(|error| format!("{TABLE} could not be written: {error}"))?;
    if !shared.is_empty() {
        return Err(shared.join("\n"));
    }
    let survivors: Vec<&str> = verdicts.iter().filter(|it| it.is_unexplained()).map(|it| &*it.mutant.name).collect();
    match survivors.is_empty() {
        true => Ok(()),
        false => Err(format!("not killed, and no reason given: {}", survivors.join(", "))),
    }
}

/// A scenario that fails anyway would kill every mutant: each must hold with the unchanged rules.
fn hold_without_patch(workshop: &Workshop, mutants: &[Mutant]) -> Result<Vec<Found>, String> {
    workshop.restore()?;
    let mut sound: Vec<Found> = Vec::new();
    for (place, mutant) in mutants.iter().enumerate() {
        let same = mutants[..place].iter().position(|other| other.scenario == mutant.scenario);
        let found = match same {
            Some(same) => sound[same].clone(),
            None => workshop.explore(&mutant.scenario, None)?,
        };
        if let Found::Breach { property, detail, .. } = &found {
            return Err(format!("{}: broken without any patch: {property}: {detail}", mutant.scenario));
        }
        eprintln!("xtask: {} holds: {found:?}", mutant.scenario);
        sound.push(found);
    }
    Ok(sound)
}

/// Every mutant, in the order of the catalogue.
fn all(root: &Path) -> Result<Vec<Mutant>, String> {
    let folder = root.join("model-check/mutants");
    let unreadable = |error| format!("{}: not read: {error}", folder.display());
    let mut mutants = Vec::new();
    for entry in fs::read_dir(&folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        // The same directory has the list of equivalent mutants by rule.
        if path.extension().is_none_or(|it| it != "txt") {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(unreadable)?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        mutants.push(Mutant::parse(&name, &text)?);
    }
    mutants.sort_by_key(|mutant| (ROWS.iter().position(|row| *row == mutant.row), mutant.name.clone()));
    Ok(mutants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_applies_exactly_once() {
        let root = crate::root();
        let stale: Vec<String> = all(&root).unwrap().iter().filter_map(|mutant| mutant.files(&root).err()).collect();
        assert!(stale.is_empty(), "{}", stale.join("\n"));
    }

    #[test]
    fn every_row_has_a_mutant_and_every_mutant_a_row_and_a_scenario() {
        let root = crate::root();
        let mutants = all(&root).unwrap();
        for row in ROWS {
            assert!(mutants.iter().any(|mutant| mutant.row == *row), "no mutant for {row}");
        }
        for mutant in mutants {
            assert!(ROWS.contains(&&*mutant.row), "{}: no such row: {}", mutant.name, mutant.row);
            assert!(root.join(workshop::scenario(&mutant.scenario)).is_file(), "{}: {}", mutant.name, mutant.scenario);
        }
    }

    #[test]
    fn the_table_lists_every_mutant() {
        let root = crate::root();
        let table = fs::read_to_string(root.join(TABLE)).unwrap();
        for mutant in all(&root).unwrap() {
            assert!(table.contains(&mutant.removed), "{} is not in {TABLE}: run `cargo xtask mutants`", mutant.name);
        }
    }
}
