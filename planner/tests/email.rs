//! The e-mail processing pipeline: the initial deployment and three steps of growth, each from the configuration that
//! the step before left behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use planner::plan::{Plan, Status, plan};
use planner::problem::Problem;
use planner::scale::{Load, constraints, instances};
use planner::verify::{Standard, faults};
use planner::zephyrus::read;
use serde_json::{Value, json};

/// Each microservice, the most requests that one instance handles (0: any number), and the instances that the authors
/// report for 10K, +20K, +50K and +80K simultaneous requests.
const TABLE: [(&str, u64, [u64; 4]); 12] = [
    ("MessageReceiver", 0, [1, 1, 1, 1]),
    ("MessageParser", 40_000, [1, 1, 2, 2]),
    ("HeaderAnalyser", 40_000, [1, 1, 2, 2]),
    ("LinkAnalyser", 40_000, [1, 1, 2, 2]),
    ("TextAnalyser", 15_000, [1, 2, 4, 6]),
    ("SentimentAnalyser", 15_000, [1, 4, 8, 14]),
    ("VirusScanner", 13_000, [1, 4, 8, 14]),
    ("AttachmentsManager", 30_000, [1, 2, 4, 6]),
    ("ImageAnalyser", 30_000, [1, 2, 4, 6]),
    ("NSFWDetector", 13_000, [1, 4, 8, 14]),
    ("ImageRecognizer", 13_000, [1, 4, 8, 14]),
    ("MessageAnalyser", 70_000, [1, 2, 4, 6]),
];

/// The pipeline with these counts. Load balancers use all instances behind them (weak, as many as there are), and each
/// step may draw on forty further nodes of each class.
fn pipeline(step: usize, preferences: &str) -> Problem {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/instances/01-email-initial-10k.json");
    let mut file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let names: Vec<String> = file["components"].as_object().unwrap().keys().cloned().collect();
    for name in names.iter().filter_map(|name| name.strip_suffix("_LoadBalancer")) {
        file["components"][format!("{name}_LoadBalancer")]["weak"] = json!({ format!("{name}Interface"): 0 });
    }
    for class in ["c4_large", "c4_xlarge", "c4_2xlarge"] {
        file["locations"][class]["num"] = json!(40 * (step + 1));
    }
    let specification = file["specification"].as_str().unwrap();
    let alone = &specification[specification.find("forall").unwrap()..specification.find(';').unwrap()];
    let counts: Vec<String> = TABLE.iter().map(|(name, _, counts)| format!("{name} = {}", counts[step])).collect();
    file["specification"] = json!(format!("DB = 1 and {} and {alone}; {preferences}", counts.join(" and ")));
    file["bind preferences"] =
        json!(["sum ?balancer of type '.*_LoadBalancer' in locations: sum ?worker in locations: sum ?p in ports: \
         bind(?balancer, ?worker, ?p)"]);
    read(&file.to_string()).unwrap()
}

fn counts(problem: &Problem, plan: &Plan) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for component in plan.target.components.values() {
        *counts.entry(problem.types[component.kind].name.clone()).or_insert(0) += 1;
    }
    counts
}

/// Grows step by step; returns the values of the preferences at each step.
fn grow(preferences: &str) -> Vec<Vec<i128>> {
    let mut today = Default::default();
    let mut values = Vec::new();
    for step in 0..4 {
        let mut problem = pipeline(step, preferences);
        problem.today = today;
        let plan = plan(&problem, &mut |_| true).unwrap();
        assert_eq!(plan.status, Status::Optimal, "step {step}");
        let counts = counts(&problem, &plan);
        for (name, _, expected) in TABLE {
            assert_eq!(counts[name], expected[step], "{name} at step {step}");
        }
        let balancers = counts.iter().filter(|(name, _)| name.ends_with("_LoadBalancer"));
        assert!(balancers.clone().count() == 11 && balancers.into_iter().all(|(_, count)| *count == 1));
        // Each balancer is bound to every instance behind it.
        let behind: u64 = TABLE[1..].iter().map(|(_, _, counts)| counts[step]).sum();
        let bound = plan.target.bindings.iter().filter(|binding| binding.client.0.contains("_LoadBalancer"));
        assert_eq!(u64::try_from(bound.count()).unwrap(), behind, "step {step}");

        let mut now = problem.today.clone();
        for action in &plan.sequence(&problem).unwrap().actions {
            action.apply(&mut now);
            assert_eq!(faults(&problem, &now, Standard::Provisional), [], "step {step} after {action}");
        }
        assert_eq!(now, plan.target);
        values.push(plan.objectives.iter().map(|objective| objective.value).collect());
        today = plan.target;
    }
    values
}

#[test]
fn growing_at_least_cost_has_the_reported_counts_at_each_step() {
    let values = grow("cost; stopped; (sum ?y in components: ?y)");
    assert_eq!(values[0], [4282, 0, 24]);
}

#[test]
fn growing_without_disturbance_stops_nothing() {
    let values = grow("stopped; cost; (sum ?y in components: ?y)");
    for step in &values {
        assert_eq!(step[0], 0);
    }
    assert_eq!(values[0], [0, 4282, 24]);
}

#[test]
fn counts_follow_from_the_load_on_each_interface() {
    // The load on each interface that the reported counts answer to: for most of them a fixed number of requests for
    // each e-mail (two attachments, five results to collect); the others are given as they are.
    let factors = [("AttachmentsManager", 2), ("ImageAnalyser", 2), ("MessageAnalyser", 5)];
    let own = ["SentimentAnalyser", "VirusScanner", "NSFWDetector", "ImageRecognizer"];
    for (step, emails) in [10_000, 20_000, 50_000, 80_000].into_iter().enumerate() {
        let mut loads = Vec::new();
        let mut own_loads = BTreeMap::new();
        for (name, load_max, expected) in TABLE {
            let factor = factors.iter().find(|(known, _)| *known == name).map_or(1, |(_, factor)| *factor);
            let load_max = (load_max > 0).then_some(load_max);
            loads.push(Load { component: name.to_owned(), load_max, factor });
            if own.contains(&name) {
                own_loads.insert(name.to_owned(), expected[step] * load_max.unwrap());
            }
        }
        let counts = instances(emails, &loads, &own_loads).unwrap();
        for (name, _, expected) in TABLE {
            assert_eq!(counts[name], expected[step], "{name} at {emails}");
        }
        assert_eq!(constraints(&counts).len(), TABLE.len());
    }
}
