//! An audit passes what the protocol did, and finds what somebody has changed in its journals.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use model_check::{
    Scenario, World,
    audit::{AGREEMENT, Audit, Lived, Past, audit},
    environment::Letter,
    property,
    random::Random,
    world::{Event, Input, Output, Place},
};
use protocol::{Notice, agent, manager, wire};
use serde::Serialize;
use std::collections::BTreeMap;

const STORY: &str = include_str!("../../examples/running-example.txt");

/// Lets the story happen in some order, and writes the journals that the machines would have written.
fn journals(seed: u64) -> Vec<Past> {
    let scenario = Scenario::parse("story", STORY).unwrap();
    let mut world = World::new(scenario.lines, scenario.faults);
    let mut random = Random::new(seed);
    let mut pasts: BTreeMap<Place, Vec<Lived>> = BTreeMap::new();
    let (mut sent, mut heard) = (BTreeMap::new(), BTreeMap::new());
    for at_ms in 0.. {
        let actions = world.actions();
        let Some(action) = random.pick(&actions) else { break };
        let Event { input, outputs, .. } = world.apply(*action);
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

/// The name of the property that was found broken.
fn broken(audit: &Audit) -> &'static str {
    audit.breach.as_ref().map_or("none", |(_, breach)| breach.property)
}

#[test]
fn what_the_protocol_did_holds_in_every_order_that_could_have_been_seen() {
    for seed in 0..50 {
        let pasts = journals(seed);
        let audit = audit(&pasts);
        assert_eq!(broken(&audit), "none", "seed {seed}: {:?}", audit.breach);
        assert!(audit.at_rest && audit.beyond == 0 && audit.missing.is_empty(), "seed {seed}");
        let steps: usize = pasts.iter().map(|past| past.steps.len()).sum();
        assert_eq!(audit.events.len(), steps, "seed {seed}");
    }
}

#[test]
fn a_message_that_was_changed_on_the_way_is_found() {
    let mut pasts = journals(1);
    let step = pasts.iter_mut().flat_map(|past| &mut past.steps).find(|step| step.heard.is_some()).unwrap();
    step.heard.as_mut().unwrap().2.push(0);
    assert_eq!(broken(&audit(&pasts)), AGREEMENT);
}

#[test]
fn a_message_that_was_heard_twice_is_found() {
    let mut pasts = journals(1);
    let past = pasts.iter_mut().find(|past| past.place == Place::Manager).unwrap();
    let heard = past.steps.iter().position(|step| step.heard.is_some()).unwrap();
    let again = past.steps[heard].clone();
    past.steps.insert(heard + 1, again);
    assert_eq!(broken(&audit(&pasts)), AGREEMENT);
}

#[test]
fn a_provider_that_stops_without_waiting_for_its_loan_is_found() {
    // Somebody tells the provider, in the client's name, that the loan is home before it is.
    let mut pasts = journals(1);
    let is_home = |step: &Lived| {
        let notice = matches!(
            step.input,
            Some(Input::Agent(agent::Input::FromPeer(_, Notice::UnbindConfirmed { last: false, .. })))
        );
        notice.then(|| step.input.clone()).flatten()
    };
    let (past, place, input) = pasts
        .iter()
        .enumerate()
        .find_map(|(number, past)| {
            let place = past.steps.iter().position(|step| is_home(step).is_some())?;
            Some((number, place, is_home(&past.steps[place])))
        })
        .unwrap();
    // Right after the recall went out.
    let recall = pasts[past].steps[..place].iter().rposition(|step| !step.said.is_empty()).unwrap();
    let at_ms = pasts[past].steps[recall].at_ms;
    pasts[past].steps.insert(recall + 1, Lived { at_ms, input, heard: None, said: Vec::new() });
    let audit = audit(&pasts);
    let a2 = property::ALL[1].1;
    assert_eq!(broken(&audit), a2, "{:?}", audit.breach);
}
