//! The journal: all inputs, in order, recorded before anything acts on them.
//!
//! Records are bytes without meaning here. This module guarantees their durability: a record for which
//! [`Journal::commit`] has returned is there after a crash, under its number, unchanged; one for which it has not
//! returned is there completely or not at all. An incomplete tail is truncated and reported; a damaged record in the
//! middle is an error.
//!
//! | file | holds |
//! |---|---|
//! | `frame` | one commit as bytes: header, chain, records |
//! | `segment` | one preallocated file of frames, and how it is read back |
//! | `snapshot` | a state that makes older segments unnecessary |
//! | `recovery` | reading all of them, for owners and for tools that only read |
//!
//! A preallocated file and one `fdatasync` were chosen over an embedded database because they have the shortest commit
//! of those measured, and because a few hundred lines can be tested at every byte.

mod frame;
mod recovery;
mod segment;
mod snapshot;

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use self::frame::{BODY_MAX, FrameBuilder};
use self::segment::{SEGMENT_HEADER, Segment, SegmentHead};
use crate::data_directory::{DataDirectory, UNFINISHED, sync_directory};
use crate::error::Error;

pub use self::frame::Chain;
pub use self::recovery::{Cut, Recovery, history, read};
pub use self::snapshot::Snapshot;

/// The directory of the journal inside a data directory.
pub const ROOM: &str = "journal";
/// The maximum length of a record; a longer one is refused with [`Error::RecordTooLong`].
pub const RECORD_BYTES_MAX: usize = 16 << 20;

/// The number of a record in the journal: 1, 2, 3, … without gaps, never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct RecordNumber(pub u64);

impl RecordNumber {
    /// The number after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for RecordNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}", self.0)
    }
}

/// A record that was read back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its number.
    pub number: RecordNumber,
    /// The owner's bytes.
    pub bytes: Vec<u8>,
}

/// A position in the files, for error messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Position {
    /// The file.
    pub path: PathBuf,
    /// Offset in bytes.
    pub byte: u64,
    /// The record that is there, or should be.
    pub record: RecordNumber,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: byte {}, {}", self.path.display(), self.byte, self.record)
    }
}

/// What the journal keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The length of a segment; a commit that does not fit gets a longer one.
    pub segment_bytes: usize,
    /// How many snapshots are kept, at least one, with all records after the oldest of them. With two, a damaged one
    /// can be skipped.
    pub snapshots_kept: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { segment_bytes: 1 << 20, snapshots_kept: 2 }
    }
}

/// A journal open for writing.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    settings: Settings,
    head: SegmentHead,
    file: File,
    /// Offset of the next frame in the file.
    end: usize,
    committed: RecordNumber,
    chain: Chain,
    group: FrameBuilder,
    /// Set while the contents of the disk are unknown; see [`Error::JournalClosed`].
    closed: bool,
}

impl Journal {
    /// Opens the journal of a data directory, or creates one, and returns its contents. An incomplete tail is
    /// truncated, which the result reports; a corrupt middle is refused with its position.
    pub fn open(data: &DataDirectory, settings: Settings) -> Result<(Self, Recovery), Error> {
        let directory = data.room(ROOM)?;
        remove_unfinished(&directory)?;
        let (recovery, last) = recovery::walk(&directory)?;
        let (head, file, end, next, chain) = match last {
            Some(segment) => {
                let file = settle_tail(&segment)?;
                (segment.head, file, segment.end, segment.next, segment.chain)
            }
            None => {
                let first = RecordNumber::default().next();
                let (head, file) = SegmentHead::create(&directory, first, Chain::EMPTY, settings.segment_bytes_min())?;
                (head, file, SEGMENT_HEADER, first, Chain::EMPTY)
            }
        };
        let committed = RecordNumber(next.0 - 1);
        let group = FrameBuilder::new();
        let mut journal = Self { directory, settings, head, file, end, committed, chain, group, closed: false };
        // A snapshot ends a segment; a crash may have happened between the two.
        let snapshot_here = recovery.snapshot.as_ref().is_some_and(|snapshot| snapshot.number == committed);
        if snapshot_here && journal.head.first != next {
            journal.begin_segment(0)?;
        }
        Ok((journal, recovery))
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The last durable record.
    pub fn committed(&self) -> RecordNumber {
        self.committed
    }

    /// The hash chain up to the last durable record.
    pub fn chain(&self) -> Chain {
        self.chain
    }

    /// Adds a record to the group that the next [`commit`](Self::commit) makes durable, and returns its number. A group
    /// that has grown too long for one frame is committed on the way.
    pub fn append(&mut self, record: &[u8]) -> Result<RecordNumber, Error> {
        self.refuse_if_closed()?;
        if record.len() > RECORD_BYTES_MAX {
            return Err(Error::RecordTooLong { bytes: record.len(), bytes_max: RECORD_BYTES_MAX });
        }
        if self.group.body_length() + FrameBuilder::cost(record) + frame::ALIGNMENT > BODY_MAX {
            self.commit()?;
        }
        self.group.push(record);
        Ok(RecordNumber(self.committed.0 + u64::from(self.group.count())))
    }

    /// Makes everything appended durable with one sync, and returns the last number. After an error nothing appended
    /// since the last commit counts, and the journal must be reopened.
    pub fn commit(&mut self) -> Result<RecordNumber, Error> {
        self.refuse_if_closed()?;
        if self.group.count() > 0 {
            self.closed = true;
            self.write_group()?;
            self.closed = false;
        }
        Ok(self.committed)
    }

    /// Takes a snapshot of the owner's state after all committed records, then removes segments and snapshots that are
    /// no longer needed. Nothing is removed before the snapshot is durable.
    pub fn snapshot(&mut self, state: &[u8]) -> Result<(), Error> {
        self.refuse_if_closed()?;
        if self.group.count() > 0 {
            return Err(Error::Uncommitted { committed: self.committed });
        }
        snapshot::write(&self.directory, self.committed, self.chain, state)?;
        // A snapshot ends a segment: if the next segment cannot be created, nothing more may be written to this one.
        self.closed = true;
        if self.head.first != self.committed.next() {
            self.begin_segment(0)?;
        }
        self.remove_superseded()?;
        self.closed = false;
        Ok(())
    }

    fn refuse_if_closed(&self) -> Result<(), Error> {
        if self.closed { Err(Error::JournalClosed) } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<(), Error> {
        if self.end + self.group.sealed_length() > self.head.allocated {
            self.begin_segment(self.group.sealed_length())?;
        }
        let (bytes, chain) = self.group.seal(self.committed.next(), &self.chain, &self.head.salt);
        self.file
            .write_all_at(bytes, self.end as u64)
            .and_then(|()| self.file.sync_data())
            .map_err(Error::file("write", &self.head.path))?;
        self.end += bytes.len();
        self.chain = chain;
        self.committed.0 += u64::from(self.group.count());
        self.group.clear();
        Ok(())
    }

    fn begin_segment(&mut self, room: usize) -> Result<(), Error> {
        let length = self.settings.segment_bytes_min().max(SEGMENT_HEADER + room);
        let (head, file) = SegmentHead::create(&self.directory, self.committed.next(), self.chain, length)?;
        (self.head, self.file, self.end) = (head, file, SEGMENT_HEADER);
        Ok(())
    }

    fn remove_superseded(&self) -> Result<(), Error> {
        let snapshots = snapshot::list(&self.directory)?;
        let kept = self.settings.snapshots_kept.max(1);
        let Some(superseded) = snapshots.len().checked_sub(kept) else { return Ok(()) };
        let oldest_kept = snapshots[superseded].0;
        // Snapshots first: a snapshot without the records after it must never be all that is left.
        for (_, path) in &snapshots[..superseded] {
            fs::remove_file(path).map_err(Error::file("remove", path))?;
        }
        sync_directory(&self.directory)?;
        if superseded == 0 {
            return Ok(());
        }
        let segments = segment::list(&self.directory)?;
        for pair in segments.windows(2) {
            let [(_, path), (next, _)] = pair else { continue };
            if *next <= oldest_kept.next() {
                fs::remove_file(path).map_err(Error::file("remove", path))?;
            }
        }
        sync_directory(&self.directory)
    }
}

impl Settings {
    fn segment_bytes_min(&self) -> usize {
        self.segment_bytes.max(SEGMENT_HEADER + frame::HEADER)
    }
}

/// Truncates an incomplete tail, and writes the last frame again: its sync may never have returned, and from now on it
/// counts.
fn settle_tail(segment: &Segment) -> Result<File, Error> {
    let path = &segment.head.path;
    let settle = || {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        if segment.torn > 0 {
            file.seek(SeekFrom::Start(segment.end as u64))?;
            segment::write_zeroes(&mut file, segment.head.allocated.saturating_sub(segment.end))?;
        }
        if let Some((at, bytes)) = &segment.last_frame {
            file.write_all_at(bytes, *at as u64)?;
        }
        file.sync_all()?;
        Ok(file)
    };
    settle().map_err(Error::file("truncate the tail of", path))
}

/// Removes temporary files that a crash left behind.
fn remove_unfinished(directory: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(Error::file("list", directory))? {
        let path = entry.map_err(Error::file("list", directory))?.path();
        if path.extension().is_some_and(|extension| extension == UNFINISHED) {
            fs::remove_file(&path).map_err(Error::file("remove", &path))?;
        }
    }
    Ok(())
}

/// Files named `<prefix><number>.<extension>`, in order of their numbers.
fn list(directory: &Path, prefix: &str, extension: &str) -> Result<Vec<(RecordNumber, PathBuf)>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(Error::file("list", directory))? {
        let path = entry.map_err(Error::file("list", directory))?.path();
        if let Some(number) = number_in(&path, prefix, extension) {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

fn number_in(path: &Path, prefix: &str, extension: &str) -> Option<RecordNumber> {
    let name = path.file_name()?.to_str()?;
    let digits = name.strip_prefix(prefix)?.strip_suffix(extension)?.strip_suffix('.')?;
    digits.parse().ok().map(RecordNumber)
}
