//! A type: what its components need, offer and do. It says nothing about how many there are, where, or how they are wired.

use crate::{
    nearest::hint,
    node::{Content, Key, Node},
    operations::{self, Open, TemplateText},
    reading::Reading,
    source::Span,
    template_reads::Reads,
    value_type_check,
};
use protocol::{Export, Name, Operation, Patience};
use recipe::{
    Recipe,
    value_type::{VALUE_TYPES, ValueType},
};
use serde_json::Value;
use std::collections::BTreeMap;

/// The fields of a type.
pub(crate) const TYPE_FIELDS: &[&str] = &[
    "extends",
    "description",
    "parameters",
    "imports",
    "exports",
    "resources",
    "conflicts",
    "values",
    "environment",
    "files",
    "data",
    "limits",
    "user",
    "no-new-privileges",
    "private-tmp",
    "operations",
    "patience",
    "takes",
];
pub(crate) const PARAMETER_FIELDS: &[&str] = &["type", "default", "description"];
pub(crate) const IMPORT_FIELDS: &[&str] = &["export", "strong", "weak", "value"];
pub(crate) const EXPORT_FIELDS: &[&str] = &["values", "capacity"];
/// What a value can be that travels with an export, with the words for it: it is written as a text, and never a list or map.
pub(crate) const EXPORTED_TYPES: [(&str, ValueType); 6] =
    [VALUE_TYPES[0], VALUE_TYPES[1], VALUE_TYPES[2], VALUE_TYPES[3], VALUE_TYPES[4], VALUE_TYPES[5]];
pub(crate) const PATIENCE_FIELDS: &[&str] = &["retries", "pause", "factor"];
/// How many types may extend each other in a row.
const EXTENDS_MAX: usize = 100;

/// What components of one type need, offer and do.
#[derive(Clone, Debug)]
pub(crate) struct ComponentType {
    pub(crate) parameters: BTreeMap<String, Parameter>,
    pub(crate) imports: BTreeMap<Name, TypeImport>,
    pub(crate) exports: BTreeMap<Name, Export>,
    pub(crate) resources: BTreeMap<String, u64>,
    /// Types of which no component may be on the same VM.
    pub(crate) conflicts: Vec<(String, Span)>,
    pub(crate) patience: BTreeMap<Operation, Patience>,
    /// How long operations usually take, for predictions.
    pub(crate) takes_ms: BTreeMap<Operation, u64>,
    /// Without parameters, and without the types of imported values: those depend on the component.
    pub(crate) recipe: Recipe,
    /// What its templates read.
    pub(crate) reads: Reads,
    pub(crate) templates: Vec<TemplateText>,
    /// Whether all of its exports could be read.
    pub(crate) knows_exports: bool,
    /// Whether all of it could be read.
    pub(crate) sound: bool,
}

/// What a component of a type can be told.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) value_type: ValueType,
    pub(crate) default: Option<Value>,
}

/// What a type needs.
#[derive(Clone, Debug)]
pub(crate) struct TypeImport {
    pub(crate) export: Name,
    pub(crate) sort: NeedSort,
    /// As many as are bound, if absent.
    pub(crate) number: Option<u32>,
    pub(crate) span: Span,
}

impl TypeImport {
    /// How many providers there are at least once it is complete.
    pub(crate) fn least(&self) -> usize {
        let number = self.number.unwrap_or(u32::from(self.sort != NeedSort::Weak));
        usize::try_from(number).unwrap_or(usize::MAX)
    }
}

/// The kinds of needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NeedSort {
    Strong,
    Weak,
    Value,
}

/// Reads all types, each with what it extends laid under it.
pub(crate) fn read_all(
    section: &[(Key, Node)],
    reading: &mut Reading,
    open: &mut Open<'_>,
) -> BTreeMap<String, (Span, ComponentType)> {
    let mut types = BTreeMap::new();
    for (key, node) in section {
        reading.name(&key.text, key.span);
        let before = reading.findings.count();
        let whole = extended(section, key, node, reading);
        let mut read = read(&whole, reading, open);
        read.sound = reading.findings.count() == before;
        types.insert(key.text.clone(), (key.span, read));
    }
    let names: Vec<String> = types.keys().cloned().collect();
    for (_, component_type) in types.values() {
        for (name, span) in component_type.conflicts.iter().filter(|(name, _)| !names.contains(name)) {
            let right = hint(name, names.iter().map(String::as_str));
            reading.absent(*span, format!("unknown type `{}`{right}", name.escape_debug()));
        }
    }
    types
}

/// The type with what it extends laid under it.
fn extended(section: &[(Key, Node)], key: &Key, node: &Node, reading: &mut Reading) -> Node {
    let mut layers = vec![node];
    let mut names = vec![key.text.as_str()];
    while let Some(over) = layers.last().and_then(|it| it.get("extends")).filter(|it| !it.is_nothing()) {
        let Content::Scalar { text, .. } = &over.content else { break };
        let Some((_, under)) = section.iter().find(|(it, _)| it.text == *text) else {
            let right = hint(text, section.iter().map(|(it, _)| it.text.as_str()));
            reading.absent(over.span, format!("cannot extend unknown type `{}`{right}", text.escape_debug()));
            break;
        };
        if names.contains(&text.as_str()) || names.len() >= EXTENDS_MAX {
            reading.wrong(over.span, format!("a type cannot extend itself: {} → {text}", names.join(" → ")));
            break;
        }
        layers.push(under);
        names.push(text);
    }
    let mut whole = layers.pop().unwrap_or(node).clone();
    layers.iter().rev().for_each(|over| whole.overlay(over));
    whole
}

fn read(node: &Node, reading: &mut Reading, open: &mut Open<'_>) -> ComponentType {
    let before = reading.findings.count();
    let fields = reading.fields(node, "a type", TYPE_FIELDS);
    let knows_fields = reading.findings.count() == before;
    if let Some(node) = fields.get("extends") {
        reading.text(node, "the type that is extended");
    }
    if let Some(node) = fields.get("description") {
        reading.text(node, "a description");
    }
    let mut parameters = BTreeMap::new();
    for (key, node) in entries(reading, fields.get("parameters"), "`parameters`") {
        let name = reading.name(&key.text, key.span);
        let read = parameter(&key.text, node, reading);
        parameters.extend(name.zip(read).map(|(name, read)| (name.to_string(), read)));
    }
    let mut imports = BTreeMap::new();
    for (key, node) in entries(reading, fields.get("imports"), "`imports`") {
        let name = reading.name(&key.text, key.span);
        imports.extend(name.zip(import(key, node, reading)));
    }
    let mut exports = BTreeMap::new();
    let mut values: BTreeMap<Name, (ValueType, Span)> = BTreeMap::new();
    let before = reading.findings.count();
    for (key, node) in entries(reading, fields.get("exports"), "`exports`") {
        let name = reading.name(&key.text, key.span);
        exports.extend(name.zip(export(node, &mut values, reading)));
    }
    let knows_exports = knows_fields && reading.findings.count() == before;
    let mut resources = BTreeMap::new();
    for (key, node) in entries(reading, fields.get("resources"), "`resources`") {
        let number = reading.number(node, "an amount");
        resources.extend(number.map(|number| (key.text.clone(), number)));
    }
    let conflicts = fields.get("conflicts").map(|node| reading.items(node, "`conflicts`")).unwrap_or_default();
    let conflicts =
        conflicts.iter().filter_map(|node| Some((reading.text(node, "a type")?.to_owned(), node.span))).collect();
    let (mut recipe, templates) = operations::read(&fields, &values, reading, open);
    recipe.types.values = values.into_iter().map(|(name, (value_type, _))| (name, value_type)).collect();
    value_type_check::check_literals(&recipe, &templates, reading);
    let mut takes_ms = BTreeMap::new();
    for (key, node) in entries(reading, fields.get("takes"), "`takes`") {
        let operation = operation(key, reading);
        takes_ms.extend(operation.zip(reading.duration_ms(node, "how long an operation takes")));
    }
    let mut patience = BTreeMap::new();
    for (key, node) in entries(reading, fields.get("patience"), "`patience`") {
        let operation = operation(key, reading);
        patience.extend(operation.zip(patience_of(node, reading)));
    }
    let sound = true;
    ComponentType {
        parameters,
        imports,
        exports,
        resources,
        conflicts,
        patience,
        takes_ms,
        recipe,
        reads: Reads::default(),
        templates,
        knows_exports,
        sound,
    }
}

/// The entries of a field that may be absent.
pub(crate) fn entries<'a>(reading: &mut Reading, node: Option<&'a Node>, what: &str) -> &'a [(Key, Node)] {
    node.map(|node| reading.entries(node, what)).unwrap_or_default()
}

fn parameter(name: &str, node: &Node, reading: &mut Reading) -> Option<Parameter> {
    // A default alone determines the type, too.
    if !matches!(node.content, Content::Map { .. }) {
        let default = Reading::value(node);
        let value_type = match &default {
            Value::Bool(_) => ValueType::Boolean,
            Value::Number(number) if number.is_i64() => ValueType::Integer,
            Value::Number(_) => ValueType::Number,
            Value::Array(_) | Value::Object(_) => ValueType::Any,
            Value::Null | Value::String(_) => ValueType::Text,
        };
        return Some(Parameter { value_type, default: Some(default).filter(|it| !it.is_null()) });
    }
    let fields = reading.fields(node, "a parameter", PARAMETER_FIELDS);
    let value_type = match fields.get("type") {
        Some(node) => reading.one_of(node, "the type of a parameter", &VALUE_TYPES)?,
        None => ValueType::Text,
    };
    let default = fields.get("default");
    if default.is_none() && fields.may_have(&["default"]) {
        return None;
    }
    if let Some(node) = default.filter(|node| !value_type.fits(&Reading::value(node))) {
        match value_type {
            ValueType::Secret => {
                let says = format!(
                    "`{name}` is a secret, and a secret cannot have a default (its text never belongs into a file)"
                );
                reading.wrong(node.span, says);
            }
            _ => reading.not_of_type(name, value_type, node),
        }
    }
    // Without a type it is a text; but a number without quotes stays a number, with which templates can calculate.
    let said = fields.get("type").map_or(ValueType::Any, |_| value_type);
    Some(Parameter { value_type, default: default.map(|node| Reading::value_of(said, node)) })
}

fn import(key: &Key, node: &Node, reading: &mut Reading) -> Option<TypeImport> {
    // The name of the export alone will do.
    if let Content::Scalar { .. } = node.content {
        let export = reading.named(node, "the export that is imported")?;
        return Some(TypeImport { export, sort: NeedSort::Strong, number: Some(1), span: key.span });
    }
    let fields = reading.fields(node, "an import", IMPORT_FIELDS);
    let Some(export) = fields.get("export") else {
        let says = format!("import `{}` needs the name of an export (`export: …`)", key.text);
        reading.missing(&fields, &["export"], key.span, says);
        return None;
    };
    let export = reading.named(export, "the export that is imported");
    let needs = [("strong", NeedSort::Strong), ("weak", NeedSort::Weak), ("value", NeedSort::Value)];
    let given: Vec<_> = needs.iter().filter_map(|(name, sort)| Some((fields.entry(name)?, *sort))).collect();
    if given.len() > 1 {
        reading.not_one_of(
            &fields,
            &needs.map(|(word, _)| word),
            "an import can be only one of strong, weak and value",
        );
    }
    let Some(((_, node), sort)) = given.first() else {
        return Some(TypeImport { export: export?, sort: NeedSort::Strong, number: Some(1), span: key.span });
    };
    let all = matches!(&node.content, Content::Scalar { text, .. } if text == "all");
    let number = if all { None } else { Some(reading.count(node, "how many are needed (or `all`)")?) };
    if number == Some(0) && *sort != NeedSort::Weak {
        reading.wrong(node.span, "an import that needs no provider must be weak (`weak: 0`)");
    }
    Some(TypeImport { export: export?, sort: *sort, number, span: key.span })
}

/// An export; what its values are is added to what is known of the type's values.
fn export(node: &Node, known: &mut BTreeMap<Name, (ValueType, Span)>, reading: &mut Reading) -> Option<Export> {
    let mut export = Export::default();
    // The names of the values alone will do.
    let values = if let Content::Map { .. } = node.content {
        // The old field is known only so that its use is answered with the new one.
        let words: Vec<&str> = EXPORT_FIELDS.iter().copied().chain(node.get("secret").map(|_| "secret")).collect();
        let fields = reading.fields(node, "an export", &words);
        if let Some((key, _)) = fields.entry("secret") {
            reading.wrong(key.span, "a secret value has the type `secret` (`values: { NAME: secret }`)");
        }
        export.capacity = fields.get("capacity").and_then(|node| reading.count(node, "a capacity"));
        fields.get("values")
    } else {
        Some(node)
    };
    let Some(values) = values else { return Some(export) };
    let mut named: Vec<(Name, ValueType, Span)> = Vec::new();
    if let Content::Map { .. } = values.content {
        for (key, node) in values.entries() {
            let name = reading.name(&key.text, key.span);
            // Where the word is wrong, the value may still be read by others.
            let value_type = reading.one_of(node, "the type of a value", &EXPORTED_TYPES).unwrap_or(ValueType::Any);
            named.extend(name.map(|name| (name, value_type, key.span)));
        }
    } else {
        for node in reading.items(values, "`values`") {
            named.push((reading.named(node, "the name of a value")?, ValueType::Text, node.span));
        }
    }
    for (name, value_type, span) in named {
        let (before, _) = *known.entry(name.clone()).or_insert((value_type, span));
        if before != value_type {
            let says = format!(
                "`{name}` has the type `{value_type}` here and `{before}` in another export (a value has one type)"
            );
            reading.wrong(span, says);
        }
        export.values.push(name);
    }
    Some(export)
}

fn operation(key: &Key, reading: &mut Reading) -> Option<Operation> {
    let found = Operation::called(&key.text);
    if found.is_none() {
        let right = hint(&key.text, Operation::ALL.map(Operation::word));
        reading.wrong(key.span, format!("unknown operation `{}`{right}", key.text.escape_debug()));
    }
    found
}

fn patience_of(node: &Node, reading: &mut Reading) -> Option<Patience> {
    let fields = reading.fields(node, "a patience", PATIENCE_FIELDS);
    let Some(retries) = fields.get("retries") else {
        reading.missing(&fields, &["retries"], fields.span, "a patience needs `retries`");
        return None;
    };
    let retries = reading.count(retries, "the number of retries");
    let pause = fields.get("pause").map_or(Some(1_000), |node| reading.duration_ms(node, "a pause"));
    let factor = fields.get("factor").map_or(Some(2), |node| reading.count(node, "a factor"));
    Some(Patience { retries: retries?, pause_ms_first: pause?, factor: factor? })
}
