//! Links: messages between two peers, each exactly once and in order, across reconnects and crashes of either.
//!
//! A link is not a connection. The link is the pair of numbered message sequences in the journals of both owners; the
//! connection is whatever carries it at the moment. Each side journals a message before it acknowledges its number,
//! resends what was not acknowledged, and drops duplicates.
//!
//! ```text
//!  owner ── send ──▶ switchboard ──▶ writer ══ QUIC ══▶ reader ──▶ switchboard ── Received ──▶ owner
//!        ◀─ Acknowledged ─         ◀ reader ══════════ writer ◀               ◀── applied ──     journals it
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `delivery` | the message numbers of one link; pure |
//! | `known_peer` | what is known of a peer, and which of two connections is newer; pure |
//! | `frame` | the wire format; pure |
//! | `pending_events` | events for the owner, bounded; pure |
//! | `peer_link` | one peer as the switchboard sees it |
//! | `switchboard` | the one task that owns all of these |
//! | `connection`, `dial`, `listen` | the tasks that touch sockets |
//! | `limits` | all limits |
//!
//! What a payload means, the journal, and who may send what to whom are up to the owner.

mod connection;
mod delivery;
mod dial;
mod frame;
#[cfg(test)]
mod hostile_tests;
mod known_peer;
mod limits;
mod listen;
mod peer_link;
mod pending_events;
mod switchboard;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};

use self::delivery::Parcel;
use self::limits::{INBOX_EVENTS, MESSAGE_PRICE, QUEUE};
use self::switchboard::{Command, Switchboard};
use crate::error::Error;
use crate::identity::tls::{self, Purpose};
use crate::identity::{Identity, IdentityCall};
use crate::peer::{Incarnation, PeerId};
use crate::quic;

pub use self::limits::{MESSAGE_BYTES_MAX, OUTBOX_BYTES_MAX, WINDOW_BYTES, WINDOW_MESSAGES};

/// The number of a message in one direction of a link: 1, 2, 3, …; 0 is before the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct MessageNumber(pub u64);

impl MessageNumber {
    /// The number after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for MessageNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}", self.0)
    }
}

/// The state of a link in the owner's journal; the default is a link that was never used.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LinkState {
    /// The last message sent to the peer.
    pub last_sent: MessageNumber,
    /// The last message of the peer that was journalled.
    pub last_applied: MessageNumber,
    /// The last messages sent, up to `last_sent`, from the oldest that may not have been acknowledged.
    pub unacknowledged: Vec<Vec<u8>>,
    /// The peer's incarnation, if it was ever connected.
    pub incarnation: Option<Incarnation>,
}

/// How to reach a peer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Contact {
    /// Its address; without one, the peer must dial us.
    pub address: Option<SocketAddr>,
    /// Stay connected even without messages, as an agent does with its manager.
    pub held: bool,
}

/// Events for the owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A message came. Journal it, then call [`Links::applied`].
    Received {
        /// From whom.
        peer: PeerId,
        /// One more than that of the previous message.
        number: MessageNumber,
        /// The peer's bytes.
        payload: Vec<u8>,
    },
    /// Everything up to this number is in the peer's journal and need not be kept.
    Acknowledged {
        /// By whom.
        peer: PeerId,
        /// Up to which message.
        through: MessageNumber,
    },
    /// A connection with the peer is established; repeated, without a `Down`, when a newer one replaces it.
    Up {
        /// With whom.
        peer: PeerId,
        /// To be returned in [`LinkState`] after a restart.
        incarnation: Incarnation,
    },
    /// The connection with the peer has ended. It is re-established when it is needed.
    Down {
        /// With whom.
        peer: PeerId,
        /// Closed on purpose, by either side, because it was not used.
        farewell: bool,
    },
    /// A connection with the peer was refused, by either side; it is retried, slowly.
    Refused {
        /// With whom.
        peer: PeerId,
        /// Why.
        refusal: Refusal,
    },
}

/// Why a peer is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Its data directory is not the one that was known.
    #[error("the peer has lost its data directory: it was {known} and is now {found} (let it join as a new VM)")]
    Wiped {
        /// The known incarnation.
        known: Incarnation,
        /// The present incarnation.
        found: Incarnation,
    },
    /// It has lost messages that it had acknowledged or sent, as after restoring an old backup.
    #[error(
        "the peer has lost messages: it acknowledged {acknowledged} and now has only {applied}; \
         it sent {received} and now knows only of {sent} (let it join as a new VM)"
    )]
    PeerForgot {
        /// What it had acknowledged.
        acknowledged: MessageNumber,
        /// What it has now.
        applied: MessageNumber,
        /// What we have received from it.
        received: MessageNumber,
        /// What it says it has sent.
        sent: MessageNumber,
    },
    /// It has messages that we do not know of: it is we who have lost messages.
    #[error(
        "this program has lost messages: the peer has {applied}, and this program knows only of {sent} (restore the data directory)"
    )]
    WeForgot {
        /// The last one that we know of.
        sent: MessageNumber,
        /// The last one that it has.
        applied: MessageNumber,
    },
    /// It violates the protocol.
    #[error("protocol violation: {0}")]
    Violation(#[from] Violation),
    /// It has revoked this program for good.
    #[error("the peer has revoked this machine's certificate")]
    Revoked,
    /// It refuses this program.
    #[error("refused by the peer: {0}")]
    ByPeer(String),
}

/// How bytes or numbers from a peer violate the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// Another version.
    #[error("unknown version {0}")]
    Version(u8),
    /// Another kind of frame.
    #[error("unknown frame kind {0}")]
    Kind(u8),
    /// A frame that is too long or too short for what it is.
    #[error("a frame of kind {kind} has an invalid length")]
    Length {
        /// The kind.
        kind: u8,
    },
    /// The first frame is not a hello, or a later one is.
    #[error("a hello is missing, or came twice")]
    Hello,
    /// The hello does not match the certificate.
    #[error("a hello from {0} with the certificate of another peer")]
    Impostor(PeerId),
    /// A message is missing.
    #[error("expected {expected}, found {found}")]
    Gap {
        /// The expected number.
        expected: MessageNumber,
        /// The number found.
        found: MessageNumber,
    },
    /// More unacknowledged messages than allowed.
    #[error("more unacknowledged messages than the window allows")]
    Window,
    /// A message is acknowledged that was never sent.
    #[error("{found} was acknowledged, but {sent} was the last one sent")]
    Acknowledgement {
        /// The last one that was sent.
        sent: MessageNumber,
        /// The one that was acknowledged.
        found: MessageNumber,
    },
}

/// Timeouts of links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// A connection that we dialled and do not hold is closed after being unused for this long.
    pub unused_after: Duration,
    /// The pause before the second attempt to dial; it doubles with each attempt, and half of it is random.
    pub redial_first: Duration,
    /// The longest pause.
    pub redial_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            unused_after: Duration::from_secs(60),
            redial_first: Duration::from_millis(50),
            redial_max: Duration::from_secs(10),
        }
    }
}

/// What links start with.
#[derive(Debug)]
pub struct Opening {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The incarnation of our own data directory.
    pub incarnation: Incarnation,
    /// The state of links that were used before, from the journal.
    pub links: BTreeMap<PeerId, LinkState>,
    /// The revoked peers.
    pub revoked: BTreeSet<PeerId>,
    /// Where join requests go; only the manager has one.
    pub identity_calls: Option<mpsc::Sender<IdentityCall>>,
    /// Timeouts.
    pub settings: Settings,
}

/// The owner's handle for all its links. None of its methods waits for the network. Dropping it ends all connections as
/// a crash would; [`close`](Self::close) says goodbye.
#[derive(Debug)]
pub struct Links {
    identity: PeerId,
    address: SocketAddr,
    identity_calls: bool,
    commands: mpsc::Sender<Command>,
    outgoing: BTreeMap<PeerId, Outgoing>,
    revoked: BTreeSet<PeerId>,
}

/// The sending end of one link, as the handle knows it.
#[derive(Debug)]
struct Outgoing {
    last: MessageNumber,
    room: Arc<Semaphore>,
}

impl Links {
    /// Opens the socket and resumes all links. Must be called inside a tokio runtime.
    pub fn open(identity: &Identity, opening: Opening) -> Result<(Self, mpsc::Receiver<Event>), Error> {
        let Opening { listen, incarnation, links, revoked, identity_calls, settings } = opening;
        let endpoint = quic::endpoint(identity, listen)?;
        endpoint.set_server_config(Some(quic::server(tls::server(identity, identity_calls.is_some())?)?));
        let dialling = quic::client(tls::client(identity, Purpose::Link)?)?;
        let address = endpoint.local_addr().map_err(|source| Error::Listen { address: listen, source })?;

        let last = |state: &LinkState| Outgoing { last: state.last_sent, room: room() };
        let outgoing = links.iter().map(|(peer, state)| (*peer, last(state))).collect();
        let (commands, to_obey) = mpsc::channel(QUEUE);
        let (inbox, events) = mpsc::channel(INBOX_EVENTS);
        let (identity, takes_identity_calls) = (identity.certified().peer, identity_calls.is_some());
        let board = Switchboard::new(identity, incarnation, endpoint, dialling, settings, links, revoked.clone())?;
        tokio::spawn(board.run(to_obey, inbox, identity_calls));
        Ok((Self { identity, address, identity_calls: takes_identity_calls, commands, outgoing, revoked }, events))
    }

    /// The address that we listen on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a message and returns its number. It is kept and resent until the peer acknowledges it. Refuses with
    /// [`Error::OutboxFull`] when too much is unacknowledged: hold back what causes messages to this peer until
    /// [`Event::Acknowledged`] makes room.
    pub async fn send(&mut self, peer: PeerId, payload: Vec<u8>) -> Result<MessageNumber, Error> {
        if self.revoked.contains(&peer) || peer == self.identity {
            return Err(Error::Revoked { peer });
        }
        if payload.len() > MESSAGE_BYTES_MAX {
            return Err(Error::MessageTooLong { bytes: payload.len(), bytes_max: MESSAGE_BYTES_MAX });
        }
        let outgoing =
            self.outgoing.entry(peer).or_insert_with(|| Outgoing { last: MessageNumber::default(), room: room() });
        let price = u32::try_from(payload.len() + MESSAGE_PRICE).expect("messages are shorter than MESSAGE_BYTES_MAX");
        let taken = Arc::clone(&outgoing.room).try_acquire_many_owned(price);
        let parcel = Parcel { payload, _room: Some(taken.map_err(|_| Error::OutboxFull { peer })?) };
        // First the place in the queue, then the number: a caller that stops waiting leaves no gap.
        let place = self.commands.reserve().await.map_err(|_| Error::LinksClosed)?;
        outgoing.last = outgoing.last.next();
        place.send(Command::Post { peer, number: outgoing.last, parcel });
        Ok(outgoing.last)
    }

    /// Reports that everything up to this message of the peer is in the journal; it is acknowledged now.
    pub async fn applied(&self, peer: PeerId, through: MessageNumber) -> Result<(), Error> {
        self.tell(Command::Applied { peer, through }).await
    }

    /// Sets the address of a peer; may be called again when it changes.
    pub async fn introduce(&self, peer: PeerId, contact: Contact) -> Result<(), Error> {
        self.tell(Command::Introduce { peer, contact }).await
    }

    /// Refuses a peer from now on, closes its connection and forgets its link.
    pub async fn revoke(&mut self, peer: PeerId) -> Result<(), Error> {
        self.revoked.insert(peer);
        self.outgoing.remove(&peer);
        self.tell(Command::Revoke { peer }).await
    }

    /// Uses a new certificate in all handshakes from now on; existing connections are not touched.
    pub async fn renew(&self, identity: &Identity) -> Result<(), Error> {
        let server = quic::server(tls::server(identity, self.identity_calls)?)?;
        let client = quic::client(tls::client(identity, Purpose::Link)?)?;
        self.tell(Command::Renew { server: Box::new(server), client: Box::new(client) }).await
    }

    /// Drops a connection as the network might; the link recovers by itself. For drills.
    pub async fn hang_up(&self, peer: PeerId) -> Result<(), Error> {
        self.tell(Command::HangUp { peer }).await
    }

    /// Says goodbye on every connection. The socket is closed when the last of them has ended, which can take a moment.
    pub async fn close(self) {
        self.farewell().await;
    }

    /// Like [`close`](Self::close), for an owner that cannot move the handle; nothing can be sent afterwards.
    pub(crate) async fn farewell(&self) {
        let (done, closed) = oneshot::channel();
        if self.tell(Command::Close { done }).await.is_ok() {
            // An error means that the switchboard has ended already, which is the goal.
            let _ = closed.await;
        }
    }

    async fn tell(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).await.map_err(|_| Error::LinksClosed)
    }
}

fn room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(OUTBOX_BYTES_MAX))
}
