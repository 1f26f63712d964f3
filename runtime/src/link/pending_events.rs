//! Events that the owner has not fetched yet.
//!
//! An owner may be slow, and peers must not be able to fill our memory meanwhile. Messages are bounded by the window of
//! each link; of all other events only the latest matters, so one slot per peer and kind is enough. Peers take turns.

use std::collections::{BTreeMap, VecDeque};

use super::{Event, MessageNumber, Refusal};
use crate::peer::{Incarnation, PeerId};

#[derive(Default, Debug)]
pub(super) struct PendingEvents {
    /// Round-robin order; each peer with an event is here once.
    turns: VecDeque<PeerId>,
    of: BTreeMap<PeerId, EventsOfPeer>,
}

#[derive(Default, Debug)]
struct EventsOfPeer {
    standing: Option<Standing>,
    acknowledged: Option<MessageNumber>,
    refusal: Option<Refusal>,
    messages: VecDeque<(MessageNumber, Vec<u8>)>,
}

/// Whether there is a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    Up(Incarnation),
    Down { farewell: bool },
}

impl PendingEvents {
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub(super) fn message(&mut self, peer: PeerId, number: MessageNumber, payload: Vec<u8>) {
        self.about(peer).messages.push_back((number, payload));
    }

    pub(super) fn acknowledged(&mut self, peer: PeerId, through: MessageNumber) {
        self.about(peer).acknowledged = Some(through);
    }

    pub(super) fn standing(&mut self, peer: PeerId, standing: Standing) {
        self.about(peer).standing = Some(standing);
    }

    pub(super) fn refused(&mut self, peer: PeerId, refusal: Refusal) {
        self.about(peer).refusal = Some(refusal);
    }

    /// Drops the events of a revoked peer.
    pub(super) fn forget(&mut self, peer: PeerId) {
        if self.of.remove(&peer).is_some() {
            self.turns.retain(|other| *other != peer);
        }
    }

    /// The next event.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        let peer = self.turns.pop_front()?;
        let mut news = self.of.remove(&peer).expect("a peer in the queue has events");
        let event = news.next_event(peer);
        if !news.is_empty() {
            self.turns.push_back(peer);
            self.of.insert(peer, news);
        }
        event
    }

    fn about(&mut self, peer: PeerId) -> &mut EventsOfPeer {
        self.of.entry(peer).or_insert_with(|| {
            self.turns.push_back(peer);
            EventsOfPeer::default()
        })
    }
}

impl EventsOfPeer {
    fn is_empty(&self) -> bool {
        self.standing.is_none() && self.acknowledged.is_none() && self.refusal.is_none() && self.messages.is_empty()
    }

    fn next_event(&mut self, peer: PeerId) -> Option<Event> {
        if let Some(standing) = self.standing.take() {
            return Some(match standing {
                Standing::Up(incarnation) => Event::Up { peer, incarnation },
                Standing::Down { farewell } => Event::Down { peer, farewell },
            });
        }
        if let Some(refusal) = self.refusal.take() {
            return Some(Event::Refused { peer, refusal });
        }
        if let Some(through) = self.acknowledged.take() {
            return Some(Event::Acknowledged { peer, through });
        }
        let (number, payload) = self.messages.pop_front()?;
        Some(Event::Received { peer, number, payload })
    }
}
