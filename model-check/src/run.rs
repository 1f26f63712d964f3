//! One run of a world, by a simple rule: no search, no clock, no faults but those that nothing else comes before.

use crate::{Action, World, world::Event};
use std::collections::BTreeMap;

/// More steps than any story has. A run that gets here goes round in circles.
pub const STEPS_MAX: usize = 1_000_000;

/// Lets the first thing happen that can, until nothing can. Requests come first, faults last.
pub fn run_first(world: &mut World) -> Vec<Event> {
    run_by(world, |_| 0)
}

/// Lets happen what has been possible for the longest time, until nothing is possible: as if all machines and links were
/// equally fast.
pub fn run_in_turn(world: &mut World) -> Vec<Event> {
    let mut since: BTreeMap<Action, usize> = BTreeMap::new();
    let mut turn = 0;
    run_by(world, |actions| {
        turn += 1;
        since.retain(|action, _| actions.binary_search(action).is_ok());
        for action in actions {
            since.entry(*action).or_insert(turn);
        }
        let place = (0..actions.len()).min_by_key(|place| since[&actions[*place]]).unwrap_or(0);
        // If it is possible again right away, that is another thing, and its turn comes later.
        since.remove(&actions[place]);
        place
    })
}

/// Lets things happen by choice until nothing can. The choice is a place in the list, counted round if it is too high.
pub fn run_by(world: &mut World, mut choose: impl FnMut(&[Action]) -> usize) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < STEPS_MAX {
        let actions = world.actions();
        if actions.is_empty() {
            break;
        }
        let action = actions[choose(&actions) % actions.len()];
        events.push(world.apply(action));
    }
    events
}
