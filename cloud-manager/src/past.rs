//! The recorded runs of real machines, read from their data directories: for an audit, and for the story of one change.
//! Nothing is changed there, and the programs may be running.

use crate::machine::{Effect, LocalEvent as ManagerEvent, Manager};
use model_check::World;
use model_check::audit::{Audit, Lived, Past};
use model_check::chart::Chart;
use model_check::world::{Event, Input, Output as Said, Place};
use protocol::letter::ToManager;
use protocol::{ChangeId, VmId, agent, manager, manager::News, manager::Request, wire};
use runtime::engine::{self, Entry, Machine, Moment, Output, Step};
use runtime::identity::{Authority, Identity};
use runtime::{PeerId, journal};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vm_agent::machine::{Agent, LocalEvent as AgentEvent, Understood};

/// Why a past could not be read. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    /// There is no journal to read.
    #[error("{}: no manager and no agent keeps its journal here (name the directory given to --data)", .0.display())]
    NoDataDirectory(PathBuf),
    /// No journal speaks of that change.
    #[error("{0} was never accepted, or its beginning is kept only as a snapshot")]
    NoSuchChange(ChangeId),
    /// A journal or an identity cannot be read.
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
}

/// The data directories in and below a manager's: its own, and those of its VMs on this machine.
pub fn directories(given: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in given {
        found.push(directory.clone());
        let local = directory.join(crate::program::LOCAL);
        let mut vms: Vec<PathBuf> =
            std::fs::read_dir(local).into_iter().flatten().flatten().map(|it| it.path()).collect();
        vms.retain(|vm| vm.join(journal::ROOM).is_dir());
        vms.sort();
        found.extend(vms);
    }
    found
}

/// Reads the recorded run of the machine in a data directory.
pub fn read(directory: &Path) -> Result<Past, PastError> {
    let journal = directory.join(journal::ROOM);
    if !journal.is_dir() {
        return Err(PastError::NoDataDirectory(directory.to_owned()));
    }
    if let Some(signer) = Authority::signer_in(&directory.join(crate::program::AUTHORITY))? {
        let steps = engine::retell(Manager::new(signer), &journal)?;
        return Ok(Past { place: Place::Manager, steps: lived(&steps, of_manager, requested) });
    }
    let identity = Identity::load(&directory.join(vm_agent::program::IDENTITY))?;
    let identity = Arc::new(identity.ok_or_else(|| PastError::NoDataDirectory(directory.to_owned()))?);
    let agent = Agent::new(Arc::clone(&identity));
    let steps = engine::retell(agent.clone(), &journal)?;
    let place = Place::Agent(VmId(identity.certified().peer.0));
    Ok(Past { place, steps: lived(&steps, |entry| of_agent(&agent, entry), |_| None) })
}

/// The engine's steps as an audit needs them, without what only concerns the links. In one step of the engine the program
/// may add requests of its own, which `requested` finds among its effects: each is a step of the machine.
fn lived<E>(
    steps: &[Step<E>],
    input: impl Fn(&Entry) -> Option<Input>,
    requested: impl Fn(&E) -> Option<Input>,
) -> Vec<Lived> {
    let mut sent: BTreeMap<PeerId, u64> = BTreeMap::new();
    let mut lived = Vec::new();
    for step in steps {
        let (at, heard) = match &step.entry {
            Entry::Received { at, from, number, payload } => (*at, Some((place(*from), number.0, payload.clone()))),
            Entry::Happened { at, .. } => (*at, None),
            Entry::Acknowledged { .. } | Entry::Met { .. } => (Moment::default(), None),
        };
        let mut inside = vec![Lived { at_ms: at.0, input: input(&step.entry), heard, said: Vec::new() }];
        for output in &step.outputs {
            match output {
                Output::Send(to, payload) => {
                    let number = sent.entry(*to).or_default();
                    *number += 1;
                    let said = (place(*to), *number, payload.clone());
                    inside.last_mut().expect("there is at least one").said.push(said);
                }
                Output::Effect(effect) => {
                    let request = requested(effect).map(Some);
                    inside.extend(request.map(|input| Lived { at_ms: at.0, input, heard: None, said: Vec::new() }));
                }
                Output::Introduce(..) | Output::Revoke(_) => {}
            }
        }
        let counts = |it: &Lived| it.input.is_some() || it.heard.is_some() || !it.said.is_empty();
        lived.extend(inside.into_iter().filter(counts));
    }
    lived
}

/// A request that the manager's program made by itself, for an application.
fn requested(effect: &Effect) -> Option<Input> {
    match effect {
        Effect::Requested(request) => Some(Input::Manager(manager::Input::FromOperator(Request::clone(request)))),
        _ => None,
    }
}

fn of_manager(entry: &Entry) -> Option<Input> {
    Some(Input::Manager(match entry {
        Entry::Received { from, payload, .. } => match wire::decode(payload).ok()? {
            ToManager::Report(report) => manager::Input::FromAgent(VmId(from.0), report),
            ToManager::Listening { .. } | ToManager::Answer { .. } | ToManager::AttemptFailed { .. } => return None,
        },
        Entry::Happened { what, .. } => match without_wishes(Manager::read(what)?) {
            ManagerEvent::Asked { request, .. }
            | ManagerEvent::AskedBy { request, .. }
            | ManagerEvent::Applied { request, .. } => manager::Input::FromOperator(request),
            ManagerEvent::FromCloud(outcome) => manager::Input::FromCloud(outcome),
            ManagerEvent::AlarmRang(alarm) => manager::Input::AlarmRang(alarm),
            ManagerEvent::Patience(limit) => manager::Input::SuspicionLimit(limit),
            ManagerEvent::Question { .. }
            | ManagerEvent::QuestionAbout { .. }
            | ManagerEvent::Submitted(_)
            | ManagerEvent::RolloutCancelled(..)
            | ManagerEvent::RolloutPromoted(..)
            | ManagerEvent::HostQuestion { .. }
            | ManagerEvent::With(..) => return None,
        },
        Entry::Acknowledged { .. } | Entry::Met { .. } => return None,
    }))
}

/// The event itself, without what was asked for together with it.
fn without_wishes(event: ManagerEvent) -> ManagerEvent {
    match event {
        ManagerEvent::With(event, _) => *event,
        event => event,
    }
}

fn of_agent(agent: &Agent, entry: &Entry) -> Option<Input> {
    Some(Input::Agent(match entry {
        Entry::Received { from, payload, .. } => match agent.understand(*from, payload).ok()? {
            Understood::Input(input) => input,
            Understood::Aside(_) => return None,
        },
        Entry::Happened { what, .. } => match Agent::read(what)? {
            AgentEvent::FromHost(outcome) => agent::Input::FromHost(outcome),
            AgentEvent::AlarmRang(alarm) => agent::Input::AlarmRang(alarm),
            AgentEvent::Listening(_) | AgentEvent::Answered { .. } => return None,
        },
        Entry::Acknowledged { .. } | Entry::Met { .. } => return None,
    }))
}

fn place(peer: PeerId) -> Place {
    if peer == PeerId::MANAGER { Place::Manager } else { Place::Agent(VmId(peer.0)) }
}

/// A run, and the world that it began in.
pub struct Stage {
    /// How everything was before the first event.
    pub world: World,
    /// What happened.
    pub events: Vec<Event>,
    /// When each event happened, since 1970.
    pub moments: Vec<Duration>,
}

impl Stage {
    /// The whole run, or one change of it.
    pub fn of(audit: &Audit, change: Option<ChangeId>) -> Result<Self, PastError> {
        let events: Vec<Event> = audit.events.iter().map(|(_, event)| event.clone()).collect();
        let mut world = World::new([].into(), model_check::Faults::default());
        let moments: Vec<Duration> = audit.events.iter().map(|(at_ms, _)| Duration::from_millis(*at_ms)).collect();
        let Some(change) = change else { return Ok(Self { world, events, moments }) };
        let place = |told: fn(&News) -> Option<ChangeId>| {
            events.iter().position(|event| news(event).any(|news| told(news) == Some(change)))
        };
        let accepted = |news: &News| if let News::Accepted(change) = news { Some(*change) } else { None };
        let done = |news: &News| match news {
            News::ChangeDone(change) | News::ChangeCancelled(change) => Some(*change),
            _ => None,
        };
        let Some(first) = place(accepted) else { return Err(PastError::NoSuchChange(change)) };
        let last = place(done).unwrap_or(events.len() - 1);
        for event in &events[..first] {
            if let Some((place, input)) = &event.input {
                world.relive(*place, input.clone());
            }
        }
        Ok(Self { world, events: events[first..=last].to_vec(), moments: moments[first..=last].to_vec() })
    }

    /// Who sent what to whom, in that order.
    pub fn messages(&self) -> Vec<String> {
        let chart = Chart::new(&self.world, &self.events);
        let name = |lifeline: usize| chart.lifelines[lifeline].name.as_str();
        let sent = chart.arrows.iter().filter(|arrow| arrow.sent.is_some());
        sent.map(|arrow| format!("{} → {}: {}", name(arrow.from), name(arrow.to), arrow.label)).collect()
    }
}

/// What the operator was told in an event.
fn news(event: &Event) -> impl Iterator<Item = &News> {
    let by_manager = matches!(event.input, Some((Place::Manager, _)));
    event.outputs.iter().filter(move |_| by_manager).filter_map(|output| match output {
        Said::Manager(manager::Output::ToOperator(news)) => Some(news),
        Said::Manager(_) | Said::Agent(_) => None,
    })
}
