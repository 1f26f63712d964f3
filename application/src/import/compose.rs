//! A compose file as a whole: its services, and who needs whom.

use super::{
    Importer, Phrase, With,
    interpolation::Piece,
    mounts, plain_sight,
    service::{self, Service},
    tree,
};
use crate::{
    node::{Key, Node},
    source::Span,
};
use std::collections::BTreeMap;

const FILE_FIELDS: &[&str] =
    &["version", "name", "services", "networks", "volumes", "configs", "secrets", "include", "models"];
const SOURCE_FIELDS: &[&str] =
    &["file", "environment", "content", "external", "name", "labels", "driver", "driver_opts", "template_driver"];

/// What a compose file says.
#[derive(Debug, Default)]
pub(super) struct Compose {
    pub(super) name: Option<String>,
    /// In the order in which they are written.
    pub(super) services: Vec<Service>,
    pub(super) configs: BTreeMap<String, Source>,
    pub(super) secrets: BTreeMap<String, Source>,
    /// Volumes that are not called after the application: what each is really called.
    pub(super) volumes: BTreeMap<String, Phrase>,
}

impl Compose {
    /// What a volume is really called, where that is said.
    pub(super) fn real_name(&self, volume: &Phrase) -> Option<&Phrase> {
        let [Piece::Literal(name)] = volume.pieces.as_slice() else { return None };
        self.volumes.get(name)
    }
}

/// Where a config or a secret comes from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A file, which is a secret or could not be read.
    File(String),
    /// An environment variable.
    Environment(String),
    /// The text itself.
    Content(Phrase),
    /// Somewhere else.
    Elsewhere,
}

/// Reads a compose file.
pub(super) fn read(
    name: &str,
    with: With,
    importer: &mut Importer,
    open: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Compose {
    let mut compose = Compose::default();
    let root = match tree::read(name, importer, open) {
        Ok(root) => root,
        Err(why) => {
            importer.sources.add(name, "");
            importer.wrong(Span::beginning(0), format!("{name} cannot be read: {why}"));
            return compose;
        }
    };
    tree::environment(name, importer, open);
    let shown: Vec<(&Key, &Node)> = known(&root, "a compose file", FILE_FIELDS, importer);
    let field = |name: &str| shown.iter().find(|(key, _)| key.text == name).map(|(_, node)| *node);
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    if let Some(node) = field("name") {
        let text = importer.reading.text(node, "the name of a project");
        compose.name = text.map(|text| importer.now(text, node.span, None));
    }
    if let Some(node) = field("include") {
        let says = "`include` is not supported: import the other files separately, or import the output of `docker compose config`";
        importer.remark(node.span, None, says);
    }
    for (section, into) in [("configs", &mut compose.configs), ("secrets", &mut compose.secrets)] {
        let Some(node) = field(section) else { continue };
        for (key, node) in importer.reading.entries(node, &format!("`{section}`")) {
            into.extend(source(key, node, section, folder, importer, open).map(|it| (key.text.clone(), it)));
        }
    }
    if let Some(node) = field("volumes").filter(|_| with == With::Docker) {
        compose.volumes = mounts::real_names(node, importer);
    }
    let Some(services) = field("services") else {
        if importer.reading.findings.count() == 0 {
            importer.wrong(Span::beginning(root.span.file), "the file defines no services (`services: …`)");
        }
        return compose;
    };
    for (key, _) in importer.reading.entries(services, "`services`") {
        let before = importer.reading.findings.count();
        let Some(node) = tree::extended(&root, key, importer, open) else { continue };
        let is_whole = importer.reading.findings.count() == before;
        let lacks = |name: &&str| node.get(name).is_none_or(|it| it.is_nothing() || it.in_words() == "``");
        // What it extends may have it.
        if is_whole && ["image", "build", "command", "entrypoint"].iter().all(lacks) {
            importer.wrong(key.span, format!("`{}` needs an `image`, a `build` or a `command`", key.text));
        }
        let service = service::read(key, &node, with, importer, open);
        compose.services.push(service);
    }
    connect(&mut compose, importer);
    plain_sight::tell(&compose, importer);
    let sources = [("config", &compose.configs), ("secret", &compose.secrets)];
    for service in &compose.services {
        for ((what, known), mounts) in sources.iter().zip([&service.configs, &service.secrets]) {
            for mount in mounts.iter().filter(|it| !known.contains_key(&it.source)) {
                let right = crate::nearest::hint(&mount.source, known.keys().map(String::as_str));
                let says = format!("unknown {what} `{}`{right}", mount.source.escape_debug());
                importer.reading.wrong(mount.span, says);
            }
        }
    }
    compose
}

/// The known entries of a map, without extensions; unknown ones are reported.
pub(super) fn known<'a>(
    node: &'a Node,
    what: &str,
    fields: &[&str],
    importer: &mut Importer,
) -> Vec<(&'a Key, &'a Node)> {
    let mut shown = Vec::new();
    for (key, node) in importer.reading.entries(node, what) {
        if key.text.starts_with("x-") {
            continue;
        }
        if !fields.contains(&key.text.as_str()) {
            let near = crate::nearest::nearest(&key.text, fields.iter().copied());
            let right = near.map_or_else(
                || format!("{what} has {}", crate::nearest::listed(&fields[..fields.len().min(12)])),
                |near| format!("did you mean `{near}`?"),
            );
            importer.wrong(key.span, format!("unknown field `{}` ({right})", key.text.escape_debug()));
        } else if !node.is_nothing() {
            shown.push((key, node));
        }
    }
    shown
}

fn source(
    key: &Key,
    node: &Node,
    section: &str,
    folder: &str,
    importer: &mut Importer,
    open: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Option<Source> {
    let shown = known(node, "a config or secret", SOURCE_FIELDS, importer);
    let field = |name: &str| shown.iter().find(|(key, _)| key.text == name).map(|(_, node)| *node);
    if let Some(node) = field("file") {
        let path = importer.reading.text(node, "`file`")?;
        let path = importer.now(path, node.span, None);
        // The text of a secret is not read here.
        let read = (section == "configs").then(|| open(&crate::document::beside(folder, &path)).ok()).flatten();
        return Some(read.map_or(Source::File(path), |text| Source::Content(Phrase::literal(text, node.span))));
    }
    if let Some(node) = field("content") {
        let text = importer.reading.text(node, "`content`")?;
        return Some(Source::Content(importer.phrase(text, node.span, None)));
    }
    if let Some(node) = field("environment") {
        return importer.reading.text(node, "`environment`").map(|it| Source::Environment(it.into()));
    }
    if field("external").is_none() {
        importer.wrong(key.span, format!("`{}` needs a `file`, an `environment` or a `content`", key.text));
    }
    Some(Source::Elsewhere)
}

/// Checks that required services exist and that none requires itself; and marks services that are jobs.
fn connect(compose: &mut Compose, importer: &mut Importer) {
    let names: Vec<String> = compose.services.iter().map(|it| it.name.clone()).collect();
    for service in &mut compose.services {
        let Service { name, needs, .. } = service;
        needs.retain(|need| {
            let is_there = need.required || names.contains(&need.service);
            if !is_there {
                let says = format!("`{}` is not defined, and is optional", need.service.escape_debug());
                importer.remark(need.span, Some(name), says);
            }
            is_there
        });
    }
    let mut jobs = Vec::new();
    for service in &compose.services {
        for need in &service.needs {
            if !names.contains(&need.service) {
                let right = crate::nearest::hint(&need.service, names.iter().map(String::as_str));
                importer.wrong(need.span, format!("unknown service `{}`{right}", need.service.escape_debug()));
            }
            if need.completed {
                jobs.push(need.service.clone());
            }
        }
    }
    compose.services.iter_mut().for_each(|it| it.is_job = jobs.contains(&it.name));
    // A service that needs only finished ones is finished; what is left then forms a cycle.
    let mut done: Vec<&str> = Vec::new();
    let mut left: Vec<&Service> = compose.services.iter().collect();
    loop {
        let before = left.len();
        left.retain(|service| {
            let waits = |need: &service::Needed| {
                need.required && names.contains(&need.service) && !done.contains(&need.service.as_str())
            };
            let ready = !service.needs.iter().any(waits);
            if ready {
                done.push(&service.name);
            }
            !ready
        });
        if left.len() == before {
            break;
        }
    }
    let Some(first) = left.first() else { return };
    // From any of them, following what is not done must come back.
    let mut path = vec![*first];
    loop {
        let last = path.last().expect("it begins with one");
        let waits = last.needs.iter().find(|need| need.required && left.iter().any(|it| it.name == need.service));
        let Some((need, next)) = waits.and_then(|need| Some((need, left.iter().find(|it| it.name == need.service)?)))
        else {
            return;
        };
        if let Some(begin) = path.iter().position(|it| it.name == next.name) {
            let circle: Vec<&str> = path[begin..].iter().chain([next]).map(|it| it.name.as_str()).collect();
            let says = format!(
                "`depends_on` forms a cycle, so no service could start first: {} (remove one of the entries, or write `required: false`)",
                circle.join(" → ")
            );
            importer.wrong(need.span, says);
            return;
        }
        path.push(next);
    }
}
