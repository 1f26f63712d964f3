//! Re-adopting, after a restart of the agent, what was started before.

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

/// Grace for a process of which nothing is known any more.
const GRACE: Duration = Duration::from_secs(10);

impl Component {
    /// Watches what is running, and stops what no task asks for. `pending` are tasks that are about to be carried out.
    pub(super) async fn find_again(&self, pending: Option<&HostTask>, slot: &mut Slot) {
        self.sweep().await;
        let record = match Record::load(&self.directory) {
            Ok(record) => record,
            Err(error) => {
                tracing::error!(component = %self.id, %error, "the record is damaged; it is set aside, and the component's processes are stopped");
                return self.end_unknown().await;
            }
        };
        let announced = record.announced.clone().unwrap_or_default();
        let Some(run) = record.run.clone() else { return };
        if let Some(process) = run.process.as_ref().filter(|_| run.is_process()) {
            slot.running = Some(Running::found(&self.shared, process.clone()));
        }
        match pending.map(|task| &task.work) {
            // These tasks begin by looking at what is running.
            Some(Work::Start { .. } | Work::Stop | Work::Purge | Work::Abort) => {}
            Some(Work::Prepare | Work::Rebind { .. }) | None => {
                let was_ready = Done::load(&self.directory).is_some_and(|done| done.serial >= run.serial);
                // A process that has ended in the meantime is noticed as soon as it is watched.
                if was_ready && (run.is_process() || run.still_runs()) {
                    self.watch(&run, &announced, slot).await;
                } else {
                    self.end_half_started(&run, &announced, slot).await;
                }
            }
        }
    }

    /// No task asks for it, but the protocol may believe that it is running, so its death is reported. The record is
    /// left as it is: if the agent crashes before it has journalled the death, it is reported again.
    async fn end_half_started(&self, run: &Run, announced: &Values, slot: &mut Slot) {
        let mut failure = Failure::new("died while the agent was not running");
        if let Some(complaint) = self.end_for_certain(run, announced).await {
            failure = failure.with_output(&complaint.during(Step::Stop).0);
        }
        slot.running = None;
        Self { serial: run.serial, ..self.clone() }.died(&failure);
    }

    /// The record is lost: what carries the component's mark is stopped. The mark names its task.
    async fn end_unknown(&self) {
        let path = self.directory.record();
        let _ = fs::rename(&path, path.with_extension("damaged"));
        for (group, task) in group::marked(&self.directory.home()) {
            group.end_for_certain(Signal::Term, GRACE).await;
            if let Some(serial) = task {
                let component = Self { serial, ..self.clone() };
                component.died(&Failure::new("stopped, because the agent's record of it is damaged"));
            }
        }
    }

    /// Reserves the ports that the record names.
    pub(super) fn keep_ports(&self) {
        for port in Record::load(&self.directory).unwrap_or_default().ports.values() {
            self.shared.ports.keep(*port);
        }
    }
}
