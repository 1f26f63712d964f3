//! From YAML to a tree. This is the only module that knows the YAML library.
//!
//! The language takes the plain part of YAML: maps, lists and texts. Anchors, aliases, tags and second documents are
//! refused: types, parameters and `extends` say the same so that a person can see it, and nothing can be made to grow.

use crate::{
    node::{Comment, Content, Key, Node, Style},
    problem::Findings,
    source::Span,
};
use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, StructureStyle};

/// Bytes of one file.
pub(crate) const FILE_BYTES_MAX: usize = 4 << 20;

/// Reads a file. What is wrong is told; what could be read before it is returned.
pub(crate) fn parse(file: usize, text: &str, findings: &mut Findings) -> (Option<Node>, Vec<Comment>) {
    if text.len() > FILE_BYTES_MAX {
        let says = format!("the file has {} bytes (at most {FILE_BYTES_MAX})", text.len());
        findings.add(Span::beginning(file), says);
        return (None, Vec::new());
    }
    let mut builder = Builder { file, text, findings, open: Vec::new(), root: None, comments: Vec::new() };
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(true);
    for next in Parser::new_from_str_with_options(text, options) {
        match next {
            Ok((event, span)) => builder.take(event, span),
            Err(error) => {
                let start = error.marker().byte_offset().unwrap_or_default();
                builder.findings.add(Span { file, start, end: start + 1 }, format!("no YAML: {}", error.info()));
                break;
            }
        }
    }
    (builder.root, builder.comments)
}

/// A collection that is not closed yet.
enum Open {
    List {
        start: usize,
        flow: bool,
        items: Vec<Node>,
    },
    Map {
        start: usize,
        flow: bool,
        entries: Vec<(Key, Node)>,
        key: Option<Key>,
    },
    /// A key that is no text, with all that is inside of it.
    Ignored,
}

struct Builder<'a> {
    file: usize,
    text: &'a str,
    findings: &'a mut Findings,
    open: Vec<Open>,
    root: Option<Node>,
    comments: Vec<Comment>,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: granit_parser::Span) {
        let range = span.byte_range().unwrap_or(0..0);
        let span = Span { file: self.file, start: range.start, end: range.end };
        if event.tag().is_some() {
            self.findings.add(span, "a tag is no part of the language (take it away)");
        }
        if event.anchor_id().is_some() {
            self.findings.add(span, "an anchor is no part of the language (use parameters, `extends` or `override`)");
        }
        match event {
            Event::Scalar(text, style, ..) => {
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
                    ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                };
                self.scalar(text.into_owned(), style, span);
            }
            Event::SequenceStart(style, ..) => {
                let (start, flow) = (span.start, style == StructureStyle::Flow);
                self.begin(Open::List { start, flow, items: Vec::new() }, span);
            }
            Event::MappingStart(style, ..) => {
                let (start, flow) = (span.start, style == StructureStyle::Flow);
                self.begin(Open::Map { start, flow, entries: Vec::new(), key: None }, span);
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span.end),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.findings
                    .add(span, "an alias is no part of the language (use parameters, `extends` or `override`)");
                self.scalar(String::new(), Style::Plain, span);
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                self.findings.add(span, "a second document (a file is one; use `include` for more)");
            }
            Event::Comment(..) => self.comments.push(Comment { span }),
            _ => {}
        }
    }

    fn scalar(&mut self, text: String, style: Style, span: Span) {
        if let Some(Open::Map { key: key @ None, .. }) = self.open.last_mut() {
            *key = Some(Key { text, span, style });
            return;
        }
        self.put(Node { span, content: Content::Scalar { text, style } });
    }

    fn begin(&mut self, open: Open, span: Span) {
        if let Some(Open::Map { key: None, .. } | Open::Ignored) = self.open.last() {
            if !matches!(self.open.last(), Some(Open::Ignored)) {
                self.findings.add(span, "a name is a text, not a list or map (put templates into quotes: \"{{ … }}\")");
            }
            self.open.push(Open::Ignored);
        } else {
            self.open.push(open);
        }
    }

    fn end(&mut self, end: usize) {
        let span = |start| Span {
            file: self.file,
            start,
            end: self.text[..end.min(self.text.len())].trim_end().len().max(start),
        };
        match self.open.pop() {
            Some(Open::List { start, flow, items }) => {
                let node = Node { span: span(start), content: Content::List { items, flow } };
                self.put(node);
            }
            Some(Open::Map { start, flow, entries, .. }) => {
                let node = Node { span: span(start), content: Content::Map { entries, flow } };
                self.put(node);
            }
            Some(Open::Ignored) if !matches!(self.open.last(), Some(Open::Ignored)) => {
                // It takes the place of a key; its value follows.
                if let Some(Open::Map { key, .. }) = self.open.last_mut() {
                    *key = Some(Key {
                        text: String::new(),
                        span: Span { file: self.file, start: end, end },
                        style: Style::Plain,
                    });
                }
            }
            Some(Open::Ignored) | None => {}
        }
    }

    fn put(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => {
                let Some(key) = key.take() else { return };
                if entries.iter().any(|(known, _)| known.text == key.text) {
                    self.findings.add(key.span, format!("`{}` is said twice", key.text.escape_debug()));
                } else {
                    entries.push((key, node));
                }
            }
            Some(Open::Ignored) => {}
            None if self.root.is_none() => self.root = Some(node),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Sources;

    fn problems(text: &str) -> Vec<String> {
        let mut sources = Sources::default();
        let file = sources.add("a", text);
        let mut findings = Findings::default();
        parse(file, text, &mut findings);
        let told = findings.conclude(&sources).err().map(|problems| problems.0).unwrap_or_default();
        told.into_iter().map(|it| format!("{}:{} {}", it.line, it.column, it.says)).collect()
    }

    #[test]
    fn a_tree_knows_the_places_of_all_its_parts() {
        let text = "a: 1\nb:\n  - x # why\n  - { c: 'ä', d: \"q\" }\n";
        let mut findings = Findings::default();
        let (root, comments) = parse(0, text, &mut findings);
        let root = root.unwrap();
        assert_eq!(findings.count(), 0);
        let Content::List { items, .. } = &root.get("b").unwrap().content else { panic!("a list") };
        let c = items[1].get("c").unwrap();
        assert_eq!(&text[c.span.start..c.span.end], "'ä'");
        assert_eq!(&text[items[1].span.start..items[1].span.end], "{ c: 'ä', d: \"q\" }");
        assert_eq!(&text[comments[0].span.start..comments[0].span.end], "# why");
    }

    #[test]
    fn what_is_no_part_of_the_language_is_told() {
        assert_eq!(problems("a: 1\na: 2\n"), ["2:1 `a` is said twice"]);
        assert!(problems("a: &x 1\nb: *x\n").len() == 2);
        assert!(problems("a: !x 1\n")[0].contains("a tag"));
        assert!(problems("a: 1\n---\nb: 2\n")[0].contains("second document"));
        assert!(problems("a: {{ b }}\n")[0].contains("put templates into quotes"));
        assert!(problems("a: [1\n")[0].contains("no YAML"));
        assert_eq!(problems(""), [""; 0]);
    }
}
