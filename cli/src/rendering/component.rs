//! One component for people, with everything around it.

use crate::rendering::{change_progress::failure_text, moment, screen};
use cloud_manager::document::{Binding, Component, ComponentDetail, ImportState};

/// Lines of output that are shown.
const LOG_LINES: usize = 10;

/// A component with its state, its bindings in both directions and the end of its output.
pub(crate) fn shown(detail: &ComponentDetail, log: &str, now_ms: u64) -> String {
    let ComponentDetail { component: it, imports, exports, borrows, lends } = detail;
    let since = it.since_ms.map(|at| format!(" since {} UTC", moment::short(at, now_ms))).unwrap_or_default();
    let leaving = if it.leaving { ", leaving" } else { "" };
    let mark = if it.failed_operation.is_some() { "✗ " } else { "" };
    let mut text = screen::bold(&format!("{mark}{} is {}{leaving}{since}\n", it.name, it.state));
    text += &line("vm", &it.vm);
    text += &times(it);
    if let Some(deaths) = &it.deaths {
        let last = moment::short(deaths.last_at_ms, now_ms);
        text += &line("died", &format!("{}, last at {last} UTC", screen::several(deaths.times as usize, "time")));
    }
    it.waits_for.iter().for_each(|wait| text += &line("waits for", wait));
    for import in imports {
        text += &line("needs", &needed(import));
        borrows.iter().filter(|it| it.import == import.name).for_each(|it| {
            text += &line("", &format!("  {}.{}, {}", it.provider, it.export, standing(it)));
        });
    }
    for export in exports {
        text += &line("offers", export);
        lends.iter().filter(|it| it.export == *export).for_each(|it| {
            text += &line("", &format!("  {}.{} ({}), {}", it.client, it.import, it.need, standing(it)));
        });
    }
    if it.failed_operation.is_some() {
        text += &format!("\n✗ {}", failure_text(it));
    }
    let lines: Vec<&str> = log.lines().collect();
    if !lines.is_empty() {
        text += "\nits output:\n";
        lines.iter().skip(lines.len().saturating_sub(LOG_LINES)).for_each(|it| text += &format!("  {it}\n"));
    }
    text
}

fn line(title: &str, content: &str) -> String {
    format!("  {title:9}  {content}\n")
}

/// How long its operations took last time.
fn times(component: &Component) -> String {
    let took = |what: &str, ms: Option<u64>| {
        ms.map(|ms| format!("{what} {}", screen::lasting(std::time::Duration::from_millis(ms))))
    };
    let times: Vec<String> = [
        took("prepared in", component.prepare_ms),
        took("started in", component.start_ms),
        took("stopped in", component.stop_ms),
    ]
    .into_iter()
    .flatten()
    .collect();
    if times.is_empty() { String::new() } else { line("took", &times.join(", ")) }
}

fn needed(import: &ImportState) -> String {
    format!("{} ({}): bound to {}, holds {}", import.name, import.need, import.bound, import.held)
}

fn standing(binding: &Binding) -> String {
    let held = if binding.held { "held" } else { "not held" };
    if binding.leaving { format!("{held}, leaving") } else { held.into() }
}
