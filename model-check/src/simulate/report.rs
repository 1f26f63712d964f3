//! What a simulated run has shown.

use super::critical_path::Stretch;
use crate::{action::Action, property::Breach, trace::Trace};
use protocol::{ChangeId, Name, Notice, Refusal};
use std::{collections::BTreeSet, fmt, time::Duration};

/// What a simulated run has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many steps were taken.
    pub steps: u64,
    /// When the last thing happened.
    pub took: Duration,
    /// Each change that was accepted, in order.
    pub changes: Vec<ChangeTimes>,
    /// Each request that was refused: its place in the script, from 0, and why.
    pub refused: Vec<(usize, Vec<Refusal>)>,
    /// How many messages were sent, by kind.
    pub messages: Messages,
    /// How often a component was started.
    pub starts: u64,
    /// How often a component was stopped.
    pub stops: u64,
    /// The components that were stopped at least once.
    pub stopped: BTreeSet<Name>,
    /// How many faults happened.
    pub faults: u64,
    /// The first property that did not hold, if any.
    pub violation: Option<Violation>,
    /// The run, if it was recorded.
    pub trace: Option<Trace>,
    /// When each action of the trace happened.
    pub moments: Vec<Duration>,
}

/// When a change was asked for, when it was done, and why it took so long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeTimes {
    /// Which one.
    pub change: ChangeId,
    /// When it was accepted.
    pub accepted: Duration,
    /// When it was done; absent if it never was.
    pub done: Option<Duration>,
    /// The operations whose lengths determined the end.
    pub critical_path: Vec<Stretch>,
}

impl ChangeTimes {
    /// How long it took, if it was done.
    pub fn took(&self) -> Option<Duration> {
        self.done.map(|done| done.saturating_sub(self.accepted))
    }
}

/// How many messages were sent, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Manager to agent.
    pub orders: u64,
    /// Agent to manager.
    pub reports: u64,
    /// Provider to client: how to reach it.
    pub binds: u64,
    /// Provider to client: the loan.
    pub loans: u64,
    /// Provider to client: give it back.
    pub recalls: u64,
    /// Client to provider: it is back.
    pub confirmations: u64,
}

impl Messages {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.orders + self.reports + self.binds + self.loans + self.recalls + self.confirmations
    }

    pub(super) fn count(&mut self, notice: &Notice) {
        match notice {
            Notice::Bind { .. } => self.binds += 1,
            Notice::Started { .. } => self.loans += 1,
            Notice::UnbindRequired { .. } => self.recalls += 1,
            Notice::UnbindConfirmed { .. } => self.confirmations += 1,
        }
    }
}

/// A property that did not hold, and where in the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The property, and what is wrong.
    pub breach: Breach,
    /// The seed of the run.
    pub seed: u64,
    /// After how many steps.
    pub step: u64,
    /// When.
    pub at: Duration,
    /// The last thing that happened; absent if it is the end that is wrong.
    pub action: Option<Action>,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { breach, seed, step, at, .. } = self;
        write!(formatter, "{breach} (seed {seed}, step {step}, at {at:?})")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Messages { orders, reports, binds, loans, recalls, confirmations } = self.messages;
        writeln!(formatter, "{} steps in {:?} of virtual time, {} faults", self.steps, self.took, self.faults)?;
        for change in &self.changes {
            match change.took() {
                Some(took) => write!(formatter, "{} done after {took:?}", change.change)?,
                None => write!(formatter, "{} not done", change.change)?,
            }
            let path: Vec<String> = change.critical_path.iter().map(Stretch::to_string).collect();
            let path = if path.is_empty() { String::new() } else { format!(": {}", path.join(", ")) };
            writeln!(formatter, "{path}")?;
        }
        for (line, reasons) in &self.refused {
            let reasons: Vec<String> = reasons.iter().map(Refusal::to_string).collect();
            writeln!(formatter, "request {} refused: {}", line + 1, reasons.join("; "))?;
        }
        writeln!(
            formatter,
            "{} messages: {orders} orders, {reports} reports, {binds} binds, {loans} loans, {recalls} recalls, \
             {confirmations} confirmations",
            self.messages.total()
        )?;
        write!(formatter, "{} starts, {} stops of {} components", self.starts, self.stops, self.stopped.len())?;
        match &self.violation {
            Some(violation) => write!(formatter, "\nviolation: {violation}"),
            None => Ok(()),
        }
    }
}
