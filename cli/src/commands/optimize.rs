//! `holdfast optimize`: the planner alone, on a problem in the format of Zephyrus2.

use crate::{Ending, failure::Failure, input::files, placing, rendering::screen};
use clap::Args;
use planner::report;
use std::{path::PathBuf, time::Instant};

/// Place and wire components at the least cost
#[derive(Args)]
#[command(after_help = "\
Ctrl-C stops the search and prints the best solution so far; a second Ctrl-C exits at once.
Exit code 0: proven optimal; 1: infeasible, or not proven in time.

Example: holdfast optimize examples/mail.json")]
pub(crate) struct Arguments {
    /// The problem, in the JSON format of Zephyrus2
    problem: PathBuf,
    /// Stop after this many seconds and print the best solution so far, with its gap
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    time_limit: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let text = files::read(&arguments.problem)?;
    let begun = Instant::now();
    let report = placing::watched(arguments.time_limit, |go_on| report::optimize(&text, go_on));
    let report = report.map_err(|error| Failure::Optimize(arguments.problem.clone(), error))?;
    if arguments.json {
        screen::print_json(&report.to_json(begun.elapsed().as_secs_f64()))?;
    } else {
        screen::print(&format!("{report}took {}\n", screen::lasting(begun.elapsed())))?;
    }
    Ok(if report.is_optimal() { Ending::Done } else { Ending::Refuted })
}
