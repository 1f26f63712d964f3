//! One file of the journal, and how it is read.
//!
//! A segment is filled with zeroes and synced before it gets its name. So a later commit changes no metadata (which
//! makes it one cheap `fdatasync`), a full disk shows when the segment is created and not in the middle of a frame, and
//! a segment with a bad header is never caused by a crash. Behind the last frame there are only zeroes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};

use super::frame::{self, ALIGNMENT, Chain, Header, Salt};
use super::{Position, Record, RecordNumber};
use crate::data_directory::write_aside;
use crate::error::Error;

/// Magic, version, spare, salt, number of the first record, allocated length, chain so far, checksum.
pub(super) const SEGMENT_HEADER: usize = 8 + 4 + 4 + 16 + 8 + 8 + 32 + 8;
const MAGIC: [u8; 8] = *b"HFsegmnt";
const VERSION: u32 = 1;
const PREFIX: &str = "segment-";
const EXTENSION: &str = "journal";
const NO_SALT: Salt = [0; 16];

/// The header of a segment.
#[derive(Clone, Debug)]
pub(super) struct SegmentHead {
    pub(super) path: PathBuf,
    pub(super) salt: Salt,
    /// The number of its first record.
    pub(super) first: RecordNumber,
    /// The allocated length of the file.
    pub(super) allocated: usize,
    /// The chain before that record.
    pub(super) chain: Chain,
}

impl SegmentHead {
    /// Creates an empty segment, durable when this returns.
    pub(super) fn create(
        directory: &Path,
        first: RecordNumber,
        chain: Chain,
        allocated: usize,
    ) -> Result<(Self, File), Error> {
        let path = directory.join(file_name(first));
        let mut salt = NO_SALT;
        SystemRandom::new()
            .fill(&mut salt)
            .map_err(|_| Error::file("generate a random number for", &path)(io::Error::other("no randomness")))?;
        let head = Self { path, salt, first, allocated, chain };
        let file = write_aside(&head.path, |file| {
            file.write_all(&head.to_bytes())?;
            write_zeroes(file, allocated - SEGMENT_HEADER)
        })?;
        Ok((head, file))
    }

    fn to_bytes(&self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0; SEGMENT_HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.salt);
        bytes[32..40].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[40..48].copy_from_slice(&(self.allocated as u64).to_le_bytes());
        bytes[48..80].copy_from_slice(&self.chain.0);
        let check = frame::check(&bytes[..80], &NO_SALT);
        bytes[80..88].copy_from_slice(&check);
        bytes
    }

    fn read(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let number = number_in(path).unwrap_or_default();
        let corrupt = |what| {
            let position = Position { path: path.to_owned(), byte: 0, record: number };
            Error::Corrupt { position, what }
        };
        let header = bytes.get(..SEGMENT_HEADER).ok_or_else(|| corrupt("the segment is shorter than its header"))?;
        if header[..8] != MAGIC || header[80..88] != frame::check(&header[..80], &NO_SALT) {
            return Err(corrupt("the header of the segment is damaged"));
        }
        let version = frame::number_u32(&header[8..12]);
        if version > VERSION {
            return Err(Error::Newer { path: path.to_owned(), found: version, known: VERSION });
        }
        let mut salt = NO_SALT;
        salt.copy_from_slice(&header[16..32]);
        let mut chain = [0; 32];
        chain.copy_from_slice(&header[48..80]);
        let first = RecordNumber(frame::number_u64(&header[32..40]));
        if first != number {
            return Err(corrupt("the segment's file name does not match its header"));
        }
        let allocated = usize::try_from(frame::number_u64(&header[40..48]))
            .map_err(|_| corrupt("the segment is larger than this machine can address"))?;
        Ok(Self { path: path.to_owned(), salt, first, allocated, chain: Chain(chain) })
    }
}

/// A segment in memory, with the contents of its frames.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) head: SegmentHead,
    pub(super) records: Vec<Record>,
    /// The number of the next record.
    pub(super) next: RecordNumber,
    /// The offset of the next frame.
    pub(super) end: usize,
    /// The offset and the bytes of the last complete frame, if there is one.
    pub(super) last_frame: Option<(usize, Vec<u8>)>,
    /// The chain after the last complete frame.
    pub(super) chain: Chain,
    /// Bytes behind the last complete frame that should be zero or are missing: the remains of an incomplete commit.
    pub(super) torn: usize,
}

impl Segment {
    /// Reads and verifies a whole segment. A bad frame that is followed by a complete one is refused here; whether a
    /// bad one at the end is an incomplete tail depends on whether a further segment exists, which the caller knows.
    pub(super) fn load(path: &Path) -> Result<Self, Error> {
        let bytes = fs::read(path).map_err(Error::file("read", path))?;
        let head = SegmentHead::read(path, &bytes)?;
        let mut segment = Self {
            records: Vec::new(),
            next: head.first,
            end: SEGMENT_HEADER,
            last_frame: None,
            chain: head.chain,
            torn: head.allocated.saturating_sub(bytes.len()),
            head,
        };
        while let Some(length) = segment.take_frame(&bytes) {
            segment.last_frame = Some((segment.end, bytes[segment.end..segment.end + length].to_vec()));
            segment.end += length;
        }
        let rest = &bytes[segment.end..];
        if let Some(last) = rest.iter().rposition(|byte| *byte != 0) {
            if follows_a_frame(rest, &segment.head.salt) {
                return Err(segment.corrupt("the record is damaged, and intact records follow it"));
            }
            segment.torn += last + 1;
        }
        Ok(segment)
    }

    /// The offset of the first frame that cannot be read.
    pub(super) fn end_position(&self) -> Position {
        Position { path: self.head.path.clone(), byte: self.end as u64, record: self.next }
    }

    pub(super) fn corrupt(&self, what: &'static str) -> Error {
        Error::Corrupt { position: self.end_position(), what }
    }

    fn take_frame(&mut self, bytes: &[u8]) -> Option<usize> {
        let header = Header::read(bytes.get(self.end..)?, &self.head.salt)?;
        let length = header.frame_length();
        let body = bytes.get(self.end + frame::HEADER..self.end + length)?;
        if header.first != self.next || !header.vouches_for(body, &self.chain) {
            return None;
        }
        for bytes in frame::records(body, header.count)? {
            self.records.push(Record { number: self.next, bytes });
            self.next = self.next.next();
        }
        self.chain = header.chain;
        Some(length)
    }
}

/// Whether there is a valid header anywhere behind the bad frame at the start of `rest`.
fn follows_a_frame(rest: &[u8], salt: &Salt) -> bool {
    (ALIGNMENT..rest.len()).step_by(ALIGNMENT).any(|at| Header::read(&rest[at..], salt).is_some())
}

pub(super) fn write_zeroes(mut to: impl Write, mut count: usize) -> io::Result<()> {
    let zeroes = [0; 64 << 10];
    while count > 0 {
        let some = count.min(zeroes.len());
        to.write_all(&zeroes[..some])?;
        count -= some;
    }
    Ok(())
}

fn file_name(first: RecordNumber) -> String {
    format!("{PREFIX}{:020}.{EXTENSION}", first.0)
}

fn number_in(path: &Path) -> Option<RecordNumber> {
    super::number_in(path, PREFIX, EXTENSION)
}

/// The segments of a journal in order, by their names.
pub(super) fn list(directory: &Path) -> Result<Vec<(RecordNumber, PathBuf)>, Error> {
    super::list(directory, PREFIX, EXTENSION)
}
