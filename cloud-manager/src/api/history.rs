//! What the events say about each change, component and VM: when, how far, what failed.
//!
//! The book has the current state; only the events know since when, and what an operation wrote before it failed. They are
//! read once, in order, and folded into a few small maps; each later query reads only the new events.

use super::attempts::LastAttempt;
use super::metrics::Metrics;
use crate::{
    document::{ChangeRecord, Deaths, Phase, PhaseRecord, Retrying},
    handle::{Event, Halted, ManagerHandle},
};
use protocol::{
    ChangeId, ComponentId, ComponentState, Need, Operation, VmId,
    manager::{Book, ComponentEntry, News},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

/// Number of changes that are kept; beyond it, the oldest finished ones are dropped.
const CHANGES_MAX: usize = 10_000;
/// Number of entries for components that no longer exist before they are cleaned up.
const STALE_MAX: usize = 1_000;
/// Number of events that are read at once.
const PAGE: usize = 1_000;

/// What is known from the events so far.
#[derive(Debug, Default)]
pub(super) struct History {
    newest: u64,
    changes: BTreeMap<u64, Recorded>,
    components: BTreeMap<ComponentId, Life>,
    vms: BTreeMap<VmId, VmLife>,
    /// How long the last operations of each component took, by name: a replacement takes about as long.
    lengths: BTreeMap<String, Lengths>,
    /// The time between each component's creation and its first start, until it is known what it did then.
    beginnings: BTreeMap<ComponentId, (u64, u64)>,
    /// Counts what is read.
    metrics: Arc<Metrics>,
}

/// How long operations took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lengths {
    pub(super) prepare_ms: Option<u64>,
    pub(super) start_ms: Option<u64>,
    pub(super) stop_ms: Option<u64>,
}

/// The record of a change, with its first and last event.
#[derive(Debug, Default)]
struct Recorded {
    record: ChangeRecord,
    first: u64,
    last: u64,
}

#[derive(Debug, Default)]
struct Life {
    since_ms: u64,
    state: Option<ComponentState>,
    /// It has at most been prepared so far.
    fresh: bool,
    failure: Option<String>,
    deaths: Option<Deaths>,
    attempt: Option<LastAttempt>,
}

/// What the events say about a VM.
#[derive(Debug, Default)]
struct VmLife {
    /// Since when it has had its present health.
    since_ms: Option<u64>,
    /// Why the cloud could not create it at the last attempt.
    not_made: Option<String>,
}

impl History {
    /// An empty one that counts here what it reads.
    pub(super) fn measured(metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..Self::default() }
    }

    /// Reads the new events.
    pub(super) async fn catch_up(&mut self, manager: &ManagerHandle) -> Result<(), Halted> {
        loop {
            let events = manager.events_after(self.newest, PAGE).await?;
            if events.is_empty() {
                return Ok(());
            }
            events.iter().for_each(|event| self.read(event));
        }
    }

    /// Records what only the book knows about new components.
    pub(super) fn learn(&mut self, book: &Book) {
        for (component, (from, to)) in mem::take(&mut self.beginnings) {
            let entry =
                book.component_by_id(component).filter(|it| it.kind.prepares && self.had_all_providers(book, it, from));
            if let Some(entry) = entry {
                self.lengths.entry(entry.name.to_string()).or_default().prepare_ms = Some(to - from);
            }
        }
    }

    /// Whether a component had all its providers from then on. No event says when preparation ended, but a component that
    /// waits for nothing else starts as soon as it is prepared.
    fn had_all_providers(&self, book: &Book, entry: &ComponentEntry, from: u64) -> bool {
        let started = |life: &Life| life.state == Some(ComponentState::Started) && life.since_ms <= from;
        let is_there = |it: &ComponentEntry| it.id.and_then(|id| self.components.get(&id)).is_some_and(started);
        book.borrowed(entry).all(|it| matches!(it.need(), Need::Weak(_)) || is_there(book.provider_of(it)))
    }

    /// Drops the components that disappeared without an event of their own, with a lost VM.
    pub(super) fn drop_stale(&mut self, book: &Book) {
        if self.components.len() > book.components().count() + STALE_MAX {
            self.components.retain(|component, _| book.component_by_id(*component).is_some());
            let there: BTreeSet<&str> = book.components().map(|it| it.name.as_str()).collect();
            self.lengths.retain(|name, _| there.contains(name.as_str()));
        }
        if self.vms.len() > book.vms().count() + STALE_MAX {
            self.vms.retain(|vm, _| book.vm_by_id(*vm).is_some());
        }
    }

    /// The latest event read.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// What is known of a change.
    pub(super) fn change(&self, change: ChangeId) -> Option<&ChangeRecord> {
        self.changes.get(&change.0).map(|it| &it.record)
    }

    /// The first and the last event of a change; the last is 0 if the change is not done.
    pub(super) fn span(&self, change: ChangeId) -> Option<(u64, u64)> {
        self.changes.get(&change.0).map(|it| (it.first, it.last))
    }

    /// All changes, newest first.
    pub(super) fn changes(&self) -> impl Iterator<Item = &ChangeRecord> {
        self.changes.values().rev().map(|it| &it.record)
    }

    /// Since when a component has been in its present state.
    pub(super) fn since(&self, component: ComponentId) -> Option<u64> {
        self.components.get(&component).map(|life| life.since_ms)
    }

    /// How long the last operations of a component took.
    pub(super) fn lengths(&self, component: &str) -> Lengths {
        self.lengths.get(component).copied().unwrap_or_default()
    }

    /// The end of the output of the operation that failed last.
    pub(super) fn failure(&self, component: ComponentId) -> Option<String> {
        self.components.get(&component).and_then(|life| life.failure.clone())
    }

    /// How often a component ended by itself, if it ever did.
    pub(super) fn deaths(&self, component: ComponentId) -> Option<Deaths> {
        self.components.get(&component).and_then(|life| life.deaths)
    }

    /// The operation of a component that failed last, if it is being retried.
    pub(super) fn retrying(&self, component: ComponentId, now_ms: u64) -> Option<Retrying> {
        let life = self.components.get(&component)?;
        life.attempt.as_ref()?.at(now_ms, life.state, life.since_ms)
    }

    /// Since when a VM has had its present health.
    pub(super) fn vm_since(&self, vm: VmId) -> Option<u64> {
        self.vms.get(&vm).and_then(|life| life.since_ms)
    }

    /// Why the cloud could not create a VM at the last attempt.
    pub(super) fn not_made(&self, vm: VmId) -> Option<&str> {
        self.vms.get(&vm).and_then(|life| life.not_made.as_deref())
    }

    fn read(&mut self, event: &Event) {
        self.newest = event.number;
        match &event.news {
            News::Accepted(change) => {
                let recorded = self.record(*change, event.number);
                recorded.record.accepted_at_ms = Some(event.at_ms);
                recorded.record.asked.clone_from(&event.about);
            }
            News::PhasePosted(change, phase) => {
                let phase = Phase::from(*phase);
                let phases = &mut self.record(*change, event.number).record.phases;
                phases.push(PhaseRecord { phase, posted_at_ms: Some(event.at_ms), done_at_ms: None });
            }
            News::PhaseDone(change, phase) => {
                let phase = Phase::from(*phase);
                let phases = &mut self.record(*change, event.number).record.phases;
                match phases.iter_mut().find(|it| it.phase == phase) {
                    Some(found) => found.done_at_ms = Some(event.at_ms),
                    // A lost VM is forgotten in a phase that was never posted.
                    None => phases.push(PhaseRecord { phase, posted_at_ms: None, done_at_ms: Some(event.at_ms) }),
                }
            }
            News::ChangeDone(change) | News::ChangeCancelled(change) => {
                let recorded = self.record(*change, event.number);
                recorded.record.done_at_ms = Some(event.at_ms);
                recorded.record.cancelled = matches!(event.news, News::ChangeCancelled(_));
                recorded.last = event.number;
                let took = recorded.record.accepted_at_ms.map(|accepted| event.at_ms.saturating_sub(accepted));
                self.metrics.change_ended(matches!(event.news, News::ChangeCancelled(_)), took);
                self.drop_oldest();
            }
            News::ComponentIs(component, condition) => {
                let life = self.components.entry(*component).or_default();
                let was = life.state.replace(condition.state);
                let from = mem::replace(&mut life.since_ms, event.at_ms);
                let took = event.at_ms.saturating_sub(from);
                if is_death(was, condition.state) {
                    self.metrics.died();
                    let before = life.deaths;
                    life.deaths = Some(Deaths {
                        times: before.map_or(0, |it| it.times) + 1,
                        first_at_ms: before.map_or(event.at_ms, |it| it.first_at_ms),
                        last_at_ms: event.at_ms,
                    });
                }
                let is_first = was.is_none() && condition.state == ComponentState::Stopped;
                if mem::replace(&mut life.fresh, is_first) && condition.state == ComponentState::Starting {
                    self.beginnings.insert(*component, (from, from + took));
                }
                match (was, condition.state) {
                    (Some(ComponentState::Starting), ComponentState::Started) => {
                        self.metrics.operation_done("start", took);
                    }
                    (Some(ComponentState::Stopping), ComponentState::Stopped | ComponentState::Starting) => {
                        self.metrics.operation_done("stop", took);
                    }
                    _ => {}
                }
                if let Some(name) = &event.about {
                    let lengths = self.lengths.entry(name.clone()).or_default();
                    match (was, condition.state) {
                        (Some(ComponentState::Starting), ComponentState::Started) => lengths.start_ms = Some(took),
                        (Some(ComponentState::Stopping), ComponentState::Stopped | ComponentState::Starting) => {
                            lengths.stop_ms = Some(took);
                        }
                        _ => {}
                    }
                }
                life.attempt.take_if(|attempt| !attempt.outlives(condition.state));
                if !matches!(condition.state, ComponentState::Failed(_)) {
                    life.failure = None;
                }
            }
            News::OperationFailed(component, operation, detail) => {
                self.metrics.operation_failed(*operation);
                self.components.entry(*component).or_default().failure = Some(detail.to_string());
            }
            News::AttemptFailed(component, attempt) => {
                let attempt = LastAttempt::new(attempt.clone(), event.at_ms);
                self.components.entry(*component).or_default().attempt = Some(attempt);
            }
            News::ComponentGone(component) => {
                self.components.remove(component);
                self.beginnings.remove(component);
            }
            News::VmInstantiated(vm) | News::VmSuspected(vm) | News::VmWell(vm) | News::VmLost(vm) => {
                if matches!(event.news, News::VmSuspected(_)) {
                    self.metrics.suspected();
                }
                self.vms.insert(*vm, VmLife { since_ms: Some(event.at_ms), not_made: None });
            }
            News::VmNotInstantiated(vm, detail) => {
                self.vms.entry(*vm).or_default().not_made = Some(detail.to_string());
            }
            News::VmDestroyed(vm) => drop(self.vms.remove(vm)),
            News::Refused(_) | News::VmIs(..) | News::Cancelling(..) => {}
        }
    }

    fn record(&mut self, change: ChangeId, number: u64) -> &mut Recorded {
        self.changes.entry(change.0).or_insert_with(|| Recorded {
            record: ChangeRecord { change: change.0, ..ChangeRecord::default() },
            first: number,
            last: 0,
        })
    }

    fn drop_oldest(&mut self) {
        while self.changes.len() > CHANGES_MAX {
            let done = self.changes.iter().find(|(_, it)| it.last > 0).map(|(change, _)| *change);
            let Some(oldest) = done else { return };
            self.changes.remove(&oldest);
        }
    }
}

/// Whether a component has ended by itself: one that is asked to stop is stopping first.
fn is_death(was: Option<ComponentState>, is: ComponentState) -> bool {
    let ended = matches!(is, ComponentState::Stopped | ComponentState::Failed(Operation::Run));
    was == Some(ComponentState::Started) && ended
}
