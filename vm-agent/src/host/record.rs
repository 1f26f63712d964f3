//! What the host remembers of a component across its own death.
//!
//! Two files, for two sorts of memory. The *record* (ports, announced values, the run) must survive a loss of power: the
//! agent's journal relies on it, so it is synced before anything is built on it. The note of the last task that was
//! *done* must only survive the agent: a loss of power ends every process anyway, and a task that is then carried out
//! again finds nothing that it could do twice. The same holds for the mark of a command that is under way.

use super::{
    failure::{Attempt, Failure},
    place::{Place, sync},
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
    path::Path,
};

/// A file of ours is never longer: a recipe, the values of a few hundred bindings, and room to spare.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What must survive a loss of power.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The ports it was given, by what they were given for. It keeps them for as long as it exists.
    #[serde(default)]
    pub(super) ports: BTreeMap<String, u16>,
    /// What `Prepare` has handed out, once it is done.
    #[serde(default)]
    pub(super) announced: Option<Values>,
    /// What was started last and has not been stopped. It may have died.
    #[serde(default)]
    pub(super) run: Option<Run>,
}

/// One run of a component: all that is needed to watch it, to tell it something and to stop it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    /// The start task.
    pub(super) serial: u64,
    /// What people call the component.
    pub(super) name: Name,
    /// How it was started and is to be stopped.
    pub(super) recipe: Recipe,
    /// The imports of its kind.
    pub(super) imports: Vec<Name>,
    /// What it may use.
    pub(super) bindings: Vec<HeldBinding>,
    /// What this start has handed out.
    pub(super) values: Values,
    /// The process that was started, of a process or of a start script.
    pub(super) process: Option<ProcessMark>,
}

/// The last task that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) serial: u64,
    pub(super) values: Values,
}

/// A file of the host that cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("cannot be read: {0}")]
pub(super) struct Damaged(String);

impl Record {
    /// Reads it; an empty one where there is none yet.
    pub(super) fn load(place: &Place) -> Result<Self, Damaged> {
        read(&place.record()).map(Option::unwrap_or_default)
    }

    /// Writes it, durably, and with it the place it lies in.
    ///
    /// The first one is written straight to its place: until it is durable, nothing is built on it, and one that was torn
    /// by a loss of power is set aside like any that is damaged. That is one wait for the disk where a rename makes it two.
    pub(super) async fn save(&self, place: &Place) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(self).expect("maps of a record have texts as keys");
        let path = place.record();
        // Waiting for the disk must not keep other components waiting.
        let written = tokio::task::spawn_blocking(move || {
            let is_first = !path.exists();
            if is_first {
                write(&path, &bytes, true)?;
            } else {
                replace(&path, &bytes, true)?;
            }
            // The place itself became durable with its first record.
            let mut directories = path.ancestors().skip(1).take(if is_first { 2 } else { 1 });
            directories.try_for_each(sync)
        });
        let written = written.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        written.attempt(format!("write {}", place.record().display()))
    }
}

impl Run {
    /// Whether it is a process that runs for as long as the component does.
    pub(super) fn is_process(&self) -> bool {
        matches!(self.recipe.operations.start, Some(Start::Process(_)))
    }

    /// Whether what was started may still be there. Of a script only the boot is known; its checks know the rest.
    pub(super) fn still_runs(&self) -> bool {
        match &self.process {
            Some(process) if self.is_process() => process.is_alive(),
            Some(process) => process.is_of_this_boot(),
            None => !self.is_process(),
        }
    }
}

impl Done {
    /// Reads it. One that is damaged counts as none: the task is then carried out again.
    pub(super) fn load(place: &Place) -> Option<Self> {
        read(&place.done()).ok().flatten()
    }

    pub(super) fn save(&self, place: &Place) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(self).expect("maps of values have texts as keys");
        replace(&place.done(), &bytes, false).attempt(format!("write {}", place.done().display()))
    }
}

/// The texts that nobody is shown. If they cannot be read, nothing is known to be secret.
pub(super) fn secrets(place: &Place) -> BTreeSet<String> {
    read(&place.secrets()).ok().flatten().unwrap_or_default()
}

/// Writes the texts that nobody is shown, for nobody else to read.
pub(super) fn save_secrets(place: &Place, texts: &BTreeSet<String>) -> Result<(), Failure> {
    let bytes = serde_json::to_vec(texts).expect("a list of texts can be written");
    replace(&place.secrets(), &bytes, false).attempt(format!("write {}", place.secrets().display()))
}

impl ProcessMark {
    /// Reads the mark of a command that was under way. One that is damaged is from before a loss of power.
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

/// Puts a file in place whole: whoever reads it sees the old one or the new one.
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
