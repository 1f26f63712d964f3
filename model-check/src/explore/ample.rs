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
//! the agents and hosts of a world that is not. No action is put off for ever, because `q` is taken at once.
//!
//! # What is independent of what
//!
//! Actions that make different machines step commute, whatever they say: a letter is appended to a link while another one
//! is taken from its front. So only what reaches the manager can depend on a report or on the arrival of a VM. A report or
//! arrival is taken first only while
//!
//! - nothing dies, fails, is lost, or comes twice, in the whole script: then components only come nearer to what is
//!   predicted, but for news that something is *not* as predicted any more, which are not taken first. (A component that
//!   may die can be as predicted for a while and then no more; whether the manager calls a phase done in between depends
//!   on what it hears when.)
//! - the operator asks for nothing before everything has come to rest, and at most one change runs: then nothing but
//!   reports and arrivals reaches the manager;
//! - the manager does not react to it.
//!
//! That this is so is checked in every world of small systems ([`super::independence`]), and by comparing explorations
//! with and without it.

use super::{
    atlas::{CLOUD, MANAGER, OPERATOR},
    walker::Walker,
};
use crate::{
    action::Action,
    world::{self, Part},
};

impl Walker<'_> {
    /// An action that can be taken before all others, if there is one.
    pub(super) fn ample(&mut self, row: &[u32], actions: &[(Action, u32)]) -> Option<(Action, u32)> {
        actions.iter().copied().find(|action| self.is_quiet(row, *action))
    }

    /// Whether an action can be taken before all else, because nothing else can make a difference to it, nor it to anything
    /// else: a VM that comes, or a report while nothing but reports can reach the manager; and the manager does not react.
    ///
    /// News that something is not as predicted must be allowed to come late: the manager might call a phase done without
    /// them. Other news that come late make the manager act late, as slow orders do.
    pub(super) fn is_quiet(&mut self, row: &[u32], action: (Action, u32)) -> bool {
        let source = match action.0 {
            Action::Report(_) if self.is_settled(row) => self.slot(world::source(action.0)) as usize,
            // A request that may come at any time can concern a VM that is about to come.
            Action::Cloud(_) if self.is_settled(row) => CLOUD,
            _ => return false,
        };
        let taken = self.take(row[source], action.0, action.1);
        // A VM that comes boots; one that goes halts two places, and whoever still writes to it does make a difference.
        let comes = action.0.is_message() || taken.effects.len() == 1;
        let Some((slot, input)) = taken.input.filter(|_| comes) else { return false };
        let stepped = self.step(slot as usize, row[slot as usize], input);
        stepped.effects.is_empty() && !stepped.unsettled
    }

    /// Whether the operator has asked for everything or waits for all to come to rest, nothing that concerns the manager
    /// can go wrong any more, and at most one change runs.
    fn is_settled(&mut self, row: &[u32]) -> bool {
        let operator = self.part(row[OPERATOR]);
        let Part::Operator(operator) = &*operator else { return false };
        let done = operator.next().is_none_or(|line| line.patient) && operator.lost.is_empty();
        let calm = self.may_stop.is_some() && !self.numbered;
        let manager = row[MANAGER];
        if !done || !calm {
            return false;
        }
        if let Some(alone) = self.alone.get(&manager) {
            return *alone;
        }
        let part = self.part(manager);
        let alone = matches!(&*part, Part::Manager(manager) if manager.changes().count() <= 1);
        self.alone.insert(manager, alone);
        alone
    }
}
