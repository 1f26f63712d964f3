//! The format of a segment: one frame per commit.
//!
//! The frame is the unit of durability. A frame is written only after the sync of the one before it has returned, so a
//! complete frame proves that everything before it was durable; the reader uses this to distinguish an incomplete tail
//! (no complete frame follows: truncate it) from a corrupt middle (a complete frame follows: refuse). For that, a
//! header must be found without trusting the bytes before it: frames start at multiples of eight, and a header carries
//! a checksum salted with the segment's own random number, so that no payload can be mistaken for one.
//!
//! The chain is a running SHA-256: each frame's value covers the one before, its header and its body. One value thus
//! represents the whole history, and is also the checksum of the frame.

use ring::digest::{Context, SHA256};

use super::RecordNumber;

/// Alignment of frames.
pub(super) const ALIGNMENT: usize = 8;
/// Magic, body length, number of the first record, count, spare, chain, checksum.
pub(super) const HEADER: usize = 4 + 4 + 8 + 4 + 4 + 32 + 8;
/// A longer body is not one of our frames; this bounds arithmetic and memory for any input.
pub(super) const BODY_MAX: usize = 64 << 20;

const MAGIC: [u8; 4] = *b"HFfr";
const LENGTH_PREFIX: usize = 4;

/// The running hash up to and including a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chain(pub(super) [u8; 32]);

impl Chain {
    /// The chain of an empty journal.
    pub(super) const EMPTY: Self = Self([0; 32]);

    /// The first bytes in hexadecimal, for comparison by eye.
    pub fn short(&self) -> String {
        self.0[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A segment's random number; see the head of this file.
pub(super) type Salt = [u8; 16];

/// A header with a valid checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) first: RecordNumber,
    pub(super) count: u32,
    pub(super) body_length: usize,
    pub(super) chain: Chain,
}

impl Header {
    /// Reads the header at the start of `bytes`; `None` if there is none.
    pub(super) fn read(bytes: &[u8], salt: &Salt) -> Option<Self> {
        let header = bytes.get(..HEADER)?;
        if header[..4] != MAGIC || header[56..64] != check(&header[..56], salt) {
            return None;
        }
        let body_length = usize::try_from(number_u32(&header[4..8])).ok()?;
        if body_length > BODY_MAX || !body_length.is_multiple_of(ALIGNMENT) {
            return None;
        }
        let mut chain = [0; 32];
        chain.copy_from_slice(&header[24..56]);
        Some(Self {
            first: RecordNumber(number_u64(&header[8..16])),
            count: number_u32(&header[16..20]),
            body_length,
            chain: Chain(chain),
        })
    }

    pub(super) fn frame_length(&self) -> usize {
        HEADER + self.body_length
    }

    /// Whether `body` is what this header was made for, after `previous`.
    pub(super) fn vouches_for(&self, body: &[u8], previous: &Chain) -> bool {
        self.chain == chain_after(previous, self.first, self.count, body)
    }
}

/// A frame under construction: records are added one after another, then it is sealed.
#[derive(Debug)]
pub(super) struct FrameBuilder {
    bytes: Vec<u8>,
    count: u32,
}

impl FrameBuilder {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; HEADER], count: 0 }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn body_length(&self) -> usize {
        self.bytes.len() - HEADER
    }

    /// The size of a record in the body.
    pub(super) fn cost(record: &[u8]) -> usize {
        LENGTH_PREFIX + record.len()
    }

    /// The caller has checked that the body stays within [`BODY_MAX`].
    pub(super) fn push(&mut self, record: &[u8]) {
        let length = u32::try_from(record.len()).expect("records are shorter than BODY_MAX");
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(record);
        self.count += 1;
    }

    /// The length of the sealed frame.
    pub(super) fn sealed_length(&self) -> usize {
        self.bytes.len().next_multiple_of(ALIGNMENT)
    }

    /// Seals the frame; the result is ready to be written.
    pub(super) fn seal(&mut self, first: RecordNumber, previous: &Chain, salt: &Salt) -> (&[u8], Chain) {
        self.bytes.resize(self.sealed_length(), 0);
        let body_length = u32::try_from(self.bytes.len() - HEADER).expect("bodies are shorter than BODY_MAX");
        let chain = chain_after(previous, first, self.count, &self.bytes[HEADER..]);
        self.bytes[..4].copy_from_slice(&MAGIC);
        self.bytes[4..8].copy_from_slice(&body_length.to_le_bytes());
        self.bytes[8..16].copy_from_slice(&first.0.to_le_bytes());
        self.bytes[16..20].copy_from_slice(&self.count.to_le_bytes());
        self.bytes[20..24].fill(0);
        self.bytes[24..56].copy_from_slice(&chain.0);
        let check = check(&self.bytes[..56], salt);
        self.bytes[56..64].copy_from_slice(&check);
        (&self.bytes, chain)
    }

    /// Clears the builder and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.bytes.truncate(HEADER);
        self.count = 0;
    }
}

/// Splits a body into records. `None` if its lengths do not add up, which the chain makes impossible except for a bug.
pub(super) fn records(mut body: &[u8], count: u32) -> Option<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for _ in 0..count {
        let (length, rest) = body.split_at_checked(LENGTH_PREFIX)?;
        let (record, rest) = rest.split_at_checked(usize::try_from(number_u32(length)).ok()?)?;
        found.push(record.to_vec());
        body = rest;
    }
    Some(found)
}

fn chain_after(previous: &Chain, first: RecordNumber, count: u32, body: &[u8]) -> Chain {
    let mut context = Context::new(&SHA256);
    context.update(&previous.0);
    context.update(&first.0.to_le_bytes());
    context.update(&count.to_le_bytes());
    context.update(body);
    let mut chain = [0; 32];
    chain.copy_from_slice(context.finish().as_ref());
    Chain(chain)
}

/// Eight bytes of SHA-256 over salt and bytes.
pub(super) fn check(bytes: &[u8], salt: &Salt) -> [u8; 8] {
    let mut context = Context::new(&SHA256);
    context.update(salt);
    context.update(bytes);
    let mut check = [0; 8];
    check.copy_from_slice(&context.finish().as_ref()[..8]);
    check
}

pub(super) fn number_u32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("the caller cut four bytes"))
}

pub(super) fn number_u64(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("the caller cut eight bytes"))
}
