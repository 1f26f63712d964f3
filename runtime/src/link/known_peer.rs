//! What is known of a peer besides message numbers, and which of two connections with it is the newer one.
//!
//! Both sides may dial at once, and a side that restarts dials while the other still considers the old connection
//! alive. If each side kept the connection that came last, they could close each other's choice forever. So both
//! compute *newer* in the same way: each dial carries an ordinal higher than any that the dialler has seen between the
//! two, and of equal ordinals that of the smaller peer number wins. A restarted peer has forgotten the ordinals; its
//! new run id shows that every older connection is dead, whatever its ordinal.

use std::cmp::Reverse;

use super::Refusal;
use super::frame::Hello;
use crate::peer::{Incarnation, PeerId};

/// The rank of a connection; the highest is the newest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Rank {
    ordinal: u64,
    dialler: Reverse<PeerId>,
}

impl Rank {
    pub(super) fn new(ordinal: u64, dialler: PeerId) -> Self {
        Self { ordinal, dialler: Reverse(dialler) }
    }

    pub(super) fn dialler(&self) -> PeerId {
        self.dialler.0
    }
}

/// What to do with a connection on which a hello was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It replaces any other.
    Newer {
        /// The peer's program has not been restarted since the last connection.
        same_life: bool,
    },
    /// A newer one exists.
    Older,
}

#[derive(Default, Debug)]
pub(super) struct KnownPeer {
    incarnation: Option<Incarnation>,
    life: Option<u64>,
    former_life: Option<u64>,
    /// The highest ordinal seen or used with this peer.
    ordinal: u64,
}

impl KnownPeer {
    pub(super) fn of(incarnation: Option<Incarnation>) -> Self {
        Self { incarnation, ..Self::default() }
    }

    /// The ordinal for our next dial.
    pub(super) fn next_ordinal(&mut self) -> u64 {
        self.ordinal = self.ordinal.saturating_add(1);
        self.ordinal
    }

    /// Compares a connection with the present one, if any.
    pub(super) fn weigh(&self, hello: &Hello, rank: Rank, present: Option<Rank>) -> Result<Verdict, Refusal> {
        if let Some(known) = self.incarnation
            && known != hello.incarnation
        {
            return Err(Refusal::Wiped { known, found: hello.incarnation });
        }
        let same_life = self.life == Some(hello.life);
        let older = if same_life {
            present.is_some_and(|present| present >= rank)
        } else {
            self.former_life == Some(hello.life)
        };
        Ok(if older { Verdict::Older } else { Verdict::Newer { same_life } })
    }

    /// Remembers the peer as it is on the chosen connection.
    pub(super) fn meet(&mut self, hello: &Hello) {
        self.incarnation = Some(hello.incarnation);
        if self.life != Some(hello.life) {
            self.former_life = self.life.replace(hello.life);
        }
        self.ordinal = self.ordinal.max(hello.ordinal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::MessageNumber;

    const A: PeerId = PeerId(1);
    const B: PeerId = PeerId(2);

    #[test]
    fn both_sides_choose_the_same_of_two_simultaneous_dials() {
        let (mut at_a, mut at_b) = (KnownPeer::default(), KnownPeer::default());
        let (from_a, from_b) = (at_a.next_ordinal(), at_b.next_ordinal());
        let (by_a, by_b) = (Rank::new(from_a, A), Rank::new(from_b, B));
        at_a.meet(&hello(B, 1, from_b));
        at_b.meet(&hello(A, 1, from_a));
        // Whichever connection each of them had first, both end up with the one that A dialled.
        let newer = Ok(Verdict::Newer { same_life: true });
        assert_eq!(at_a.weigh(&hello(B, 1, from_a), by_a, Some(by_b)), newer);
        assert_eq!(at_a.weigh(&hello(B, 1, from_b), by_b, Some(by_a)), Ok(Verdict::Older));
        assert_eq!(at_b.weigh(&hello(A, 1, from_a), by_a, Some(by_b)), newer);
        assert_eq!(at_b.weigh(&hello(A, 1, from_b), by_b, Some(by_a)), Ok(Verdict::Older));
    }

    #[test]
    fn a_new_run_wins_and_the_former_one_cannot_return() {
        let mut at_a = KnownPeer::default();
        at_a.meet(&hello(B, 1, 9));
        let present = Some(Rank::new(9, B));
        let restarted = hello(B, 2, 1);
        assert_eq!(at_a.weigh(&restarted, Rank::new(1, B), present), Ok(Verdict::Newer { same_life: false }));
        at_a.meet(&restarted);
        assert_eq!(at_a.weigh(&hello(B, 1, 10), Rank::new(10, B), None), Ok(Verdict::Older));
    }

    #[test]
    fn a_lost_connection_is_replaced_by_the_next_dial_of_the_same_side() {
        let mut at_a = KnownPeer::default();
        let first = at_a.next_ordinal();
        let second = at_a.next_ordinal();
        let mut at_b = KnownPeer::default();
        at_b.meet(&hello(A, 1, first));
        let verdict = at_b.weigh(&hello(A, 1, second), Rank::new(second, A), Some(Rank::new(first, A)));
        assert_eq!(verdict, Ok(Verdict::Newer { same_life: true }));
    }

    #[test]
    fn a_wiped_peer_is_refused() {
        let mut at_a = KnownPeer::of(Some(Incarnation(7)));
        let mut wiped = hello(B, 1, 1);
        assert!(matches!(at_a.weigh(&wiped, Rank::new(1, B), None), Err(Refusal::Wiped { .. })));
        wiped.incarnation = Incarnation(7);
        assert!(at_a.weigh(&wiped, Rank::new(1, B), None).is_ok());
        at_a.meet(&wiped);
    }

    fn hello(peer: PeerId, life: u64, ordinal: u64) -> Hello {
        let none = MessageNumber(0);
        Hello { peer, incarnation: Incarnation(0), life, ordinal, applied: none, sent: none }
    }
}
