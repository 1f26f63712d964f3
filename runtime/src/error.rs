//! The errors of this crate. Every variant names what was attempted and on what; the cause is its source.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::identity::JoinRefusal;
use crate::journal::{Position, RecordNumber};
use crate::peer::PeerId;

/// The error type of this crate. Unless a variant says otherwise, nothing has changed when it is returned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused a file operation: a full disk, a read-only one, missing rights.
    #[error("{}: cannot {attempted}", path.display())]
    File {
        /// The operation.
        attempted: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another program has the data directory open. This can happen in normal operation: stop the other one first.
    #[error("{}: in use by another program (stop it, or choose another data directory)", directory.display())]
    InUse {
        /// The directory.
        directory: PathBuf,
    },

    /// A record that was once durable can no longer be read. The program must not continue from an incomplete history.
    #[error(
        "{position}: corrupt: {what} (restore the data directory from a backup, or remove this VM and let it join again)"
    )]
    Corrupt {
        /// Its position.
        position: Position,
        /// What is wrong there.
        what: &'static str,
    },
    /// The journal was written by a newer program.
    #[error("{}: format {found} is newer than this program supports ({known}; upgrade the program)", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The newest version that this program supports.
        known: u32,
    },
    /// An earlier write failed, so the contents of the disk are unknown. Reopening the journal reads them.
    #[error("the journal was closed by an earlier failed write (fix the disk, then restart the program)")]
    JournalClosed,
    /// A record or a snapshot is larger than the format allows.
    #[error("a record of {bytes} bytes exceeds the journal's limit of {bytes_max} bytes")]
    RecordTooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// A snapshot was requested while there are uncommitted records; it would represent a state that may be lost.
    #[error("a snapshot must follow a commit; records after {committed} are not committed")]
    Uncommitted {
        /// The last durable record.
        committed: RecordNumber,
    },

    /// A file of the identity cannot be read back.
    #[error("{}: damaged (restore it from a backup)", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// An error of the cryptographic library. This is not expected in normal operation.
    #[error("cannot {attempted}")]
    Identity {
        /// The operation.
        attempted: &'static str,
        /// The error of the library.
        source: Cause,
    },
    /// Bytes from outside do not have the expected form.
    #[error("cannot read the {what}")]
    Unreadable {
        /// The expected form.
        what: &'static str,
    },
    /// A VM's name has other characters than letters, digits and `- _ . ' [ ] /`, or too many.
    #[error("a VM name has 1 to 63 letters, digits and - _ . ' [ ] /, and starts with a letter or digit")]
    BadName,
    /// The statement is not signed by the manager.
    #[error("the ticket is not signed by the manager")]
    FalseTicket,
    /// On the manager's side: why a join request is refused.
    #[error(transparent)]
    Join(#[from] JoinRefusal),
    /// On the joining side: the manager's reason.
    #[error("the manager refused: {reason}")]
    JoinRefused {
        /// The reason.
        reason: String,
    },
    /// The manager did not answer, or is not the one that the token is for. This can happen in normal operation: retry.
    #[error("{address}: cannot reach the manager")]
    Unreachable {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: Cause,
    },

    /// The socket cannot be opened; most often the port is taken.
    #[error("{address}: cannot listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The peer was revoked, or is this program itself.
    #[error("{peer}: cannot send a message")]
    Revoked {
        /// The peer.
        peer: PeerId,
    },
    /// Too many messages are unacknowledged. This can happen in normal operation: hold back what causes messages to
    /// this peer.
    #[error("{peer}: too many unacknowledged messages")]
    OutboxFull {
        /// The peer.
        peer: PeerId,
    },
    /// A message is longer than a link takes.
    #[error("a message of {bytes} bytes exceeds the link's limit of {bytes_max} bytes")]
    MessageTooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// A record is intact but has contents that this program does not know.
    #[error("{}: cannot decode {record} (it was written by another version of the program)", directory.display())]
    UnreadableRecord {
        /// The journal.
        directory: PathBuf,
        /// Which record.
        record: RecordNumber,
    },
    /// The whole history was requested, but its beginning was removed after a snapshot.
    #[error("{}: the journal begins with {record}; earlier records exist only as a snapshot", directory.display())]
    PastLetGo {
        /// The journal.
        directory: PathBuf,
        /// The first record that is left.
        record: RecordNumber,
    },
    /// A state or an event cannot be encoded. This is not expected in normal operation.
    #[error("cannot encode {what}")]
    Unwritable {
        /// What.
        what: &'static str,
        /// The error of the library.
        source: Cause,
    },
    /// The engine failed because of a bug; it may be retried once.
    #[error("the engine failed: {what}")]
    Engine {
        /// The panic message.
        what: String,
    },
    /// The machine failed twice in the same way. Nothing that was journalled is lost.
    #[error("the machine fails on the last record of its journal: {what} (this is a bug; the journal that reproduces it is {})", journal.display())]
    Panicked {
        /// The panic message.
        what: String,
        /// The path of the journal.
        journal: PathBuf,
    },
    /// The links were closed.
    #[error("the links are closed")]
    LinksClosed,
}

/// An error of one of the libraries below.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Converts an error of the operating system; created before the attempt, used if it fails.
pub(crate) type Attempt = Box<dyn FnOnce(io::Error) -> Error>;

impl Error {
    pub(crate) fn file(attempted: &'static str, path: &Path) -> Attempt {
        let path = path.to_owned();
        Box::new(move |source| Self::File { attempted, path, source })
    }

    pub(crate) fn identity<E: Into<Cause>>(attempted: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Identity { attempted, source: source.into() }
    }
}
