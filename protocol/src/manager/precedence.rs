//! Rule M5: changes side by side, and when one of them waits for another.
//!
//! A change is posted at once, unless an earlier one has still to post something about the same. What a person says to
//! whoever failed waits for nobody, because the earlier change waits for it; and an earlier change that cannot go on
//! without a person holds up only what must not be done before it.

use super::{
    ChangeState, CloudManager, Waiting,
    book::{Book, Entry},
    edit::CheckedEdit,
    phases::{Phase, Running},
};
use crate::{ChangeId, ComponentState, Need, Operation, PagedSet};
use std::collections::BTreeSet;

impl CloudManager {
    /// An earlier change that has still to post something about the same components. One that cannot go on without a
    /// person holds up only what must not be done before it.
    pub(super) fn blocker(&self, change: ChangeId) -> Option<ChangeId> {
        let later = &self.running[&change];
        let blocks = |(_, earlier): &(&ChangeId, &Running)| match self.needs_a_person(earlier) {
            true => !earlier.in_turn.is_disjoint(&later.in_turn),
            false => !earlier.touches.is_disjoint(&later.touches),
        };
        self.running.range(..change).find(blocks).map(|(id, _)| *id)
    }

    /// An earlier change that is still moving a component that this one watches: old news could look right. One that
    /// cannot go on without a person moves nobody.
    pub(super) fn overshadower(&self, change: ChangeId) -> Option<ChangeId> {
        let watched = &self.running[&change].phase.as_ref()?.watched;
        let overshadows = |(_, earlier): &(&ChangeId, &Running)| {
            earlier.phase.as_ref().is_some_and(|phase| !phase.moving().is_disjoint(watched))
                && !self.needs_a_person(earlier)
        };
        self.running.range(..change).find(overshadows).map(|(id, _)| *id)
    }

    /// Whether a change waits for something of which an operation has failed for good, or for something that waits for that.
    fn needs_a_person(&self, running: &Running) -> bool {
        let Some(phase) = running.phase.as_ref().filter(|_| !self.book.failed.is_empty()) else { return false };
        let waits = |entry: &Entry| phase.unsettled.contains(entry) || phase.outstanding.contains(entry);
        self.book.failed.iter().any(waits) || self.book.helpless().iter().any(waits)
    }

    /// Whether every component that a change watches is as predicted. One that was cancelled does not wait for what only a
    /// person can help.
    pub(super) fn is_settled(&self, running: &Running) -> bool {
        running.phase.as_ref().is_none_or(|phase| !self.waits_for_any(running, phase.unsettled.iter()))
    }

    /// Whether a change waits for something to come back from a restart.
    pub(super) fn awaits_restart(&self, running: &Running) -> bool {
        let Some(phase) = &running.phase else { return false };
        self.waits_for_any(running, phase.restarted.iter().filter(|entry| phase.unsettled.contains(entry)))
    }

    fn waits_for_any<'e>(&self, running: &Running, mut unsettled: impl Iterator<Item = &'e Entry>) -> bool {
        if running.cancelled.is_none() || self.book.failed.is_empty() {
            return unsettled.next().is_some();
        }
        let helpless = self.book.helpless();
        unsettled.any(|entry| !helpless.contains(entry))
    }

    /// A change that is not done, and what it waits for.
    pub(super) fn state_of(&self, change: ChangeId) -> ChangeState {
        let running = &self.running[&change];
        let mut state = running.state(change, &self.book);
        if state.waiting.is_empty() {
            let other = if running.phase.is_some() { self.overshadower(change) } else { self.blocker(change) };
            state.waiting.extend(other.map(Waiting::Change));
        }
        state
    }
}

impl Phase {
    /// The components that it may still move: all, until everything has gone and was answered; then those that are not
    /// as predicted.
    fn moving(&self) -> &PagedSet<Entry> {
        let quiet =
            self.outstanding.is_empty() && self.unanswered.is_empty() && self.roll.is_empty() && !self.is_to_go_round();
        if quiet { &self.unsettled } else { &self.watched }
    }
}

impl Running {
    /// Takes note of what the phases not yet posted are about.
    pub(super) fn look_ahead(&mut self, book: &Book) {
        let edits = || self.ahead.iter().flat_map(|(_, edits)| edits);
        let touches = edits().flat_map(|edit| book.touched_by(edit)).collect();
        let in_turn = edits().flat_map(|edit| book.in_turn_for(edit)).collect();
        (self.touches, self.in_turn) = (touches, in_turn);
    }
}

impl Book {
    /// The components, and the VMs that come or go, that a edit is about. What a person says to one that failed waits for
    /// nobody: others may be waiting for it.
    fn touched_by(&self, edit: &CheckedEdit) -> Vec<Entry> {
        match edit {
            CheckedEdit::AddVm(entry)
            | CheckedEdit::RemoveVm(entry)
            | CheckedEdit::RemoveComponent(entry)
            | CheckedEdit::Restart(entry)
            | CheckedEdit::SetNeed(entry, ..)
            | CheckedEdit::LowerNeed(entry, ..) => vec![*entry],
            CheckedEdit::Retry(_) | CheckedEdit::Skip(_) => Vec::new(),
            CheckedEdit::AddComponent(entry) => std::iter::once(*entry).chain(self.awaited_home(*entry)).collect(),
            CheckedEdit::AddBinding(entry) | CheckedEdit::RemoveBinding(entry) => {
                let binding = self.bindings.get(entry);
                binding.into_iter().flat_map(|binding| [binding.client, binding.provider]).collect()
            }
        }
    }

    /// What a edit adds, removes or tells another number: two changes about the same do that in the order in which they
    /// were accepted, whatever else waits.
    fn in_turn_for(&self, edit: &CheckedEdit) -> Vec<Entry> {
        match edit {
            CheckedEdit::AddVm(entry)
            | CheckedEdit::RemoveVm(entry)
            | CheckedEdit::RemoveComponent(entry)
            | CheckedEdit::RemoveBinding(entry)
            | CheckedEdit::Restart(entry)
            | CheckedEdit::SetNeed(entry, ..)
            | CheckedEdit::LowerNeed(entry, ..) => vec![*entry],
            CheckedEdit::Retry(_) | CheckedEdit::Skip(_) => Vec::new(),
            CheckedEdit::AddComponent(entry) => std::iter::once(*entry).chain(self.awaited_home(*entry)).collect(),
            CheckedEdit::AddBinding(entry) => {
                let binding = self.bindings.get(entry);
                let ends = binding.into_iter().flat_map(|binding| [binding.client, binding.provider]);
                let unposted = |end: &Entry| self.components.get(end).is_some_and(|it| it.id.is_none());
                std::iter::once(*entry).chain(ends.filter(unposted)).collect()
            }
        }
    }

    /// What cannot go on without a person: whatever failed for good, its clients as far as they need it, and what waits for one
    /// of these to give something back.
    fn helpless(&self) -> BTreeSet<Entry> {
        let mut open: Vec<Entry> = self.failed.iter().copied().collect();
        let (mut found, mut waiting) = (BTreeSet::new(), BTreeSet::new());
        while let Some(entry) = open.pop() {
            if !found.insert(entry) {
                continue;
            }
            let component = &self.components[&entry];
            let state = component.condition.map(|condition| condition.state);
            waiting.extend(self.vms[&component.vm].leaving.then_some(component.vm));
            for lent in component.lends.iter().map(|lent| &self.bindings[lent]).filter(|lent| lent.id.is_some()) {
                match lent.need {
                    Need::Strong(_) => open.push(lent.client),
                    // Its values are there, unless it could not announce them.
                    Need::Value(_) if state == Some(ComponentState::Failed(Operation::Prepare)) => {
                        open.push(lent.client);
                    }
                    Need::Value(_) => {}
                    Need::Weak(_) => _ = waiting.insert(lent.client),
                }
            }
            // What may be running keeps what it holds.
            if state.is_some_and(ComponentState::is_running) {
                for binding in component.borrows() {
                    let held = &self.bindings[&binding];
                    waiting.extend(held.left.then_some(binding));
                    let provider = &self.components[&held.provider];
                    open.extend((provider.leaving || !self.agrees(held.provider)).then_some(held.provider));
                }
            }
        }
        found.append(&mut waiting);
        found
    }

    /// The VM of a component, if it is not even asked for yet.
    fn awaited_home(&self, component: Entry) -> Option<Entry> {
        let vm = self.components.get(&component)?.vm;
        self.vms.get(&vm).filter(|vm| vm.id.is_none()).map(|_| vm)
    }
}
