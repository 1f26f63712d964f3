//! Files as they were read, and places in them.

use crate::document::beside;
use std::ops::Range;

/// The texts that an application was read from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    files: Vec<File>,
}

#[derive(Clone, Debug)]
struct File {
    name: String,
    text: String,
    /// Where each line begins; so a file with many mistakes is not counted through for each of them.
    lines: Vec<usize>,
}

/// A piece of one file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) file: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A place as people see it: the line and column, both from 1, the line itself, and how much of it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) file: &'a str,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) text: &'a str,
    pub(crate) width: usize,
}

impl Sources {
    /// Takes in a file and says its number.
    pub(crate) fn add(&mut self, name: &str, text: &str) -> usize {
        let lines = [0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        self.files.push(File { name: name.into(), text: text.into(), lines });
        self.files.len() - 1
    }

    /// Whether a file of this name was read already, however it was called then.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.files.iter().any(|it| it.name == name || beside("", &it.name) == name)
    }

    pub(crate) fn name(&self, file: usize) -> &str {
        self.files.get(file).map_or("", |it| &it.name)
    }

    /// The text of a piece; nothing if there is no such piece.
    pub(crate) fn slice(&self, span: Span) -> &str {
        self.files.get(span.file).and_then(|it| it.text.get(span.start..span.end)).unwrap_or_default()
    }

    /// Where a piece of a text stands that was read from here; nothing where it is written in another way, with escapes or
    /// folded lines.
    pub(crate) fn within(&self, span: Span, text: &str, piece: Range<usize>) -> Option<Span> {
        let written = self.slice(span);
        let length = piece.len();
        let at = if written == text {
            piece.start
        } else {
            let line = text.get(piece.start..)?.lines().next().map(str::trim_end).filter(|it| !it.is_empty())?;
            let before = text.match_indices(line).take_while(|(at, _)| *at < piece.start).count();
            written.match_indices(line).nth(before)?.0
        };
        let start = span.start + at;
        Some(Span { file: span.file, start, end: start + length })
    }

    /// Where a piece begins, for people.
    pub(crate) fn place(&self, span: Span) -> Place<'_> {
        let Some(File { name, text, lines }) = self.files.get(span.file) else {
            return Place { file: "", line: 1, column: 1, text: "", width: 1 };
        };
        let start = floor_boundary(text, span.start);
        let number = lines.partition_point(|it| *it <= start);
        let line_start = lines[number - 1];
        let line_end = lines.get(number).map_or(text.len(), |next| next - 1);
        let line = text[line_start..line_end].trim_end_matches('\r');
        let end = floor_boundary(text, span.end).clamp(start, line_start + line.len().max(start - line_start));
        Place {
            file: name,
            line: number,
            column: text[line_start..start].chars().count() + 1,
            text: line,
            width: text[start..end].chars().count().max(1),
        }
    }
}

impl Span {
    /// The whole beginning of a file, for what is missing from it.
    pub(crate) fn beginning(file: usize) -> Self {
        Self { file, start: 0, end: 0 }
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_as_people_count() {
        let mut sources = Sources::default();
        let file = sources.add("a.yaml", "one: ä\r\ntwo: bcd\n");
        let at = |start, end| sources.place(Span { file, start, end });
        assert_eq!(at(5, 7), Place { file: "a.yaml", line: 1, column: 6, text: "one: ä", width: 1 });
        assert_eq!(at(14, 17), Place { file: "a.yaml", line: 2, column: 6, text: "two: bcd", width: 3 });
        let piece = |text: &str, piece| sources.within(Span { file, start: 9, end: 17 }, text, piece);
        assert_eq!(piece("bcd", 1..2), Some(Span { file, start: 15, end: 16 }));
        assert_eq!((piece("x\ny", 2..3), piece("bcd", 3..3)), (None, None));
        // What goes over the end of the line, or of the file, is cut there; what is in the middle of a letter begins with it.
        assert_eq!((at(14, 99).width, at(99, 100).line, at(6, 7).column), (3, 3, 6));
    }
}
