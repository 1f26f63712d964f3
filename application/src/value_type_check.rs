//! Checks the types of values that are known in advance, and determines those that come with an import.

use crate::{
    Application, Expansion,
    application::{ComponentGroup, Target},
    component_type::{ComponentType, NeedSort, TypeImport},
    nearest::listed,
    node::in_words,
    operations::TemplateText,
    problem::Findings,
    reading::Reading,
};
use protocol::{Export, Name};
use recipe::{
    At, Recipe,
    value_type::{ValueType, ValueTypes},
};
use std::collections::BTreeMap;

/// Checks the literal values of a type against their declared types.
pub(crate) fn check_literals(recipe: &Recipe, templates: &[TemplateText], reading: &mut Reading) {
    for (name, value_type, template) in sorted(recipe, templates).filter(|(.., it)| it.is_literal()) {
        if value_type.read(&template.text).is_none() {
            let says = format!("`{name}` must be {}, not {}", value_type.wanted(), in_words(&template.text));
            reading.wrong(template.span, says);
        }
    }
}

/// Checks the values of a group that depend only on its parameters against their declared types.
pub(crate) fn check_chosen(group: &Name, recipe: &Recipe, templates: &[TemplateText], findings: &mut Findings) {
    for (name, value_type, template) in sorted(recipe, templates).filter(|(.., it)| !it.is_literal()) {
        if let Some(text) = recipe.known(name).filter(|text| value_type.read(text).is_none()) {
            let (wanted, found) = (value_type.wanted(), in_words(&text));
            let says =
                format!("`{name}` must be {wanted}, not {found} (the text that the parameters of `{group}` give)");
            findings.add(template.span, says);
        }
    }
}

/// The templates of values that are more than texts.
fn sorted<'a>(
    recipe: &Recipe,
    templates: &'a [TemplateText],
) -> impl Iterator<Item = (&'a Name, ValueType, &'a TemplateText)> {
    let values = templates.iter().filter_map(|it| Some((it.value.as_ref()?, it)));
    let sorted = values.map(|(name, template)| (name, recipe.types.values.of(name), template));
    sorted.filter(|(_, value_type, _)| !value_type.is_text())
}

impl TemplateText {
    fn is_literal(&self) -> bool {
        !self.text.contains('{')
    }
}

/// A component to which an import may be bound: its name, its export, and its recipe.
type Provider<'a> = (String, &'a Export, &'a Recipe);

/// Holds what templates read of an import against those who may provide it.
fn check_read(
    (client, component_type): (&Name, &ComponentType),
    (import_name, import): (&Name, &TypeImport),
    providers: &[Provider<'_>],
    findings: &mut Findings,
) {
    let reads = component_type.reads.imported.iter().filter(|((import, _), _)| import == import_name);
    for ((_, value), read) in reads {
        for (provider, export, recipe) in providers {
            let reads = format!("the template reads `{value}` of import `{import_name}`");
            if read.in_any_case && !export.values.contains(value) {
                let known: Vec<&str> = export.values.iter().map(Name::as_str).collect();
                let says = format!(
                    "{reads}, but `{provider}`, to which `{client}` is bound, has only {} in export `{}`",
                    listed(&known),
                    import.export
                );
                findings.add(read.span, says);
            } else if import.sort == NeedSort::Value && export.values.contains(value) && is_late(recipe, value) {
                let says = format!(
                    "{reads}, which `{provider}` chooses only when it starts: a `value` import does not wait for that (choose the value `at: prepare`, or make the import `strong`)"
                );
                findings.add(read.span, says);
            }
        }
    }
}

/// Whether a value is not there before its component starts.
fn is_late(recipe: &Recipe, value: &Name) -> bool {
    match recipe.values.get(value) {
        Some(value) => value.at == At::Start,
        None => recipe.operations.install.is_none() && recipe.operations.announce.is_none(),
    }
}

impl Application {
    /// The types of the values of each import of a group. All possible providers must agree on those that the group's
    /// templates read.
    pub(crate) fn imported_sorts(
        &self,
        (name, group): (&Name, &ComponentGroup),
        others: &[Expansion],
        findings: &mut Findings,
    ) -> BTreeMap<Name, ValueTypes> {
        let component_type = self.type_of(group);
        let mut imported = BTreeMap::new();
        for (import_name, import) in &component_type.imports {
            // If no provider is named, it is bound to the only candidate, or to none so far.
            let wiring = group.wiring.get(import_name).filter(|it| !it.to.is_empty());
            let mut known: BTreeMap<&Name, (ValueType, String)> = BTreeMap::new();
            let providers = self.providers((name, group), import_name, &import.export, others);
            for (provider, export, recipe) in &providers {
                for value in &export.values {
                    let value_type = recipe.types.values.of(value);
                    let (before, first) = known.entry(value).or_insert_with(|| (value_type, provider.clone()));
                    let is_read = component_type.reads.imported.contains_key(&(import_name.clone(), value.clone()));
                    match (before.together(value_type), wiring) {
                        (Some(both), _) => *before = both,
                        (None, Some(wiring)) if is_read => {
                            let says = format!(
                                "import `{import_name}` of `{name}` may be bound to `{first}`, where `{value}` has the type `{before}`, and to `{provider}`, where it has the type `{value_type}` (use one type, or bind to one of them)"
                            );
                            findings.add(wiring.span, says);
                        }
                        (None, _) if [*before, value_type].contains(&ValueType::Secret) => *before = ValueType::Secret,
                        (None, _) => *before = ValueType::Text,
                    }
                }
            }
            // An ambiguous import without a choice was already reported.
            if wiring.is_some() || (providers.len() == 1 && !group.is_bound_to_nobody(import_name)) {
                check_read((name, component_type), (import_name, import), &providers, findings);
            }
            let types: ValueTypes =
                known.into_iter().map(|(value, (value_type, _))| (value.clone(), value_type)).collect();
            if !types.is_empty() {
                imported.insert(import_name.clone(), types);
            }
        }
        imported
    }

    /// Whom an import may be bound to: the groups that its wiring names, or all others that have the export; each with the
    /// export and what its values are.
    fn providers<'a>(
        &'a self,
        (name, group): (&Name, &ComponentGroup),
        import: &Name,
        export: &Name,
        others: &'a [Expansion],
    ) -> Vec<Provider<'a>> {
        let own = |name: &Name| {
            let component_type = Some(self.type_of(self.components.get(name)?)).filter(|it| it.knows_exports)?;
            Some((name.to_string(), component_type.exports.get(export)?, &component_type.recipe))
        };
        let named = group.wiring.get(import).map(|it| it.to.as_slice()).unwrap_or_default();
        if named.is_empty() {
            return self.components.keys().filter(|it| *it != name).filter_map(own).collect();
        }
        let provider = |target: &Target| match &target.application {
            Some(home) if *home != self.name => {
                let other = others.iter().find(|it| it.application == *home)?;
                let definition = other.definitions.get(&target.group)?;
                let name = format!("{home}/{}", target.group);
                Some((name, definition.exports.get(export)?, &definition.recipe))
            }
            _ => own(&target.group),
        };
        named.iter().filter_map(provider).collect()
    }
}
