//! The directory of one component.
//!
//! It exists from the component's first task until it is purged. The component itself works in `home`; the rest belongs
//! to the host, so that a program that cleans up its own directory does not delete the host's records.

use super::{
    command::Step,
    failure::{Attempt, Failure},
};
use protocol::ComponentId;
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

/// Suffix of the directory of a component that is being removed.
const LEAVING: &str = "leaving";
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

    /// Removes it, so that after a crash it either exists completely or not at all.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        let leaving = self.directory.with_extension(LEAVING);
        fs::rename(&self.directory, &leaving)
            .and_then(|()| self.directory.parent().map_or(Ok(()), sync))
            .and_then(|()| fs::remove_dir_all(&leaving))
            .attempt(format!("remove the directory {}", self.directory.display()))
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

/// Syncs the entries of a directory.
pub(super) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
