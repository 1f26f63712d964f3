//! What can go wrong in the hallway. Every variant names what was attempted and on what; the cause is its source.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::identity::JoinRefusal;
use crate::journal::{Position, RecordNumber};
use crate::peer::PeerId;

/// The one error of this crate. Unless a variant says otherwise, nothing has changed when it is returned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused a file operation: a full disk, a read-only one, missing rights.
    #[error("{}: cannot {attempted}", path.display())]
    File {
        /// The verb.
        attempted: &'static str,
        /// The object.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another program has the data directory open. Can happen on a good day: stop the other one first.
    #[error("{}: in use by another program (stop it, or choose another data directory)", directory.display())]
    InUse {
        /// The directory.
        directory: PathBuf,
    },

    /// A record that was once durable can no longer be read. The program must not go on from half its past.
    #[error(
        "{position}: corrupt: {what} (restore the data directory from a backup, or remove this VM and let it join again)"
    )]
    Corrupt {
        /// Where.
        position: Position,
        /// What does not hold there.
        what: &'static str,
    },
    /// The journal was written by a newer program.
    #[error("{}: format {found} is newer than this program supports ({known}; upgrade the program)", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// An earlier write failed, so nobody knows what the disk holds. Reopening the journal finds out.
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
    /// A snapshot was asked for while records are appended and not committed; it would stand for a state that may be lost.
    #[error("a snapshot must follow a commit; records after {committed} are not committed")]
    Uncommitted {
        /// The last record that is durable.
        committed: RecordNumber,
    },

    /// A file of the identity cannot be read back.
    #[error("{}: damaged (restore it from a backup)", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The cryptographic library refused; not on a good day.
    #[error("cannot {attempted}")]
    Identity {
        /// The verb.
        attempted: &'static str,
        /// What the library said.
        source: Cause,
    },
    /// Bytes from outside are not what they should be.
    #[error("cannot read the {what}")]
    Unreadable {
        /// What they should be.
        what: &'static str,
    },
    /// A VM's name has other characters than letters, digits and `- _ . ' [ ] /`, or too many.
    #[error("a VM name has 1 to 63 letters, digits and - _ . ' [ ] /, and starts with a letter or digit")]
    BadName,
    /// The manager did not sign this statement.
    #[error("the ticket is not signed by the manager")]
    FalseTicket,
    /// On the manager's side: why an applicant is turned away.
    #[error(transparent)]
    Join(#[from] JoinRefusal),
    /// On the applicant's side: what the manager said.
    #[error("the manager refused: {reason}")]
    JoinRefused {
        /// In the manager's words.
        reason: String,
    },
    /// The manager did not answer, or is not the one the token is for. Can happen on a good day: try again.
    #[error("{address}: cannot reach the manager")]
    Unreachable {
        /// Where it was looked for.
        address: SocketAddr,
        /// What happened instead.
        source: Cause,
    },

    /// The socket cannot be opened; most often the port is taken.
    #[error("{address}: cannot listen")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The peer was revoked, or is ourselves: no message can go there.
    #[error("{peer}: cannot send a message")]
    Revoked {
        /// The peer.
        peer: PeerId,
    },
    /// Too much is unacknowledged. Can happen on a good day: hold back what causes messages to this peer.
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
    /// A record is sound and says something that this program does not know.
    #[error("{}: cannot decode {record} (it was written by another version of the program)", directory.display())]
    UnreadableRecord {
        /// The journal.
        directory: PathBuf,
        /// Which record.
        record: RecordNumber,
    },
    /// The whole past was asked for, and its beginning was let go after a snapshot.
    #[error("{}: the journal begins with {record}; earlier records exist only as a snapshot", directory.display())]
    PastLetGo {
        /// The journal.
        directory: PathBuf,
        /// The first record that is left.
        record: RecordNumber,
    },
    /// A state or a event cannot be put into bytes; not on a good day.
    #[error("cannot encode {what}")]
    Unwritable {
        /// What.
        what: &'static str,
        /// What the library said.
        source: Cause,
    },
    /// The engine failed in a way that is a bug; it may be tried once more.
    #[error("the engine failed: {what}")]
    Engine {
        /// The words of the panic.
        what: String,
    },
    /// The machine failed twice in the same way. Nothing that was journalled is lost.
    #[error("the machine fails on the last record of its journal: {what} (this is a bug; the journal that reproduces it is {})", journal.display())]
    Panicked {
        /// The words of the panic.
        what: String,
        /// Where the trace is.
        journal: PathBuf,
    },
    /// The links were closed.
    #[error("the links are closed")]
    LinksClosed,
}

/// An error of one of the libraries below.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Turns the system's error into ours; made before the attempt, used if it fails.
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
