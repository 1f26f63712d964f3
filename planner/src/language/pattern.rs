//! Regular expressions over names. A pattern must match the whole name.

/// A compiled pattern. The engine behind it takes time linear in the name, whatever the pattern.
pub(crate) struct Pattern(regex_lite::Regex);

impl Pattern {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let whole = format!("^(?:{text})$");
        match regex_lite::RegexBuilder::new(&whole).size_limit(1 << 20).build() {
            Ok(regex) => Ok(Self(regex)),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}
