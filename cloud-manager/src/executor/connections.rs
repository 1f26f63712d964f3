//! Which agents are connected, and which have been away for so long that the machine has to know.

use protocol::VmId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long an agent may be away before the machine is told that its VM is silent.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// The agents that are connected, and how often each went away.
#[derive(Default)]
pub(super) struct Connections {
    connected: BTreeSet<VmId>,
    departures: BTreeMap<VmId, u64>,
}

impl Connections {
    /// None is connected any more: the engine's links were made anew.
    pub(super) fn reset(&mut self) {
        self.connected.clear();
    }

    /// The agent of a VM has connected.
    pub(super) fn up(&mut self, vm: VmId) {
        self.connected.insert(vm);
    }

    /// The agent of a VM is not connected any more. The number tells this departure from others of the same VM.
    pub(super) fn down(&mut self, vm: VmId) -> u64 {
        self.connected.remove(&vm);
        let departure = self.departures.entry(vm).or_default();
        *departure += 1;
        *departure
    }

    /// Whether a VM has been away without interruption since that departure.
    pub(super) fn is_still_away(&self, vm: VmId, departure: u64) -> bool {
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
    fn only_the_last_departure_counts_and_only_while_the_agent_is_away() {
        let (mut connections, vm) = (Connections::default(), VmId(1));
        let first = connections.down(vm);
        assert!(connections.is_still_away(vm, first));
        connections.up(vm);
        assert!(!connections.is_still_away(vm, first));
        let second = connections.down(vm);
        assert!(!connections.is_still_away(vm, first) && connections.is_still_away(vm, second));
        connections.forget(vm);
        assert!(!connections.is_still_away(vm, second));
    }
}
