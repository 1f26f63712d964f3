//! What is wrong with a scenario's text: where, what, and what would be right.

use std::fmt;

/// A place in a text, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where.
    pub spot: Spot,
    /// What is wrong.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

impl Problem {
    pub(super) fn new(spot: Spot, wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self { spot, wrong: wrong.into(), right: right.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {} ({})", self.spot.line, self.spot.column, self.wrong, self.right)
    }
}

/// Everything that is wrong with one scenario's text. Nothing was made of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.problems.iter().map(|problem| format!("{}:{problem}", self.file)).collect::<Vec<_>>().join("\n"))]
pub struct ScenarioError {
    /// The file, or whatever the text is called.
    pub file: String,
    /// What is wrong, in the order of the text.
    pub problems: Vec<Problem>,
}

/// What to say instead of a word that is not known: the nearest of those that are, or all of them.
pub(super) fn instead<'w>(found: &str, known: impl IntoIterator<Item = &'w str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let near = known.iter().map(|word| (distance(found, word), *word)).min();
    match near {
        Some((distance, word)) if distance <= 1 + found.chars().count().min(40) / 3 => format!("did you mean {word}?"),
        Some(_) => format!("known here: {}", known.join(", ")),
        None => "there are none yet".into(),
    }
}

/// How many letters must be added, dropped or exchanged to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    // Nobody mistypes a word longer than this into another one.
    let one: Vec<char> = one.chars().take(40).collect();
    let other: Vec<char> = other.chars().take(40).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (place, letter) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = place + 1;
        for (column, opposite) in other.iter().enumerate() {
            let exchanged = diagonal + usize::from(letter != opposite);
            diagonal = row[column + 1];
            row[column + 1] = exchanged.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_proposed_and_all_words_if_none_is_near() {
        assert_eq!(instead("chnage", ["change", "vm"]), "did you mean change?");
        assert_eq!(instead("elephant", ["change", "vm"]), "known here: change, vm");
        assert_eq!(instead("x", []), "there are none yet");
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
