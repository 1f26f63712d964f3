//! The quick way to wire: keep what is there, then give each seat the shelves with the fewest clients.
//!
//! It spreads clients evenly and takes next to no time; where capacities are tight it may miss a wiring that exists,
//! and then the exact way is taken.

use std::collections::{BTreeMap, BTreeSet};

use super::network::Network;
use crate::configuration::Binding;

/// Bindings for all seats, or nothing if some seat stays short.
pub(super) fn wire(network: &Network<'_>, today: &BTreeSet<Binding>) -> Option<BTreeSet<Binding>> {
    let mut load = vec![0_i64; network.shelves.len()];
    let mut bindings = BTreeSet::new();
    let mut has = vec![0_i64; network.seats.len()];
    let seats: BTreeMap<_, usize> =
        network.seats.iter().enumerate().map(|(position, seat)| ((seat.client, seat.port), position)).collect();
    let mut shelves = BTreeMap::new();
    for (position, shelf) in network.shelves.iter().enumerate() {
        shelves.extend(shelf.ports.iter().map(|port| ((shelf.provider, port.as_str()), position)));
    }
    for binding in today {
        let seat = seats.get(&(&binding.client, binding.port.as_str()));
        let shelf = shelves.get(&(&binding.provider, binding.port.as_str()));
        if let (Some(seat), Some(shelf)) = (seat, shelf)
            && has_room(network, &load, *shelf)
        {
            load[*shelf] += 1;
            has[*seat] += 1;
            bindings.insert(binding.clone());
        }
    }
    let short = network.seats.iter().enumerate().filter(|(position, seat)| has[*position] < seat.least);
    let mut missing: Vec<(usize, i64)> = short.map(|(position, seat)| (position, seat.least - has[position])).collect();
    let mut queues: Vec<BTreeSet<(i64, usize)>> = Vec::new();
    let mut queue_of = BTreeMap::new();
    for (port, shelves) in &network.by_port {
        queue_of.insert(*port, queues.len());
        queues.push(shelves.iter().map(|shelf| (load[*shelf], *shelf)).collect());
    }
    // The most demanding first: they have the least choice.
    missing.sort_by_key(|(position, number)| (std::cmp::Reverse(*number), *position));
    for (position, number) in missing {
        let seat = &network.seats[position];
        let queue = *queue_of.get(seat.port)?;
        let mut chosen = Vec::new();
        for (_, shelf) in &queues[queue] {
            if i64::try_from(chosen.len()) == Ok(number) {
                break;
            }
            let binding = network.binding(position, *shelf);
            let own = network.shelves[*shelf].provider == seat.client;
            if !own && has_room(network, &load, *shelf) && !bindings.contains(&binding) {
                chosen.push(*shelf);
                bindings.insert(binding);
            }
        }
        if i64::try_from(chosen.len()) != Ok(number) {
            return None;
        }
        for shelf in chosen {
            for port in network.shelves[shelf].ports {
                let queue = &mut queues[queue_of[port.as_str()]];
                queue.remove(&(load[shelf], shelf));
                queue.insert((load[shelf] + 1, shelf));
            }
            load[shelf] += 1;
        }
    }
    Some(bindings)
}

fn has_room(network: &Network<'_>, load: &[i64], shelf: usize) -> bool {
    network.shelves[shelf].capacity.is_none_or(|capacity| load[shelf] < capacity)
}
