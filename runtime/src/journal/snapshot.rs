//! Snapshots: a complete state, so that a replay does not have to start at the first record.
//!
//! A snapshot names the record after which it was taken and contains the chain up to there: it belongs to exactly one
//! history. What the bytes mean is up to the owner.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use super::RecordNumber;
use super::frame::{Chain, number_u32, number_u64};
use crate::data_directory::write_aside;
use crate::error::Error;

const PREFIX: &str = "snapshot-";
const EXTENSION: &str = "state";
const MAGIC: [u8; 8] = *b"HFsnapsh";
const VERSION: u32 = 1;
/// Magic, version, spare, record number, length, chain.
const HEADER: usize = 8 + 4 + 4 + 8 + 8 + 32;
const DIGEST: usize = 32;

/// The owner's state after a certain record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The last record that the state includes.
    pub number: RecordNumber,
    /// The owner's bytes.
    pub state: Vec<u8>,
}

/// Writes a snapshot, durable when this returns.
pub(super) fn write(directory: &Path, number: RecordNumber, chain: Chain, state: &[u8]) -> Result<(), Error> {
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(&MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&number.0.to_le_bytes());
    header.extend_from_slice(&(state.len() as u64).to_le_bytes());
    header.extend_from_slice(&chain.0);
    let path = path(directory, number);
    write_aside(&path, |file| {
        file.write_all(&header)?;
        file.write_all(state)?;
        file.write_all(&digest(&header, state))
    })?;
    Ok(())
}

/// Reads a snapshot; `Ok(None)` if it is damaged.
pub(super) fn read(path: &Path) -> Result<Option<(Snapshot, Chain)>, Error> {
    let bytes = fs::read(path).map_err(Error::file("read", path))?;
    let Some((header, rest)) = bytes.split_at_checked(HEADER) else { return Ok(None) };
    let Some((state, found)) = rest.split_at_checked(rest.len().saturating_sub(DIGEST)) else { return Ok(None) };
    let length_holds = usize::try_from(number_u64(&header[24..32])) == Ok(state.len());
    if header[..8] != MAGIC || !length_holds || found != digest(header, state) {
        return Ok(None);
    }
    let version = number_u32(&header[8..12]);
    if version > VERSION {
        return Err(Error::Newer { path: path.to_owned(), found: version, known: VERSION });
    }
    let mut chain = [0; 32];
    chain.copy_from_slice(&header[32..64]);
    let number = RecordNumber(number_u64(&header[16..24]));
    Ok(Some((Snapshot { number, state: state.to_vec() }, Chain(chain))))
}

/// The path of the snapshot after a certain record.
pub(super) fn path(directory: &Path, number: RecordNumber) -> PathBuf {
    directory.join(format!("{PREFIX}{:020}.{EXTENSION}", number.0))
}

/// The snapshots of a journal in order, by their names.
pub(super) fn list(directory: &Path) -> Result<Vec<(RecordNumber, PathBuf)>, Error> {
    super::list(directory, PREFIX, EXTENSION)
}

fn digest(header: &[u8], state: &[u8]) -> [u8; DIGEST] {
    let mut context = Context::new(&SHA256);
    context.update(header);
    context.update(state);
    let mut digest = [0; DIGEST];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}
