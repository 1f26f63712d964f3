//! Symmetry: replicas that can change places without anybody noticing.
//!
//! A replica is a VM with its components. Two are alike if swapping their names leaves every request of the script as it
//! is, but for the order of its edits. Worlds that differ only in which of them is where are then taken to be one: the
//! fingerprint of a world is a sum over its replicas, so that their order does not matter. Worlds are not renamed, only
//! their fingerprints are; so ways and counterexamples stay real.

use super::{
    flatten::Leaves,
    intern::{fingerprint, half, mix},
};
use crate::{Action, Faults, Line, World};
use protocol::{ComponentId, Edit, Name, Wire, manager::Request};
use rustc_hash::FxHashMap;
use std::{collections::BTreeMap, sync::Arc};

/// Which names and numbers belong to which replica, and what they are there.
#[derive(Debug, Default)]
pub(super) struct Orbits {
    /// The class of each replica: those of one class are alike.
    classes: Vec<u64>,
    names: FxHashMap<String, (usize, u64)>,
    numbers: FxHashMap<u64, (usize, u64)>,
    entries: FxHashMap<u64, (usize, u64)>,
}

impl Orbits {
    /// Finds the replicas of a script. Only what the first request adds can be alike.
    pub(super) fn find(script: &Arc<[Line]>) -> Self {
        let Some(Line { request: Request::Make(setup), .. }) = script.first() else { return Self::default() };
        let mut groups: Vec<Vec<Replica>> = Vec::new();
        for edit in &setup.edits {
            let Edit::AddVm { vm } = edit else { continue };
            let replica = Replica::new(vm, &setup.edits);
            match groups.iter_mut().find(|group| are_alike(&group[0], &replica, script)) {
                Some(group) => group.push(replica),
                None => groups.push(vec![replica]),
            }
        }
        let mut orbits = Self::default();
        for (class, group) in groups.into_iter().filter(|group| group.len() > 1).enumerate() {
            for replica in group {
                orbits.add(class, &replica);
            }
        }
        if !orbits.classes.is_empty() {
            orbits.learn(script);
        }
        orbits
    }

    /// Whether there is nothing to gain.
    pub(super) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// The fingerprint of a world whose parts have these leaves; `sums` is room to reckon in.
    pub(super) fn print<'l>(&self, parts: impl Iterator<Item = &'l Leaves>, sums: &mut Vec<u128>) -> u128 {
        let mut plain: u128 = 0;
        sums.clear();
        sums.resize(self.classes.len(), 0);
        for leaves in parts {
            plain = plain.wrapping_add(leaves.plain);
            for (replica, sum) in &leaves.of {
                sums[*replica] = sums[*replica].wrapping_add(*sum);
            }
        }
        let mixed = sums.iter().zip(&self.classes).map(|(sum, class)| mix(sum ^ u128::from(*class)));
        mixed.fold(plain, u128::wrapping_add)
    }
}

/// A VM with its components.
struct Replica {
    vm: Name,
    components: Vec<Name>,
}

impl Replica {
    fn new(vm: &Name, edits: &[Edit]) -> Self {
        let here = edits.iter().filter_map(|edit| match edit {
            Edit::AddComponent { component, vm: home, .. } if home == vm => Some(component.clone()),
            _ => None,
        });
        Self { vm: vm.clone(), components: here.collect() }
    }

    fn names(&self) -> impl Iterator<Item = &Name> {
        std::iter::once(&self.vm).chain(&self.components)
    }
}

/// Whether swapping two replicas leaves every request as it is.
fn are_alike(one: &Replica, other: &Replica, script: &[Line]) -> bool {
    if one.components.len() != other.components.len() {
        return false;
    }
    let there = one.names().zip(other.names());
    let swaps: BTreeMap<&Name, &Name> = there.flat_map(|(a, b)| [(a, b), (b, a)]).collect();
    script.iter().all(|line| match &line.request {
        Request::Make(change) => {
            let mut before: Vec<&Edit> = change.edits.iter().collect();
            let mut after: Vec<Edit> = change.edits.iter().map(|edit| swap(edit, &swaps)).collect();
            before.sort();
            after.sort();
            before.into_iter().eq(&after)
        }
        Request::Retry(name) | Request::Skip(name) | Request::DeclareLost(name) => !swaps.contains_key(name),
        Request::Cancel(_) => true,
    })
}

fn swap(edit: &Edit, swaps: &BTreeMap<&Name, &Name>) -> Edit {
    let to = |name: &Name| swaps.get(name).map_or_else(|| name.clone(), |to| (*to).clone());
    let rewire = |wire: &Wire| Wire { client: to(&wire.client), provider: to(&wire.provider), ..wire.clone() };
    match edit {
        Edit::AddVm { vm } => Edit::AddVm { vm: to(vm) },
        Edit::RemoveVm { vm } => Edit::RemoveVm { vm: to(vm) },
        Edit::AddComponent { component, vm, kind } => {
            Edit::AddComponent { component: to(component), vm: to(vm), kind: kind.clone() }
        }
        Edit::RemoveComponent { component } => Edit::RemoveComponent { component: to(component) },
        Edit::RestartComponent { component } => Edit::RestartComponent { component: to(component) },
        Edit::SetNeed { component, import, number } => {
            Edit::SetNeed { component: to(component), import: import.clone(), number: *number }
        }
        Edit::AddBinding(wire) => Edit::AddBinding(rewire(wire)),
        Edit::RemoveBinding(wire) => Edit::RemoveBinding(rewire(wire)),
    }
}

impl Orbits {
    fn add(&mut self, class: usize, replica: &Replica) {
        let place = self.classes.len();
        self.classes.push(u64::try_from(class).unwrap_or(u64::MAX));
        for (role, name) in (0..).zip(replica.names()) {
            self.names.insert(name.as_str().into(), (place, role));
        }
    }

    /// Learns the numbers that the manager will give, by letting it take the first request.
    fn learn(&mut self, script: &Arc<[Line]>) {
        let mut world = World::new(script.clone(), Faults::default());
        world.apply(Action::Ask);
        let book = world.manager().book();
        let known = self.names.clone();
        for (name, owner) in &known {
            let Ok(name) = Name::new(name) else { continue };
            let vm = book.vm_entry(&name).map(|(entry, vm)| (entry, vm.id.map(|id| id.0)));
            let component = book.component_entry(&name).map(|(entry, it)| (entry, it.id.map(|id| id.0)));
            // A VM and a component may have the same name; then what it belongs to is not clear.
            if let (Some((entry, id)), None) | (None, Some((entry, id))) = (vm, component) {
                self.entries.insert(entry.number(), *owner);
                self.numbers.extend(id.map(|id| (id, *owner)));
                // What a component hands out that chooses its values once.
                self.names.extend(id.map(|id| (ComponentId(id).to_string(), *owner)));
            }
        }
        for (entry, wire, id) in book.bindings() {
            let ends = [known.get(wire.client.as_str()), known.get(wire.provider.as_str())];
            let role = |end: Option<&(usize, u64)>, name: &Name| {
                end.map_or_else(|| name.to_string(), |end| format!("role {}", end.1))
            };
            let what = (role(ends[0], &wire.client), wire.import.to_string(), role(ends[1], &wire.provider));
            // What joins two replicas belongs to neither.
            if let [Some((place, _)), None] | [None, Some((place, _))] = ends {
                let owner = (*place, half(fingerprint(&what)));
                self.entries.insert(entry.number(), owner);
                self.numbers.extend(id.map(|id| (id.0, owner)));
            }
        }
    }

    pub(super) fn name(&self, name: &str) -> Option<(usize, u64)> {
        self.names.get(name).copied()
    }

    pub(super) fn number(&self, number: u64) -> Option<(usize, u64)> {
        self.numbers.get(&number).copied()
    }

    pub(super) fn entry(&self, entry: u64) -> Option<(usize, u64)> {
        self.entries.get(&entry).copied()
    }
}
