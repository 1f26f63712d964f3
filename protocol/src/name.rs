//! Names: what people call things.
//!
//! A name is checked once, when it is made; from then on the type is the proof.

use crate::bounds::NAME_BYTES_MAX;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// The name of a VM, component, import, export or value: letters, digits and `- _ . ' [ ] /`, starting with a letter
/// or digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

/// A text that cannot be a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing at all.
    #[error("a name must not be empty")]
    Empty,
    /// Longer than the bound.
    #[error("name of {0} bytes is too long (at most {NAME_BYTES_MAX})")]
    TooLong(usize),
    /// A character that names do not have.
    #[error(
        "name {name:?} contains {found:?} (allowed: letters, digits and - _ . ' [ ] /, starting with a letter or digit)"
    )]
    Character {
        /// The text that was given.
        name: String,
        /// The first character that does not fit.
        found: char,
    },
}

impl Name {
    /// Checks a text.
    pub fn new(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(NameError::TooLong(text.len()));
        }
        let fits = |(place, character): (usize, char)| {
            character.is_ascii_alphanumeric() || (place > 0 && "-_.'[]/".contains(character))
        };
        match text.char_indices().find(|found| !fits(*found)) {
            Some((_, found)) => Err(NameError::Character { name: text.into(), found }),
            None => Ok(Self(text.into())),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0.as_ref().into()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_once_and_say_what_is_wrong() {
        assert!(Name::new("mysql'").is_ok());
        assert!(Name::new("app[2]").is_ok());
        assert_eq!(Name::new(""), Err(NameError::Empty));
        assert_eq!(Name::new("a b").unwrap_err(), NameError::Character { name: "a b".into(), found: ' ' });
        assert_eq!(Name::new("-a").unwrap_err(), NameError::Character { name: "-a".into(), found: '-' });
        assert!(matches!(Name::new(&"x".repeat(NAME_BYTES_MAX + 1)), Err(NameError::TooLong(_))));
    }
}
