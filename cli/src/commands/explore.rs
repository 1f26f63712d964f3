//! `holdfast explore`: every order of events of a scenario or an application.

use crate::{
    Ending,
    failure::Failure,
    input::faults::FaultOptions,
    input::files,
    input::story::StoryOptions,
    rendering::progress::ProgressLine,
    rendering::screen::{self, Drawing, bold, counted},
    rendering::verdict::Verdict,
};
use clap::Args;
use model_check::{
    Faults, Scenario,
    choices::Choices,
    environment::Line,
    explore::{self, Findings, Progress, Settings},
    trace::Trace,
};
use serde_json::json;
use std::{path::PathBuf, sync::Arc, time::Instant};

/// Check every order of events of a scenario, or of an application and its change
#[derive(Args)]
#[command(after_help = "\
Example: holdfast explore examples/make-before-break.txt --crashes 1
         holdfast explore examples/applications/three-tier.yaml")]
pub(crate) struct Arguments {
    #[command(flatten)]
    story: StoryOptions,
    /// Explore every single interleaving, without reductions
    #[arg(long)]
    full: bool,
    /// Stop after this many states
    #[arg(long, value_name = "N", default_value_t = Settings::default().states_max, hide_default_value = true)]
    states_max: usize,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// How to draw a counterexample: text, mermaid or svg
    #[arg(long, value_name = "HOW", default_value = "text", hide_possible_values = true)]
    chart: Drawing,
    #[command(flatten)]
    drawn: screen::ChartOptions,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a counterexample to this file
    #[arg(long, value_name = "TRACE")]
    save: Option<PathBuf>,
    #[command(flatten)]
    faults: FaultOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let (scenario, _) = arguments.story.read(arguments.faults)?;
    let usual = if arguments.full { Settings::full() } else { Settings::default() };
    let threads = arguments.threads.unwrap_or(usual.threads).max(1);
    let settings = Settings { threads, states_max: arguments.states_max, ..usual };
    let verdict = search(&scenario, settings);
    if let (Some(path), Some((_, way))) = (&arguments.save, &verdict.findings.breach) {
        files::write(path, &Trace::new(&scenario.lines, scenario.faults, way.clone()).write())?;
    }
    if arguments.json {
        let mut value = verdict.json();
        value["scenario"] = json!(scenario.name);
        value["replay"] = json!(replay_line(arguments, &scenario, &verdict));
        screen::print_json(&value)?;
    } else {
        screen::print_beside(arguments.chart, &format!("{}: {verdict}", bold(&scenario.name)))?;
        show_counterexample(arguments, &scenario, &verdict)?;
    }
    Ok(if verdict.is_good() { Ending::Done } else { Ending::Refuted })
}

/// Explores a scenario, with progress on stderr.
pub(crate) fn search(scenario: &Scenario, settings: Settings) -> Verdict {
    watched(scenario.faults, settings, |watch| explore::explore_watched(scenario, settings, watch))
}

/// Explores a script, with progress on stderr.
pub(crate) fn search_script(script: &Arc<[Line]>, settings: Settings) -> Verdict {
    watched(Faults::default(), settings, |watch| explore::explore_script(script, settings, watch))
}

fn watched(faults: Faults, settings: Settings, search: impl FnOnce(&mut dyn FnMut(Progress)) -> Findings) -> Verdict {
    let begun = Instant::now();
    let mut line = ProgressLine::new();
    let findings = search(&mut |progress| {
        line.show(|| {
            let (states, open, depth) = (counted(progress.states), counted(progress.open), progress.depth);
            format!("{states} states, {open} of them open, {depth} steps deep")
        });
    });
    line.done();
    Verdict { findings, faults, settings, took: begun.elapsed() }
}

fn show_counterexample(arguments: &Arguments, scenario: &Scenario, verdict: &Verdict) -> Result<(), Failure> {
    let Some((breach, way)) = verdict.findings.breach.as_ref().filter(|(_, way)| !way.is_empty()) else {
        return Ok(());
    };
    let (_, events) = explore::retrace(&scenario.lines, scenario.faults, way);
    let chart = screen::draw(arguments.chart, arguments.drawn, &scenario.world(), &events);
    let end = screen::coloured(&format!("✗ {breach}"));
    let line = replay_line(arguments, scenario, verdict).unwrap_or_default();
    screen::print_beside(arguments.chart, "\nThe shortest sequence that leads there:\n\n")?;
    screen::print(&chart)?;
    screen::print_beside(arguments.chart, &format!("{end}\nTo replay it:\n  {line}\n"))
}

/// One command line that replays the counterexample.
fn replay_line(arguments: &Arguments, scenario: &Scenario, verdict: &Verdict) -> Option<String> {
    let (_, way) = verdict.findings.breach.as_ref().filter(|(_, way)| !way.is_empty())?;
    let file = arguments.story.pasted();
    Some(match &arguments.save {
        Some(trace) => format!("holdfast replay {} --expect {file}", trace.display()),
        None => {
            let choices = Choices::of(scenario.world(), way);
            format!("holdfast replay {file}{} --choices {choices}", arguments.faults.pasted())
        }
    })
}
