//! Problems with application files, reported so that a person can fix them.

use crate::source::{Sources, Span};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One problem, with its position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what would be right.
    pub says: String,
    /// The line as it is written.
    pub text: String,
    /// How many characters of it are meant.
    pub width: usize,
}

/// Maximum number of letters of a line that are shown.
const LINE_LETTERS_MAX: usize = 150;

/// All problems, in the order of the files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, says, text, width } = self;
        write!(formatter, "{file}:{line}:{column}: {says}")?;
        if text.trim().is_empty() {
            return Ok(());
        }
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        // Of a long line, only the part around the position is shown.
        let (skipped, left) = match text.chars().count() {
            ..=LINE_LETTERS_MAX => (0, 0),
            all => {
                let skipped = (column - 1).saturating_sub(LINE_LETTERS_MAX / 3);
                (skipped, all.saturating_sub(skipped + LINE_LETTERS_MAX))
            }
        };
        let shown: String = text.chars().skip(skipped).take(LINE_LETTERS_MAX).collect();
        let [cut, end] = [skipped, left].map(|it| if it > 0 { "… " } else { "" });
        let width = (*width).min(shown.chars().count().saturating_sub(column - 1 - skipped)).max(1);
        // Tabs are kept, so that the caret is under its letter whatever the width of a tab.
        let before: String = cut
            .chars()
            .chain(shown.chars().take(column - 1 - skipped))
            .map(|it| if it == '\t' { '\t' } else { ' ' })
            .collect();
        write!(
            formatter,
            "\n{margin} |\n{number} | {cut}{shown}{}\n{margin} | {before}{}",
            end.trim_end(),
            "^".repeat(width)
        )
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.0.iter().enumerate() {
            let gap = if place == 0 { "" } else { "\n\n" };
            write!(formatter, "{gap}{problem}")?;
        }
        Ok(())
    }
}

/// The problems found so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    told: Vec<(Span, String, Option<Span>)>,
    /// Consequences of problems that are reported.
    silent: usize,
}

impl Findings {
    pub(crate) fn add(&mut self, span: Span, says: impl Into<String>) {
        self.told.push((span, says.into(), None));
    }

    /// A duplicate; the position of the first one is reported with it.
    pub(crate) fn add_again(&mut self, span: Span, says: impl Into<String>, first: Span) {
        self.told.push((span, says.into(), Some(first)));
    }

    /// A problem that only follows from one that is reported: it counts, but is not shown.
    pub(crate) fn add_silently(&mut self) {
        self.silent += 1;
    }

    pub(crate) fn count(&self) -> usize {
        self.told.len() + self.silent
    }

    /// All problems, if there are any, sorted.
    pub(crate) fn conclude(self, sources: &Sources) -> Result<(), Problems> {
        let mut found = self.told;
        found.sort();
        found.dedup();
        let problem = |(span, mut says, first): (Span, String, Option<Span>)| {
            let place = sources.place(span);
            if let Some(first) = first.map(|it| sources.place(it)) {
                says += &match first.file == place.file {
                    true => format!(" (first on line {})", first.line),
                    false => format!(" (first in {}:{})", first.file, first.line),
                };
            }
            let (file, text) = (place.file.into(), place.text.into());
            Problem { file, line: place.line, column: place.column, says, text, width: place.width }
        };
        let problems: Vec<Problem> = found.into_iter().map(problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_its_line_with_a_caret() {
        let mut sources = Sources::default();
        let file = sources.add("shop.yaml", "types:\n  App:\n    import: {}\n");
        let mut findings = Findings::default();
        findings.add(Span { file, start: 18, end: 24 }, "unknown field `import` (did you mean `imports`?)");
        let told = findings.conclude(&sources).unwrap_err().to_string();
        let expected =
            "shop.yaml:3:5: unknown field `import` (did you mean `imports`?)\n  |\n3 |     import: {}\n  |     ^^^^^^";
        assert_eq!(told, expected);
    }

    #[test]
    fn of_a_long_line_what_is_around_the_place_is_shown() {
        let line = format!("{}{}", "a".repeat(1000), "b".repeat(1000));
        let shown = |column: usize, width: usize| {
            let (file, says, text) = ("a".into(), "no".into(), line.clone());
            Problem { file, line: 1, column, says, text, width }.to_string()
        };
        let lines = |letters: &str, caret: usize, width: usize| {
            format!("a:1:COLUMN: no\n  |\n1 | {letters}\n  | {}{}", " ".repeat(caret), "^".repeat(width))
        };
        let (a, b) = ("a".repeat(50), "b".repeat(100));
        assert_eq!(shown(1001, 2), lines(&format!("… {a}{b}…"), 52, 2).replace("COLUMN", "1001"));
        assert_eq!(shown(1, 900), lines(&format!("{}…", "a".repeat(150)), 0, 150).replace("COLUMN", "1"));
        assert_eq!(shown(2001, 1), lines(&format!("… {}", "b".repeat(50)), 52, 1).replace("COLUMN", "2001"));
    }
}
