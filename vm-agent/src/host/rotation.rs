//! Watches the sizes of output files, and rotates them.
//!
//! The kernel reports once that a file was written to. A while later its size is checked, and only then is the kernel
//! asked again. So a silent component costs nothing, and a verbose one costs one check of its file each second.

use super::{descriptor::readable, output};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use std::{
    collections::BTreeMap,
    io,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::io::unix::AsyncFd;

/// From the first notification to the check of the size.
const PAUSE: Duration = Duration::from_secs(1);

/// The watched files. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Rotation {
    kernel: Arc<AsyncFd<OwnedFd>>,
    files: Arc<Mutex<BTreeMap<i32, PathBuf>>>,
    bytes_max: u64,
}

impl Rotation {
    pub(super) fn open(bytes_max: u64) -> io::Result<Self> {
        let kernel = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let kernel = Arc::new(readable(kernel)?);
        Ok(Self { kernel, files: Arc::default(), bytes_max })
    }

    /// Watches this file until it is removed.
    pub(super) fn watch(&self, path: &Path) {
        let flags = WatchFlags::MODIFY | WatchFlags::ONESHOT;
        match inotify::add_watch(self.kernel.get_ref(), path, flags) {
            Ok(number) => drop(self.files().insert(number, path.to_owned())),
            Err(rustix::io::Errno::NOENT) => {}
            Err(error) => tracing::warn!(path = %path.display(), %error, "an output file may grow without limit"),
        }
    }

    /// Rotates all watched files, forever.
    pub(super) async fn run(self) {
        loop {
            let Ok(mut ready) = self.kernel.readable().await else { return };
            let written = self.written();
            ready.clear_ready();
            if written.is_empty() {
                continue;
            }
            tokio::time::sleep(PAUSE).await;
            for path in written {
                match output::rotate(&path, self.bytes_max) {
                    Ok(()) => self.watch(&path),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        tracing::warn!(path = %path.display(), %error, "cannot truncate an output file");
                        self.watch(&path);
                    }
                }
            }
        }
    }

    /// The files that the kernel has reported. They are not watched any longer.
    fn written(&self) -> Vec<PathBuf> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(self.kernel.get_ref(), &mut buffer);
        let mut paths = Vec::new();
        while let Ok(event) = reader.next() {
            // The removal of a file is reported too, by an event of its own.
            if let Some(path) = self.files().remove(&event.wd())
                && event.events().contains(ReadFlags::MODIFY)
            {
                paths.push(path);
            }
        }
        paths
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<i32, PathBuf>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
