//! The journal under faults: `kill -9` in the middle of appends, a full disk, a read-only directory.
//!
//! The child process is this test program, started again with one test selected and a variable that says where to write;
//! without the variable that test does nothing.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use runtime::journal::{Journal, RecordNumber, Settings};
use runtime::{DataDirectory, Error};
use support::{Dice, Scratch};

const DIRECTORY: &str = "HOLDFAST_TEST_JOURNAL";

#[test]
fn committed_records_survive_kill_nine() {
    let scratch = Scratch::new("kill");
    let mut dice = Dice(7);
    let mut known = 0;
    for round in 0..15 {
        let mut child = start_child(scratch.path(), "");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..=dice.below(40) {
            known = wait_for_number(&mut lines);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // The child may have committed more than it has printed.
        for number in numbers(&mut lines) {
            known = number;
        }

        let data = DataDirectory::open(scratch.path()).unwrap();
        let (journal, recovery) = Journal::open(&data, small()).unwrap();
        assert!(journal.committed() >= RecordNumber(known), "round {round}: {known} was committed and is gone");
        let from = recovery.snapshot.as_ref().map_or(0, |snapshot| snapshot.number.0);
        for (record, expected) in recovery.records.iter().zip(from + 1..) {
            assert_eq!(record.number, RecordNumber(expected));
            assert_eq!(record.bytes, content(expected));
        }
        assert_eq!(from + recovery.records.len() as u64, journal.committed().0);
    }
}

#[test]
fn a_full_disk_is_a_clear_error_and_the_journal_reopens() {
    let scratch = Scratch::new("full");
    // A limit on file size simulates the full disk: the system refuses the write in the same place.
    let mut child = start_child(scratch.path(), "trap '' XFSZ; ulimit -f 8; ");
    let lines: Vec<String> = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap).collect();
    assert!(child.wait().unwrap().success());
    let refused = lines.iter().find_map(|line| line.strip_prefix("refused: ")).expect("the limit was never reached");
    assert!(refused.contains("cannot write"), "{refused}");
    assert!(lines.iter().any(|line| line == "then: journal closed"), "{lines:?}");
    let committed = numbers(&mut lines.into_iter().map(Ok)).last().unwrap();

    let data = DataDirectory::open(scratch.path()).unwrap();
    let (mut journal, recovery) = Journal::open(&data, small()).unwrap();
    assert_eq!(journal.committed(), RecordNumber(committed));
    assert_eq!(recovery.cut, None);
    journal.append(b"there is room again").unwrap();
    journal.commit().unwrap();
}

#[test]
fn a_full_file_system_is_a_clear_error_and_the_journal_reopens() {
    let scratch = Scratch::new("full-tmpfs");
    let Some(mounted) = Tmpfs::mount(scratch.path(), "size=256k") else { return };
    let data = DataDirectory::open(scratch.path()).unwrap();
    let (mut journal, _) = Journal::open(&data, small()).unwrap();
    let mut committed = 0;
    let error = loop {
        journal.append(&content(committed + 1)).unwrap();
        match journal.commit() {
            Ok(number) => committed = number.0,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::File { attempted: "write", .. }), "{error}");
    assert!(matches!(journal.append(b""), Err(Error::JournalClosed)));
    drop(journal);

    let (journal, recovery) = Journal::open(&data, small()).unwrap();
    assert_eq!((journal.committed(), recovery.cut), (RecordNumber(committed), None));
    drop((journal, data, mounted));
}

#[test]
fn a_read_only_directory_is_a_clear_error() {
    let scratch = Scratch::new("read-only");
    let mounted = Tmpfs::mount(scratch.path(), "size=256k");
    {
        let data = DataDirectory::open(scratch.path()).unwrap();
        let (mut journal, _) = Journal::open(&data, small()).unwrap();
        journal.append(b"kept").unwrap();
        journal.commit().unwrap();
    }
    let room = scratch.path().join("journal");
    if mounted.is_some() {
        run("mount", &["-o", "remount,ro", scratch.path().to_str().unwrap()]);
    } else {
        set_mode(&room, 0o500);
        for entry in fs::read_dir(&room).unwrap() {
            set_mode(&entry.unwrap().path(), 0o400);
        }
    }
    let opened = DataDirectory::open(scratch.path()).and_then(|data| Journal::open(&data, small()).map(drop));
    assert!(matches!(opened, Err(Error::File { .. })), "{opened:?}");
    // Tools that only read need no permission to write.
    assert_eq!(runtime::journal::read(&room).unwrap().records[0].bytes, b"kept");
    if mounted.is_none() {
        set_mode(&room, 0o700);
    }
}

#[test]
fn child_appends_until_it_is_stopped() {
    let Some(directory) = env::var_os(DIRECTORY) else { return };
    let data = DataDirectory::open(Path::new(&directory)).unwrap();
    let (mut journal, _) = Journal::open(&data, small()).unwrap();
    // Bounded, in case it is never stopped.
    for round in 0..20_000 {
        match work(&mut journal, round) {
            Ok(number) => println!("committed {}", number.0),
            Err(error) => {
                println!("refused: {error}");
                let closed = matches!(journal.append(b""), Err(Error::JournalClosed));
                println!("then: {}", if closed { "journal closed" } else { "journal open" });
                return;
            }
        }
    }
}

/// Groups of one to three records, and now and then a snapshot.
fn work(journal: &mut Journal, round: u64) -> Result<RecordNumber, Error> {
    let next = journal.committed().0 + 1;
    for number in next..=next + round % 3 {
        assert_eq!(journal.append(&content(number))?, RecordNumber(number));
    }
    let committed = journal.commit()?;
    if round % 16 == 15 {
        journal.snapshot(b"state")?;
    }
    Ok(committed)
}

fn small() -> Settings {
    Settings { segment_bytes: 1 << 10, snapshots_kept: 2 }
}

/// The content of a record by its number; some are longer than a segment.
fn content(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(usize::try_from(number % 640).unwrap() + 1)
}

/// Starts this program again with only the appending test, after some shell commands.
fn start_child(directory: &Path, before: &str) -> Child {
    Command::new("sh")
        .arg("-c")
        .arg(format!(r#"{before}exec "$0" --exact --nocapture child_appends_until_it_is_stopped"#))
        .arg(env::current_exe().unwrap())
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn numbers(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> impl Iterator<Item = u64> {
    lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("committed ")?.parse().ok())
}

fn wait_for_number(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> u64 {
    numbers(lines).next().expect("the child ended early")
}

/// A small file system of its own, where mounting is permitted.
struct Tmpfs(std::path::PathBuf);

impl Tmpfs {
    fn mount(path: &Path, options: &str) -> Option<Self> {
        let options = format!("{options},mode=700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(path)
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        mounted.then(|| Self(path.to_owned()))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        run("umount", &[self.0.to_str().unwrap()]);
    }
}

fn run(program: &str, arguments: &[&str]) {
    assert!(Command::new(program).args(arguments).status().unwrap().success());
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
