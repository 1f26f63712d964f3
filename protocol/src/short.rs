//! Ordered maps and sets for what is mostly short: a sorted list while it has few elements, a tree when it has many.
//!
//! A component has a handful of imports, loans and holdings, and there are very many components. A tree keeps room for
//! eleven elements even if there is one; a list keeps what there is, in one piece. A list that grows without end would
//! make each insertion dearer, hence the tree. Which of the two it is shows nowhere: equality, order, hashes and the
//! encoding are those of the elements.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{
    borrow::Borrow,
    cmp::Ordering,
    collections::{BTreeMap, btree_map},
    fmt,
    hash::{Hash, Hasher},
    ops::Index,
    slice,
};

/// A list becomes a tree when it would be longer.
const LIST_MAX: usize = 32;

/// An ordered map.
#[derive(Clone)]
pub struct ShortMap<K, V>(Form<K, V>);

#[derive(Clone)]
enum Form<K, V> {
    /// Sorted, each key once.
    List(Vec<(K, V)>),
    Tree(BTreeMap<K, V>),
}

impl<K, V> ShortMap<K, V> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::List(list) => list.len(),
            Form::Tree(tree) => tree.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All, in order.
    pub fn iter(&self) -> Iter<'_, K, V> {
        match &self.0 {
            Form::List(list) => Iter::List(list.iter()),
            Form::Tree(tree) => Iter::Tree(tree.iter()),
        }
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// The values, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Changes every value.
    pub(crate) fn change_all(&mut self, change: impl FnMut(&mut V)) {
        match &mut self.0 {
            Form::List(list) => list.iter_mut().map(|(_, value)| value).for_each(change),
            Form::Tree(tree) => tree.values_mut().for_each(change),
        }
    }
}

impl<K: Ord, V> ShortMap<K, V> {
    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        match &self.0 {
            Form::List(list) => place(list, key).ok().map(|place| &list[place].1),
            Form::Tree(tree) => tree.get(key),
        }
    }

    /// The value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        match &mut self.0 {
            Form::List(list) => place(list, key).ok().map(|place| &mut list[place].1),
            Form::Tree(tree) => tree.get_mut(key),
        }
    }

    /// Whether a key is there.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Puts a value there; returns the one that was there before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match &mut self.0 {
            Form::List(list) => match place(list, &key) {
                Ok(place) => return Some(std::mem::replace(&mut list[place].1, value)),
                Err(place) if list.len() < LIST_MAX => list.insert(place, (key, value)),
                Err(_) => {
                    let mut tree: BTreeMap<K, V> = std::mem::take(list).into_iter().collect();
                    tree.insert(key, value);
                    self.0 = Form::Tree(tree);
                }
            },
            Form::Tree(tree) => return tree.insert(key, value),
        }
        None
    }

    /// Takes a value out.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        match &mut self.0 {
            Form::List(list) => place(list, key).ok().map(|place| list.remove(place).1),
            Form::Tree(tree) => tree.remove(key),
        }
    }

    /// The value of a key, which is made if it is not there.
    pub fn or_default(&mut self, key: &K) -> &mut V
    where
        K: Clone,
        V: Default,
    {
        if !self.contains_key(key) {
            self.insert(key.clone(), V::default());
        }
        self.get_mut(key).expect("it was just put there")
    }
}

/// Where a key is in a sorted list, or should be. Mostly the numbers of what is new rise, so the end is looked at first.
fn place<K: Ord + Borrow<Q>, V, Q: Ord + ?Sized>(list: &[(K, V)], key: &Q) -> Result<usize, usize> {
    match list.last() {
        Some((last, _)) if last.borrow() < key => Err(list.len()),
        _ => list.binary_search_by(|(found, _)| found.borrow().cmp(key)),
    }
}

impl<K, V> Default for ShortMap<K, V> {
    fn default() -> Self {
        Self(Form::List(Vec::new()))
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for ShortMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for ShortMap<K, V> {}

impl<K: PartialOrd, V: PartialOrd> PartialOrd for ShortMap<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.iter().partial_cmp(other.iter())
    }
}

impl<K: Ord, V: Ord> Ord for ShortMap<K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl<K: Hash, V: Hash> Hash for ShortMap<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        self.iter().for_each(|element| element.hash(state));
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for ShortMap<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self).finish()
    }
}

impl<K: Ord + Borrow<Q>, V, Q: Ord + ?Sized> Index<&Q> for ShortMap<K, V> {
    type Output = V;
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("only what is there is looked up by index")
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for ShortMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(elements: I) -> Self {
        let elements = elements.into_iter();
        let mut map = Self(Form::List(Vec::with_capacity(elements.size_hint().0.min(LIST_MAX))));
        elements.for_each(|(key, value)| drop(map.insert(key, value)));
        map
    }
}

impl<'a, K, V> IntoIterator for &'a ShortMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;
    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<K, V> IntoIterator for ShortMap<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;
    fn into_iter(self) -> IntoIter<K, V> {
        match self.0 {
            Form::List(list) => IntoIter::List(list.into_iter()),
            Form::Tree(tree) => IntoIter::Tree(tree.into_iter()),
        }
    }
}

impl<K: Serialize, V: Serialize> Serialize for ShortMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for ShortMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(|tree| tree.into_iter().collect())
    }
}

/// The elements of a [`ShortMap`], in order.
#[derive(Clone, Debug)]
pub enum Iter<'a, K, V> {
    /// Of a list.
    List(slice::Iter<'a, (K, V)>),
    /// Of a tree.
    Tree(btree_map::Iter<'a, K, V>),
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::List(list) => list.next().map(|(key, value)| (key, value)),
            Self::Tree(tree) => tree.next(),
        }
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::List(list) => list.size_hint(),
            Self::Tree(tree) => tree.size_hint(),
        }
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

/// The elements of a [`ShortMap`] that is no longer needed, in order.
#[derive(Debug)]
pub enum IntoIter<K, V> {
    /// Of a list.
    List(std::vec::IntoIter<(K, V)>),
    /// Of a tree.
    Tree(btree_map::IntoIter<K, V>),
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);
    fn next(&mut self) -> Option<(K, V)> {
        match self {
            Self::List(list) => list.next(),
            Self::Tree(tree) => tree.next(),
        }
    }
}

/// An ordered set.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShortSet<K>(ShortMap<K, ()>);

impl<K> ShortSet<K> {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &K> {
        self.0.iter().map(|(key, ())| key)
    }
}

impl<K: Ord> ShortSet<K> {
    /// Whether something is in it.
    pub fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// Puts something in; says whether it was not there before.
    pub fn insert(&mut self, key: K) -> bool {
        self.0.insert(key, ()).is_none()
    }

    /// Takes something out; says whether it was there.
    pub fn remove(&mut self, key: &K) -> bool {
        self.0.remove(key).is_some()
    }

    /// Takes the first out.
    pub fn pop_first(&mut self) -> Option<K> {
        match &mut self.0.0 {
            Form::List(list) => (!list.is_empty()).then(|| list.remove(0).0),
            Form::Tree(tree) => tree.pop_first().map(|(key, ())| key),
        }
    }
}

impl<K> Default for ShortSet<K> {
    fn default() -> Self {
        Self(ShortMap::default())
    }
}

impl<K: fmt::Debug> fmt::Debug for ShortSet<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

impl<K: Ord> FromIterator<K> for ShortSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(elements: I) -> Self {
        Self(elements.into_iter().map(|key| (key, ())).collect())
    }
}

impl<K: Ord> Extend<K> for ShortSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, elements: I) {
        elements.into_iter().for_each(|key| _ = self.insert(key));
    }
}

impl<K> IntoIterator for ShortSet<K> {
    type Item = K;
    type IntoIter = std::iter::Map<IntoIter<K, ()>, fn((K, ())) -> K>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(|(key, ())| key)
    }
}

impl<K: Serialize> Serialize for ShortSet<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, K: Deserialize<'de> + Ord> Deserialize<'de> for ShortSet<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|list| list.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Short or long, it is what a tree would be, and both forms of the same elements are the same.
        #[test]
        fn it_is_what_a_tree_would_be(changes in prop::collection::vec((0_u8..80, any::<bool>()), 0..200)) {
            let (mut short, mut tree) = (ShortMap::default(), BTreeMap::new());
            for (step, (key, joins)) in changes.into_iter().enumerate() {
                if joins {
                    prop_assert_eq!(short.insert(key, step), tree.insert(key, step));
                } else {
                    prop_assert_eq!(short.remove(&key), tree.remove(&key));
                }
                prop_assert_eq!(short.get(&key), tree.get(&key));
                prop_assert!(short.iter().eq(&tree));
                let again: ShortMap<u8, usize> = tree.clone().into_iter().collect();
                prop_assert_eq!(&short, &again);
                prop_assert_eq!(print(&short), print(&again));
            }
        }
    }

    fn print(value: &impl Hash) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn it_is_written_as_a_tree_would_be() {
        let settings = bincode::config::standard();
        let tree: BTreeMap<u8, u8> = (0..40).map(|number| (number, number)).collect();
        let short: ShortMap<u8, u8> = tree.clone().into_iter().collect();
        let written = bincode::serde::encode_to_vec(&short, settings).unwrap();
        assert_eq!(written, bincode::serde::encode_to_vec(&tree, settings).unwrap());
        assert_eq!(bincode::serde::decode_from_slice(&written, settings).unwrap(), (short, written.len()));
        let set: ShortSet<u8> = [3, 1, 2, 1].into_iter().collect();
        let written = bincode::serde::encode_to_vec(&set, settings).unwrap();
        assert_eq!(written, [3, 1, 2, 3]);
        assert_eq!(bincode::serde::decode_from_slice(&written, settings).unwrap(), (set, written.len()));
    }
}
