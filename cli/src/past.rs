//! The pasts of real machines, read from their data directories for an audit. Nothing is changed there, and the programs
//! may be running.

use crate::failure::Failure;
use cloud_manager::machine::{Effect, LocalEvent as ManagerEvent, Manager};
use model_check::audit::{Lived, Past};
use model_check::world::{Input, Place};
use protocol::letter::ToManager;
use protocol::{VmId, agent, manager, manager::Request, wire};
use runtime::engine::{self, Entry, Machine, Moment, Output, Step};
use runtime::identity::{Authority, Identity};
use runtime::{PeerId, journal};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vm_agent::machine::{Agent, LocalEvent as AgentEvent, Understood};

/// The data directories in and below a manager's: its own, and those of its VMs on this machine.
pub(crate) fn directories(given: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in given {
        found.push(directory.clone());
        let local = directory.join(cloud_manager::program::LOCAL);
        let mut vms: Vec<PathBuf> =
            std::fs::read_dir(local).into_iter().flatten().flatten().map(|it| it.path()).collect();
        vms.retain(|vm| vm.join(journal::ROOM).is_dir());
        vms.sort();
        found.extend(vms);
    }
    found
}

/// Reads the past of the machine that lives in a data directory.
pub(crate) fn read(directory: &Path) -> Result<Past, Failure> {
    let journal = directory.join(journal::ROOM);
    if !journal.is_dir() {
        return Err(Failure::NoDataDirectory(directory.to_owned()));
    }
    if let Some(signer) = Authority::signer_in(&directory.join(cloud_manager::program::AUTHORITY))? {
        let steps = engine::retell(Manager::new(signer), &journal)?;
        return Ok(Past { place: Place::Manager, steps: lived(&steps, of_manager, requested) });
    }
    let identity = Identity::load(&directory.join(vm_agent::program::IDENTITY))?;
    let identity = Arc::new(identity.ok_or_else(|| Failure::NoDataDirectory(directory.to_owned()))?);
    let agent = Agent::new(Arc::clone(&identity));
    let steps = engine::retell(agent.clone(), &journal)?;
    let place = Place::Agent(VmId(identity.certified().peer.0));
    Ok(Past { place, steps: lived(&steps, |entry| of_agent(&agent, entry), |_| None) })
}

/// What the engine's steps mean to an audit; what is between the programs alone is left out. In one step of the engine the
/// program may add requests of its own, which `requested` finds among its effects: each is a step of the machine.
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
        Entry::Happened { what, .. } => match Manager::read(what)? {
            ManagerEvent::Asked { request, .. } | ManagerEvent::Applied { request, .. } => {
                manager::Input::FromOperator(request)
            }
            ManagerEvent::FromCloud(outcome) => manager::Input::FromCloud(outcome),
            ManagerEvent::AlarmRang(alarm) => manager::Input::AlarmRang(alarm),
            ManagerEvent::Patience(limit) => manager::Input::SuspicionLimit(limit),
            ManagerEvent::Question { .. }
            | ManagerEvent::QuestionAbout { .. }
            | ManagerEvent::Submitted(_)
            | ManagerEvent::RolloutCancelled(..)
            | ManagerEvent::RolloutPromoted(..) => return None,
        },
        Entry::Acknowledged { .. } | Entry::Met { .. } => return None,
    }))
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
