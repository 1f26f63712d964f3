//! The result of each mutant, as a line and as the table in `docs/MUTANTS.md`.

use super::{patch::Mutant, workshop::Found};
use std::fmt;

/// The result of one mutant.
pub(super) struct Verdict {
    pub(super) mutant: Mutant,
    /// The result of its scenario with the unchanged rules.
    pub(super) sound: Found,
    /// The result with the mutant.
    pub(super) found: Found,
}

impl Verdict {
    /// Whether it survived without a documented reason.
    pub(super) fn is_unexplained(&self) -> bool {
        matches!(self.found, Found::Nothing { .. }) && self.mutant.survives.is_none()
    }

    fn row(&self) -> String {
        let Mutant { row, scenario, catalogue, survives, .. } = &self.mutant;
        let (verdict, property, actions, deliveries) = match &self.found {
            Found::Breach { property, actions, deliveries, .. } => {
                let alone = if self.mutant.alone.is_some() { " (and nothing else)" } else { "" };
                ("killed", format!("{property}{alone}"), actions.to_string(), deliveries.to_string())
            }
            Found::Panic(message) => ("killed", format!("panic: {message}"), "–".into(), "–".into()),
            Found::Nothing { complete, .. } => {
                let reason = survives.clone().unwrap_or_else(|| match complete {
                    true => "nothing goes wrong in this scenario".into(),
                    false => "nothing goes wrong as far as was looked".into(),
                });
                ("**SURVIVED**", reason, "–".into(), "–".into())
            }
        };
        let removed = link(&self.mutant);
        let catalogue = catalogue.as_deref().unwrap_or("–");
        let links = self.mutant.edits.iter().any(|edit| edit.file.starts_with("model-check/"));
        let place = if links { " (model of the links)" } else { "" };
        let worlds = match &self.sound {
            Found::Nothing { states, complete: true } => format!("{states}"),
            Found::Nothing { states, complete: false } => format!("first {states}"),
            Found::Breach { .. } | Found::Panic(_) => "–".into(),
        };
        format!(
            "| {row} | {removed}{place} | `{scenario}` | {worlds} | {verdict} | \
             {property} | {actions} | {deliveries} | {catalogue} |"
        )
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.mutant.name;
        match &self.found {
            Found::Breach { property, detail, actions, deliveries } => {
                write!(
                    formatter,
                    "{name}: killed after {actions} actions, {deliveries} deliveries: {property}: {detail}"
                )
            }
            Found::Panic(message) => write!(formatter, "{name}: killed by a panic: {message}"),
            Found::Nothing { states, complete } => {
                let how = if *complete { "all" } else { "the first" };
                write!(formatter, "{name}: SURVIVED {how} {states} worlds")
            }
        }
    }
}

const HEAD: &str = "\
# Mutants

Written by `cargo xtask mutants`; do not edit. Each row takes one guard away from a copy of the rules and explores the
scenario of its race in every order. The scenario holds with the rules as they are, in the number of worlds given (all of
them, or the first ones of a breadth-first walk). A mutant is *killed* if a property breaks; the length is that of a
shortest counterexample, in actions of any sort and in messages delivered. Beside it stands the length, in deliveries,
that the catalogue of races gives for a naive implementation. That one counts from other beginnings (here a scenario first
sets up its VMs), so the numbers are of one order but need not be equal.

The rows after the races show that each property is needed: with `(and nothing else)`, no other property notices the mutant
in its scenario.

The rules leave order, repetition and waiting to the links. Those guards are taken away from the explorer's model of the
links; the links of the runtime have tests of their own.
";

/// The whole page: new verdicts, and for the other mutants those of the previous page.
pub(super) fn write(mutants: &[Mutant], before: &str, verdicts: &[Verdict]) -> String {
    let row = |mutant: &Mutant| {
        let new = verdicts.iter().find(|verdict| verdict.mutant.name == mutant.name).map(Verdict::row);
        let old = || before.lines().find(|line| line.contains(&link(mutant))).map(String::from);
        new.or_else(old).unwrap_or_else(|| {
            format!("| {} | {} | `{}` | – | not explored | – | – | – | – |", mutant.row, link(mutant), mutant.scenario)
        })
    };
    let rows: Vec<String> = mutants.iter().map(row).collect();
    let killed = rows.iter().filter(|row| row.contains("| killed |")).count();
    format!(
        "{HEAD}\n{killed} of {} mutants are killed.\n\n\
         | row | without the guard | scenario | worlds | verdict | what breaks | actions | deliveries | catalogue |\n\
         |---|---|---|---:|---|---|---:|---:|---:|\n{}\n",
        rows.len(),
        rows.join("\n")
    )
}

fn link(mutant: &Mutant) -> String {
    format!("[{}](../model-check/mutants/{}.txt)", mutant.removed, mutant.name)
}
