//! The health check of a service, which becomes its readiness check.

use super::{Importer, Phrase, compose, words};
use crate::node::{Content, Node};

const FIELDS: &[&str] = &["test", "interval", "timeout", "retries", "start_period", "start_interval", "disable"];
/// What compose takes where nothing is said.
const USUAL_MS: u64 = 30_000;
const USUAL_RETRIES: u32 = 3;

/// The health check of a service.
#[derive(Debug)]
pub(super) struct HealthCheck {
    pub(super) test: Test,
    pub(super) interval_ms: u64,
    pub(super) timeout_ms: u64,
    pub(super) retries: u32,
    pub(super) start_period_ms: u64,
    pub(super) start_interval_ms: Option<u64>,
}

/// What is run.
#[derive(Debug)]
pub(super) enum Test {
    /// A text for the shell.
    Shell(Phrase),
    /// Words without a shell.
    Words(Vec<Phrase>),
}

/// Reads a health check; nothing if it is switched off.
pub(super) fn read(service: &str, node: &Node, importer: &mut Importer) -> Option<HealthCheck> {
    let shown = compose::known(node, "a health check", FIELDS, importer);
    let field = |name: &str| shown.iter().find(|(key, _)| key.text == name).map(|(_, node)| *node);
    let mut times = [None; 4];
    for (place, name) in ["interval", "timeout", "start_period", "start_interval"].into_iter().enumerate() {
        let Some(node) = field(name) else { continue };
        let what = format!("`{name}`");
        let text = importer.reading.text(node, &what).map(str::to_owned);
        let text = text.map(|it| importer.now(&it, node.span, Some(service)));
        times[place] = text.and_then(|it| time(&it, node, &what, importer));
    }
    let mut retries = USUAL_RETRIES;
    if let Some(node) = field("retries") {
        let text = importer.reading.text(node, "`retries`").map(str::to_owned);
        let text = text.map(|it| importer.now(&it, node.span, Some(service))).unwrap_or_default();
        match text.parse::<u32>() {
            Ok(number) if number <= 1_000_000 => retries = number.max(1),
            _ => importer.wrong(node.span, format!("`retries` must be a whole number, not `{}`", text.escape_debug())),
        }
    }
    if field("disable").is_some_and(|it| super::service::plain(it) == "true") {
        return None;
    }
    let Some(node) = field("test") else {
        let says =
            "the `healthcheck` is omitted: it changes the test of an image, which is unknown here; write the `test`";
        importer.remark(node.span, Some(service), says);
        return None;
    };
    let test = test(service, node, importer)?;
    let [interval, timeout, start_period, start_interval_ms] = times;
    Some(HealthCheck {
        test,
        interval_ms: interval.filter(|it| *it > 0).unwrap_or(USUAL_MS),
        timeout_ms: timeout.filter(|it| *it > 0).unwrap_or(USUAL_MS),
        retries,
        start_period_ms: start_period.unwrap_or(0),
        start_interval_ms,
    })
}

fn test(service: &str, node: &Node, importer: &mut Importer) -> Option<Test> {
    let Content::List { items, .. } = &node.content else {
        let text = importer.reading.text(node, "`test`")?.to_owned();
        if text.trim().is_empty() {
            importer.wrong(node.span, "the command of `test` is empty");
            return None;
        }
        return Some(Test::Shell(importer.phrase(&text, node.span, Some(service))));
    };
    let mut texts = Vec::new();
    for item in items {
        texts.push((importer.reading.text(item, "a word of `test`")?.to_owned(), item.span));
    }
    let mut phrase = |(text, span): &(String, _)| importer.phrase(text, *span, Some(service));
    match texts.split_first().map(|((first, _), rest)| (first.as_str(), rest)) {
        Some(("NONE", _)) => None,
        Some(("CMD", rest)) if !rest.is_empty() => Some(Test::Words(rest.iter().map(phrase).collect())),
        Some(("CMD-SHELL", [text, ..])) if !text.0.trim().is_empty() => Some(Test::Shell(phrase(text))),
        _ => {
            let says = "`test` must be a text for the shell, or a list that begins with CMD, CMD-SHELL or NONE";
            importer.wrong(node.span, says);
            None
        }
    }
}

/// A time as compose writes it.
pub(super) fn time(text: &str, node: &Node, what: &str, importer: &mut Importer) -> Option<u64> {
    let read = words::duration_ms(text);
    if read.is_none() {
        let says = format!("{what} must be a duration such as 10s, 1m30s or 200ms, not `{}`", text.escape_debug());
        importer.wrong(node.span, says);
    }
    read
}
