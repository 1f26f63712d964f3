//! `holdfast shrink`: finds the same violation in fewer steps.

use crate::{
    Ending,
    commands::replay,
    failure::Failure,
    input::files,
    rendering::screen::{self, Drawing},
};
use clap::Args;
use model_check::{shrink, trace};
use serde_json::json;
use std::path::PathBuf;

/// Shorten a recorded run that breaks a property
#[derive(Args)]
#[command(after_help = "\
Writes the shorter run next to the trace, unless --save names a file.

Example: holdfast shrink run.json --save short.json")]
pub(crate) struct Arguments {
    /// The trace
    trace: PathBuf,
    /// Write the shorter run to this file
    #[arg(long, value_name = "TRACE")]
    save: Option<PathBuf>,
    /// How to draw the shorter run: text, mermaid or svg
    #[arg(long, value_name = "HOW", default_value = "text", hide_possible_values = true)]
    chart: Drawing,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let long = files::trace(&arguments.trace)?;
    let Some((short, breach)) = shrink::shrink(&long) else {
        return Err(Failure::NothingToShorten(arguments.trace.clone()));
    };
    let path = arguments.save.clone().unwrap_or_else(|| arguments.trace.with_extension("short.json"));
    files::write(&path, &short.write())?;
    let (before, after) = (long.actions.len(), short.actions.len());
    if arguments.json {
        let breach = json!({ "property": breach.property, "detail": breach.detail });
        screen::print_json(&json!({ "steps_before": before, "steps": after, "breach": breach, "trace": path }))?;
    } else {
        let replay = trace::replay(&short).map_err(|error| Failure::Trace(path.clone(), error))?;
        replay::show(&short, &replay, arguments.chart, screen::ChartOptions::default())?;
        let line = format!("holdfast replay {}", path.display());
        let text = format!("\n{before} steps became {after}. To replay it:\n  {line}\n");
        screen::print_beside(arguments.chart, &text)?;
    }
    Ok(Ending::Done)
}
