//! The last failed attempt of a component, for as long as it matters.

use crate::document::Retrying;
use protocol::{ComponentState, Operation, letter::FailedAttempt};

/// The last failed attempt of a component.
#[derive(Clone, Debug)]
pub(super) struct LastAttempt {
    attempt: FailedAttempt,
    at_ms: u64,
}

impl LastAttempt {
    pub(super) fn new(attempt: FailedAttempt, at_ms: u64) -> Self {
        Self { attempt, at_ms }
    }

    /// Whether it still matters once the component is in this state: the operation may have succeeded, or failed for good.
    pub(super) fn outlives(&self, state: ComponentState) -> bool {
        match (self.attempt.operation, state) {
            (_, ComponentState::Failed(_)) => false,
            (Operation::Prepare, state) => state == ComponentState::Stopped,
            (Operation::Start, state) => state != ComponentState::Started,
            // A restart on request ends with a stop; what follows is no consequence of the death.
            (Operation::Run, state) => state != ComponentState::Stopping,
            (Operation::Stop, state) => state == ComponentState::Stopping,
            (Operation::Rebind, state) => state == ComponentState::Started,
            (Operation::Purge, state) => state == ComponentState::Stopped,
        }
    }

    /// What there is to say of it now, for a component that has been in its state since then.
    pub(super) fn at(&self, now_ms: u64, state: Option<ComponentState>, since_ms: u64) -> Option<Retrying> {
        let FailedAttempt { operation, steady_ms, pause_ms, .. } = &self.attempt;
        let is_over = match operation {
            Operation::Run => {
                state == Some(ComponentState::Started)
                    && since_ms > self.at_ms
                    && now_ms >= since_ms.saturating_add(*steady_ms)
            }
            // Nothing reports that a rebind has succeeded.
            Operation::Rebind => now_ms > self.at_ms.saturating_add(*pause_ms),
            Operation::Prepare | Operation::Start | Operation::Stop | Operation::Purge => false,
        };
        (!is_over).then(|| Retrying::new(&self.attempt, self.at_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_matters_until_the_component_is_steady_again() {
        let attempt = FailedAttempt {
            operation: Operation::Run,
            failures: 2,
            retries: 5,
            pause_ms: 1_000,
            steady_ms: 10_000,
            detail: "exit code 1".into(),
        };
        let last = LastAttempt::new(attempt, 5_000);
        assert!(last.outlives(ComponentState::Stopped) && last.outlives(ComponentState::Started));
        assert!(!last.outlives(ComponentState::Failed(Operation::Run)) && !last.outlives(ComponentState::Stopping));
        let started = Some(ComponentState::Started);
        assert!(last.at(6_000, Some(ComponentState::Stopped), 5_000).is_some_and(|it| it.crash_looping));
        assert!(last.at(15_999, started, 6_000).is_some());
        assert!(last.at(16_000, started, 6_000).is_none());
    }
}
