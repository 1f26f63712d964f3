//! The host: carries out tasks for components with real processes, files and ports.
//!
//! It does not know why something is started or stopped, nor how often a failed task is retried: those are rules of the
//! protocol. It guarantees three things:
//!
//! - exactly one `Done` or `Failed` for each task, and no process left running after a `Failed` start;
//! - one `Died` when a started component has ended, and no process of it left running then either;
//! - never a second copy and never an orphan, whenever the agent is killed: processes outlive the agent, which re-adopts
//!   them by pid, start time and boot.
//!
//! | file | subject |
//! |---|---|
//! | `component` | which steps a task takes; preparing, rebinding, purging |
//! | `start_up`, `shut_down`, `watch` | the life of a run |
//! | `abort` | starts that are asked to end early |
//! | `survivors` | re-adopting what was started before a restart of the agent |
//! | `raze` | stopping all components of a VM at once |
//! | `command`, `check` | running a command under a time limit; readiness and liveness checks |
//! | `owner`, `listener` | what belongs to a component; which process listens at an address |
//! | `confinement`, `cgroup` | users, privileges, limits |
//! | `process`, `group`, `spawn`, `running`, `descriptor` | one process, its group, its start, its end |
//! | `component_directory`, `record` | where files are; what is remembered |
//! | `data` | what outlives components, and which of them use it |
//! | `values`, `ports` | what components produce and what they are told |
//! | `output`, `rotation`, `secrets` | logs, their size, and the secrets in them |
//! | `drift` | differences between what runs and what was asked for |

mod abort;
mod cgroup;
mod check;
mod command;
mod component;
mod component_directory;
mod confinement;
mod data;
mod descriptor;
mod drift;
mod failure;
mod group;
mod listener;
mod output;
mod owner;
mod ports;
pub(crate) mod process;
mod raze;
mod record;
mod rotation;
mod running;
mod secrets;
mod shut_down;
mod spawn;
mod start_up;
mod survivors;
mod values;
mod watch;

pub use data::{KeptData, KeptDirectory};
pub use raze::raze;

use self::{
    abort::Aborts,
    component::{Component, Slot},
    component_directory::ComponentDirectory,
    data::Uses,
    failure::Failure,
    ports::Ports,
    rotation::Rotation,
};
use protocol::{ComponentId, HostOutcome, HostTask, Name, Work};
use std::{
    collections::BTreeMap,
    future::Future,
    io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    runtime::Handle,
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

/// Settings of a host.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The directory of all components and of the host's records, for this host's exclusive use.
    pub directory: PathBuf,
    /// The VM's address, at which its components are reached.
    pub host: IpAddr,
    /// Maximum log size per component; one rotated copy is kept.
    pub output_bytes_max: u64,
    /// Called at the critical moments of a start, for tests that kill the agent there.
    #[doc(hidden)]
    pub witness: Option<fn(Moment)>,
}

impl Settings {
    /// The defaults.
    pub fn new(directory: impl Into<PathBuf>, host: IpAddr) -> Self {
        Self { directory: directory.into(), host, output_bytes_max: 1 << 20, witness: None }
    }
}

/// A critical moment of a start.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The process exists and is not recorded.
    Spawned,
    /// It is recorded and has not been released.
    Recorded,
    /// It has been released.
    Released,
    /// It is ready, and this has not been reported.
    Ready,
}

/// Errors outside of tasks.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host's directory cannot be used. Nothing was changed.
    #[error("host directory {directory} cannot be {attempt}")]
    Directory {
        /// Which one.
        directory: PathBuf,
        /// What was attempted.
        attempt: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// A task is being carried out for it, which changes it. This can happen in normal operation.
    #[error("{component} is busy with a task (ask again when it is done)")]
    Busy {
        /// Which one.
        component: ComponentId,
    },
    /// The data of this name cannot be listed or deleted; it is in use, or there is none. This can happen in normal
    /// operation.
    #[error("{0}")]
    Data(String),
    /// The component has written no output, or is gone. This can happen in normal operation.
    #[error("{component} has no output")]
    NoOutput {
        /// Which one.
        component: ComponentId,
        /// Why not.
        source: io::Error,
    },
}

/// Carries out tasks. Cheap to clone. When the last clone is dropped, no more tasks are carried out and no more
/// outcomes are reported, but components keep running.
#[derive(Clone, Debug)]
pub struct Host {
    shared: Arc<Shared>,
    _close_on_drop: Arc<CloseOnDrop>,
}

impl Host {
    /// Opens the directory and re-adopts running components. `pending` are tasks whose outcome was never journalled:
    /// they are carried out once, and never lead to a second copy.
    pub async fn open(
        settings: Settings,
        pending: Vec<HostTask>,
        outcomes: mpsc::UnboundedSender<HostOutcome>,
    ) -> Result<Self, Error> {
        let (shared, places) = Shared::open(settings, outcomes)?;
        let host = Self { _close_on_drop: Arc::new(CloseOnDrop(shared.clone())), shared };
        if let Some(rotation) = &host.shared.rotation {
            host.shared.spawn(rotation.clone().run());
        }
        host.take_up(&places, pending).await;
        Ok(host)
    }

    /// Begins a task and returns at once. One `Done` or `Failed` follows, and after a start possibly a `Died`. An `Abort` ends
    /// the start under way, whose outcome is the answer to both.
    pub fn carry_out(&self, task: HostTask) {
        if task.work == Work::Abort && self.shared.aborts.send(&task) {
            return;
        }
        self.shared.aborts.expect(&task);
        let shared = self.shared.clone();
        self.shared.spawn(async move {
            let slot = shared.slot(task.component);
            let mut slot = slot.lock().await;
            shared.carry_out(&task, &mut slot).await;
        });
    }

    /// The end of a component's output, at most this many bytes.
    pub async fn logs(&self, component: ComponentId, bytes_max: usize) -> Result<String, Error> {
        let directory = ComponentDirectory::of(component, &self.shared.settings.directory);
        let read = tokio::task::spawn_blocking(move || output::history(&directory, bytes_max));
        let read = read.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        read.map_err(|source| Error::NoOutput { component, source })
    }

    /// The end of the output of the last purged component of a name, at most this many bytes.
    pub async fn previous_logs(&self, key: &Name, bytes_max: usize) -> Result<String, Error> {
        let directory = ComponentDirectory::previous(key, &self.shared.settings.directory);
        let read = tokio::task::spawn_blocking(move || output::history(&directory, bytes_max));
        let read = read.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        read.map_err(|_| Error::Data(format!("no output of an earlier {key} is kept on this VM")))
    }

    /// All data that is kept on this VM.
    pub async fn data(&self) -> Result<Vec<KeptData>, Error> {
        let shared = self.shared.clone();
        let list = tokio::task::spawn_blocking(move || data::list(&shared.settings.directory, &shared.data));
        let list = list.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        list.map_err(|error| Error::Data(format!("cannot list the data of this VM: {error}")))
    }

    /// Deletes the data that is kept for a name, and says whether there was any. Refused while a component of this VM uses
    /// it.
    pub async fn delete_data(&self, key: &Name) -> Result<bool, Error> {
        let (shared, wanted) = (self.shared.clone(), key.clone());
        let deleted =
            tokio::task::spawn_blocking(move || data::delete(&wanted, &shared.settings.directory, &shared.data));
        let deleted = deleted.await.unwrap_or_else(|error| Err(Failure::new(error.to_string())));
        deleted.map_err(|failure| Error::Data(failure.to_string()))
    }

    /// Ports first, so that none is assigned twice; then each component by itself.
    async fn take_up(&self, places: &[ComponentId], pending: Vec<HostTask>) {
        pending.iter().for_each(|task| self.shared.aborts.expect(task));
        let mut tasks: BTreeMap<ComponentId, Vec<HostTask>> = BTreeMap::new();
        for task in pending {
            tasks.entry(task.component).or_default().push(task);
        }
        let mut components: Vec<_> = places.iter().map(|id| (*id, tasks.remove(id).unwrap_or_default())).collect();
        for (id, _) in &components {
            Component::new(&self.shared, *id, 0).keep_ports();
        }
        components.extend(tasks);
        for (id, tasks) in components {
            let shared = self.shared.clone();
            // Locked before any task can be asked for.
            let mut slot = shared.slot(id).lock_owned().await;
            self.shared.spawn(async move {
                let serial = tasks.first().map_or(0, |task| task.serial);
                let component = Component::new(&shared, id, serial);
                // It may have grown while the agent was not running.
                let _ = output::rotate(&component.directory.output(), shared.settings.output_bytes_max);
                shared.watch_output(&component.directory.output());
                component.find_again(tasks.first(), &mut slot).await;
                for task in &tasks {
                    shared.carry_out(task, &mut slot).await;
                }
            });
        }
    }
}

/// What all components of a host share.
#[derive(Debug)]
struct Shared {
    settings: Settings,
    outcomes: mpsc::UnboundedSender<HostOutcome>,
    slots: Mutex<BTreeMap<ComponentId, Arc<tokio::sync::Mutex<Slot>>>>,
    aborts: Aborts,
    ports: Arc<Ports>,
    data: Uses,
    /// Held during install and purge: package managers do not run concurrently.
    one_at_a_time: tokio::sync::Mutex<()>,
    rotation: Option<Rotation>,
    runtime: Handle,
    /// All running tasks; empty once the host is closed.
    tasks: Mutex<Option<JoinSet<()>>>,
}

impl Shared {
    /// Opens the directory, and lists the components in it.
    fn open(
        mut settings: Settings,
        outcomes: mpsc::UnboundedSender<HostOutcome>,
    ) -> Result<(Arc<Self>, Vec<ComponentId>), Error> {
        let directory = settings.directory.clone();
        let error = |attempt| {
            let directory = directory.clone();
            move |source| Error::Directory { directory, attempt, source }
        };
        // Components work in their own directories and are told their paths: the path must be absolute, and UTF-8.
        settings.directory = std::path::absolute(&directory).map_err(error("found"))?;
        if settings.directory.to_str().is_none() {
            return Err(error("used: its name is not UTF-8")(io::ErrorKind::InvalidInput.into()));
        }
        std::fs::create_dir_all(&directory).map_err(error("made"))?;
        let places = ComponentDirectory::all(&directory).map_err(error("read"))?;
        data::sweep(&settings.directory);
        let rotation = Rotation::open(settings.output_bytes_max);
        let rotation = rotation.inspect_err(|error| tracing::warn!(%error, "output files may grow without limit")).ok();
        let shared = Self {
            ports: Arc::new(Ports::of(settings.host)),
            data: Uses::load(&places, &settings.directory),
            settings,
            outcomes,
            slots: Mutex::default(),
            aborts: Aborts::default(),
            one_at_a_time: tokio::sync::Mutex::default(),
            rotation,
            runtime: Handle::current(),
            tasks: Mutex::new(Some(JoinSet::new())),
        };
        Ok((Arc::new(shared), places))
    }

    async fn carry_out(self: &Arc<Self>, task: &HostTask, slot: &mut Slot) {
        let (component, serial) = (task.component, task.serial);
        let _answer = Answer { shared: self, component, serial };
        let carried_out = Component::new(self, component, serial).carry_out(task, slot).await;
        self.aborts.forget(task);
        tracing::debug!(%component, serial, operation = %task.work.operation(), done = carried_out.is_ok(), "task");
        if task.work == Work::Purge && carried_out.is_ok() {
            guard(&self.slots).remove(&component);
        }
        self.tell(match carried_out {
            Ok(values) => HostOutcome::Done { component, serial, values },
            Err(failure) => {
                let about = Component::new(self, component, serial);
                let failure = about.concealed(failure);
                if about.directory.exists() {
                    about.note_end(&format!("failed: {}", failure.first_line()));
                }
                HostOutcome::Failed { component, serial, detail: failure.detail().into() }
            }
        });
    }

    fn slot(&self, component: ComponentId) -> Arc<tokio::sync::Mutex<Slot>> {
        guard(&self.slots).entry(component).or_default().clone()
    }

    /// The receiver may be gone, which is not an error here.
    fn tell(&self, outcome: HostOutcome) {
        let _ = self.outcomes.send(outcome);
    }

    /// Runs a future in the background, until it ends or the host is closed.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        let mut tasks = guard(&self.tasks);
        let tasks = tasks.as_mut()?;
        while tasks.try_join_next().is_some() {}
        Some(tasks.spawn_on(work, &self.runtime))
    }

    fn watch_output(&self, path: &Path) {
        if let Some(rotation) = &self.rotation {
            rotation.watch(path);
        }
    }

    fn witness(&self, moment: Moment) {
        if let Some(witness) = self.settings.witness {
            witness(moment);
        }
    }
}

/// Closes the host when the last handle is dropped.
#[derive(Debug)]
struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        drop(guard(&self.0.tasks).take());
    }
}

/// Reports a failure for a task that a bug has ended, so that the protocol does not wait forever.
struct Answer<'a> {
    shared: &'a Shared,
    component: ComponentId,
    serial: u64,
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let detail = Failure::new("a bug in the agent ended this task (see the agent's log)");
            let (component, serial) = (self.component, self.serial);
            self.shared.tell(HostOutcome::Failed { component, serial, detail: detail.detail().into() });
        }
    }
}

/// What is guarded is never left half changed, so a panic elsewhere does not damage it.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
