//! Which component is on which VM.
//!
//! A component stays on its VM for as long as that VM exists, is permitted, and has room. A new one goes to the VM with
//! the fewest of its group, then the fewest of all, then the lowest number. So a new group is spread over its VMs in
//! turn, and adding VMs moves no component.

use crate::{
    Application,
    application::ComponentGroup,
    expansion::{Expansion, Key},
    problem::Findings,
};
use protocol::Name;
use std::collections::{BTreeMap, BTreeSet};

/// What is on each VM so far.
struct Site<'a> {
    application: &'a Application,
    /// The ports that the components of each group listen at.
    ports: BTreeMap<&'a Name, BTreeSet<u64>>,
    load: BTreeMap<Key, Load<'a>>,
}

/// What is on one VM so far.
#[derive(Default)]
struct Load<'a> {
    components: u32,
    types: BTreeMap<&'a str, u32>,
    used: BTreeMap<&'a str, u64>,
    /// The ports in use, and the group that listens there.
    ports: BTreeMap<u64, &'a Name>,
}

/// Finds a VM for each component; components without one are reported.
pub(crate) fn place(
    application: &Application,
    before: Option<&Expansion>,
    findings: &mut Findings,
) -> BTreeMap<Key, Key> {
    let mut site = Site { application, ports: application.ports(), load: BTreeMap::new() };
    let mut placed: BTreeMap<Key, Key> = BTreeMap::new();
    // Components that stay come first, so that no new one takes their room.
    for (name, group) in &application.components {
        let allowed = site.allowed(group);
        for index in 0..group.count {
            let key = Key::new(name, index);
            let vm = before.and_then(|before| before.components.get(&key)).map(|it| &it.vm);
            if let Some(vm) = vm.filter(|vm| allowed.contains(vm) && site.lacks((name, group), vm).is_none()) {
                site.put((name, group), vm);
                placed.insert(key, vm.clone());
            }
        }
    }
    for (name, group) in &application.components {
        let allowed = site.allowed(group);
        let mut own: BTreeMap<&Key, u32> = BTreeMap::new();
        let stays = placed.range(Key::new(name, 0)..=Key::new(name, u32::MAX));
        stays.for_each(|(_, vm)| *own.entry(vm).or_default() += 1);
        let rank =
            |site: &Site<'_>, own: u32, vm: &Key| (own, site.load.get(vm).map_or(0, |it| it.components), vm.clone());
        let mut order: BTreeSet<(u32, u32, Key)> =
            allowed.iter().map(|vm| rank(&site, own.get(vm).copied().unwrap_or(0), vm)).collect();
        let mut homeless = Vec::new();
        let fresh: Vec<Key> =
            (0..group.count).map(|index| Key::new(name, index)).filter(|key| !placed.contains_key(key)).collect();
        for key in fresh {
            let Some(best) = order.iter().find(|(_, _, vm)| site.lacks((name, group), vm).is_none()).cloned() else {
                homeless.push(key);
                continue;
            };
            order.remove(&best);
            let (own, _, vm) = best;
            site.put((name, group), &vm);
            order.insert(rank(&site, own + 1, &vm));
            placed.insert(key, vm);
        }
        let is_sound = |vms: &Name| application.vms.get(vms).is_some_and(|it| it.sound);
        // A group that could not be read may have room; that there is none at all was already reported.
        let sound = !application.is_incomplete
            && !application.vms.is_empty()
            && application.allowed(group).iter().all(|it| is_sound(&it.group));
        if let Some(first) = homeless.first().filter(|_| sound) {
            let none = if application.drained.is_empty() { "there is no VM" } else { "all its VMs are drained" };
            let why = allowed.iter().find_map(|vm| site.lacks((name, group), vm)).unwrap_or_else(|| none.into());
            let places = application.allowed(group);
            let places: Vec<&str> = places.iter().map(|it| it.group.as_str()).collect();
            let others = match homeless.len() - 1 {
                0 => String::new(),
                others => format!(" and {others} more of `{name}`"),
            };
            let says = format!(
                "`{first}`{others} cannot be placed on {}: {why} (add VMs, or use fewer components)",
                crate::nearest::listed(&places)
            );
            findings.add(group.span, says);
        }
    }
    placed
}

impl<'a> Site<'a> {
    /// The VMs that a group may be on.
    fn allowed(&self, group: &ComponentGroup) -> BTreeSet<Key> {
        let targets = self.application.allowed(group);
        let vms = targets.into_iter().flat_map(|target| {
            let count = self.application.vms.get(&target.group).map_or(0, |it| it.count);
            let indices = target.index.map_or(0..count, |index| index..index + 1);
            indices.map(move |index| Key::new(&target.group, index))
        });
        vms.filter(|vm| !self.application.drained.contains(vm)).collect()
    }

    /// Why one more of a group cannot be on a VM, if it cannot.
    fn lacks(&self, (name, group): (&Name, &ComponentGroup), vm: &Key) -> Option<String> {
        let own = self.application.type_of(group);
        let load = self.load.get(vm);
        let there = load.into_iter().flat_map(|it| it.types.keys());
        for other in there {
            let theirs: &[(String, crate::source::Span)] =
                self.application.types.get(*other).map_or(&[], |(_, it)| &it.conflicts);
            if own.conflicts.iter().any(|(name, _)| name == other)
                || theirs.iter().any(|(name, _)| *name == group.type_name)
            {
                return Some(format!(
                    "`{vm}` has a component of type `{other}`, which conflicts with type `{}`",
                    group.type_name
                ));
            }
        }
        let taken = |port: &u64| Some((*port, load?.ports.get(port)?));
        if let Some((port, other)) = self.ports.get(name).into_iter().flatten().find_map(taken) {
            return Some(format!("port {port} of `{vm}` is already used by a component of `{other}`"));
        }
        let has = &self.application.vms.get(&vm.group)?.resources;
        for (resource, wanted) in &own.resources {
            let Some(has) = has.get(resource) else { continue };
            let used = load.and_then(|it| it.used.get(resource.as_str())).copied().unwrap_or(0);
            if used.saturating_add(*wanted) > *has {
                return Some(format!(
                    "`{vm}` has {has} of {resource}, {used} of it in use, and the component needs {wanted}"
                ));
            }
        }
        None
    }

    fn put(&mut self, (name, group): (&'a Name, &'a ComponentGroup), vm: &Key) {
        let own = self.application.type_of(group);
        let load = self.load.entry(vm.clone()).or_default();
        load.components += 1;
        load.ports.extend(self.ports.get(name).into_iter().flatten().map(|port| (*port, name)));
        *load.types.entry(&group.type_name).or_default() += 1;
        for (resource, wanted) in &own.resources {
            let used = load.used.entry(resource).or_default();
            *used = used.saturating_add(*wanted);
        }
    }
}
