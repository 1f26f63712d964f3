//! An application as its files describe it: checked, but not yet expanded, placed and wired.

use crate::{
    Inputs,
    autoscale::{self, Autoscale},
    component_group::{override_counts, read_component},
    component_type::{self, ComponentType, NeedSort},
    document::{Document, beside},
    expansion::Secret,
    nearest::hint,
    node::{Key, Node},
    problem::{Findings, Problems},
    reading::Reading,
    secrets,
    source::{Sources, Span},
    template,
};
use protocol::{Name, bounds::RECIPE_BYTES_MAX};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const VM_FIELDS: &[&str] = &["count", "most", "cloud", "labels", "resources", "cost"];
pub(crate) const COMPONENT_FIELDS: &[&str] = &["type", "count", "on", "parameters", "bind", "load", "description"];
pub(crate) const LOAD_FIELDS: &[&str] = &["each", "factor"];
pub(crate) const BIND_FIELDS: &[&str] = &["from", "how"];
pub(crate) const SECRET_FIELDS: &[&str] = &["environment", "file", "command", "version"];
/// The keywords of `bind`, which cannot name components.
pub(crate) const WAYS: [(&str, Way); 4] =
    [("one", Way::One), ("index", Way::Index), ("all", Way::All), ("none", Way::Nobody)];

/// An application as its files describe it.
#[derive(Clone, Debug)]
pub struct Application {
    /// Its name, which is the prefix of the names of its VMs and components.
    pub name: Name,
    pub(crate) sources: Sources,
    pub(crate) vms: BTreeMap<Name, VmGroup>,
    pub(crate) components: BTreeMap<Name, ComponentGroup>,
    pub(crate) types: BTreeMap<String, (Span, ComponentType)>,
    /// What the placement has to satisfy.
    pub(crate) constraints: Vec<(String, Span)>,
    /// What to minimise, the most important first.
    pub(crate) preferences: Vec<(String, Span)>,
    /// How it follows its load.
    pub(crate) autoscale: Option<Autoscale>,
    /// Whether a change that fails is taken back by the manager.
    pub(crate) rolls_back_on_failure: bool,
    /// Where each secret is named.
    pub(crate) secrets: BTreeMap<String, Span>,
    /// VMs that may not have components.
    pub(crate) drained: BTreeSet<crate::Key>,
    /// Components that are described and could not be read.
    pub(crate) unread: BTreeSet<Name>,
    /// Whether a file could not be read: what seems to be missing may be in it.
    pub(crate) is_incomplete: bool,
    /// Problems of the first reading: they are reported together with those of the expansion.
    pub(crate) findings: Findings,
}

/// A group of VMs.
#[derive(Clone, Debug)]
pub(crate) struct VmGroup {
    /// How many there are, or the maximum.
    pub(crate) count: u32,
    /// Whether there are only as many as are needed.
    pub(crate) as_needed: bool,
    /// The cost of each.
    pub(crate) cost: u64,
    pub(crate) cloud: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    /// What each has; resources that are not listed are not enforced.
    pub(crate) resources: BTreeMap<String, u64>,
    pub(crate) span: Span,
    /// Whether all of it could be read.
    pub(crate) sound: bool,
}

/// A group of components.
#[derive(Clone, Debug)]
pub(crate) struct ComponentGroup {
    pub(crate) type_name: String,
    /// How many there are.
    pub(crate) count: u32,
    /// Whether there are as many as are needed, whatever the count.
    pub(crate) as_needed: bool,
    /// VMs that they may run on: groups, or single VMs of groups; any, if there are none.
    pub(crate) on: Vec<Target>,
    pub(crate) load: Option<Load>,
    pub(crate) parameters: BTreeMap<String, Value>,
    pub(crate) secrets: BTreeMap<String, Secret>,
    pub(crate) wiring: BTreeMap<Name, Wiring>,
    pub(crate) span: Span,
}

impl ComponentGroup {
    /// Whether an import is not to be bound.
    pub(crate) fn is_bound_to_nobody(&self, import: &Name) -> bool {
        self.wiring.get(import).is_some_and(|it| it.way == Some(Way::Nobody))
    }
}

/// The load that one component of a group can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// The maximum for each.
    pub(crate) each: u64,
    /// Load for each unit of the application's load.
    pub(crate) factor: u64,
}

/// How one import is wired.
#[derive(Clone, Debug)]
pub(crate) struct Wiring {
    /// The permitted providers; every component with the export, if none is named.
    pub(crate) to: Vec<Target>,
    /// How; the default of the import, if not given.
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
    /// Not bound.
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

impl std::fmt::Display for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(application) = &self.application {
            write!(formatter, "{application}/")?;
        }
        match self.index {
            Some(index) => write!(formatter, "{}[{index}]", self.group),
            None => write!(formatter, "{}", self.group),
        }
    }
}

/// A load that cannot be converted into numbers of components.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// No component declares its load.
    #[error("no component of {0} declares the load it can take (`load: 40000` under the component)")]
    Unknown(String),
    /// This component does not.
    #[error("there is no component `{0}` with a load{1}")]
    NoLoad(String, String),
    /// Arithmetic overflow.
    #[error(transparent)]
    Load(#[from] planner::scale::LoadError),
}

impl Application {
    /// Whether a change that fails is taken back by the manager, because the file says `on-failure: rollback`.
    pub fn rolls_back_on_failure(&self) -> bool {
        self.rolls_back_on_failure
    }

    /// Remarks: what works, but perhaps not as its author intends.
    pub fn remarks(&self) -> Vec<String> {
        let used = |name: &&String| self.components.values().any(|group| group.type_name == **name);
        let mut remarks = Vec::new();
        for name in self.types.keys().filter(used) {
            let component_type = &self.types[name].1;
            let is_read = |import: &Name| component_type.reads.imported.keys().any(|(read, _)| read == import);
            let silent = component_type.imports.iter().filter(|(_, it)| it.sort == NeedSort::Weak);
            for (import, _) in silent.filter(|(import, _)| !component_type.recipe.rebinds() && is_read(import)) {
                remarks.push(format!(
                    "`{name}` reads the weak import `{import}` but has neither `rebind` nor `reload`: while it runs, it does not learn of new or removed providers, and it is restarted when a provider comes back with different values"
                ));
            }
            let listed: BTreeSet<&str> =
                self.vms.values().flat_map(|it| it.resources.keys()).map(String::as_str).collect();
            for unlisted in
                component_type.resources.keys().filter(|it| !listed.is_empty() && !listed.contains(it.as_str()))
            {
                let right = hint(unlisted, listed.iter().copied());
                remarks.push(format!(
                    "`{name}` uses `{unlisted}`: no VM declares this resource, so it is not enforced{right}"
                ));
            }
        }
        remarks
    }

    /// Reads an application. Files are asked for by name: the main one first, then what it includes and the templates
    /// that it names, each relative to the file that names it. Problems that only show after expanding, placing and
    /// wiring are reported by [`Application::expand`], together with those found here; they are reported at once only
    /// if nothing can be made of the files at all.
    pub fn read(
        main: &str,
        inputs: &Inputs,
        open: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, Problems> {
        let mut sources = Sources::default();
        let mut reading = Reading::default();
        let mut document = Document::read(main, &mut sources, &mut reading, open);
        document.fill_in(inputs, &mut sources, &mut reading);
        let name = document.application.as_ref().and_then(|node| reading.application(node));
        let mut templates = |span: Span, name: &str| {
            let folder = sources.name(span.file).rsplit_once('/').map_or("", |(folder, _)| folder);
            let name = beside(folder, name);
            let text = open(&name)?;
            // Many types may come from one large file, which would then be kept for each of them.
            if text.len() > RECIPE_BYTES_MAX {
                let length = text.len();
                return Err(format!(
                    "its recipe would be {length} bytes long (at most {RECIPE_BYTES_MAX}; put large files elsewhere)"
                ));
            }
            let file = sources.add(&name, &text);
            Ok((text.clone(), Span { file, start: 0, end: text.len() }))
        };
        let mut types = component_type::read_all(document.section("types"), &mut reading, &mut templates);
        let secrets = secrets::read(document.section("secrets"), &sources, &mut reading);
        let vms = read_vms(document.section("vms"), &mut reading);
        let (mut components, mut unread) = (BTreeMap::new(), BTreeSet::new());
        for (key, node) in document.section("components") {
            let name = reading.name(&key.text, key.span);
            if WAYS.iter().any(|(word, _)| *word == key.text) {
                reading.wrong(key.span, format!("`{}` is a keyword of `bind` and cannot name a component", key.text));
            }
            let read = read_component(key, node, &types, &secrets, &vms, &mut reading);
            match (name, read) {
                (Some(name), Some(read)) => drop(components.insert(name, read)),
                (name, _) => unread.extend(name),
            }
        }
        override_counts(inputs, &mut sources, &mut components, &mut reading);
        let autoscale = document.autoscale.as_ref().filter(|node| !node.is_nothing());
        let autoscale = autoscale.and_then(|node| autoscale::read(node, &components, &mut reading));
        let mut texts = |nodes: &[Node], what: &str| -> Vec<(String, Span)> {
            let read = nodes.iter().filter_map(|node| Some((reading.text(node, what)?.to_owned(), node.span)));
            read.collect()
        };
        let constraints = texts(&document.constraints, "a constraint");
        let preferences = texts(&document.preferences, "a preference");
        let by_export = template::exported_values(&types);
        // What could not be read of a type would also be missing in its templates.
        for (_, component_type) in types.values_mut().filter(|(_, it)| it.sound) {
            component_type.reads = template::check(component_type, &by_export, &sources, &mut reading);
        }
        match name {
            Some(name) => {
                let secrets = document.section("secrets").iter().map(|(key, _)| (key.text.clone(), key.span)).collect();
                let Reading { findings, is_incomplete, .. } = reading;
                Ok(Self {
                    name,
                    sources,
                    vms,
                    components,
                    types,
                    constraints,
                    preferences,
                    autoscale,
                    rolls_back_on_failure: document.rolls_back_on_failure,
                    secrets,
                    drained: inputs.drained.clone(),
                    unread,
                    is_incomplete,
                    findings,
                })
            }
            None => reading.findings.conclude(&sources).and_then(|()| Err(Problems(Vec::new()))),
        }
    }

    /// A file as plain data, without interpreting it; nothing if it is not YAML.
    pub fn data(text: &str) -> Option<Value> {
        let mut findings = Findings::default();
        let root = crate::yaml::parse(0, text, &mut findings).0?;
        (findings.count() == 0).then(|| Reading::value(&root))
    }

    /// Whether the planner decides where components go: some may be anywhere, or as many as are needed; or the file has
    /// constraints or preferences.
    pub fn leaves_a_choice(&self) -> bool {
        let open = |group: &ComponentGroup| group.as_needed || (group.on.is_empty() && self.vms.len() > 1);
        !self.constraints.is_empty()
            || !self.preferences.is_empty()
            || self.vms.values().any(|it| it.as_needed)
            || self.components.values().any(open)
    }

    /// The VMs that a group may run on: all, if the file names none.
    pub(crate) fn allowed(&self, group: &ComponentGroup) -> Vec<Target> {
        if !group.on.is_empty() {
            return group.on.clone();
        }
        let all = self.vms.iter();
        all.map(|(name, it)| Target { application: None, group: name.clone(), index: None, span: it.span }).collect()
    }

    /// How many components of each group a load needs, for groups that declare what each can take. A group that is
    /// listed in `own` has that load, whatever the application's.
    pub fn counts_for(&self, load: u64, own: &BTreeMap<String, u64>) -> Result<BTreeMap<String, u32>, LoadError> {
        let known: Vec<planner::scale::Load> = self
            .components
            .iter()
            .filter_map(|(name, group)| {
                let Load { each, factor } = group.load?;
                Some(planner::scale::Load { component: name.to_string(), load_max: Some(each), factor })
            })
            .collect();
        if known.is_empty() {
            return Err(LoadError::Unknown(self.name.to_string()));
        }
        if let Some(name) = own.keys().find(|name| !known.iter().any(|it| it.component == **name)) {
            let right = hint(name, known.iter().map(|it| it.component.as_str()));
            return Err(LoadError::NoLoad(name.clone(), right));
        }
        let counts = planner::scale::instances(load, &known, own)?;
        counts
            .into_iter()
            .map(|(name, count)| match u32::try_from(count) {
                Ok(count) => Ok((name, count)),
                Err(_) => Err(LoadError::Load(planner::scale::LoadError::TooLarge(name))),
            })
            .collect()
    }

    /// The number of components of each group, as the files and the inputs say.
    pub fn counts(&self) -> BTreeMap<String, u32> {
        self.components.iter().map(|(name, group)| (name.to_string(), group.count)).collect()
    }
}

fn read_vms(section: &[(Key, Node)], reading: &mut Reading) -> BTreeMap<Name, VmGroup> {
    let mut vms = BTreeMap::new();
    for (key, node) in section {
        let name = reading.name(&key.text, key.span);
        reading.is_incomplete |= name.is_none();
        let before = reading.findings.count();
        let fields = reading.fields(node, "a group of VMs", VM_FIELDS);
        let most = fields.entry("most");
        if let (Some((key, _)), Some(_)) = (most, fields.get("count")) {
            reading.wrong(
                key.span,
                "use either `count` (exactly this many) or `most` (as many as needed, up to this many)",
            );
        }
        let said = fields.entry("count").or(most);
        let count = said.and_then(|(key, node)| reading.count(node, &format!("`{}`", key.text))).unwrap_or(1);
        let cost = fields.get("cost").and_then(|node| reading.number(node, "`cost`")).unwrap_or(0);
        let cloud = fields.get("cloud").and_then(|node| reading.text(node, "a cloud").map(str::to_owned));
        let mut labels = BTreeMap::new();
        for (key, node) in component_type::entries(reading, fields.get("labels"), "`labels`") {
            labels.extend(reading.text(node, "a label").map(|text| (key.text.clone(), text.to_owned())));
        }
        let mut resources = BTreeMap::new();
        for (key, node) in component_type::entries(reading, fields.get("resources"), "`resources`") {
            resources.extend(reading.number(node, "an amount").map(|number| (key.text.clone(), number)));
        }
        let (as_needed, span, sound) = (most.is_some(), key.span, reading.findings.count() == before);
        let group = VmGroup { count, as_needed, cost, cloud, labels, resources, span, sound };
        vms.extend(name.map(|name| (name, group)));
    }
    vms
}
