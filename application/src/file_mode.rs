//! Default modes of files: readable by everyone, unless a secret is in it.

use crate::component_type::ComponentType;
use protocol::Name;
use recipe::{Recipe, value_type::ValueType};

const FOR_ALL: &str = "0644";
const FOR_ITS_OWNER: &str = "0600";

/// Fills in the modes of files that have none. The types of imported values must be known already.
pub(crate) fn choose(component_type: &ComponentType, recipe: &mut Recipe) {
    let parameters = component_type.parameters.iter().filter(|(_, it)| it.value_type == ValueType::Secret);
    let parameters: Vec<&str> = parameters.map(|(name, _)| name.as_str()).collect();
    let own: Vec<&str> = recipe.types.values.secrets().map(Name::as_str).collect();
    let imported: Vec<&str> = recipe.types.imports.values().flat_map(|it| it.secrets()).map(Name::as_str).collect();
    let modes: Vec<&str> = recipe
        .files
        .iter()
        .map(|file| {
            let code = code(&file.template);
            let speaks_of = |names: &[&str]| names.iter().any(|name| has_word(&code, name));
            let reads_one = speaks_of(&own)
                || (has_word(&code, "parameters") && speaks_of(&parameters))
                || (has_word(&code, "imports") && speaks_of(&imported));
            if reads_one { FOR_ITS_OWNER } else { FOR_ALL }
        })
        .collect();
    for (file, mode) in recipe.files.iter_mut().zip(modes).filter(|(file, _)| file.mode.is_empty()) {
        file.mode = mode.into();
    }
}

/// What stands in the braces of a template.
fn code(template: &str) -> String {
    let opened = template.split("{{").flat_map(|it| it.split("{%")).skip(1);
    opened.filter_map(|it| it.split("}}").next()?.split("%}").next()).collect::<Vec<_>>().join("\n")
}

fn has_word(text: &str, word: &str) -> bool {
    let is_letter = |it: char| it.is_alphanumeric() || it == '_';
    let stands_alone = |at: usize| !text[..at].ends_with(is_letter) && !text[at + word.len()..].starts_with(is_letter);
    text.match_indices(word).any(|(at, _)| stands_alone(at))
}
