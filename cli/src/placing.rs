//! Runs the planner with a time limit, shows its progress, and ends it early on Ctrl-C.

use crate::{failure::Failure, interrupt::Interruptible, progress::ProgressLine};
use application::{Application, Choice, Existing, Expansion};
use clap::Args;
use planner::{Method, Progress};
use std::time::{Duration, Instant};

/// Limits for the planner.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct PlacingOptions {
    /// Where placement is left to the planner: after so many seconds, the best answer so far is taken
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    time_limit: u64,
}

impl PlacingOptions {
    /// Counts out, places and wires an application.
    pub(crate) fn expand(self, application: &Application, existing: &Existing<'_>) -> Result<Expansion, Failure> {
        watched(self.time_limit, |go_on| application.expand_within(existing, go_on)).map_err(Failure::Application)
    }
}

/// Lets the planner work until the time limit or Ctrl-C, and shows its best answer and proven bound meanwhile.
pub(crate) fn watched<T>(seconds: u64, work: impl FnOnce(&mut dyn FnMut(&Progress) -> bool) -> T) -> T {
    let begun = Instant::now();
    let limit = Duration::from_secs(seconds);
    let interruptible = Interruptible::begin();
    let mut line = ProgressLine::new();
    let done = work(&mut |progress| {
        line.show(|| {
            let said = |value: Option<i128>| value.map_or("none".into(), |value| value.to_string());
            let (best, bound) = (said(progress.best), said(progress.bound));
            let method = match progress.method {
                Method::Bounding => String::new(),
                Method::Listing => ", searching all columns".to_owned(),
                Method::Branching => format!(", too many columns to list, {} branches open", progress.open),
            };
            format!("goal {}: best so far {best}, proven bound {bound}{method}", progress.goal + 1)
        });
        begun.elapsed() < limit && !interruptible.is_asked_to_end()
    });
    line.done();
    done
}

/// What the planner says of a placement, for people.
pub(crate) fn told(choice: &Choice) -> String {
    let objective = |it: &application::Objective| match it.bound.filter(|bound| *bound != it.value) {
        Some(bound) => format!("{} {} (at least {bound})", it.text, it.value),
        None => format!("{} {}", it.text, it.value),
    };
    let objectives: Vec<String> = choice.objectives.iter().map(objective).collect();
    let proven = if choice.proven { "proven best" } else { "the best found in time" };
    format!("Placement: {proven}: {}\n", objectives.join(", then "))
}
