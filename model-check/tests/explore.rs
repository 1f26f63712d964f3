//! Every order of events: the stories, exact numbers of states, and the reductions against no reduction at all.

mod rival;
mod stories;

use model_check::{
    Faults, Scenario,
    explore::{self, Findings, Settings},
    property,
    scenario::{
        arbitrary::{self, Size},
        shapes::{self, Course},
    },
};
use rival::Walk;
use stateright::{Checker, Model};
use stories::all;

/// How many worlds of each story are looked at here, the nearest first; `cargo xtask soak` looks at all of them.
const STATES_MAX: usize = 100_000;

#[test]
fn every_scenario_file_comes_out_as_told_in_every_order() {
    let mut complaints = Vec::new();
    let (mut lent, mut complete) = (0, 0);
    for scenario in all() {
        let findings = explore::explore_scenario(&scenario, Settings { states_max: STATES_MAX, ..Settings::default() });
        complaints.extend(complaint(&scenario, &findings));
        lent += usize::from(findings.sometimes.contains(property::SOMETIMES[1]));
        complete += usize::from(findings.complete);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
    assert!(lent > 40, "most stories lend something, or they would hold only because nothing happens");
    assert!(complete > 40, "only {complete} stories were explored to the last state");
}

#[test]
fn a_request_that_may_be_refused_has_an_end_for_each_answer() {
    let scenarios = all();
    let name = "r34-a-binding-under-removal-still-counts-in-a-cycle";
    let scenario = scenarios.iter().find(|it| it.name == name).expect("the story is there");
    let findings = explore::explore_scenario(scenario, Settings::default());
    assert_eq!(complaint(scenario, &findings), None);
    assert!(findings.complete);
    assert_eq!(findings.outcomes.len(), 2);
}

/// Two independent counts: the project's explorer without reductions, and Stateright on the same world.
#[test]
fn stateright_counts_the_same_states() {
    let cases = [
        (shapes::chain(2, Course::Up), 169),
        (shapes::chain(2, Course::UpDownUp), 268),
        (shapes::chain(3, Course::Up), 3_298),
        (shapes::star(3, Course::UpDown), 4_585),
        (shapes::fan(3, Course::Up), 5_823),
        (story("d1-"), 45_581),
    ];
    let counted = cases.map(|(scenario, expected)| {
        let ours = explore::explore_scenario(&scenario, Settings::full());
        let theirs = Walk(scenario.world()).checker().threads(2).spawn_bfs().join();
        (scenario.name, ours.states, theirs.unique_state_count(), expected)
    });
    for (name, ours, theirs, expected) in &counted {
        assert_eq!((ours, theirs), (expected, expected), "{name}: {counted:?}");
    }
}

/// A reduction that is unsound gives silent false proofs: with and without it, the same verdict and the same ends.
#[test]
fn ample_sets_change_no_verdict_and_no_end() {
    let compared = (0..300).filter(|seed| reduction_agrees(&random(*seed, Size::Tiny), 30_000)).count();
    assert!(compared > 200, "only {compared} were small enough to be compared");
}

/// The same where no request waits for another. Ample sets once let VMs come first although a request about them was open,
/// and so never saw three changes wait for each other.
#[test]
fn ample_sets_change_nothing_while_requests_come_at_any_time() {
    let hasty = |seed| {
        let mut random = model_check::random::Random::new(seed);
        arbitrary::haste(format!("haste-{seed}"), |n| random.below(n))
    };
    assert!(reduction_agrees(&story("r37-"), 100_000));
    let compared = (0..100).filter(|seed| reduction_agrees(&hasty(*seed), 10_000)).count();
    assert!(compared > 60, "only {compared} were small enough to be compared");
}

#[test]
fn symmetry_changes_no_verdict_and_no_end() {
    let (mut compared, mut saved) = (0, 0);
    for seed in 0..120 {
        let mut random = model_check::random::Random::new(seed);
        let scenario = arbitrary::tier(format!("tier-{seed}"), |n| random.below(n));
        let apart = Settings { symmetry: false, states_max: 20_000, ..Settings::default() };
        let apart = explore::explore(&scenario.lines, scenario.faults, apart);
        if !apart.complete {
            continue;
        }
        let alike = explore::explore(&scenario.lines, scenario.faults, Settings::default());
        let verdict = |findings: &Findings| findings.breach.as_ref().map(|(breach, _)| breach.property);
        assert_eq!(verdict(&apart), verdict(&alike), "{scenario}");
        assert_eq!(apart.outcomes, alike.outcomes, "{scenario}");
        assert_eq!((apart.messages, apart.longest), (alike.messages, alike.longest), "{scenario}");
        compared += 1;
        saved += usize::from(alike.states < apart.states);
    }
    assert!(compared > 80 && saved > 80, "{compared} were small enough to be compared, {saved} were made smaller");
}

#[test]
fn random_scripts_keep_every_property_and_have_one_end() {
    let mut complete = 0;
    for seed in 0..250 {
        let scenario = random(seed, Size::Small);
        let settings = Settings { states_max: 20_000, ..Settings::default() };
        let findings = explore::explore(&scenario.lines, scenario.faults, settings);
        assert!(findings.breach.is_none(), "{}", complaint(&scenario, &findings).expect("there is a breach"));
        complete += usize::from(findings.complete);
    }
    assert!(complete > 150, "only {complete} were explored to the last state");
}

/// Explores without and with reductions; says whether the former came to its end.
fn reduction_agrees(scenario: &Scenario, states_max: usize) -> bool {
    let full = explore::explore(&scenario.lines, scenario.faults, Settings { states_max, ..Settings::full() });
    if !full.complete {
        return false;
    }
    let ample = Settings { ample: true, ..Settings::full() };
    for (settings, ends) in [(ample, Some(full.ends)), (Settings::default(), None)] {
        let reduced = explore::explore(&scenario.lines, scenario.faults, settings);
        let verdict = |findings: &Findings| findings.breach.as_ref().map(|(breach, _)| breach.property);
        assert_eq!(verdict(&full), verdict(&reduced), "{scenario}");
        assert_eq!(full.outcomes, reduced.outcomes, "{scenario}");
        // Ample sets leave out ways, but not one world in which nothing can happen any more; symmetry takes some as one.
        assert_eq!(ends.unwrap_or(reduced.ends), reduced.ends, "{scenario}");
        assert!(reduced.states <= full.states, "{scenario}");
    }
    true
}

fn random(seed: u64, size: Size) -> Scenario {
    let mut random = model_check::random::Random::new(seed);
    arbitrary::scenario(format!("random-{seed}"), size, |n| random.below(n))
}

fn complaint(scenario: &Scenario, findings: &Findings) -> Option<String> {
    let name = &scenario.name;
    let (breach, way) = findings.breach.as_ref()?;
    let way: Vec<String> = way.iter().map(|action| format!("  {action}")).collect();
    Some(format!("{name}: {breach}\n{}\n{scenario}", way.join("\n")))
}

/// The story whose name begins so.
fn story(name: &str) -> Scenario {
    all().into_iter().find(|scenario| scenario.name.starts_with(name)).expect("there is such a story")
}

/// The faults of the stories are counted, so that none is explored without.
#[test]
fn the_stories_break_everything_that_can_break() {
    let sum = |count: fn(Faults) -> u32| all().iter().map(|scenario| count(scenario.faults)).sum::<u32>();
    for count in [
        |it: Faults| it.failures,
        |it: Faults| it.deaths,
        |it: Faults| it.crashes,
        |it: Faults| it.breaks,
        |it: Faults| it.losses,
    ] {
        assert!(sum(count) > 0);
    }
}
