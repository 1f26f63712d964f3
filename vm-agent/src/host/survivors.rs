//! Finding again, after a restart of the agent, what its earlier life has started.

use super::{
    command::Step,
    component::{Component, Slot},
    failure::Failure,
    group,
    record::{Done, Record, Run},
    running::Running,
};
use protocol::{HostTask, Values, Work};
use recipe::Signal;
use std::{fs, time::Duration};

/// What a process has to tidy up of which nothing is known any more.
const GRACE: Duration = Duration::from_secs(10);

impl Component {
    /// Takes up the watch over what runs, and ends what no task stands behind. `pending` is what is about to be carried out.
    pub(super) async fn find_again(&self, pending: Option<&HostTask>, slot: &mut Slot) {
        self.sweep().await;
        let record = match Record::load(&self.place) {
            Ok(record) => record,
            Err(error) => {
                tracing::error!(component = %self.id, %error, "the record is damaged; it is set aside, and the component's processes are stopped");
                return self.end_unknown().await;
            }
        };
        let announced = record.announced.clone().unwrap_or_default();
        let Some(run) = record.run.clone() else { return };
        if let Some(process) = run.process.as_ref().filter(|_| run.is_process()) {
            slot.running = Some(Running::found(&self.room, process.clone()));
        }
        match pending.map(|task| &task.work) {
            // They begin by looking at what is there.
            Some(Work::Start { .. } | Work::Stop | Work::Purge) => {}
            Some(Work::Prepare | Work::Rebind { .. }) | None => {
                let was_ready = Done::load(&self.place).is_some_and(|done| done.serial >= run.serial);
                // A process that has ended meanwhile is seen to have ended as soon as it is watched.
                if was_ready && (run.is_process() || run.still_runs()) {
                    self.watch(&run, &announced, slot).await;
                } else {
                    self.end_half_started(&run, &announced, slot).await;
                }
            }
        }
    }

    /// No task stands behind it, so somebody may think that it runs and is told that it does not. The record stays as it
    /// is: should the agent not live to hear of the death, it is told again.
    async fn end_half_started(&self, run: &Run, announced: &Values, slot: &mut Slot) {
        let mut failure = Failure::new("died while the agent was not running");
        if let Some(complaint) = self.end_for_certain(run, announced).await {
            failure = failure.with_output(&complaint.during(Step::Stop).0);
        }
        slot.running = None;
        Self { serial: run.serial, ..self.clone() }.died(&failure);
    }

    /// Nothing is remembered: what carries the component's mark is ended, and its task is on the mark.
    async fn end_unknown(&self) {
        let path = self.place.record();
        let _ = fs::rename(&path, path.with_extension("damaged"));
        for (group, task) in group::marked(&self.place.home()) {
            group.end_for_certain(Signal::Term, GRACE).await;
            if let Some(serial) = task {
                let component = Self { serial, ..self.clone() };
                component.died(&Failure::new("stopped, because the agent's record of it is damaged"));
            }
        }
    }

    /// The ports that the record speaks of are given to nobody else.
    pub(super) fn keep_ports(&self) {
        for port in Record::load(&self.place).unwrap_or_default().ports.values() {
            self.room.ports.keep(*port);
        }
    }
}
