//! Problems of the shape of the published scaling problems: providers that the specification does not bound, on a free node
//! with far more room than anything needs, beside nodes that cost something.
//!
//! Small ones are compared with trying everything. Trying a node with room for a thousand is out of the question, so the same
//! problem with little room there is tried: no answer needs more.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "random/dice.rs"]
mod dice;
mod trying;

use std::collections::BTreeMap;

use dice::Dice;
use planner::configuration::{Component, ComponentName, Configuration, Node};
use planner::language::{RequirementText, Requirements};
use planner::plan::{Plan, Status, plan};
use planner::problem::{ComponentType, NodeClass, Problem, Provision};
use planner::zephyrus::read;
use serde_json::{Value, json};
use trying::best_by_trying;

/// Room on the free node that is enough for every answer: two workers with at most three bindings each.
const ROOM_ENOUGH: i64 = 6;

fn provision(ports: &[&str], capacity: Option<i64>) -> Provision {
    Provision { ports: ports.iter().map(|port| (*port).to_owned()).collect(), capacity }
}

fn kind(name: &str, cpu: i64, slot: i64) -> ComponentType {
    let resources = [("CPU".to_owned(), cpu), ("slot".to_owned(), slot)].into();
    ComponentType { name: name.to_owned(), resources, ..ComponentType::default() }
}

/// One worker, a balancer on paid nodes and one or two objects on the free node, which all may provide what the worker
/// needs. The problem with as much room on the free node as said.
fn sample(seed: u64, room: i64) -> (Problem, String) {
    let dice = &mut Dice::new(seed);
    let mut worker = kind("Worker", 1 + dice.roll(2), 0);
    worker.strong.insert("p".to_owned(), 1 + i64::from(dice.one_in(3)));
    if dice.one_in(2) {
        worker.weak.insert("q".to_owned(), 1);
    }
    let capacity = |dice: &mut Dice| if dice.one_in(3) { Some(1 + dice.roll(3)) } else { None };
    let mut balancer = kind("Balancer", 1, 0);
    balancer.provides.push(provision(&["p"], capacity(dice)));
    if dice.one_in(4) {
        // A provider that is a client, too.
        balancer.strong.insert("q".to_owned(), 1);
    }
    let mut object = kind("Object", 0, 1);
    object.provides.push(provision(&["p", "q"][..usize::try_from(1 + dice.roll(2)).unwrap()], capacity(dice)));
    let mut types = vec![worker, balancer, object];
    if dice.one_in(2) {
        let mut other = kind("Other", 0, 1);
        other.provides.push(provision(&["q"], capacity(dice)));
        if dice.one_in(6) {
            other.conflicts.insert("p".to_owned());
        }
        types.push(other);
    }
    let class = |name: &str, number, cpu, slot, cost| {
        let resources = [("CPU".to_owned(), cpu), ("slot".to_owned(), slot)].into();
        NodeClass { name: name.to_owned(), number, resources, cost }
    };
    let mut classes =
        vec![class("paid", 1 + dice.roll(2), 1 + dice.roll(3), 0, 1 + dice.roll(5)), class("free", 1, 0, room, 0)];
    if dice.one_in(4) {
        // Huge and not free; what it has in common with the free one is the room.
        classes[0].resources.insert("slot".to_owned(), dice.roll(2));
    }
    let mut today = Configuration::default();
    if dice.one_in(3) {
        let node = Node { class: 1, index: 0 };
        today.components.insert(ComponentName("old".to_owned()), Component { kind: 2, node });
    }
    let operator = dice.pick(&["=", ">="]);
    let mut demands = vec![format!("Worker {operator} {}", dice.roll(3))];
    match dice.roll(8) {
        0 => demands.push("Balancer = 0".to_owned()),
        1 => demands.push("Object <= 1".to_owned()),
        2 => demands.push("Balancer + Object >= 2".to_owned()),
        3 => demands
            .push("(forall ?x in locations: (?x.Balancer > 0 impl (sum ?y in components: ?x.?y) = 1))".to_owned()),
        4 => demands.push("(exists ?x in locations: ?x.Object + ?x.Worker = 2)".to_owned()),
        _ => {}
    }
    let goals = match dice.roll(6) {
        0 => "cost",
        1 => "(sum ?y in components: ?y); cost",
        2 => "stopped; cost; (sum ?y in components: ?y)",
        3 => "cost; Balancer; (0 - Worker)",
        4 => "cost; moved",
        _ => "cost; (sum ?y in components: ?y)",
    };
    let specification = format!("{}; {goals}", demands.join(" and "));
    let text = RequirementText { specification: &specification, ..RequirementText::default() };
    let requirements =
        Requirements::read(&text, &types, &classes).unwrap_or_else(|it| panic!("{specification}: {it:?}"));
    (Problem::new(types, classes, today, requirements).unwrap(), specification)
}

fn solved(problem: &Problem, what: &str) -> Plan {
    plan(problem, &mut |_| true).unwrap_or_else(|error| panic!("{what}: {error}"))
}

#[test]
fn room_for_a_thousand_changes_nothing_and_trying_everything_agrees() {
    let mut feasible = 0;
    for seed in 0..1_500 {
        let (small, specification) = sample(seed, ROOM_ENOUGH);
        let (large, _) = sample(seed, 1_000);
        let what = format!("seed {seed}: {specification}\n{small:#?}");
        let best = best_by_trying(&small);
        for problem in [&small, &large] {
            let plan = solved(problem, &what);
            let told = plan.has_target().then(|| plan.objectives.iter().map(|goal| goal.value).collect::<Vec<_>>());
            assert_eq!(told, best, "{what}");
            assert_eq!(plan.status, if best.is_some() { Status::Optimal } else { Status::Infeasible }, "{what}");
        }
        feasible += i32::from(best.is_some());
    }
    assert!(feasible > 500 && feasible < 1_450, "{feasible}");
}

fn counts(problem: &Problem, plan: &Plan) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for component in plan.target.components.values() {
        *counts.entry(problem.types[component.kind].name.clone()).or_insert(0) += 1;
    }
    counts
}

fn published(name: &str) -> Value {
    let path = format!("{}/tests/instances/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn no_superfluous_provider_is_placed_even_if_no_goal_counts_them() {
    let mut file = published("02-email-plus-20k");
    let specification = file["specification"].as_str().unwrap();
    let demand = &specification[..specification.find(';').unwrap()];
    file["specification"] = json!(format!("{demand}; cost"));
    let problem = read(&file.to_string()).unwrap();
    let plan = solved(&problem, "cost only");
    assert_eq!((plan.status, plan.cost), (Status::Optimal, 5_712));
    for (name, count) in counts(&problem, &plan) {
        assert!(!name.ends_with("Obj") || count == 1, "{count} {name}");
    }
}

#[test]
fn balancers_that_the_specification_leaves_open_are_not_bought_where_objects_are_free() {
    let mut file = published("03-email-plus-50k");
    let specification = file["specification"].as_str().unwrap().to_owned();
    let kept: Vec<&str> = specification.split(" and ").filter(|part| !part.contains("_LoadBalancer")).collect();
    let goals = specification.split_once(';').unwrap().1;
    file["specification"] = json!(format!("{}); {goals}", kept.join(" and ")));
    let problem = read(&file.to_string()).unwrap();
    let plan = solved(&problem, "balancers left open");
    let values: Vec<i128> = plan.objectives.iter().map(|objective| objective.value).collect();
    assert_eq!((plan.status, values), (Status::Optimal, vec![7_853, 38]));
    assert!(counts(&problem, &plan).keys().all(|name| !name.ends_with("_LoadBalancer")));
}

#[test]
fn a_free_node_with_less_room_than_needed_is_filled_and_the_rest_goes_where_it_costs_nothing() {
    let mut file = published("02-email-plus-20k");
    let specification = file["specification"].as_str().unwrap().to_owned();
    let kept: Vec<&str> = specification.split(" and ").filter(|part| !part.contains("_LoadBalancer")).collect();
    file["specification"] = json!(format!("{}); cost; (sum ?y in components: ?y)", kept.join(" and ")));
    file["locations"]["initial_dc"]["resources"]["initial_obj_resource"] = json!(5);
    let problem = read(&file.to_string()).unwrap();
    let plan = solved(&problem, "little room");
    // Seven providers are needed. Five fit on the free node, two balancers beside components on nodes that are paid for.
    assert_eq!((plan.status, plan.cost), (Status::Optimal, 5_712));
    let counts = counts(&problem, &plan);
    let of = |end: &str| counts.iter().filter(|(name, _)| name.ends_with(end)).map(|(_, count)| count).sum::<i64>();
    assert_eq!((of("Obj"), of("_LoadBalancer")), (5, 2));
}
