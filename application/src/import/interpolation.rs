//! `${NAME:-default}` in a compose file.
//!
//! Compose replaces it when it reads its file; Holdfast's types see only parameters. So each variable becomes a
//! variable of the application, is passed to the type as a parameter of the same name, and is read there by a template.
//! What must be a number at import, such as a duration, is replaced at once.

use super::{Importer, words};
use crate::source::Span;
use std::collections::BTreeMap;

/// Words in names that suggest a secret: such a variable without a value becomes a secret.
const SECRET_WORDS: [&str; 6] = ["PASSWORD", "PASSWD", "SECRET", "TOKEN", "API_KEY", "PRIVATE_KEY"];
/// `${…}` inside of each other.
const DEPTH_MAX: usize = 20;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// As it is written.
    Literal(String),
    /// A variable.
    Variable(Variable),
}

/// A variable where it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) otherwise: Otherwise,
}

/// What stands there if the variable has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// Nothing.
    Empty,
    /// A text.
    Default(Vec<Piece>),
    /// It must have one; with the reason.
    Demanded(String),
    /// This text only where the variable has a value.
    Instead(Vec<Piece>),
}

/// What the whole file says about a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Its name in the application file.
    pub(super) name: String,
    pub(super) default: Option<String>,
    pub(super) description: Option<String>,
    /// Whether it is asked for as a secret.
    pub(super) secret: bool,
}

/// All variables of a file, by the name that compose knows.
pub(super) type Variables = BTreeMap<String, Known>;

/// Whether a name speaks of a secret.
pub(super) fn speaks_of_secret(name: &str) -> bool {
    let upper = name.to_uppercase();
    upper.ends_with("PASS") || SECRET_WORDS.iter().any(|word| upper.contains(word))
}

/// The pieces of a text. What is wrong is told, and stands there as it is.
pub(super) fn pieces(text: &str, span: Span, importer: &mut Importer) -> Vec<Piece> {
    read(text, 0).unwrap_or_else(|says| {
        importer.wrong(span, says);
        vec![Piece::Literal(text.into())]
    })
}

fn read(text: &str, depth: usize) -> Result<Vec<Piece>, String> {
    if depth > DEPTH_MAX {
        return Err(format!("`${{…}}` is nested more than {DEPTH_MAX} levels deep"));
    }
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        literal += &rest[..at];
        let after = &rest[at + 1..];
        if let Some(more) = after.strip_prefix('$') {
            literal.push('$');
            rest = more;
        } else if let Some(inside) = after.strip_prefix('{') {
            let end = closing(inside).ok_or("`${` without `}` (write $$ for a dollar sign)")?;
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Variable(variable(&inside[..end], depth)?));
            rest = &inside[end + 1..];
        } else {
            let end = after.find(|it: char| !is_letter(it)).unwrap_or(after.len());
            if end == 0 || after.starts_with(|it: char| it.is_ascii_digit()) {
                return Err("`$` begins a variable (write $$ for a dollar sign)".into());
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Variable(Variable { name: after[..end].into(), otherwise: Otherwise::Empty }));
            rest = &after[end..];
        }
    }
    literal += rest;
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Where the brace closes that is open before this text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' if at > 0 && bytes[at - 1] == b'$' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn variable(inside: &str, depth: usize) -> Result<Variable, String> {
    let end = inside.find(|it: char| !is_letter(it)).unwrap_or(inside.len());
    let (name, rest) = inside.split_at(end);
    if name.is_empty() || name.starts_with(|it: char| it.is_ascii_digit()) {
        return Err(format!("`${{{}}}` is not a variable (write it like ${{NAME:-default}})", inside.escape_debug()));
    }
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let otherwise = match rest.chars().next() {
        None => Otherwise::Empty,
        Some('-') => Otherwise::Default(read(&rest[1..], depth + 1)?),
        Some('?') => Otherwise::Demanded(rest[1..].into()),
        Some('+') => Otherwise::Instead(read(&rest[1..], depth + 1)?),
        Some(_) => {
            let says =
                "the name of a variable can be followed by `:-` and a default, `:?` and a reason, or `:+` and a text";
            return Err(format!("`${{{}}}`: {says}", inside.escape_debug()));
        }
    };
    Ok(Variable { name: name.into(), otherwise })
}

/// Takes note of the variables of some pieces.
pub(super) fn note(
    pieces: &[Piece],
    variables: &mut Variables,
    span: Span,
    service: Option<&str>,
    importer: &mut Importer,
) {
    for piece in pieces {
        let Piece::Variable(variable) = piece else { continue };
        let given = importer.environment.get(&variable.name).cloned();
        let fallback = match &variable.otherwise {
            Otherwise::Default(inner) => match inner.as_slice() {
                [] => Some(String::new()),
                [Piece::Literal(text)] => Some(text.clone()),
                _ => {
                    note(inner, variables, span, service, importer);
                    Some(String::new())
                }
            },
            Otherwise::Instead(inner) => {
                note(inner, variables, span, service, importer);
                Some(String::new())
            }
            Otherwise::Empty | Otherwise::Demanded(_) => None,
        };
        let secret = fallback.is_none() && speaks_of_secret(&variable.name);
        let demanded = matches!(variable.otherwise, Otherwise::Demanded(_));
        let default = given.or(fallback).or_else(|| (!demanded).then(String::new));
        let description = match &variable.otherwise {
            Otherwise::Demanded(why) if !why.trim().is_empty() => Some(why.trim().to_owned()),
            _ => None,
        };
        match variables.get_mut(&variable.name) {
            None => {
                let name = words::name(&variable.name, 28);
                let taken = variables.values().any(|it| it.name == name);
                let name = if taken { format!("{name}-{}", variables.len() % 10) } else { name };
                variables.insert(variable.name.clone(), Known { name, default, description, secret });
            }
            Some(known) => {
                let differs = !secret && !known.secret && known.default != default;
                if differs && known.default.as_ref().is_some_and(|it| !it.is_empty()) && default.is_some() {
                    let says = format!("`{}` has a different default elsewhere, which is used here too", variable.name);
                    importer.remark(span, service, says);
                } else if differs && known.default.as_ref().is_none_or(String::is_empty) {
                    known.default = default;
                }
                known.description = known.description.take().or(description);
                // A variable with a default is not a secret.
                known.secret &= secret;
            }
        }
    }
}

/// A template of some pieces, for a type; the names of the variables it reads are added to a list.
pub(super) fn template(
    pieces: &[Piece],
    variables: &Variables,
    used: &mut Vec<String>,
    literal: &mut dyn FnMut(&str) -> String,
) -> String {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal(it) => text += &literal(it),
            Piece::Variable(variable) => {
                let name = variables.get(&variable.name).map_or(variable.name.as_str(), |it| it.name.as_str());
                if !used.contains(&variable.name) {
                    used.push(variable.name.clone());
                }
                let parameter =
                    if name.contains('-') { format!("parameters[\"{name}\"]") } else { format!("parameters.{name}") };
                match &variable.otherwise {
                    Otherwise::Default(inner) if !matches!(inner.as_slice(), [] | [Piece::Literal(_)]) => {
                        let inner = template(inner, variables, used, literal);
                        text += &format!("{{% if {parameter} %}}{{{{ {parameter} }}}}{{% else %}}{inner}{{% endif %}}");
                    }
                    Otherwise::Instead(inner) => {
                        let inner = template(inner, variables, used, literal);
                        text += &format!("{{% if {parameter} %}}{inner}{{% endif %}}");
                    }
                    _ => text += &format!("{{{{ {parameter} }}}}"),
                }
            }
        }
    }
    text
}

/// A text as it is now, with what `.env` and the defaults say.
pub(super) fn now(pieces: &[Piece], importer: &Importer) -> String {
    let one = |piece: &Piece| match piece {
        Piece::Literal(text) => text.clone(),
        Piece::Variable(variable) => {
            let given = importer.environment.get(&variable.name).filter(|it| !it.is_empty());
            match (&variable.otherwise, given) {
                (Otherwise::Instead(inner), Some(_)) => now(inner, importer),
                (Otherwise::Instead(_), None) => String::new(),
                (_, Some(given)) => given.clone(),
                (Otherwise::Default(inner), None) => now(inner, importer),
                (Otherwise::Empty | Otherwise::Demanded(_), None) => String::new(),
            }
        }
    };
    pieces.iter().map(one).collect()
}

/// A text that must stand as it is in a template.
pub(super) fn escaped(text: &str) -> String {
    let mut done = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        // At the end, an expression may follow.
        if letter == '{' && letters.peek().is_none_or(|next| "{%#".contains(*next)) {
            done += "{{ \"{\" }}";
        } else {
            done.push(letter);
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut importer = Importer::default();
        let span = Span::beginning(0);
        let pieces = pieces(text, span, &mut importer);
        let mut variables = Variables::new();
        note(&pieces, &mut variables, span, None, &mut importer);
        let told = template(&pieces, &variables, &mut Vec::new(), &mut escaped);
        let defaults: Vec<String> =
            variables.values().map(|it| format!("{}={}", it.name, it.default.clone().unwrap_or("!".into()))).collect();
        format!("{told} | {} | {}", now(&pieces, &importer), defaults.join(" "))
    }

    #[test]
    fn variables_become_parameters_with_their_defaults() {
        assert_eq!(shown("a ${B:-c}"), "a {{ parameters.B }} | a c | B=c");
        assert_eq!(shown("$B-${C?why}"), "{{ parameters.B }}-{{ parameters.C }} | - | B= C=!");
        assert_eq!(shown("$$x ${A+y}"), "$x {% if parameters.A %}y{% endif %} | $x  | A=");
        assert_eq!(
            shown("${A:-${B:-c}d}"),
            "{% if parameters.A %}{{ parameters.A }}{% else %}{{ parameters.B }}d{% endif %} | cd | A= B=c"
        );
        assert_eq!(shown("{${A}}"), "{{ \"{\" }}{{ parameters.A }}} | {} | A=");
        assert_eq!(shown("{{ x }}"), "{{ \"{\" }}{ x }} | {{ x }} | ");
    }

    #[test]
    fn what_is_no_variable_is_told() {
        for text in ["${", "${}", "$", "$1", "${a!b}", "${A:-${B}", &"${A:-".repeat(30)] {
            let mut importer = Importer::default();
            pieces(text, Span::beginning(0), &mut importer);
            assert_eq!(importer.reading.findings.count(), 1, "{text}");
        }
    }
}
