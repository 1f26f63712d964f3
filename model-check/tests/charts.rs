//! Charts as people see them. `BLESS=1 cargo test -p model-check --test charts` writes what is now drawn as what is right.

use model_check::{
    Scenario, World,
    chart::{Chart, Sort},
    run::{run_by, run_first, run_in_turn},
    scenario::shapes::{self, Course},
};
use std::{collections::BTreeMap, fs, path::Path};

#[test]
fn a_provider_that_leaves_is_drawn_in_every_form() {
    let chart = in_turn(&scenario("r8-a-provider-waits-for-those-that-could-do-without-it"));
    golden("tests/golden/provider-leaves.txt", &chart.to_text(100));
    golden("tests/golden/provider-leaves.mmd", &chart.to_mermaid());
    golden("tests/golden/provider-leaves.svg", &chart.to_svg());
}

#[test]
fn eight_vms_fit_on_a_wide_page() {
    let text = in_turn(&shapes::chain(8, Course::UpDown)).to_text(160);
    golden("tests/golden/chain-of-eight.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 160));
}

#[test]
fn faults_are_drawn() {
    let plain = scenario("failure-any-vm-is-lost");
    golden("tests/golden/vm-lost.txt", &in_turn(&plain).to_text(120));
    let crash = scenario("r31-a-broken-link-repeats-and-loses-nothing");
    golden("tests/golden/link-breaks.txt", &in_turn(&crash).to_text(100));
}

#[test]
fn the_paper_s_figures_in_the_documentation_are_up_to_date() {
    for (name, file) in [
        ("figure-4", "figure-4-everything-goes-up"),
        ("figure-8", "figure-8-mysql-leaves"),
        ("figure-9", "figure-9-another-mysql-comes"),
    ] {
        let chart = in_turn(&scenario(file));
        golden(&format!("../docs/charts/{name}.txt"), &chart.to_text(140));
        golden(&format!("../docs/charts/{name}.svg"), &chart.to_svg());
    }
}

#[test]
fn letters_of_one_link_arrive_in_the_order_in_which_they_were_sent() {
    for name in scenario_names() {
        let scenario = scenario(&name);
        let initial = scenario.world();
        let mut number = 7_u64;
        let events = run_by(&mut initial.clone(), |actions| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from((number >> 40) % 1_000).unwrap() % actions.len()
        });
        let chart = Chart::new(&initial, &events);
        assert_eq!(chart.rows.len(), events.len());
        let mut last: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for arrow in &chart.arrows {
            let Some(arrived) = arrow.arrived else { continue };
            assert!(arrow.sent.is_some_and(|sent| sent < arrived), "{name}: {} arrives before it is sent", arrow.label);
            let before = last.insert((arrow.from, arrow.to), arrived);
            assert!(before.is_none_or(|before| before < arrived), "{name}: {} overtakes", arrow.label);
        }
        // Whatever the width, there is something to see and nothing breaks.
        for columns in [0, 40, 100, 400] {
            assert!(chart.to_text(columns).lines().count() > chart.rows.len());
        }
        assert_eq!(
            chart.to_mermaid().matches("-)").count(),
            chart.arrows.iter().filter(|it| it.arrived.is_some()).count()
        );
        assert!(chart.to_svg().ends_with("</svg>\n"));
    }
}

#[test]
fn a_chart_can_begin_in_the_middle_of_a_run() {
    let mut world = shapes::running_example(Course::UpDown).world();
    let events = run_first(&mut world.clone());
    let (first, rest) = events.split_at(events.len() / 2);
    for event in first {
        world.apply(event.action);
    }
    let chart = Chart::new(&world, rest);
    assert!(chart.lifelines.iter().any(|lifeline| lifeline.name == "vm2" && lifeline.components.len() == 2));
    assert!(chart.arrows.iter().any(|arrow| arrow.sort == Sort::Recall && arrow.label.contains("mysql")));
    assert!(chart.arrows.iter().all(|arrow| arrow.arrived.is_some()));
}

fn in_turn(scenario: &Scenario) -> Chart {
    let initial: World = scenario.world();
    let events = run_in_turn(&mut initial.clone());
    Chart::new(&initial, &events).without_acknowledgements()
}

fn scenario(name: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(format!("{name}.txt"));
    let text = fs::read_to_string(path).expect("the scenario exists");
    Scenario::parse(name, &text).unwrap_or_else(|error| panic!("{error}"))
}

fn scenario_names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let entries = fs::read_dir(folder).expect("the scenarios are beside this test").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().trim_end_matches(".txt").to_string()).collect()
}

/// Compares with what is known to be right, or takes it as right if asked to.
fn golden(path: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, found).expect("what is right can be written");
    }
    let right = fs::read_to_string(&path).unwrap_or_default();
    assert!(right == found, "{} is drawn differently; if that is right, run with BLESS=1:\n{found}", path.display());
}
