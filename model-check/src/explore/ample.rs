//! Ample sets: where one action makes no difference to any other, and no other to it, it is taken before all others, and
//! the other orders are not looked at.
//!
//! # Why this is sound
//!
//! In a world `w` an action `q` is *persistent* if, whatever else happens first, `q` stays possible and commutes with each
//! step of that: `q` then `a` and `a` then `q` lead to the same world, in every world that can be reached from `w` without
//! `q`. Every way from `w` to an end takes `q` at some time, because nothing else makes it impossible; and moving it to the
//! front changes no world behind it. So taking `q` alone loses no end. It loses no breach either if `q` is *invisible*: it
//! changes no agent and no host, and what it changes in the manager cannot undo a breach. The worlds that are skipped have
//! the agents and hosts of a world that is not. No action is postponed forever, because `q` is taken at once.
//!
//! # What is independent of what
//!
//! Actions that make different machines step commute, whatever they say: a letter is appended to a link while another one
//! is taken from its front. So only what reaches the manager can depend on a report or on the arrival of a VM. Nothing is
//! taken first while the operator may ask for something at any time, or a VM may be lost or declared lost; then nothing
//! but reports and arrivals of *other* VMs can reach the manager before a report of this one. Reports that are taken first
//! make the manager say nothing. There are two rules.
//!
//! **One change, no faults.** Components only come nearer to what is predicted, but for news that something is *not* as
//! predicted any more, which are not taken first. Neither is news that depends on the report of another VM: that a value is no
//! longer used, which counts only until its provider is reported gone, and that a component waits for others. What is
//! waited for becomes true and stays true, so the manager goes on when the last of it is heard, in whatever order. (A component that may die can be as predicted for a while and then no
//! more; whether the manager calls a phase done in between depends on what it hears when. So the rule is not for faults.)
//!
//! **No change can tell the difference.** With several changes, or faults, nothing is assumed of what other VMs report. The
//! report tells conditions and holdings, of nothing that failed or recovers, and nothing that is gone. All phases are
//! posted and no need is to be ordered, so predictions stay as they are, and whether a component of this VM agrees with
//! its prediction depends on the reports of this VM alone, which are ordered. Then for each change one of these holds:
//!
//! - what it knows of this VM is the same before and after;
//! - it waits, before and after, for this VM to answer or to remove something (or to come, and then to answer). Until this
//!   VM reports again, the change neither ends nor calls a roll, whatever the others say;
//! - it waits, before and after, for a component of this VM to be as predicted, and calls no roll. Again it cannot end.
//!
//! A later change also waits while an earlier one moves what it watches. If it does not wait for this VM by itself, then
//! every earlier change must be of the first two sorts, which leave unchanged what it moves on this VM.
//!
//! That all this is so is not believed but checked: in every world of small systems, after everything that can happen
//! first ([`super::independence`]); and by comparing explorations with and without reductions. A mutant of the rules is
//! explored without.
//!
//! # What is not kept
//!
//! A world in which an action is taken first has one successor. It is checked on the way, but not remembered: its agents
//! and hosts are those of the world that follows, and a manager that has nothing to do stays so.

use super::{
    atlas::{CLOUD, MANAGER, OPERATOR},
    walker::Walker,
};
use crate::{
    action::Action,
    world::{self, Input, Part},
};
use protocol::{
    CloudManager, ComponentState, Condition, Fact, VmId,
    manager::{self, CloudOutcome, Outlook},
};

impl Walker<'_> {
    /// An action that can be taken before all others that are possible in a world, if there is one.
    pub(super) fn next_ample(&mut self, row: &[u32]) -> Option<(Action, u32)> {
        if !self.may_reduce(row) {
            return None;
        }
        let actions = self.actions(row);
        self.ample(row, &actions)
    }

    /// Whether reports and arrivals are all that can reach the manager. What else reaches it at any time may depend on them.
    fn may_reduce(&mut self, row: &[u32]) -> bool {
        let operator = self.part(row[OPERATOR]);
        let Part::Operator(operator) = &*operator else { return false };
        let asked = operator.next().is_none_or(|line| line.patient) && operator.lost.is_empty();
        asked && operator.faults.losses == 0 && !self.numbered
    }

    /// An action that can be taken before all these others, if there is one.
    pub(super) fn ample(&mut self, row: &[u32], actions: &[(Action, u32)]) -> Option<(Action, u32)> {
        if !self.may_reduce(row) {
            return None;
        }
        let calm = self.may_stop.is_some() && self.is_alone(row[MANAGER]);
        actions.iter().copied().find(|action| self.is_quiet(row, *action, calm))
    }

    /// Whether a report or an arrival can be taken before all else. `calm`: one change runs, and nothing goes wrong.
    fn is_quiet(&mut self, row: &[u32], action: (Action, u32), calm: bool) -> bool {
        let (source, vm) = match action.0 {
            Action::Report(vm) => (self.slot(world::source(action.0)) as usize, vm),
            Action::Cloud(vm) => (CLOUD, vm),
            _ => return false,
        };
        let taken = self.take(row[source], action.0, action.1);
        // A VM that comes boots; one that goes halts two places, and what still writes to it makes a difference.
        let comes = action.0.is_message() || taken.effects.len() == 1;
        let Some((slot, input)) = taken.input.filter(|_| comes) else { return false };
        let stepped = self.step(slot as usize, row[slot as usize], input);
        if !stepped.effects.is_empty() {
            return false;
        }
        let calm = calm && !stepped.unsettled && !concerns_others(&self.input(input));
        calm || self.changes_nothing(row[MANAGER], input, stepped.part, vm)
    }

    /// Whether at most one change runs.
    fn is_alone(&mut self, manager: u32) -> bool {
        if let Some(alone) = self.alone.get(&manager) {
            return *alone;
        }
        let part = self.part(manager);
        let alone = matches!(&*part, Part::Manager(manager) if manager.changes().count() <= 1);
        self.alone.insert(manager, alone);
        alone
    }

    /// Whether what the manager hears of a VM decides nothing, whatever else it hears before or after; remembered.
    fn changes_nothing(&mut self, manager: u32, input: u32, after: u32, vm: VmId) -> bool {
        if let Some(known) = self.neutral.get(&(manager, input)) {
            return *known;
        }
        let (before, after, heard) = (self.part(manager), self.part(after), self.input(input));
        let neutral = match (&*before, &*after, &*heard) {
            (Part::Manager(before), Part::Manager(after), Input::Manager(heard)) => {
                is_plain(before, heard, vm) && is_neutral(&before.outlook(vm), &after.outlook(vm))
            }
            _ => false,
        };
        self.neutral.insert((manager, input), neutral);
        neutral
    }
}

/// Whether a report tells something that counts differently before and after the report of another VM: that a client no longer
/// uses a value whose provider's VM reports that it is gone, or that a component waits for others.
fn concerns_others(input: &Input) -> bool {
    let Input::Manager(manager::Input::FromAgent(_, report)) = input else { return false };
    report.facts.iter().any(|fact| matches!(fact, Fact::ValueWithdrawn { .. } | Fact::Pending { .. }))
}

/// Whether an input only tells conditions, and of nothing that failed; or that a VM has come which is to stay.
fn is_plain(manager: &CloudManager, input: &manager::Input, vm: VmId) -> bool {
    let book = manager.book();
    let is_failed = |condition: &Condition| matches!(condition.state, ComponentState::Failed(_));
    match input {
        manager::Input::FromAgent(_, report) => report.facts.iter().all(|fact| match fact {
            Fact::ComponentIs { component, condition } => {
                let known = book.component_by_id(*component);
                known.is_some_and(|it| !it.condition.as_ref().is_some_and(is_failed)) && !is_failed(condition)
            }
            Fact::BindingHeld { .. } | Fact::VmIs { .. } => true,
            Fact::OperationFailed { .. }
            | Fact::ComponentGone { .. }
            | Fact::BindingGone { .. }
            | Fact::Pending { .. }
            | Fact::ValueWithdrawn { .. } => false,
        }),
        manager::Input::FromCloud(CloudOutcome::Created(_)) => book.vm_by_id(vm).is_some_and(|it| !it.is_leaving()),
        manager::Input::FromOperator(_)
        | manager::Input::FromCloud(_)
        | manager::Input::AlarmRang(_)
        | manager::Input::SuspicionLimit(_) => false,
    }
}

/// Whether no change that runs can tell the difference between before and after.
fn is_neutral(before: &[Outlook], after: &[Outlook]) -> bool {
    let mut untouched = true;
    before.len() == after.len()
        && before.iter().zip(after).all(|(before, after)| {
            let awaits = before.awaits() && after.awaits();
            let held_up = before.is_held_up() && after.is_held_up() && !before.calls && !after.calls;
            let same = before == after;
            let neutral = same && (untouched || before.is_held_up()) || awaits || held_up;
            untouched &= same || awaits;
            before.change == after.change && before.is_posted && after.is_posted && neutral
        })
}
