//! The two sides of a wiring: seats of clients that need providers, and shelves of providers with room for clients.

use std::collections::{BTreeMap, BTreeSet};

use crate::configuration::{Binding, ComponentName, Configuration};
use crate::problem::Problem;

/// One required interface of one component.
#[derive(Clone, Debug)]
pub(super) struct Seat<'a> {
    pub(super) client: &'a ComponentName,
    pub(super) port: &'a str,
    /// How many distinct providers it needs at least.
    pub(super) least: i64,
    pub(super) strong: bool,
}

/// One stock of provided interfaces of one component.
#[derive(Clone, Debug)]
pub(super) struct Shelf<'a> {
    pub(super) provider: &'a ComponentName,
    pub(super) ports: &'a BTreeSet<String>,
    pub(super) capacity: Option<i64>,
}

/// All seats and shelves of a configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct Network<'a> {
    pub(super) seats: Vec<Seat<'a>>,
    pub(super) shelves: Vec<Shelf<'a>>,
    /// The shelves that offer a port.
    pub(super) by_port: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Network<'a> {
    pub(super) fn new(problem: &'a Problem, configuration: &'a Configuration) -> Self {
        let mut network = Self::default();
        for (name, component) in &configuration.components {
            let kind = &problem.types[component.kind];
            for (ports, strong) in [(&kind.strong, true), (&kind.weak, false)] {
                for (port, least) in ports {
                    network.seats.push(Seat { client: name, port, least: *least, strong });
                }
            }
            for offer in &kind.provides {
                let shelf = network.shelves.len();
                for port in &offer.ports {
                    network.by_port.entry(port).or_default().push(shelf);
                }
                network.shelves.push(Shelf { provider: name, ports: &offer.ports, capacity: offer.capacity });
            }
        }
        network
    }

    /// The shelves that a seat can use: those that offer its port and are not its own.
    pub(super) fn choices(&self, seat: usize) -> impl Iterator<Item = usize> {
        let seat = &self.seats[seat];
        let all = self.by_port.get(seat.port).map_or(&[][..], Vec::as_slice);
        all.iter().copied().filter(|shelf| self.shelves[*shelf].provider != seat.client)
    }

    /// How many pairs of a seat and a shelf there are.
    pub(super) fn pairs(&self) -> usize {
        self.seats.iter().map(|seat| self.by_port.get(seat.port).map_or(0, Vec::len)).sum()
    }

    pub(super) fn binding(&self, seat: usize, shelf: usize) -> Binding {
        let (seat, shelf) = (&self.seats[seat], &self.shelves[shelf]);
        Binding { port: seat.port.to_owned(), client: seat.client.clone(), provider: shelf.provider.clone() }
    }
}
