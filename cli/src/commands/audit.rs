//! `holdfast audit`: checks the explorer's properties on the journals of a real run.

use crate::{
    Ending,
    failure::Failure,
    rendering::screen::{self, ChartOptions, Drawing, counted},
};
use clap::Args;
use cloud_manager::past::{self, Stage};
use model_check::{
    audit::{self, Audit, Past},
    property::{
        Asked, Mode,
        mode::{self, NOT_CHECKED},
    },
};
use protocol::ChangeId;
use serde_json::{Value, json};
use std::{fmt::Write as _, path::PathBuf, time::Duration};

/// Check the properties of a real run from its journals
///
/// Replays every machine from its journal, in an order in which nothing is received before it was sent, and checks every
/// property after every step. Changes nothing; the programs may be running.
#[derive(Args)]
#[command(after_help = "\
Exit code 0: everything held; 1: something did not, or a journal cannot be read.

Example: holdfast audit /var/lib/holdfast/manager /var/lib/holdfast/agent")]
pub(crate) struct Arguments {
    /// Data directories of the manager and of agents; a manager's includes those of its VMs on this machine
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Draw the run: text, mermaid or svg
    #[arg(long, value_name = "HOW", hide_possible_values = true)]
    chart: Option<Drawing>,
    /// Draw, or list in JSON, only the time from the acceptance of this change to its end
    #[arg(long, value_name = "NUMBER")]
    change: Option<u64>,
    #[command(flatten)]
    drawn: ChartOptions,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let directories = past::directories(&arguments.directories);
    let pasts: Vec<Past> = directories.iter().map(|directory| past::read(directory)).collect::<Result<_, _>>()?;
    let audit = audit::audit(&pasts);
    if let Some(drawing) = arguments.chart {
        draw(&audit, drawing, arguments.drawn, arguments.change.map(ChangeId))?;
    }
    if arguments.json {
        let breach = audit.breach.as_ref().map(
            |(after, breach)| json!({ "property": breach.property, "detail": breach.detail, "after_steps": after }),
        );
        let change = arguments.change.map(|change| Stage::of(&audit, Some(ChangeId(change)))).transpose()?;
        let properties: Vec<Value> = mode::all()
            .map(|name| {
                let (sign, reason) = mark(&audit, name);
                let word = match sign {
                    '✓' if reason.is_some() => "holds in part",
                    '✓' => "holds",
                    '✗' => "broken",
                    '?' => "holds up to the breach",
                    _ => NOT_CHECKED,
                };
                json!({ "property": name, "mark": word, "reason": reason })
            })
            .collect();
        screen::print_json(&json!({
            "good": breach.is_none(),
            "machines": pasts.len(),
            "steps": audit.events.len(),
            "beyond": audit.beyond,
            "missing": audit.missing.iter().map(|vm| vm.0).collect::<Vec<_>>(),
            "at_rest": audit.busy.is_none(),
            "under_way": audit.busy,
            "properties": properties,
            "breach": breach,
            "messages": change.map(|stage| stage.messages()),
        }))?;
    } else {
        screen::print_beside(arguments.chart.unwrap_or(Drawing::Text), &screen::coloured(&verdict(&pasts, &audit)))?;
    }
    Ok(if audit.breach.is_none() { Ending::Done } else { Ending::Refuted })
}

/// One change from the journals, and the audit of all of them.
pub(crate) struct Told {
    /// What held, and what did not.
    pub(crate) verdict: String,
    /// What happened.
    pub(crate) stage: Stage,
}

fn verdict(pasts: &[Past], audit: &Audit) -> String {
    let (steps, machines) = (counted(audit.events.len()), counted(pasts.len()));
    let mut text = match &audit.breach {
        None => format!("✓ everything that was checked held in {steps} steps of {machines} machines\n"),
        Some((after, breach)) => format!("✗ after {} of {steps} steps: {breach}\n", counted(*after)),
    };
    for name in mode::all() {
        // docs/PROPERTIES.md lists what an audit cannot evaluate.
        if let Asked::No(_) = mode::asked(name, Mode::Audit) {
            continue;
        }
        let (sign, reason) = mark(audit, name);
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        writeln!(text, "  {sign} {name}{reason}").expect("writing to a string does not fail");
    }
    let mut note = |note: String| writeln!(text, "  {note}").expect("writing to a string does not fail");
    if !audit.missing.is_empty() {
        let missing: Vec<String> = audit.missing.iter().map(ToString::to_string).collect();
        note(format!("? no journal was given for {}", missing.join(", ")));
    }
    if audit.beyond > 0 {
        note(format!("? {} steps at the end were not checked: another journal ends earlier", counted(audit.beyond)));
    }
    text
}

/// The sign of a property, and which part of it was not checked.
fn mark(audit: &Audit, name: &str) -> (char, Option<String>) {
    let broken = audit.breach.as_ref().is_some_and(|(_, breach)| breach.property == name);
    match audit.asked(name) {
        _ if broken => ('✗', None),
        Asked::No(reason) => ('–', Some(format!("{NOT_CHECKED}: {reason}"))),
        // After the first violation nothing more is checked.
        _ if audit.breach.is_some() => ('?', Some("held up to the breach".into())),
        Asked::Partly(reason) => ('✓', Some(reason)),
        Asked::Yes(_) => ('✓', None),
    }
}

/// Draws one change from the journals in these directories.
pub(crate) fn draw_change(
    given: &[PathBuf],
    drawing: Drawing,
    drawn: ChartOptions,
    change: ChangeId,
) -> Result<Ending, Failure> {
    let directories = past::directories(given);
    if directories.is_empty() {
        return Err(Failure::Usage(
            "a chart is drawn from journals, and the manager is elsewhere (name them with --journals DIR)".into(),
        ));
    }
    let pasts: Vec<Past> = directories.iter().map(|directory| past::read(directory)).collect::<Result<_, _>>()?;
    let audit = audit::audit(&pasts);
    draw(&audit, drawing, drawn, Some(change))?;
    if drawing == Drawing::Text {
        screen::print(&format!("\n{}", timeline(&Stage::of(&audit, Some(change))?)))?;
    }
    Ok(Ending::Done)
}

/// What the journals in these directories tell of one change, and whether everything held; nothing if there are none.
pub(crate) fn told(given: &[PathBuf], change: ChangeId) -> Option<Told> {
    let pasts: Vec<Past> = past::directories(given).iter().filter_map(|directory| past::read(directory).ok()).collect();
    let audit = audit::audit(&pasts);
    let stage = Stage::of(&audit, Some(change)).ok()?;
    Some(Told { verdict: verdict(&pasts, &audit), stage })
}

/// The timeline of one change from the journals in these directories; `None` without journals, or if it is not in them.
pub(crate) fn timeline_of(given: &[PathBuf], change: ChangeId) -> Option<String> {
    let pasts: Vec<Past> = past::directories(given).iter().filter_map(|directory| past::read(directory).ok()).collect();
    let stage = Stage::of(&audit::audit(&pasts), Some(change)).ok()?;
    Some(timeline(&stage)).filter(|text| !text.is_empty())
}

/// One bar for each operation. Clocks of several machines may differ, so time never goes back.
fn timeline(stage: &Stage) -> String {
    let mut latest = Duration::ZERO;
    let moments = stage.moments.iter().map(|moment| {
        latest = latest.max(*moment);
        latest
    });
    screen::draw_operations(&stage.events, &moments.collect::<Vec<_>>())
}

/// Draws the run, or one change of it.
fn draw(audit: &Audit, drawing: Drawing, drawn: ChartOptions, change: Option<ChangeId>) -> Result<(), Failure> {
    let Stage { world, events, .. } = Stage::of(audit, change)?;
    screen::print(&screen::draw(drawing, drawn, &world, &events))
}
