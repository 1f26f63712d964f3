//! How messages look on the wire and in the journal: the one place of encoding.
//!
//! An encoded message is a version byte followed by bincode. It never exceeds [`MESSAGE_BYTES_MAX`], on the way out as on
//! the way in; what is left over after a message is an error, not an afterthought. Bytes from outside are never trusted:
//! no length that they claim is believed beyond a limit, and nothing they say can cause a panic.
//!
//! Variants of enums are encoded by their place, so new ones are appended at the end. Framing belongs to those who own a
//! stream or a file; no other file of the project names bincode.

use crate::bounds::MESSAGE_BYTES_MAX;
use bincode::{config, enc::write::Writer, error::EncodeError};
use serde::{Serialize, de::DeserializeOwned};
use std::error::Error;

/// The first byte of every message. Another one means a peer of another generation.
pub const VERSION: u8 = 2;

/// A number that takes one byte on the wire counts with its full width against the decoder's limit.
const CLAIMED_PER_BYTE: usize = 8;

/// Messages up to this length cannot claim more than [`MESSAGE_BYTES_MAX`], whatever lengths they contain.
const SMALL_BYTES_MAX: usize = MESSAGE_BYTES_MAX / CLAIMED_PER_BYTE;

/// The largest state that is taken back from a journal: far beyond any that is written.
const SAVED_BYTES_MAX: usize = 1 << 36;

/// Why a message cannot be encoded or decoded. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// On the way out, it would be longer than the bound; on the way in, it is. Only a very large message gets here.
    #[error("message is longer than {MESSAGE_BYTES_MAX} bytes (make a smaller change, or shorter values)")]
    TooLong,
    /// There is not even a version byte.
    #[error("message is empty")]
    Empty,
    /// It was written by another generation of the program.
    #[error("message has version {0}, not {VERSION} (update the older program)")]
    Version(u8),
    /// The bytes are no message of this sort. Between two programs of one version this does not happen.
    #[error("message is malformed")]
    Malformed(#[source] Box<dyn Error + Send + Sync>),
    /// The message ends before the bytes do.
    #[error("message is followed by {0} bytes that do not belong to it")]
    Trailing(usize),
    /// It contains something that has no encoding. No message of this crate does.
    #[error("message cannot be encoded")]
    Unencodable(#[source] Box<dyn Error + Send + Sync>),
}

/// A message as bytes.
pub fn encode<M: Serialize>(message: &M) -> Result<Vec<u8>, WireError> {
    let mut page = Page { bytes: vec![VERSION], is_full: false };
    match bincode::serde::encode_into_writer(message, &mut page, config::standard()) {
        Ok(()) => Ok(page.bytes),
        Err(_) if page.is_full => Err(WireError::TooLong),
        Err(error) => Err(WireError::Unencodable(error.into())),
    }
}

/// The message in these bytes, all of them.
pub fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, WireError> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(WireError::TooLong);
    }
    let (version, body) = bytes.split_first().ok_or(WireError::Empty)?;
    if *version != VERSION {
        return Err(WireError::Version(*version));
    }
    let decoded = if bytes.len() <= SMALL_BYTES_MAX {
        bincode::serde::decode_from_slice(body, config::standard().with_limit::<MESSAGE_BYTES_MAX>())
    } else {
        let config = config::standard().with_limit::<{ MESSAGE_BYTES_MAX * CLAIMED_PER_BYTE }>();
        bincode::serde::decode_from_slice(body, config)
    };
    let (message, read) = decoded.map_err(|error| WireError::Malformed(error.into()))?;
    match body.len() - read {
        0 => Ok(message),
        left => Err(WireError::Trailing(left)),
    }
}

/// A machine's whole state, or what it was told, as bytes for its own journal: as [`encode`], without the bound.
pub fn save<S: Serialize>(state: &S) -> Result<Vec<u8>, WireError> {
    let mut bytes = vec![VERSION];
    bincode::serde::encode_into_std_write(state, &mut bytes, config::standard())
        .map_err(|error| WireError::Unencodable(error.into()))?;
    Ok(bytes)
}

/// What [`save`] wrote. The bytes come from our own disk, under a checksum, so their lengths are believed.
pub fn load<S: DeserializeOwned>(bytes: &[u8]) -> Result<S, WireError> {
    let (version, body) = bytes.split_first().ok_or(WireError::Empty)?;
    if *version != VERSION {
        return Err(WireError::Version(*version));
    }
    let (state, read) = bincode::serde::decode_from_slice(body, config::standard().with_limit::<SAVED_BYTES_MAX>())
        .map_err(|error| WireError::Malformed(error.into()))?;
    match body.len() - read {
        0 => Ok(state),
        left => Err(WireError::Trailing(left)),
    }
}

/// Where a message is written: a page of limited length, so that what is too long is never built up.
struct Page {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Writer for Page {
    fn write(&mut self, more: &[u8]) -> Result<(), EncodeError> {
        if self.bytes.len() + more.len() > MESSAGE_BYTES_MAX {
            self.is_full = true;
            return Err(EncodeError::UnexpectedEnd);
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BindingId, Notice, Ticket};

    const STARTED: Notice = Notice::Started { binding: BindingId(7) };

    #[test]
    fn a_message_is_a_version_byte_and_its_body() {
        let bytes = encode(&STARTED).unwrap();
        assert_eq!(bytes, [VERSION, 1, 7]);
        assert_eq!(decode::<Notice>(&bytes).unwrap(), STARTED);
    }

    #[test]
    fn what_is_not_exactly_one_message_of_this_version_is_refused() {
        assert!(matches!(decode::<Notice>(&[]), Err(WireError::Empty)));
        assert!(matches!(decode::<Notice>(&[VERSION + 1, 1, 7]), Err(WireError::Version(3))));
        assert!(matches!(decode::<Notice>(&[VERSION, 1]), Err(WireError::Malformed(_))));
        assert!(matches!(decode::<Notice>(&[VERSION, 99, 7]), Err(WireError::Malformed(_))));
        assert!(matches!(decode::<Notice>(&[VERSION, 1, 7, 0, 0]), Err(WireError::Trailing(2))));
    }

    #[test]
    fn the_bound_holds_on_the_way_out_and_on_the_way_in() {
        let room = MESSAGE_BYTES_MAX - 6;
        let longest = encode(&Ticket(vec![0; room])).unwrap();
        assert_eq!(longest.len(), MESSAGE_BYTES_MAX);
        assert_eq!(decode::<Ticket>(&longest).unwrap(), Ticket(vec![0; room]));
        assert!(matches!(encode(&Ticket(vec![0; room + 1])), Err(WireError::TooLong)));
        assert!(matches!(decode::<Ticket>(&vec![VERSION; MESSAGE_BYTES_MAX + 1]), Err(WireError::TooLong)));
    }

    #[test]
    fn whatever_can_be_encoded_can_be_decoded_even_if_every_number_is_short() {
        // One byte each on the wire, eight in the decoder's eyes.
        let numbers = vec![1_u64; MESSAGE_BYTES_MAX - 6];
        let bytes = encode(&numbers).unwrap();
        assert_eq!(bytes.len(), MESSAGE_BYTES_MAX);
        assert!(decode::<Vec<u64>>(&bytes).is_ok_and(|decoded| decoded == numbers));
    }

    #[test]
    fn a_short_message_that_claims_a_huge_length_is_refused() {
        // A text of 2^62 bytes, of which three follow.
        let huge = [VERSION, 253, 0, 0, 0, 0, 0, 0, 0, 64, b'a', b'b'];
        assert!(matches!(decode::<String>(&huge), Err(WireError::Malformed(_))));
        assert!(matches!(decode::<Vec<u64>>(&huge), Err(WireError::Malformed(_))));
    }
}
