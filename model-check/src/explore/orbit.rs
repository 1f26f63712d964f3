//! Symmetry: replicas that can change places without any difference.
//!
//! A replica is a VM with its components. Two are alike if swapping their names leaves every request of the script as it
//! is, but for how the edits of one lie between those of the other, and leaves what the scenario expects as it is. Worlds that differ only in which of
//! them is where are then taken to be one: the fingerprint of a world is a sum over its replicas, so that their order does
//! not matter. Worlds are not renamed, only their fingerprints are; so ways and counterexamples stay real.
//!
//! # Why this is sound
//!
//! Let π swap two replicas that are alike: their names, and the numbers that the manager gives them. Two worlds that can
//! both be reached, `w` and `π(w)`, have the same future up to π:
//!
//! 1. *Steps commute with π*: if `a` leads from `w` to `v`, then `π(a)` leads from `π(w)` to `π(v)`. The requests still to
//!    come are their own images. Machines treat names and numbers as opaque, with one exception: they compare numbers. What
//!    belongs to a replica is compared with the orders of its own VM; π swaps whole VMs, and keeps the order of the numbers
//!    of one VM, because the edits of two replicas come in the same order. Elsewhere (at the manager, on links, at a VM that
//!    is no replica) the number of an order says how far a VM is, and π leaves it as it is. The manager compares such
//!    numbers only with each other. The agent of a VM that is no replica compares its last order with the numbers of
//!    bindings and clients; where some replicas are numbered up to it and others above it, role by role, it is taken to
//!    speak of the replica that it was given for, and no two reachable worlds are images of each other.
//!    Where a machine lists several things in the order of their numbers, each goes to another link or is an element of a
//!    set, so that the order leaves no trace. Orders that are numbered later, such as roll calls, are numbered in the order
//!    of VMs, so π renames those that belong to a replica: all of one VM by the same distance, which keeps their order.
//!    Where not all replicas are ordered something, worlds that are images of each other may not be recognised as such;
//!    then the number of states depends a little on which of two images is met first.
//! 2. *Properties do not tell `w` from `π(w)`*: A1 to A6 and the others quantify over all components. What a scenario
//!    expects does name components; hence replicas of which different things are expected are not alike. A component that
//!    must be stopped on some path counts as stopped when one that is alike is.
//!
//! So a breach, and an end, in `π(w)` has its image in `w`, and one of the two is enough. Ends are found up to π:
//! [`super::interchangeable`] says which components π swaps. Point 1 is about code that may change; the tests compare
//! explorations with and without symmetry, with faults.

use super::{
    flatten::Leaves,
    intern::{fingerprint, half, mix},
};
use crate::{
    Action, Faults, Line, World,
    scenario::{Answer, Expected},
};
use protocol::{ComponentId, Edit, Name, Wire, manager::Request};
use rustc_hash::FxHashMap;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Which names and numbers belong to which replica, and what they are there.
#[derive(Debug, Default)]
pub(super) struct Orbits {
    /// The class of each replica: those of one class are alike.
    classes: Vec<u64>,
    /// The names of each replica, by role.
    replicas: Vec<Vec<Name>>,
    names: FxHashMap<String, (usize, u64)>,
    numbers: FxHashMap<u64, (usize, u64)>,
    entries: FxHashMap<u64, (usize, u64)>,
    /// The least and the greatest number of each role in each class.
    spans: Vec<(u64, u64)>,
    /// The last number that the first request leads to.
    last: u64,
}

impl Orbits {
    /// Finds the replicas of a script. Only what the first request adds can be alike.
    pub(super) fn find(script: &Arc<[Line]>, expected: Option<&Expected>) -> Self {
        let Some(Line { request: Request::Make(setup), .. }) = script.first() else { return Self::default() };
        let mut groups: Vec<Vec<Replica>> = Vec::new();
        for edit in &setup.edits {
            let Edit::AddVm { vm } = edit else { continue };
            let replica = Replica::new(vm, &setup.edits);
            match groups.iter_mut().find(|group| are_alike(&group[0], &replica, script, expected)) {
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

    /// Whether two components play the same role in replicas that are alike.
    pub(super) fn are_alike(&self, one: &Name, other: &Name) -> bool {
        let role = |name: &Name| self.names.get(name.as_str()).map(|(replica, role)| (self.classes[*replica], *role));
        role(one).is_some_and(|one| role(other) == Some(one))
    }

    /// The replicas of each class, each as its names by role.
    pub(super) fn classes(&self) -> Vec<Vec<Vec<Name>>> {
        let mut classes: BTreeMap<u64, Vec<Vec<Name>>> = BTreeMap::new();
        for (class, names) in self.classes.iter().zip(&self.replicas) {
            classes.entry(*class).or_default().push(names.clone());
        }
        classes.into_values().collect()
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

/// Whether swapping two replicas leaves every request, and what is expected, as it is.
fn are_alike(one: &Replica, other: &Replica, script: &[Line], expected: Option<&Expected>) -> bool {
    if one.components.len() != other.components.len() {
        return false;
    }
    let there = one.names().zip(other.names());
    let swaps: BTreeMap<&Name, &Name> = there.flat_map(|(a, b)| [(a, b), (b, a)]).collect();
    let requests = script.iter().all(|line| match &line.request {
        Request::Make(change) => {
            let mut before: Vec<&Edit> = change.edits.iter().collect();
            let mut after: Vec<Edit> = change.edits.iter().map(|edit| swap(edit, &swaps)).collect();
            before.sort();
            after.sort();
            // Numbers are given in the order of edits: what speaks of one replica must come in the order of the other.
            let about = |replica: &Replica| -> Vec<&Edit> {
                let names: BTreeSet<&Name> = replica.names().collect();
                change.edits.iter().filter(|edit| speaks_of(edit, &names)).collect()
            };
            let same_order =
                || about(one).into_iter().map(|edit| swap(edit, &swaps)).eq(about(other).into_iter().cloned());
            before.into_iter().eq(&after) && same_order()
        }
        Request::Retry(name) | Request::Skip(name) | Request::DeclareLost(name) => !swaps.contains_key(name),
        Request::Cancel(_) => true,
    });
    requests && expected.is_none_or(|expected| expects_the_same(expected, &swaps))
}

/// Whether a swap of names leaves what is expected as it is.
fn expects_the_same(expected: &Expected, swaps: &BTreeMap<&Name, &Name>) -> bool {
    // All fields are named, so that a new one cannot be forgotten here.
    let Expected { answers, components, vms, holds, never_stopped, sometimes_stopped, changes: _ } = expected;
    let to = |name: &Name| swaps.get(name).map_or_else(|| name.clone(), |to| (*to).clone());
    let set = |names: &BTreeSet<Name>| names.iter().map(to).collect::<BTreeSet<Name>>();
    // The reasons of a refusal are prose, in which a name may stand anywhere.
    let speaks = |text: &String| swaps.keys().any(|name| text.contains(name.as_str()));
    let is_plain = |answer: &Answer| match answer {
        Answer::Refused(texts) => !texts.iter().any(speaks),
        Answer::Accepted | Answer::Either => true,
    };
    answers.iter().all(is_plain)
        && components.iter().map(|(name, ends)| (to(name), ends.clone())).collect::<BTreeMap<_, _>>() == *components
        && vms.iter().map(|(name, ends)| (to(name), ends.clone())).collect::<BTreeMap<_, _>>() == *vms
        && holds.iter().map(|(name, held)| (to(name), set(held))).collect::<BTreeMap<_, _>>() == *holds
        && set(never_stopped) == *never_stopped
        && set(sometimes_stopped) == *sometimes_stopped
}

fn speaks_of(edit: &Edit, names: &BTreeSet<&Name>) -> bool {
    match edit {
        Edit::AddVm { vm } | Edit::RemoveVm { vm } => names.contains(vm),
        Edit::AddComponent { component, vm, .. } => names.contains(component) || names.contains(vm),
        Edit::RemoveComponent { component }
        | Edit::RestartComponent { component }
        | Edit::SetNeed { component, .. } => names.contains(component),
        Edit::AddBinding(wire) | Edit::RemoveBinding(wire) => {
            names.contains(&wire.client) || names.contains(&wire.provider)
        }
    }
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
        self.replicas.push(replica.names().cloned().collect());
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
        let mut spans: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
        for (number, (replica, role)) in &self.numbers {
            let span = spans.entry((self.classes[*replica], *role)).or_insert((*number, *number));
            *span = (span.0.min(*number), span.1.max(*number));
        }
        self.spans = spans.into_values().collect();
        self.last = world.manager().last_order().0;
    }

    /// The role of a number that was given to the VM of a replica after the first request. Where all replicas of a class are
    /// ordered something in one step, they are numbered one after the other, and the role is the same for all.
    pub(super) fn later(&self, replica: usize, number: u64) -> Option<(usize, u64)> {
        let class = self.classes[replica];
        let place = self.classes[..replica].iter().filter(|other| **other == class).count();
        let first = number.checked_sub(u64::try_from(place).ok()?)?;
        (number > self.last).then(|| (replica, half(fingerprint(&("later", first)))))
    }

    /// Whether some replicas are numbered up to here, and others that are alike only later.
    pub(super) fn separates(&self, number: u64) -> bool {
        self.spans.iter().any(|(least, greatest)| (*least..*greatest).contains(&number))
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
