//! Every order of events: the stories, exact numbers of states, and the reductions against no reduction at all.

mod differential;
mod rival;
mod stories;

use model_check::{
    Faults, Scenario,
    explore::{self, Findings, Settings, independence},
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
        (shapes::fan(3, Course::Up), 5_445),
        (story("d1-"), 45_493),
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

/// A story that claims too much is refuted with each reduction and with none.
#[test]
fn no_reduction_hides_a_breach() {
    let refuted = stories::refuted();
    assert!(refuted.len() >= 2);
    for scenario in refuted {
        for (ample, symmetry) in [(false, false), (true, false), (false, true), (true, true)] {
            let findings = explore::explore_scenario(&scenario, Settings { ample, symmetry, ..Settings::full() });
            let property = findings.breach.map(|(breach, _)| breach.property);
            assert_eq!(property, Some(property::AS_TOLD), "{} with {ample}, {symmetry}", scenario.name);
        }
    }
}

/// A counterexample is a real run, whatever was left out while it was looked for: it leads to an end that breaks the story,
/// and letters that come a second time are in it.
#[test]
fn a_counterexample_with_repeated_letters_can_be_retraced() {
    let text = "faults: 1 crash\nvm a : app imports e from db\nvm b : db exports e\n----\napp stopped\n";
    let scenario = Scenario::parse("claim", text).expect("the scenario is well written");
    for settings in [Settings::default(), Settings { links: true, ..Settings::full() }, Settings::full()] {
        let (breach, way) = explore::explore_scenario(&scenario, settings).breach.expect("app is started");
        assert_eq!(breach.property, property::AS_TOLD);
        let mut world = scenario.world();
        for action in way {
            assert!(world.actions().contains(&action), "{action} is not possible with {settings:?}");
            world.apply(action);
        }
        assert!(
            world.actions().iter().all(|action| action.is_fault()),
            "the way does not lead to an end: {settings:?}"
        );
        assert!(!scenario.expected.objections_at_end(&world).is_empty());
    }
}

/// A reduction that is unsound gives silent false proofs: with and without it, the same breaches and the same ends.
/// `cargo xtask differential` compares thousands.
#[test]
fn reductions_change_no_breach_and_no_end() {
    let mut compared = [0; 8];
    for seed in 0..400 {
        let scenario = differential::scenario(seed);
        match differential::compare(&scenario, 2_000) {
            Some(Ok(_)) => compared[usize::try_from(seed % 8).expect("a small number")] += 1,
            Some(Err(difference)) => panic!("{difference}"),
            None => {}
        }
    }
    assert!(compared.iter().all(|number| *number > 3), "of each sort, so many were compared: {compared:?}");
}

/// Ample sets once let VMs come first although a request about them was open, and so never saw three changes wait for
/// each other.
#[test]
fn ample_sets_change_nothing_while_requests_come_at_any_time() {
    let compared = differential::compare(&story("r37-"), 100_000).expect("it is small enough");
    assert!(compared.is_ok(), "{compared:?}");
}

/// What ample sets claim, looked at: whenever an action is called independent of all others, both orders of it and of any
/// other lead to the same world, now and after whatever else may happen first.
#[test]
fn what_is_called_independent_is() {
    let (mut checked, mut claims) = (0, 0);
    for seed in 0..400 {
        let scenario = differential::scenario(seed);
        match independence::check(&scenario, 300) {
            Some(Ok(found)) => {
                checked += 1;
                claims += found.claims;
            }
            Some(Err(wrong)) => panic!("{}: {wrong}\n{scenario}", scenario.name),
            None => {}
        }
    }
    assert!(checked > 80 && claims > 500, "{claims} claims in {checked} scenarios");
}

/// Seeds with which a claim was wrong once: a value is no longer used while its provider is reported gone.
#[test]
fn claims_that_were_wrong_once_are_right() {
    for seed in [4_088, 4_248] {
        let scenario = differential::scenario(seed);
        let checked = independence::check(&scenario, 5_000);
        assert!(matches!(checked, Some(Ok(found)) if found.claims > 0), "{}: {checked:?}", scenario.name);
    }
}

#[test]
fn symmetry_makes_most_tiers_smaller() {
    let mut saved = 0;
    for seed in 0..40 {
        let mut random = model_check::random::Random::new(seed);
        let scenario = arbitrary::tier(format!("tier-{seed}"), |n| random.below(n));
        let states = |symmetry| {
            let settings = Settings { symmetry, states_max: 20_000, ..Settings::default() };
            let findings = explore::explore(&scenario.lines, scenario.faults, settings);
            findings.complete.then_some(findings.states)
        };
        saved += usize::from(states(false).is_some_and(|apart| states(true).is_some_and(|alike| alike < apart)));
    }
    assert!(saved > 25, "{saved} were made smaller");
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
