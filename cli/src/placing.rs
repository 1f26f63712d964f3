//! The planner at work on this machine: its time limit, and its progress.

use crate::progress::ProgressLine;
use planner::Progress;
use std::time::{Duration, Instant};

/// Lets the planner work for so many seconds, and shows how far it is.
pub(crate) fn watched<T>(seconds: u64, work: impl FnOnce(&mut dyn FnMut(&Progress) -> bool) -> T) -> T {
    let begun = Instant::now();
    let limit = Duration::from_secs(seconds);
    let mut line = ProgressLine::new();
    let done = work(&mut |progress| {
        line.show(|| {
            let said = |value: Option<i128>| value.map_or("none".into(), |value| value.to_string());
            let (best, bound) = (said(progress.best), said(progress.bound));
            format!("goal {}: best so far {best}, proven bound {bound}", progress.goal + 1)
        });
        begun.elapsed() < limit
    });
    line.done();
    done
}
