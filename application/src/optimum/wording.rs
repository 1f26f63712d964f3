//! Names and texts, from the file's words to the planner's and back.

use super::posing::Posing;
use crate::{nearest::nearest, problem::Findings, source::Span};
use planner::language::TextComplaint;

/// Words that a constraint or a preference begins with.
const FIRST_WORDS: [&str; 9] = ["apart", "together", "alone", "spread", "at", "cost", "stopped", "moved", "local"];

impl Posing<'_> {
    /// Words in a text that are none, but nearly: the first, which says what sort of text it is, and names with `-`, which
    /// would be read as a subtraction.
    pub(super) fn strangers(&self, text: &str) -> Vec<String> {
        let names =
            || self.groups.iter().map(|(name, _)| name.as_str()).chain(self.vms.iter().map(|(name, _)| name.as_str()));
        let belongs = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        let dashed =
            text.split(|letter| !belongs(letter)).filter(|word| word.contains('-') && names().all(|it| it != *word));
        let first = text.split_whitespace().next().filter(|it| it.chars().all(|it| it.is_ascii_alphabetic()));
        let known = || FIRST_WORDS.into_iter().chain(names());
        let misspelt = first.filter(|word| known().all(|it| it != *word));
        let misspelt = misspelt.and_then(|word| Some((word, nearest(word, known())?)));
        let told = misspelt.into_iter().chain(dashed.filter_map(|word| Some((word, nearest(word, names())?))));
        told.map(|(word, meant)| format!("there is no `{word}` (did you mean `{meant}`?)")).collect()
    }

    /// A text of the file with the planner's words for names: there, `-` is minus.
    pub(super) fn translated(&self, text: &str) -> String {
        self.renamed(text, |(name, word)| (name, word))
    }

    /// A text of the planner with the file's names.
    pub(super) fn in_their_words(&self, text: &str) -> String {
        self.renamed(text, |(name, word)| (word, name))
    }

    pub(super) fn renamed<'b>(
        &'b self,
        text: &str,
        order: impl Fn((&'b str, &'b str)) -> (&'b str, &'b str),
    ) -> String {
        let groups = self.groups.iter().map(|(name, _)| name.as_str()).zip(self.group_words.iter().map(String::as_str));
        let vms = self.vms.iter().map(|(name, _)| name.as_str()).zip(self.vm_words.iter().map(String::as_str));
        let mut names: Vec<(&str, &str)> = groups.chain(vms).filter(|(name, word)| name != word).map(order).collect();
        if names.is_empty() {
            return text.into();
        }
        // A name may be part of another.
        names.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        let belongs = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        let mut done = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(belongs) {
            let (before, after) = rest.split_at(start);
            done += before;
            let end = after.find(|letter| !belongs(letter)).unwrap_or(after.len());
            let (word, after) = after.split_at(end);
            done += names.iter().find(|(from, _)| *from == word).map_or(word, |(_, to)| to);
            rest = after;
        }
        done + rest
    }

    pub(super) fn complain(&self, text: &str, span: Span, complaints: &[TextComplaint], findings: &mut Findings) {
        let strangers = self.strangers(text);
        if !strangers.is_empty() {
            strangers.into_iter().for_each(|says| findings.add(span, says));
            return;
        }
        for TextComplaint { complaint, .. } in complaints {
            // The place within the text is the place in the file if the text stands there as it is, with the same names.
            let same = self.translated(text) == text;
            let place = self.application.sources.slice(span).find(text).filter(|_| same);
            let at = place.map_or(span, |offset| Span {
                start: span.start + offset + complaint.span.start,
                end: span.start + offset + complaint.span.end,
                ..span
            });
            findings.add(at, self.in_their_words(&complaint.reason));
        }
    }
}

/// Words of the planner's language for names: different ones for different names.
pub(super) fn words<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut made: Vec<String> = Vec::new();
    for name in names {
        let mut word = name.replace('-', "_");
        while made.contains(&word) || planner::language::is_reserved(&word) {
            word.push('_');
        }
        made.push(word);
    }
    made
}
