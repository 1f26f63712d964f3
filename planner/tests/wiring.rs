//! Who is bound to whom: evenly by default, by preference where one is given, and the best of all wirings, which small
//! problems allow to be tried out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod random;

use std::collections::{BTreeMap, BTreeSet};

use planner::configuration::{Binding, Configuration};
use planner::language::{BindingGoal, RequirementText, Requirements};
use planner::plan::plan;
use planner::problem::Problem;
use planner::verify::{Standard, binding_goal_values, faults};
use planner::zephyrus::read;
use random::{Dice, Sample, sample};

fn clients(configuration: &Configuration) -> Vec<usize> {
    let mut clients: BTreeMap<&str, usize> = BTreeMap::new();
    for binding in &configuration.bindings {
        *clients.entry(&binding.provider.0).or_insert(0) += 1;
    }
    clients.into_values().collect()
}

#[test]
fn clients_are_spread_evenly() {
    let text = r#"{
      "components": {
        "Web": { "resources": { "CPU": 1 }, "requires": { "sql": 1 } },
        "Db": { "resources": { "CPU": 1 }, "provides": [ { "ports": [ "sql" ], "num": 7 } ] } },
      "locations": { "n": { "num": 4, "resources": { "CPU": 4 }, "cost": 1 } },
      "specification": "Web = 10 and Db = 3"
    }"#;
    let plan = plan(&read(text).unwrap(), &mut |_| true).unwrap();
    assert_eq!(clients(&plan.target), [4, 3, 3]);
    assert!(plan.bindings_proven);
}

#[test]
fn tight_capacities_and_shared_stocks_are_wired_exactly() {
    // The second stock is shared by two ports: what one takes is missing for the other.
    let text = r#"{
      "components": {
        "Both": { "resources": { "CPU": 1 }, "requires": { "a": 2, "b": 1 } },
        "OnlyA": { "resources": { "CPU": 1 }, "provides": [ { "ports": [ "a" ], "num": 3 } ] },
        "Mixed": { "resources": { "CPU": 1 }, "provides": [ { "ports": [ "a", "b" ], "num": 6 } ] } },
      "locations": { "n": { "num": 20, "resources": { "CPU": 1 }, "cost": 1 } },
      "specification": "Both = 3; (sum ?x in components: ?x)"
    }"#;
    let problem = read(text).unwrap();
    let plan = plan(&problem, &mut |_| true).unwrap();
    // Nine bindings: three from OnlyA, six from Mixed.
    assert_eq!(plan.objectives[0].value, 5);
    assert_eq!(faults(&problem, &plan.target, Standard::Correct), []);
}

const REGIONS: &str = r#"{
  "components": {
    "Analyzer": { "resources": { "CPU": 1 }, "provides": [ { "ports": [ "MA" ], "num": -1 } ] },
    "Receiver": { "resources": { "CPU": 1 }, "weak": { "MA": 1 } } },
  "locations": {
    "node_A": { "num": 4, "resources": { "CPU": 1 }, "cost": 1 },
    "node_B": { "num": 4, "resources": { "CPU": 1 }, "cost": 1 } },
  "specification": "(sum ?x in 'node_A': ?x.Analyzer) = 2 and (sum ?x in 'node_B': ?x.Analyzer) = 2 and (sum ?x in 'node_A': ?x.Receiver) = 2 and (sum ?x in 'node_B': ?x.Receiver) = 2",
  "bind preferences": [ PREFERENCES ]
}"#;

#[test]
fn a_preference_can_keep_regions_apart() {
    // Every analyzer of region A is bound to all receivers of region A, and as little as possible besides.
    let preferences = r#""sum ?x of type Analyzer in '.*_A': forall ?y of type Receiver in '.*_A': bind(?x, ?y, MA)""#;
    let problem = read(&REGIONS.replace("PREFERENCES", preferences)).unwrap();
    let plan = plan(&problem, &mut |_| true).unwrap();
    assert_eq!(plan.binding_values, [2]);
    assert!(plan.bindings_proven);
    // Four bindings in region A, one for each receiver in region B.
    assert_eq!(plan.target.bindings.len(), 6);
}

#[test]
fn all_backends_are_bound_if_that_is_preferred() {
    let preferences = r#""sum ?x of type Receiver in locations: sum ?y in locations: bind(?x, ?y, MA)""#;
    let problem = read(&REGIONS.replace("PREFERENCES", preferences)).unwrap();
    let plan = plan(&problem, &mut |_| true).unwrap();
    assert_eq!(plan.binding_values, [16]);
}

#[test]
fn local_bindings_are_preferred_when_asked_for() {
    let text = r#"{
      "components": {
        "Web": { "resources": { "CPU": 1 }, "requires": { "cache": 1 } },
        "Cache": { "resources": { "CPU": 1 }, "provides": [ { "ports": [ "cache" ], "num": 1 } ] } },
      "locations": { "n": { "num": 5, "resources": { "CPU": 2 }, "cost": 1 } },
      "specification": "Web = 5 and Cache = 5 and (forall ?x in locations: ?x.Web <= 1)",
      "bind preferences": [ "local" ]
    }"#;
    let plan = plan(&read(text).unwrap(), &mut |_| true).unwrap();
    assert_eq!(plan.binding_values, [5]);
}

/// The lexicographically greatest values of the preferences over all correct sets of bindings.
fn best_by_trying(problem: &Problem, placed: &Configuration) -> Option<Vec<i128>> {
    let mut possible = Vec::new();
    for (client, component) in &placed.components {
        for (port, _) in problem.types[component.kind].requires() {
            for (provider, other) in &placed.components {
                if provider != client && problem.types[other.kind].provision_of(port).is_some() {
                    let (port, client, provider) = (port.to_owned(), client.clone(), provider.clone());
                    possible.push(Binding { port, client, provider });
                }
            }
        }
    }
    if possible.len() > 9 {
        return None;
    }
    let mut best: Option<Vec<i128>> = None;
    for chosen in 0_usize..1 << possible.len() {
        let bindings: BTreeSet<Binding> = possible
            .iter()
            .enumerate()
            .filter(|(bit, _)| chosen >> bit & 1 == 1)
            .map(|(_, bound)| bound.clone())
            .collect();
        let configuration = Configuration { components: placed.components.clone(), bindings };
        if faults(problem, &configuration, Standard::Correct).is_empty() {
            best = best.max(Some(binding_goal_values(problem, &configuration)));
        }
    }
    best
}

#[test]
fn the_best_wiring_agrees_with_trying_everything() {
    let preferences = [
        "local",
        "sum ?x in locations: sum ?y in locations: bind(?x, ?y, p)",
        "sum ?x of type 'A|B' in 'n|zz': sum ?y in locations: sum ?z in ports: bind(?x, ?y, ?z)",
        "sum ?x of type A in locations: forall ?y of type 'B|A' in locations: bind(?x, ?y, p)",
        "sum ?x in locations: exists ?y in locations: exists ?z in ports: bind(?x, ?y, ?z)",
        "0 - (sum ?x in locations: sum ?y in 'n': bind(?x, ?y, q))",
        "abs ((sum ?x in locations: sum ?y in locations: bind(?x, ?y, p)) - 3)",
        "(exists ?x in locations: forall ?y in locations: not bind(?x, ?y, q)) or (forall ?x in locations: true)",
    ];
    let mut compared = 0;
    for seed in 30_000..48_000 {
        let mut dice = Dice::new(seed);
        let Sample { mut problem, specification } = sample(&mut dice);
        let ports: BTreeSet<&str> =
            problem.types.iter().flat_map(|kind| kind.requires().map(|(port, _)| port)).collect();
        if ports.len() < 2 {
            continue;
        }
        let chosen: Vec<&str> = (0..1 + dice.roll(2)).map(|_| dice.pick(&preferences)).collect();
        let text = RequirementText { binding_preferences: chosen.clone(), ..RequirementText::default() };
        // Patterns that match nothing are no error here.
        let Ok(Requirements { binding_goals, .. }) = Requirements::read(&text, &problem.types, &problem.classes) else {
            continue;
        };
        problem.requirements.binding_goals = binding_goals;
        assert!(
            problem
                .requirements
                .binding_goals
                .iter()
                .all(|goal| matches!(goal, BindingGoal::Local | BindingGoal::Term(_)))
        );
        problem.today = Configuration::default();
        let plan =
            plan(&problem, &mut |_| true).unwrap_or_else(|error| panic!("seed {seed}: {specification}: {error}"));
        if !plan.has_target() {
            continue;
        }
        let Some(best) = best_by_trying(&problem, &plan.target) else { continue };
        assert!(plan.bindings_proven, "seed {seed}: {chosen:?}");
        assert_eq!(plan.binding_values, best, "seed {seed}: {chosen:?}\n{:#?}", plan.target);
        compared += 1;
    }
    assert!(compared > 2_500, "{compared}");
}
