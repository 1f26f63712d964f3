//! The host: carries out tasks for components with real processes, files and ports.
//!
//! It does not know why something is started or stopped, nor how often a failed task is tried again: those are the
//! protocol's rules. It promises three things:
//!
//! - exactly one `Done` or `Failed` for each task, and after a `Failed` start nothing is left running;
//! - one `Died` when a component that was started has ended, and nothing of it is left running then either;
//! - never a second copy and never an orphan, whenever the agent is killed: processes outlive the agent, and are found
//!   again by more than their number.
//!
//! | file | what it is about |
//! |---|---|
//! | `component` | which steps a task takes; preparing, rebinding, purging |
//! | `start_up`, `shut_down`, `watch` | the life of a run |
//! | `survivors` | what an earlier life of the agent has left |
//! | `raze` | the end of all of them at once |
//! | `command`, `check` | running a command under a limit; asking whether a component is ready |
//! | `process`, `group`, `spawn`, `running`, `descriptor` | one process, its group, its birth, its end |
//! | `place`, `record` | where things lie; what is remembered |
//! | `values`, `ports` | what components are told and what they hand out |
//! | `output`, `rotation`, `secrets` | what their programs write, and what nobody is shown of it |
//! | `drift` | whether what runs is what was asked for |

mod check;
mod command;
mod component;
mod descriptor;
mod drift;
mod failure;
mod group;
mod output;
mod place;
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

pub use raze::raze;

use self::{
    component::{Component, Slot},
    failure::Failure,
    place::Place,
    ports::Ports,
    rotation::Rotation,
};
use protocol::{ComponentId, HostOutcome, HostTask, Work};
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

/// What a host must be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where components and what is remembered of them lie. Nobody else may use it.
    pub directory: PathBuf,
    /// The VM's address, at which its components are reached.
    pub host: IpAddr,
    /// Of each component's output so much is kept, twice.
    pub output_bytes_max: u64,
    /// Called at the moments in which being killed would be worst, for tests that want to be killed there.
    #[doc(hidden)]
    pub witness: Option<fn(Moment)>,
}

impl Settings {
    /// The usual ones.
    pub fn new(directory: impl Into<PathBuf>, host: IpAddr) -> Self {
        Self { directory: directory.into(), host, output_bytes_max: 1 << 20, witness: None }
    }
}

/// A moment of a start.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The process exists and is not written down.
    Spawned,
    /// It is written down and has not been let go.
    Recorded,
    /// It has been let go.
    Released,
    /// It is ready, and nobody has been told.
    Ready,
}

/// What can go wrong beside tasks.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host's directory cannot be used; nothing was changed.
    #[error("host directory {directory} cannot be {attempt}")]
    Directory {
        /// Which one.
        directory: PathBuf,
        /// What was to be done with it.
        attempt: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// Something is being done for it, which changes it. Happens on a good day.
    #[error("{component} is busy with a task (ask again when it is done)")]
    Busy {
        /// Which one.
        component: ComponentId,
    },
    /// The component has written nothing, or is gone. Happens on a good day.
    #[error("{component} has no output")]
    NoOutput {
        /// Which one.
        component: ComponentId,
        /// Why not.
        source: io::Error,
    },
}

/// Carries out tasks. Cheap to clone; when the last clone is dropped, nothing more is done and nothing more is told, but
/// components run on.
#[derive(Clone, Debug)]
pub struct Host {
    room: Arc<Room>,
    _door: Arc<Door>,
}

impl Host {
    /// Opens the directory and finds again what survived. `pending` are tasks whose outcome was never journalled: they are
    /// carried out, once, without leading to a second copy of anything.
    pub async fn open(
        settings: Settings,
        pending: Vec<HostTask>,
        outcomes: mpsc::UnboundedSender<HostOutcome>,
    ) -> Result<Self, Error> {
        let (room, places) = Room::open(settings, outcomes)?;
        let host = Self { _door: Arc::new(Door(room.clone())), room };
        if let Some(rotation) = &host.room.rotation {
            host.room.spawn(rotation.clone().run());
        }
        host.take_up(&places, pending).await;
        Ok(host)
    }

    /// Begins a task and returns at once. One `Done` or `Failed` follows, and after a start perhaps a `Died`.
    pub fn carry_out(&self, task: HostTask) {
        let room = self.room.clone();
        self.room.spawn(async move {
            let slot = room.slot(task.component);
            let mut slot = slot.lock().await;
            room.carry_out(&task, &mut slot).await;
        });
    }

    /// The end of what a component's programs have written, at most so many bytes.
    pub async fn logs(&self, component: ComponentId, bytes_max: usize) -> Result<String, Error> {
        let place = Place::of(component, &self.room.settings.directory);
        let read = tokio::task::spawn_blocking(move || output::history(&place, bytes_max));
        let read = read.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        read.map_err(|source| Error::NoOutput { component, source })
    }

    /// Ports first, so that nobody is given one that is taken; then each component by itself.
    async fn take_up(&self, places: &[ComponentId], pending: Vec<HostTask>) {
        let mut tasks: BTreeMap<ComponentId, Vec<HostTask>> = BTreeMap::new();
        for task in pending {
            tasks.entry(task.component).or_default().push(task);
        }
        let mut components: Vec<_> = places.iter().map(|id| (*id, tasks.remove(id).unwrap_or_default())).collect();
        for (id, _) in &components {
            Component::new(&self.room, *id, 0).keep_ports();
        }
        components.extend(tasks);
        for (id, tasks) in components {
            let room = self.room.clone();
            // Locked before anybody can ask for something.
            let mut slot = room.slot(id).lock_owned().await;
            self.room.spawn(async move {
                let serial = tasks.first().map_or(0, |task| task.serial);
                let component = Component::new(&room, id, serial);
                // It may have grown while nobody looked.
                let _ = output::rotate(&component.place.output(), room.settings.output_bytes_max);
                room.watch_output(&component.place.output());
                component.find_again(tasks.first(), &mut slot).await;
                for task in &tasks {
                    room.carry_out(task, &mut slot).await;
                }
            });
        }
    }
}

/// What all components of a host share.
#[derive(Debug)]
struct Room {
    settings: Settings,
    outcomes: mpsc::UnboundedSender<HostOutcome>,
    slots: Mutex<BTreeMap<ComponentId, Arc<tokio::sync::Mutex<Slot>>>>,
    ports: Arc<Ports>,
    /// Held while something is installed or purged: package managers do not like company.
    one_at_a_time: tokio::sync::Mutex<()>,
    rotation: Option<Rotation>,
    runtime: Handle,
    /// All that is under way; nothing once the host is closed.
    tasks: Mutex<Option<JoinSet<()>>>,
}

impl Room {
    /// Opens the directory, and finds out which components have a place there.
    fn open(
        mut settings: Settings,
        outcomes: mpsc::UnboundedSender<HostOutcome>,
    ) -> Result<(Arc<Self>, Vec<ComponentId>), Error> {
        let directory = settings.directory.clone();
        let error = |attempt| {
            let directory = directory.clone();
            move |source| Error::Directory { directory, attempt, source }
        };
        // Components work in their own directories and are told where they are: the path must be whole, and a text.
        settings.directory = std::path::absolute(&directory).map_err(error("found"))?;
        if settings.directory.to_str().is_none() {
            return Err(error("used: its name is not UTF-8")(io::ErrorKind::InvalidInput.into()));
        }
        std::fs::create_dir_all(&directory).map_err(error("made"))?;
        let places = Place::all(&directory).map_err(error("read"))?;
        let rotation = Rotation::open(settings.output_bytes_max);
        let rotation = rotation.inspect_err(|error| tracing::warn!(%error, "output files may grow without limit")).ok();
        let room = Self {
            ports: Arc::new(Ports::of(settings.host)),
            settings,
            outcomes,
            slots: Mutex::default(),
            one_at_a_time: tokio::sync::Mutex::default(),
            rotation,
            runtime: Handle::current(),
            tasks: Mutex::new(Some(JoinSet::new())),
        };
        Ok((Arc::new(room), places))
    }

    async fn carry_out(self: &Arc<Self>, task: &HostTask, slot: &mut Slot) {
        let (component, serial) = (task.component, task.serial);
        let _answer = Answer { room: self, component, serial };
        let carried_out = Component::new(self, component, serial).carry_out(task, slot).await;
        tracing::debug!(%component, serial, operation = %task.work.operation(), done = carried_out.is_ok(), "task");
        if task.work == Work::Purge && carried_out.is_ok() {
            guard(&self.slots).remove(&component);
        }
        self.tell(match carried_out {
            Ok(values) => HostOutcome::Done { component, serial, values },
            Err(failure) => {
                let failure = Component::new(self, component, serial).concealed(failure);
                HostOutcome::Failed { component, serial, detail: failure.detail().into() }
            }
        });
    }

    fn slot(&self, component: ComponentId) -> Arc<tokio::sync::Mutex<Slot>> {
        guard(&self.slots).entry(component).or_default().clone()
    }

    /// Whether anybody still listens is not this room's affair.
    fn tell(&self, outcome: HostOutcome) {
        let _ = self.outcomes.send(outcome);
    }

    /// Does something beside everything else, until it ends or the host is closed.
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

/// Closes the room when the last host is dropped.
#[derive(Debug)]
struct Door(Arc<Room>);

impl Drop for Door {
    fn drop(&mut self) {
        drop(guard(&self.0.tasks).take());
    }
}

/// Answers for a task that a bug has cut short: whoever asked must not wait for ever.
struct Answer<'a> {
    room: &'a Room,
    component: ComponentId,
    serial: u64,
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let detail = Failure::new("a bug in the agent ended this task (see the agent's log)");
            let (component, serial) = (self.component, self.serial);
            self.room.tell(HostOutcome::Failed { component, serial, detail: detail.detail().into() });
        }
    }
}

/// What is guarded is never left half changed, so a panic elsewhere does no harm to it.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
