//! Formats a file: the same content and the same comments, evenly written.
//!
//! Indentation is two spaces; there is one space after `:` and inside braces, and two before a comment at the end of a
//! line; several empty lines become one, and the sections at the top are separated. What was on one line stays on one
//! line as long as it fits. The order of entries is not changed, nor the quoting of texts.

use crate::{
    node::{Comment, Content, Key, Node, Style},
    problem::{Findings, Problems},
    source::{Sources, Span},
    yaml,
};

/// A longer list or map is written over several lines.
const WIDTH_MAX: usize = 100;

/// Formats a file. What cannot be read is reported; and a file that would not be the same afterwards is left alone.
pub fn format(name: &str, text: &str) -> Result<String, Problems> {
    let mut sources = Sources::default();
    let file = sources.add(name, text);
    let mut findings = Findings::default();
    let (root, comments) = yaml::parse(file, text, &mut findings);
    findings.clone().conclude(&sources)?;
    let mut writer = Writer { text, comments: &comments, out: String::new(), at: 0, ends_kept: false };
    if let Some(root) = &root {
        match &root.content {
            Content::Map { entries, .. } if !entries.is_empty() => writer.map(entries, 0, true),
            _ => writer.line(0, &writer.inline(root).unwrap_or_default()),
        }
    }
    writer.rest(0);
    let written = writer.out.trim_start_matches('\n').to_owned();
    // Nothing may be lost: the result must read the same.
    let mut again = Findings::default();
    let (read, remarks) = yaml::parse(file, &written, &mut again);
    let same = match (&root, &read) {
        (Some(one), Some(other)) => one.is_same(other),
        (None, None) => true,
        _ => false,
    };
    if again.count() > 0 || !same || remarks.len() != comments.len() {
        findings.add(Span::beginning(file), "the file cannot be formatted without changing its meaning (is there a comment inside braces or between words?)");
    }
    findings.conclude(&sources).map(|()| written)
}

struct Writer<'a> {
    text: &'a str,
    comments: &'a [Comment],
    out: String,
    /// How much of the original is written.
    at: usize,
    /// Whether the last text keeps the empty lines at its end: then another one would be part of it.
    ends_kept: bool,
}

impl Writer<'_> {
    fn line(&mut self, indent: usize, text: &str) {
        self.out += &" ".repeat(indent);
        self.out += text.trim_end();
        self.out.push('\n');
        self.ends_kept = false;
    }

    /// Writes the remarks before a place, and an empty line if there was one.
    fn before(&mut self, place: usize, indent: usize) {
        while let Some((comment, rest)) = self.comments.split_first().filter(|(it, _)| it.span.start < place) {
            self.comments = rest;
            let remark = self.text[comment.span.start..comment.span.end].trim_end();
            let between = &self.text[self.at.min(comment.span.start)..comment.span.start];
            if !between.contains('\n') && self.out.ends_with('\n') && self.at > 0 {
                // It belongs to the line before.
                self.out.pop();
                self.out += &format!("  {remark}\n");
            } else {
                self.gap(comment.span.start);
                self.line(indent, remark);
            }
            self.at = comment.span.end;
        }
        self.gap(place);
    }

    fn gap(&mut self, place: usize) {
        let between = self.text.get(self.at..place).unwrap_or_default();
        // What stands before the first line end and after the last belongs to other things.
        let mut lines = between.split('\n');
        lines.next();
        lines.next_back();
        let is_apart = lines.any(|line| line.trim().is_empty());
        if is_apart && !self.ends_kept && !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
        self.at = self.at.max(place);
    }

    fn rest(&mut self, indent: usize) {
        self.before(usize::MAX, indent);
    }

    fn map(&mut self, entries: &[(Key, Node)], indent: usize, top: bool) {
        for (place, (key, node)) in entries.iter().enumerate() {
            self.before(key.span.start, indent);
            let large = |node: &Node| matches!(node.content, Content::Map { .. } | Content::List { .. });
            if top
                && place > 0
                && (large(node) || large(&entries[place - 1].1))
                && !self.ends_apart()
                && !self.ends_kept
            {
                self.set_apart();
            }
            self.at = self.at.max(key.span.end);
            let name = self.raw(key.span, &key.text, key.style);
            self.entry(&format!("{name}:"), node, indent);
        }
    }

    /// Whether the last lines are remarks with an empty line before them, or an empty line.
    fn ends_apart(&self) -> bool {
        let mut lines = self.out.lines().rev();
        let first = lines.find(|line| !line.trim_start().starts_with('#'));
        first.is_none_or(str::is_empty)
    }

    /// Puts an empty line before the remarks at the end.
    fn set_apart(&mut self) {
        let lines: Vec<&str> = self.out.lines().collect();
        let remarks = lines.iter().rev().take_while(|line| line.starts_with('#')).count();
        let (before, after) = lines.split_at(lines.len() - remarks);
        let mut out = before.join("\n") + "\n\n";
        after.iter().for_each(|line| out += &format!("{line}\n"));
        self.out = out;
    }

    /// Writes what follows a name or a dash.
    fn entry(&mut self, head: &str, node: &Node, indent: usize) {
        let remarks = self.comments.first().is_some_and(|it| it.span.start < node.span.end);
        if let Content::Scalar { style: Style::Block, .. } = node.content {
            self.block(head, node, indent);
            return;
        }
        let is_flow = match &node.content {
            Content::Scalar { .. } => true,
            Content::List { flow, items } => *flow || items.is_empty(),
            Content::Map { flow, entries } => *flow || entries.is_empty(),
        };
        let short = self.inline(node).filter(|it| indent + head.chars().count() + 1 + it.chars().count() <= WIDTH_MAX);
        let scalar = matches!(node.content, Content::Scalar { .. });
        match short.or_else(|| self.inline(node).filter(|_| scalar)) {
            // A remark between a name and its text goes behind the text.
            Some(short) if is_flow && (!remarks || scalar) => {
                self.line(indent, &format!("{head} {short}"));
                self.at = self.at.max(node.span.end);
            }
            _ => {
                self.line(indent, head);
                match &node.content {
                    Content::Map { entries, .. } => self.map(entries, indent + 2, false),
                    Content::List { items, .. } => self.list(items, indent + 2),
                    Content::Scalar { .. } => {}
                }
                if is_flow {
                    self.at = self.at.max(node.span.end);
                }
            }
        }
    }

    fn list(&mut self, items: &[Node], indent: usize) {
        for node in items {
            let begins = self.mark(node).map_or(node.span.start, |(mark, _)| mark);
            self.before(begins, indent);
            match &node.content {
                // Its first entry stands beside the dash.
                Content::Map { entries, flow: false } if !entries.is_empty() => {
                    let from = self.out.len();
                    self.map(entries, indent + 2, false);
                    let written = self.out.split_off(from);
                    self.out += &format!("{}- {}", " ".repeat(indent), written.trim_start());
                }
                _ => self.entry("-", node, indent),
            }
        }
    }

    /// Where the mark before a text over several lines begins and where its line ends; the text's own span begins with its
    /// first word.
    fn mark(&self, node: &Node) -> Option<(usize, usize)> {
        let Content::Scalar { style: Style::Block, .. } = node.content else { return None };
        let from = self.at.min(node.span.start);
        let is_remark = |at: usize| self.comments.iter().any(|it| it.span.start <= at && at < it.span.end);
        let marks = self.text[from..node.span.start].match_indices(['|', '>']).map(|(at, _)| from + at);
        let mut lines = marks.map(|mark| (mark, self.text[mark..].find('\n').map_or(self.text.len(), |at| mark + at)));
        lines.find(|(mark, end)| {
            let words = self.text[mark + 1..*end].split('#').next().unwrap_or_default();
            !is_remark(*mark) && words.trim().chars().all(|it| it.is_ascii_digit() || "+-".contains(it))
        })
    }

    /// A text over several lines, moved as a whole.
    fn block(&mut self, head: &str, node: &Node, indent: usize) {
        let (mark, mark_end) = self.mark(node).unwrap_or((node.span.start, node.span.start));
        let words = self.text[mark..mark_end].split('#').next().unwrap_or_default().trim();
        // A text that begins with spaces says how far it is indented, which is always the same here.
        let says_indent = words.contains(|it: char| it.is_ascii_digit());
        let mark: String = words.chars().map(|it| if it.is_ascii_digit() { '2' } else { it }).collect();
        let mut line = format!("{head} {mark}");
        // A remark beside the mark, or before it, has no other place.
        if let Some((comment, rest)) = self.comments.split_first().filter(|(it, _)| it.span.start < mark_end) {
            line += &format!("  {}", self.text[comment.span.start..comment.span.end].trim_end());
            self.comments = rest;
        }
        self.line(indent, &line);
        let whole = &self.text[mark_end..node.span.end.clamp(mark_end, self.text.len())];
        let keeps = words.contains('+');
        // The last line may be the beginning of what follows.
        let whole = if keeps { whole.trim_end_matches(' ') } else { whole.trim_end() };
        let lines: Vec<&str> = whole.lines().skip(1).collect();
        let depth = |line: &&str| line.len() - line.trim_start_matches(' ').len();
        let least = lines.iter().filter(|it| !it.trim().is_empty()).map(depth).min().unwrap_or(0);
        let own = match &node.content {
            Content::Scalar { text, .. } if says_indent => {
                text.lines().filter(|it| !it.trim().is_empty()).map(|it| depth(&it)).min().unwrap_or(0)
            }
            _ => 0,
        };
        let least = least.saturating_sub(own);
        for line in &lines {
            let inside = line.get(least..).unwrap_or_default();
            let margin = if inside.is_empty() { 0 } else { indent + 2 };
            self.out += &format!("{}{inside}\n", " ".repeat(margin));
        }
        self.at = mark_end + whole.len();
        self.ends_kept = keeps;
    }

    /// A text as its author wrote it, on one line.
    fn raw(&self, span: Span, text: &str, style: Style) -> String {
        let written = self.text.get(span.start..span.end).unwrap_or_default().trim();
        match style {
            _ if !written.contains('\n') && (!written.is_empty() || text.is_empty()) => written.into(),
            Style::Plain => text.into(),
            Style::Quoted | Style::Block => serde_json::to_string(text).unwrap_or_default(),
        }
    }

    /// All of it on one line; nothing if it has a text over several lines.
    fn inline(&self, node: &Node) -> Option<String> {
        Some(match &node.content {
            Content::Scalar { style: Style::Block, .. } => return None,
            Content::Scalar { text, style } => self.raw(node.span, text, *style),
            Content::List { items, .. } => {
                let items: Option<Vec<String>> = items.iter().map(|it| self.inline(it)).collect();
                format!("[{}]", items?.join(", "))
            }
            Content::Map { entries, .. } if entries.is_empty() => "{}".into(),
            Content::Map { entries, .. } => {
                let entry = |(key, node): &(Key, Node)| {
                    let name = self.raw(key.span, &key.text, key.style);
                    Some(format!("{name}: {}", self.inline(node)?).trim_end().to_owned())
                };
                let entries: Option<Vec<String>> = entries.iter().map(entry).collect();
                format!("{{ {} }}", entries?.join(", "))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let written = format("a.yaml", text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
        assert_eq!(written, expected);
        // Once is enough.
        assert_eq!(format("a.yaml", &written).unwrap(), expected);
    }

    #[test]
    fn a_file_is_evenly_written_and_keeps_its_remarks() {
        check(
            "# What it is.\nholdfast:   1\napplication: shop # the name\n\n\n\ntypes:\n    App:\n        # strong\n        imports: {db: {export: sql},  cache: {export: 'o',weak: 0}}\n        list:\n        - a\n        -   b: 1\n            c: 2\n# the end\n",
            "# What it is.\nholdfast: 1\napplication: shop  # the name\n\ntypes:\n  App:\n    # strong\n    imports: { db: { export: sql }, cache: { export: 'o', weak: 0 } }\n    list:\n      - a\n      - b: 1\n        c: 2\n# the end\n",
        );
    }

    #[test]
    fn sections_are_apart_and_texts_of_several_lines_move_as_they_are() {
        check(
            "a: 1\nfiles:\n   x: |\n       one\n         two\n\n       three\n   y: >-\n       folded\n       text\nvms: {}\n",
            "a: 1\n\nfiles:\n  x: |\n    one\n      two\n\n    three\n  y: >-\n    folded\n    text\n\nvms: {}\n",
        );
    }

    #[test]
    fn texts_of_several_lines_may_be_anywhere_and_have_remarks() {
        check(
            "start:\n    process:\n    - sh\n    # how\n    - |\n        echo a | cat\n        exec b\n    - >-  # folded\n        c\n        d\n    - e\n",
            "start:\n  process:\n    - sh\n    # how\n    - |\n      echo a | cat\n      exec b\n    - >-  # folded\n      c\n      d\n    - e\n",
        );
        check("files:\n    a|b: |  # why\n        x # no\n    c: d\n", "files:\n  a|b: |  # why\n    x # no\n  c: d\n");
        check(
            "files:\n    a: |+\n        x\n\n\n    b: |+\n        y\nvms: {}\n",
            "files:\n  a: |+\n    x\n\n\n  b: |+\n    y\nvms: {}\n",
        );
    }

    #[test]
    fn a_text_may_begin_with_spaces_and_a_remark_may_stand_before_it() {
        check("a:\n    e: |4-\n          two\n        one\n    f: 1\n", "a:\n  e: |2-\n      two\n    one\n  f: 1\n");
        check("a:\n    e: |1\n          two\n", "a:\n  e: |2\n         two\n");
        check("a: # x\n  \"b\"\nc:\n  # y\n  d\n", "a: \"b\"  # x\nc: d  # y\n");
    }

    #[test]
    fn lists_in_lists_are_not_pulled_apart() {
        check(
            "a:\n  -\n    - 1\n    - 2\n\n  -\n    -\n      - 3\n",
            "a:\n  -\n    - 1\n    - 2\n\n  -\n    -\n      - 3\n",
        );
        check("a:\n- - 1\n  - 2\n", "a:\n  -\n    - 1\n    - 2\n");
    }

    #[test]
    fn what_does_not_fit_on_a_line_is_written_over_several() {
        let long = "x".repeat(60);
        check(&format!("a: {{ b: {long}, c: {long} }}\n"), &format!("a:\n  b: {long}\n  c: {long}\n"));
        check("", "");
        check("# only a remark\n", "# only a remark\n");
    }
}
