//! The types of values. A value travels as a text, whatever its type. The type determines which texts are valid, and
//! what templates see: a number or a boolean, so that they can calculate and test.

use protocol::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, fmt};

/// The type of a value, a parameter or a variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
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
    /// A text that is never shown.
    Secret,
    /// A list or map, of a parameter or a variable; never of a value that travels.
    Any,
}

/// All types, with their names.
pub const VALUE_TYPES: [(&str, ValueType); 7] = [
    ("text", ValueType::Text),
    ("integer", ValueType::Integer),
    ("number", ValueType::Number),
    ("boolean", ValueType::Boolean),
    ("port", ValueType::Port),
    ("secret", ValueType::Secret),
    ("any", ValueType::Any),
];

impl ValueType {
    /// What is expected, for error messages.
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

    /// Whether a value in a file has this type. A secret never stands in a file.
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

    /// The text as a value of this type; `None` if it is not one. A number is written as in JSON, without spaces around
    /// it; so `007` is not one.
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

    /// The narrowest type that includes both, if templates see both in the same way. If one of them is secret, so is
    /// the result.
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

impl fmt::Display for ValueType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = VALUE_TYPES.iter().find(|(_, value_type)| value_type == self).map_or("any", |(word, _)| word);
        formatter.write_str(word)
    }
}

/// The types of values, by name. A value that is not listed is a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct ValueTypes(BTreeMap<Name, ValueType>);

impl ValueTypes {
    /// The type of a value.
    pub fn of(&self, value: &Name) -> ValueType {
        self.0.get(value).copied().unwrap_or_default()
    }

    /// The values that are not plain texts.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, ValueType)> {
        self.0.iter().map(|(name, value_type)| (name, *value_type))
    }

    /// The names of the secret values.
    pub fn secrets(&self) -> impl Iterator<Item = &Name> {
        self.iter().filter(|(_, value_type)| *value_type == ValueType::Secret).map(|(name, _)| name)
    }

    /// Whether all are texts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(Name, ValueType)> for ValueTypes {
    fn from_iter<I: IntoIterator<Item = (Name, ValueType)>>(types: I) -> Self {
        Self(types.into_iter().filter(|(_, value_type)| *value_type != ValueType::Text).collect())
    }
}

/// The types as they are written, and as recipes in old journals have them: only the names of secrets.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a value is text, integer, number, boolean, port or secret")]
enum Written {
    RecipeTypes(BTreeMap<Name, ValueType>),
    Secrets(Vec<Name>),
}

impl From<Written> for ValueTypes {
    fn from(written: Written) -> Self {
        match written {
            Written::RecipeTypes(types) => types.into_iter().collect(),
            Written::Secrets(names) => names.into_iter().map(|name| (name, ValueType::Secret)).collect(),
        }
    }
}

/// The types of all values that a component produces or reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeTypes {
    /// Its own values.
    #[serde(default, skip_serializing_if = "ValueTypes::is_empty")]
    pub values: ValueTypes,
    /// The values that come with each import.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub imports: BTreeMap<Name, ValueTypes>,
}

impl RecipeTypes {
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
            (ValueType::Text, "x", "\"x\""),
            (ValueType::Secret, "5", "\"5\""),
            (ValueType::Integer, "-5", "-5"),
            (ValueType::Number, "2.5", "2.5"),
            (ValueType::Number, "3", "3"),
            (ValueType::Boolean, "false", "false"),
            (ValueType::Port, "65535", "65535"),
        ];
        for (value_type, text, value) in right {
            assert_eq!(value_type.read(text).map(|it| it.to_string()).as_deref(), Some(value));
        }
        for (value_type, wrong) in [
            (ValueType::Integer, &["", "x", "2.5", "007", "+5", " 5", "5\n", "99999999999999999999"][..]),
            (ValueType::Number, &["", "inf", "1,5", "0x1f", "\"1\""]),
            (ValueType::Boolean, &["", "yes", "True", "0", "null"]),
            (ValueType::Port, &["", "0", "65536", "-1", "80.0", "http"]),
        ] {
            for text in wrong {
                assert_eq!(value_type.read(text), None, "{value_type} {text:?}");
            }
        }
    }

    #[test]
    fn sorts_go_together_where_templates_see_the_same() {
        assert_eq!(ValueType::Text.together(ValueType::Secret), Some(ValueType::Secret));
        assert_eq!(ValueType::Port.together(ValueType::Integer), Some(ValueType::Integer));
        assert_eq!(ValueType::Port.together(ValueType::Number), Some(ValueType::Number));
        assert_eq!(ValueType::Port.together(ValueType::Port), Some(ValueType::Port));
        assert_eq!(ValueType::Port.together(ValueType::Text), None);
        assert_eq!(ValueType::Boolean.together(ValueType::Integer), None);
    }

    #[test]
    fn every_sort_is_written_with_its_word() {
        for (word, value_type) in VALUE_TYPES {
            assert_eq!(serde_json::to_value(value_type).unwrap(), word);
            assert_eq!(value_type.to_string(), word);
        }
    }
}
