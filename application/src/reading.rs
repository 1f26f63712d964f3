//! From the tree to plain values: each reader takes what is valid, reports what is not, and does not stop at the first
//! problem.

use crate::{
    nearest::{hint, listed},
    node::{Content, Key, Node, Style},
    problem::Findings,
    source::Span,
};
use protocol::Name;
use recipe::value_type::ValueType;
use serde_json::Value;
use std::collections::BTreeSet;

/// Maximum length of the name of an application, so that the names of all VMs fit into certificates.
pub(crate) const APPLICATION_BYTES_MAX: usize = 24;
/// Maximum length of the name of a group, a type, an import and so on.
pub(crate) const NAME_BYTES_MAX: usize = 30;

/// The problems found so far, and ways to read a node.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) findings: Findings,
    /// Whether a file is missing or not valid YAML: what seems to be missing may be in it.
    pub(crate) is_incomplete: bool,
    /// Texts with a variable without a value, which was reported: their final value is unknown.
    pub(crate) unfilled: BTreeSet<Span>,
}

/// The fields of a map, all of them known.
pub(crate) struct Fields<'a> {
    pub(crate) span: Span,
    /// In the order in which they are written; what was laid over the map comes last.
    entries: Vec<(&'a Key, &'a Node)>,
    /// The fields that were probably meant by unknown ones.
    meant: Vec<String>,
    /// Whether it is not a map, which was reported.
    is_other: bool,
}

impl<'a> Fields<'a> {
    /// Whether one of some fields may be one that was already reported: then it is not reported as missing.
    pub(crate) fn may_have(&self, names: &[&str]) -> bool {
        self.is_other || self.meant.iter().any(|it| names.contains(&it.as_str()))
    }

    /// A field, if something stands there.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Node> {
        self.entry(name).map(|(_, node)| node)
    }

    /// A field with its name.
    pub(crate) fn entry(&self, name: &str) -> Option<(&'a Key, &'a Node)> {
        self.entries.iter().find(|(key, _)| key.text == name).copied().filter(|(_, node)| !node.is_nothing())
    }

    /// Those of a few fields that are there, in the order in which they are written.
    pub(crate) fn among(&self, names: &[&str]) -> Vec<(&'a Key, &'a Node)> {
        let is_among = |(key, node): &&(&'a Key, &'a Node)| names.contains(&key.text.as_str()) && !node.is_nothing();
        self.entries.iter().filter(is_among).copied().collect()
    }
}

impl Reading {
    pub(crate) fn wrong(&mut self, span: Span, says: impl Into<String>) {
        match self.unfilled.contains(&span) {
            true => self.findings.add_silently(),
            false => self.findings.add(span, says),
        }
    }

    /// Reports that something is missing; unless it may be in a file that could not be read.
    pub(crate) fn absent(&mut self, span: Span, says: impl Into<String>) {
        if !self.is_incomplete {
            self.wrong(span, says);
        }
    }

    /// Reports that none of some fields is present.
    pub(crate) fn missing(&mut self, fields: &Fields<'_>, names: &[&str], span: Span, says: impl Into<String>) {
        if !fields.may_have(names) {
            self.wrong(span, says);
        }
    }

    /// Reports that not exactly one of some fields is present. If one overrides another, the other has to be removed.
    pub(crate) fn not_one_of(&mut self, fields: &Fields<'_>, names: &[&str], says: &str) {
        let within =
            |span: Span| span.file == fields.span.file && (fields.span.start..=fields.span.end).contains(&span.start);
        match fields.among(names).as_slice() {
            [(under, _), .., (over, _)] if within(under.span) && !within(over.span) => {
                let under = &under.text;
                self.wrong(over.span, format!("{says} (remove what this overrides: `{under}: ~`)"));
            }
            [_, .., (second, _)] => self.wrong(second.span, says),
            _ => self.missing(fields, names, fields.span, says),
        }
    }

    /// The fields of a map; unknown ones are reported.
    pub(crate) fn fields<'a>(&mut self, node: &'a Node, what: &str, known: &[&str]) -> Fields<'a> {
        let (mut entries, mut meant) = (Vec::new(), Vec::new());
        let is_other = !matches!(node.content, Content::Map { .. }) && !node.is_nothing();
        for (key, node) in self.entries(node, what) {
            if known.contains(&key.text.as_str()) {
                entries.push((key, node));
            } else {
                let near = crate::nearest::nearest(&key.text, known.iter().copied());
                meant.extend(near.map(str::to_owned));
                let right = near.map_or_else(|| listed(known), |near| format!("did you mean `{near}`?"));
                let right = if near.is_some() { right } else { format!("{what} has {right}") };
                self.wrong(key.span, format!("unknown field `{}` ({right})", key.text.escape_debug()));
            }
        }
        Fields { span: node.span, entries, meant, is_other }
    }

    /// The entries of a map; nothing is an empty one.
    pub(crate) fn entries<'a>(&mut self, node: &'a Node, what: &str) -> &'a [(Key, Node)] {
        if !matches!(node.content, Content::Map { .. }) && !node.is_nothing() {
            self.wrong(node.span, format!("{what} must be a map, not {}", node.in_words()));
        }
        node.entries()
    }

    /// The items of a list; one text is a list of one.
    pub(crate) fn items<'a>(&mut self, node: &'a Node, what: &str) -> &'a [Node] {
        match &node.content {
            _ if node.is_nothing() => &[],
            Content::List { items, .. } => items,
            Content::Scalar { .. } => std::slice::from_ref(node),
            Content::Map { .. } => {
                self.wrong(node.span, format!("{what} must be a map, not a list"));
                &[]
            }
        }
    }

    /// A text, of any style.
    pub(crate) fn text<'a>(&mut self, node: &'a Node, what: &str) -> Option<&'a str> {
        match &node.content {
            Content::Scalar { text, .. } if !node.is_nothing() => Some(text),
            _ => {
                self.wrong(node.span, format!("{what} must be a text, not {}", node.in_words()));
                None
            }
        }
    }

    /// One of a few words.
    pub(crate) fn one_of<T: Copy>(&mut self, node: &Node, what: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(node, what)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant);
        if found.is_none() {
            let right = hint(text, words.iter().map(|(word, _)| *word));
            self.wrong(node.span, format!("{what} cannot be `{}`{right}", text.escape_debug()));
        }
        found
    }

    /// A whole number that is not negative.
    pub(crate) fn number(&mut self, node: &Node, what: &str) -> Option<u64> {
        let read = match &node.content {
            Content::Scalar { text, style: Style::Plain } => text.parse().ok(),
            _ => None,
        };
        if read.is_none() {
            let found = node.in_words_instead_of(|text| text.parse::<u64>().is_ok());
            self.wrong(node.span, format!("{what} must be a whole number, not {found}"));
        }
        read
    }

    /// A whole number that is not negative, and no larger than anything can be counted.
    pub(crate) fn count(&mut self, node: &Node, what: &str) -> Option<u32> {
        let number = self.number(node, what)?;
        let count = u32::try_from(number).ok().filter(|count| *count <= 1_000_000);
        if count.is_none() {
            self.wrong(node.span, format!("{what} must be at most 1000000, not {number}"));
        }
        count
    }

    /// A time such as `200ms`, `5s`, `2m` or `1h`, in milliseconds.
    pub(crate) fn duration_ms(&mut self, node: &Node, what: &str) -> Option<u64> {
        let text = self.text(node, what)?;
        let read = read_duration_ms(text);
        if read.is_none() {
            self.wrong(
                node.span,
                format!("{what} must be a duration such as 200ms, 5s, 2m or 1h, not {}", node.in_words()),
            );
        }
        read
    }

    /// The name of something in a file: letters, digits, `-` and `_`, beginning with a letter.
    pub(crate) fn name(&mut self, text: &str, span: Span) -> Option<Name> {
        let shape = |(place, it): (usize, char)| {
            it.is_ascii_alphabetic() || (place > 0 && (it.is_ascii_digit() || it == '-' || it == '_'))
        };
        if text.is_empty() || !text.char_indices().all(shape) {
            let says = format!(
                "`{}` is not a valid name (use letters, digits, - and _, and begin with a letter)",
                text.escape_debug()
            );
            self.wrong(span, says);
            return None;
        }
        if text.len() > NAME_BYTES_MAX {
            self.wrong(span, format!("the name is {} bytes long (at most {NAME_BYTES_MAX})", text.len()));
            return None;
        }
        Name::new(text).ok()
    }

    /// A text that is the name of something in a file.
    pub(crate) fn named(&mut self, node: &Node, what: &str) -> Option<Name> {
        let text = self.text(node, what)?;
        self.name(text, node.span)
    }

    /// The name of an application.
    pub(crate) fn application(&mut self, node: &Node) -> Option<Name> {
        let name = self.named(node, "an application's name")?;
        if name.as_str().len() > APPLICATION_BYTES_MAX {
            self.wrong(node.span, format!("the name of an application is at most {APPLICATION_BYTES_MAX} bytes long"));
            return None;
        }
        Some(name)
    }

    /// Reports that a value has the wrong type, and what would be right.
    pub(crate) fn not_of_type(&mut self, name: &str, value_type: ValueType, node: &Node) {
        let fits = |text: &str| value_type.fits(&Self::plain(text));
        let found = node.in_words_instead_of(fits);
        self.wrong(node.span, format!("`{name}` must be {}, not {found}", value_type.wanted()));
    }

    /// A value of any type, as YAML understands it: what is not in quotes may be a number, a boolean or nothing.
    pub(crate) fn value(node: &Node) -> Value {
        match &node.content {
            Content::Scalar { text, style: Style::Plain } => Self::plain(text),
            Content::Scalar { text, .. } => Value::String(text.clone()),
            Content::List { items, .. } => items.iter().map(Self::value).collect(),
            Content::Map { entries, .. } => {
                entries.iter().map(|(key, node)| (key.text.clone(), Self::value(node))).collect()
            }
        }
    }

    /// A value of one type: a text may be written without quotes, and stays as it is written.
    pub(crate) fn value_of(value_type: ValueType, node: &Node) -> Value {
        match &node.content {
            Content::Scalar { text, .. } if value_type == ValueType::Text && !node.is_nothing() => text.clone().into(),
            _ => Self::value(node),
        }
    }

    fn plain(text: &str) -> Value {
        match text {
            "" | "~" | "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            text => plain_number(text).unwrap_or_else(|| text.into()),
        }
    }
}

/// A number as people write it; what only looks like one (`1.2.3`, `inf`, `0x1f`, `007`) is a text.
fn plain_number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let octal = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if octal || !digits.starts_with(|it: char| it.is_ascii_digit()) {
        return None;
    }
    let whole = text.parse::<i64>().map(Value::from);
    whole.ok().or_else(|| text.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number))
}

/// A time in milliseconds.
pub(crate) fn read_duration_ms(text: &str) -> Option<u64> {
    let unit = text.find(|it: char| !it.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_are_read_as_people_write_them() {
        assert_eq!(
            ["200ms", "5s", "2m", "1h"].map(read_duration_ms),
            [Some(200), Some(5_000), Some(120_000), Some(3_600_000)]
        );
        assert_eq!(["", "5", "s", "5 s", "-1s", "99999999999999999999h"].map(read_duration_ms), [None; 6]);
        assert_eq!(plain_number("12"), Some(12.into()));
        assert_eq!(plain_number("-1.5"), Some(serde_json::json!(-1.5)));
        assert_eq!(["inf", "0600", "1.2.3", "nan", "x", ""].map(plain_number), [const { None }; 6]);
    }
}
