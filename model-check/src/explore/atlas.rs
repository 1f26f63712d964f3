//! What all walkers share: the numbers of parts, inputs, items, actions and places, and what machines did.

use super::{flatten::Leaves, intern::Interner};
use crate::{
    action::Action,
    property::Breach,
    world::{Input, Item, Output, Part, Place},
};
use rustc_hash::FxHashMap;
use std::{
    collections::BTreeSet,
    sync::{Arc, RwLock},
};

/// The slots of what is looked at for every action.
pub(super) const OPERATOR: usize = 0;
/// See [`OPERATOR`].
pub(super) const MANAGER: usize = 1;
/// See [`OPERATOR`].
pub(super) const CLOUD: usize = 2;

/// What all walkers share.
#[derive(Default)]
pub(super) struct Atlas {
    pub(super) parts: Interner<Part>,
    pub(super) inputs: Interner<Input>,
    pub(super) items: Interner<Item>,
    pub(super) actions: Interner<Action>,
    pub(super) places: RwLock<Places>,
    /// What machines did, by part and input: the most expensive thing to compute, so the threads share it.
    pub(super) stepped: RwLock<FxHashMap<(u32, u32), Arc<Stepped>>>,
    /// The leaves of parts, by slot and part: with symmetry, the second most expensive.
    pub(super) leaves: RwLock<FxHashMap<(u32, u32), Arc<Leaves>>>,
}

/// The places there are, each with its slot in a row.
#[derive(Default)]
pub(super) struct Places {
    slots: FxHashMap<Place, u32>,
    pub(super) places: Vec<Place>,
}

impl Atlas {
    /// An atlas in which number 0 is no part at all.
    pub(super) fn new() -> Self {
        let atlas = Self::default();
        atlas.parts.number(Part::Nothing);
        // In the order of `OPERATOR`, `MANAGER` and `CLOUD`.
        for place in [Place::Operator, Place::Manager, Place::Cloud] {
            atlas.slot(place);
        }
        atlas
    }

    /// The slot of a place; a new one if it has none yet.
    pub(super) fn slot(&self, place: Place) -> u32 {
        let mut places = self.places.write().expect("no thread panics while it holds the places");
        let next = u32::try_from(places.places.len()).expect("few places");
        let slot = *places.slots.entry(place).or_insert(next);
        if slot == next {
            places.places.push(place);
        }
        slot
    }
}

/// What was taken out of a part by an action.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) part: u32,
    pub(super) input: Option<(u32, u32)>,
    pub(super) effects: Vec<(u32, u32)>,
}

/// What a machine did on an input.
pub(super) struct Stepped {
    pub(super) part: u32,
    pub(super) effects: Vec<(u32, u32)>,
    /// Whether it is the manager, who now knows of something that it is not as predicted.
    pub(super) unsettled: bool,
    /// What is wrong with the step itself.
    pub(super) breach: Option<Breach>,
    /// What the machine said, if that calls for a look at the whole world.
    pub(super) look: Option<Vec<Output>>,
}

/// Whether the manager has heard that something is not as predicted that was, as far as it knew.
pub(super) fn is_unsettled(before: &Part, after: &Part) -> bool {
    let (Part::Manager(before), Part::Manager(after)) = (before, after) else { return false };
    let known: BTreeSet<_> = before.book().unsettled().collect();
    after.book().unsettled().any(|entry| !known.contains(&entry))
}
