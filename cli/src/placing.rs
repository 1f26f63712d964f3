//! Runs the planner with a time limit, shows its progress, and ends it early on Ctrl-C.

use crate::{interrupt::Interruptible, rendering::progress::ProgressLine};
use planner::{Method, Progress};
use std::time::{Duration, Instant};

/// Runs the planner until the time limit or Ctrl-C, and shows its best solution and proven bound meanwhile.
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
