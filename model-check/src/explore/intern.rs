//! Interning: every part, input and item that was ever seen gets a small number and a 128-bit fingerprint.
//!
//! A world of an exploration differs from its neighbour in two or three parts, and the same part occurs in very many
//! worlds. So a world is a row of small numbers, and what a machine does on an input is computed once and remembered.

use rustc_hash::FxHashMap;
use siphasher::sip128::{Hasher128, SipHasher13};
use std::{
    hash::Hash,
    sync::{Arc, RwLock},
};

/// The fingerprint of a value.
pub(super) fn fingerprint<T: Hash>(value: &T) -> u128 {
    let mut hasher = SipHasher13::new();
    value.hash(&mut hasher);
    hasher.finish128().as_u128()
}

/// Half of a fingerprint, where 64 bits are enough.
pub(super) fn half(print: u128) -> u64 {
    u64::try_from(print >> 64).expect("the upper half of 128 bits has 64")
}

/// A table of values that several threads fill.
pub(super) struct Interner<T> {
    table: RwLock<Table<T>>,
}

struct Table<T> {
    numbers: FxHashMap<u128, u32>,
    values: Vec<(Arc<T>, u128)>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { table: RwLock::new(Table { numbers: FxHashMap::default(), values: Vec::new() }) }
    }
}

impl<T: Hash> Interner<T> {
    /// The number of a value.
    pub(super) fn number(&self, value: T) -> u32 {
        let print = fingerprint(&value);
        if let Some(number) = self.read().numbers.get(&print) {
            return *number;
        }
        let mut table = self.table.write().expect("no thread panics while it holds the table");
        if let Some(number) = table.numbers.get(&print) {
            return *number;
        }
        let number = u32::try_from(table.values.len()).expect("fewer than four thousand million distinct parts");
        table.values.push((Arc::new(value), print));
        table.numbers.insert(print, number);
        number
    }

    /// The value with a number, and its fingerprint.
    pub(super) fn value(&self, number: u32) -> (Arc<T>, u128) {
        self.read().values[number as usize].clone()
    }

    /// How many values there are.
    pub(super) fn count(&self) -> usize {
        self.read().values.len()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Table<T>> {
        self.table.read().expect("no thread panics while it holds the table")
    }
}
