//! What a value can hold.
//!
//! A value travels as a text, whatever its sort. The sort says which texts are right, and what templates see: a number or a
//! boolean where it is one, so that they can calculate and decide.

use protocol::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, fmt};

/// What a value, a parameter or a variable can hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// A text.
    #[default]
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A port.
    Port,
    /// A text that nobody is shown.
    Secret,
    /// A list or map, of a parameter or a variable; a value that travels is none.
    Any,
}

/// All sorts, with the words for them.
pub const SORTS: [(&str, Sort); 7] = [
    ("text", Sort::Text),
    ("integer", Sort::Integer),
    ("number", Sort::Number),
    ("boolean", Sort::Boolean),
    ("port", Sort::Port),
    ("secret", Sort::Secret),
    ("any", Sort::Any),
];

impl Sort {
    /// What is wanted, in words.
    pub fn wanted(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "`true` or `false`",
            Self::Port => "a port from 1 to 65535",
            Self::Secret => "a secret, written { secret: NAME }",
            Self::Any => "anything",
        }
    }

    /// Whether what stands in a file is of this sort. A secret never stands there.
    pub fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string() || value.is_number() || value.is_boolean(),
            Self::Integer => value.is_i64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Port => value.as_u64().is_some_and(|port| (1..=65_535).contains(&port)),
            Self::Secret => false,
            Self::Any => true,
        }
    }

    /// What a text is as a value of this sort; nothing if it is of another. A number is written as in JSON, without spaces
    /// around it; so `007` is none.
    pub fn read(self, text: &str) -> Option<Value> {
        if self.is_text() {
            return Some(text.into());
        }
        serde_json::from_str(text).ok().filter(|value| text.trim() == text && self.fits(value))
    }

    /// Whether templates see a text.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Secret | Self::Any)
    }

    /// Whether templates see a number.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Number | Self::Port)
    }

    /// The narrowest sort of which both are, if templates see both in the same way. What one of them keeps secret is secret.
    pub fn together(self, other: Self) -> Option<Self> {
        match (self, other) {
            (one, other) if one == other => Some(one),
            (one, other) if one.is_text() && other.is_text() => Some(Self::Secret),
            (one, other) if one.is_number() && other.is_number() => {
                Some(if [one, other].contains(&Self::Number) { Self::Number } else { Self::Integer })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = SORTS.iter().find(|(_, sort)| sort == self).map_or("any", |(word, _)| word);
        formatter.write_str(word)
    }
}

/// The sorts of values, by name. What is not listed is a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Sorted(BTreeMap<Name, Sort>);

impl Sorted {
    /// The sort of a value.
    pub fn of(&self, value: &Name) -> Sort {
        self.0.get(value).copied().unwrap_or_default()
    }

    /// Those that are more than a text.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, Sort)> {
        self.0.iter().map(|(name, sort)| (name, *sort))
    }

    /// The names of those that nobody is shown.
    pub fn secrets(&self) -> impl Iterator<Item = &Name> {
        self.iter().filter(|(_, sort)| *sort == Sort::Secret).map(|(name, _)| name)
    }

    /// Whether all are texts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(Name, Sort)> for Sorted {
    fn from_iter<I: IntoIterator<Item = (Name, Sort)>>(sorts: I) -> Self {
        Self(sorts.into_iter().filter(|(_, sort)| *sort != Sort::Text).collect())
    }
}

/// The sorts as they are written, and as recipes in old journals have them: only the names of secrets.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a value is text, integer, number, boolean, port or secret")]
enum Written {
    Sorts(BTreeMap<Name, Sort>),
    Secrets(Vec<Name>),
}

impl From<Written> for Sorted {
    fn from(written: Written) -> Self {
        match written {
            Written::Sorts(sorts) => sorts.into_iter().collect(),
            Written::Secrets(names) => names.into_iter().map(|name| (name, Sort::Secret)).collect(),
        }
    }
}

/// The sorts of all values that a component has to do with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sorts {
    /// Of its own.
    #[serde(default, skip_serializing_if = "Sorted::is_empty")]
    pub values: Sorted,
    /// Of those that come with each import.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub imports: BTreeMap<Name, Sorted>,
}

impl Sorts {
    /// Whether all are texts.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.imports.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_of_a_sort_or_it_is_not() {
        let right = [
            (Sort::Text, "x", "\"x\""),
            (Sort::Secret, "5", "\"5\""),
            (Sort::Integer, "-5", "-5"),
            (Sort::Number, "2.5", "2.5"),
            (Sort::Number, "3", "3"),
            (Sort::Boolean, "false", "false"),
            (Sort::Port, "65535", "65535"),
        ];
        for (sort, text, value) in right {
            assert_eq!(sort.read(text).map(|it| it.to_string()).as_deref(), Some(value));
        }
        for (sort, wrong) in [
            (Sort::Integer, &["", "x", "2.5", "007", "+5", " 5", "5\n", "99999999999999999999"][..]),
            (Sort::Number, &["", "inf", "1,5", "0x1f", "\"1\""]),
            (Sort::Boolean, &["", "yes", "True", "0", "null"]),
            (Sort::Port, &["", "0", "65536", "-1", "80.0", "http"]),
        ] {
            for text in wrong {
                assert_eq!(sort.read(text), None, "{sort} {text:?}");
            }
        }
    }

    #[test]
    fn sorts_go_together_where_templates_see_the_same() {
        assert_eq!(Sort::Text.together(Sort::Secret), Some(Sort::Secret));
        assert_eq!(Sort::Port.together(Sort::Integer), Some(Sort::Integer));
        assert_eq!(Sort::Port.together(Sort::Number), Some(Sort::Number));
        assert_eq!(Sort::Port.together(Sort::Port), Some(Sort::Port));
        assert_eq!(Sort::Port.together(Sort::Text), None);
        assert_eq!(Sort::Boolean.together(Sort::Integer), None);
    }

    #[test]
    fn every_sort_is_written_with_its_word() {
        for (word, sort) in SORTS {
            assert_eq!(serde_json::to_value(sort).unwrap(), word);
            assert_eq!(sort.to_string(), word);
        }
    }
}
