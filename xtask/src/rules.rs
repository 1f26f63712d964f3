//! Checks that every rule of the specification is named at the code that implements it, and that the code names no
//! other rule.

use std::collections::BTreeSet;

/// The letters of the rules: the provider's, the client's, the manager's.
const LETTERS: [char; 3] = ['P', 'C', 'M'];

/// Compares the rules that a specification defines with those that sources name.
pub(crate) fn complaints<'t>(specification: &str, sources: impl Iterator<Item = &'t str>) -> Vec<String> {
    let defined: BTreeSet<String> = specification.split("**").filter_map(rule).collect();
    let named: BTreeSet<String> =
        sources.flat_map(|text| text.split("ule ").skip(1).filter_map(rule).collect::<Vec<_>>()).collect();
    let missing = defined.difference(&named).map(|rule| format!("rule {rule}: no code in protocol/src names it"));
    let unknown = named.difference(&defined).map(|rule| format!("rule {rule}: not in docs/PROTOCOL.md"));
    missing.chain(unknown).collect()
}

/// The rule that a text begins with: a letter and a number.
fn rule(text: &str) -> Option<String> {
    let mut letters = text.chars();
    let letter = letters.next().filter(|letter| LETTERS.contains(letter))?;
    let number: String = letters.by_ref().take_while(char::is_ascii_digit).collect();
    (!number.is_empty()).then(|| format!("{letter}{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_compared_in_both_directions() {
        let specification = "- **P1 Bind.** text, see C1 - **C7 Follow.** **Death.** **Component.**";
        let sources = ["/// Rule P1: binds.", "// (rule C9) and rule of thumb"];
        let found = complaints(specification, sources.into_iter());
        assert_eq!(found, ["rule C7: no code in protocol/src names it", "rule C9: not in docs/PROTOCOL.md"]);
    }
}
