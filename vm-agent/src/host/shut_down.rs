//! Stopping a component, so that no process of it is left running.

use super::{
    cgroup,
    command::Step,
    component::{Component, Slot},
    failure::Failure,
    record::{Record, Run},
};
use protocol::Values;
use recipe::Stop;
use std::time::Duration;

impl Component {
    pub(super) async fn stop(&self, slot: &mut Slot) -> Result<Values, Failure> {
        let mut record = self.record()?;
        let Some(run) = record.run.clone() else {
            self.shared.data.end(self.id);
            return Ok(Values::new());
        };
        self.forget_watcher(slot).await;
        self.end(&run, &record.announced.clone().unwrap_or_default()).await?;
        slot.running = None;
        record.run = None;
        record.save(&self.directory).await?;
        self.shared.data.end(self.id);
        Ok(Values::new())
    }

    /// Stops everything that may be running according to the record; an error of the stop command is only logged.
    pub(super) async fn end_last_run(&self, record: &mut Record, slot: &mut Slot) -> Result<(), Failure> {
        self.forget_watcher(slot).await;
        if let Some(run) = record.run.take() {
            self.end_for_certain(&run, &record.announced.clone().unwrap_or_default()).await;
            slot.running = None;
            record.save(&self.directory).await?;
        }
        self.shared.data.end(self.id);
        Ok(())
    }

    /// Stops a run completely. Returns the error of its stop command, if a script may have left something running.
    pub(super) async fn end_for_certain(&self, run: &Run, announced: &Values) -> Option<Failure> {
        let told = self.tell_to_stop(run, announced).await;
        if let Some(process) = &run.process {
            let Stop { signal, grace_ms, .. } = &run.recipe.operations.stop;
            self.group(process).end_for_certain(*signal, Duration::from_millis(*grace_ms)).await;
        }
        cgroup::clear(&run.cgroups).await;
        told.err()
    }

    /// The stop command, then the signal, then SIGKILL.
    async fn end(&self, run: &Run, announced: &Values) -> Result<(), Failure> {
        self.tell_to_stop(run, announced).await?;
        let Some(process) = &run.process else { return Ok(()) };
        let Stop { signal, grace_ms, .. } = &run.recipe.operations.stop;
        let ended = self.group(process).end(*signal, Duration::from_millis(*grace_ms)).await;
        ended.map_err(|error| Failure::new(error.to_string()).during(Step::Stop))?;
        cgroup::clear(&run.cgroups).await;
        Ok(())
    }

    /// Runs the stop command. For a process it does not matter whether it succeeds: the processes that are left are
    /// found and killed.
    async fn tell_to_stop(&self, run: &Run, announced: &Values) -> Result<(), Failure> {
        // Where something else runs the component's processes, they may outlive the one that was started.
        if run.is_process() && !run.still_runs() && run.recipe.operations.identify.is_none() {
            return Ok(());
        }
        let home = self.directory.home();
        let command = run.recipe.operations.stop.command.as_ref();
        match self.run(Step::Stop, command, &self.view_of_run(run, &home, announced)).await {
            Err(failure) if run.is_process() => {
                let failure = self.concealed(failure);
                tracing::warn!(component = %self.id, %failure, "the stop command failed; its processes are killed");
                Ok(())
            }
            told => told,
        }
    }

    /// From here on nothing else acts on the component.
    pub(super) async fn forget_watcher(&self, slot: &mut Slot) {
        if let Some(watcher) = slot.watcher.take() {
            watcher.end().await;
        }
        self.sweep().await;
    }
}
