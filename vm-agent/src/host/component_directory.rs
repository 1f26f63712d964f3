//! The directory of one component.
//!
//! It exists from the component's first task until it is purged. The component itself works in `home`; the rest belongs
//! to the host, so that a program that cleans up its own directory does not delete the host's records.
//!
//! It is scratch: it ends with the component. For each name the directory of the last purged component is kept below
//! `previous`, so that the logs of what failed can still be read. What must outlive a component is in `data`.

use super::{
    command::Step,
    data::file_name,
    failure::{Attempt, Failure},
};
use protocol::{ComponentId, Name};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

/// Suffix of the directory of a component that is being removed.
const LEAVING: &str = "leaving";
/// The directories of the last purged component of each name.
const PREVIOUS: &str = "previous";
/// Maximum number of those; the oldest are removed.
const PREVIOUS_MAX: usize = 100;
/// Suffix of the mark of a running step.
const MARK: &str = "mark";

/// The directory of one component.
#[derive(Clone, Debug)]
pub(super) struct ComponentDirectory {
    directory: PathBuf,
}

impl ComponentDirectory {
    /// The directory of this component, whether it exists or not.
    pub(super) fn of(component: ComponentId, host_directory: &Path) -> Self {
        Self { directory: host_directory.join(component.0.to_string()) }
    }

    /// The directory of the last purged component of a name, whether it exists or not.
    pub(super) fn previous(key: &Name, host_directory: &Path) -> Self {
        Self { directory: host_directory.join(PREVIOUS).join(file_name(key)) }
    }

    /// All components that have a directory. The remains of interrupted removals are removed.
    pub(super) fn all(host_directory: &Path) -> io::Result<Vec<ComponentId>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(host_directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == LEAVING) {
                // Nothing waits for it: what cannot be removed is only untidy.
                if let Err(error) = fs::remove_dir_all(&path) {
                    tracing::warn!(path = %path.display(), %error, "cannot remove the remains of a purged component");
                }
            } else if let Some(number) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) {
                found.push(ComponentId(number));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Creates it, if it does not exist. It becomes durable with the first record: before that, nothing relies on it.
    pub(super) fn create(&self) -> Result<(), Failure> {
        fs::create_dir_all(self.home()).attempt(format!("create the directory {}", self.directory.display()))
    }

    pub(super) fn exists(&self) -> bool {
        self.directory.is_dir()
    }

    /// Keeps it as the previous one of this name, in place of an older one. After a crash it either exists completely or
    /// not at all.
    pub(super) fn set_aside(&self, key: &Name, host_directory: &Path) -> Result<(), Failure> {
        let Self { directory: kept } = Self::previous(key, host_directory);
        let leaving = self.directory.with_extension(LEAVING);
        let all = host_directory.join(PREVIOUS);
        let moved = || {
            fs::create_dir_all(&all)?;
            if kept.exists() {
                fs::rename(&kept, &leaving)?;
            }
            fs::rename(&self.directory, &kept)?;
            sync(&all)?;
            sync(host_directory)
        };
        moved().attempt(format!("set aside the directory {}", self.directory.display()))?;
        let older = if leaving.exists() { fs::remove_dir_all(&leaving) } else { Ok(()) };
        if let Err(error) = older.and_then(|()| remove_oldest(&all)) {
            // Nothing waits for it: what cannot be removed is only untidy.
            tracing::warn!(path = %all.display(), %error, "cannot remove the remains of purged components");
        }
        Ok(())
    }

    /// The component's own directory.
    pub(super) fn home(&self) -> PathBuf {
        self.directory.join("home")
    }

    /// The host's record of it.
    pub(super) fn record(&self) -> PathBuf {
        self.directory.join("record.json")
    }

    /// The last task that was done.
    pub(super) fn done(&self) -> PathBuf {
        self.directory.join("done.json")
    }

    /// Secret texts.
    pub(super) fn secrets(&self) -> PathBuf {
        self.directory.join("secrets.json")
    }

    /// The file to which commands write values.
    pub(super) fn values(&self) -> PathBuf {
        self.directory.join("values")
    }

    /// The log of its programs.
    pub(super) fn output(&self) -> PathBuf {
        self.directory.join("output.log")
    }

    /// The output of the last check.
    pub(super) fn check_output(&self) -> PathBuf {
        self.directory.join("check.log")
    }

    /// What the last `identify` command printed.
    pub(super) fn identify_output(&self) -> PathBuf {
        self.directory.join("identify.log")
    }

    /// What it sees as the machine's temporary directory, if it has one of its own.
    pub(super) fn temporary(&self) -> PathBuf {
        self.directory.join("temporary")
    }

    /// The process of a running step.
    pub(super) fn mark(&self, step: Step) -> PathBuf {
        self.directory.join(format!("{step}.{MARK}"))
    }

    /// The marks of all steps that are running, or were when the agent was killed.
    pub(super) fn marks(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let is_mark = |path: &PathBuf| path.extension().is_some_and(|extension| extension == MARK);
        entries.map(|entry| entry.path()).filter(is_mark).collect()
    }
}

/// Removes the oldest directories of purged components, if there are too many.
fn remove_oldest(all: &Path) -> io::Result<()> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(all)? {
        let entry = entry?;
        kept.push((entry.metadata()?.modified()?, entry.path()));
    }
    kept.sort();
    let surplus = kept.len().saturating_sub(PREVIOUS_MAX);
    kept[..surplus].iter().try_for_each(|(_, path)| fs::remove_dir_all(path))
}

/// Syncs the entries of a directory.
pub(super) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
