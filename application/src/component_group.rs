//! Reads a group of components: how many, where, with which parameters, and how they are wired.

use crate::{
    Inputs,
    application::{BIND_FIELDS, COMPONENT_FIELDS, ComponentGroup, LOAD_FIELDS, Load, Target, VmGroup, WAYS, Wiring},
    component_type::{self, ComponentType},
    expansion::Secret,
    nearest::{hint, nearest},
    node::{Content, Key, Node},
    reading::Reading,
    source::{Sources, Span},
};
use protocol::Name;
use recipe::value_type::ValueType;
use serde_json::Value;
use std::collections::BTreeMap;

/// Reads a group; nothing if its type, count or place is unknown.
pub(crate) fn read_component(
    key: &Key,
    node: &Node,
    types: &BTreeMap<String, (Span, ComponentType)>,
    secrets: &BTreeMap<String, Option<Secret>>,
    vms: &BTreeMap<Name, VmGroup>,
    reading: &mut Reading,
) -> Option<ComponentGroup> {
    let fields = reading.fields(node, "a component", COMPONENT_FIELDS);
    if let Some(node) = fields.get("description") {
        reading.text(node, "a description");
    }
    let any = |node: &Node| matches!(&node.content, Content::Scalar { text, .. } if text == "any");
    let as_needed = fields.get("count").is_some_and(any);
    let said = fields.get("count").filter(|_| !as_needed);
    let count = said.map_or(Some(1), |node| reading.count(node, "`count` (or `any`)"));
    let load = fields.get("load").and_then(|node| read_load(node, reading));
    let mut on: Vec<Target> = Vec::new();
    let places = fields.get("on").map(|node| reading.items(node, "`on`")).unwrap_or_default();
    for node in places {
        let Some(target) = read_target(node, reading) else { continue };
        match vms.get(&target.group) {
            _ if target.application.is_some() => {
                reading.wrong(node.span, "a component is on a VM of its own application");
            }
            None => {
                let right = hint(target.group.as_str(), vms.keys().map(Name::as_str));
                reading.absent(node.span, format!("unknown VM group `{}`{right}", target.group));
            }
            Some(group) if target.index.is_some_and(|index| index >= group.count) => {
                let says = format!("`{}` has {} VMs, numbered from 0", target.group, group.count);
                reading.wrong(node.span, says);
            }
            Some(_) => on.push(target),
        }
    }
    if vms.is_empty() && fields.get("on").is_none() {
        reading.absent(key.span, format!("`{}` has no VM to run on: the file defines none (`vms: {{ … }}`)", key.text));
    }
    let Some(type_node) = fields.get("type") else {
        reading.missing(&fields, &["type"], key.span, format!("`{}` needs a type (`type: …`)", key.text));
        return None;
    };
    let type_name = reading.text(type_node, "a type")?.to_owned();
    let Some((_, component_type)) = types.get(&type_name) else {
        let right = hint(&type_name, types.keys().map(String::as_str));
        reading.absent(type_node.span, format!("unknown type `{}`{right}", type_name.escape_debug()));
        return None;
    };
    let (parameters, secrets) = read_parameters(key, fields.get("parameters"), component_type, secrets, reading);
    let mut wiring = BTreeMap::new();
    for (key, node) in component_type::entries(reading, fields.get("bind"), "`bind`") {
        let import = component_type.imports.keys().find(|name| name.as_str() == key.text);
        if import.is_none() && component_type.sound {
            let right = hint(&key.text, component_type.imports.keys().map(Name::as_str));
            reading.wrong(key.span, format!("type `{type_name}` has no import `{}`{right}", key.text.escape_debug()));
        }
        wiring.extend(import.cloned().zip(read_wiring(key, node, reading)));
    }
    let on = Some(on).filter(|it| it.len() == places.len())?;
    let count = count.filter(|_| !fields.may_have(&["count", "on"]))?;
    Some(ComponentGroup { type_name, count, as_needed, on, load, parameters, secrets, wiring, span: key.span })
}

/// What one component takes: a number, or `each` and `factor`.
fn read_load(node: &Node, reading: &mut Reading) -> Option<Load> {
    let (each, factor) = match &node.content {
        Content::Map { .. } => {
            let fields = reading.fields(node, "a load", LOAD_FIELDS);
            let Some(each) = fields.get("each") else {
                reading.missing(
                    &fields,
                    &["each"],
                    node.span,
                    "a load needs `each`: the load that one component can take",
                );
                return None;
            };
            (each.clone(), fields.get("factor").cloned())
        }
        _ => (node.clone(), None),
    };
    let most = reading.number(&each, "the load that one component can take")?;
    if most == 0 {
        reading.wrong(each.span, "`each` must be at least 1");
        return None;
    }
    let factor = factor.map_or(Some(1), |node| reading.number(&node, "a factor"))?;
    Some(Load { each: most, factor })
}

fn read_parameters(
    key: &Key,
    node: Option<&Node>,
    component_type: &ComponentType,
    known: &BTreeMap<String, Option<Secret>>,
    reading: &mut Reading,
) -> (BTreeMap<String, Value>, BTreeMap<String, Secret>) {
    let (mut parameters, mut secrets) = (BTreeMap::new(), BTreeMap::new());
    let names = || component_type.parameters.keys().map(String::as_str);
    // A misspelt parameter is not reported as missing, too.
    let is_map = node.is_none_or(|it| matches!(it.content, Content::Map { .. }) || it.is_nothing());
    let mut meant: Vec<&str> = if is_map { Vec::new() } else { names().collect() };
    for (key, node) in component_type::entries(reading, node, "`parameters`") {
        let Some(parameter) = component_type.parameters.get(&key.text) else {
            if component_type.sound {
                let right = hint(&key.text, names());
                meant.extend(nearest(&key.text, names()));
                reading.wrong(key.span, format!("unknown parameter `{}`{right}", key.text.escape_debug()));
            }
            continue;
        };
        if parameter.value_type == ValueType::Secret {
            match node.get("secret").map(|it| &it.content) {
                Some(Content::Scalar { text, .. }) if node.entries().len() == 1 => match known.get(text) {
                    Some(secret) => secrets.extend(secret.clone().map(|it| (key.text.clone(), it))),
                    None => {
                        let right = hint(text, known.keys().map(String::as_str));
                        reading.absent(node.span, format!("unknown secret `{}`{right}", text.escape_debug()));
                    }
                },
                _ => reading.wrong(
                    node.span,
                    format!("`{}` is a secret: write {{ secret: NAME }}, because the text of a secret never belongs into a file", key.text),
                ),
            }
            continue;
        }
        let value = Reading::value(node);
        if !parameter.value_type.fits(&value) {
            match node.get("secret") {
                Some(_) => {
                    let says =
                        format!("`{}` cannot take a secret (declare it with `type: secret` in the type)", key.text);
                    reading.wrong(node.span, says);
                }
                None => reading.not_of_type(&key.text, parameter.value_type, node),
            }
        }
        parameters.insert(key.text.clone(), Reading::value_of(parameter.value_type, node));
    }
    for (name, parameter) in &component_type.parameters {
        if parameters.contains_key(name) || secrets.contains_key(name) || node.is_some_and(|it| it.get(name).is_some())
        {
            continue;
        }
        match &parameter.default {
            Some(default) => drop(parameters.insert(name.clone(), default.clone())),
            None if meant.contains(&name.as_str()) => {}
            None => {
                reading
                    .wrong(key.span, format!("`{}` must set the parameter `{name}`, which has no default", key.text));
            }
        }
    }
    (parameters, secrets)
}

fn read_wiring(key: &Key, node: &Node, reading: &mut Reading) -> Option<Wiring> {
    let span = node.span;
    let targets = |nodes: &[Node], reading: &mut Reading| -> Vec<Target> {
        nodes.iter().filter_map(|node| read_target(node, reading)).collect()
    };
    match &node.content {
        Content::Scalar { text, .. } => {
            let way = WAYS.iter().find(|(word, _)| word == text).map(|(_, way)| *way);
            let to = if way.is_none() { targets(std::slice::from_ref(node), reading) } else { Vec::new() };
            Some(Wiring { to, way, span })
        }
        Content::List { items, .. } => {
            if items.is_empty() {
                reading.wrong(span, format!("`{}` is bound to an empty list (write `none`)", key.text));
            }
            Some(Wiring { to: targets(items, reading), way: None, span })
        }
        Content::Map { .. } => {
            let fields = reading.fields(node, "a wiring", BIND_FIELDS);
            let way = fields.get("how").and_then(|node| reading.one_of(node, "`how`", &WAYS));
            let from = fields.get("from").map(|node| reading.items(node, "`from`")).unwrap_or_default();
            Some(Wiring { to: targets(from, reading), way, span })
        }
    }
}

/// A group or one of a group: `web`, `web[2]`, `shared/database`, `shared/database[0]`.
fn read_target(node: &Node, reading: &mut Reading) -> Option<Target> {
    let text = reading.text(node, "a name")?;
    let (application, rest) = match text.split_once('/') {
        Some((application, rest)) => (Some(reading.name(application, node.span)?), rest),
        None => (None, text),
    };
    let (group, index) = match rest.split_once('[') {
        Some((group, index)) => {
            let Some(index) = index.strip_suffix(']').and_then(|index| index.parse().ok()) else {
                reading.wrong(
                    node.span,
                    format!("`{}` is not a valid name (write it like web or web[2])", text.escape_debug()),
                );
                return None;
            };
            (group, Some(index))
        }
        None => (rest, None),
    };
    Some(Target { application, group: reading.name(group, node.span)?, index, span: node.span })
}

/// The counts of `scale` override those of the files.
pub(crate) fn override_counts(
    inputs: &Inputs,
    sources: &mut Sources,
    components: &mut BTreeMap<Name, ComponentGroup>,
    reading: &mut Reading,
) {
    for (name, count) in &inputs.counts {
        match components.iter_mut().find(|(it, _)| it.as_str() == name) {
            Some((_, group)) => (group.count, group.as_needed) = (*count, false),
            None => {
                let file = sources.add("scale", &format!("{name}={count}"));
                let right = hint(name, components.keys().map(Name::as_str));
                let says = format!("unknown component `{}`{right}", name.escape_debug());
                reading.absent(Span { file, start: 0, end: name.len() }, says);
            }
        }
    }
}
