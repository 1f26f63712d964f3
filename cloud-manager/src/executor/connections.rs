//! Which agents are connected, and which have been disconnected for so long that the machine has to know.

use protocol::VmId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long an agent may be disconnected before the machine is told that its VM is silent.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// The connected agents, and how often each has disconnected.
#[derive(Default)]
pub(super) struct Connections {
    connected: BTreeSet<VmId>,
    departures: BTreeMap<VmId, u64>,
}

impl Connections {
    /// Marks all as disconnected: the engine's links were re-created.
    pub(super) fn reset(&mut self) {
        self.connected.clear();
    }

    /// The agent of a VM has connected.
    pub(super) fn up(&mut self, vm: VmId) {
        self.connected.insert(vm);
    }

    /// The agent of a VM has disconnected. The returned number identifies this departure.
    pub(super) fn down(&mut self, vm: VmId) -> u64 {
        self.connected.remove(&vm);
        let departure = self.departures.entry(vm).or_default();
        *departure += 1;
        *departure
    }

    /// Whether a VM has been disconnected without interruption since that departure.
    pub(super) fn is_still_disconnected(&self, vm: VmId, departure: u64) -> bool {
        !self.connected.contains(&vm) && self.departures.get(&vm) == Some(&departure)
    }

    /// The VM is no longer one of the manager's.
    pub(super) fn forget(&mut self, vm: VmId) {
        self.connected.remove(&vm);
        self.departures.remove(&vm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_departure_counts_and_only_while_the_agent_is_disconnected() {
        let (mut connections, vm) = (Connections::default(), VmId(1));
        let first = connections.down(vm);
        assert!(connections.is_still_disconnected(vm, first));
        connections.up(vm);
        assert!(!connections.is_still_disconnected(vm, first));
        let second = connections.down(vm);
        assert!(!connections.is_still_disconnected(vm, first) && connections.is_still_disconnected(vm, second));
        connections.forget(vm);
        assert!(!connections.is_still_disconnected(vm, second));
    }
}
