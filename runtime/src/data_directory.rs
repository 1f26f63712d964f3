//! The data directory of one program: everything that must outlive it.
//!
//! Two programs on one data directory would corrupt each other's journal, so the directory is locked for as long as its
//! owner lives; the lock ends with the process, however the process ends. What is inside belongs to the journal and to
//! identity. The two ways in which both write a whole file are here too, because they must agree on what *durable*
//! means: the bytes are synced, then the name is, and an incomplete file never has its final name.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};

use crate::error::{Attempt, Error};
use crate::peer::Incarnation;

const LOCK: &str = "lock";
const INCARNATION: &str = "incarnation";
/// The extension of a file that does not have its final name yet.
pub(crate) const UNFINISHED: &str = "new";

/// A data directory that only this process has open.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    /// Held, never read: dropping the file releases the lock.
    _lock: File,
}

impl DataDirectory {
    /// Creates the directory if it does not exist (readable by its owner only) and locks it.
    ///
    /// Fails with [`Error::InUse`] while another program has it open; nothing is changed then.
    pub fn open(path: &Path) -> Result<Self, Error> {
        create_private(path)?;
        let name = path.join(LOCK);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&name)
            .map_err(Error::file("open", &name))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Error::InUse { directory: path.to_owned() }),
            Err(TryLockError::Error(source)) => Err(Error::file("lock", &name)(source)),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The incarnation of this directory: generated when it is first asked for, and kept.
    pub fn incarnation(&self) -> Result<Incarnation, Error> {
        let path = self.path.join(INCARNATION);
        let damaged = || Error::Damaged { path: path.clone() };
        match fs::read(&path) {
            Ok(bytes) => bytes.try_into().map(u64::from_le_bytes).map(Incarnation).map_err(|_| damaged()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut drawn = [0; 8];
                SystemRandom::new().fill(&mut drawn).map_err(|_| damaged())?;
                replace_file(&path, &drawn)?;
                Ok(Incarnation(u64::from_le_bytes(drawn)))
            }
            Err(error) => Err(Error::file("read", &path)(error)),
        }
    }

    /// A subdirectory for one purpose, created if it does not exist.
    pub fn room(&self, name: &str) -> Result<PathBuf, Error> {
        let room = self.path.join(name);
        create_private(&room)?;
        Ok(room)
    }
}

fn create_private(path: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(Error::file("create", path))
}

/// Replaces a file atomically, readable by its owner only: the old one stays until the new one is durable.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_aside(path, |file| file.write_all(bytes)).map(drop)
}

/// Writes a temporary file, syncs it, and only then renames it to `path`; returns the open file. A failure leaves no
/// trace.
pub(crate) fn write_aside(path: &Path, fill: impl FnOnce(&mut File) -> std::io::Result<()>) -> Result<File, Error> {
    let aside = path.with_extension(UNFINISHED);
    let attempt: Attempt = Error::file("write", path);
    let written = (|| {
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        fill(&mut file)?;
        file.sync_all()?;
        fs::rename(&aside, path)?;
        Ok(file)
    })();
    match written {
        Ok(file) => {
            sync_directory(path.parent().unwrap_or(Path::new(".")))?;
            Ok(file)
        }
        Err(source) => {
            // The first error is reported; a left-over file is overwritten by the next attempt.
            let _ = fs::remove_file(&aside);
            Err(attempt(source))
        }
    }
}

/// Makes created, renamed and removed names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(Error::file("sync", path))
}
