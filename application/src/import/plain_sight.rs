//! Remarks on what is imported unchanged and should be reviewed: passwords in plain text, and names of services that
//! may or may not be hosts.

use super::{
    Importer, Phrase,
    component::{after_each_other, phrases},
    compose::Compose,
    health::Test,
    hosts,
    interpolation::{Otherwise, Piece, Variable, speaks_of_secret},
};
use crate::source::Span;

/// Adds the remarks.
pub(super) fn tell(compose: &Compose, importer: &mut Importer) {
    let names: Vec<&str> = compose.services.iter().map(|it| it.name.as_str()).collect();
    for (own, service) in compose.services.iter().enumerate() {
        for (place, (before, phrase)) in phrases(compose, service).into_iter().enumerate() {
            let is_variable = place < service.environment.len();
            if let Some(what) = password(&before, is_variable, &in_sight(&phrase.pieces, importer)) {
                let says = format!("{what} is stored in plain text: make it a parameter of type secret");
                importer.remark(phrase.span, Some(&service.name), says);
            }
        }
        let mut found: Vec<(Span, usize)> = Vec::new();
        for words in [&service.entrypoint, &service.command].into_iter().flatten() {
            found.extend(in_words(words, &names));
        }
        match service.check.as_ref().map(|it| &it.test) {
            Some(Test::Shell(phrase)) => found.extend(in_text("", phrase, &names).map(|it| (phrase.span, it))),
            Some(Test::Words(words)) => found.extend(in_words(words, &names)),
            None => {}
        }
        for (span, other) in found.into_iter().filter(|(_, it)| *it != own) {
            let other = names[other];
            let says = format!(
                "`{other}` is left as it is in the command: if it means the service, use the address of an import, such as {{{{ imports.{}[0].host }}}}",
                other.replace('-', "_")
            );
            importer.remark(span, Some(&service.name), says);
        }
    }
}

/// Placeholder for what cannot be read in the file.
const HIDDEN: char = '\0';

/// A text as it appears in the application file: variables are replaced by a placeholder if they have no value.
fn in_sight(pieces: &[Piece], importer: &Importer) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Literal(text) => text.clone(),
        Piece::Variable(Variable { name, otherwise }) => {
            let known = importer.variables.get(name).filter(|it| !it.secret);
            let default = known.and_then(|it| it.default.clone()).filter(|it| !it.is_empty());
            default.unwrap_or_else(|| match otherwise {
                Otherwise::Default(inner) | Otherwise::Instead(inner) => in_sight(inner, importer),
                Otherwise::Empty | Otherwise::Demanded(_) => HIDDEN.into(),
            })
        }
    };
    pieces.iter().map(piece).collect()
}

/// The password that a text shows, as one would call it: the value of a variable or of an option whose name speaks of one,
/// or a part of an address.
fn password(before: &str, is_variable: bool, text: &str) -> Option<String> {
    let (name, value) = match text.split_once('=') {
        Some((option, value)) if option.starts_with('-') => (option, value),
        _ => (before, text),
    };
    let is_shown = |text: &str| text.chars().any(|it| it != HIDDEN);
    let is_name = is_variable || (name.starts_with('-') && !value.starts_with('-'));
    if is_name && speaks_of_secret(name) && is_shown(value) && !name.to_uppercase().ends_with("FILE") {
        return Some(format!("`{name}`"));
    }
    let in_address = |(at, _): (usize, &str)| {
        let address = &text[at + 3..];
        let end = address.find(|it: char| it.is_whitespace() || "/?#\"'`".contains(it)).unwrap_or(address.len());
        let (user, _) = address[..end].rsplit_once('@')?;
        user.split_once(':').filter(|(_, password)| is_shown(password))
    };
    text.match_indices("://").find_map(in_address).map(|_| "the password in an address".to_owned())
}

/// Services that a command names: in a text for the shell, or as a word before a port.
fn in_words(words: &[Phrase], names: &[&str]) -> Vec<(Span, usize)> {
    let text = |phrase: &Phrase| match phrase.pieces.as_slice() {
        [Piece::Literal(text)] => text.clone(),
        _ => String::new(),
    };
    let mut found = Vec::new();
    for (place, (before, phrase)) in after_each_other(words).into_iter().enumerate() {
        found.extend(in_text(&before, phrase, names).map(|it| (phrase.span, it)));
        let next = words.get(place + 1).map(text).unwrap_or_default();
        let is_before_port = !next.is_empty() && next.chars().all(|it| it.is_ascii_digit());
        let named = names.iter().position(|it| is_before_port && *it == text(phrase));
        found.extend(named.map(|it| (phrase.span, it)));
    }
    found
}

/// Services that a text of several words names, other than where they are known to be hosts.
fn in_text<'a>(before: &str, phrase: &'a Phrase, names: &'a [&str]) -> impl Iterator<Item = usize> {
    let mut found = Vec::new();
    for piece in &phrase.pieces {
        let Piece::Literal(text) = piece else { continue };
        if !text.trim().contains(char::is_whitespace) {
            continue;
        }
        let known = hosts::mentions(before, text, names);
        for (service, name) in names.iter().enumerate() {
            let is_word = |start: usize| {
                let (head, tail) = (&text[..start], &text[start + name.len()..]);
                let edge = |it: char| it.is_whitespace() || "\"'`;()".contains(it);
                (head.is_empty() || head.ends_with(edge)) && (tail.is_empty() || tail.starts_with(edge))
            };
            let is_known = |start: usize| known.iter().any(|it| it.start == start);
            let stays = |(start, _): (usize, &str)| is_word(start) && !is_known(start);
            if !name.is_empty() && text.match_indices(name).any(stays) {
                found.push(service);
            }
        }
    }
    found.into_iter()
}
