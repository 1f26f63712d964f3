//! The journals that machines would have written in a run of the world.

use model_check::{
    audit::{Lived, Past},
    environment::Letter,
    world::{Event, Input, Output, Place},
};
use protocol::{agent, manager, wire};
use serde::Serialize;
use std::collections::BTreeMap;

/// The journals of a run.
pub(crate) fn of(events: impl IntoIterator<Item = Event>) -> Vec<Past> {
    let mut pasts: BTreeMap<Place, Vec<Lived>> = BTreeMap::new();
    let (mut sent, mut heard) = (BTreeMap::new(), BTreeMap::new());
    for (at_ms, Event { input, outputs, .. }) in (0..).zip(events) {
        let Some((place, input)) = input else { continue };
        let heard = from_whom(&input).map(|(from, bytes)| (from, next(&mut heard, from, place), bytes));
        let said = outputs.iter().filter_map(to_whom);
        let said = said.map(|(to, bytes)| (to, next(&mut sent, place, to), bytes)).collect();
        // Clocks are of no use here: each machine's is wrong in its own way.
        let at_ms = if place == Place::Manager { 1_000_000 - at_ms } else { at_ms };
        pasts.entry(place).or_default().push(Lived { at_ms, input: Some(input), heard, said });
    }
    pasts.into_iter().map(|(place, steps)| Past { place, steps }).collect()
}

fn next(numbers: &mut BTreeMap<(Place, Place), u64>, from: Place, to: Place) -> u64 {
    let number = numbers.entry((from, to)).or_default();
    *number += 1;
    *number
}

fn bytes(letter: &impl Serialize) -> Vec<u8> {
    wire::encode(letter).unwrap()
}

fn from_whom(input: &Input) -> Option<(Place, Vec<u8>)> {
    match input {
        Input::Manager(manager::Input::FromAgent(vm, report)) => {
            Some((Place::Agent(*vm), bytes(&Letter::Report(report.clone()))))
        }
        Input::Agent(agent::Input::FromManager(order)) => Some((Place::Manager, bytes(&Letter::Order(order.clone())))),
        Input::Agent(agent::Input::FromPeer(vm, notice)) => {
            Some((Place::Agent(*vm), bytes(&Letter::Notice(notice.clone()))))
        }
        Input::Manager(_) | Input::Agent(_) => None,
    }
}

fn to_whom(output: &Output) -> Option<(Place, Vec<u8>)> {
    match output {
        Output::Manager(manager::Output::ToAgent(vm, order)) => {
            Some((Place::Agent(*vm), bytes(&Letter::Order(order.clone()))))
        }
        Output::Agent(agent::Output::ToManager(report)) => {
            Some((Place::Manager, bytes(&Letter::Report(report.clone()))))
        }
        Output::Agent(agent::Output::ToPeer(vm, notice)) => {
            Some((Place::Agent(*vm), bytes(&Letter::Notice(notice.clone()))))
        }
        Output::Manager(_) | Output::Agent(_) => None,
    }
}
