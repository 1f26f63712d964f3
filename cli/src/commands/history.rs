//! `holdfast history` and `holdfast show`: past changes and their outcome.

use crate::{
    Ending,
    commands::audit,
    commands::rollout,
    failure::Failure,
    input::files,
    operator::{Operator, OperatorOptions},
    rendering::change_progress::{self, Output, line},
    rendering::moment,
    rendering::report,
    rendering::screen::{self, Drawing},
    rendering::table::table,
    rendering::tiers::Tiers,
};
use clap::Args;
use cloud_manager::{
    client::segment,
    document::{Accepted, ApplicationDocument, ChangeRecord, EventDocument, VersionDocument},
};
use protocol::ChangeId;
use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    time::Duration,
};

/// List past changes, or the versions of an application, newest first
#[derive(Args)]
#[command(after_help = "\
Example: holdfast history --limit 10
         holdfast history --application shop")]
pub(crate) struct HistoryArguments {
    /// List the versions of this application
    #[arg(long, value_name = "NAME")]
    application: Option<String>,
    /// Maximum number
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    operator: OperatorOptions,
}

/// Show one change: its phases, and what happened while it ran
#[derive(Args)]
#[command(after_help = "\
Example: holdfast show 1 --chart text
         holdfast show 1 --html change-1.html")]
pub(crate) struct ShowArguments {
    /// The number of the change
    change: u64,
    /// Wait until it is done, and show its progress; the default on a terminal
    #[arg(long, conflicts_with = "json")]
    follow: bool,
    /// Show every event, not only those that matter
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    /// Draw the messages, from the journals: text, mermaid or svg
    #[arg(long, value_name = "HOW", hide_possible_values = true, conflicts_with = "json")]
    chart: Option<Drawing>,
    #[command(flatten)]
    drawn: screen::ChartOptions,
    /// Write a report to this file: summary, timeline, messages and audit on one page that needs nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "chart", "follow"])]
    html: Option<PathBuf>,
    /// Data directories whose journals to draw from [default: the manager's and those of its VMs on this machine]
    #[arg(long, value_name = "DIR")]
    journals: Vec<PathBuf>,
    #[command(flatten)]
    operator: OperatorOptions,
}

pub(crate) fn run(arguments: &HistoryArguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.operator)?;
    if let Some(name) = &arguments.application {
        return versions(&operator, name, arguments);
    }
    let records: Vec<ChangeRecord> = operator.get(&format!("/v1/history?limit={}", arguments.limit))?;
    if arguments.operator.json {
        screen::print_document(&records)?;
    } else {
        let row = |record: &ChangeRecord| {
            let accepted = record.accepted_at_ms.map(moment::date_and_time).unwrap_or_default();
            let (by, asked) = (record.by.clone().unwrap_or_default(), record.asked.clone().unwrap_or_default());
            [record.change.to_string(), accepted, took(record), outcome(record), by, asked]
        };
        let rows: Vec<_> = records.iter().map(row).collect();
        screen::print(&table(["CHANGE", "ACCEPTED (UTC)", "TOOK", "OUTCOME", "BY", "ASKED"], &rows))?;
    }
    Ok(Ending::Done)
}

/// The versions of an application.
fn versions(operator: &Operator, name: &str, arguments: &HistoryArguments) -> Result<Ending, Failure> {
    let application: ApplicationDocument = operator.get(&format!("/v1/applications/{}", segment(name)))?;
    let versions: Vec<&VersionDocument> = application.versions.iter().rev().take(arguments.limit).collect();
    let row = |it: &&VersionDocument| {
        let back = it.rolls_back_to.map(|it| it.to_string()).unwrap_or_default();
        [it.version.to_string(), moment::date_and_time(it.at_ms), it.intent.to_string(), it.by.clone(), back]
    };
    screen::show(arguments.operator.json, &versions, || {
        table(
            ["VERSION", "APPLIED (UTC)", "BY", "TOKEN", "ROLLS BACK TO"],
            &versions.iter().map(row).collect::<Vec<_>>(),
        )
    })?;
    Ok(Ending::Done)
}

pub(crate) fn show(arguments: &ShowArguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.operator)?;
    let here = operator.data.iter().filter(|_| arguments.journals.is_empty());
    let given: Vec<PathBuf> = arguments.journals.iter().chain(here).cloned().collect();
    if let Some(drawing) = arguments.chart {
        return audit::draw_change(&given, drawing, arguments.drawn, ChangeId(arguments.change));
    }
    let record: ChangeRecord = operator.get(&format!("/v1/changes/{}", arguments.change))?;
    if arguments.operator.json {
        screen::print_document(&record)?;
        return Ok(Ending::Done);
    }
    if let Some(path) = &arguments.html {
        files::write(path, &report::page(&record, audit::told(&given, ChangeId(arguments.change)).as_ref()))?;
        screen::print(&format!("{} is written\n", path.display()))?;
        return Ok(Ending::Done);
    }
    let asked = record.asked.as_deref().map(|asked| format!(": {asked}")).unwrap_or_default();
    let mut text = screen::bold(&format!("change {}{asked}\n", record.change));
    let accepted = record.accepted_at_ms.map_or("no longer stored".into(), moment::date_and_time);
    let by = record.by.as_deref().map(|it| format!(" from {it}")).unwrap_or_default();
    text += &format!("accepted {accepted} UTC{by}, took {}, {}\n\n", took(&record), outcome(&record));
    let output = Output { json: false, verbose: arguments.verbose };
    let mut feed = output.feed(&operator)?;
    let mut shown: Vec<EventDocument> = record.events.iter().flat_map(|event| feed.take(event.clone())).collect();
    shown.extend(feed.release());
    shown.iter().for_each(|event| text += &line(event));
    // The journals may be on another machine; then there is no timeline.
    if let Some(timeline) = audit::timeline_of(&given, ChangeId(arguments.change)) {
        text += &format!("\n{timeline}");
    }
    screen::print(&text)?;
    if !arguments.follow && !io::stdout().is_terminal() {
        return Ok(Ending::Done);
    }
    let events_after = record.events.last().map_or(0, |event| event.number);
    // The rollout continues after this change.
    if let Some((name, rollout)) = rollout::of_change(&operator, record.change)? {
        let present = rollout.changes.last().copied().unwrap_or(rollout.change);
        let accepted = Accepted { change: present, events_after };
        return rollout::follow(&operator, &name, &accepted, output, &|_| Tiers::default());
    }
    if record.done_at_ms.is_some() {
        return Ok(Ending::Done);
    }
    let mut accepted = Accepted { change: record.change, events_after };
    change_progress::follow(&operator, &mut accepted, output, Tiers::default())
}

fn took(record: &ChangeRecord) -> String {
    match (record.accepted_at_ms, record.done_at_ms) {
        (Some(accepted), Some(done)) => screen::lasting(Duration::from_millis(done.saturating_sub(accepted))),
        _ => "-".into(),
    }
}

fn outcome(record: &ChangeRecord) -> String {
    match record.rolled_back_by {
        Some(change) => format!("{} by {change}", record.outcome),
        None => record.outcome.to_string(),
    }
}
