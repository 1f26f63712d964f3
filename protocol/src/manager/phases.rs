//! Phases: a change is posted part by part, and each part is done when the reports agree with what was predicted.
//!
//! Agreement alone could be an old report that happens to look right: a client that had to stop and start again was
//! started before and is started after. So when something that others depend on has gone or restarted, a roll call is
//! made among its dependents. They had stopped before it could; links are ordered; so their answers come after the news
//! of that stop, and what the manager then knows is not older than the change.
//!
//! Those who restart only when something has come back, because they could do without it meanwhile, stop others later than
//! that. Where there are such, the roll is called again whenever everything looks settled after something has moved.

use super::{
    ChangeState, News, PhaseKind, Turn, Waiting,
    book::{Book, Entry},
    cancel::{CancelOutlook, Undo},
    edit::CheckedEdit,
};
use crate::{ChangeId, ComponentState, Instruction, OrderNumber, PagedSet, Strategy};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Bound,
};

/// A change that is not done.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Running {
    /// The phases not yet posted.
    pub(super) ahead: VecDeque<(PhaseKind, Vec<CheckedEdit>)>,
    /// The phase posted and not yet done.
    pub(super) phase: Option<Phase>,
    /// What its unposted edits are about: a later change about the same waits until they are posted.
    pub(super) touches: BTreeSet<Entry>,
    /// Those of them that nobody may overtake, even while this change waits for a person.
    pub(super) in_turn: BTreeSet<Entry>,
    /// What takes it back, if it can be.
    pub(super) undo: Option<Undo>,
    /// What becomes of it, if it was cancelled.
    pub(super) cancelled: Option<CancelOutlook>,
}

/// A phase that was posted and is not yet done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Phase {
    pub(super) kind: PhaseKind,
    /// The last order to each VM that has not been answered.
    pub(super) unanswered: BTreeMap<Entry, OrderNumber>,
    /// VMs to come or go, components and bindings to go.
    pub(super) outstanding: PagedSet<Entry>,
    /// Those of them that are VMs to come.
    pub(super) coming: BTreeSet<Entry>,
    /// Components to come back from a restart.
    pub(super) restarted: PagedSet<Entry>,
    /// The components whose state may be touched.
    pub(super) watched: PagedSet<Entry>,
    /// Those of them that are not as predicted.
    pub(super) unsettled: PagedSet<Entry>,
    /// The VMs to be called when all that has to go is gone.
    pub(super) roll: BTreeSet<Entry>,
    /// The VMs of all dependents, to be called each time that everything looks settled after something has moved.
    pub(super) circuit: BTreeSet<Entry>,
    /// Whether there are components that restart when others have come back: then whatever changes has moved something.
    pub(super) followed: bool,
    /// Something has moved since they were called.
    pub(super) moved: bool,
    /// The components whose needs it sets: their agents are told when the components can bear it.
    pub(super) needs: BTreeSet<Entry>,
}

impl Running {
    /// Rule M2: splits the edits of a change into phases.
    pub(super) fn new(edits: Vec<CheckedEdit>, strategy: Strategy, undo: Option<Undo>, book: &Book) -> Self {
        let (lower, rest): (Vec<_>, Vec<_>) = edits.into_iter().partition(CheckedEdit::is_lower);
        // A need is lowered and the answer awaited before anything is removed.
        let lower = (PhaseKind::Lower, lower);
        let phases = if strategy == Strategy::Together {
            vec![lower, (PhaseKind::Both, rest)]
        } else {
            let (up, down) = rest.into_iter().partition(CheckedEdit::is_up);
            let (up, down) = ((PhaseKind::Up, up), (PhaseKind::Down, down));
            if strategy == Strategy::DownThenUp { vec![lower, down, up] } else { vec![up, lower, down] }
        };
        let ahead = phases.into_iter().filter(|(_, edits)| !edits.is_empty()).collect();
        let mut running = Self { ahead, undo, ..Self::default() };
        running.look_ahead(book);
        running
    }
}

impl Phase {
    /// Whether what looks settled may be old news: a component that follows, or that has waited for loans, may have stopped others meanwhile.
    pub(super) fn is_to_go_round(&self) -> bool {
        self.moved && !self.circuit.is_empty()
    }
}

impl Book {
    /// The components that are not as predicted, as far as the manager knows.
    pub fn unsettled(&self) -> impl Iterator<Item = Entry> {
        self.components.keys().copied().filter(|entry| !self.agrees(*entry))
    }

    /// Whether something that a phase watches has not come to rest. A cancelled change does not wait for it where only a
    /// person can help, and then it would call the roll without end.
    pub(super) fn is_any_pending(&self, phase: &Phase) -> bool {
        phase.watched.iter().any(|entry| self.components.get(entry).is_some_and(|it| it.pending))
    }

    /// Whether a component is as predicted.
    pub(super) fn agrees(&self, entry: Entry) -> bool {
        // Whatever becomes of what is on its way out, nobody waits for it to be up.
        let Some(component) = self.components.get(&entry).filter(|component| !component.leaving) else { return true };
        let Some(condition) = component.condition else { return false };
        if component.pending || component.withdrawn > 0 {
            return false;
        }
        if component.expected {
            component.needs_are_ordered()
                && condition.state == ComponentState::Started
                && condition.since >= component.renewed
                && component.holds_as_expected()
        } else {
            component.needs_are_ordered() && !condition.state.is_running()
        }
    }
}

impl Turn<'_> {
    /// Looks again at what was touched, ends what is done, posts what may be posted.
    pub(super) fn settle(&mut self) {
        loop {
            let touched = std::mem::take(&mut self.touched);
            touched.iter().for_each(|entry| self.order_needs(*entry));
            let super::CloudManager { running, book, .. } = &mut *self.manager;
            for phase in running.values_mut().filter_map(|running| running.phase.as_mut()) {
                for entry in touched.iter().filter(|entry| phase.watched.contains(entry)) {
                    let (agrees, agreed) = (book.agrees(*entry), !phase.unsettled.contains(entry));
                    phase.moved |= agrees != agreed && phase.followed;
                    phase.moved |= book.components.get(entry).is_some_and(|it| it.pending);
                    if agrees {
                        phase.unsettled.remove(entry);
                    } else {
                        phase.unsettled.insert(*entry);
                    }
                }
            }
            let mut progress = false;
            let mut next = self.manager.running.keys().next().copied();
            while let Some(change) = next {
                progress |= self.advance(change);
                let later = (Bound::Excluded(change), Bound::Unbounded);
                next = self.manager.running.range(later).next().map(|(change, _)| *change);
            }
            if !progress && self.touched.is_empty() {
                return;
            }
        }
    }

    /// Rule M4: moves one change on if it can; says whether it did.
    fn advance(&mut self, change: ChangeId) -> bool {
        let running = &self.manager.running[&change];
        match &running.phase {
            Some(phase) if !phase.outstanding.is_empty() || !phase.unanswered.is_empty() => false,
            // What restarts has stopped once it is up again, and so have its dependents.
            Some(phase) if !phase.roll.is_empty() && self.manager.awaits_restart(running) => false,
            Some(phase) if !phase.roll.is_empty() => {
                self.call_roll(change);
                true
            }
            Some(_) if !self.manager.is_settled(running) || self.manager.overshadower(change).is_some() => false,
            // Below, this is a roll like any other.
            Some(phase) if phase.is_to_go_round() && !self.manager.book.is_any_pending(phase) => {
                let phase = self.running(change).phase.as_mut().expect("it was just looked at");
                (phase.roll, phase.moved) = (phase.circuit.clone(), false);
                true
            }
            Some(phase) => {
                let kind = phase.kind;
                self.tell(News::PhaseDone(change, kind));
                self.running(change).phase = None;
                true
            }
            None if running.ahead.is_empty() => {
                let cancelled = running.cancelled.is_some();
                self.manager.running.remove(&change);
                self.tell(if cancelled { News::ChangeCancelled(change) } else { News::ChangeDone(change) });
                true
            }
            None if self.manager.blocker(change).is_some() => false,
            None => {
                let (kind, edits) = self.running(change).ahead.pop_front().expect("it is not empty");
                self.post(change, kind, edits);
                let super::CloudManager { running, book, .. } = &mut *self.manager;
                running.get_mut(&change).expect("it was just posted").look_ahead(book);
                true
            }
        }
    }

    pub(super) fn running(&mut self, change: ChangeId) -> &mut Running {
        self.manager.running.get_mut(&change).expect("only changes that run are moved on")
    }

    fn call_roll(&mut self, change: ChangeId) {
        let phase = self.running(change).phase.as_mut().expect("only a posted phase calls a roll");
        for vm in std::mem::take(&mut phase.roll) {
            if let Some(number) = self.order(vm, |_| Instruction::RollCall) {
                let phase = self.running(change).phase.as_mut().expect("only a posted phase calls a roll");
                phase.unanswered.insert(vm, number);
            }
        }
    }

    /// A VM has answered every order up to a number.
    pub(super) fn answered(&mut self, vm: Entry, through: OrderNumber) {
        for phase in self.manager.running.values_mut().filter_map(|running| running.phase.as_mut()) {
            if phase.unanswered.get(&vm).is_some_and(|number| *number <= through) {
                phase.unanswered.remove(&vm);
            }
        }
    }
}

impl Running {
    pub(super) fn state(&self, change: ChangeId, book: &Book) -> ChangeState {
        let mut waiting = Vec::new();
        if let Some(phase) = &self.phase {
            for entry in phase.outstanding.iter() {
                waiting.extend(book.vms.get(entry).map(|vm| Waiting::Vm(vm.name.clone())));
                waiting.extend(book.components.get(entry).map(|component| Waiting::Component(component.name.clone())));
                waiting.extend(book.bindings.get(entry).map(|it| Waiting::Binding(book.wire(it).to_string())));
            }
            let unanswered = phase.unanswered.keys().filter_map(|entry| book.vms.get(entry));
            waiting.extend(unanswered.map(|vm| Waiting::Answer(vm.name.clone())));
            let unsettled = phase.unsettled.iter().filter_map(|entry| book.components.get(entry));
            waiting.extend(unsettled.map(|component| Waiting::Started(component.name.clone(), component.expected)));
        }
        let phase = self.phase.as_ref().map(|phase| phase.kind);
        ChangeState { change, phase, waiting, cancelled: self.cancelled.is_some() }
    }
}
