//! How a component is asked whether it is ready, and at which ports it listens, as far as a file says.

use crate::{
    application::ComponentGroup,
    component_type::ComponentType,
    node::{Content, Node},
    operations::{Builder, CHECK_FIELDS, Stage},
    reading::Fields,
};
use protocol::{Export, Name};
use recipe::{Check, Listener, Probe, Recipe, value_type::ValueType};
use std::collections::{BTreeMap, BTreeSet};

/// What stands for the VM's own address where it is not known.
const OWN: &str = "own.address";

impl Builder<'_> {
    pub(crate) fn check(&mut self, node: &Node) -> Option<Check> {
        let fields = self.reading.fields(node, "`check`", CHECK_FIELDS);
        let probe = self.probe(&fields);
        let usual = Check::of(probe.clone().unwrap_or(Probe::Http { url: String::new() }));
        if let (Some(_), Some((key, _))) = (fields.get("every"), fields.entry("liveness")) {
            self.reading.wrong(key.span, "`liveness` is the older name of `every`, which is there too (remove one)");
        }
        let (every, name) = match (fields.get("every"), fields.get("liveness")) {
            (None, Some(node)) => (Some(node), "liveness"),
            (every, _) => (every, "every"),
        };
        let liveness_ms = match every {
            Some(node) if matches!(&node.content, Content::Scalar { text, .. } if text == "never") => Some(None),
            Some(node) => self.reading.duration_ms(node, &format!("`{name}` (or `never`)")).map(Some),
            None => Some(usual.liveness_ms),
        };
        let failures = fields.get("failures");
        let failures_max = failures.map_or(Some(usual.failures_max), |node| self.reading.count(node, "`failures`"));
        if failures_max == Some(0) || liveness_ms == Some(Some(0)) {
            self.reading.wrong(node.span, format!("`failures` and `{name}` must be at least 1"));
        }
        let whose = [("own", Listener::Own), ("any", Listener::Any)];
        let listener = fields
            .get("listener")
            .map_or(Some(Listener::Own), |node| self.reading.one_of(node, "the listener that may answer", &whose));
        let [interval, ready_within, attempt] =
            [("interval", usual.interval_ms), ("ready-within", usual.ready_within_ms), ("attempt", usual.attempt_ms)]
                .map(|(name, usual)| self.time(&fields, name, usual));
        Some(Check {
            probe: probe?,
            interval_ms: interval?,
            ready_within_ms: ready_within?,
            attempt_ms: attempt?,
            liveness_ms: liveness_ms?,
            failures_max: failures_max?,
            listener: listener?,
        })
    }

    fn probe(&mut self, fields: &Fields<'_>) -> Option<Probe> {
        let ways = ["tcp", "http", "command"];
        if let (None, Some((key, _))) = (fields.get("tcp"), fields.entry("host")) {
            self.reading.wrong(key.span, "`host` belongs to `tcp`, which is missing");
        }
        match ways.map(|name| fields.get(name)) {
            [Some(node), None, None] => {
                let host = fields.get("host").map(|node| self.naming(node, "`host`", Stage::Run));
                let port = self.template(node, "`tcp`", Stage::Run)?;
                if !port.contains("{{") && !port.contains("{%") && ValueType::Port.read(port.trim()).is_none() {
                    let right = if port.contains(':') { " (the address goes into `host`)" } else { "" };
                    let says = format!("`tcp` must be {}, not {}{right}", ValueType::Port.wanted(), node.in_words());
                    self.reading.wrong(node.span, says);
                }
                Some(Probe::Tcp { port, host: host.flatten() })
            }
            [None, Some(node), None] => {
                let url = self.template(node, "`http`", Stage::Run)?;
                if let Some(why) = not_http(&url) {
                    self.reading
                        .wrong(node.span, format!("`http` must be an address such as http://host:port/path, {why}"));
                }
                Some(Probe::Http { url })
            }
            [None, None, Some(command)] => Some(Probe::Command { run: self.line(command, Stage::Run)? }),
            _ => {
                let says = "`check` needs exactly one of `tcp`, `http` and `command`";
                self.reading.not_one_of(fields, &ways, says);
                None
            }
        }
    }
}

/// Why an address is none that can be asked, as far as it is known before its templates are rendered.
fn not_http(url: &str) -> Option<String> {
    let shown = crate::node::in_words(url);
    if url.trim().starts_with('{') {
        return None;
    }
    let Some(rest) = url.trim().strip_prefix("http://") else {
        let is_encrypted = url.trim().starts_with("https://");
        let right = if is_encrypted { " (TLS is not supported here; use a `command`)" } else { "" };
        return Some(format!("not {shown}{right}"));
    };
    let Some((_, port)) = authority(rest).filter(|(address, _)| !address.is_empty()) else {
        return Some(format!("not {shown}"));
    };
    let is_port = port.is_empty() || port.contains('{') || ValueType::Port.read(port).is_some();
    (!is_port).then(|| format!("and {} is not a port", crate::node::in_words(port)))
}

/// The address and the port of what follows `http://`; nothing if there is no address.
fn authority(rest: &str) -> Option<(&str, &str)> {
    let authority = rest.split('/').next().filter(|it| !it.is_empty())?;
    Some(authority.rsplit_once(':').filter(|(_, port)| !port.contains(']')).unwrap_or((authority, "")))
}

/// The ports that the components of a group listen at, where they are known: those of the check, and those that it hands
/// out together with its own address.
pub(crate) fn ports(component_type: &ComponentType, group: &ComponentGroup) -> BTreeSet<u64> {
    let recipe = Recipe { parameters: group.parameters.clone(), ..component_type.recipe.clone() };
    ports_of(&recipe, &component_type.exports, |value| is_port_parameter(value, component_type))
}

/// The same of a recipe. `is_port` says of a value that does not declare it whether it is a port.
pub(crate) fn ports_of(
    recipe: &Recipe,
    exports: &BTreeMap<Name, Export>,
    is_port: impl Fn(&Name) -> bool,
) -> BTreeSet<u64> {
    let known = |template: &str| recipe.known_at(template, OWN);
    let is_own = |host: &str| [OWN, "localhost", "127.0.0.1", "0.0.0.0", "[::1]", "::1"].contains(&host.trim());
    let mut texts: Vec<Option<String>> = Vec::new();
    match recipe.operations.check.as_ref().map(|it| &it.probe) {
        Some(Probe::Tcp { port, host }) => {
            let here = host.as_ref().is_none_or(|host| known(host).is_some_and(|host| is_own(&host)));
            texts.extend(here.then(|| known(port)));
        }
        Some(Probe::Http { url }) => {
            let url = known(url).unwrap_or_default();
            if let Some((host, port)) = url.trim().strip_prefix("http://").and_then(authority)
                && is_own(host)
            {
                texts.push(Some(if port.is_empty() { "80".into() } else { port.into() }));
            }
        }
        Some(Probe::Command { .. }) | None => {}
    }
    for export in exports.values() {
        // With another address, it is the port of another machine.
        let host = export.values.iter().find(|it| it.as_str() == "host").and_then(|it| recipe.values.get(it));
        if host.is_none_or(|host| known(&host.template).is_some_and(|host| is_own(&host))) {
            let is_port = |it: &&Name| recipe.types.values.of(it) == ValueType::Port || is_port(it);
            let values = export.values.iter().filter(is_port);
            texts.extend(values.filter_map(|it| recipe.values.get(it)).map(|it| known(&it.template)));
        }
    }
    let ports = texts.into_iter().flatten();
    ports.filter_map(|text| ValueType::Port.read(text.trim()).and_then(|it| it.as_u64())).collect()
}

/// Whether a value is a parameter that is a port.
fn is_port_parameter(value: &Name, component_type: &ComponentType) -> bool {
    let template = component_type.recipe.values.get(value).map(|it| it.template.trim());
    let inside = template.and_then(|it| it.strip_prefix("{{")?.strip_suffix("}}"));
    let parameter = inside.and_then(|it| it.trim().strip_prefix("parameters."));
    parameter.and_then(|it| component_type.parameters.get(it)).is_some_and(|it| it.value_type == ValueType::Port)
}
