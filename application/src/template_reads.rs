//! What the templates of a type read, and the consequences: the order in which its values can be chosen, and which of
//! them contain a secret.

use crate::{
    component_type::ComponentType, operations::TemplateText, problem::Findings, reading::Reading, source::Span,
};
use protocol::Name;
use recipe::value_type::{RecipeTypes, ValueType};
use std::collections::{BTreeMap, BTreeSet};

/// What the templates of a type read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    /// Of what is bound to an import: the import and the value, and where it is read.
    pub(crate) imported: BTreeMap<(Name, Name), ImportRead>,
    /// The last of the items of an import that is read in any case, counted from 0, and where.
    pub(crate) items: BTreeMap<Name, (u64, Span)>,
    /// What becomes part of the text of each of its values.
    pub(crate) parts: BTreeMap<Name, BTreeSet<Part>>,
    /// The values of its own that each of them needs in any case.
    pub(crate) needs: BTreeMap<Name, BTreeSet<Name>>,
    /// Whether `group.count` is read.
    pub(crate) group_count: bool,
}

/// Where a value of an import is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImportRead {
    pub(crate) span: Span,
    /// Whether it is read in any case, and not only under a condition.
    pub(crate) in_any_case: bool,
}

/// What may become part of the text of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Parameter(String),
    Own(Name),
    /// A value that came with an import; all of them, if none is named.
    Imported(Name, Option<Name>),
}

/// Values that depend on each other, or on themselves, in a cycle.
pub(crate) fn check_order(needs: &BTreeMap<Name, BTreeSet<Name>>, templates: &[TemplateText], reading: &mut Reading) {
    for circle in circles(needs) {
        let drawn: Vec<String> = circle.iter().chain(circle.first()).map(|name| format!("`{name}`")).collect();
        let template = templates.iter().find(|it| it.value.as_ref() == circle.first().copied());
        if let Some(template) = template {
            let says = format!("these values depend on each other in a cycle: {}", drawn.join(" → "));
            reading.wrong(template.span, says);
        }
    }
}

/// Ways from a value through what it needs back to itself.
fn circles(needs: &BTreeMap<Name, BTreeSet<Name>>) -> Vec<Vec<&Name>> {
    let mut circles = Vec::new();
    let mut seen: BTreeSet<&Name> = BTreeSet::new();
    for first in needs.keys() {
        // The way from the first one to where the search is, each with what is still to be looked at.
        let mut way: Vec<(&Name, Vec<&Name>)> = Vec::new();
        let mut next = Some(first);
        loop {
            if let Some(name) = next.take() {
                if seen.insert(name) {
                    way.push((name, needs.get(name).into_iter().flatten().collect()));
                } else if let Some(start) = way.iter().position(|(it, _)| *it == name) {
                    circles.push(way[start..].iter().map(|(it, _)| *it).collect());
                }
            }
            match way.last_mut() {
                Some((_, open)) if !open.is_empty() => next = open.pop(),
                Some(_) => drop(way.pop()),
                None => break,
            }
        }
    }
    circles
}

/// Values that travel to others and contain a secret, without being secrets: clients would not know that they must not
/// be shown.
pub(crate) fn check_secrets(component_type: &ComponentType, types: &RecipeTypes, findings: &mut Findings) {
    let exported: BTreeSet<&Name> = component_type.exports.values().flat_map(|it| &it.values).collect();
    for name in exported.into_iter().filter(|it| !matches!(types.values.of(it), ValueType::Secret | ValueType::Any)) {
        let template = component_type.templates.iter().find(|it| it.value.as_ref() == Some(name));
        if let (Some(template), Some(secret)) = (template, secret_in(name, component_type, types)) {
            let says = format!(
                "`{name}` contains the secret `{secret}` and would be shown in plain text (declare it as a secret: `values: {{ {name}: secret }}` in its export)"
            );
            findings.add(template.span, says);
        }
    }
}

/// A secret that becomes part of a value, also by way of others.
fn secret_in(value: &Name, component_type: &ComponentType, types: &RecipeTypes) -> Option<String> {
    let mut open = vec![value];
    let mut seen: BTreeSet<&Name> = BTreeSet::new();
    while let Some(value) = open.pop() {
        for part in component_type.reads.parts.get(value).into_iter().flatten() {
            match part {
                Part::Parameter(name) => {
                    if component_type.parameters.get(name).is_some_and(|it| it.value_type == ValueType::Secret) {
                        return Some(format!("parameters.{name}"));
                    }
                }
                Part::Own(name) if types.values.of(name) == ValueType::Secret => return Some(name.to_string()),
                Part::Own(name) => open.extend(seen.insert(name).then_some(name)),
                Part::Imported(import, value) => {
                    let mut secrets = types.imports.get(import).into_iter().flat_map(|it| it.secrets());
                    if let Some(secret) = secrets.find(|it| value.as_ref().is_none_or(|value| value == *it)) {
                        return Some(format!("imports.{import}[…].{secret}"));
                    }
                }
            }
        }
    }
    None
}
