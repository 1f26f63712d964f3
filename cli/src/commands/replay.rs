//! `holdfast replay`: replays a recorded run.

use crate::{
    Ending,
    failure::Failure,
    input::faults::FaultOptions,
    input::files,
    input::story::{ChangeOptions, StoryOptions},
    rendering::screen::{self, Drawing, counted},
};
use clap::Args;
use model_check::{
    Scenario,
    choices::Choices,
    scenario::Expected,
    trace::{self, Replay, Trace},
};
use serde_json::json;
use std::path::PathBuf;

/// Replay a recorded run
#[derive(Args)]
#[command(after_help = "\
Example: holdfast simulate examples/running-example.txt --seed 7 --save run.json
         holdfast replay run.json --expect examples/running-example.txt")]
pub(crate) struct Arguments {
    /// A trace; or, with --choices, a scenario or an application file
    file: PathBuf,
    #[command(flatten)]
    change: ChangeOptions,
    /// The choice at each step, as `explore` prints it
    #[arg(long, value_name = "LIST")]
    choices: Option<Choices>,
    /// Compare the run with what this scenario expects
    #[arg(long, value_name = "FILE", conflicts_with = "choices")]
    expect: Option<PathBuf>,
    /// How to draw the run: text, mermaid or svg
    #[arg(long, value_name = "HOW", default_value = "text", hide_possible_values = true)]
    chart: Drawing,
    #[command(flatten)]
    drawn: screen::ChartOptions,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the run to this file
    #[arg(long, value_name = "TRACE", requires = "choices")]
    save: Option<PathBuf>,
    #[command(flatten)]
    faults: FaultOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let (trace, expected) = recorded(arguments)?;
    if let Some(path) = &arguments.save {
        files::write(path, &trace.write())?;
    }
    let told = |world: &_, event: &_| expected.as_ref().and_then(|expected| expected.breach(world, event));
    let replay = trace::replay_with(&trace, &told).map_err(|error| Failure::Trace(arguments.file.clone(), error))?;
    if arguments.json {
        let steps: Vec<String> = replay.events.iter().map(|event| event.action.to_string()).collect();
        let breach = replay.breach.as_ref().map(
            |(after, breach)| json!({ "property": breach.property, "detail": breach.detail, "after_steps": after }),
        );
        screen::print_json(&json!({ "good": replay.breach.is_none(), "steps": steps, "breach": breach }))?;
    } else {
        show(&trace, &replay, arguments.chart, arguments.drawn)?;
    }
    Ok(if replay.breach.is_none() { Ending::Done } else { Ending::Refuted })
}

/// The run, and its expected end, if that is known.
fn recorded(arguments: &Arguments) -> Result<(Trace, Option<Expected>), Failure> {
    if let Some(choices) = &arguments.choices {
        let story = StoryOptions { file: arguments.file.clone(), change: arguments.change.clone() };
        let (Scenario { lines, faults, expected, .. }, _) = story.read(arguments.faults)?;
        let actions = choices.actions(model_check::World::new(lines.clone(), faults))?;
        return Ok((Trace::new(&lines, faults, actions), Some(expected)));
    }
    let expected = arguments.expect.as_ref().map(|path| files::scenario(path, arguments.faults)).transpose()?;
    Ok((files::trace(&arguments.file)?, expected.map(|scenario| scenario.expected)))
}

/// Draws a replay, and prints how it ended.
pub(crate) fn show(
    trace: &Trace,
    replay: &Replay,
    drawing: Drawing,
    drawn: screen::ChartOptions,
) -> Result<(), Failure> {
    let initial = model_check::World::new(trace.script.clone().into(), trace.faults);
    let steps = counted(replay.events.len());
    let end = match &replay.breach {
        Some((after, breach)) => format!("✗ after {after} steps: {breach}"),
        None if trace::is_at_rest(&replay.world) => format!("✓ {steps} steps, then rest, and everything held"),
        None => format!("✓ {steps} steps, and everything held so far"),
    };
    screen::print(&screen::draw(drawing, drawn, &initial, &replay.events))?;
    screen::print_beside(drawing, &screen::coloured(&end))
}
