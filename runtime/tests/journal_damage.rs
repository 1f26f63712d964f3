//! The journal with damaged bytes: every truncation, every flipped byte, and writes torn in the middle of a group.
//!
//! The rule: what is read is always a prefix of what was written, never anything else; and it may be shorter than what was
//! durable only where the damage is in the last commit, where it looks like a torn write.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use runtime::journal::{Journal, Recovery, Settings};
use runtime::{DataDirectory, Error};
use support::Scratch;

const GROUPS: [&[&str]; 4] = [&["one"], &["two", "three"], &["four"], &["five", "six", "seven"]];

#[test]
fn every_truncation_leaves_whole_groups_or_is_refused() {
    let (scratch, segment) = written("truncate");
    let whole = fs::read(&segment).unwrap();
    let ends = group_ends(&whole);
    for length in 0..whole.len() {
        fs::write(&segment, &whole[..length]).unwrap();
        match reopen(scratch.path()) {
            Err(Error::Corrupt { position, .. }) => {
                assert!(length < ends[0], "cut at {length}");
                assert_eq!(position.byte, 0);
            }
            Err(other) => panic!("cut at {length}: {other}"),
            Ok(recovery) => {
                let groups = ends.iter().filter(|end| **end <= length).count() - 1;
                assert_eq!(texts(&recovery), expected(groups), "cut at {length}");
                let cut = recovery.cut.expect("a missing tail is reported");
                assert_eq!(usize::try_from(cut.position.byte), Ok(ends[groups]), "cut at {length}");
                // What was cut stays cut, and a second open has nothing to report.
                assert_eq!(reopen(scratch.path()).unwrap().cut, None);
            }
        }
        fs::write(&segment, &whole).unwrap();
    }
}

#[test]
fn every_flipped_byte_in_the_middle_is_refused_and_at_the_end_is_cut() {
    let (scratch, segment) = written("flip");
    let whole = fs::read(&segment).unwrap();
    let ends = group_ends(&whole);
    let last_group = ends[ends.len() - 2];
    for at in 0..whole.len() {
        for mask in [0x01, 0x80, 0xFF] {
            let mut bytes = whole.clone();
            bytes[at] ^= mask;
            fs::write(&segment, &bytes).unwrap();
            match reopen(scratch.path()) {
                Err(Error::Corrupt { position, .. }) => {
                    assert!(at < last_group, "byte {at}");
                    // The position is the start of the damaged group.
                    let start = ends.iter().rfind(|end| **end <= at).copied().unwrap_or_default();
                    assert_eq!(usize::try_from(position.byte), Ok(start), "byte {at}");
                }
                Err(other) => panic!("byte {at}: {other}"),
                Ok(recovery) => {
                    assert!(at >= last_group, "byte {at} was not noticed");
                    let groups = if at < ends[ends.len() - 1] { GROUPS.len() - 1 } else { GROUPS.len() };
                    assert_eq!(texts(&recovery), expected(groups), "byte {at}");
                    assert!(recovery.cut.is_some(), "byte {at}");
                }
            }
        }
    }
}

#[test]
fn damage_in_an_older_segment_is_refused_even_at_its_end() {
    let scratch = Scratch::new("damage-older");
    let settings = Settings { segment_bytes: 300, snapshots_kept: 1 };
    let data = DataDirectory::open(scratch.path()).unwrap();
    let (mut journal, _) = Journal::open(&data, settings).unwrap();
    for n in 0..4_u8 {
        journal.append(&[n; 100]).unwrap();
        journal.commit().unwrap();
    }
    drop((journal, data));
    let first = segments(scratch.path()).remove(0);
    let whole = fs::read(&first).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&first, &bytes).unwrap();
        assert!(matches!(reopen(scratch.path()), Err(Error::Corrupt { .. })), "byte {at}");
    }
}

#[test]
fn a_group_torn_in_the_middle_counts_as_not_written() {
    let (scratch, segment) = written("torn");
    let whole = fs::read(&segment).unwrap();
    let ends = group_ends(&whole);
    let (start, end) = (ends[ends.len() - 2], ends[ends.len() - 1]);
    // A disk may write the pieces of one unsynced write in any order: lose each piece of eight bytes in turn.
    for at in (start..end).step_by(8) {
        let mut bytes = whole.clone();
        bytes[at..at + 8].fill(0);
        if bytes == whole {
            continue;
        }
        fs::write(&segment, &bytes).unwrap();
        let recovery = reopen(scratch.path()).unwrap();
        assert_eq!(texts(&recovery), expected(GROUPS.len() - 1), "byte {at}");
    }
}

#[test]
fn records_are_appended_after_a_cut_and_the_chain_continues() {
    let (scratch, segment) = written("append-after-cut");
    let whole = fs::read(&segment).unwrap();
    let ends = group_ends(&whole);
    fs::write(&segment, &whole[..ends[ends.len() - 1] - 1]).unwrap();
    {
        let data = DataDirectory::open(scratch.path()).unwrap();
        let (mut journal, _) = Journal::open(&data, settings()).unwrap();
        journal.append(b"new five").unwrap();
        journal.commit().unwrap();
    }
    let recovery = reopen(scratch.path()).unwrap();
    assert_eq!(texts(&recovery), ["one", "two", "three", "four", "new five"]);
    assert_eq!(recovery.cut, None);
}

fn settings() -> Settings {
    Settings { segment_bytes: 640, snapshots_kept: 1 }
}

/// A journal of one segment that holds all groups, and that segment's path.
fn written(name: &str) -> (Scratch, PathBuf) {
    let scratch = Scratch::new(name);
    let data = DataDirectory::open(scratch.path()).unwrap();
    let (mut journal, _) = Journal::open(&data, settings()).unwrap();
    for group in GROUPS {
        for text in group {
            journal.append(text.as_bytes()).unwrap();
        }
        journal.commit().unwrap();
    }
    let mut segments = segments(scratch.path());
    assert_eq!(segments.len(), 1);
    (scratch, segments.remove(0))
}

fn segments(data: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(data.join("journal")).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// Where the segment's header ends, then where each group ends.
fn group_ends(segment: &[u8]) -> Vec<usize> {
    let mut starts: Vec<usize> = (0..segment.len()).filter(|at| segment[*at..].starts_with(b"HFfr")).collect();
    assert_eq!(starts.len(), GROUPS.len());
    let last = starts[starts.len() - 1];
    let body = u32::from_le_bytes(segment[last + 4..last + 8].try_into().unwrap());
    starts.push(last + 64 + body as usize);
    starts
}

fn reopen(path: &Path) -> Result<Recovery, Error> {
    let data = DataDirectory::open(path)?;
    Journal::open(&data, settings()).map(|(_, recovery)| recovery)
}

fn expected(groups: usize) -> Vec<String> {
    GROUPS[..groups].concat().into_iter().map(str::to_owned).collect()
}

fn texts(recovery: &Recovery) -> Vec<String> {
    recovery.records.iter().map(|record| String::from_utf8(record.bytes.clone()).unwrap()).collect()
}
