//! Minimal disruption: which components may be stopped, and which may still be moving when a change is called done.
//!
//! Everything here is derived from what the operator asked for and from what went wrong, by name, and not from the rules of
//! the machines: it is an independent oracle.

use crate::{
    environment::Line,
    world::{Part, Place, World},
};
use protocol::{Edit, Export, Kind, Name, Need, Wire, manager::Health, manager::Request};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Whether a script declares a VM lost, which may stop anything that depends on it.
pub fn loses(script: &[Line]) -> bool {
    script.iter().any(|line| matches!(line.request, Request::DeclareLost(_)))
}

/// The components that a script may stop: what it removes or restarts, what it lets need more than it has, and the
/// dependents of these.
pub fn may_stop(script: &[Line]) -> BTreeSet<Name> {
    Disruption::of(script).stopped
}

/// Who depends on whom, over all bindings that a script ever makes; and what the script may stop.
#[derive(Clone, Debug, Default)]
pub struct Disruption {
    stopped: BTreeSet<Name>,
    /// The clients that may have to stop when a component does.
    clients: BTreeMap<Name, BTreeSet<Name>>,
    /// The clients that are told while they run when a component comes or goes.
    told: BTreeMap<Name, BTreeSet<Name>>,
    /// Each VM, by name, with the components that were ever on it.
    homes: BTreeSet<(Name, Name)>,
    /// The clients of values that are withdrawn, and their dependents.
    withdrawn: BTreeSet<Name>,
}

impl Disruption {
    /// The dependencies in a script.
    pub fn of(script: &[Line]) -> Self {
        let edits = || {
            script.iter().flat_map(|line| match &line.request {
                Request::Make(change) => change.edits.iter(),
                Request::Retry(_) | Request::Skip(_) | Request::DeclareLost(_) | Request::Cancel(_) => [].iter(),
            })
        };
        let mut found = Self::default();
        let mut kinds: BTreeMap<&Name, Vec<&Arc<Kind>>> = BTreeMap::new();
        let incomplete = script.iter().any(|line| matches!(&line.request, Request::Make(it) if it.incomplete));
        let (mut stopped, mut removed): (Vec<Name>, BTreeSet<&Name>) = (Vec::new(), BTreeSet::new());
        for edit in edits() {
            match edit {
                Edit::AddComponent { component, kind, vm } => {
                    kinds.entry(component).or_default().push(kind);
                    // A name may be taken over, on another VM.
                    found.homes.insert((vm.clone(), component.clone()));
                }
                Edit::RemoveComponent { component } => {
                    removed.insert(component);
                    stopped.push(component.clone());
                }
                Edit::RestartComponent { component } => stopped.push(component.clone()),
                // What is allowed to have too few providers may be told to need more than it has.
                Edit::SetNeed { component, .. } if incomplete => stopped.push(component.clone()),
                Edit::AddVm { .. }
                | Edit::RemoveVm { .. }
                | Edit::SetNeed { .. }
                | Edit::AddBinding(_)
                | Edit::RemoveBinding(_) => {}
            }
        }
        let ways = Ways { kinds };
        for edit in edits() {
            match edit {
                Edit::AddBinding(wire) => {
                    if ways.may_pass(wire) {
                        found.clients.entry(wire.provider.clone()).or_default().insert(wire.client.clone());
                    }
                    if ways.is_told(wire) {
                        found.told.entry(wire.provider.clone()).or_default().insert(wire.client.clone());
                    }
                }
                Edit::RemoveBinding(wire) if ways.may_pass(wire) => stopped.push(wire.client.clone()),
                Edit::RemoveVm { vm } => {
                    let there = found.homes.iter().filter(|(home, _)| home == vm).map(|(_, name)| name.clone());
                    stopped.extend(there);
                }
                _ => {}
            }
        }
        // What a cancelled change adds is taken away again. The setup is change 1.
        let cancels = |setup: bool| {
            let is_meant = |line: &Line| matches!(line.request, Request::Cancel(change) if (change.0 == 1) == setup);
            script.iter().any(is_meant)
        };
        for line in script.iter().enumerate().filter(|(place, _)| cancels(*place == 0)).map(|(_, line)| line) {
            let Request::Make(change) = &line.request else { continue };
            stopped.extend(change.edits.iter().filter_map(|edit| match edit {
                Edit::AddComponent { component, .. } => Some(component.clone()),
                Edit::AddBinding(wire) if ways.may_pass(wire) => Some(wire.client.clone()),
                _ => None,
            }));
        }
        let gone = |name: &Name| {
            removed.contains(name)
                || edits().any(|edit| match edit {
                    Edit::RemoveVm { vm } => found.homes.contains(&(vm.clone(), name.clone())),
                    _ => false,
                })
        };
        let withdrawn = edits().filter_map(|edit| match edit {
            Edit::AddBinding(wire) if ways.is_value(wire) && gone(&wire.provider) => Some(wire.client.clone()),
            Edit::RemoveBinding(wire) if ways.is_value(wire) => Some(wire.client.clone()),
            _ => None,
        });
        let withdrawn: Vec<Name> = withdrawn.collect();
        found.stopped = found.dependents(stopped);
        found.withdrawn = found.dependents(withdrawn);
        let told = found.withdrawn.iter().flat_map(|name| found.told.get(name).into_iter().flatten()).cloned();
        found.withdrawn = told.chain(found.withdrawn.iter().cloned()).collect();
        found
    }

    /// Whether the script may stop a component, whatever goes wrong.
    pub fn may_stop(&self, name: &Name) -> bool {
        self.stopped.contains(name)
    }

    /// What the script may stop.
    pub fn stopped(&self) -> &BTreeSet<Name> {
        &self.stopped
    }

    /// Exception to [`super::DONE`] and [`super::OWN`]: a provider waits for no client that only knows its values, so such a
    /// client, and its dependents, may still be on the way down when the provider is gone.
    pub fn may_stop_late(&self, name: &Name) -> bool {
        self.withdrawn.contains(name)
    }

    /// These components and all that may have to stop when they do.
    fn dependents(&self, mut open: Vec<Name>) -> BTreeSet<Name> {
        let mut found = BTreeSet::new();
        while let Some(name) = open.pop() {
            if found.insert(name.clone()) {
                open.extend(self.clients.get(&name).into_iter().flatten().cloned());
            }
        }
        found
    }

    /// What faults may have stopped: every component that died, or of which an operation failed, or whose VM is lost; and
    /// the dependents of these.
    pub fn suffering(&self, world: &World) -> BTreeSet<Name> {
        self.dependents(struck(world).into_iter().chain(self.lost(world)).collect())
    }

    /// The components that faults may still be moving: those that may have been stopped, and those that are told of it.
    pub fn unsettled(&self, world: &World) -> BTreeSet<Name> {
        let mut found = self.suffering(world);
        let told: Vec<Name> = found.iter().flat_map(|it| self.told.get(it).into_iter().flatten()).cloned().collect();
        found.extend(told);
        found
    }

    /// The components that were ever on a VM that is lost.
    fn lost(&self, world: &World) -> Vec<Name> {
        let book = world.manager().book();
        let gone = |vm: &&protocol::manager::VmEntry| {
            let halted = vm.id.is_some_and(|id| matches!(world.part(Place::Agent(id)), Part::Halted));
            vm.health == Health::Dead || halted
        };
        let names: BTreeSet<&Name> = book.vms().filter(gone).map(|vm| &vm.name).collect();
        self.homes.iter().filter(|(vm, _)| names.contains(vm)).map(|(_, name)| name.clone()).collect()
    }
}

/// The components that died, or of which an operation failed, and that are still there.
fn struck(world: &World) -> Vec<Name> {
    let hosts = world.agents().filter_map(|agent| match world.part(Place::Host(agent.id())) {
        Part::Host(host) if !host.suffered.is_empty() => Some((agent, host)),
        _ => None,
    });
    let ids = hosts.flat_map(|(agent, host)| host.suffered.iter().filter_map(|id| agent.components().get(id)));
    ids.map(|component| component.name().clone()).collect()
}

/// How clients take it when their providers come and go.
struct Ways<'s> {
    /// Of several kinds that bore a name, any may be meant.
    kinds: BTreeMap<&'s Name, Vec<&'s Arc<Kind>>>,
}

impl Ways<'_> {
    fn of(&self, name: &Name) -> impl Iterator<Item = &Kind> {
        self.kinds.get(name).into_iter().flatten().map(|kind| &***kind)
    }

    fn needs(&self, wire: &Wire) -> impl Iterator<Item = (&Kind, Need)> {
        self.of(&wire.client).filter_map(|kind| Some((kind, kind.imports.get(&wire.import)?.need)))
    }

    fn has_values(&self, wire: &Wire) -> bool {
        self.of(&wire.provider).any(|kind| kind.exports.get(&wire.export).is_some_and(Export::has_values))
    }

    /// A client stops for no provider that it can do without, unless it comes back with values that only a restart can tell.
    fn may_pass(&self, wire: &Wire) -> bool {
        self.needs(wire).any(|(kind, need)| !need.is_weak() || !kind.rebinds && self.has_values(wire))
    }

    fn is_told(&self, wire: &Wire) -> bool {
        self.needs(wire).any(|(kind, _)| kind.rebinds)
    }

    fn is_value(&self, wire: &Wire) -> bool {
        self.needs(wire).any(|(_, need)| need.is_value())
    }
}
