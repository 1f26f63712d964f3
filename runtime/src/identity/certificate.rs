//! The contents of a certificate, decoded.
//!
//! A peer's number is in the alternative name `peer-N.holdfast`, which rustls also checks when dialling; the VM's name
//! is the common name. Whether the certificate is genuine has been decided before anything here is called.

use std::fmt;

use ring::digest::{SHA256, digest};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::error::Error;
use crate::peer::{PeerId, Timestamp, VmName};

const PREFIX: &str = "peer-";
const SUFFIX: &str = ".holdfast";

/// What the authority certifies in a peer's certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certified {
    /// The peer.
    pub peer: PeerId,
    /// The name of its VM.
    pub name: VmName,
    /// Start of its validity.
    pub from: Timestamp,
    /// End of its validity.
    pub until: Timestamp,
}

impl Certified {
    /// Reads a peer's certificate.
    pub fn read(der: &[u8]) -> Result<Self, Error> {
        let unreadable = || Error::Unreadable { what: "certificate" };
        let (_, certificate) = X509Certificate::from_der(der).map_err(|_| unreadable())?;
        let names = certificate.subject_alternative_name().ok().flatten().ok_or_else(unreadable)?;
        let peer = match names.value.general_names.as_slice() {
            [GeneralName::DNSName(name)] => peer_in(name).ok_or_else(unreadable)?,
            _ => return Err(unreadable()),
        };
        let name = certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
        let seconds = |time: i64| Timestamp(u64::try_from(time).unwrap_or(0));
        Ok(Self {
            peer,
            name: VmName::parse(name.ok_or_else(unreadable)?)?,
            from: seconds(certificate.validity().not_before.timestamp()),
            until: seconds(certificate.validity().not_after.timestamp()),
        })
    }

    /// When two thirds of its lifetime are over: time to renew it.
    pub fn renewal_due(&self) -> Timestamp {
        let life = self.until.0.saturating_sub(self.from.0);
        self.until.before(life / 3)
    }
}

/// The host name under which a peer is dialled.
pub(crate) fn host_name(peer: PeerId) -> String {
    format!("{PREFIX}{}{SUFFIX}", peer.0)
}

fn peer_in(host_name: &str) -> Option<PeerId> {
    let peer = PeerId(host_name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()?);
    // A number has exactly one spelling.
    (self::host_name(peer) == host_name).then_some(peer)
}

/// The Ed25519 key in a certificate.
pub(super) fn public_key(der: &[u8]) -> Result<Vec<u8>, Error> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|_| Error::Unreadable { what: "certificate" })?;
    Ok(certificate.public_key().subject_public_key.data.to_vec())
}

/// The SHA-256 of bytes that have to be recognised: an authority's certificate, a key, a secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub(super) [u8; 32]);

impl Fingerprint {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest(&SHA256, bytes).as_ref());
        Self(fingerprint)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        from_hexadecimal(text).map(Self)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exactly `N` bytes in small hexadecimal digits.
pub(super) fn from_hexadecimal<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_one_host_name() {
        assert_eq!(peer_in(&host_name(PeerId(17))), Some(PeerId(17)));
        for other in ["peer-017.holdfast", "peer-+1.holdfast", "peer-.holdfast", "peer-1", "peer-1.holdfast."] {
            assert_eq!(peer_in(other), None, "{other}");
        }
    }

    #[test]
    fn hexadecimal_is_read_back_and_nothing_else_is() {
        assert_eq!(from_hexadecimal::<3>(&hexadecimal(&[0, 171, 255])), Some([0, 171, 255]));
        for other in ["", "0", "00ab", "00abfff", "00abfg", "00ABFF", "00äf"] {
            assert_eq!(from_hexadecimal::<3>(other), None, "{other}");
        }
    }
}
