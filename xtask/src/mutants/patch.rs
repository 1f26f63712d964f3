//! One mutant as text: what it is about, and which text of which files is replaced.
//!
//! ```text
//! row: R8
//! removed: a provider stops without waiting for its loans
//! scenario: r8-a-provider-waits
//! ---- protocol/src/agent/rules.rs
//! the old text, found exactly once
//! ----
//! the new text
//! ```
//!
//! `catalogue:` gives the length of the counterexample that the catalogue of races knows, in deliveries; `survives:` the
//! reason why the explorer does not notice, if that is so; `alone:` the property that notices it and without which no
//! other one does. There may be several edits.

use std::{collections::BTreeMap, fs, path::Path};

/// One guard removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mutant {
    /// The name of its file.
    pub(super) name: String,
    /// The row of the catalogue.
    pub(super) row: String,
    /// The rules without the guard, in words.
    pub(super) removed: String,
    /// The scenario that must notice.
    pub(super) scenario: String,
    /// The length that the catalogue has.
    pub(super) catalogue: Option<String>,
    /// Why it may survive.
    pub(super) survives: Option<String>,
    /// The one property that notices it.
    pub(super) alone: Option<String>,
    pub(super) edits: Vec<Edit>,
}

/// A piece of text that replaces another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) file: String,
    pub(super) old: String,
    pub(super) new: String,
}

impl Mutant {
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut mutant = Self { name: name.into(), ..Self::default() };
        let mut parts = text.split("\n---- ");
        let head = parts.next().unwrap_or_default();
        for line in head.lines() {
            let Some((key, value)) = line.split_once(": ") else {
                return Err(format!("{name}: not `key: value`: {line}"));
            };
            let value = value.to_string();
            match key {
                "row" => mutant.row = value,
                "removed" => mutant.removed = value,
                "scenario" => mutant.scenario = value,
                "catalogue" => mutant.catalogue = Some(value),
                "survives" => mutant.survives = Some(value),
                "alone" => mutant.alone = Some(value),
                _ => return Err(format!("{name}: unknown key {key:?}")),
            }
        }
        for part in parts {
            // A part ends at the line break before the next part, or at that of the file.
            let part = format!("{}\n", part.strip_suffix('\n').unwrap_or(part));
            let edit = part.split_once('\n').and_then(|(file, edit)| Some((file, edit.split_once("\n----\n")?)));
            let Some((file, (old, new))) = edit else {
                return Err(format!("{name}: an edit is old text, ----, new text"));
            };
            let new = new.strip_suffix('\n').unwrap_or(new);
            mutant.edits.push(Edit { file: file.into(), old: old.into(), new: new.into() });
        }
        let missing = [&mutant.row, &mutant.removed, &mutant.scenario].into_iter().any(String::is_empty);
        if missing || mutant.edits.is_empty() {
            return Err(format!("{name}: a mutant has a row, what is removed, a scenario and an edit"));
        }
        Ok(mutant)
    }

    /// The files it changes, with their new text; or which edit does not match the present source.
    pub(super) fn files(&self, root: &Path) -> Result<BTreeMap<String, String>, String> {
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        for edit in &self.edits {
            let text = match files.remove(&edit.file) {
                Some(text) => text,
                None => fs::read_to_string(root.join(&edit.file))
                    .map_err(|error| format!("{} ({}): {} not read: {error}", self.row, self.name, edit.file))?,
            };
            let times = text.matches(&edit.old).count();
            if times != 1 {
                let (row, name, file, old) = (&self.row, &self.name, &edit.file, &edit.old);
                return Err(format!("{row} ({name}): {file}: found {times} times instead of once:\n{old}"));
            }
            files.insert(edit.file.clone(), text.replacen(&edit.old, &edit.new, 1));
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutant_is_read() {
        let text =
            "row: R8\nremoved: it waits\nscenario: r8\n---- a.rs\nold\n  text\n----\nnew\n---- b.rs\ngone\n----\n";
        let mutant = Mutant::parse("r8", text).unwrap();
        let edit = |file: &str, old: &str, new: &str| Edit { file: file.into(), old: old.into(), new: new.into() };
        assert_eq!(mutant.edits, [edit("a.rs", "old\n  text", "new"), edit("b.rs", "gone", "")]);
        assert!(Mutant::parse("r8", "row: R8\n").is_err());
        assert!(Mutant::parse("r8", "colour: red\n").is_err());
    }
}
