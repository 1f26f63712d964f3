//! Starts that may be asked to end early: one signal for each, from the moment in which it is asked for until it has ended.
//!
//! How a start is cut short is for `component` to know.

use protocol::{ComponentId, HostTask, Work};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// A signal for each start that has not ended.
#[derive(Debug, Default)]
pub(super) struct Aborts(Mutex<BTreeMap<(ComponentId, u64), Arc<Notify>>>);

impl Aborts {
    /// A task is asked for: if it is a start, it can be aborted from now on.
    pub(super) fn expect(&self, task: &HostTask) {
        if let Work::Start { .. } = task.work {
            self.all().insert((task.component, task.serial), Arc::default());
        }
    }

    /// A task has ended.
    pub(super) fn forget(&self, task: &HostTask) {
        self.all().remove(&(task.component, task.serial));
    }

    /// What a start waits for beside its own end.
    pub(super) fn signal_of(&self, component: ComponentId, serial: u64) -> Arc<Notify> {
        self.all().get(&(component, serial)).cloned().unwrap_or_default()
    }

    /// Tells the start that an abort is about; says whether there is one that has not ended.
    pub(super) fn send(&self, abort: &HostTask) -> bool {
        let all = self.all();
        let signal = all.get(&(abort.component, abort.serial));
        signal.inspect(|signal| signal.notify_one()).is_some()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<(ComponentId, u64), Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
