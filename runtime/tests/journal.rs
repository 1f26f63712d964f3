//! The journal on a healthy disk: order, groups, snapshots, the lock.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::fs;
use std::path::Path;

use runtime::journal::{self, Journal, Record, RecordNumber, Settings};
use runtime::{DataDirectory, Error};
use support::Scratch;

#[test]
fn records_are_read_in_order_and_numbers_continue() {
    let scratch = Scratch::new("journal-order");
    let (mut journal, recovery, lock) = open(scratch.path(), Settings::default());
    assert!(recovery.records.is_empty());
    assert_eq!(append_all(&mut journal, &["a", "", "ccc"]), [1, 2, 3]);
    assert_eq!(journal.commit().unwrap(), RecordNumber(3));
    let chain = journal.chain();
    drop((journal, lock));

    let (mut journal, recovery, _lock) = open(scratch.path(), Settings::default());
    assert_eq!(texts(&recovery.records), ["a", "", "ccc"]);
    assert_eq!((recovery.cut, recovery.chain), (None, chain));
    assert_eq!(append_all(&mut journal, &["d"]), [4]);
}

#[test]
fn uncommitted_records_leave_no_trace() {
    let scratch = Scratch::new("journal-uncommitted");
    let (mut journal, _, lock) = open(scratch.path(), Settings::default());
    append_all(&mut journal, &["kept"]);
    journal.commit().unwrap();
    append_all(&mut journal, &["lost"]);
    drop((journal, lock));

    let (_, recovery, _lock) = open(scratch.path(), Settings::default());
    assert_eq!(texts(&recovery.records), ["kept"]);
    assert_eq!(recovery.cut, None);
}

#[test]
fn segments_follow_one_another_and_a_long_record_gets_a_longer_one() {
    let scratch = Scratch::new("journal-segments");
    let settings = Settings { segment_bytes: 512, snapshots_kept: 1 };
    let (mut journal, _, lock) = open(scratch.path(), settings.clone());
    let long = "x".repeat(5000);
    let all: Vec<String> = (0..40).map(|n| if n == 20 { long.clone() } else { format!("record {n}") }).collect();
    for text in &all {
        journal.append(text.as_bytes()).unwrap();
        journal.commit().unwrap();
    }
    drop((journal, lock));
    assert!(count_files(scratch.path(), "segment-") > 5);

    let (_, recovery, _lock) = open(scratch.path(), settings);
    assert_eq!(texts(&recovery.records), all);
}

#[test]
fn a_snapshot_bounds_the_replay_and_old_segments_are_removed() {
    let scratch = Scratch::new("journal-snapshot");
    let settings = Settings { segment_bytes: 512, snapshots_kept: 2 };
    let (mut journal, _, lock) = open(scratch.path(), settings.clone());
    for round in 1..=5_u64 {
        for n in 0..10 {
            journal.append(format!("{round}.{n}").as_bytes()).unwrap();
            journal.commit().unwrap();
        }
        journal.snapshot(format!("state {round}").as_bytes()).unwrap();
    }
    append_all(&mut journal, &["after"]);
    journal.commit().unwrap();
    drop((journal, lock));

    let (_, recovery, _lock) = open(scratch.path(), settings);
    let snapshot = recovery.snapshot.unwrap();
    assert_eq!((snapshot.number, snapshot.state.as_slice()), (RecordNumber(50), b"state 5".as_slice()));
    assert_eq!(texts(&recovery.records), ["after"]);
    // The last two snapshots are kept, with every record after the older of them.
    assert_eq!(count_files(scratch.path(), "snapshot-"), 2);
    let history = journal::history(&scratch.path().join(journal::ROOM)).unwrap();
    assert_eq!(history.first().map(|record| record.number), Some(RecordNumber(41)));
    assert_eq!(history.last().map(|record| record.number), Some(RecordNumber(51)));
}

#[test]
fn a_damaged_snapshot_is_skipped_for_the_previous_one() {
    let scratch = Scratch::new("journal-damaged-snapshot");
    let (mut journal, _, lock) = open(scratch.path(), Settings::default());
    for text in ["one", "two"] {
        append_all(&mut journal, &[text]);
        journal.commit().unwrap();
        journal.snapshot(text.as_bytes()).unwrap();
    }
    drop((journal, lock));
    let newest = scratch.path().join("journal/snapshot-00000000000000000002.state");
    let mut bytes = fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&newest, bytes).unwrap();

    let (_, recovery, _lock) = open(scratch.path(), Settings::default());
    assert_eq!(recovery.snapshot.unwrap().state, b"one");
    assert_eq!(texts(&recovery.records), ["two"]);
    assert_eq!(recovery.snapshots_damaged, [newest]);
}

#[test]
fn a_crash_right_after_a_snapshot_is_harmless() {
    let scratch = Scratch::new("journal-snapshot-crash");
    let (mut journal, _, lock) = open(scratch.path(), Settings::default());
    append_all(&mut journal, &["one"]);
    journal.commit().unwrap();
    journal.snapshot(b"after one").unwrap();
    drop((journal, lock));
    // As if the program had died after the snapshot became durable and before the next segment did.
    fs::remove_file(scratch.path().join("journal/segment-00000000000000000002.journal")).unwrap();

    for expected in [vec![], vec!["two".to_owned()]] {
        let (mut journal, recovery, _lock) = open(scratch.path(), Settings::default());
        assert_eq!(recovery.snapshot.unwrap().state, b"after one");
        assert_eq!(texts(&recovery.records), expected);
        if expected.is_empty() {
            append_all(&mut journal, &["two"]);
            journal.commit().unwrap();
        }
    }
}

#[test]
fn a_snapshot_must_follow_a_commit() {
    let scratch = Scratch::new("journal-snapshot-early");
    let (mut journal, _, _lock) = open(scratch.path(), Settings::default());
    append_all(&mut journal, &["one"]);
    assert!(matches!(journal.snapshot(b"").unwrap_err(), Error::Uncommitted { .. }));
    journal.commit().unwrap();
    journal.snapshot(b"").unwrap();
}

#[test]
fn a_missing_segment_is_refused() {
    let scratch = Scratch::new("journal-missing");
    let settings = Settings { segment_bytes: 256, snapshots_kept: 1 };
    let (mut journal, _, lock) = open(scratch.path(), settings.clone());
    for n in 0..12 {
        journal.append(&[n; 50]).unwrap();
        journal.commit().unwrap();
    }
    drop((journal, lock));
    let mut segments: Vec<_> =
        fs::read_dir(scratch.path().join("journal")).unwrap().map(|e| e.unwrap().path()).collect();
    segments.sort();
    for missing in &segments[..segments.len() - 1] {
        let bytes = fs::read(missing).unwrap();
        fs::remove_file(missing).unwrap();
        let data = DataDirectory::open(scratch.path()).unwrap();
        let error = Journal::open(&data, settings.clone()).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        fs::write(missing, bytes).unwrap();
    }
}

#[test]
fn two_programs_cannot_open_the_same_directory() {
    let scratch = Scratch::new("journal-lock");
    let held = DataDirectory::open(scratch.path()).unwrap();
    assert!(matches!(DataDirectory::open(scratch.path()).unwrap_err(), Error::InUse { .. }));
    drop(held);
    DataDirectory::open(scratch.path()).unwrap();
}

#[test]
fn a_record_too_long_is_refused_and_the_journal_stays_usable() {
    let scratch = Scratch::new("journal-long");
    let (mut journal, _, _lock) = open(scratch.path(), Settings::default());
    let long = vec![0; journal::RECORD_BYTES_MAX + 1];
    assert!(matches!(journal.append(&long).unwrap_err(), Error::RecordTooLong { .. }));
    assert_eq!(append_all(&mut journal, &["short"]), [1]);
}

fn open(path: &Path, settings: Settings) -> (Journal, journal::Recovery, DataDirectory) {
    let data = DataDirectory::open(path).unwrap();
    let (journal, recovery) = Journal::open(&data, settings).unwrap();
    (journal, recovery, data)
}

fn append_all(journal: &mut Journal, texts: &[&str]) -> Vec<u64> {
    texts.iter().map(|text| journal.append(text.as_bytes()).unwrap().0).collect()
}

fn texts(records: &[Record]) -> Vec<String> {
    records.iter().map(|record| String::from_utf8(record.bytes.clone()).unwrap()).collect()
}

fn count_files(data: &Path, prefix: &str) -> usize {
    let names = fs::read_dir(data.join(journal::ROOM)).unwrap();
    names.filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with(prefix)).count()
}
