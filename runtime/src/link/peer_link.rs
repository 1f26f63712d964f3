//! One peer as the switchboard sees it: its delivery state, what is known of it, and its connection or the attempt to
//! get one.

use std::net::SocketAddr;
use std::time::Instant;

use quinn::Connection;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::connection::Goodbye;
use super::delivery::DeliveryState;
use super::frame::{self, Hello};
use super::known_peer::{KnownPeer, Rank};
use super::{Contact, LinkState, MessageNumber};
use crate::peer::Timestamp;

/// Further failures do not change the pause.
const FAILURES_MAX: u32 = 32;

#[derive(Debug)]
pub(super) struct PeerLink {
    pub(super) delivery: DeliveryState,
    pub(super) known_peer: KnownPeer,
    pub(super) contact: Contact,
    /// The address from which the peer last connected; it listens where it dials from.
    seen_at: Option<SocketAddr>,
    pub(super) live: Option<Live>,
    pub(super) attempt: Attempt,
    /// Failed attempts and connections since the last one that carried a message.
    pub(super) failures: u32,
    /// When something was last sent.
    pub(super) used: Instant,
    /// The last acknowledgement at the previous liveness check of the peer.
    looked_at: MessageNumber,
}

/// The connection that carries the link at present.
#[derive(Debug)]
pub(super) struct Live {
    /// Distinguishes its events from those of earlier connections.
    pub(super) generation: u64,
    pub(super) connection: Connection,
    pub(super) rank: Rank,
    /// When the peer's certificate expires.
    pub(super) until: Timestamp,
    pub(super) reader: AbortHandle,
    /// Has capacity for one batch, and is empty whenever `writer_waits`.
    pub(super) batches: mpsc::Sender<Vec<u8>>,
    pub(super) writer_waits: bool,
}

/// A dial that waits for its turn would keep the socket open after all others have ended.
impl Drop for PeerLink {
    fn drop(&mut self) {
        if let Attempt::Dialling { task, .. } = &self.attempt {
            task.abort();
        }
    }
}

/// The progress of our dial.
#[derive(Debug)]
pub(super) enum Attempt {
    /// There is none.
    None,
    /// The peer does not know of it yet, so it can be abandoned silently.
    Dialling { ordinal: u64, task: AbortHandle },
    /// Our hello is sent: the peer may have chosen this connection, so the ranks decide.
    Greeting { ordinal: u64 },
}

impl PeerLink {
    pub(super) fn new(state: LinkState) -> Self {
        Self {
            known_peer: KnownPeer::of(state.incarnation),
            delivery: DeliveryState::resume(state),
            contact: Contact::default(),
            seen_at: None,
            live: None,
            attempt: Attempt::None,
            failures: 0,
            used: Instant::now(),
            looked_at: MessageNumber::default(),
        }
    }

    /// Repeats the last acknowledgement if messages are under way and none was acknowledged since the previous check.
    pub(super) fn nudge(&mut self) {
        if self.looked_at == self.delivery.acknowledged() {
            let mut batch = Vec::new();
            self.delivery.write_nudge(&mut batch);
            self.write(batch);
        }
        self.looked_at = self.delivery.acknowledged();
    }

    /// Whether a connection is needed and there is none.
    pub(super) fn wants_connection(&self) -> bool {
        let idle = self.live.is_none() && matches!(self.attempt, Attempt::None);
        idle && (self.contact.held || self.delivery.has_mail())
    }

    /// Records the peer's address. If it has changed, the address from which the peer last connected is outdated:
    /// dialling it would only time out.
    pub(super) fn introduce(&mut self, contact: Contact) {
        if self.contact.address != contact.address {
            self.seen_at = None;
        }
        self.contact = contact;
        // What failed before may work now.
        self.failures = 0;
    }

    /// The address to dial: the configured one, and every other time the one from which the peer last connected.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match (self.contact.address, self.seen_at) {
            (Some(told), Some(_)) if self.failures.is_multiple_of(2) => Some(told),
            (told, seen) => seen.or(told),
        }
    }

    pub(super) fn note_failure(&mut self, for_good: bool) {
        self.failures = if for_good { FAILURES_MAX } else { (self.failures + 1).min(FAILURES_MAX) };
    }

    /// Drops the present connection: from here on its events are ignored.
    pub(super) fn hang_up(&mut self, goodbye: Goodbye, reason: &str) -> Option<Live> {
        let live = self.live.take()?;
        live.reader.abort();
        goodbye.say(&live.connection, reason);
        self.delivery.disconnect();
        Some(live)
    }

    /// Adopts a connection. The older one must have been dropped.
    pub(super) fn connect(&mut self, live: Live, their: &Hello, ours: &Hello, ours_is_said: bool) {
        assert!(self.live.is_none(), "the older connection is let go of before the newer is taken up");
        self.known_peer.meet(their);
        self.delivery.connect(their, ours.applied);
        self.seen_at = Some(live.connection.remote_address());
        self.used = Instant::now();
        if let Attempt::Dialling { task, .. } = &self.attempt {
            task.abort();
            self.attempt = Attempt::None;
        }
        self.live = Some(live);
        let mut first = Vec::new();
        if !ours_is_said {
            frame::put_hello(&mut first, ours);
        }
        self.write(first);
    }

    /// Gives the writer the next batch, if it waits for one.
    pub(super) fn write(&mut self, mut batch: Vec<u8>) {
        let Some(live) = &mut self.live else { return };
        if !live.writer_waits {
            return;
        }
        self.delivery.write(&mut batch);
        if !batch.is_empty() {
            self.used = Instant::now();
            live.writer_waits = false;
            // It fails only if the writer has ended; then so has the connection, and the event is on its way.
            let _ = live.batches.try_send(batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_with_a_new_address_is_not_dialled_at_its_old_one() {
        let address = |port: u16| Some(SocketAddr::from(([127, 0, 0, 1], port)));
        let mut line = PeerLink::new(LinkState::default());
        line.introduce(Contact { address: address(1), held: false });
        line.seen_at = address(2);
        // The configured address and the last seen one alternate.
        assert_eq!(line.address(), address(1));
        line.note_failure(false);
        assert_eq!(line.address(), address(2));
        // Setting the same address again changes nothing; a different one is dialled, also after a failure.
        line.introduce(Contact { address: address(1), held: true });
        line.note_failure(false);
        assert_eq!(line.address(), address(2));
        line.introduce(Contact { address: address(3), held: false });
        line.note_failure(false);
        assert_eq!(line.address(), address(3));
    }
}
