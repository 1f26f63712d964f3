//! Every scenario file: run the plain way and in many random orders, with the expected end and all invariants.
//!
//! The explorer looks at every order; this test says quickly, and with few words, that a story holds at all.

use model_check::{Scenario, World, scenario::shapes, world::Event};
use protocol::invariant;
use std::{collections::BTreeMap, fs, path::Path};

/// How many random orders of each story are tried.
const ORDERS: u64 = 300;

#[test]
fn every_scenario_file_ends_as_it_says() {
    let mut complaints = Vec::new();
    for scenario in all() {
        complaints.extend(check(&scenario));
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

fn all() -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        Scenario::parse(name, &fs::read_to_string(path).unwrap()).unwrap_or_else(|error| panic!("{error}"))
    };
    paths.iter().map(read).collect()
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
        let mut stepped = false;
        let mut next = world.clone();
        let actions = world.actions();
        if !actions.is_empty() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let choice = if seed == 0 { 0 } else { (random >> 33) as usize % actions.len() };
            let event = next.apply(actions[choice]);
            let complaint = scenario.expected.objection(&next, &event).or_else(|| violation(&next));
            events.push(event);
            if complaint.is_some() {
                return (events, complaint);
            }
            stepped = true;
        }
        world = next;
        if !stepped {
            let complaints = scenario.expected.objections_at_end(&world);
            return (events, (!complaints.is_empty()).then(|| complaints.join("; ")));
        }
    }
}

/// The first invariant that does not hold.
fn violation(world: &World) -> Option<String> {
    let of_one = world.agents().flat_map(invariant::of_agent).next().map(|violation| violation.to_string());
    let views: BTreeMap<_, _> = world.agents().map(|agent| (agent.id(), invariant::view(agent))).collect();
    let between = views.values().find_map(|view| invariant::between_agents(view, |vm| views.get(&vm)));
    let between =
        between.map(|(binding, component)| format!("{component} uses {binding}, and nobody stands behind it"));
    of_one.or(between).or_else(|| invariant::of_manager(world.manager()).map(|violation| violation.to_string()))
}
