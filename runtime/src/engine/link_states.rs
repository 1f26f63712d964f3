//! The state of every link, as the journal records it: what was sent and not acknowledged, what was received, the
//! addresses of peers and which peers are revoked. After a crash, [`Links`](crate::link::Links) continues from this.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use super::Output;
use super::entry::number;
use crate::link::{LinkState, MessageNumber};
use crate::peer::{Incarnation, PeerId};

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct LinkStates {
    links: BTreeMap<PeerId, Side>,
    contacts: BTreeMap<PeerId, SocketAddr>,
    revoked: BTreeSet<PeerId>,
}

/// This side of one link.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Side {
    sent: MessageNumber,
    received: MessageNumber,
    unacknowledged: VecDeque<Vec<u8>>,
    incarnation: Option<Incarnation>,
}

impl LinkStates {
    /// Updates the links with the outputs of a step.
    pub(super) fn record<E>(&mut self, output: &Output<E>) {
        match output {
            Output::Send(peer, payload) if !self.revoked.contains(peer) => {
                let side = self.links.entry(*peer).or_default();
                side.sent = side.sent.next();
                side.unacknowledged.push_back(payload.clone());
            }
            Output::Introduce(peer, address) => {
                self.contacts.insert(*peer, *address);
            }
            Output::Revoke(peer) => {
                self.links.remove(peer);
                self.contacts.remove(peer);
                self.revoked.insert(*peer);
            }
            Output::Send(..) | Output::Effect(_) => {}
        }
    }

    pub(super) fn received(&mut self, peer: PeerId, number: MessageNumber) {
        self.links.entry(peer).or_default().received = number;
    }

    pub(super) fn acknowledged(&mut self, peer: PeerId, through: MessageNumber) {
        let Some(side) = self.links.get_mut(&peer) else { return };
        let kept = usize::try_from(side.sent.0.saturating_sub(through.0)).unwrap_or(usize::MAX);
        while side.unacknowledged.len() > kept {
            side.unacknowledged.pop_front();
        }
    }

    /// Records a peer's incarnation; returns whether it is new.
    pub(super) fn met(&mut self, peer: PeerId, incarnation: Incarnation) -> bool {
        self.links.entry(peer).or_default().incarnation.replace(incarnation) != Some(incarnation)
    }

    pub(super) fn link_states(&self) -> BTreeMap<PeerId, LinkState> {
        let state = |side: &Side| LinkState {
            last_sent: side.sent,
            last_applied: side.received,
            unacknowledged: side.unacknowledged.iter().cloned().collect(),
            incarnation: side.incarnation,
        };
        self.links.iter().map(|(peer, side)| (*peer, state(side))).collect()
    }

    pub(super) fn contacts(&self) -> &BTreeMap<PeerId, SocketAddr> {
        &self.contacts
    }

    pub(super) fn revoked(&self) -> &BTreeSet<PeerId> {
        &self.revoked
    }

    /// Encodes it for a snapshot; [`Self::read`] decodes it.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut page = Page(Vec::new());
        page.number(self.links.len() as u64);
        for (peer, side) in &self.links {
            page.number(peer.0);
            page.number(side.sent.0);
            page.number(side.received.0);
            page.number(u64::from(side.incarnation.is_some()));
            page.number(side.incarnation.map_or(0, |incarnation| incarnation.0));
            page.number(side.unacknowledged.len() as u64);
            side.unacknowledged.iter().for_each(|payload| page.bytes(payload));
        }
        page.number(self.contacts.len() as u64);
        for (peer, address) in &self.contacts {
            page.number(peer.0);
            page.bytes(address.to_string().as_bytes());
        }
        page.number(self.revoked.len() as u64);
        self.revoked.iter().for_each(|peer| page.number(peer.0));
        page.0
    }

    /// Decodes what [`Self::write`] has encoded, from the front of the bytes.
    pub(super) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let mut link_states = Self::default();
        for _ in 0..number(bytes)? {
            let peer = PeerId(number(bytes)?);
            let (sent, received) = (MessageNumber(number(bytes)?), MessageNumber(number(bytes)?));
            let (is_met, incarnation) = (number(bytes)? == 1, Incarnation(number(bytes)?));
            let mut unacknowledged = VecDeque::new();
            for _ in 0..number(bytes)? {
                unacknowledged.push_back(text(bytes)?.to_vec());
            }
            let side = Side { sent, received, unacknowledged, incarnation: is_met.then_some(incarnation) };
            link_states.links.insert(peer, side);
        }
        for _ in 0..number(bytes)? {
            let peer = PeerId(number(bytes)?);
            link_states.contacts.insert(peer, std::str::from_utf8(text(bytes)?).ok()?.parse().ok()?);
        }
        for _ in 0..number(bytes)? {
            link_states.revoked.insert(PeerId(number(bytes)?));
        }
        Some(link_states)
    }
}

struct Page(Vec<u8>);

impl Page {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

/// Takes length-prefixed bytes from the front.
fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: PeerId = PeerId(4);

    fn send(payload: &[u8]) -> Output<()> {
        Output::Send(PEER, payload.to_vec())
    }

    #[test]
    fn what_is_acknowledged_is_forgotten_and_the_rest_is_sent_again() {
        let mut link_states = LinkStates::default();
        for payload in [b"one".as_slice(), b"two", b"three"] {
            link_states.record(&send(payload));
        }
        link_states.acknowledged(PEER, MessageNumber(2));
        // An old acknowledgement changes nothing.
        link_states.acknowledged(PEER, MessageNumber(1));
        let state = &link_states.link_states()[&PEER];
        assert_eq!(state.last_sent, MessageNumber(3));
        assert_eq!(state.unacknowledged, [b"three".to_vec()]);
    }

    #[test]
    fn nothing_is_kept_for_who_is_heard_no_more() {
        let mut link_states = LinkStates::default();
        link_states.record(&send(b"one"));
        link_states.record(&Output::<()>::Revoke(PEER));
        link_states.record(&send(b"two"));
        assert!(link_states.link_states().is_empty());
        assert!(link_states.revoked().contains(&PEER));
    }

    #[test]
    fn it_comes_back_as_it_was_written() {
        let mut link_states = LinkStates::default();
        link_states.record(&send(b"one"));
        link_states.received(PeerId(9), MessageNumber(5));
        link_states.met(PeerId(9), Incarnation(1));
        link_states.record(&Output::<()>::Introduce(PEER, ([127, 0, 0, 1], 80).into()));
        link_states.record(&Output::<()>::Revoke(PeerId(2)));
        let bytes = [link_states.write(), b"rest".to_vec()].concat();
        let mut left = bytes.as_slice();
        assert_eq!(LinkStates::read(&mut left), Some(link_states));
        assert_eq!(left, b"rest");
        for length in 0..bytes.len() - 4 {
            assert_eq!(LinkStates::read(&mut &bytes[..length]), None);
        }
    }
}
