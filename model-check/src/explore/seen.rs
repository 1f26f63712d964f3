//! The worlds that were seen, by fingerprint.

use super::intern::half;
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

/// A fingerprint is as good as random: its own bits are its hash.
#[derive(Default)]
struct OwnBits(u64);

impl Hasher for OwnBits {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("only fingerprints are hashed")
    }
    fn write_u64(&mut self, bits: u64) {
        self.0 ^= bits;
    }
}

/// A fingerprint as two words, so that an entry takes 24 bytes and not 32.
#[derive(PartialEq, Eq)]
struct Print(u64, u64);

impl std::hash::Hash for Print {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.1);
    }
}

type Shelf = HashMap<Print, u32, BuildHasherDefault<OwnBits>>;

const SHELVES: usize = 64;

/// Fingerprints and the number of each world, in shelves so that threads seldom meet.
pub(super) struct Seen {
    shelves: Vec<Mutex<Shelf>>,
    count: AtomicU32,
}

impl Default for Seen {
    fn default() -> Self {
        Self { shelves: (0..SHELVES).map(|_| Mutex::default()).collect(), count: AtomicU32::new(0) }
    }
}

impl Seen {
    /// The number of the world with this fingerprint, and whether it is new.
    pub(super) fn insert(&self, print: u128) -> (u32, bool) {
        let print = Print(half(print), half(print << 64));
        let shelf = usize::try_from(print.0 % SHELVES as u64).expect("a small number");
        let mut shelf = self.shelves[shelf].lock().expect("no thread panics while it holds a shelf");
        let mut new = false;
        let index = *shelf.entry(print).or_insert_with(|| {
            new = true;
            self.count.fetch_add(1, Ordering::Relaxed)
        });
        (index, new)
    }

    /// How many worlds were seen.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let shelf = |shelf: &Mutex<Shelf>| shelf.lock().expect("no thread panics while it holds a shelf").capacity();
        // One byte of control beside each entry; capacity is seven eighths of the slots.
        self.shelves.iter().map(shelf).sum::<usize>() * 8 / 7 * (size_of::<(Print, u32)>() + 1)
    }
}
