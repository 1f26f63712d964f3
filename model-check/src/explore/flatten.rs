//! A part as a set of leaves, each with its path, sorted by the replica that it speaks of.
//!
//! What speaks of one replica only is summed up under that replica, with its names and numbers replaced by the role that
//! they play there; what speaks of none is summed up by itself; what speaks of several is summed up as it is. A sum of
//! leaves is lossless but for collisions, because each leaf carries its whole path.

use super::{
    intern::{fingerprint, half, mix},
    orbit::Orbits,
};
use crate::world::{Part, Place};
use serde::{
    Serialize,
    ser::{
        SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
        SerializeTupleVariant,
    },
};
use std::fmt;

/// The leaves of a part, summed up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Leaves {
    /// Those that speak of no replica, or of several.
    pub(super) plain: u128,
    /// Those that speak of one.
    pub(super) of: Vec<(usize, u128)>,
}

/// Flattens a part that lies at a place.
pub(super) fn flatten(place: Place, value: &Part, orbits: &Orbits) -> Leaves {
    let mut leaves = Leaves::default();
    // An agent compares the numbers of orders with those of components and bindings; all others only among themselves.
    let compares = matches!(place, Place::Agent(_));
    let path = Path::default().child_of(&fold(&place, orbits));
    value
        .serialize(Flattener {
            orbits,
            compares,
            path,
            element: None,
            number: None,
            leaves: Some(&mut leaves),
            folded: None,
        })
        .expect("flattening writes nowhere");
    leaves
}

/// Of which replicas a path speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mention {
    #[default]
    None,
    One(usize),
    Several,
}

impl Mention {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, it) | (it, Self::None) => it,
            (Self::One(one), Self::One(other)) if one == other => self,
            (_, _) => Self::Several,
        }
    }
}

/// The path of a leaf: with roles, with the actual names and numbers, and which replicas it mentions. The first two are the
/// same while it mentions none, and are then computed once.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    by_role: u128,
    as_is: u128,
    mention: Mention,
}

impl Path {
    /// A path that mentions no replica.
    fn of_none(hash: u128) -> Self {
        Self { by_role: hash, as_is: hash, mention: Mention::None }
    }

    fn child(self, token: u64) -> Self {
        self.child_of(&Self::of_none(token.into()))
    }

    fn child_of(self, other: &Self) -> Self {
        let by_role = join(self.by_role, other.by_role);
        match self.mention.and(other.mention) {
            Mention::None => Self::of_none(by_role),
            mention => Self { by_role, as_is: join(self.as_is, other.as_is), mention },
        }
    }
}

/// A whole value as one path: what map keys and places are.
fn fold<T: Serialize + ?Sized>(value: &T, orbits: &Orbits) -> Path {
    let mut folded = Path::default();
    value
        .serialize(Flattener {
            orbits,
            compares: false,
            path: Path::default(),
            element: None,
            number: None,
            leaves: None,
            folded: Some(&mut folded),
        })
        .expect("folding writes nowhere");
    folded
}

/// Nothing can go wrong; serde wants a name for it.
#[derive(Debug)]
pub(super) struct Never;

impl fmt::Display for Never {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("never")
    }
}

impl std::error::Error for Never {}

impl serde::ser::Error for Never {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// Walks through a value. With `leaves` it sums up leaves by their paths; with `folded` it makes one path of them all.
struct Flattener<'a> {
    orbits: &'a Orbits,
    /// Whether numbers of orders are compared here with those that belong to replicas.
    compares: bool,
    path: Path,
    /// The position of this value in a sequence, not yet part of the path.
    element: Option<u64>,
    /// The number to come is an identity of this sort.
    number: Option<u64>,
    leaves: Option<&'a mut Leaves>,
    folded: Option<&'a mut Path>,
}

impl<'a> Flattener<'a> {
    fn placed(mut self) -> Self {
        if let Some(position) = self.element.take() {
            self.path = self.path.child(position);
        }
        self
    }

    fn below(&mut self, path: Path) -> Flattener<'_> {
        Flattener {
            orbits: self.orbits,
            compares: self.compares,
            path,
            element: None,
            number: None,
            leaves: self.leaves.as_deref_mut(),
            folded: self.folded.as_deref_mut(),
        }
    }

    /// One level deeper, at a token of its own.
    fn at(self, token: u64) -> Self {
        let mut it = self.placed();
        it.path = it.path.child(token);
        it
    }

    fn leaf(self, token: u64) {
        let it = self.at(token);
        let path = it.path;
        it.emit(path);
    }

    /// A number or name that belongs to a replica stands for its role there.
    fn owned(self, owner: Option<(usize, u64)>, kind: u64, token: u64) {
        let it = if kind == NAME { self.placed() } else { self };
        let leaf = match owner {
            Some((replica, role)) => Path {
                by_role: join(u128::from(kind) + ROLE, u128::from(role)),
                as_is: join(u128::from(kind), u128::from(token)),
                mention: Mention::One(replica),
            },
            None => Path::of_none(join(u128::from(kind), u128::from(token))),
        };
        let path = it.path.child_of(&leaf);
        it.emit(path);
    }

    fn emit(self, path: Path) {
        if let Some(folded) = self.folded {
            *folded = folded.child_of(&path);
        }
        let Some(leaves) = self.leaves else { return };
        match path.mention {
            Mention::None => leaves.plain = leaves.plain.wrapping_add(path.by_role),
            Mention::Several => leaves.plain = leaves.plain.wrapping_add(path.as_is),
            Mention::One(replica) => match leaves.of.iter_mut().find(|(known, _)| *known == replica) {
                Some((_, sum)) => *sum = sum.wrapping_add(path.by_role),
                None => leaves.of.push((replica, path.by_role)),
            },
        }
    }
}

const NAME: u64 = 1;
const NUMBER: u64 = 2;
const ENTRY: u64 = 3;
/// The number of an order: a name for what it made, or a measure of how far a VM is.
const ORDER: u64 = 4;
/// Keeps roles apart from what really stands there.
const ROLE: u128 = 1 << 100;

/// Joins two fingerprints into one; the order matters. With either given, what comes out still tells the other.
fn join(one: u128, other: u128) -> u128 {
    mix(one.wrapping_mul(0x9fb2_1c65_1e98_df25_a0f6_9e5d_1b2c_3d47).rotate_left(64).wrapping_add(other))
}

/// The token of a variant; smaller ones are those of an option and of nothing at all.
fn variant(index: u32) -> u64 {
    u64::from(index) + 3
}

fn text(text: &str) -> u64 {
    half(fingerprint(&text))
}

macro_rules! leaves {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, value: $type) -> Result<(), Never> {
            self.leaf(half(fingerprint(&value)));
            Ok(())
        })*
    };
}

impl<'a> serde::Serializer for Flattener<'a> {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = Inside<'a>;
    type SerializeTuple = Inside<'a>;
    type SerializeTupleStruct = Inside<'a>;
    type SerializeTupleVariant = Inside<'a>;
    type SerializeMap = Inside<'a>;
    type SerializeStruct = Inside<'a>;
    type SerializeStructVariant = Inside<'a>;

    leaves! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_char: char,
        serialize_bytes: &[u8],
    }

    fn serialize_u64(self, value: u64) -> Result<(), Never> {
        match self.number {
            Some(ENTRY) => {
                let owner = self.orbits.entry(value);
                self.owned(owner, ENTRY, value);
            }
            Some(ORDER) => {
                // What belongs to a replica counts its orders by their roles. Elsewhere the number of an order only says how
                // far a VM is; it stands for itself, unless an agent may compare it with the numbers of replicas and they
                // lie on both sides of it.
                let separates = self.compares && self.orbits.separates(value);
                let here = |replica| self.path.mention == Mention::One(replica) || separates;
                let owner = match (self.orbits.number(value), self.path.mention) {
                    (None, Mention::One(replica)) => self.orbits.later(replica, value),
                    (owner, _) => owner.filter(|(replica, _)| here(*replica)),
                };
                self.owned(owner, NUMBER, value);
            }
            Some(kind) => {
                let owner = self.orbits.number(value);
                self.owned(owner, kind, value);
            }
            None => self.leaf(value),
        }
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Never> {
        self.serialize_u32(value.to_bits())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Never> {
        self.serialize_u64(value.to_bits())
    }

    fn serialize_str(self, value: &str) -> Result<(), Never> {
        // What a component hands out is its number, and perhaps that of its start.
        let (name, rest) = value.split_once(' ').unwrap_or((value, ""));
        let of = |role: u64| if rest.is_empty() { role } else { role ^ text(rest) };
        let owner = self.orbits.name(name).map(|(replica, role)| (replica, of(role)));
        self.owned(owner, NAME, text(value));
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Never> {
        self.leaf(0);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Never> {
        value.serialize(self.at(1))
    }

    fn serialize_unit(self) -> Result<(), Never> {
        self.leaf(2);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Never> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, index: u32, _: &'static str) -> Result<(), Never> {
        self.leaf(variant(index));
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(mut self, name: &'static str, value: &T) -> Result<(), Never> {
        let kind = match name {
            "VmId" | "ComponentId" | "BindingId" => NUMBER,
            "OrderNumber" => ORDER,
            "Entry" => ENTRY,
            _ => return value.serialize(self),
        };
        self.number = Some(kind);
        // A sequence of bare numbers is a set: no list of numbers in the books has an order that matters.
        self.element = None;
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Never> {
        value.serialize(self.at(variant(index)))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'a>, Never> {
        Ok(Inside::new(self.placed()))
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside<'a>, Never> {
        Ok(Inside::new(self.placed()))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>, Never> {
        Ok(Inside::new(self.placed()))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Inside<'a>, Never> {
        Ok(Inside::new(self.at(variant(index))))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'a>, Never> {
        Ok(Inside::new(self.placed()))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>, Never> {
        Ok(Inside::new(self.placed()))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Inside<'a>, Never> {
        Ok(Inside::new(self.at(variant(index))))
    }
}

/// Inside a sequence, a map or a struct.
pub(super) struct Inside<'a> {
    flattener: Flattener<'a>,
    position: u64,
    key: Path,
}

impl<'a> Inside<'a> {
    fn new(flattener: Flattener<'a>) -> Self {
        Self { flattener, position: 0, key: Path::default() }
    }

    /// In a tuple each position means something of its own; and so in a struct, whose fields always come in one order.
    fn positional<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
        let path = self.flattener.path.child(self.position);
        self.position += 1;
        value.serialize(self.flattener.below(path))
    }
}

impl SerializeSeq for Inside<'_> {
    type Ok = ();
    type Error = Never;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
        let position = self.position;
        self.position += 1;
        let path = self.flattener.path;
        let mut below = self.flattener.below(path);
        below.element = Some(position);
        value.serialize(below)
    }
    fn end(self) -> Result<(), Never> {
        self.flattener.leaf(self.position);
        Ok(())
    }
}

impl SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = Never;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Never> {
        self.key = fold(key, self.flattener.orbits);
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
        let path = self.flattener.path.child_of(&self.key);
        // The key is there even if nothing is below it.
        self.flattener.below(path).leaf(0);
        value.serialize(self.flattener.below(path))
    }
    fn end(self) -> Result<(), Never> {
        Ok(())
    }
}

macro_rules! inside {
    ($($trait:ident::$method:ident($($name:ident)?)),* $(,)?) => {
        $(impl $trait for Inside<'_> {
            type Ok = ();
            type Error = Never;
            fn $method<T: Serialize + ?Sized>(&mut self, $($name: &'static str,)? value: &T) -> Result<(), Never> {
                self.positional(value)
            }
            fn end(self) -> Result<(), Never> {
                Ok(())
            }
        })*
    };
}

inside! {
    SerializeTuple::serialize_element(), SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(), SerializeStruct::serialize_field(_name),
    SerializeStructVariant::serialize_field(_name),
}
