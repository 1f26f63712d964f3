//! Reads and writes the files that commands are given.

use crate::{failure::Failure, input::faults::FaultOptions};
use application::FILE_BYTES_MAX;
use model_check::{Scenario, trace::Trace};
use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::FileTypeExt,
    path::Path,
};

/// Reads a text file that a person wrote.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    text(path).map_err(|error| Failure::Read(path.into(), error))
}

/// The text of a file that a person wrote. Anything but a regular file is refused before it is opened, since a pipe may
/// block and a device may never end.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is a directory, a device or a pipe, not a file"));
    }
    bounded(path)
}

/// Reads a text that is named in a command, and that another program may be writing.
pub(crate) fn read_given(path: &Path) -> Result<String, Failure> {
    let is_pipe = fs::metadata(path).is_ok_and(|it| it.file_type().is_fifo());
    if is_pipe { bounded(path).map_err(|error| Failure::Read(path.into(), error)) } else { read(path) }
}

fn bounded(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|it| **it == b'\n').count() + 1;
        io::Error::other(format!("line {line} is not UTF-8"))
    })
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::Write(path.into(), error))
}

/// Reads a scenario, with the faults that the options set.
pub(crate) fn scenario(path: &Path, faults: FaultOptions) -> Result<Scenario, Failure> {
    let mut scenario = Scenario::parse(&path.to_string_lossy(), &read(path)?)?;
    scenario.faults = faults.over(scenario.faults);
    Ok(scenario)
}

/// Reads a trace. A program wrote it, so its length is not limited.
pub(crate) fn trace(path: &Path) -> Result<Trace, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::Read(path.into(), error))?;
    Trace::read(&text).map_err(|error| Failure::Trace(path.into(), error))
}
