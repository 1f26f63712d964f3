//! Reads `autoscale:`.

use super::{Autoscale, Source};
use crate::{
    application::ComponentGroup, component_type::entries, nearest::hint, node::Node, reading::Reading, source::Span,
};
use protocol::Name;
use std::collections::BTreeMap;

pub(crate) const AUTOSCALE_FIELDS: &[&str] =
    &["source", "sources", "least", "most", "every", "cool-down", "saves", "dry-run"];
pub(crate) const SOURCE_FIELDS: &[&str] = &["prometheus", "query", "http", "field", "command", "component", "value"];

/// Pause between two measurements, unless the file says otherwise.
const EVERY_MS: u64 = 30_000;
/// Time without changes before numbers are lowered, unless the file says otherwise.
const COOL_DOWN_MS: u64 = 300_000;
/// More often than this, a load is not measured.
const EVERY_MS_MIN: u64 = 100;

type Groups = BTreeMap<Name, ComponentGroup>;

/// How an application follows its load; nothing if it cannot be read.
pub(crate) fn read(node: &Node, groups: &Groups, reading: &mut Reading) -> Option<Autoscale> {
    let before = reading.findings.count();
    let fields = reading.fields(node, "`autoscale`", AUTOSCALE_FIELDS);
    let source = fields.get("source").and_then(|node| read_source(node, groups, reading));
    let mut sources = BTreeMap::new();
    for (key, node) in entries(reading, fields.get("sources"), "`sources`") {
        expect_load(&key.text, key.span, groups, reading);
        sources.extend(read_source(node, groups, reading).map(|source| (key.text.clone(), source)));
    }
    let mut limits = [BTreeMap::new(), BTreeMap::new()];
    for (field, limits) in ["least", "most"].into_iter().zip(&mut limits) {
        for (key, node) in entries(reading, fields.get(field), &format!("`{field}`")) {
            expect_load(&key.text, key.span, groups, reading);
            limits.extend(reading.count(node, "a number of components").map(|count| (key.text.clone(), count)));
        }
    }
    let [least, most] = limits;
    if let Some((name, least)) = least.iter().find(|(name, least)| most.get(*name).is_some_and(|most| most < least)) {
        reading.wrong(node.span, format!("`{name}`: at least {least} and at most {} cannot both hold", most[name]));
    }
    let mut duration = |field: &str, usual: u64| match fields.get(field) {
        Some(node) => reading.duration_ms(node, &format!("`{field}`")).unwrap_or(usual),
        None => usual,
    };
    let every_ms = duration("every", EVERY_MS);
    let cool_down_ms = duration("cool-down", COOL_DOWN_MS);
    if every_ms < EVERY_MS_MIN {
        let span = fields.get("every").map_or(node.span, |it| it.span);
        reading.wrong(span, format!("`every` must be at least {EVERY_MS_MIN}ms"));
    }
    let saves = fields.get("saves");
    let saves_percent = saves.and_then(|node| reading.number(node, "`saves` (percent of the cost)")).unwrap_or(0);
    if saves_percent > 100 {
        reading.wrong(saves.map_or(node.span, |it| it.span), "`saves` is a percentage, so it is at most 100");
    }
    let words = [("true", true), ("false", false)];
    let dry_run = fields.get("dry-run").and_then(|node| reading.one_of(node, "`dry-run`", &words)).unwrap_or(false);
    if fields.get("source").is_none() && fields.get("sources").is_none() {
        let says = "`autoscale` needs a `source` of load (`source: { http: \"http://…\" }`), or `sources`";
        reading.missing(&fields, &["source", "sources"], node.span, says);
    } else if fields.get("source").is_some() && groups.values().all(|group| group.load.is_none()) {
        let says = "no component declares the load it can take (`load: 40000` under the component)";
        reading.absent(node.span, says);
    }
    let read = Autoscale { source, sources, least, most, every_ms, cool_down_ms, saves_percent, dry_run };
    (reading.findings.count() == before).then_some(read)
}

/// Reports a name that is not a group with a load.
fn expect_load(name: &str, span: Span, groups: &Groups, reading: &mut Reading) {
    let known = groups.iter().filter(|(_, group)| group.load.is_some()).map(|(name, _)| name.as_str());
    if !known.clone().any(|it| it == name) {
        let right = hint(name, known);
        reading.absent(span, format!("there is no component `{}` with a `load`{right}", name.escape_debug()));
    }
}

fn read_source(node: &Node, groups: &Groups, reading: &mut Reading) -> Option<Source> {
    let fields = reading.fields(node, "a source of load", SOURCE_FIELDS);
    let kinds = ["prometheus", "http", "command", "component"];
    let [(key, node)] = fields.among(&kinds)[..] else {
        reading.not_one_of(
            &fields,
            &kinds,
            "a source of load needs one of `prometheus`, `http`, `command`, `component`",
        );
        return None;
    };
    let belongs = |field: &str| {
        matches!((field, key.text.as_str()), ("query", "prometheus") | ("field", "http") | ("value", "component"))
    };
    for (other, _) in fields.among(&["query", "field", "value"]) {
        if !belongs(&other.text) {
            reading.wrong(other.span, format!("`{}` does not belong to `{}`", other.text, key.text));
        }
    }
    let text = reading.text(node, &format!("`{}`", key.text))?.to_owned();
    let with = |field: &str, reading: &mut Reading| match fields.get(field) {
        Some(node) => reading.text(node, &format!("`{field}`")).map(str::to_owned),
        None => {
            reading.missing(&fields, &[field], key.span, format!("`{}` needs a `{field}`", key.text));
            None
        }
    };
    match key.text.as_str() {
        "prometheus" => {
            Some(Source::Prometheus { url: address(text, node.span, reading)?, query: with("query", reading)? })
        }
        "http" => {
            let field = fields.get("field").and_then(|node| reading.text(node, "`field`").map(str::to_owned));
            Some(Source::Http { url: address(text, node.span, reading)?, field })
        }
        "command" => Some(Source::Command(text)),
        _ => {
            if !groups.keys().any(|name| name.as_str() == text) {
                let right = hint(&text, groups.keys().map(Name::as_str));
                reading.absent(node.span, format!("unknown component `{}`{right}", text.escape_debug()));
            }
            Some(Source::Component { component: text, value: with("value", reading)? })
        }
    }
}

/// An address that the manager can ask: plain HTTP.
fn address(text: String, span: Span, reading: &mut Reading) -> Option<String> {
    if !text.starts_with("http://") || text.len() == "http://".len() {
        reading.wrong(span, format!("`{}` is not an address such as http://127.0.0.1:9090", text.escape_debug()));
        return None;
    }
    Some(text)
}
