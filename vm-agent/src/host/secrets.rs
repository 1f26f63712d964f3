//! Secret texts: secret parameters, and secret values of the component itself and of its imports. They are kept next to
//! the record for as long as the component exists, so that old output can be shown without them.

use super::{component::Component, component_directory::ComponentDirectory, failure::Failure, record};
use recipe::template::View;
use std::collections::BTreeSet;

/// What is shown in their place.
const CONCEALED: &str = "•••";
/// Shorter lines of a secret would match too much.
const LINE_LETTERS_MIN: usize = 8;

impl Component {
    /// Records all secrets before anything runs that could print them.
    pub(super) fn learn_secrets(&self, view: &View<'_>) -> Result<(), Failure> {
        let mut texts = view.secrets();
        if texts.is_empty() {
            return Ok(());
        }
        let known = known(&self.directory);
        if texts.is_subset(&known) {
            return Ok(());
        }
        texts.extend(known);
        record::save_secrets(&self.directory, &texts)
    }

    /// A failure, with secrets concealed.
    pub(super) fn concealed(&self, failure: Failure) -> Failure {
        Failure(Secrets::of(&self.directory).conceal(failure.0))
    }
}

/// All secret texts, in every way in which they may be written, the longest first, because one may be part of another.
#[derive(Debug, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// The secrets of a component.
    pub(super) fn of(directory: &ComponentDirectory) -> Self {
        known(directory).iter().collect()
    }

    /// A text, with secrets concealed.
    pub(super) fn conceal(&self, text: String) -> String {
        let found: Vec<&String> = self.0.iter().filter(|secret| text.contains(secret.as_str())).collect();
        found.into_iter().fold(text, |text, secret| text.replace(secret.as_str(), CONCEALED))
    }

    /// The same for a text whose beginning was cut off: the rest of a secret is concealed too.
    pub(super) fn conceal_after_cut(&self, text: &str) -> String {
        let left = self.0.iter().filter_map(|secret| {
            let mut ends = secret.char_indices().skip(1).map(|(at, _)| &secret[at..]);
            ends.find(|end| text.starts_with(end)).map(str::len)
        });
        match left.max() {
            Some(left) => CONCEALED.to_owned() + &self.conceal(text[left..].to_owned()),
            None => self.conceal(text.to_owned()),
        }
    }
}

impl<'a> FromIterator<&'a String> for Secrets {
    fn from_iter<I: IntoIterator<Item = &'a String>>(secrets: I) -> Self {
        let mut spelt: BTreeSet<String> = BTreeSet::new();
        for secret in secrets {
            // Programs may print a single line of a key that has several.
            let lines = secret.lines().map(str::trim).filter(|line| line.chars().count() >= LINE_LETTERS_MIN);
            spelt.extend(std::iter::once(secret.as_str()).chain(lines).flat_map(spellings));
        }
        let mut spelt: Vec<String> = spelt.into_iter().filter(|text| !text.is_empty()).collect();
        spelt.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self(spelt)
    }
}

/// A text as it is, as Rust quotes it, as JSON has it, and as a word for a shell.
fn spellings(text: &str) -> [String; 4] {
    let without_quotes = |quoted: String| quoted[1..quoted.len() - 1].to_owned();
    let json = serde_json::Value::from(text).to_string();
    [text.to_owned(), without_quotes(format!("{text:?}")), without_quotes(json), text.replace('\'', r"'\''")]
}

fn known(directory: &ComponentDirectory) -> BTreeSet<String> {
    record::secrets(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(texts: &[&str]) -> Secrets {
        texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>().iter().collect()
    }

    #[test]
    fn the_longest_secret_is_concealed_first() {
        let secrets = secrets(&["pass", "password1"]);
        assert_eq!(secrets.conceal("a password1 and a pass".into()), "a ••• and a •••");
        assert_eq!(secrets.conceal("nothing".into()), "nothing");
    }

    #[test]
    fn a_secret_is_concealed_however_it_is_written() {
        let secret = "a\"b\\c'd\u{7}";
        let secrets = secrets(&[secret]);
        let json = serde_json::Value::from(secret).to_string();
        for written in [secret.to_owned(), format!("{secret:?}"), json, "'a\"b\\c'\\''d\u{7}'".into()] {
            assert_eq!(secrets.conceal(written.clone()).trim_matches(['"', '\'']), "•••", "{written}");
        }
    }

    #[test]
    fn one_line_of_a_key_is_concealed_too() {
        let secrets = secrets(&["-----BEGIN KEY-----\nMIIEvQIBADANBg\n  kqhkiG9w0BAQEF\nend\n-----END KEY-----"]);
        assert_eq!(secrets.conceal("read MIIEvQIBADANBg, kqhkiG9w0BAQEF, the end".into()), "read •••, •••, the end");
    }

    #[test]
    fn what_a_cut_leaves_of_a_secret_is_concealed() {
        let secrets = secrets(&["hunter2", "öl\nim\nfeuer"]);
        assert_eq!(secrets.conceal_after_cut("ter2 and hunter2"), "••• and •••");
        assert_eq!(secrets.conceal_after_cut("l\nim\nfeuer\n"), "•••\n");
        assert_eq!(secrets.conceal_after_cut("ter and"), "ter and");
    }
}
