//! Identifiers of peers: numbers and names that both identity and links use.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::Error;

/// The number of a participating program: 0 is the manager, any other number is the VM with that number. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeerId(pub u64);

impl PeerId {
    /// The manager.
    pub const MANAGER: Self = Self(0);
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::MANAGER => f.write_str("manager"),
            Self(number) => write!(f, "vm-{number}"),
        }
    }
}

/// The incarnation of a peer's *data directory*: generated when it is created, kept with it, different after the disk
/// was wiped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Incarnation(pub u64);

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "incarnation {:016x}", self.0)
    }
}

/// The name of a VM: 1 to 63 letters, digits and `- _ . ' [ ] /`, starting with a letter or digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VmName(String);

impl VmName {
    const LENGTH_MAX: usize = 63;

    /// Checks a name that came from outside.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.'[]/".contains(&byte);
        let starts_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if starts_well && text.len() <= Self::LENGTH_MAX && text.bytes().all(sound) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::BadName)
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Seconds since 1970 in UTC. Identity takes the time as a parameter; only programs read the clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The present time, from the system clock.
    pub fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs()))
    }

    /// Some seconds later.
    pub fn after(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(seconds))
    }

    /// Some seconds earlier.
    pub fn before(self, seconds: u64) -> Self {
        Self(self.0.saturating_sub(seconds))
    }
}
