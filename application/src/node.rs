//! A file as a tree, each part with its position. What it means is decided elsewhere.

use crate::source::Span;

/// One part of a file.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) content: Content,
}

/// What a part is.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A text; without quotes it may be meant as a number, a boolean or nothing.
    Scalar {
        text: String,
        style: Style,
    },
    List {
        items: Vec<Node>,
        flow: bool,
    },
    Map {
        entries: Vec<(Key, Node)>,
        flow: bool,
    },
}

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Quoted,
    /// Over several lines, after `|` or `>`.
    Block,
}

/// The name of an entry of a map.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) span: Span,
    pub(crate) style: Style,
}

/// A comment in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) span: Span,
}

/// A wrong text for an error message: as it is, unless it is long.
pub(crate) fn in_words(text: &str) -> String {
    if text.chars().count() > 40 { "a long text".into() } else { format!("`{}`", text.escape_debug()) }
}

impl Node {
    /// An empty value at a position.
    pub(crate) fn nothing(span: Span) -> Self {
        Self { span, content: Content::Scalar { text: String::new(), style: Style::Plain } }
    }

    /// The entry of a map.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.entries().iter().find(|(key, _)| key.text == name).map(|(_, node)| node)
    }

    /// The entries of a map; none of anything else.
    pub(crate) fn entries(&self) -> &[(Key, Node)] {
        if let Content::Map { entries, .. } = &self.content { entries } else { &[] }
    }

    /// Whether the value is empty.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, style: Style::Plain } if ["", "~", "null"].contains(&text.as_str()))
    }

    /// The value, for error messages.
    pub(crate) fn in_words(&self) -> String {
        match &self.content {
            _ if self.is_nothing() => "nothing".into(),
            Content::Scalar { text, .. } => in_words(text),
            Content::List { .. } => "a list".into(),
            Content::Map { .. } => "a map".into(),
        }
    }

    /// The value in place of a number or a boolean, for error messages. A number in quotes is a text, which is easily
    /// overlooked.
    pub(crate) fn in_words_instead_of(&self, fits: impl FnOnce(&str) -> bool) -> String {
        match &self.content {
            Content::Scalar { text, style: Style::Quoted } if fits(text) => {
                format!("the text \"{}\" (remove the quotes)", text.escape_debug())
            }
            _ => self.in_words(),
        }
    }

    /// Whether two values are the same, whatever their positions and styles.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (Content::Scalar { text: one, style }, Content::Scalar { text: two, style: other }) => {
                one == two && (*style == Style::Plain) == (*other == Style::Plain)
            }
            (Content::List { items: one, .. }, Content::List { items: two, .. }) => {
                one.len() == two.len() && one.iter().zip(two).all(|(one, two)| one.is_same(two))
            }
            (Content::Map { entries: one, .. }, Content::Map { entries: two, .. }) => {
                one.len() == two.len()
                    && one.iter().all(|(key, node)| other.get(&key.text).is_some_and(|it| node.is_same(it)))
            }
            _ => false,
        }
    }

    /// Overrides this tree with another: maps entry by entry, everything else as a whole; an empty value removes an
    /// entry.
    pub(crate) fn overlay(&mut self, over: &Self) {
        match (&mut self.content, &over.content) {
            (Content::Map { entries, .. }, Content::Map { entries: others, .. }) => {
                for (key, node) in others {
                    let place = entries.iter().position(|(it, _)| it.text == key.text);
                    match place {
                        Some(place) if node.is_nothing() => drop(entries.remove(place)),
                        Some(place) => entries[place].1.overlay(node),
                        None if node.is_nothing() => {}
                        None => entries.push((key.clone(), node.clone())),
                    }
                }
            }
            _ => *self = over.clone(),
        }
    }
}
