//! An ordered map by numbers that are given out one after the other, for very many elements.
//!
//! Think of a book with numbered lines: a reader who knows the number opens the right page and goes straight to the line. A
//! tree would search at each level, and with a hundred thousand elements each level is a wait for memory. Here an element
//! is found where its number says, as long as few have left; where many have, by halving a short page.

use crate::{BindingId, ComponentId, VmId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{collections::BTreeMap, fmt, ops::Index};

/// How many numbers share a page.
const PAGE: u64 = 64;

/// Something with a number of its own.
pub trait Numbered: Copy + Ord {
    /// Its number.
    fn number(self) -> u64;
}

impl Numbered for u64 {
    fn number(self) -> u64 {
        self
    }
}

impl Numbered for VmId {
    fn number(self) -> u64 {
        self.0
    }
}

impl Numbered for ComponentId {
    fn number(self) -> u64 {
        self.0
    }
}

impl Numbered for BindingId {
    fn number(self) -> u64 {
        self.0
    }
}

/// An ordered map by numbers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PagedMap<K, V> {
    /// The pages that are not empty, by their place in the sequence of all pages.
    pages: Vec<(u64, Vec<(K, V)>)>,
}

impl<K: Numbered, V> PagedMap<K, V> {
    /// The value of a number.
    pub fn get(&self, key: &K) -> Option<&V> {
        let page = place(&self.pages, &page_of(*key)).ok()?;
        let lines = &self.pages[page].1;
        place(lines, key).ok().map(|line| &lines[line].1)
    }

    /// The value of a number, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let page = place(&self.pages, &page_of(*key)).ok()?;
        let lines = &mut self.pages[page].1;
        place(lines, key).ok().map(|line| &mut lines[line].1)
    }

    /// Whether a number is there.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Puts a value there; returns the one that was there before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let lines = self.page(key);
        match place(lines, &key) {
            Ok(line) => Some(std::mem::replace(&mut lines[line].1, value)),
            Err(line) => {
                lines.insert(line, (key, value));
                None
            }
        }
    }

    /// The value of a number, which is made if it is not there.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let lines = self.page(key);
        let line = place(lines, &key).unwrap_or_else(|line| {
            lines.insert(line, (key, V::default()));
            line
        });
        &mut lines[line].1
    }

    /// The page of a number, about to be written on.
    fn page(&mut self, key: K) -> &mut Vec<(K, V)> {
        let number = page_of(key);
        let page = place(&self.pages, &number).unwrap_or_else(|page| {
            self.pages.insert(page, (number, Vec::new()));
            page
        });
        &mut self.pages[page].1
    }

    /// Takes a value out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let page = place(&self.pages, &page_of(*key)).ok()?;
        let lines = &mut self.pages[page].1;
        let (_, value) = lines.remove(place(lines, key).ok()?);
        if lines.is_empty() {
            self.pages.remove(page);
        }
        Some(value)
    }

    /// The numbers from one on, in order.
    pub fn keys_from(&self, first: K) -> impl Iterator<Item = K> {
        let (Ok(page) | Err(page)) = place(&self.pages, &page_of(first));
        let lines = self.pages[page..].iter().flat_map(|(_, lines)| lines);
        lines.map(|(key, _)| *key).skip_while(move |key| *key < first)
    }
}

impl<K, V> PagedMap<K, V> {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> + Clone {
        self.pages.iter().flat_map(|(_, lines)| lines).map(|(key, value)| (key, value))
    }

    /// The numbers, in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// The values, in order.
    pub fn values(&self) -> impl Iterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }
}

fn page_of(key: impl Numbered) -> u64 {
    key.number() / PAGE
}

/// Where a number is in a sorted list, or should be. If none is missing since the first, it is as far from the first as
/// its number says.
fn place<K: Numbered, V>(list: &[(K, V)], key: &K) -> Result<usize, usize> {
    let Some((first, _)) = list.first() else { return Err(0) };
    let guess = usize::try_from(key.number().saturating_sub(first.number())).unwrap_or(usize::MAX);
    match list.get(guess) {
        Some((found, _)) if found == key => Ok(guess),
        _ if list[list.len() - 1].0 < *key => Err(list.len()),
        _ => list.binary_search_by(|(found, _)| found.cmp(key)),
    }
}

impl<K, V> Default for PagedMap<K, V> {
    fn default() -> Self {
        Self { pages: Vec::new() }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for PagedMap<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Numbered, V> Index<&K> for PagedMap<K, V> {
    type Output = V;
    fn index(&self, key: &K) -> &V {
        self.get(key).expect("only what is there is looked up by index")
    }
}

impl<K: Numbered, V> FromIterator<(K, V)> for PagedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(elements: I) -> Self {
        let mut paged = Self::default();
        elements.into_iter().for_each(|(key, value)| drop(paged.insert(key, value)));
        paged
    }
}

impl<K: Serialize, V: Serialize> Serialize for PagedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The number of elements is written first, so it must be known.
        let all: Vec<(&K, &V)> = self.iter().collect();
        serializer.collect_map(all)
    }
}

impl<'de, K: Deserialize<'de> + Numbered, V: Deserialize<'de>> Deserialize<'de> for PagedMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(|tree| tree.into_iter().collect())
    }
}

/// A set of numbers that are given out one after the other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PagedSet<K>(PagedMap<K, ()>);

impl<K: Numbered> PagedSet<K> {
    /// Whether a number is in it.
    pub fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// Puts a number in.
    pub fn insert(&mut self, key: K) {
        self.0.insert(key, ());
    }

    /// Takes a number out.
    pub fn remove(&mut self, key: &K) {
        self.0.remove(key);
    }

    /// Keeps only these.
    pub fn retain(&mut self, keeps: impl Fn(&K) -> bool)
    where
        K: Copy,
    {
        let others: Vec<K> = self.iter().filter(|key| !keeps(key)).copied().collect();
        others.iter().for_each(|key| self.remove(key));
    }

    /// Whether no number is in both.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        !self.iter().any(|key| other.contains(key))
    }
}

impl<K> PagedSet<K> {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = &K> + Clone {
        self.0.keys()
    }
}

impl<K> Default for PagedSet<K> {
    fn default() -> Self {
        Self(PagedMap::default())
    }
}

impl<K: fmt::Debug> fmt::Debug for PagedSet<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

impl<K: Numbered> Extend<K> for PagedSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| self.insert(key));
    }
}

impl<K: Serialize> Serialize for PagedSet<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The number of elements is written first, so it must be known.
        let all: Vec<&K> = self.iter().collect();
        serializer.collect_seq(all)
    }
}

impl<'de, K: Deserialize<'de> + Numbered> Deserialize<'de> for PagedSet<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut set = Self::default();
        set.extend(Vec::deserialize(deserializer)?);
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_what_a_tree_would_be(changes in prop::collection::vec((0_u64..400, any::<bool>()), 0..300)) {
            let (mut paged, mut tree) = (PagedMap::default(), BTreeMap::new());
            for (step, (key, joins)) in changes.into_iter().enumerate() {
                if joins {
                    prop_assert_eq!(paged.insert(key, step), tree.insert(key, step));
                } else {
                    prop_assert_eq!(paged.remove(&key), tree.remove(&key));
                }
                prop_assert_eq!(paged.get(&key), tree.get(&key));
                prop_assert!(paged.iter().eq(&tree));
                prop_assert!(paged.keys_from(key).eq(tree.range(key..).map(|(key, _)| *key)));
                prop_assert_eq!(paged.is_empty(), tree.is_empty());
                // However it came about, the same elements are the same paged.
                prop_assert_eq!(&paged, &tree.clone().into_iter().collect());
            }
        }
    }

    #[test]
    fn it_is_written_as_a_tree_would_be() {
        let tree: BTreeMap<u64, u8> = [(1, 1), (2, 2), (1_000, 3)].into();
        let paged: PagedMap<u64, u8> = tree.clone().into_iter().collect();
        let settings = bincode::config::standard();
        let written = bincode::serde::encode_to_vec(&paged, settings).unwrap();
        assert_eq!(written, bincode::serde::encode_to_vec(&tree, settings).unwrap());
        assert_eq!(bincode::serde::decode_from_slice(&written, settings).unwrap(), (paged, written.len()));
    }

    #[test]
    fn a_set_is_written_as_a_tree_would_be() {
        let tree: std::collections::BTreeSet<u64> = [1, 2, 1_000].into();
        let mut set = PagedSet::default();
        set.extend([1_000, 1, 2, 3]);
        set.remove(&3);
        let settings = bincode::config::standard();
        let written = bincode::serde::encode_to_vec(&set, settings).unwrap();
        assert_eq!(written, bincode::serde::encode_to_vec(&tree, settings).unwrap());
        assert_eq!(bincode::serde::decode_from_slice(&written, settings).unwrap(), (set, written.len()));
    }
}
