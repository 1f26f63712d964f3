//! The wire format of a link. A frame is a version, a kind, a length and a body. The length is checked against the kind
//! before anything is buffered; any input is decoded to a frame or to a [`Violation`].

use super::limits::{BATCH_BYTES, MESSAGE_BYTES_MAX};
use super::{MessageNumber, Violation};
use crate::peer::{Incarnation, PeerId};

const VERSION: u8 = 1;
const HEADER: usize = 6;
const HELLO: u8 = 1;
const MESSAGE: u8 = 2;
const ACKNOWLEDGE: u8 = 3;
const HELLO_BODY: usize = 48;
const NUMBER: usize = 8;

/// The first frame on a connection, from each side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hello {
    /// The sender; the certificate must agree.
    pub(super) peer: PeerId,
    /// The incarnation of its data directory.
    pub(super) incarnation: Incarnation,
    /// Random id of this run of its program.
    pub(super) life: u64,
    /// The ordinal of this connection; see `known_peer.rs`.
    pub(super) ordinal: u64,
    /// The last message of the receiver that is in the sender's journal.
    pub(super) applied: MessageNumber,
    /// The last message that the sender has for the receiver.
    pub(super) sent: MessageNumber,
}

/// One frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Frame {
    /// Identity and positions; the first frame and no other.
    Hello(Hello),
    /// One message.
    Message {
        /// Without gaps within the direction, across all connections.
        number: MessageNumber,
        /// The owner's bytes.
        payload: Vec<u8>,
    },
    /// Everything up to this number is in the sender's journal.
    Acknowledge(MessageNumber),
}

pub(super) fn put_hello(buffer: &mut Vec<u8>, hello: &Hello) {
    put_header(buffer, HELLO, HELLO_BODY);
    let Hello { peer, incarnation, life, ordinal, applied, sent } = hello;
    for number in [peer.0, incarnation.0, *life, *ordinal, applied.0, sent.0] {
        buffer.extend_from_slice(&number.to_le_bytes());
    }
}

pub(super) fn put_message(buffer: &mut Vec<u8>, number: MessageNumber, payload: &[u8]) {
    put_header(buffer, MESSAGE, NUMBER + payload.len());
    buffer.extend_from_slice(&number.0.to_le_bytes());
    buffer.extend_from_slice(payload);
}

pub(super) fn put_acknowledgement(buffer: &mut Vec<u8>, through: MessageNumber) {
    put_header(buffer, ACKNOWLEDGE, NUMBER);
    buffer.extend_from_slice(&through.0.to_le_bytes());
}

fn put_header(buffer: &mut Vec<u8>, kind: u8, length: usize) {
    let length = u32::try_from(length).expect("messages are shorter than MESSAGE_BYTES_MAX");
    buffer.extend_from_slice(&[VERSION, kind]);
    buffer.extend_from_slice(&length.to_le_bytes());
}

/// Decodes a stream into frames. Buffers at most one frame and one chunk of the stream.
#[derive(Default, Debug)]
pub(super) struct Decoder {
    buffer: Vec<u8>,
    /// How much of the buffer has been consumed.
    taken: usize,
}

impl Decoder {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        // One long message must not keep its memory for the rest of the connection.
        if self.buffer.is_empty() && self.buffer.capacity() > BATCH_BYTES {
            self.buffer.shrink_to(BATCH_BYTES);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete frame, if there is one.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, Violation> {
        let rest = &self.buffer[self.taken..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER>() else { return Ok(None) };
        let [version, kind, length @ ..] = *header;
        if version != VERSION {
            return Err(Violation::Version(version));
        }
        let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| Violation::Length { kind })?;
        let sound = match kind {
            HELLO => length == HELLO_BODY,
            MESSAGE => (NUMBER..=NUMBER + MESSAGE_BYTES_MAX).contains(&length),
            ACKNOWLEDGE => length == NUMBER,
            _ => return Err(Violation::Kind(kind)),
        };
        if !sound {
            return Err(Violation::Length { kind });
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = match kind {
            HELLO => Frame::Hello(Hello {
                peer: PeerId(number(body, 0)),
                incarnation: Incarnation(number(body, 1)),
                life: number(body, 2),
                ordinal: number(body, 3),
                applied: MessageNumber(number(body, 4)),
                sent: MessageNumber(number(body, 5)),
            }),
            MESSAGE => Frame::Message { number: MessageNumber(number(body, 0)), payload: body[NUMBER..].to_vec() },
            _ => Frame::Acknowledge(MessageNumber(number(body, 0))),
        };
        self.taken += HEADER + length;
        Ok(Some(frame))
    }
}

/// The number at an offset of a body whose length has been checked.
fn number(body: &[u8], place: usize) -> u64 {
    let bytes = &body[place * NUMBER..(place + 1) * NUMBER];
    u64::from_le_bytes(bytes.try_into().expect("eight bytes were cut"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_decoded_however_the_stream_is_split() {
        let (bytes, frames) = sample();
        for piece in 1..bytes.len() {
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            for piece in bytes.chunks(piece) {
                decoder.push(piece);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    found.push(frame);
                }
            }
            assert_eq!(found, frames, "pieces of {piece}");
        }
    }

    #[test]
    fn the_encoding_of_each_frame_is_stable() {
        let mut bytes = Vec::new();
        put_message(&mut bytes, MessageNumber(258), b"hi");
        put_acknowledgement(&mut bytes, MessageNumber(3));
        assert_eq!(
            bytes,
            [1, 2, 10, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, b'h', b'i', 1, 3, 8, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn arbitrary_bytes_cause_at_worst_a_violation() {
        let (bytes, _) = sample();
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xFF] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                let mut decoder = Decoder::default();
                decoder.push(&damaged);
                while let Ok(Some(_)) = decoder.next_frame() {}
            }
        }
    }

    #[test]
    fn a_length_is_refused_before_its_bytes_arrive() {
        for (kind, length) in [(MESSAGE, NUMBER + MESSAGE_BYTES_MAX + 1), (MESSAGE, 7), (HELLO, 47), (ACKNOWLEDGE, 9)] {
            let mut bytes = Vec::new();
            put_header(&mut bytes, kind, length);
            let mut decoder = Decoder::default();
            decoder.push(&bytes);
            assert_eq!(decoder.next_frame(), Err(Violation::Length { kind }));
        }
    }

    fn sample() -> (Vec<u8>, Vec<Frame>) {
        let hello = Hello {
            peer: PeerId(7),
            incarnation: Incarnation(8),
            life: 9,
            ordinal: 10,
            applied: MessageNumber(11),
            sent: MessageNumber(12),
        };
        let mut bytes = Vec::new();
        put_hello(&mut bytes, &hello);
        put_message(&mut bytes, MessageNumber(13), b"hello");
        put_message(&mut bytes, MessageNumber(14), b"");
        put_acknowledgement(&mut bytes, MessageNumber(11));
        let frames = vec![
            Frame::Hello(hello),
            Frame::Message { number: MessageNumber(13), payload: b"hello".to_vec() },
            Frame::Message { number: MessageNumber(14), payload: Vec::new() },
            Frame::Acknowledge(MessageNumber(11)),
        ];
        (bytes, frames)
    }
}
