//! What will happen, and when: a heap of timed happenings, and the links that keep letters in order.

use super::critical_path::Cause;
use crate::{action::Action, world::Place};
use protocol::VmId;
use rustc_hash::FxHashMap;
use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

/// What can be on the agenda.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Happening {
    /// An action; for tasks, the number of the task it ends.
    Action(Action, u64),
    /// The operator makes the next request.
    Request,
    /// Something goes wrong.
    Mishap,
}

/// Something that will happen at its moment. Of two at the same moment, the one that was written down first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Planned {
    pub(super) at: Duration,
    serial: u64,
    pub(super) happening: Happening,
    pub(super) cause: Cause,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// When the last letter arrives: none that is sent later arrives earlier.
    last: Duration,
    /// How many letters are on their way.
    under_way: usize,
}

/// All that will happen.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<Planned>>,
    serial: u64,
    /// How many actions are planned; requests and mishaps aside.
    actions: usize,
    /// Looked up, never walked through: its order does not matter.
    links: FxHashMap<Place, Link>,
    /// Letters to VMs that are not up yet: links keep them.
    kept: FxHashMap<VmId, Vec<Planned>>,
}

impl Agenda {
    /// Writes something down.
    pub(super) fn plan(&mut self, at: Duration, happening: Happening, cause: Cause) {
        self.serial += 1;
        self.actions += usize::from(matches!(happening, Happening::Action(..)));
        self.heap.push(Reverse(Planned { at, serial: self.serial, happening, cause }));
    }

    /// Plans the arrival of one more letter on a link.
    pub(super) fn send(&mut self, place: Place, arrival: Duration, cause: Cause) {
        let Some(action) = delivery(place) else { return };
        let link = self.links.entry(place).or_default();
        link.last = link.last.max(arrival);
        link.under_way += 1;
        let at = link.last;
        self.plan(at, Happening::Action(action, 0), cause);
    }

    /// How many letters are planned to arrive on a link.
    pub(super) fn under_way(&self, place: Place) -> usize {
        self.links.get(&place).map_or(0, |link| link.under_way)
    }

    /// A letter has arrived, or never will.
    pub(super) fn arrived(&mut self, place: Place) {
        if let Some(link) = self.links.get_mut(&place) {
            link.under_way = link.under_way.saturating_sub(1);
        }
    }

    /// Keeps a letter until its VM is up.
    pub(super) fn keep(&mut self, vm: VmId, letter: Planned) {
        self.kept.entry(vm).or_default().push(letter);
    }

    /// A VM is up: what was kept for it arrives now, in the order in which it came.
    pub(super) fn wake(&mut self, vm: VmId, now: Duration) {
        for letter in self.kept.remove(&vm).unwrap_or_default() {
            self.plan(now, letter.happening, letter.cause);
        }
    }

    /// What happens next.
    pub(super) fn next(&mut self) -> Option<Planned> {
        let Reverse(planned) = self.heap.pop()?;
        self.actions -= usize::from(matches!(planned.happening, Happening::Action(..)));
        Some(planned)
    }

    /// Whether no action is planned: only the operator or a mishap can move anything.
    pub(super) fn is_at_rest(&self) -> bool {
        self.actions == 0
    }
}

/// The action by which the next letter at a place arrives.
fn delivery(place: Place) -> Option<Action> {
    match place {
        Place::Orders(vm) => Some(Action::Order(vm)),
        Place::Reports(vm) => Some(Action::Report(vm)),
        Place::Notices(from, to) => Some(Action::Notice(from, to)),
        Place::Operator | Place::Manager | Place::Cloud | Place::Agent(_) | Place::Host(_) => None,
    }
}
