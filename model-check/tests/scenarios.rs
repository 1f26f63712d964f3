//! Every scenario file: run the plain way and in many random orders, with the expected end and all invariants.
//!
//! The explorer looks at every order; this test says quickly, and with few words, that a story holds at all.

mod stories;

use model_check::{Faults, Scenario, property, scenario::shapes, world::Event};
use stories::all;

/// How many random orders of each story are tried.
const ORDERS: u64 = 150;

/// More steps than any story has.
const STEPS_MAX: usize = 10_000;

#[test]
fn every_scenario_file_ends_as_it_says() {
    let mut complaints = Vec::new();
    for scenario in all() {
        complaints.extend(check(&scenario));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

#[test]
fn crashes_and_broken_links_change_no_end() {
    let mut complaints = Vec::new();
    for scenario in all().iter().filter(|scenario| !scenario.faults.any()) {
        let faults = Faults { crashes: 2, breaks: 1, ..Faults::default() };
        complaints.extend(check(&Scenario { faults, ..scenario.clone() }));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

#[test]
fn every_shape_ends_as_predicted() {
    use shapes::Course;
    for course in [Course::Up, Course::UpDown, Course::UpDownUp] {
        for n in 1..6 {
            for scenario in [shapes::chain(n, course), shapes::star(n, course), shapes::fan(n, course)] {
                assert_eq!(check(&scenario), None);
            }
        }
        for n in 3..6 {
            assert_eq!(check(&shapes::diamond(n, course)), None);
        }
        assert_eq!(check(&shapes::running_example(course)), None);
    }
}

#[test]
fn every_scenario_file_reads_back_as_it_was_written() {
    for scenario in all() {
        let text = scenario.to_string();
        let again = Scenario::parse(&scenario.name, &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again, scenario, "{text}");
    }
}

#[test]
fn every_row_of_the_catalogue_has_its_scenario() {
    let rows = (1..=37).filter(|row| ![5, 19].contains(row)).map(|row| format!("r{row}-")).chain(["d1-".into()]);
    let names: Vec<String> = all().into_iter().map(|scenario| scenario.name).collect();
    let missing: Vec<String> = rows.filter(|row| !names.iter().any(|name| name.starts_with(row.as_str()))).collect();
    assert!(missing.is_empty(), "no scenario for {missing:?}");
}

/// The first thing that goes wrong with a story, in any of the orders tried.
fn check(scenario: &Scenario) -> Option<String> {
    assert_eq!(scenario.lines.len(), scenario.expected.answers.len());
    (0..=ORDERS).find_map(|seed| {
        let (events, complaint) = run(scenario, seed);
        let trace: Vec<String> = events.iter().map(|event| event.action.to_string()).collect();
        complaint.map(|complaint| format!("{}, order {seed}: {complaint}\n  {}", scenario.name, trace.join("\n  ")))
    })
}

/// Runs a story in the order that a seed stands for; 0 is the plain order.
fn run(scenario: &Scenario, seed: u64) -> (Vec<Event>, Option<String>) {
    let mut world = scenario.world();
    let mut random = seed;
    let mut events = Vec::new();
    loop {
        let actions = world.actions();
        if actions.is_empty() {
            let complaints = scenario.expected.objections_at_end(&world);
            return (events, (!complaints.is_empty()).then(|| complaints.join("; ")));
        }
        if events.len() > STEPS_MAX {
            return (Vec::new(), Some("it goes round in circles".into()));
        }
        let choice = if seed == 0 { 0 } else { draw(&mut random, actions.len()) };
        let event = world.apply(actions[choice]);
        let complaint = scenario.expected.objection(&world, &event).or_else(|| {
            let breach = property::of_world(&world, None);
            breach.map(|breach| breach.to_string())
        });
        events.push(event);
        if complaint.is_some() {
            return (events, complaint);
        }
    }
}

/// One of so many, by a small generator that means the same for ever.
fn draw(random: &mut u64, many: usize) -> usize {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let drawn = (*random >> 33) % u64::try_from(many).expect("a list is not that long");
    usize::try_from(drawn).expect("it is less than the length of a list")
}
