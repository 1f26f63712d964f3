//! The message numbers of one link: sent, acknowledged, received and applied.
//!
//! No socket, no clock. Exactly-once and in-order delivery rests on three rules. The sender keeps a message until the
//! peer acknowledges that it is in its journal, and after each reconnect resumes right behind that. The receiver
//! accepts only the next number: an older one is a duplicate and is dropped, a later one is a violation. And the
//! acknowledgement waits for the owner's journal, never for the network.

use std::collections::VecDeque;

use tokio::sync::OwnedSemaphorePermit;

use super::frame::{self, Hello};
use super::limits::{BATCH_BYTES, WINDOW_BYTES, WINDOW_MESSAGES};
use super::{LinkState, MessageNumber, Refusal, Violation};

/// An outgoing message. Its share of the outbox is released when it is dropped.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) payload: Vec<u8>,
    /// Messages from before a restart have none.
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

/// How an incoming message relates to those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// It is the next one.
    Fresh,
    /// It is a duplicate.
    Repeated,
}

#[derive(Debug)]
pub(super) struct DeliveryState {
    /// Unacknowledged messages, the oldest first; its number is `acknowledged + 1`.
    outbox: VecDeque<Parcel>,
    /// Everything up to here is in the peer's journal.
    acknowledged: MessageNumber,
    /// Everything up to here was written to the present connection.
    written: MessageNumber,
    /// Bytes that are written and not acknowledged.
    in_flight: usize,
    /// Everything up to here was passed to the owner.
    received: MessageNumber,
    /// Lengths of messages that are received and not applied.
    unapplied: VecDeque<usize>,
    unapplied_bytes: usize,
    /// Everything up to here is in the owner's journal.
    applied: MessageNumber,
    /// Everything up to here was acknowledged on the present connection.
    told: MessageNumber,
}

impl DeliveryState {
    /// Resumes from the owner's journal.
    pub(super) fn resume(state: LinkState) -> Self {
        let LinkState { last_sent, last_applied, unacknowledged, .. } = state;
        let acknowledged = MessageNumber(last_sent.0.saturating_sub(unacknowledged.len() as u64));
        Self {
            outbox: unacknowledged.into_iter().map(|payload| Parcel { payload, _room: None }).collect(),
            acknowledged,
            written: acknowledged,
            in_flight: 0,
            received: last_applied,
            unapplied: VecDeque::new(),
            unapplied_bytes: 0,
            applied: last_applied,
            told: last_applied,
        }
    }

    pub(super) fn sent(&self) -> MessageNumber {
        MessageNumber(self.acknowledged.0 + self.outbox.len() as u64)
    }

    pub(super) fn applied(&self) -> MessageNumber {
        self.applied
    }

    pub(super) fn acknowledged(&self) -> MessageNumber {
        self.acknowledged
    }

    /// Whether there are messages for the peer.
    pub(super) fn has_mail(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Whether nothing is pending in either direction.
    pub(super) fn is_quiet(&self) -> bool {
        self.outbox.is_empty() && self.received == self.told
    }

    /// Accepts a message; the handle assigns the numbers, one after another.
    pub(super) fn post(&mut self, number: MessageNumber, parcel: Parcel) {
        assert_eq!(number, self.sent().next(), "the handle numbers messages without gaps");
        self.outbox.push_back(parcel);
    }

    /// The owner has journalled everything up to this number.
    pub(super) fn apply(&mut self, through: MessageNumber) {
        assert!(through <= self.received, "{through} was applied and never received");
        while self.applied < through {
            self.applied = self.applied.next();
            self.unapplied_bytes -= self.unapplied.pop_front().expect("one length for each unapplied message");
        }
    }

    /// Whether the peer still has what it has acknowledged, and we have what it has seen. `same_life` says that it has
    /// not been restarted since the last connection: then it cannot have lost anything, and a delayed hello may be old.
    pub(super) fn agrees_with(&self, their: &Hello, same_life: bool) -> Result<(), Refusal> {
        if their.applied > self.sent() {
            return Err(Refusal::WeForgot { sent: self.sent(), applied: their.applied });
        }
        if !same_life && (their.applied < self.acknowledged || their.sent < self.received) {
            return Err(Refusal::PeerForgot {
                acknowledged: self.acknowledged,
                applied: their.applied,
                received: self.received,
                sent: their.sent,
            });
        }
        Ok(())
    }

    /// Begins a connection: `told` is what our own hello on it said.
    pub(super) fn connect(&mut self, their: &Hello, told: MessageNumber) {
        self.acknowledge(their.applied);
        self.disconnect();
        self.told = told;
    }

    /// What was written may be lost and will be written again.
    pub(super) fn disconnect(&mut self) {
        self.written = self.acknowledged;
        self.in_flight = 0;
    }

    pub(super) fn hear_message(&mut self, number: MessageNumber, length: usize) -> Result<Arrival, Violation> {
        let expected = self.received.next();
        if number < expected {
            return Ok(Arrival::Repeated);
        }
        if number > expected {
            return Err(Violation::Gap { expected, found: number });
        }
        let too_many = self.unapplied.len() >= WINDOW_MESSAGES;
        let too_long = !self.unapplied.is_empty() && self.unapplied_bytes + length > WINDOW_BYTES;
        if too_many || too_long {
            return Err(Violation::Window);
        }
        self.received = number;
        self.unapplied.push_back(length);
        self.unapplied_bytes += length;
        Ok(Arrival::Fresh)
    }

    /// Whether anything new was acknowledged.
    pub(super) fn hear_acknowledgement(&mut self, through: MessageNumber) -> Result<bool, Violation> {
        // Not `written`: what the peer received on an earlier connection, it may acknowledge on this one.
        if through > self.sent() {
            return Err(Violation::Acknowledgement { sent: self.sent(), found: through });
        }
        Ok(self.acknowledge(through))
    }

    fn acknowledge(&mut self, through: MessageNumber) -> bool {
        let before = self.acknowledged;
        while self.acknowledged < through {
            let Some(parcel) = self.outbox.pop_front() else { break };
            self.acknowledged = self.acknowledged.next();
            if self.acknowledged <= self.written {
                self.in_flight -= parcel.payload.len();
            }
        }
        self.written = self.written.max(self.acknowledged);
        self.acknowledged > before
    }

    /// Repeats our last acknowledgement, which changes nothing at the peer.
    pub(super) fn write_nudge(&self, buffer: &mut Vec<u8>) {
        frame::put_acknowledgement(buffer, self.told);
    }

    /// Writes what may be sent now into the buffer: our acknowledgement first, then as many messages as window and
    /// batch allow.
    pub(super) fn write(&mut self, buffer: &mut Vec<u8>) {
        if self.told < self.applied {
            self.told = self.applied;
            frame::put_acknowledgement(buffer, self.told);
        }
        while buffer.len() < BATCH_BYTES {
            let count = usize::try_from(self.written.0 - self.acknowledged.0).expect("the outbox fits in memory");
            let Some(parcel) = self.outbox.get(count) else { break };
            let length = parcel.payload.len();
            if count >= WINDOW_MESSAGES || (count > 0 && self.in_flight + length > WINDOW_BYTES) {
                break;
            }
            self.written = self.written.next();
            self.in_flight += length;
            frame::put_message(buffer, self.written, &parcel.payload);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{Decoder, Frame};
    use super::*;
    use crate::peer::{Incarnation, PeerId};

    /// Two ledgers and a connection that breaks, loses what is on the way, and is re-established; owners that apply late; and
    /// programs that restart with what they had journalled. Every choice comes from the seed.
    #[test]
    fn every_message_arrives_once_and_in_order_whatever_breaks() {
        for seed in 0..300 {
            Story::new(seed).run();
        }
    }

    struct Story {
        dice: u64,
        sides: [Side; 2],
        connected: bool,
    }

    struct Side {
        delivery: DeliveryState,
        /// Bytes on their way to this side.
        wire: Vec<u8>,
        decoder: Decoder,
        /// Handed to the owner and not journalled.
        fresh: Vec<u64>,
        /// What the owner has journalled; survives a restart.
        journal: Vec<u64>,
        /// How many messages this side has made; survives a restart.
        made: u64,
    }

    const MESSAGES: u64 = 40;

    impl Story {
        fn new(seed: u64) -> Self {
            let side = || Side {
                delivery: DeliveryState::resume(LinkState::default()),
                wire: Vec::new(),
                decoder: Decoder::default(),
                fresh: Vec::new(),
                journal: Vec::new(),
                made: 0,
            };
            Self { dice: seed, sides: [side(), side()], connected: false }
        }

        fn roll(&mut self, bound: u64) -> u64 {
            self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.dice >> 33) % bound
        }

        fn run(mut self) {
            let mut steps = 0;
            while !self.is_done() {
                steps += 1;
                assert!(steps < 200_000, "the run does not end");
                let at = usize::from(self.roll(2) == 1);
                match self.roll(20) {
                    0 => self.lose(),
                    1 => self.restart(at),
                    2..5 => self.connect(),
                    5..8 => self.make(at),
                    8..12 => self.write(at),
                    12..17 => self.deliver(at),
                    _ => self.apply(at),
                }
            }
            for side in &self.sides {
                assert_eq!(side.journal, (1..=MESSAGES).collect::<Vec<_>>());
            }
        }

        fn is_done(&self) -> bool {
            self.sides.iter().all(|side| side.journal.len() as u64 == MESSAGES && !side.delivery.has_mail())
        }

        fn make(&mut self, at: usize) {
            let side = &mut self.sides[at];
            if side.made < MESSAGES {
                side.made += 1;
                let payload = side.made.to_le_bytes().to_vec();
                side.delivery.post(MessageNumber(side.made), Parcel { payload, _room: None });
            }
        }

        fn connect(&mut self) {
            if self.connected {
                return;
            }
            let hellos = [0, 1].map(|at| self.sides[at].hello());
            for (at, side) in self.sides.iter_mut().enumerate() {
                let their = &hellos[1 - at];
                side.delivery.agrees_with(their, false).unwrap();
                side.delivery.connect(their, hellos[at].applied);
            }
            self.connected = true;
        }

        fn lose(&mut self) {
            for side in &mut self.sides {
                side.wire.clear();
                side.decoder = Decoder::default();
                side.delivery.disconnect();
            }
            self.connected = false;
        }

        /// The program forgets what is not journalled; its owner derives its messages again, even acknowledged ones.
        fn restart(&mut self, at: usize) {
            self.lose();
            let side = &mut self.sides[at];
            side.fresh.clear();
            let kept = side.delivery.acknowledged().0 / 2;
            side.delivery = DeliveryState::resume(LinkState {
                last_sent: MessageNumber(side.made),
                last_applied: MessageNumber(side.journal.len() as u64),
                unacknowledged: (kept + 1..=side.made).map(|number| number.to_le_bytes().to_vec()).collect(),
                incarnation: None,
            });
        }

        fn write(&mut self, at: usize) {
            if self.connected {
                let mut bytes = Vec::new();
                self.sides[at].delivery.write(&mut bytes);
                self.sides[1 - at].wire.extend_from_slice(&bytes);
            }
        }

        fn deliver(&mut self, at: usize) {
            let length = self.sides[at].wire.len() as u64;
            let count = usize::try_from(self.roll(length + 1)).unwrap();
            let side = &mut self.sides[at];
            let piece: Vec<u8> = side.wire.drain(..count).collect();
            side.decoder.push(&piece);
            while let Some(frame) = side.decoder.next_frame().unwrap() {
                match frame {
                    Frame::Message { number, payload } => {
                        if side.delivery.hear_message(number, payload.len()).unwrap() == Arrival::Fresh {
                            side.fresh.push(u64::from_le_bytes(payload.try_into().unwrap()));
                        }
                    }
                    Frame::Acknowledge(through) => {
                        side.delivery.hear_acknowledgement(through).unwrap();
                    }
                    Frame::Hello(_) => panic!("no hello is sent in this test"),
                }
            }
        }

        fn apply(&mut self, at: usize) {
            let side = &mut self.sides[at];
            side.journal.append(&mut side.fresh);
            side.delivery.apply(MessageNumber(side.journal.len() as u64));
        }
    }

    impl Side {
        fn hello(&self) -> Hello {
            let (applied, sent) = (self.delivery.applied(), self.delivery.sent());
            Hello { peer: PeerId(0), incarnation: Incarnation(0), life: 0, ordinal: 0, applied, sent }
        }
    }

    #[test]
    fn a_peer_that_forgot_is_refused_and_so_are_we() {
        let state = LinkState { last_sent: MessageNumber(5), last_applied: MessageNumber(7), ..LinkState::default() };
        let delivery = DeliveryState::resume(state);
        let hello = |applied, sent| Hello {
            peer: PeerId(1),
            incarnation: Incarnation(0),
            life: 0,
            ordinal: 0,
            applied: MessageNumber(applied),
            sent: MessageNumber(sent),
        };
        assert!(delivery.agrees_with(&hello(5, 7), false).is_ok());
        assert!(delivery.agrees_with(&hello(5, 9), false).is_ok());
        assert!(matches!(delivery.agrees_with(&hello(4, 7), false), Err(Refusal::PeerForgot { .. })));
        assert!(matches!(delivery.agrees_with(&hello(5, 6), false), Err(Refusal::PeerForgot { .. })));
        assert!(matches!(delivery.agrees_with(&hello(6, 7), false), Err(Refusal::WeForgot { .. })));
        // An old hello of a peer that was not restarted says nothing about its memory.
        assert!(delivery.agrees_with(&hello(4, 6), true).is_ok());
    }

    #[test]
    fn a_gap_a_flood_and_a_false_acknowledgement_are_violations() {
        let mut delivery = DeliveryState::resume(LinkState::default());
        let gap = delivery.hear_message(MessageNumber(2), 0);
        assert_eq!(gap, Err(Violation::Gap { expected: MessageNumber(1), found: MessageNumber(2) }));
        for number in 1..=WINDOW_MESSAGES as u64 {
            assert_eq!(delivery.hear_message(MessageNumber(number), 1), Ok(Arrival::Fresh));
        }
        assert_eq!(delivery.hear_message(MessageNumber(WINDOW_MESSAGES as u64 + 1), 1), Err(Violation::Window));
        assert!(delivery.hear_acknowledgement(MessageNumber(1)).is_err());
    }
}
