//! Reading a journal: the newest intact snapshot, the records after it, and the incomplete tail that a crash may have
//! left.
//!
//! The same code serves the owner, which continues from here, and tools that only read (`replay`, `audit`). It changes
//! nothing; truncating an incomplete tail is done by the owner, in [`super::Journal::open`].

use std::path::{Path, PathBuf};

use super::segment::{self, Segment};
use super::snapshot::{self, Snapshot};
use super::{Chain, Position, Record, RecordNumber};
use crate::error::Error;

/// The contents of a journal.
#[derive(Debug)]
pub struct Recovery {
    /// The newest snapshot that can be read.
    pub snapshot: Option<Snapshot>,
    /// Every record after the snapshot, in order and without a gap.
    pub records: Vec<Record>,
    /// What was truncated, or would be, because a commit did not complete. `commit` never returned for these records.
    pub cut: Option<Cut>,
    /// Damaged snapshots that were skipped; an older one and a longer replay took their place.
    pub snapshots_damaged: Vec<PathBuf>,
    /// The hash chain at the end.
    pub chain: Chain,
}

/// The incomplete tail of a journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Where the last intact record ends.
    pub position: Position,
    /// How many bytes behind it are incomplete or missing.
    pub bytes: usize,
}

/// Reads the newest state and all records after it, without a lock and without changing anything. A journal in use can
/// be read too: what its owner is just writing is reported as cut.
pub fn read(directory: &Path) -> Result<Recovery, Error> {
    Ok(walk(directory)?.0)
}

/// Reads every record that is still kept, also from before the newest snapshot.
pub fn history(directory: &Path) -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    each_segment(directory, |segment| records.append(&mut segment.records))?;
    Ok(records)
}

/// Verifies everything; also returns the last segment, to which the owner continues to write.
pub(super) fn walk(directory: &Path) -> Result<(Recovery, Option<Segment>), Error> {
    let (snapshot, snapshots_damaged) = newest_snapshot(directory)?;
    let mut recovery =
        Recovery { snapshot: None, records: Vec::new(), cut: None, snapshots_damaged, chain: Chain::EMPTY };
    let from = snapshot.as_ref().map_or(RecordNumber(0), |(snapshot, _)| snapshot.number).next();

    let mut gap = None;
    let mut chain_there = None;
    let last = each_segment(directory, |segment| {
        if recovery.records.is_empty() && segment.head.first > from {
            gap.get_or_insert(Position { path: segment.head.path.clone(), byte: 0, record: from });
        }
        // A snapshot ends a segment, so its chain is found where a segment begins or where the last one ends.
        if segment.head.first == from {
            chain_there = Some(segment.head.chain);
        } else if segment.next == from {
            chain_there = Some(segment.chain);
        }
        recovery.records.extend(segment.records.drain(..).filter(|record| record.number >= from));
    })?;

    if let Some(position) = gap {
        return Err(Error::Corrupt { position, what: "records before this segment are missing" });
    }
    let Some(last) = last else {
        return match snapshot {
            Some((snapshot, _)) => Err(Error::Corrupt {
                position: Position { path: snapshot::path(directory, snapshot.number), byte: 0, record: from },
                what: "there is a snapshot, but no segment after it",
            }),
            None => Ok((recovery, None)),
        };
    };
    if let Some((found, chain)) = snapshot {
        if chain_there != Some(chain) {
            let path = snapshot::path(directory, found.number);
            let position = Position { path, byte: 0, record: from };
            return Err(Error::Corrupt { position, what: "the snapshot does not belong to these records" });
        }
        recovery.snapshot = Some(found);
    }
    recovery.chain = last.chain;
    recovery.cut = (last.torn > 0).then(|| Cut { position: last.end_position(), bytes: last.torn });
    Ok((recovery, Some(last)))
}

/// Visits each segment in turn, after checking that it continues the one before; returns the last.
fn each_segment(directory: &Path, mut show: impl FnMut(&mut Segment)) -> Result<Option<Segment>, Error> {
    let mut before: Option<Segment> = None;
    for (_, path) in segment::list(directory)? {
        let mut segment = Segment::load(&path)?;
        if let Some(before) = &before {
            // A further segment is created only after the last commit to this one has returned: nothing may be missing
            // here.
            if before.torn > 0 {
                return Err(before.corrupt("the record is damaged, and an intact segment follows it"));
            }
            if segment.head.first != before.next || segment.head.chain != before.chain {
                return Err(before.corrupt("the next segment does not continue this one"));
            }
        }
        show(&mut segment);
        before = Some(segment);
    }
    Ok(before)
}

type Found = Option<(Snapshot, Chain)>;

fn newest_snapshot(directory: &Path) -> Result<(Found, Vec<PathBuf>), Error> {
    let mut damaged = Vec::new();
    for (number, path) in snapshot::list(directory)?.into_iter().rev() {
        match snapshot::read(&path)? {
            Some((found, chain)) if found.number == number => return Ok((Some((found, chain)), damaged)),
            _ => damaged.push(path),
        }
    }
    Ok((None, damaged))
}
