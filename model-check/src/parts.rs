//! Where the parts of a world are kept.
//!
//! There can be very many, and a step touches a few, mostly of one or two VMs. So all that belongs to a VM lies side by
//! side, and is found by the VM's number.

use crate::world::{Part, Place};
use protocol::{PagedMap, ShortMap, VmId};
use std::sync::Arc;

/// The parts of a world, each at its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Parts {
    operator: Slot,
    manager: Slot,
    cloud: Slot,
    sites: PagedMap<VmId, Site>,
}

/// Room for one part. What is [`Part::Nothing`] takes none.
type Slot = Option<Arc<Part>>;

/// All that belongs to one VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Site {
    agent: Slot,
    host: Slot,
    orders: Slot,
    reports: Slot,
    /// Notices on their way from this VM, by the VM they go to.
    notices: ShortMap<VmId, Slot>,
}

impl Parts {
    /// Everything there is, in the order of places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Place, &Arc<Part>)> + Clone {
        let office = [(Place::Operator, &self.operator), (Place::Manager, &self.manager), (Place::Cloud, &self.cloud)];
        let sites = || self.sites.iter();
        let notices =
            sites().flat_map(|(from, site)| site.notices.iter().map(|(to, slot)| (Place::Notices(*from, *to), slot)));
        let slots = office
            .into_iter()
            .chain(sites().map(|(vm, site)| (Place::Agent(*vm), &site.agent)))
            .chain(sites().map(|(vm, site)| (Place::Host(*vm), &site.host)))
            .chain(sites().map(|(vm, site)| (Place::Orders(*vm), &site.orders)))
            .chain(sites().map(|(vm, site)| (Place::Reports(*vm), &site.reports)))
            .chain(notices);
        slots.filter_map(|(place, slot)| slot.as_ref().map(|part| (place, part)))
    }

    /// The part at a place.
    pub(crate) fn get(&self, place: Place) -> &Part {
        const NOTHING: &Part = &Part::Nothing;
        self.shared(place).map_or(NOTHING, |part| &**part)
    }

    /// The part at a place, to be kept; nothing if there is none.
    pub(crate) fn shared(&self, place: Place) -> Option<&Arc<Part>> {
        let site = |vm| self.sites.get(&vm);
        let slot = match place {
            Place::Operator => Some(&self.operator),
            Place::Manager => Some(&self.manager),
            Place::Cloud => Some(&self.cloud),
            Place::Agent(vm) => site(vm).map(|site| &site.agent),
            Place::Host(vm) => site(vm).map(|site| &site.host),
            Place::Orders(vm) => site(vm).map(|site| &site.orders),
            Place::Reports(vm) => site(vm).map(|site| &site.reports),
            Place::Notices(from, to) => site(from).and_then(|site| site.notices.get(&to)),
        };
        slot.and_then(Option::as_ref)
    }

    /// What is at the places of agents.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &Part> + Clone {
        self.sites.values().filter_map(|site| site.agent.as_deref())
    }

    /// The VMs to which notices are on their way from a VM.
    pub(crate) fn neighbours(&self, vm: VmId) -> impl Iterator<Item = VmId> {
        self.sites.get(&vm).into_iter().flat_map(|site| site.notices.keys().copied())
    }

    /// Changes the part at a place.
    pub(crate) fn change<R>(&mut self, place: Place, change: impl FnOnce(&mut Part) -> R) -> R {
        let part = Arc::make_mut(self.slot(place).get_or_insert_default());
        let result = change(part);
        if let Part::Nothing = part {
            self.clear(place);
        }
        result
    }

    /// The slot of a place, made if it is not there.
    fn slot(&mut self, place: Place) -> &mut Slot {
        match place {
            Place::Operator => &mut self.operator,
            Place::Manager => &mut self.manager,
            Place::Cloud => &mut self.cloud,
            Place::Agent(vm) => &mut self.sites.or_default(vm).agent,
            Place::Host(vm) => &mut self.sites.or_default(vm).host,
            Place::Orders(vm) => &mut self.sites.or_default(vm).orders,
            Place::Reports(vm) => &mut self.sites.or_default(vm).reports,
            Place::Notices(from, to) => self.sites.or_default(from).notices.or_default(&to),
        }
    }

    /// Takes away a part that has become nothing, and its room with it: a world that was and a world that will be the same
    /// are the same.
    fn clear(&mut self, place: Place) {
        let vm = match place {
            Place::Operator | Place::Manager | Place::Cloud => return *self.slot(place) = None,
            Place::Agent(vm) | Place::Host(vm) | Place::Orders(vm) | Place::Reports(vm) => {
                *self.slot(place) = None;
                vm
            }
            Place::Notices(from, to) => {
                self.sites.or_default(from).notices.remove(&to);
                from
            }
        };
        if self.sites[&vm] == Site::default() {
            self.sites.remove(&vm);
        }
    }
}

impl FromIterator<(Place, Arc<Part>)> for Parts {
    fn from_iter<I: IntoIterator<Item = (Place, Arc<Part>)>>(all: I) -> Self {
        let mut parts = Self::default();
        for (place, part) in all.into_iter().filter(|(_, part)| **part != Part::Nothing) {
            *parts.slot(place) = Some(part);
        }
        parts
    }
}
