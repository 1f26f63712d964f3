//! What is wrong with a text, and where.

use std::fmt;

/// A stretch of a text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// From the start of this one to the end of the other.
    pub(crate) fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end.max(self.start) }
    }

    /// The text it stands for.
    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or("").trim()
    }
}

/// One thing that is wrong with a text. `Display` says line and column only after [`Complaint::place_in`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    pub span: Span,
    pub reason: String,
    /// Line and column, counted from 1, once the text is known.
    pub place: Option<(usize, usize)>,
}

impl Complaint {
    pub(crate) fn new(span: Span, reason: String) -> Self {
        Self { span, reason, place: None }
    }

    /// Computes line and column from the text that was read.
    pub(crate) fn place_in(&mut self, text: &str) {
        let before = text.get(..self.span.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        self.place = Some((line, column));
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for Complaint {}
