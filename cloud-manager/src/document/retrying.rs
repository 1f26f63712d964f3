//! An operation that failed and is retried, and a component that dies again and again.

use super::lasting;
use protocol::{Operation, letter::FailedAttempt};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;

/// A component that has died this many times without having been steady in between is in a crash loop.
const CRASH_LOOP_DEATHS: u32 = 2;

/// An operation of a component that failed last and is retried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Retrying {
    /// The operation; `run` if the component died.
    pub operation: String,
    /// The number of failed attempts in a row, or of deaths since it was last steady.
    pub failures: u32,
    /// The number of retries before manual action is required.
    pub retries: u32,
    /// When the next attempt is due, in milliseconds since 1970; it has begun if that is in the past.
    pub next_at_ms: u64,
    /// Whether it dies again and again.
    pub crash_looping: bool,
    /// The reason, and the end of its output below it.
    pub detail: String,
}

impl Retrying {
    /// An attempt that was reported at that moment.
    pub(crate) fn new(attempt: &FailedAttempt, at_ms: u64) -> Self {
        let died = attempt.operation == Operation::Run;
        Self {
            operation: attempt.operation.to_string(),
            failures: attempt.failures,
            retries: attempt.retries,
            next_at_ms: at_ms.saturating_add(attempt.pause_ms),
            crash_looping: died && attempt.failures >= CRASH_LOOP_DEATHS,
            detail: attempt.detail.to_string(),
        }
    }

    /// What failed, how often, and when it is retried, seen at a moment.
    pub fn in_words(&self, now_ms: u64) -> String {
        let Self { operation, failures, retries, next_at_ms, crash_looping, .. } = self;
        let died = operation == Operation::Run.word();
        let pause = next_at_ms.saturating_sub(now_ms);
        let next = match (died, pause) {
            (true, 0) => "restarted".to_owned(),
            (false, 0) => "now being retried".to_owned(),
            (true, pause) => format!("next start in {}", in_seconds(pause)),
            (false, pause) => format!("next attempt in {}", in_seconds(pause)),
        };
        let attempts = retries.saturating_add(1);
        match (died, crash_looping) {
            (true, true) => format!("is crash-looping: died {failures} times; {next}"),
            (true, false) => format!("died; {next}"),
            (false, _) => format!("{operation} failed (attempt {failures} of {attempts}); {next}"),
        }
    }
}

/// A pause in seconds, without digits that say nothing.
fn in_seconds(ms: u64) -> String {
    match ms {
        0..1_000 => lasting(Duration::from_millis(ms)),
        ms => format!("{} s", ms.div_ceil(1_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_says_what_failed_how_often_and_what_comes_next() {
        let attempt = FailedAttempt {
            operation: Operation::Start,
            failures: 2,
            retries: 3,
            pause_ms: 2_000,
            steady_ms: 0,
            detail: "start: exit code 1".into(),
        };
        let told = |attempt: &FailedAttempt, now_ms: u64| Retrying::new(attempt, 10_000).in_words(now_ms);
        assert_eq!(told(&attempt, 10_000), "start failed (attempt 2 of 4); next attempt in 2 s");
        assert_eq!(told(&attempt, 11_500), "start failed (attempt 2 of 4); next attempt in 500 ms");
        assert_eq!(told(&attempt, 12_500), "start failed (attempt 2 of 4); now being retried");
        let death = FailedAttempt { operation: Operation::Run, failures: 1, ..attempt };
        assert_eq!(told(&death, 10_000), "died; next start in 2 s");
        let death = FailedAttempt { failures: 3, ..death };
        assert_eq!(told(&death, 10_000), "is crash-looping: died 3 times; next start in 2 s");
        assert_eq!(told(&death, 13_000), "is crash-looping: died 3 times; restarted");
    }
}
