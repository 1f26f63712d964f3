//! How an import of a component in the book stands: what it needs, what it is bound to, and whether that is enough.

use super::book::{BindingEntry, Entry};
use crate::{Need, ShortMap, ShortSet};
use serde::{Deserialize, Serialize};

/// How one import of a component in the book stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ImportEntry {
    /// What it needs, as posted: predictions go by it.
    pub need: Need,
    /// The number it will need after all that is accepted; checks go by it.
    pub(super) accepted: u32,
    /// The number its agent was last told.
    pub(super) ordered: u32,
    /// How many of its bindings are how, so that a step need not look at all.
    pub(super) tally: Tally,
    /// All its bindings.
    pub(super) bindings: ShortSet<Entry>,
    /// Those of them that are not on their way out, by the component that lends.
    pub(super) bound: ShortMap<Entry, Entry>,
}

impl ImportEntry {
    /// The number it needs, or will need once that many are held.
    pub fn wanted(&self) -> u32 {
        self.accepted
    }

    /// An import that is bound to nothing yet.
    pub(super) fn new(need: Need) -> Self {
        let number = need.number();
        Self {
            need,
            accepted: number,
            ordered: number,
            tally: Tally::default(),
            bindings: ShortSet::default(),
            bound: ShortMap::default(),
        }
    }

    /// Whether its agent has still to be told of another number.
    pub(super) fn is_to_be_ordered(&self) -> bool {
        self.ordered != self.need.number()
    }

    /// Whether its agent can be told now of the number it needs. A lower one at once. A higher one when that many are
    /// held that stay; or, where fewer will stay, that many that are to be held for now; or, where there cannot be that
    /// many, at once, because the component has to stop.
    pub(super) fn is_due(&self) -> bool {
        let (number, tally) = (self.need.number(), &self.tally);
        if number <= self.ordered || tally.ready < number {
            return true;
        }
        if tally.staying >= number { tally.staying_held >= number } else { tally.ready_held >= number }
    }
}

/// How many bindings of an import are how.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Posted, and not gone.
    pub(super) posted: u32,
    /// Expected to be usable.
    pub(super) ready: u32,
    /// Those of them that are held.
    ready_held: u32,
    /// Expected to be usable, and not on their way out.
    staying: u32,
    /// Those of them that are held.
    staying_held: u32,
    /// Held and should not be, or the other way round; those on their way out aside.
    pub(super) astray: u32,
}

impl Tally {
    /// Counts a binding in or out, as it is.
    pub(super) fn count(&mut self, binding: &BindingEntry, joins: bool) {
        let BindingEntry { leaving, counted, held, .. } = *binding;
        let of = |number: &mut u32, applies: bool| {
            if applies {
                *number = if joins { *number + 1 } else { *number - 1 };
            }
        };
        of(&mut self.posted, binding.id.is_some());
        of(&mut self.ready, counted);
        of(&mut self.ready_held, counted && held);
        of(&mut self.staying, counted && !leaving);
        of(&mut self.staying_held, counted && held && !leaving);
        of(&mut self.astray, binding.is_astray());
    }
}
