//! Operators' tokens and their roles. Only hashes of tokens are stored.
//!
//! A token is an identifier and a secret of 256 random bits. The file holds the SHA-256 of the secret, so the file alone
//! grants no access; a slow hash would not add protection, because such a secret cannot be guessed. A presented token is
//! compared with every stored one, each time in full, so that the time taken reveals nothing.

use crate::document::{Role, Token};
use ring::{
    digest, hmac,
    rand::{SecureRandom, SystemRandom},
};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard},
};

/// Maximum number of tokens.
const TOKENS_MAX: usize = 1_000;
/// Prefix of a token's text, by which people and secret scanners recognise it.
const PREFIX: &str = "holdfast_";

/// The operators' tokens, stored in one file.
#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    entries: Mutex<Vec<Entry>>,
    /// A random key for each run of the program: comparing under it takes the same time whatever is compared.
    key: hmac::Key,
    random: SystemRandom,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    token: Token,
    sha256: String,
}

/// Why tokens could not be read, created or revoked. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The file cannot be read.
    #[error("{}: cannot be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// The file is not in the format that this program writes.
    #[error("{}: damaged (restore it from a backup, or remove it and create new tokens)", .0.display())]
    Damaged(PathBuf, #[source] serde_json::Error),
    /// The file cannot be written.
    #[error("the tokens cannot be written")]
    Write(#[source] Box<runtime::Error>),
    /// The operating system provided no random numbers.
    #[error("the operating system provided no random numbers")]
    Random,
    /// There are too many tokens.
    #[error("there are {TOKENS_MAX} tokens already (revoke those that are not in use)")]
    TooMany,
    /// There is no such token.
    #[error("there is no token {0:?}")]
    Unknown(String),
    /// Without it, no one could manage tokens any more.
    #[error("token {0:?} is the last one that may manage tokens (create another admin token first)")]
    LastAdmin(String),
}

impl Tokens {
    /// Reads the tokens from this file; there are none if the file does not exist.
    pub fn open(path: &Path) -> Result<Self, TokensError> {
        let entries = match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| TokensError::Damaged(path.into(), error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(TokensError::Read(path.into(), error)),
        };
        let random = SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random).map_err(|_| TokensError::Random)?;
        Ok(Self { path: path.into(), entries: Mutex::new(entries), key, random })
    }

    /// Creates a token and returns its text, which is not stored. Durable when this returns.
    pub fn create(&self, name: &str, role: Role, at_ms: u64) -> Result<(String, Token), TokensError> {
        let (id, secret) = (hexadecimal(&self.draw::<4>()?), hexadecimal(&self.draw::<32>()?));
        let token = Token { id, name: name.into(), role, created_at_ms: at_ms };
        let text = format!("{PREFIX}{}_{secret}", token.id);
        let entry = Entry { token: token.clone(), sha256: hashed(&text) };
        let mut entries = self.entries();
        if entries.len() >= TOKENS_MAX {
            return Err(TokensError::TooMany);
        }
        self.save(&mut entries, |entries| entries.push(entry))?;
        Ok((text, token))
    }

    /// All tokens, oldest first.
    pub fn list(&self) -> Vec<Token> {
        self.entries().iter().map(|entry| entry.token.clone()).collect()
    }

    /// Revokes a token. Durable when this returns; from then on the token is rejected.
    pub fn revoke(&self, id: &str) -> Result<(), TokensError> {
        let mut entries = self.entries();
        let is_admin = |entry: &&Entry| entry.token.role == Role::Admin;
        let found = entries.iter().find(|entry| entry.token.id == id).ok_or_else(|| TokensError::Unknown(id.into()))?;
        if is_admin(&found) && entries.iter().filter(is_admin).count() == 1 {
            return Err(TokensError::LastAdmin(id.into()));
        }
        self.save(&mut entries, |entries| entries.retain(|entry| entry.token.id != id))
    }

    /// The token with this text, if it exists.
    pub fn recognise(&self, text: &str) -> Option<Token> {
        let presented = hmac::sign(&self.key, hashed(text).as_bytes());
        let entries = self.entries();
        let mut found = None;
        for entry in entries.iter() {
            if hmac::verify(&self.key, entry.sha256.as_bytes(), presented.as_ref()).is_ok() {
                found = Some(entry.token.clone());
            }
        }
        found
    }

    /// The token of this id, if there is one.
    pub(crate) fn by_id(&self, id: &str) -> Option<Token> {
        self.entries().iter().find(|entry| entry.token.id == id).map(|entry| entry.token.clone())
    }

    /// The directory of the file, which is the manager's data directory.
    pub(crate) fn directory(&self) -> PathBuf {
        self.path.parent().map(Path::to_owned).unwrap_or_default()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        // Entries are replaced as a whole, so a thread that panicked while it held the lock has left them intact.
        self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Writes the changed list to disk first, then changes the list in memory.
    fn save(&self, entries: &mut Vec<Entry>, change: impl FnOnce(&mut Vec<Entry>)) -> Result<(), TokensError> {
        let mut changed = entries.clone();
        change(&mut changed);
        let bytes = serde_json::to_vec_pretty(&changed).expect("tokens are strings and numbers");
        let write = |error| TokensError::Write(Box::new(error));
        runtime::data_directory::replace_file(&self.path, &bytes).map_err(write)?;
        *entries = changed;
        Ok(())
    }

    fn draw<const N: usize>(&self) -> Result<[u8; N], TokensError> {
        let mut bytes = [0; N];
        self.random.fill(&mut bytes).map_err(|_| TokensError::Random)?;
        Ok(bytes)
    }
}

fn hashed(text: &str) -> String {
    hexadecimal(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
