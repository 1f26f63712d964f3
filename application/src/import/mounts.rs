//! What a service finds in its file system: volumes, configs and secrets.

use super::{Importer, Phrase, With, service::plain};
use crate::{
    node::{Content, Node},
    source::Span,
};
use std::collections::BTreeMap;

/// Something of the machine inside of a container.
#[derive(Debug)]
pub(super) struct Volume {
    /// Nothing for a volume without a name.
    pub(super) source: Option<Phrase>,
    /// Whether the source is a path beside the compose file.
    pub(super) relative: bool,
    /// Whether the source is the name of a volume, which belongs to the application.
    pub(super) named: bool,
    pub(super) target: Phrase,
    pub(super) options: Option<Phrase>,
}

/// A config or secret of a service.
#[derive(Clone, Debug)]
pub(super) struct Mount {
    pub(super) source: String,
    /// Where the service looks for it.
    pub(super) target: String,
    /// Who may do what with it, in octal digits, where that is said.
    pub(super) mode: Option<String>,
    pub(super) span: Span,
}

/// The volumes of the whole file that are not called after the application: what each is really called.
pub(super) fn real_names(node: &Node, importer: &mut Importer) -> BTreeMap<String, Phrase> {
    let mut names = BTreeMap::new();
    for (key, node) in importer.reading.entries(node, "`volumes`").to_vec() {
        let external = node.get("external").filter(|it| plain(it) != "false");
        // An older way to write it has the name below `external`.
        let name = node.get("name").or_else(|| external.and_then(|it| it.get("name")));
        if external.is_some() {
            let says =
                format!("the external volume {} must exist on the VM: it is not created", key.text.escape_debug());
            importer.remark(key.span, None, says);
        }
        if let Some((lost, _)) = node.entries().iter().find(|(it, _)| it.text == "driver" || it.text == "driver_opts") {
            let says = format!(
                "`{}` of the volume {} is omitted: create the volume on its VM",
                lost.text,
                key.text.escape_debug()
            );
            importer.remark(lost.span, None, says);
        }
        match name {
            Some(name) => drop(names.insert(key.text.clone(), importer.phrase(plain(name), name.span, None))),
            None if external.is_some() => drop(names.insert(key.text.clone(), Phrase::literal(&key.text, key.span))),
            None => {}
        }
    }
    names
}

/// Reads the volumes of a service. A process has none.
pub(super) fn volumes(service: &str, node: &Node, with: With, importer: &mut Importer) -> Vec<Volume> {
    let mut read = Vec::new();
    for item in importer.reading.items(node, "`volumes`").to_vec() {
        let (source, target, options) = match &item.content {
            Content::Map { .. } => {
                let field = |name: &str| item.get(name).map(plain).filter(|it| !it.is_empty()).map(str::to_owned);
                let read_only = field("read_only").filter(|it| it == "true").map(|_| "ro".to_owned());
                match (field("type").as_deref(), field("target")) {
                    (_, None) => {
                        importer.wrong(item.span, "a volume needs a `target`");
                        continue;
                    }
                    (Some("bind" | "volume") | None, Some(target)) => (field("source"), target, read_only),
                    (Some(other), Some(target)) => {
                        let says = format!("the volume of type `{}` at {target} is omitted", other.escape_debug());
                        importer.remark(item.span, Some(service), says);
                        continue;
                    }
                }
            }
            _ => {
                let Some(text) = importer.reading.text(&item, "a volume") else { continue };
                let parts = parts(text);
                match parts.as_slice() {
                    [target] => (None, target.clone(), None),
                    [source, target] => (Some(source.clone()), target.clone(), None),
                    [source, target, options] => (Some(source.clone()), target.clone(), Some(options.clone())),
                    _ => {
                        importer.wrong(item.span, "a volume is written like ./data:/var/lib/data:ro");
                        continue;
                    }
                }
            }
        };
        if source.as_deref() == Some("") || !target.starts_with(['/', '$']) {
            importer.wrong(
                item.span,
                "a volume is written like ./data:/var/lib/data:ro, with an absolute path in the container",
            );
            continue;
        }
        if with == With::Process {
            let from = source.map_or_else(String::new, |it| format!("{it} at "));
            let says = format!(
                "the volume {from}{target} is omitted: a process sees the whole file system of its machine; make sure that its data is where it expects it"
            );
            importer.remark(item.span, Some(service), says);
            continue;
        }
        let relative = source.as_ref().is_some_and(|it| it.starts_with('.'));
        let named = source.as_ref().is_some_and(|it| !it.starts_with(['.', '/', '~', '$']));
        if named {
            let name = source.clone().unwrap_or_default();
            let says = format!(
                "the volume {name} is on the VM on which the service runs, and stays there when the service is removed"
            );
            importer.remark(item.span, Some(service), says);
        }
        read.push(Volume {
            source: source.map(|it| importer.phrase(&it, item.span, Some(service))),
            relative,
            named,
            target: importer.phrase(&target, item.span, Some(service)),
            options: options.map(|it| importer.phrase(&it, item.span, Some(service))),
        });
    }
    read
}

/// The parts between colons; those inside of `${…}` do not count.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    let mut before = ' ';
    for letter in text.chars() {
        match letter {
            '{' if before == '$' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if letter == ':' && depth == 0 {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(letter);
        }
        before = letter;
    }
    parts
}

/// Reads the configs or secrets of a service.
pub(super) fn mounts(service: &str, node: &Node, what: &str, importer: &mut Importer) -> Vec<Mount> {
    let mut read = Vec::new();
    for item in importer.reading.items(node, &format!("`{what}s`")).to_vec() {
        let (source, target, mode) = match &item.content {
            Content::Map { .. } => {
                let source = item.get("source").and_then(|it| importer.reading.text(it, "`source`")).map(str::to_owned);
                let Some(source) = source else {
                    importer.wrong(item.span, format!("a {what} of a service needs a `source`"));
                    continue;
                };
                if item.get("uid").is_some() || item.get("gid").is_some() {
                    let says = format!("the owner of {what} `{}` is omitted", source.escape_debug());
                    importer.remark(item.span, Some(service), says);
                }
                let mode = item.get("mode").and_then(|it| mode(it, service, importer));
                (source, item.get("target").map(|it| plain(it).to_owned()), mode)
            }
            _ => match importer.reading.text(&item, &format!("a {what}")) {
                Some(text) => (text.to_owned(), None, None),
                None => continue,
            },
        };
        let usual = if what == "secret" { format!("/run/secrets/{source}") } else { format!("/{source}") };
        let target = match target {
            Some(target) if what == "secret" && !target.starts_with('/') => format!("/run/secrets/{target}"),
            Some(target) if !target.is_empty() => target,
            _ => usual,
        };
        read.push(Mount { source, target, mode, span: item.span });
    }
    read
}

/// A mode in octal digits, such as 0440 or 0o440.
fn mode(node: &Node, service: &str, importer: &mut Importer) -> Option<String> {
    let text = plain(node);
    let digits = text.trim_start_matches("0o").trim_start_matches('0');
    if digits.is_empty() || digits.len() > 3 || digits.chars().any(|it| !('0'..='7').contains(&it)) {
        let says = format!("the mode `{}` is omitted: write a mode like 0440", text.escape_debug());
        importer.remark(node.span, Some(service), says);
        return None;
    }
    Some(format!("{digits:0>4}"))
}
