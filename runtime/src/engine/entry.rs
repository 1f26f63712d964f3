//! The records of an engine's journal. A record is a tag, numbers of eight bytes, and the rest. The checksums of the
//! journal protect the bytes; a record that cannot be decoded here was written by a newer program.

use super::Moment;
use crate::link::MessageNumber;
use crate::peer::{Incarnation, PeerId};

/// An input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A message of a peer.
    Received {
        /// When.
        at: Moment,
        /// From which peer.
        from: PeerId,
        /// Its number on that link.
        number: MessageNumber,
        /// The peer's bytes.
        payload: Vec<u8>,
    },
    /// A local event.
    Happened {
        /// When.
        at: Moment,
        /// As encoded by [`super::Machine::write`].
        what: Vec<u8>,
    },
    /// A peer has journalled what was sent to it.
    Acknowledged {
        /// Which peer.
        by: PeerId,
        /// Up to which message.
        through: MessageNumber,
    },
    /// A peer was met for the first time.
    Met {
        /// Which peer.
        peer: PeerId,
        /// The incarnation of its data directory.
        incarnation: Incarnation,
    },
}

const RECEIVED: u8 = 1;
const HAPPENED: u8 = 2;
const ACKNOWLEDGED: u8 = 3;
const MET: u8 = 4;

impl Entry {
    /// Encodes it.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Received { at, from, number, payload } => write(RECEIVED, &[at.0, from.0, number.0], payload),
            Self::Happened { at, what } => write(HAPPENED, &[at.0], what),
            Self::Acknowledged { by, through } => write(ACKNOWLEDGED, &[by.0, through.0], &[]),
            Self::Met { peer, incarnation } => write(MET, &[peer.0, incarnation.0], &[]),
        }
    }

    /// Decodes it; `None` if this program does not know the record.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (tag, mut rest) = bytes.split_first()?;
        let entry = match *tag {
            RECEIVED => {
                let (at, from) = (Moment(number(&mut rest)?), PeerId(number(&mut rest)?));
                let number = MessageNumber(number(&mut rest)?);
                Self::Received { at, from, number, payload: std::mem::take(&mut rest).to_vec() }
            }
            HAPPENED => {
                let at = Moment(number(&mut rest)?);
                Self::Happened { at, what: std::mem::take(&mut rest).to_vec() }
            }
            ACKNOWLEDGED => {
                Self::Acknowledged { by: PeerId(number(&mut rest)?), through: MessageNumber(number(&mut rest)?) }
            }
            MET => Self::Met { peer: PeerId(number(&mut rest)?), incarnation: Incarnation(number(&mut rest)?) },
            _ => return None,
        };
        rest.is_empty().then_some(entry)
    }
}

fn write(tag: u8, numbers: &[u64], rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(rest);
    bytes
}

/// Takes a number from the front.
pub(super) fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_comes_back_as_it_was_written_and_garbage_does_not() {
        let (at, from) = (Moment(7), PeerId(3));
        let entries = [
            Entry::Received { at, from, number: MessageNumber(9), payload: b"order".to_vec() },
            Entry::Received { at, from, number: MessageNumber(u64::MAX), payload: Vec::new() },
            Entry::Happened { at, what: b"alarm".to_vec() },
            Entry::Acknowledged { by: from, through: MessageNumber(4) },
            Entry::Met { peer: from, incarnation: Incarnation(11) },
        ];
        for entry in entries {
            let bytes = entry.encode();
            assert_eq!(Entry::decode(&bytes), Some(entry));
        }
        let met = Entry::Met { peer: from, incarnation: Incarnation(11) }.encode();
        assert_eq!(Entry::decode(&met[..met.len() - 1]), None);
        assert_eq!(Entry::decode(&[met.as_slice(), &[0]].concat()), None);
        assert_eq!(Entry::decode(&[]), None);
        assert_eq!(Entry::decode(&[99, 0, 0]), None);
    }
}
