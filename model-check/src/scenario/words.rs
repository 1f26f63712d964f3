//! From a text to rows of words, each with its place.
//!
//! A word is what stands between blanks; `:` and `,` are words of their own. A word in quotes is always a name, even if
//! it looks like a word of the language. `#` begins a comment at the start of a row or after a blank.

use super::problem::{Problem, Spot};
use protocol::Name;

/// One word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    pub(super) quoted: bool,
    pub(super) spot: Spot,
}

/// One line of text that says something.
#[derive(Clone, Debug)]
pub(super) struct Row<'t> {
    pub(super) indented: bool,
    pub(super) words: Vec<Word<'t>>,
    /// The line without its comment.
    text: &'t str,
    line: usize,
}

/// The rows of a text that are not empty, and the story that its opening comment tells.
pub(super) fn rows(text: &str) -> (Vec<Row<'_>>, String) {
    let opening = text.lines().take_while(|line| line.starts_with('#'));
    let story: Vec<&str> = opening.map(|line| line[1..].strip_prefix(' ').unwrap_or(&line[1..]).trim_end()).collect();
    let rows = text.lines().enumerate().map(|(place, line)| row(place + 1, line));
    (rows.filter(|row| !row.words.is_empty()).collect(), story.join("\n"))
}

fn row(line: usize, text: &str) -> Row<'_> {
    let mut words = Vec::new();
    let mut end = text.len();
    let mut letters = text.char_indices().enumerate().peekable();
    while let Some((column, (start, letter))) = letters.next() {
        let spot = Spot { line, column: column + 1 };
        match letter {
            '#' => {
                end = start;
                break;
            }
            ':' | ',' => words.push(Word { text: &text[start..start + 1], quoted: false, spot }),
            '"' => {
                // A quote that is not closed stays part of the word, so that no name is made of it.
                let inside = start + 1;
                let close = text[inside..].find('"').map(|length| inside + length);
                words.push(Word {
                    text: close.map_or(&text[start..], |close| &text[inside..close]),
                    quoted: true,
                    spot,
                });
                while letters.next_if(|(_, (place, _))| *place <= close.unwrap_or(text.len())).is_some() {}
            }
            blank if blank.is_whitespace() => {}
            _ => {
                let rest = &text[start..];
                let length = rest.find(|next: char| next.is_whitespace() || ":,\"".contains(next));
                let length = length.unwrap_or(rest.len());
                words.push(Word { text: &rest[..length], quoted: false, spot });
                while letters.next_if(|(_, (place, _))| *place < start + length).is_some() {}
            }
        }
    }
    Row { indented: text.starts_with(char::is_whitespace), words, text: &text[..end], line }
}

/// Reads the words of a row one after the other.
#[derive(Clone, Debug)]
pub(super) struct Reader<'r, 't> {
    row: &'r Row<'t>,
    next: usize,
}

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Called {
    pub(super) name: Name,
    pub(super) spot: Spot,
}

impl<'r, 't> Reader<'r, 't> {
    pub(super) fn new(row: &'r Row<'t>) -> Self {
        Self { row, next: 0 }
    }

    pub(super) fn peek(&self) -> Option<Word<'t>> {
        self.row.words.get(self.next).copied()
    }

    /// Where the next word stands, or would stand.
    pub(super) fn spot(&self) -> Spot {
        let end = Spot { line: self.row.line, column: self.row.text.trim_end().chars().count() + 1 };
        self.peek().map_or(end, |word| word.spot)
    }

    /// Takes the next word if it is this word of the language.
    pub(super) fn take(&mut self, keyword: &str) -> bool {
        let found = self.peek().is_some_and(|word| !word.quoted && word.text == keyword);
        self.next += usize::from(found);
        found
    }

    /// Takes the next word, whatever it is.
    pub(super) fn word(&mut self) -> Option<Word<'t>> {
        let word = self.peek()?;
        self.next += 1;
        Some(word)
    }

    /// Takes a word of the language that must be here.
    pub(super) fn expect(&mut self, keyword: &str, example: &str) -> Result<(), Problem> {
        if self.take(keyword) { Ok(()) } else { Err(self.missing(&format!("{keyword:?}"), example)) }
    }

    /// The problem that something else was expected here.
    pub(super) fn missing(&self, what: &str, example: &str) -> Problem {
        let found = self.peek().map_or("the line ends".into(), |word| format!("found {:?}", word.text));
        Problem::new(self.spot(), format!("expected {what}, but {found}"), format!("for example: {example}"))
    }

    /// Takes a name. A word of the language is one only in quotes.
    pub(super) fn name(&mut self, what: &str, example: &str) -> Result<Called, Problem> {
        let Some(word) = self.peek().filter(|word| word.quoted || !":,".contains(word.text)) else {
            return Err(self.missing(what, example));
        };
        let spot = word.spot;
        if !word.quoted && is_reserved(word.text) {
            let right = format!("for example: {example}; or write \"{}\" in quotes if it is the name", word.text);
            return Err(Problem::new(
                spot,
                format!("expected {what}, but {:?} is a word of the language", word.text),
                right,
            ));
        }
        self.next += 1;
        let name = Name::new(word.text)
            .map_err(|error| Problem::new(spot, error.to_string(), format!("for example: {example}")))?;
        Ok(Called { name, spot })
    }

    /// Takes names for as long as there are any; at least one.
    pub(super) fn names(&mut self, what: &str, example: &str) -> Result<Vec<Called>, Problem> {
        let mut names = vec![self.name(what, example)?];
        while self.peek().is_some_and(|word| word.quoted || !(is_reserved(word.text) || ":,".contains(word.text))) {
            names.push(self.name(what, example)?);
        }
        Ok(names)
    }

    /// Takes `component.import`: the last dot divides, so an import's name has none.
    pub(super) fn port(&mut self, example: &str) -> Result<(Called, Called), Problem> {
        let missing = self.missing("COMPONENT.IMPORT", example);
        let word = self.peek().ok_or(missing.clone())?;
        let (component, import) = word.text.rsplit_once('.').ok_or(missing)?;
        self.next += 1;
        let column = word.spot.column + component.chars().count() + 1;
        let called = |text: &str, spot: Spot| {
            let name = Name::new(text);
            let name =
                name.map_err(|error| Problem::new(spot, error.to_string(), format!("for example: {example}")))?;
            Ok(Called { name, spot })
        };
        Ok((called(component, word.spot)?, called(import, Spot { column, ..word.spot })?))
    }

    /// Takes a number, if one is next.
    pub(super) fn number(&mut self) -> Option<u32> {
        let number = self.peek().filter(|word| !word.quoted)?.text.parse().ok()?;
        self.next += 1;
        Some(number)
    }

    /// Takes a number that must be here.
    pub(super) fn expect_number(&mut self, what: &str, example: &str) -> Result<u32, Problem> {
        self.number().ok_or_else(|| self.missing(what, example))
    }

    /// Takes everything up to the end of the row as it stands.
    pub(super) fn rest(&mut self) -> &'t str {
        let Some(word) = self.peek() else { return "" };
        self.next = self.row.words.len();
        let start = self.row.text.char_indices().nth(word.spot.column - 1).map_or(self.row.text.len(), |(at, _)| at);
        self.row.text[start..].trim()
    }

    /// Nothing more must follow.
    pub(super) fn end(&self) -> Result<(), Problem> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(Problem::new(
                word.spot,
                format!("{:?} is too much here", word.text),
                "end the line before it, or begin a comment with #",
            )),
        }
    }
}

/// The words of the language: as names they stand in quotes.
const RESERVED: [&str; 53] = [
    "add",
    "after",
    "any",
    "as",
    "at",
    "be",
    "bind",
    "cancel",
    "capacity",
    "change",
    "changes",
    "exports",
    "factor",
    "faults",
    "from",
    "gone",
    "holds",
    "imports",
    "incomplete",
    "lose",
    "maybe",
    "need",
    "never",
    "nothing",
    "on",
    "optional",
    "or",
    "pause",
    "prepares",
    "purges",
    "rebinds",
    "refused",
    "remove",
    "renews",
    "replace",
    "restart",
    "retry",
    "skip",
    "sometimes",
    "started",
    "stopped",
    "failed",
    "strong",
    "that",
    "time",
    "to",
    "unbind",
    "unfinished",
    "value",
    "values",
    "vm",
    "weak",
    "with",
];

/// Whether a bare word is a word of the language, or could be taken for a number.
pub(super) fn is_reserved(text: &str) -> bool {
    RESERVED.contains(&text) || text.bytes().all(|byte| byte.is_ascii_digit()) || text.starts_with("----")
}
