//! A change as one page that needs nothing else: summary, timeline, messages, events, audit; to send to a colleague.

use super::moment;
use crate::commands::audit::Told;
use cloud_manager::document::{ChangeRecord, lasting};
use model_check::chart::{Chart, operations};
use std::{fmt::Write as _, time::Duration};

/// The width of the timeline, and where its bars begin.
const WIDTH: f64 = 1_000.0;
const LEFT: f64 = 190.0;
const ROW: usize = 26;

/// What a page says without journals.
const ELSEWHERE: &str =
    "<p class=\"quiet\">The journals are on another machine, so there is no timeline, no chart and no audit.</p>\n";

/// The page.
pub(crate) fn page(record: &ChangeRecord, told: Option<&Told>) -> String {
    let title = format!("Change {}", record.change);
    let asked = record.asked.as_deref().unwrap_or_default();
    let accepted = record.accepted_at_ms.map_or_else(|| "too long ago".into(), |at| moment::date_and_time(at) + " UTC");
    let (state, class) = match (record.done_at_ms, record.cancelled) {
        (Some(_), true) => ("cancelled", "stopped"),
        (Some(_), false) => ("done", "started"),
        (None, _) => ("not done", "starting"),
    };
    let took = record.accepted_at_ms.zip(record.done_at_ms);
    let took = took.map(|(from, to)| lasting(Duration::from_millis(to.saturating_sub(from)))).unwrap_or_default();
    let mut body = format!(
        "<h1>{title} <span class=\"pill {class}\">{state}</span></h1>\n<p class=\"quiet\">{}</p>\n\
         <dl><dt>accepted</dt><dd>{accepted}</dd><dt>took</dt><dd>{took}</dd></dl>\n",
        escaped(asked)
    );
    body += &told.map_or_else(|| ELSEWHERE.to_owned(), journals);
    body += "<h2>Events</h2>\n<ol>\n";
    for event in &record.events {
        let detail = event.detail.as_deref().filter(|_| event.operation.is_some());
        let detail = detail.map(|it| format!("<pre>{}</pre>", escaped(it))).unwrap_or_default();
        let _ = writeln!(
            body,
            "<li><time>{}</time> {}{detail}</li>",
            moment::date_and_time(event.at_ms),
            escaped(&event.text)
        );
    }
    body += "</ol>\n";
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <title>{title} · Holdfast</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

/// What only journals know.
fn journals(told: &Told) -> String {
    let stage = &told.stage;
    let chart = Chart::new(&stage.world, &stage.events).without_acknowledgements();
    let picture: String = chart.to_svg().bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!(
        "<h2>Timeline</h2>\n{}<h2>Messages</h2>\n<div class=\"scroll\"><img alt=\"Sequence chart of {} messages\" \
         src=\"data:image/svg+xml,{picture}\"></div>\n<h2>Audit</h2>\n<pre>{}</pre>\n",
        timeline(told),
        chart.arrows.len(),
        escaped(&told.verdict)
    )
}

/// One bar for each operation.
fn timeline(told: &Told) -> String {
    let stage = &told.stage;
    let begin = stage.moments.first().copied().unwrap_or_default();
    let mut latest = Duration::ZERO;
    let moments: Vec<Duration> = stage
        .moments
        .iter()
        .map(|it| {
            latest = latest.max(it.saturating_sub(begin));
            latest
        })
        .collect();
    let whole = latest.as_secs_f64().max(0.001);
    let bars = operations::operations(&stage.events);
    let x = |event: usize| {
        let at = moments.get(event).copied().unwrap_or(latest).as_secs_f64();
        LEFT + (WIDTH - LEFT - 10.0) * at / whole
    };
    let height = bars.len() * ROW + 30;
    let mut text =
        format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{} operations\">\n", bars.len());
    for tenth in [0, 5, 10] {
        let at = LEFT + (WIDTH - LEFT - 10.0) * f64::from(tenth) / 10.0;
        let words = lasting(latest * tenth / 10);
        let _ = writeln!(
            text,
            "<path class=\"tick\" d=\"M{at} 20V{height}\"/><text class=\"tick-word at-{tenth}\" x=\"{at}\" y=\"13\">{words}</text>"
        );
    }
    for (place, bar) in bars.iter().enumerate() {
        let y = 26 + place * ROW;
        let (from, to) = (x(bar.from), bar.to.map_or(WIDTH - 10.0, x));
        let took = bar.to.map(|to| moments[to].saturating_sub(moments[bar.from])).unwrap_or_default();
        let class = if bar.failed {
            "failed"
        } else if bar.critical {
            "critical"
        } else {
            "other"
        };
        let words = format!("{} {}: {}", bar.operation, bar.name, lasting(took));
        let _ = writeln!(
            text,
            "<text class=\"row\" x=\"{}\" y=\"{}\">{} {}</text><rect class=\"bar {class}\" x=\"{from:.1}\" y=\"{y}\" \
             width=\"{:.1}\" height=\"18\" rx=\"4\"><title>{}</title></rect>",
            LEFT - 10.0,
            y + 13,
            bar.operation,
            escaped(bar.name.as_str()),
            (to - from).max(3.0),
            escaped(&words)
        );
    }
    text + "</svg>\n<p class=\"quiet\">Full bars are on the critical path: the end of the change waited for them.</p>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The colours of the pictures that `plan` and `show` draw.
const STYLE: &str = "
:root { color-scheme: light dark; --page: #ffffff; --ink: #1f2933; --quiet: #5b6773; --line: #dbe2e9; --soft: #eef2f5; }
@media (prefers-color-scheme: dark) { :root { --page: #14191f; --ink: #dde4ec; --quiet: #93a0ad; --line: #2a333d; --soft: #1b222b; } }
body { font: 15px/1.5 system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; background: var(--page); color: var(--ink); max-width: 1060px; margin: 32px auto; padding: 0 20px; }
h1 { font-size: 26px; letter-spacing: -0.02em; margin: 0 0 4px; } h2 { font-size: 16px; margin: 32px 0 10px; }
.quiet, dt, time { color: var(--quiet); } dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; } dd { margin: 0; }
.pill { font-size: 13px; font-weight: 400; letter-spacing: 0; padding: 2px 10px; border-radius: 20px; vertical-align: 5px; color: #1f2933; background: #e3e8ed; }
.pill.started { background: #c8ecd6; } .pill.starting { background: #fae7ad; }
pre { background: var(--soft); border-radius: 8px; padding: 12px 14px; overflow: auto; white-space: pre-wrap; font-size: 13px; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 10px; } .scroll img { display: block; max-width: none; }
svg { width: 100%; height: auto; } svg text { font-size: 13px; fill: var(--ink); } .row { text-anchor: end; }
.tick { stroke: var(--line); } svg .tick-word { fill: var(--quiet); text-anchor: middle; font-size: 12px; } svg .at-10 { text-anchor: end; }
.bar { stroke: #2f9e5b; fill: #2f9e5b33; } .bar.critical { fill: #2f9e5b; } .bar.failed { fill: #d64545; stroke: #d64545; }
ol { list-style: none; padding: 0; font-size: 14px; } li { padding: 2px 0; } time { font-variant-numeric: tabular-nums; margin-right: 12px; }
";

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_manager::document::EventDocument;

    #[test]
    fn what_operations_wrote_cannot_become_markup() {
        let event = EventDocument {
            text: "<b>a</b> failed".into(),
            operation: Some("start".into()),
            detail: Some("<script>alert(1)</script>".into()),
            ..EventDocument::default()
        };
        let record = ChangeRecord {
            change: 7,
            asked: Some("add \"<i>\"".into()),
            events: vec![event],
            ..ChangeRecord::default()
        };
        let page = page(&record, None);
        assert!(page.contains("&lt;b&gt;a&lt;/b&gt; failed") && page.contains("&lt;script&gt;"), "{page}");
        assert!(!page.contains("<script") && !page.contains("<i>"), "{page}");
    }
}
