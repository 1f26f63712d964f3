//! Fixed ports that two components of one machine want, where that is known before anything runs.
//!
//! Components on one VM are kept apart by their placement. VMs of the cloud `local` are all on the manager's machine and
//! share its address, so what they want is compared here, with the components of other applications too. Ports that
//! only show when a component runs are found by its check.

use crate::{
    Application,
    expansion::{Expansion, Key},
    problem::Findings,
    readiness,
};
use std::collections::{BTreeMap, BTreeSet};

/// The cloud whose VMs are all on one machine.
const LOCAL: &str = "local";

/// Reports each port that two components on the manager's machine want, once for each pair of groups.
pub(crate) fn check(application: &Application, others: &[Expansion], expansion: &Expansion, findings: &mut Findings) {
    let mut taken: BTreeMap<u64, (String, Option<&Key>)> = BTreeMap::new();
    for other in others {
        for (key, ports) in wanted(other) {
            taken.extend(ports.into_iter().map(|port| (port, (format!("{}/{key}", other.application), None))));
        }
    }
    let mut told: BTreeSet<(String, &Key)> = BTreeSet::new();
    let ports = application.ports();
    for (key, component) in expansion.components.iter().filter(|(_, it)| is_local(expansion, &it.vm)) {
        for port in ports.get(&key.group).into_iter().flatten() {
            let Some((holder, vm)) = taken.get(port) else {
                taken.insert(*port, (key.to_string(), Some(&component.vm)));
                continue;
            };
            // On the same VM, the placement has already reported it.
            if *vm != Some(&component.vm) && told.insert((holder.clone(), key)) {
                let says = format!(
                    "`{key}` and `{holder}` both listen on port {port}, and VMs of cloud `local` are all on the manager's machine (give one of them another port, or use `free_port()`)"
                );
                findings.add(application.components[&key.group].span, says);
            }
        }
    }
}

/// The components of another application on the manager's machine, and the ports that they listen on.
fn wanted(other: &Expansion) -> impl Iterator<Item = (&Key, BTreeSet<u64>)> {
    let ports: BTreeMap<_, _> = other
        .definitions
        .iter()
        .map(|(name, it)| (name, readiness::ports_of(&it.recipe, &it.exports, |_| false)))
        .collect();
    let local = other.components.iter().filter(|(_, it)| is_local(other, &it.vm));
    local.filter_map(move |(key, _)| Some((key, ports.get(&key.group)?.clone())))
}

fn is_local(expansion: &Expansion, vm: &Key) -> bool {
    expansion.vms.get(vm).is_some_and(|vm| vm.cloud.as_deref() == Some(LOCAL))
}
