//! Small statements signed by the manager, which a third party can verify.
//!
//! What is stated is up to the caller. Signing is deterministic: the same bytes give the same ticket, so a replay gives
//! the same outputs. The key is the authority's own; a prefix keeps a ticket from ever being interpreted as a
//! certificate.

use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};

use crate::error::Error;

const CONTEXT: &[u8] = b"holdfast ticket 1\0";
const LENGTH: usize = 64;

/// The manager's signature under some bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub [u8; LENGTH]);

impl Ticket {
    pub(super) fn sign(key: &Ed25519KeyPair, statement: &[u8]) -> Self {
        let mut ticket = [0; LENGTH];
        ticket.copy_from_slice(key.sign(&[CONTEXT, statement].concat()).as_ref());
        Self(ticket)
    }

    pub(super) fn verify(&self, public_key: &[u8], statement: &[u8]) -> Result<(), Error> {
        UnparsedPublicKey::new(&ED25519, public_key)
            .verify(&[CONTEXT, statement].concat(), &self.0)
            .map_err(|_| Error::FalseTicket)
    }
}
