//! An audit passes what the protocol did, and finds what somebody has changed in its journals.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod journals;

use model_check::{
    Action, Scenario, World,
    audit::{AGREEMENT, Audit, Lived, Past, audit},
    property::{self, A1, A2, A5, Asked, MINIMAL, PREDICTED},
    random::Random,
    world::{Input, Place},
};
use protocol::{Notice, agent};

const STORY: &str = include_str!("../../examples/running-example.txt");

/// Lets the story happen in some order, and writes the journals that the machines would have written.
fn journals(seed: u64) -> Vec<Past> {
    let scenario = Scenario::parse("story", STORY).unwrap();
    let mut world = World::new(scenario.lines, scenario.faults);
    let mut random = Random::new(seed);
    let mut events = Vec::new();
    while let Some(action) = random.pick(&world.actions()) {
        events.push(world.apply(*action));
    }
    journals::of(events)
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
        assert!(audit.busy.is_none() && audit.beyond == 0 && audit.missing.is_empty(), "seed {seed}");
        for property in property::mode::all() {
            let expected = property::mode::asked(property, property::Mode::Audit);
            let same = matches!(
                (&expected, audit.asked(property)),
                (Asked::Yes(_), Asked::Yes(_)) | (Asked::No(_), Asked::No(_))
            );
            assert!(same, "{property}: {expected:?}");
        }
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
    assert_eq!(broken(&audit), A2, "{:?}", audit.breach);
}

#[test]
fn without_some_journals_an_audit_says_what_it_could_not_check() {
    let mut pasts = journals(1);
    let gone = pasts.iter().position(|past| past.place != Place::Manager).unwrap();
    pasts.remove(gone);
    let part = audit(&pasts);
    assert_eq!(broken(&part), "none", "{:?}", part.breach);
    assert_eq!(part.missing.len(), 1);
    assert!(matches!(part.asked(A1), Asked::Partly(_)) && matches!(part.asked(A2), Asked::Partly(_)));
    assert!(matches!(part.asked(A5), Asked::Yes(_)) && matches!(part.asked(PREDICTED), Asked::No(_)));
    pasts.retain(|past| past.place != Place::Manager);
    let agents = audit(&pasts);
    assert_eq!(broken(&agents), "none", "{:?}", agents.breach);
    assert!(matches!(agents.asked(A1), Asked::Yes(_)));
    for property in [A5, MINIMAL, PREDICTED] {
        assert_eq!(agents.asked(property), Asked::No("the manager's journal was not given".into()));
    }
}

/// A component that died is started again after a pause. An audit in the meantime does not take that for the end.
#[test]
fn an_audit_during_the_pause_after_a_death_says_that_something_is_under_way() {
    let text = "faults: 1 death\nvm one : a, retry run 2\n----\na started\n";
    let scenario = Scenario::parse("pause", text).unwrap();
    let mut world = World::new(scenario.lines, scenario.faults);
    let mut events = Vec::new();
    loop {
        let actions = world.actions();
        let dies = actions.iter().find(|action| matches!(action, Action::Die(..)));
        // The alarm does not ring.
        let next = actions.iter().find(|action| !action.is_fault() && !matches!(action, Action::Ring(..)));
        let Some(action) = next.or(dies) else { break };
        events.push(world.apply(*action));
    }
    assert!(events.iter().any(|event| matches!(event.action, Action::Die(..))));
    let audit = audit(&journals::of(events));
    assert_eq!(broken(&audit), "none", "{:?}", audit.breach);
    assert_eq!(audit.busy.as_deref(), Some("a waits to retry: run"));
    assert!(matches!(audit.asked(PREDICTED), Asked::No(_)));
}
