//! The log of a component: one file, with a line before each operation, and of limited size.
//!
//! Programs write directly to the file, so that they do not depend on the agent. When it has grown too large, its end
//! is copied to a second file and it is truncated; what a program writes between those two steps is lost.

use super::{
    component_directory::ComponentDirectory,
    failure::{Attempt, Failure},
    secrets::Secrets,
};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};
use time::OffsetDateTime;

/// Maximum number of bytes of output in the failure of an operation.
pub(super) const TAIL_BYTES_MAX: usize = 2048;

/// Prefix of the line before an operation.
const HEADER: &str = "=== ";

/// Opens the file for a program to write to, after a line that names the operation. Returns the offset at which its
/// output begins.
pub(super) fn open(directory: &ComponentDirectory, operation: &str, serial: u64) -> Result<(File, u64), Failure> {
    let path = directory.output();
    let opened = (|| {
        let file = headed(&path, operation, serial)?;
        let begins = file.metadata()?.len();
        Ok((file, begins))
    })();
    io::Result::attempt(opened, format!("write {}", path.display()))
}

/// Records that a task failed, or that what it started has died, and why.
pub(super) fn note_end(directory: &ComponentDirectory, serial: u64, how: &str) -> Result<(), Failure> {
    let path = directory.output();
    headed(&path, how, serial).map(drop).attempt(format!("write {}", path.display()))
}

/// Opens the file after a new heading line.
fn headed(path: &Path, what: &str, serial: u64) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    // The last line may lack its newline, which would hide the heading.
    let (last, _) = last_bytes(path, 0, 1)?;
    let end = if last.first().is_none_or(|byte| *byte == b'\n') { "" } else { "\n" };
    let now = OffsetDateTime::now_utc();
    let (date, (hour, minute, second)) = (now.date(), now.time().as_hms());
    writeln!(file, "{end}{HEADER}{date} {hour:02}:{minute:02}:{second:02} UTC, task {serial}: {what}")?;
    Ok(file)
}

/// Opens an empty file for output that is of no interest once the next command of its sort runs.
pub(super) fn open_aside(path: &Path) -> Result<File, Failure> {
    // Opened for appending, so that the file can be truncated while a writer is still there.
    let opened = OpenOptions::new().create(true).append(true).open(path);
    let opened = opened.and_then(|file| file.set_len(0).map(|()| file));
    opened.attempt(format!("write {}", path.display()))
}

/// The end of a component's log from an offset on, at most this many bytes, with secrets concealed.
pub(super) fn tail(directory: &ComponentDirectory, path: &Path, begins: u64, bytes_max: usize) -> String {
    let (bytes, is_cut) = last_bytes(path, begins, bytes_max).unwrap_or_default();
    shown(&Secrets::of(directory), &bytes, is_cut, bytes_max)
}

/// The last lines of a run, for the report of its death.
pub(super) fn last_lines(directory: &ComponentDirectory, lines_max: usize) -> String {
    let text = tail(directory, &directory.output(), 0, TAIL_BYTES_MAX / 2);
    let lines: Vec<&str> = text.lines().collect();
    let begins = |line: &&str| line.starts_with(HEADER) && line.ends_with(": start");
    let run = lines.iter().rposition(begins).map_or(0, |at| at + 1);
    let lines: Vec<&str> = lines[run..].iter().filter(|line| !line.starts_with(HEADER)).copied().collect();
    lines[lines.len().saturating_sub(lines_max)..].join("\n")
}

/// The end of everything that is kept, with secrets concealed.
pub(super) fn history(directory: &ComponentDirectory, bytes_max: usize) -> io::Result<String> {
    let (newer, is_cut) = last_bytes(&directory.output(), 0, bytes_max)?;
    let (mut bytes, _) = last_bytes(&older(&directory.output()), 0, bytes_max - newer.len()).unwrap_or_default();
    // The older file begins at an arbitrary byte.
    let is_cut = is_cut || !bytes.is_empty();
    bytes.extend(newer);
    Ok(shown(&Secrets::of(directory), &bytes, is_cut, bytes_max))
}

/// Truncates the file if it exceeds the limit, and keeps its end as the older one.
pub(super) fn rotate(path: &Path, bytes_max: u64) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    if file.metadata()?.len() <= bytes_max {
        return Ok(());
    }
    let (older, aside) = (older(path), path.with_extension("new"));
    let mut source = &file;
    source.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(bytes_max)))?;
    io::copy(&mut source.take(bytes_max), &mut File::create(&aside)?)?;
    fs::rename(aside, older)?;
    file.set_len(0)
}

fn older(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

/// Secrets are concealed first: a part of one would not be recognised.
fn shown(secrets: &Secrets, bytes: &[u8], mut is_cut: bool, bytes_max: usize) -> String {
    let is_inside_a_letter = |byte: &&u8| is_cut && **byte & 0b1100_0000 == 0b1000_0000;
    let whole = bytes.iter().take_while(is_inside_a_letter).count();
    let text = String::from_utf8_lossy(&bytes[whole..]);
    let mut text = if is_cut { secrets.conceal_after_cut(&text) } else { secrets.conceal(text.into_owned()) };
    // The replacement may be longer than the secret.
    if text.len() > bytes_max {
        let mut from = text.len() - bytes_max;
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text.drain(..from);
        is_cut = true;
    }
    // Begins at a line start if possible.
    if let Some(line_end) = text.find('\n').filter(|at| is_cut && at + 1 < text.len()) {
        text.drain(..=line_end);
    }
    text
}

/// At most this many bytes from the end of a file, and whether there were more.
fn last_bytes(path: &Path, begins: u64, bytes_max: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    // If the file was truncated in the meantime, all of it is newer than the offset.
    let begins = if begins > length { 0 } else { begins };
    let wanted = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    let from = begins.max(length.saturating_sub(wanted));
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(wanted).read_to_end(&mut bytes)?;
    Ok((bytes, from > begins))
}
