//! Watching a started component, until it is stopped or has died.
//!
//! The kernel reports the end of a process; only the checks that a recipe asks for are made periodically. A component
//! that has died is stopped completely before its death is reported, because it may then be restarted at once.

use super::{
    check::Question,
    command::Step,
    component::{Component, Slot},
    confinement::explained,
    failure::Failure,
    output,
    record::Run,
    running::Running,
};
use protocol::{HostOutcome, Values};
use tokio::{sync::oneshot, task::AbortHandle};

/// Number of lines of output in the report of a death.
const LINES_MAX: usize = 10;

/// A background task that watches a run.
#[derive(Debug)]
pub(super) struct Watcher {
    task: AbortHandle,
    /// Closed once the watcher has ended.
    over: oneshot::Receiver<()>,
}

impl Watcher {
    /// Whether it has reported everything.
    pub(super) fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Stops the watcher. When this returns, it does nothing any more.
    pub(super) async fn end(self) {
        self.task.abort();
        let _ = self.over.await;
    }
}

impl Component {
    /// Watches this run from now on, in place of an earlier watcher.
    pub(super) async fn watch(&self, run: &Run, announced: &Values, slot: &mut Slot) {
        if let Some(watcher) = slot.watcher.take() {
            watcher.end().await;
        }
        let component = Self { serial: run.serial, ..self.clone() };
        let (run, announced, running) = (run.clone(), announced.clone(), slot.running.clone());
        let (is_over, over) = oneshot::channel();
        let task = self.shared.spawn(async move {
            // Dropped with the task, however it ends.
            let _is_over: oneshot::Sender<()> = is_over;
            component.stand_by(&run, &announced, running.as_ref()).await;
        });
        slot.watcher = task.map(|task| Watcher { task, over });
    }

    async fn stand_by(&self, run: &Run, announced: &Values, running: Option<&Running>) {
        let home = self.directory.home();
        let failure = {
            let view = self.view_of_run(run, &home, announced);
            let question = run.recipe.operations.check.as_ref().map(|check| Question::of(check, self, &view, run));
            tokio::select! {
                how = Running::ended(running) => Failure::new(how),
                failure = self.checked(question) => failure,
            }
        };
        self.sweep_check().await;
        // Read before the stop command adds to it.
        let last_lines = output::last_lines(&self.directory, LINES_MAX);
        let mut failure = explained(failure, run).with_output(&last_lines);
        if let Some(complaint) = self.end_for_certain(run, announced).await {
            failure = failure.with_output(&complaint.during(Step::Stop).0);
        }
        self.died(&failure);
    }

    /// Returns once checks have failed too often; never, if there is nothing to check.
    async fn checked(&self, question: Option<Result<Question, Failure>>) -> Failure {
        match question {
            None => std::future::pending().await,
            Some(Err(failure)) => failure,
            Some(Ok(question)) => question.alive(self).await,
        }
    }

    /// Writes to the log how something ended; no report depends on it.
    pub(super) fn note_end(&self, how: &str) {
        if let Err(error) = output::note_end(&self.directory, self.serial, how) {
            tracing::warn!(component = %self.id, %error, "cannot write its log");
        }
    }

    pub(super) fn died(&self, failure: &Failure) {
        tracing::warn!(component = %self.id, serial = self.serial, "died");
        let failure = self.concealed(failure.clone());
        self.note_end(&format!("died: {}", failure.first_line()));
        let detail = failure.detail().into();
        self.shared.tell(HostOutcome::Died { component: self.id, serial: self.serial, detail });
    }
}
