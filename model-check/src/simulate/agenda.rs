//! What will happen, and when: a heap of timed happenings, and the links that keep letters in order.

use super::critical_path::Cause;
use crate::{action::Action, world::Place};
use protocol::VmId;
use rustc_hash::FxHashMap;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, hash_map::Entry},
    time::Duration,
};

/// What can be on the agenda.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scheduled {
    /// An action; for tasks, the number of the task it ends.
    Action(Action, u64),
    /// The operator makes the next request.
    Request,
    /// Something goes wrong.
    Mishap,
}

/// Something that will happen at its moment. Of two at the same moment, the one that was written down first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) at: Duration,
    pub(super) scheduled: Scheduled,
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
    /// Moments in nanoseconds, each with the number of what is planned and its place in `planned`. Small, because it is
    /// moved about.
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
    planned: Vec<Planned>,
    free: Vec<usize>,
    serial: u64,
    /// How many actions are planned; requests and mishaps aside.
    actions: usize,
    /// The links that have letters on their way. Looked up, never walked through: its order does not matter.
    links: FxHashMap<Place, Link>,
    /// Letters to VMs that are not up yet: links keep them.
    kept: FxHashMap<VmId, Vec<Planned>>,
}

impl Agenda {
    /// Writes something down.
    pub(super) fn plan(&mut self, at: Duration, scheduled: Scheduled, cause: Cause) {
        let planned = Planned { at, scheduled, cause };
        self.serial += 1;
        self.actions += usize::from(matches!(scheduled, Scheduled::Action(..)));
        let place = match self.free.pop() {
            Some(place) => {
                self.planned[place] = planned;
                place
            }
            None => {
                self.planned.push(planned);
                self.planned.len() - 1
            }
        };
        let moment = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        self.heap.push(Reverse((moment, self.serial, place)));
    }

    /// Plans the arrival of one more letter on a link.
    pub(super) fn send(&mut self, place: Place, arrival: Duration, cause: Cause) {
        let Some((action, to)) = delivery(place) else { return };
        let link = self.links.entry(place).or_default();
        link.last = link.last.max(arrival);
        link.under_way += 1;
        let (at, scheduled) = (link.last, Scheduled::Action(action, 0));
        match to.and_then(|vm| self.kept.get_mut(&vm)) {
            Some(kept) => kept.push(Planned { at, scheduled, cause }),
            None => self.plan(at, scheduled, cause),
        }
    }

    /// How many letters are planned to arrive on a link.
    pub(super) fn under_way(&self, place: Place) -> usize {
        self.links.get(&place).map_or(0, |link| link.under_way)
    }

    /// A letter has arrived, or never will. A link with nothing on its way needs no memory: whatever is sent next comes
    /// later than all before.
    pub(super) fn arrived(&mut self, place: Place) {
        if let Entry::Occupied(mut link) = self.links.entry(place) {
            link.get_mut().under_way -= 1;
            if link.get().under_way == 0 {
                link.remove();
            }
        }
    }

    /// A VM is being made: letters to it are kept until it is up.
    pub(super) fn await_vm(&mut self, vm: VmId) {
        self.kept.entry(vm).or_default();
    }

    /// A VM is up: what was kept for it arrives, in the order in which it was sent. It is the VM that it waited for.
    pub(super) fn wake(&mut self, vm: VmId, now: Duration, cause: Cause) {
        let mut at = now;
        for letter in self.kept.remove(&vm).unwrap_or_default() {
            at = at.max(letter.at);
            self.plan(at, letter.scheduled, cause);
        }
    }

    /// What happens next.
    pub(super) fn next(&mut self) -> Option<Planned> {
        let Reverse((_, _, place)) = self.heap.pop()?;
        self.free.push(place);
        let planned = self.planned[place];
        self.actions -= usize::from(matches!(planned.scheduled, Scheduled::Action(..)));
        Some(planned)
    }

    /// Whether no action is planned: only the operator or a mishap can move anything.
    pub(super) fn is_at_rest(&self) -> bool {
        self.actions == 0
    }
}

/// The action by which the next letter at a place arrives, and the VM it goes to.
fn delivery(place: Place) -> Option<(Action, Option<VmId>)> {
    match place {
        Place::Orders(vm) => Some((Action::Order(vm), Some(vm))),
        Place::Reports(vm) => Some((Action::Report(vm), None)),
        Place::Notices(from, to) => Some((Action::Notice(from, to), Some(to))),
        Place::Operator | Place::Manager | Place::Cloud | Place::Agent(_) | Place::Host(_) => None,
    }
}
