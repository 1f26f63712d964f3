//! Text to words. A word keeps its place, so that every later complaint can point at it.

use super::complaint::{Complaint, Span};

/// One word of a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Name(String),
    /// `?x`, without the question mark.
    Variable(String),
    Integer(i64),
    /// A regular expression in single quotes.
    Pattern(String),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

impl Word {
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Name(name) => format!("`{name}`"),
            Self::Variable(name) => format!("`?{name}`"),
            Self::Integer(value) => format!("`{value}`"),
            Self::Pattern(text) => format!("`'{text}'`"),
            Self::Sign(sign) => format!("`{sign}`"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Longer signs come first, so that `<=` is not read as `<` and `=`.
const SIGNS: [&str; 17] = ["<=", ">=", "!=", "==", "<", ">", "=", "+", "-", "*", "(", ")", "[", "]", ":", ";", "."];

/// Splits `text` into words with their places; the last one is always [`Word::End`].
pub(crate) fn words(text: &str, complaints: &mut Vec<Complaint>) -> Vec<(Word, Span)> {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let start = text.len() - rest.len();
        let Some(first) = rest.chars().next() else { break };
        let (word, length) = match first {
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = name_length(rest);
                (Some(Word::Name(rest[..length].to_owned())), length)
            }
            '0'..='9' => integer(rest, start, complaints),
            '?' => variable(rest, start, complaints),
            '\'' => pattern(rest, start, complaints),
            ',' => (Some(Word::Sign(",")), 1),
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (Some(Word::Sign(if *sign == "==" { "=" } else { sign })), sign.len()),
                None => {
                    let span = Span { start, end: start + first.len_utf8() };
                    complaints.push(Complaint::new(span, format!("`{first}` is not a word of this language")));
                    (None, first.len_utf8())
                }
            },
        };
        if let Some(word) = word {
            words.push((word, Span { start, end: start + length }));
        }
        rest = &rest[length..];
    }
    words.push((Word::End, Span { start: text.len(), end: text.len() }));
    words
}

fn name_length(text: &str) -> usize {
    text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len())
}

fn integer(rest: &str, start: usize, complaints: &mut Vec<Complaint>) -> (Option<Word>, usize) {
    let length = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let value = rest[..length].parse::<i64>().ok().filter(|value| *value <= crate::problem::AMOUNT_MAX);
    if value.is_none() {
        let span = Span { start, end: start + length };
        complaints.push(Complaint::new(span, format!("expected a number up to {}", crate::problem::AMOUNT_MAX)));
    }
    (Some(Word::Integer(value.unwrap_or(0))), length)
}

fn variable(rest: &str, start: usize, complaints: &mut Vec<Complaint>) -> (Option<Word>, usize) {
    let length = name_length(&rest[1..]);
    if length == 0 || rest.as_bytes()[1].is_ascii_digit() {
        let span = Span { start, end: start + 1 };
        complaints.push(Complaint::new(span, "expected a variable name right after `?`, as in `?x`".to_owned()));
    }
    (Some(Word::Variable(rest[1..=length].to_owned())), length + 1)
}

fn pattern(rest: &str, start: usize, complaints: &mut Vec<Complaint>) -> (Option<Word>, usize) {
    if let Some(length) = rest[1..].find('\'') {
        return (Some(Word::Pattern(rest[1..=length].to_owned())), length + 2);
    }
    let span = Span { start, end: start + rest.len() };
    complaints.push(Complaint::new(span, "this quote has no end: expected `'`".to_owned()));
    (Some(Word::Pattern(rest[1..].to_owned())), rest.len())
}
