//! A compose file as a tree, with its own ways of saying things once: anchors, merge keys and `extends`.

use super::{Importer, words};
use crate::{
    document::beside,
    node::{Content, Key, Node, Style},
    source::Span,
    yaml,
};

/// Services that may extend each other in a row.
const EXTENDS_MAX: usize = 20;
/// Lists that are put together where one service extends another; all others are taken as a whole.
const TOGETHER: [&str; 8] = ["ports", "expose", "volumes", "configs", "secrets", "dns", "tmpfs", "env_file"];
/// Fields that may be a list of `NAME=value` texts or a map.
const LISTS_OF_PAIRS: [&str; 3] = ["environment", "labels", "depends_on"];

/// Reads a file with its merge keys resolved.
pub(super) fn read(
    name: &str,
    importer: &mut Importer,
    open: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Node, String> {
    let text = open(name)?;
    let file = importer.sources.add(name, &text);
    let before = importer.reading.findings.count();
    let root = yaml::parse_foreign(file, &text, &mut importer.reading.findings);
    let Some(mut root) = root else {
        if importer.reading.findings.count() == before {
            importer.wrong(Span::beginning(file), "the file is empty (a compose file has `services`)");
        }
        return Ok(Node::nothing(Span::beginning(file)));
    };
    merge(&mut root, importer);
    Ok(root)
}

/// Lays maps over what their merge keys name.
fn merge(node: &mut Node, importer: &mut Importer) {
    match &mut node.content {
        Content::Scalar { .. } => {}
        Content::List { items, .. } => items.iter_mut().for_each(|it| merge(it, importer)),
        Content::Map { entries, .. } => {
            entries.iter_mut().for_each(|(_, node)| merge(node, importer));
            let Some(place) = entries.iter().position(|(key, _)| key.text == "<<" && key.style == Style::Plain) else {
                return;
            };
            let (_, under) = entries.remove(place);
            let under = match under.content {
                Content::List { items, .. } => items,
                _ => vec![under],
            };
            for node in under {
                let Content::Map { entries: others, .. } = node.content else {
                    importer.wrong(node.span, format!("`<<` must be a map or a list of maps, not {}", node.in_words()));
                    continue;
                };
                for (key, node) in others {
                    if !entries.iter().any(|(known, _)| known.text == key.text) {
                        entries.push((key, node));
                    }
                }
            }
        }
    }
}

/// A service laid over what it extends, here or in another file.
pub(super) fn extended(
    root: &Node,
    key: &Key,
    importer: &mut Importer,
    open: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Option<Node> {
    let mut layers: Vec<Node> = Vec::new();
    let mut seen: Vec<(usize, String)> = Vec::new();
    let mut file: Option<Node> = None;
    let mut name = key.text.clone();
    let mut asked = key.span;
    loop {
        let known = file.as_ref().unwrap_or(root);
        let Some(node) = known.get("services").and_then(|it| it.get(&name)).cloned() else {
            let services = known.get("services").map(Node::entries).unwrap_or_default();
            let right = crate::nearest::hint(&name, services.iter().map(|(key, _)| key.text.as_str()));
            importer.wrong(asked, format!("cannot extend unknown service `{}`{right}", name.escape_debug()));
            break;
        };
        let here = (known.span.file, name.clone());
        if seen.contains(&here) || seen.len() >= EXTENDS_MAX {
            let path: Vec<&str> = seen.iter().map(|(_, name)| name.as_str()).collect();
            importer.wrong(asked, format!("a service cannot extend itself: {} → {name}", path.join(" → ")));
            break;
        }
        seen.push(here);
        let extends = node.get("extends").cloned();
        layers.push(node);
        let Some(extends) = extends else { break };
        asked = extends.span;
        match &extends.content {
            Content::Scalar { text, .. } => name = text.clone(),
            Content::Map { .. } => {
                let fields = importer.reading.fields(&extends, "`extends`", &["service", "file"]);
                let Some(service) = fields.get("service") else {
                    importer.wrong(asked, "`extends` needs a `service`");
                    break;
                };
                name = importer.reading.text(service, "a service")?.to_owned();
                if let Some(node) = fields.get("file") {
                    let folder = importer.sources.name(asked.file).rsplit_once('/').map_or("", |(folder, _)| folder);
                    let path = beside(folder, importer.reading.text(node, "a file's name")?);
                    match read(&path, importer, open) {
                        Ok(read) => file = Some(read),
                        Err(why) => {
                            importer.wrong(node.span, format!("{path} cannot be read: {why}"));
                            break;
                        }
                    }
                }
            }
            Content::List { .. } => {
                importer.wrong(asked, "`extends` must be the name of a service, or a map with `service` and `file`");
                break;
            }
        }
    }
    let mut whole = layers.pop()?;
    layers.iter().rev().for_each(|over| lay_over(&mut whole, over));
    Some(whole)
}

/// Lays one service over another, as compose does.
fn lay_over(under: &mut Node, over: &Node) {
    let (Content::Map { entries, .. }, Content::Map { entries: others, .. }) = (&mut under.content, &over.content)
    else {
        *under = over.clone();
        return;
    };
    for (key, node) in others {
        let Some((_, known)) = entries.iter_mut().find(|(it, _)| it.text == key.text) else {
            entries.push((key.clone(), node.clone()));
            continue;
        };
        let together = TOGETHER.contains(&key.text.as_str());
        match (&mut known.content, &node.content) {
            (Content::List { items, .. }, Content::List { items: more, .. }) if together => items.extend(more.clone()),
            _ if LISTS_OF_PAIRS.contains(&key.text.as_str()) => {
                *known = as_map(known);
                let more = as_map(node);
                if let (Content::Map { entries: all, .. }, Content::Map { entries: more, .. }) =
                    (&mut known.content, more.content)
                {
                    all.retain(|(key, _)| !more.iter().any(|(it, _)| it.text == key.text));
                    all.extend(more);
                }
            }
            (Content::Map { .. }, Content::Map { .. }) => known.overlay(node),
            _ => *known = node.clone(),
        }
    }
}

/// A list of `NAME=value` texts as a map; a map as it is.
pub(super) fn as_map(node: &Node) -> Node {
    let Content::List { items, flow } = &node.content else { return node.clone() };
    let entry = |item: &Node| {
        let Content::Scalar { text, .. } = &item.content else { return None };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Content::Scalar { text: value.into(), style: Style::Quoted }),
            None => (text.as_str(), Content::Scalar { text: String::new(), style: Style::Plain }),
        };
        let key = Key { text: name.trim().into(), span: item.span, style: Style::Plain };
        Some((key, Node { span: item.span, content: value }))
    };
    Node { span: node.span, content: Content::Map { entries: items.iter().filter_map(entry).collect(), flow: *flow } }
}

/// What the file `.env` beside a compose file says, where there is one.
pub(super) fn environment(name: &str, importer: &mut Importer, open: &mut dyn FnMut(&str) -> Result<String, String>) {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    if let Ok(text) = open(&beside(folder, ".env")) {
        let given = words::variables(&text).into_iter().filter_map(|(name, value)| Some((name, value?)));
        importer.environment = given.collect();
    }
}
