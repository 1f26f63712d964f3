//! Interning: every part, input and item that was ever seen gets a small number and a 128-bit fingerprint.
//!
//! A world of an exploration differs from its neighbour in two or three parts, and the same part occurs in very many
//! worlds. So a world is a row of small numbers, and what a machine does on an input is computed once and remembered.

use rustc_hash::FxHashMap;
use std::{
    hash::{Hash, Hasher},
    sync::{Arc, RwLock},
};

/// The fingerprint of a value.
pub(super) fn fingerprint<T: Hash>(value: &T) -> u128 {
    let mut printer = Printer(0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344);
    value.hash(&mut printer);
    mix(printer.0)
}

/// Makes 128-bit fingerprints that are the same on every machine. Each word is taken in by a step that loses nothing: two
/// different states stay different, and two different words make one state into different ones. The constants are odd and
/// otherwise arbitrary; worlds are not chosen by an adversary.
struct Printer(u128);

impl Printer {
    fn take(&mut self, word: u64) {
        let state = (self.0 ^ u128::from(word)).wrapping_mul(0xda94_2042_e4dd_58b5_9e37_79b9_7f4a_7c15);
        self.0 = state ^ (state >> 67);
    }
}

impl Hasher for Printer {
    fn finish(&self) -> u64 {
        half(mix(self.0))
    }

    fn write(&mut self, bytes: &[u8]) {
        self.take(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.take(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.take(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.take(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.take(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.take(number);
    }

    fn write_u128(&mut self, number: u128) {
        self.take(half(number));
        self.take(half(number << 64));
    }

    fn write_usize(&mut self, number: usize) {
        self.take(number as u64);
    }
}

/// Spreads every bit over all others, so that a sum of mixed numbers says which numbers were mixed.
pub(super) fn mix(number: u128) -> u128 {
    let number = (number ^ (number >> 67)).wrapping_mul(0xda94_2042_e4dd_58b5_9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 59)).wrapping_mul(0x2127_599b_f432_5c37_bf58_476d_1ce4_e5b9);
    number ^ (number >> 61)
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
