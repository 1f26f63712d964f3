//! Join tokens, and the file in which the manager stores them.
//!
//! The text of a token contains a secret and the fingerprint of the authority: the first admits the new peer, the
//! second lets it recognise the true manager. The file contains only the hash of the secret. The first key that
//! presents a token spends it; the same key may present it again, because an answer can be lost.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs;
use std::path::PathBuf;

use super::certificate::{Fingerprint, from_hexadecimal, hexadecimal};
use crate::data_directory::replace_file;
use crate::error::Error;
use crate::peer::{PeerId, Timestamp, VmName};

const PREFIX: &str = "hf1";

/// A join token as the operator passes it on.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    pub(super) secret: [u8; 16],
    /// Fingerprint of the authority's certificate.
    pub authority: Fingerprint,
}

impl JoinToken {
    /// Parses the text of a token.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut parts = text.trim().split('-');
        let (prefix, secret, authority) = (parts.next(), parts.next(), parts.next());
        if prefix != Some(PREFIX) || parts.next().is_some() {
            return Err(Error::Unreadable { what: "join token" });
        }
        let secret = secret.and_then(from_hexadecimal);
        let authority = authority.and_then(Fingerprint::parse);
        secret
            .zip(authority)
            .map(|(secret, authority)| Self { secret, authority })
            .ok_or(Error::Unreadable { what: "join token" })
    }
}

impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}-{}-{}", hexadecimal(&self.secret), self.authority)
    }
}

/// A secret does not belong in a log.
impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinToken(for {})", self.authority)
    }
}

/// Why a join request or a renewal is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JoinRefusal {
    /// No such token was ever created, or it expired long ago.
    #[error("unknown join token (create one with `holdfast token create`)")]
    UnknownToken,
    /// It has expired.
    #[error("the join token has expired (create a new one)")]
    Expired,
    /// Another key has spent it.
    #[error("the join token has already been used by {0}")]
    AlreadyUsed(PeerId),
    /// It was created for another VM.
    #[error("the join token is valid for {0} only")]
    WrongName(VmName),
    /// The VM was removed or declared lost.
    #[error("{0} was removed or declared lost, and cannot rejoin (let it join as a new VM)")]
    Revoked(PeerId),
    /// A VM of that name exists.
    #[error("a VM named {0} already exists (choose another name, or remove that VM first)")]
    NameTaken(VmName),
    /// The manager refuses a VM of that name, with this reason.
    #[error("{0}")]
    NotWanted(String),
    /// The request for a certificate is malformed, or not signed by the key it is for.
    #[error("the certificate request is invalid")]
    BadRequest,
}

/// All tokens that may still be presented, stored in one small file.
#[derive(Debug)]
pub(super) struct TokenBook {
    path: PathBuf,
    entries: BTreeMap<Fingerprint, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    expires: Timestamp,
    name: Option<VmName>,
    spent: Option<(Fingerprint, PeerId)>,
}

impl TokenBook {
    pub(super) fn load(path: PathBuf) -> Result<Self, Error> {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(Error::file("read", &path)(source)),
        };
        let entries = text.lines().map(read_entry).collect::<Option<_>>();
        let entries = entries.ok_or_else(|| Error::Damaged { path: path.clone() })?;
        Ok(Self { path, entries })
    }

    /// Adds a new token, and removes expired ones. Durable when this returns.
    pub(super) fn enter(
        &mut self,
        secret: &[u8],
        expires: Timestamp,
        name: Option<VmName>,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.entries.retain(|_, entry| entry.expires >= now);
        self.entries.insert(Fingerprint::of(secret), Entry { expires, name, spent: None });
        self.save()
    }

    /// Whether this key may use the token for this name; the number it got if it has done so before.
    pub(super) fn examine(
        &self,
        secret: &[u8],
        name: &VmName,
        key: Fingerprint,
        now: Timestamp,
    ) -> Result<Option<PeerId>, JoinRefusal> {
        let entry = self.entries.get(&Fingerprint::of(secret)).ok_or(JoinRefusal::UnknownToken)?;
        if entry.expires < now {
            return Err(JoinRefusal::Expired);
        }
        match (&entry.name, entry.spent) {
            (Some(meant), _) if meant != name => Err(JoinRefusal::WrongName(meant.clone())),
            (_, Some((by, peer))) if by != key => Err(JoinRefusal::AlreadyUsed(peer)),
            (_, spent) => Ok(spent.map(|(_, peer)| peer)),
        }
    }

    /// Marks the token as spent. Durable when this returns.
    pub(super) fn spend(&mut self, secret: &[u8], key: Fingerprint, peer: PeerId) -> Result<(), Error> {
        let entry = self.entries.get_mut(&Fingerprint::of(secret)).ok_or(JoinRefusal::UnknownToken)?;
        entry.spent = Some((key, peer));
        self.save()
    }

    fn save(&self) -> Result<(), Error> {
        let mut text = String::new();
        for (secret, Entry { expires, name, spent }) in &self.entries {
            let name = name.as_ref().map_or("*", VmName::as_str);
            let spent = spent.map_or("-".to_owned(), |(key, peer)| format!("{key}:{}", peer.0));
            writeln!(text, "{secret} {} {name} {spent}", expires.0).expect("writing to a string cannot fail");
        }
        replace_file(&self.path, text.as_bytes())
    }
}

fn read_entry(line: &str) -> Option<(Fingerprint, Entry)> {
    let mut words = line.split(' ');
    let secret = Fingerprint::parse(words.next()?)?;
    let expires = Timestamp(words.next()?.parse().ok()?);
    let name = match words.next()? {
        "*" => None,
        name => Some(VmName::parse(name).ok()?),
    };
    let spent = match words.next()? {
        "-" => None,
        spent => {
            let (key, peer) = spent.split_once(':')?;
            Some((Fingerprint::parse(key)?, PeerId(peer.parse().ok()?)))
        }
    };
    words.next().is_none().then_some((secret, Entry { expires, name, spent }))
}
