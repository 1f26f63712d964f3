//! Values that a component produces: rendered from its recipe, or written by its commands. Each must have its declared
//! type, and so must those that come with its imports.

use super::{
    failure::{Attempt, Failure},
    ports::PortBook,
};
use protocol::{Kind, Name, Values, bounds::VALUE_BYTES_MAX};
use recipe::{
    At,
    template::View,
    value_type::{ValueType, ValueTypes},
};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// All values of a component together must fit into a message.
const ALL_BYTES_MAX: usize = 1 << 18;
/// Maximum number of letters of a wrong value in an error.
const SHOWN_LETTERS_MAX: usize = 40;

/// Renders the values that are chosen at this time and are not in the view yet, and adds them to the view. Values may
/// refer to each other in any order.
pub(super) fn choose(view: &mut View<'_>, at: &[At], kind: &Kind, book: &PortBook) -> Result<Values, Failure> {
    let recipe = view.recipe;
    let is_wanted = |name: &Name, when: At| at.contains(&when) && !view.values.contains_key(name);
    let mut open: Vec<_> = recipe.values.iter().filter(|(name, value)| is_wanted(name, value.at)).collect();
    let mut chosen = Values::new();
    while !open.is_empty() {
        let mut failures = Vec::new();
        let before = open.len();
        open.retain(|(name, value)| match view.render_value(name, &value.template, book.free_port(name)) {
            Ok(text) => {
                view.values.insert((*name).clone(), text.as_str().into());
                chosen.insert((*name).clone(), text.into());
                false
            }
            Err(error) => {
                failures.push(error.into());
                true
            }
        });
        // A value of the wrong type may be the reason why another cannot be rendered.
        check_types(&chosen, view, kind)?;
        if open.len() == before {
            return Err(failures.swap_remove(0));
        }
    }
    within_bounds(chosen)
}

/// Checks the types of the component's own values.
pub(super) fn check_types(values: &Values, view: &View<'_>, kind: &Kind) -> Result<(), Failure> {
    let Some((name, why)) = wrong(values, &view.recipe.types.values) else { return Ok(()) };
    let export = kind.exports.iter().find(|(_, export)| export.values.contains(name));
    let of = export.map(|(export, _)| format!(" of export {export:?}")).unwrap_or_default();
    Err(Failure::new(format!("value {name:?}{of} {why}")))
}

/// Checks the types of all values that come with imports.
pub(super) fn check_import_types(view: &View<'_>) -> Result<(), Failure> {
    for binding in view.bindings {
        let types = view.recipe.types.imports.get(&binding.import);
        if let Some((name, why)) = types.and_then(|types| wrong(&binding.values, types)) {
            return Err(Failure::new(format!("value {name:?} of import {:?} {why}", binding.import)));
        }
    }
    Ok(())
}

/// The first value of the wrong type, and what would be right.
fn wrong<'a>(values: &'a Values, types: &ValueTypes) -> Option<(&'a Name, String)> {
    let is_wrong = |value_type: ValueType, text: &str| value_type.read(text).is_none();
    let (name, text) = values.iter().find(|(name, text)| is_wrong(types.of(name), text))?;
    let found = if text.chars().count() > SHOWN_LETTERS_MAX { "a long text".into() } else { format!("{text:?}") };
    Some((name, format!("must be {}, not {found}", types.of(name).wanted())))
}

/// Creates an empty values file, readable only by its owner: values may be secrets.
pub(super) fn clear(path: &Path) -> Result<(), Failure> {
    let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    made.map(drop).attempt(format!("write {}", path.display()))
}

/// Reads the `name=value` lines that a command has written to its values file, and removes the file.
pub(super) fn take(path: &Path) -> Result<Values, Failure> {
    let values = read(path);
    let _ = fs::remove_file(path);
    values
}

fn read(path: &Path) -> Result<Values, Failure> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(ALL_BYTES_MAX).unwrap_or(u64::MAX) + 1;
    match File::open(path) {
        Ok(file) => file.take(limit).read_to_end(&mut bytes).map(drop),
        // A command may remove the file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
    .attempt("read the file $HOLDFAST_VALUES")?;
    if bytes.len() > ALL_BYTES_MAX {
        return Err(Failure::new(format!("the file $HOLDFAST_VALUES is longer than {ALL_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::new("the file $HOLDFAST_VALUES is not UTF-8"))?;
    parse(&text).and_then(within_bounds)
}

fn parse(text: &str) -> Result<Values, Failure> {
    let mut values = Values::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |why: &str| Failure::new(format!("line {} of $HOLDFAST_VALUES: {why}", number + 1));
        // The line may contain a secret: it is not repeated.
        let (name, value) = line.split_once('=').ok_or_else(|| wrong("not of the form name=value"))?;
        let name = Name::new(name.trim()).map_err(|error| wrong(&error.to_string()))?;
        values.insert(name, value.into());
    }
    Ok(values)
}

fn within_bounds(values: Values) -> Result<Values, Failure> {
    if let Some((name, _)) = values.iter().find(|(_, value)| value.len() > VALUE_BYTES_MAX) {
        return Err(Failure::new(format!("value {name:?} is longer than {VALUE_BYTES_MAX} bytes")));
    }
    let all: usize = values.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if all > ALL_BYTES_MAX {
        return Err(Failure::new(format!("the values together are longer than {ALL_BYTES_MAX} bytes")));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_values_and_what_is_no_line_is_told_without_its_text() {
        let values = parse("port=8080\n\nkey = a=b \r\nport=9090\n").unwrap();
        assert_eq!(values[&Name::new("port").unwrap()].as_ref(), "9090");
        assert_eq!(values[&Name::new("key").unwrap()].as_ref(), " a=b ");
        let failure = parse("a=1\nsecret").unwrap_err();
        assert_eq!(failure.0, "line 2 of $HOLDFAST_VALUES: not of the form name=value");
        assert!(parse("=1").unwrap_err().0.contains("must not be empty"));
        assert!(within_bounds(parse(&format!("a={}", "x".repeat(VALUE_BYTES_MAX + 1))).unwrap()).is_err());
    }
}
