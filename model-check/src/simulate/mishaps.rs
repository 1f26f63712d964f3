//! What goes wrong, and where: chosen by chance among what there is.

use crate::{
    action::Action,
    environment::Faults,
    random::Random,
    world::{Part, Place, World},
};
use protocol::VmId;

/// Whether any mishap is left. Failed operations are not mishaps: they are decided when an operation begins.
pub(super) fn are_left(faults: Faults) -> bool {
    faults.deaths > 0 || faults.crashes > 0 || faults.breaks > 0 || faults.losses > 0
}

/// Chooses what goes wrong now, if there is anything it can happen to.
pub(super) fn choose(world: &World, vms: &[VmId], faults: Faults, random: &mut Random) -> Option<Action> {
    type Sort = fn(&World, &[VmId], &mut Random) -> Option<Action>;
    let sorts: [(u32, Sort); 4] =
        [(faults.deaths, death), (faults.crashes, crash), (faults.breaks, broken_link), (faults.losses, loss)];
    let left: Vec<Sort> = sorts.into_iter().filter(|(count, _)| *count > 0).map(|(_, sort)| sort).collect();
    let sort = random.pick(&left)?;
    sort(world, vms, random)
}

/// A component that runs dies.
fn death(world: &World, vms: &[VmId], random: &mut Random) -> Option<Action> {
    let vm = *random.pick(vms)?;
    let Part::Host(host) = world.part(Place::Host(vm)) else { return None };
    let component = host.running.keys().nth(random.index(host.running.len()))?;
    Some(Action::Die(vm, *component))
}

/// The manager, or an agent, crashes.
fn crash(_: &World, vms: &[VmId], random: &mut Random) -> Option<Action> {
    let manager = random.chance(200);
    if manager { Some(Action::CrashManager) } else { random.pick(vms).map(|vm| Action::Crash(*vm)) }
}

/// The link between a VM and one of its neighbours breaks.
fn broken_link(world: &World, vms: &[VmId], random: &mut Random) -> Option<Action> {
    let vm = *random.pick(vms)?;
    let neighbours: Vec<VmId> = world.neighbours(vm).collect();
    let other = *neighbours.get(random.index(neighbours.len()))?;
    Some(Action::Break(vm.min(other), vm.max(other)))
}

/// A VM is lost.
fn loss(_: &World, vms: &[VmId], random: &mut Random) -> Option<Action> {
    random.pick(vms).map(|vm| Action::Lose(*vm))
}
