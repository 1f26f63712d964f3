//! What the host remembers of a component across restarts.
//!
//! There are two files, with different durability. The *record* (ports, announced values, the run) must survive a power
//! failure: the agent's journal relies on it, so it is synced before anything is built on it. The note of the last task
//! that was *done* must survive only the agent: a power failure ends every process anyway, and a task that is then
//! carried out again finds nothing that it could do twice. The same is true of the mark of a running command.

use super::{
    component_directory::{ComponentDirectory, sync},
    failure::{Attempt, Failure},
    process::ProcessMark,
};
use protocol::{HeldBinding, Name, Values};
use recipe::{Recipe, Start};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Maximum size of these files: a recipe, the values of a few hundred bindings, and some reserve.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What must survive a power failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Its ports, by what they were assigned for. It keeps them for as long as it exists.
    #[serde(default)]
    pub(super) ports: BTreeMap<String, u16>,
    /// The values that `Prepare` produced, once it is done.
    #[serde(default)]
    pub(super) announced: Option<Values>,
    /// What was started last and has not been stopped. It may have died.
    #[serde(default)]
    pub(super) run: Option<Run>,
    /// The name whose data it uses, once it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Name>,
}

/// One run of a component: everything that is needed to watch it, to rebind it and to stop it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    /// The start task.
    pub(super) serial: u64,
    /// The name of the component.
    pub(super) name: Name,
    /// How it was started and is to be stopped.
    pub(super) recipe: Recipe,
    /// The imports of its kind.
    pub(super) imports: Vec<Name>,
    /// The bindings that it may use.
    pub(super) bindings: Vec<HeldBinding>,
    /// The values that this start produced.
    pub(super) values: Values,
    /// The process that was started: the component's own, or that of a start script.
    pub(super) process: Option<ProcessMark>,
    /// The cgroups that enforce its limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) cgroups: Vec<PathBuf>,
}

/// The last task that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) serial: u64,
    pub(super) values: Values,
}

/// A file of the host that cannot be decoded.
#[derive(Debug, thiserror::Error)]
#[error("cannot be read: {0}")]
pub(super) struct Damaged(String);

impl Record {
    /// Reads it; an empty record if there is none yet.
    pub(super) fn load(directory: &ComponentDirectory) -> Result<Self, Damaged> {
        read(&directory.record()).map(Option::unwrap_or_default)
    }

    /// Writes it durably, and with it the directory that it is in. The first record is written directly to its final
    /// name: until it is durable, nothing is built on it, and one that a power failure left incomplete is set aside
    /// like any damaged one. This needs one sync where a rename needs two.
    pub(super) async fn save(&self, directory: &ComponentDirectory) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(self).expect("maps of a record have texts as keys");
        let path = directory.record();
        // Waiting for the disk must not block other components.
        let written = tokio::task::spawn_blocking(move || {
            let is_first = !path.exists();
            if is_first {
                write(&path, &bytes, true)?;
            } else {
                replace(&path, &bytes, true)?;
            }
            // The directory became durable with its first record.
            let mut directories = path.ancestors().skip(1).take(if is_first { 2 } else { 1 });
            directories.try_for_each(sync)
        });
        let written = written.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        written.attempt(format!("write {}", directory.record().display()))
    }
}

impl Run {
    /// Whether it is a process that keeps running.
    pub(super) fn is_process(&self) -> bool {
        matches!(self.recipe.operations.start, Some(Start::Process(_)))
    }

    /// Whether what was started may still be running. Of a script only the boot is known; its checks know the rest.
    pub(super) fn still_runs(&self) -> bool {
        match &self.process {
            Some(process) if self.is_process() => process.is_alive(),
            Some(process) => process.is_of_this_boot(),
            None => !self.is_process(),
        }
    }
}

impl Done {
    /// Reads it. A damaged one counts as none: the task is then carried out again.
    pub(super) fn load(directory: &ComponentDirectory) -> Option<Self> {
        read(&directory.done()).ok().flatten()
    }

    pub(super) fn save(&self, directory: &ComponentDirectory) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(self).expect("maps of values have texts as keys");
        replace(&directory.done(), &bytes, false).attempt(format!("write {}", directory.done().display()))
    }
}

/// The secret texts. If they cannot be read, no text is known to be secret.
pub(super) fn secrets(directory: &ComponentDirectory) -> BTreeSet<String> {
    read(&directory.secrets()).ok().flatten().unwrap_or_default()
}

/// Writes the secret texts, readable only by their owner.
pub(super) fn save_secrets(directory: &ComponentDirectory, texts: &BTreeSet<String>) -> Result<(), Failure> {
    let bytes = serde_json::to_vec(texts).expect("a list of texts can be written");
    replace(&directory.secrets(), &bytes, false).attempt(format!("write {}", directory.secrets().display()))
}

impl ProcessMark {
    /// Reads the mark of a command that was running. A damaged one is from before a power failure.
    pub(crate) fn load(path: &Path) -> Option<Self> {
        read(path).ok().flatten()
    }

    pub(crate) fn save(&self, path: &Path) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(self).expect("a mark has only plain fields");
        replace(path, &bytes, false).attempt(format!("write {}", path.display()))
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Damaged> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Damaged(error.to_string())),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(|error| Damaged(error.to_string()))?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| Damaged(error.to_string()))
}

/// Replaces a file atomically: readers see the old one or the new one.
fn replace(path: &Path, bytes: &[u8], durably: bool) -> io::Result<()> {
    let aside = path.with_extension("new");
    write(&aside, bytes, durably)?;
    fs::rename(&aside, path)
}

fn write(path: &Path, bytes: &[u8], durably: bool) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    if durably { file.sync_all() } else { Ok(()) }
}
