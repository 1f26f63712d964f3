//! An application as its files describe it: checked, but not yet counted out, placed and wired.

use crate::{
    Inputs,
    component_type::{self, ComponentType},
    document::{Document, Sort, beside},
    expansion::Secret,
    nearest::hint,
    node::{Content, Key, Node},
    problem::{Findings, Problems},
    reading::Reading,
    source::{Sources, Span},
    template,
};
use protocol::Name;
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) const VM_FIELDS: &[&str] = &["count", "cloud", "labels", "resources"];
pub(crate) const COMPONENT_FIELDS: &[&str] = &["type", "count", "on", "parameters", "bind", "description"];
pub(crate) const BIND_FIELDS: &[&str] = &["to", "how"];
pub(crate) const SECRET_FIELDS: &[&str] = &["environment", "file", "command", "version"];
/// The words for ways to wire, which are no names of components.
pub(crate) const WAYS: [(&str, Way); 4] =
    [("one", Way::One), ("index", Way::Index), ("all", Way::All), ("none", Way::Nobody)];

/// An application as its files describe it.
#[derive(Debug)]
pub struct Application {
    /// What it is called; the names of its VMs and components begin with it.
    pub name: Name,
    pub(crate) sources: Sources,
    pub(crate) vms: BTreeMap<Name, VmGroup>,
    pub(crate) components: BTreeMap<Name, ComponentGroup>,
    pub(crate) types: BTreeMap<String, (Span, ComponentType)>,
    /// Findings of the first reading: they are told together with those of the expansion.
    pub(crate) findings: Findings,
}

/// VMs that are alike.
#[derive(Clone, Debug)]
pub(crate) struct VmGroup {
    pub(crate) count: u32,
    pub(crate) cloud: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    /// What each has; what is not listed is not counted.
    pub(crate) resources: BTreeMap<String, u64>,
    pub(crate) span: Span,
}

/// Components that are alike.
#[derive(Clone, Debug)]
pub(crate) struct ComponentGroup {
    pub(crate) type_name: String,
    pub(crate) count: u32,
    /// VMs that they may be on: groups, or single VMs of groups.
    pub(crate) on: Vec<Target>,
    pub(crate) parameters: BTreeMap<String, Value>,
    pub(crate) secrets: BTreeMap<String, Secret>,
    pub(crate) wiring: BTreeMap<Name, Wiring>,
    pub(crate) span: Span,
}

/// How one import is wired.
#[derive(Clone, Debug)]
pub(crate) struct Wiring {
    /// Who may provide; whoever exports it, if nobody is named.
    pub(crate) to: Vec<Target>,
    /// One of the usual ways; the import's own, if none is named.
    pub(crate) way: Option<Way>,
    pub(crate) span: Span,
}

/// A way to wire the clients of an import to its providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// As many providers as are needed, at least one, spread evenly.
    One,
    /// The first to the first, the second to the second.
    Index,
    /// Each to every provider.
    All,
    /// To nobody.
    Nobody,
}

/// A group, or one of a group, here or in another application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) application: Option<Name>,
    pub(crate) group: Name,
    pub(crate) index: Option<u32>,
    pub(crate) span: Span,
}

impl Application {
    /// Reads an application. Files are asked for by name: the main one first, then what it includes and the templates that
    /// it names, each relative to the file that names it.
    ///
    /// What can only be seen when everything is counted out, placed and wired is told by [`Application::expand`], together
    /// with what was found here; only if nothing can be made of the files at all it is told at once.
    pub fn read(
        main: &str,
        inputs: &Inputs,
        open: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, Problems> {
        let mut sources = Sources::default();
        let mut reading = Reading::default();
        let mut document = Document::read(main, &mut sources, &mut reading, open);
        document.fill_in(inputs, &mut sources, &mut reading);
        let name = match &document.application {
            Some(node) => reading.application(node),
            None => {
                reading.wrong(Span::beginning(0), "the application has no name (`application: …`)");
                None
            }
        };
        let mut templates = |span: Span, name: &str| {
            let folder = sources.name(span.file).rsplit_once('/').map_or("", |(folder, _)| folder);
            open(&beside(folder, name))
        };
        let types = component_type::read_all(document.section("types"), &mut reading, &mut templates);
        let secrets = read_secrets(document.section("secrets"), &mut reading);
        let vms = read_vms(document.section("vms"), &mut reading);
        let mut components = BTreeMap::new();
        for (key, node) in document.section("components") {
            let name = reading.name(&key.text, key.span);
            if WAYS.iter().any(|(word, _)| *word == key.text) {
                reading.wrong(key.span, format!("`{}` is a way to wire, and no name of a component", key.text));
            }
            components.extend(name.zip(read_component(key, node, &types, &secrets, &vms, &mut reading)));
        }
        override_counts(inputs, &mut sources, &mut components, &mut reading);
        let by_export = template::exported_values(&types);
        // What could not be read of a type would be missed by its templates, too.
        for (_, component_type) in types.values().filter(|(_, it)| it.sound) {
            template::check(component_type, &by_export, &sources, &mut reading);
        }
        match name {
            Some(name) => Ok(Self { name, sources, vms, components, types, findings: reading.findings }),
            None => reading.findings.conclude(&sources).and_then(|()| Err(Problems(Vec::new()))),
        }
    }

    /// A file as plain data, without a look at what it means; nothing if it is no YAML.
    pub fn data(text: &str) -> Option<Value> {
        let mut findings = Findings::default();
        let root = crate::yaml::parse(0, text, &mut findings).0?;
        (findings.count() == 0).then(|| Reading::value(&root))
    }

    /// The number of components of each group, as the files and the inputs say.
    pub fn counts(&self) -> BTreeMap<String, u32> {
        self.components.iter().map(|(name, group)| (name.to_string(), group.count)).collect()
    }
}

fn read_secrets(section: &[(Key, Node)], reading: &mut Reading) -> BTreeMap<String, Secret> {
    let mut secrets = BTreeMap::new();
    for (key, node) in section {
        reading.name(&key.text, key.span);
        let fields = reading.fields(node, "a secret", SECRET_FIELDS);
        let version = fields.get("version").map_or(Some(1), |node| reading.count(node, "the version of a secret"));
        let sources = ["environment", "file", "command"].map(|name| fields.entry(name));
        let mut given = sources.into_iter().flatten();
        let (Some((from, node)), None) = (given.next(), given.next()) else {
            reading.wrong(key.span, "a secret comes from the `environment`, a `file` or a `command`: one of them");
            continue;
        };
        let Some(text) = reading.text(node, &format!("`{}`", from.text)).map(str::to_owned) else { continue };
        let secret =
            Secret { name: key.text.clone(), from: from.text.clone(), place: text, version: version.unwrap_or(1) };
        secrets.insert(key.text.clone(), secret);
    }
    secrets
}

fn read_vms(section: &[(Key, Node)], reading: &mut Reading) -> BTreeMap<Name, VmGroup> {
    let mut vms = BTreeMap::new();
    for (key, node) in section {
        let name = reading.name(&key.text, key.span);
        let fields = reading.fields(node, "a group of VMs", VM_FIELDS);
        let count = fields.get("count").map_or(Some(1), |node| reading.count(node, "`count`")).unwrap_or(1);
        let cloud = fields.get("cloud").and_then(|node| reading.text(node, "a cloud").map(str::to_owned));
        let mut labels = BTreeMap::new();
        for (key, node) in component_type::entries(reading, fields.get("labels"), "`labels`") {
            labels.extend(reading.text(node, "a label").map(|text| (key.text.clone(), text.to_owned())));
        }
        let mut resources = BTreeMap::new();
        for (key, node) in component_type::entries(reading, fields.get("resources"), "`resources`") {
            resources.extend(reading.number(node, "an amount").map(|number| (key.text.clone(), number)));
        }
        vms.extend(name.map(|name| (name, VmGroup { count, cloud, labels, resources, span: key.span })));
    }
    vms
}

fn read_component(
    key: &Key,
    node: &Node,
    types: &BTreeMap<String, (Span, ComponentType)>,
    secrets: &BTreeMap<String, Secret>,
    vms: &BTreeMap<Name, VmGroup>,
    reading: &mut Reading,
) -> Option<ComponentGroup> {
    let fields = reading.fields(node, "a component", COMPONENT_FIELDS);
    if let Some(node) = fields.get("description") {
        reading.text(node, "a description");
    }
    let count = fields.get("count").map_or(Some(1), |node| reading.count(node, "`count`")).unwrap_or(1);
    let mut on: Vec<Target> = Vec::new();
    for node in fields.get("on").map(|node| reading.items(node, "`on`")).unwrap_or_default() {
        let Some(target) = read_target(node, reading) else { continue };
        match vms.get(&target.group) {
            _ if target.application.is_some() => {
                reading.wrong(node.span, "a component is on a VM of its own application");
            }
            None => {
                let right = hint(target.group.as_str(), vms.keys().map(Name::as_str));
                reading.wrong(node.span, format!("there is no group of VMs `{}`{right}", target.group));
            }
            Some(group) if target.index.is_some_and(|index| index >= group.count) => {
                let says = format!("`{}` has {} VMs, counted from 0", target.group, group.count);
                reading.wrong(node.span, says);
            }
            Some(_) => on.push(target),
        }
    }
    if fields.get("on").is_none() {
        match vms.iter().next().filter(|_| vms.len() == 1) {
            Some((name, group)) => {
                on.push(Target { application: None, group: name.clone(), index: None, span: group.span });
            }
            None => {
                let groups: Vec<&str> = vms.keys().map(Name::as_str).collect();
                let says = format!(
                    "`{}` does not say where it runs (`on:` one of {})",
                    key.text,
                    crate::nearest::listed(&groups)
                );
                reading.wrong(key.span, says);
            }
        }
    }
    let Some(type_node) = fields.get("type") else {
        reading.wrong(key.span, format!("`{}` has no type (`type: …`)", key.text));
        return None;
    };
    let type_name = reading.text(type_node, "a type")?.to_owned();
    let Some((_, component_type)) = types.get(&type_name) else {
        let right = hint(&type_name, types.keys().map(String::as_str));
        reading.wrong(type_node.span, format!("there is no type `{}`{right}", type_name.escape_debug()));
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
    Some(ComponentGroup { type_name, count, on, parameters, secrets, wiring, span: key.span })
}

fn read_parameters(
    key: &Key,
    node: Option<&Node>,
    component_type: &ComponentType,
    known: &BTreeMap<String, Secret>,
    reading: &mut Reading,
) -> (BTreeMap<String, Value>, BTreeMap<String, Secret>) {
    let (mut parameters, mut secrets) = (BTreeMap::new(), BTreeMap::new());
    for (key, node) in component_type::entries(reading, node, "`parameters`") {
        let Some(parameter) = component_type.parameters.get(&key.text) else {
            if component_type.sound {
                let right = hint(&key.text, component_type.parameters.keys().map(String::as_str));
                reading.wrong(key.span, format!("there is no parameter `{}`{right}", key.text.escape_debug()));
            }
            continue;
        };
        if parameter.sort == Sort::Secret {
            match node.get("secret").map(|it| &it.content) {
                Some(Content::Scalar { text, .. }) if node.entries().len() == 1 => match known.get(text) {
                    Some(secret) => drop(secrets.insert(key.text.clone(), secret.clone())),
                    None => {
                        let right = hint(text, known.keys().map(String::as_str));
                        reading.wrong(node.span, format!("there is no secret `{}`{right}", text.escape_debug()));
                    }
                },
                _ => reading.wrong(
                    node.span,
                    format!("`{}` is a secret, written {{ secret: NAME }}; its text is never in a file", key.text),
                ),
            }
            continue;
        }
        let value = Reading::value(node);
        if let Some(wanted) = parameter.sort.complaint(&value) {
            reading.wrong(node.span, format!("`{}` is {wanted}, not {}", key.text, node.in_words()));
        }
        // A text may be written without quotes, and is a text then, too.
        let text = match &node.content {
            Content::Scalar { text, .. } if parameter.sort == Sort::Text => Some(text.clone().into()),
            _ => None,
        };
        parameters.insert(key.text.clone(), text.unwrap_or(value));
    }
    for (name, parameter) in &component_type.parameters {
        if parameters.contains_key(name) || secrets.contains_key(name) || node.is_some_and(|it| it.get(name).is_some())
        {
            continue;
        }
        match &parameter.default {
            Some(default) => drop(parameters.insert(name.clone(), default.clone())),
            None => reading
                .wrong(key.span, format!("`{}` does not say its parameter `{name}`, which has no default", key.text)),
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
                reading.wrong(span, format!("`{}` is bound to an empty list (say `none`)", key.text));
            }
            Some(Wiring { to: targets(items, reading), way: None, span })
        }
        Content::Map { .. } => {
            let fields = reading.fields(node, "a wiring", BIND_FIELDS);
            let way = fields.get("how").and_then(|node| reading.one_of(node, "`how`", &WAYS));
            let to = fields.get("to").map(|node| reading.items(node, "`to`")).unwrap_or_default();
            Some(Wiring { to: targets(to, reading), way, span })
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
                reading.wrong(node.span, format!("`{}` is no name (write it like web or web[2])", text.escape_debug()));
                return None;
            };
            (group, Some(index))
        }
        None => (rest, None),
    };
    Some(Target { application, group: reading.name(group, node.span)?, index, span: node.span })
}

/// What `scale` says has the last word.
fn override_counts(
    inputs: &Inputs,
    sources: &mut Sources,
    components: &mut BTreeMap<Name, ComponentGroup>,
    reading: &mut Reading,
) {
    for (name, count) in &inputs.counts {
        match components.iter_mut().find(|(it, _)| it.as_str() == name) {
            Some((_, group)) => group.count = *count,
            None => {
                let file = sources.add("scale", &format!("{name}={count}"));
                let right = hint(name, components.keys().map(Name::as_str));
                let says = format!("there is no component `{}`{right}", name.escape_debug());
                reading.wrong(Span { file, start: 0, end: name.len() }, says);
            }
        }
    }
}
