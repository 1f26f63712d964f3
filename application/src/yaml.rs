//! From YAML to a tree. This is the only module that knows the YAML library.
//!
//! The language uses the plain part of YAML: maps, lists and texts. Anchors, aliases, tags and second documents are
//! refused: types, parameters and `extends` express the same more visibly, and nothing can be made to grow. Files of
//! other tools may have anchors ([`parse_foreign`]); there, what aliases copy is counted.

use crate::{
    node::{Comment, Content, Key, Node, Style},
    problem::Findings,
    source::Span,
};
use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, StructureStyle};
use std::collections::BTreeMap;

/// Maximum size of a file that a person writes.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// Maximum number of nodes that the aliases of a file may copy, all together.
const COPIES_MAX: usize = 100_000;
/// Maximum nesting of lists and maps, copies included.
const DEPTH_MAX: usize = 100;

/// Reads a file. What is wrong is told; what could be read before it is returned.
pub(crate) fn parse(file: usize, text: &str, findings: &mut Findings) -> (Option<Node>, Vec<Comment>) {
    read(file, text, findings, None)
}

/// Reads a file of another tool, in which an alias stands for a copy of what its anchor names.
pub(crate) fn parse_foreign(file: usize, text: &str, findings: &mut Findings) -> Option<Node> {
    read(file, text, findings, Some(Anchors::default())).0
}

fn read(file: usize, text: &str, findings: &mut Findings, anchors: Option<Anchors>) -> (Option<Node>, Vec<Comment>) {
    if text.len() > FILE_BYTES_MAX {
        let says = format!("the file is {} bytes long (at most {FILE_BYTES_MAX})", text.len());
        findings.add(Span::beginning(file), says);
        return (None, Vec::new());
    }
    let mut builder = Builder { file, text, findings, open: Vec::new(), root: None, comments: Vec::new(), anchors };
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(true);
    for next in Parser::new_from_str_with_options(text, options) {
        match next {
            Ok((event, span)) => builder.take(event, span),
            Err(error) => {
                let start = error.marker().byte_offset().unwrap_or_default();
                builder.findings.add(Span { file, start, end: start + 1 }, format!("invalid YAML: {}", error.info()));
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
        /// Where each entry is said.
        said: BTreeMap<String, Span>,
        /// The name of the next entry, where it is said; nothing inside of it where that is no text.
        key: Option<Option<Key>>,
        /// Whether an entry has a name that is no text.
        unnamed: bool,
    },
    /// A key that is no text, with all that is inside of it.
    Ignored,
}

/// What anchors name, where they are allowed.
#[derive(Default)]
struct Anchors {
    /// Each with the number of its parts and how deep they are inside of each other.
    named: BTreeMap<usize, (Node, usize, usize)>,
    /// The anchors of the collections that are not closed yet.
    open: Vec<Option<usize>>,
    copied: usize,
}

impl Anchors {
    /// Forgets the anchor of a collection that is closed and of no use.
    fn close(&mut self) {
        self.open.pop();
    }
}

struct Builder<'a> {
    file: usize,
    text: &'a str,
    findings: &'a mut Findings,
    open: Vec<Open>,
    root: Option<Node>,
    comments: Vec<Comment>,
    /// Nothing where anchors are refused.
    anchors: Option<Anchors>,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: granit_parser::Span) {
        let range = span.byte_range().unwrap_or(0..0);
        let span = Span { file: self.file, start: range.start, end: range.end };
        if event.tag().is_some() {
            self.findings.add(span, "YAML tags are not supported (remove the tag)");
        }
        let anchor = event.anchor_id();
        if anchor.is_some() && self.anchors.is_none() {
            self.findings.add(span, "YAML anchors are not supported (use parameters, `extends` or `override`)");
        }
        match event {
            Event::Scalar(text, style, ..) => {
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
                    ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                };
                let text = text.into_owned();
                if let Some((anchors, anchor)) = self.anchors.as_mut().zip(anchor) {
                    let content = Content::Scalar { text: text.clone(), style };
                    anchors.named.insert(anchor, (Node { span, content }, 1, 0));
                }
                self.scalar(text, style, span);
            }
            Event::SequenceStart(style, ..) => {
                self.anchors.iter_mut().for_each(|it| it.open.push(anchor));
                let (start, flow) = (span.start, style == StructureStyle::Flow);
                self.begin(Open::List { start, flow, items: Vec::new() }, span);
            }
            Event::MappingStart(style, ..) => {
                self.anchors.iter_mut().for_each(|it| it.open.push(anchor));
                let (start, flow) = (span.start, style == StructureStyle::Flow);
                self.begin(
                    Open::Map { start, flow, entries: Vec::new(), said: BTreeMap::new(), key: None, unnamed: false },
                    span,
                );
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span.end),
            Event::Alias(anchor) if self.anchors.is_some() => self.copy(anchor, span),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.findings.add(span, "YAML aliases are not supported (use parameters, `extends` or `override`)");
                self.scalar(String::new(), Style::Plain, span);
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                self.findings.add(span, "a second YAML document is not supported (use `include`)");
            }
            Event::Comment(..) => self.comments.push(Comment { span }),
            _ => {}
        }
    }

    fn scalar(&mut self, text: String, style: Style, span: Span) {
        if let Some(Open::Map { key: key @ None, .. }) = self.open.last_mut() {
            *key = Some(Some(Key { text, span, style }));
            return;
        }
        self.put(Node { span, content: Content::Scalar { text, style } });
    }

    fn begin(&mut self, open: Open, span: Span) {
        if let Some(Open::Map { key: None, .. } | Open::Ignored) = self.open.last() {
            if !matches!(self.open.last(), Some(Open::Ignored)) {
                self.findings
                    .add(span, "a name must be a text, not a list or a map (put templates in quotes: \"{{ … }}\")");
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
                self.remember(&node);
                self.put(node);
            }
            Some(Open::Map { start, flow, entries, unnamed, .. }) => {
                let span = span(start);
                let written = self.text.get(span.start..span.end).unwrap_or_default();
                let content = match unnamed && entries.is_empty() && written.starts_with("{{") {
                    // A template without quotes; what it would be with them is plain.
                    true => Content::Scalar { text: written.into(), style: Style::Quoted },
                    false => Content::Map { entries, flow },
                };
                let node = Node { span, content };
                self.remember(&node);
                self.put(node);
            }
            Some(Open::Ignored) if !matches!(self.open.last(), Some(Open::Ignored)) => {
                self.anchors.iter_mut().for_each(Anchors::close);
                // It takes the place of a key; its value follows.
                if let Some(Open::Map { key, unnamed, .. }) = self.open.last_mut() {
                    (*key, *unnamed) = (Some(None), true);
                }
            }
            Some(Open::Ignored) | None => self.anchors.iter_mut().for_each(Anchors::close),
        }
    }

    /// Keeps a collection that is closed now under its anchor, if it has one.
    fn remember(&mut self, node: &Node) {
        let Some(anchors) = &mut self.anchors else { return };
        if let Some(anchor) = anchors.open.pop().flatten() {
            let (size, depth) = extent(node);
            anchors.named.insert(anchor, (node.clone(), size, depth));
        }
    }

    /// Puts a copy of what an anchor names where its alias stands.
    fn copy(&mut self, anchor: usize, span: Span) {
        let Some(anchors) = &mut self.anchors else { return };
        let nothing = Node::nothing(span);
        let (node, size, depth) = match anchors.named.get(&anchor) {
            Some((node, size, depth)) => (node, *size, *depth),
            None => {
                self.findings.add(span, "the alias refers to something that contains it");
                (&nothing, 1, 0)
            }
        };
        anchors.copied += size;
        let grows = anchors.copied > COPIES_MAX || self.open.len() + depth > DEPTH_MAX;
        if grows {
            self.findings.add(span, format!("the aliases expand the file to more than {COPIES_MAX} nodes"));
        }
        let node = if grows { nothing } else { node.clone() };
        match node.content {
            Content::Scalar { text, style } => self.scalar(text, style, node.span),
            _ if matches!(self.open.last(), Some(Open::Map { key: None, .. })) => {
                self.findings.add(span, "a name must be a text, not a list or a map");
                self.scalar(String::new(), Style::Plain, span);
            }
            _ => self.put(node),
        }
    }

    fn put(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, said, key, .. }) => {
                let Some(key) = key.take().flatten() else { return };
                match said.get(&key.text) {
                    Some(first) => {
                        let says = format!("`{}` is defined twice", key.text.escape_debug());
                        self.findings.add_again(key.span, says, *first);
                    }
                    None => {
                        said.insert(key.text.clone(), key.span);
                        entries.push((key, node));
                    }
                }
            }
            Some(Open::Ignored) => {}
            None if self.root.is_none() => self.root = Some(node),
            None => {}
        }
    }
}

/// How many parts there are, and how deep they are inside of each other.
fn extent(node: &Node) -> (usize, usize) {
    let more = |(size, depth): (usize, usize), node: &Node| {
        let (inner, deeper) = extent(node);
        (size + inner, depth.max(deeper + 1))
    };
    match &node.content {
        Content::Scalar { .. } => (1, 0),
        Content::List { items, .. } => items.iter().fold((1, 1), more),
        Content::Map { entries, .. } => entries.iter().map(|(_, node)| node).fold((1, 1), more),
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
        assert_eq!(problems("a: 1\na: 2\n"), ["2:1 `a` is defined twice (first on line 1)"]);
        assert!(problems("a: &x 1\nb: *x\n").len() == 2);
        assert!(problems("a: !x 1\n")[0].contains("tags are not supported"));
        assert!(problems("a: 1\n---\nb: 2\n")[0].contains("second YAML document"));
        let quotes = "a name must be a text, not a list or a map (put templates in quotes: \"{{ … }}\")";
        assert_eq!(
            problems("a: {{ b }}\nc: { {x: 1}: 1, y: {{ z }} }\n"),
            ["1:5", "2:6", "2:21"].map(|at| format!("{at} {quotes}"))
        );
        assert!(problems("a: [1\n")[0].contains("invalid YAML"));
        assert_eq!(problems(""), [""; 0]);
    }

    fn foreign(text: &str) -> (Option<Node>, Vec<String>) {
        let mut sources = Sources::default();
        let file = sources.add("a", text);
        let mut findings = Findings::default();
        let root = parse_foreign(file, text, &mut findings);
        let told = findings.conclude(&sources).err().map(|problems| problems.0).unwrap_or_default();
        (root, told.into_iter().map(|it| it.says).collect())
    }

    #[test]
    fn an_alias_in_a_file_of_another_tool_is_a_copy() {
        let (root, told) = foreign("a: &x { b: [1, &y 2] }\nc: *x\nd: *y\n*y : e\n");
        let root = root.unwrap();
        assert_eq!(told, [""; 0]);
        assert!(root.get("c").unwrap().is_same(root.get("a").unwrap()));
        assert_eq!(
            (root.get("d").unwrap().in_words(), root.get("2").unwrap().in_words()),
            ("`2`".into(), "`e`".into())
        );
    }

    #[test]
    fn aliases_cannot_make_a_file_grow_without_end() {
        assert!(foreign("a: &x [*x]\n").1[0].contains("something that contains it"));
        let mut wide = String::from("a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
        let mut deep = String::from("a0: &a0 [[[[[[[[[[1]]]]]]]]]]\n");
        for place in 1..20 {
            let last = place - 1;
            wide += &format!("a{place}: &a{place} [{}]\n", format!("*a{last}, ").repeat(10));
            deep += &format!("a{place}: &a{place} [[[[[[[[[[*a{last}]]]]]]]]]]\n");
        }
        assert!(foreign(&wide).1[0].contains("expand the file to more than"));
        assert!(foreign(&deep).1[0].contains("expand the file to more than"));
    }
}
