//! Texts that nobody is shown: secret parameters, and secret values of its own and of what it imports.
//!
//! They are kept beside the record for as long as the component exists, so that what its programs have written long ago can
//! be shown without them.

use super::{component::Component, failure::Failure, place::Place, record, template::View};
use crate::sort::Sorted;
use std::collections::BTreeSet;

/// What stands in their place.
const CONCEALED: &str = "•••";

impl View<'_> {
    /// The texts that nobody is to see.
    fn secrets(&self) -> BTreeSet<String> {
        let sorts = &self.recipe.sorts;
        let mut texts: BTreeSet<String> = self.recipe.secrets.values().cloned().collect();
        texts.extend(sorts.values.secrets().filter_map(|name| self.values.get(name)).map(|text| text.to_string()));
        for binding in self.bindings {
            let names = sorts.imports.get(&binding.import).into_iter().flat_map(Sorted::secrets);
            texts.extend(names.filter_map(|name| binding.values.get(name)).map(|text| text.to_string()));
        }
        texts.retain(|text| !text.is_empty());
        texts
    }
}

impl Component {
    /// Takes note of all that nobody is to see, before anything is run that could write it.
    pub(super) fn learn_secrets(&self, view: &View<'_>) -> Result<(), Failure> {
        let mut texts = view.secrets();
        if texts.is_empty() {
            return Ok(());
        }
        let known = known(&self.place);
        if texts.is_subset(&known) {
            return Ok(());
        }
        texts.extend(known);
        record::save_secrets(&self.place, &texts)
    }

    /// A failure, without what nobody is to see.
    pub(super) fn concealed(&self, failure: Failure) -> Failure {
        Failure(conceal(&self.place, failure.0))
    }
}

/// A text, without what nobody is to see.
pub(super) fn conceal(place: &Place, text: String) -> String {
    without(&known(place), text)
}

fn known(place: &Place) -> BTreeSet<String> {
    record::secrets(place)
}

fn without(secrets: &BTreeSet<String>, text: String) -> String {
    // One may be part of another: the longest first.
    let mut secrets: Vec<&String> = secrets.iter().filter(|secret| text.contains(secret.as_str())).collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.into_iter().fold(text, |text, secret| text.replace(secret.as_str(), CONCEALED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_secret_is_concealed_first() {
        let secrets = ["pass".to_owned(), "password1".into()].into();
        assert_eq!(without(&secrets, "a password1 and a pass".into()), "a ••• and a •••");
        assert_eq!(without(&secrets, "nothing".into()), "nothing");
    }
}
