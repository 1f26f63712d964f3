//! Why there is no placement: exact sentences, and sets that are really as small as they are said to be.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod random;

use std::collections::BTreeSet;

use planner::explain::{Cause, Contradiction, shortfall};
use planner::plan::{Status, plan};
use planner::problem::{Problem, Provision};
use planner::report::optimize;
use random::{Dice, Sample, sample};

/// What is said about types, nodes and requirements.
fn check(components: &str, locations: &str, requirements: &str, told: &[&str]) {
    let text = format!(
        r#"{{ "components": {{ {components} }}, "locations": {{ {locations} }}, "specification": "{requirements}" }}"#
    );
    let report = optimize(&text, &mut |_| true).unwrap().to_string();
    assert_eq!(report.lines().collect::<Vec<_>>(), told, "{text}");
}

const SMALLEST: &str = "infeasible: a smallest set of demands that cannot hold together";

#[test]
fn a_resource_is_scarce() {
    check(
        r#""Web": { "resources": { "cpu": 2 } }, "Database": { "resources": { "cpu": 6 } }"#,
        r#""small": { "num": 2, "resources": { "cpu": 4 }, "cost": 1 },
           "large": { "num": 1, "resources": { "cpu": 8 }, "cost": 2 }"#,
        "Web >= 6 and Database = 1",
        &[
            SMALLEST,
            "  - Web >= 6",
            "  - Database = 1",
            "  - there is 1 large with cpu 8",
            "  - there are 2 small with cpu 4",
            "because 1 Database and 6 Web need 18 cpu, all nodes together have 16",
        ],
    );
    // Only nodes that can host them count.
    check(
        r#""Web": { "resources": { "cpu": 3 } }"#,
        r#""tiny": { "num": 9, "resources": { "cpu": 2 }, "cost": 1 },
           "small": { "num": 2, "resources": { "cpu": 4 }, "cost": 1 }"#,
        "Web = 3",
        &[
            SMALLEST,
            "  - Web = 3",
            "  - there are 2 small with cpu 4",
            "because 3 Web need 9 cpu, the 2 small that can host them have together 8",
        ],
    );
}

#[test]
fn there_are_too_few_nodes_with_room() {
    let types = r#""Web": { "resources": { "cpu": 2 } }, "Database": { "resources": { "cpu": 2 } }"#;
    let nodes = r#""tiny": { "num": 3, "resources": { "cpu": 1 }, "cost": 1 },
                   "small": { "num": 2, "resources": { "cpu": 8 }, "cost": 1 }"#;
    check(
        types,
        nodes,
        "Web = 3 and (forall ?x in locations: ?x.Web <= 1)",
        &[
            SMALLEST,
            "  - Web = 3",
            "  - (forall ?x in locations: ?x.Web <= 1)",
            "  - there are 2 small with cpu 8",
            "because 3 Web need 3 nodes, as no node can host two; only 2 can host one",
        ],
    );
    check(
        types,
        nodes,
        "Web = 2 and Database = 1 and (forall ?x in locations: ?x.Web + ?x.Database <= 1)",
        &[
            SMALLEST,
            "  - Web = 2",
            "  - Database = 1",
            "  - (forall ?x in locations: ?x.Web + ?x.Database <= 1)",
            "  - there are 2 small with cpu 8",
            "because 1 Database and 2 Web need 3 nodes, as no node can host two of them; only 2 can host one of them",
        ],
    );
    // Room is left everywhere, and nowhere enough of it.
    check(
        r#""Web": { "resources": { "cpu": 3 } }"#,
        r#""small": { "num": 2, "resources": { "cpu": 8 }, "cost": 1 },
           "medium": { "num": 1, "resources": { "cpu": 5 }, "cost": 1 }"#,
        "Web = 6",
        &[
            SMALLEST,
            "  - Web = 6",
            "  - there is 1 medium with cpu 5",
            "  - there are 2 small with cpu 8",
            "because there must be 6 Web; 1 medium can host 1 and 2 small can host 2 each, which is 5",
        ],
    );
    check(
        r#""Web": { "resources": { "cpu": 9, "ram": 1 } }"#,
        r#""small": { "num": 2, "resources": { "cpu": 8, "ram": 4 }, "cost": 1 }"#,
        "Web >= 1",
        &[SMALLEST, "  - Web >= 1", "because no node has room for one Web, which uses cpu 9, ram 1"],
    );
}

#[test]
fn places_of_providers_are_scarce() {
    let types = r#""Web": { "resources": { "cpu": 1 }, "requires": { "sql": 1 } },
                   "Database": { "resources": { "cpu": 1 }, "provides": [ { "ports": ["sql"], "num": 2 } ] }"#;
    let nodes = r#""small": { "num": 9, "resources": { "cpu": 4 }, "cost": 1 }"#;
    check(
        types,
        nodes,
        "Web = 5 and Database = 2",
        &[
            SMALLEST,
            "  - Web = 5",
            "  - Database = 2",
            "  - each Web requires a provider of sql",
            "  - each Database provides sql to at most 2 clients",
            "because 5 Web are 5 clients of sql; 2 Database with 2 places each have 4",
        ],
    );
    check(
        types,
        nodes,
        "Web >= 1 and Database < 1",
        &[
            SMALLEST,
            "  - Web >= 1",
            "  - Database < 1",
            "  - each Web requires a provider of sql",
            "because each Web needs a provider of sql; there can be only 0 Database",
        ],
    );
    check(
        r#""Web": { "resources": { "cpu": 1 }, "requires": { "sql": 1 } }"#,
        nodes,
        "Web >= 1",
        &[SMALLEST, "  - Web >= 1", "  - each Web requires a provider of sql", "because nothing provides sql"],
    );
}

#[test]
fn a_smaller_set_is_found_where_dropping_alone_would_miss_it() {
    // Dropping from the front leaves the three about C; the two about A are fewer.
    check(
        r#""A": { "resources": { "cpu": 1 } }, "C": { "resources": { "cpu": 1 } }, "D": { "resources": { "cpu": 1 } }"#,
        r#""n": { "num": 9, "resources": { "cpu": 4 }, "cost": 1 }"#,
        "A >= 3 and A <= 2 and C >= 2 and D >= 2 and C + D <= 3",
        &[SMALLEST, "  - A >= 3", "  - A <= 2", "because there must be 3 A, there can be only 2"],
    );
}

#[test]
fn numbers_of_nodes_that_a_demand_speaks_of_are_taken_for_granted() {
    // With more nodes the first demand would ask for more.
    check(
        r#""A": { "resources": { "cpu": 1 } }"#,
        r#""n": { "num": 3, "resources": { "cpu": 4 }, "cost": 1 }"#,
        "(forall ?x in locations: ?x.A >= 1) and A = 2",
        &[SMALLEST, "  - (forall ?x in locations: ?x.A >= 1)", "  - A = 2", "  given that there are 3 n with cpu 4"],
    );
    // A node that is named is one of them; others could help.
    check(
        r#""A": { "resources": { "cpu": 1 } }"#,
        r#""n": { "num": 1, "resources": { "cpu": 4 }, "cost": 1 }"#,
        "n[0].A = 0 and A = 2",
        &[
            SMALLEST,
            "  - n[0].A = 0",
            "  - A = 2",
            "  - there is 1 n with cpu 4",
            "because there must be 2 A, and there is no node that may host one",
        ],
    );
}

/// The problem with these causes and no others, made anew; classes whose number is no cause have `further` nodes more.
fn relaxed(problem: &Problem, causes: &BTreeSet<Cause>, further: &[i64]) -> Problem {
    let mut relaxed = problem.clone();
    for (kind, described) in relaxed.types.iter_mut().enumerate() {
        let needed = |port: &String| causes.contains(&Cause::Need { kind, port: port.clone() });
        described.strong.retain(|port, _| needed(port));
        described.weak.retain(|port, _| needed(port));
        for (stock, offer) in described.provides.iter_mut().enumerate() {
            if !causes.contains(&Cause::Capacity { kind, stock }) {
                offer.capacity = None;
            }
        }
        described.conflicts.clear();
    }
    for cause in causes {
        // Each conflict has an interface of its own, which only this provider offers.
        if let Cause::Conflict { kind, other, port } = cause {
            let own = format!("{port} of {other} against {kind}");
            relaxed.types[*other].provides.push(Provision { ports: [own.clone()].into(), capacity: None });
            relaxed.types[*kind].conflicts.insert(own);
        }
    }
    let mut position = 0;
    relaxed.requirements.demands.retain(|_| {
        position += 1;
        causes.contains(&Cause::Demand(position - 1))
    });
    relaxed.requirements.goals.clear();
    relaxed.requirements.binding_goals.clear();
    for (class, described) in relaxed.classes.iter_mut().enumerate() {
        if !causes.contains(&Cause::Number(class)) {
            described.number += further[class];
        }
    }
    relaxed
}

fn possible(problem: &Problem) -> bool {
    plan(problem, &mut |_| true).unwrap().status != Status::Infeasible
}

/// Whether these causes can hold together for some numbers of nodes where those are no cause.
fn possible_somehow(problem: &Problem, causes: &BTreeSet<Cause>) -> bool {
    let choices = 1_usize << problem.classes.len();
    (0..choices).rev().any(|choice| {
        let further: Vec<i64> =
            (0..problem.classes.len()).map(|class| if choice >> class & 1 == 1 { 40 } else { 0 }).collect();
        possible(&relaxed(problem, causes, &further))
    })
}

fn all_causes(problem: &Problem) -> Vec<Cause> {
    let mut causes: Vec<Cause> = (0..problem.requirements.demands.len()).map(Cause::Demand).collect();
    causes.extend((0..problem.classes.len()).map(Cause::Number));
    for (kind, described) in problem.types.iter().enumerate() {
        let needed = described.requires().filter(|(_, number)| *number > 0);
        causes.extend(needed.map(|(port, _)| Cause::Need { kind, port: port.to_owned() }));
        for (stock, offer) in described.provides.iter().enumerate() {
            causes.extend(offer.capacity.map(|_| Cause::Capacity { kind, stock }));
        }
        for port in &described.conflicts {
            for (other, provider) in problem.types.iter().enumerate() {
                if provider.provision_of(port).is_some() {
                    causes.push(Cause::Conflict { kind, other, port: port.clone() });
                }
            }
        }
    }
    causes
}

/// All sets of `size` causes.
fn sets(causes: &[Cause], size: usize) -> Vec<BTreeSet<Cause>> {
    if size == 0 {
        return vec![BTreeSet::new()];
    }
    let mut all = Vec::new();
    for (position, cause) in causes.iter().enumerate() {
        for mut set in sets(&causes[position + 1..], size - 1) {
            set.insert(cause.clone());
            all.push(set);
        }
    }
    all
}

#[test]
fn the_causes_contradict_each_other_none_can_be_spared_and_no_fewer_do() {
    let (mut found, mut proven, mut summed, mut tried) = (0, 0, 0, 0);
    for seed in 30_000..31_200 {
        let Sample { problem, specification } = sample(&mut Dice::new(seed));
        let plan = plan(&problem, &mut |_| true).unwrap();
        if plan.status != Status::Infeasible {
            continue;
        }
        let Contradiction { causes, given, because, smallest, .. } = plan.contradiction;
        let told = format!("seed {seed}: {specification}\n{causes:?}");
        let causes: BTreeSet<Cause> = causes.into_iter().collect();
        let further: Vec<i64> =
            (0..problem.classes.len()).map(|class| if given.contains(&class) { 0 } else { 40 }).collect();
        assert!(!possible(&relaxed(&problem, &causes, &further)), "{told} could hold together");
        for cause in &causes {
            let mut fewer = causes.clone();
            fewer.remove(cause);
            assert!(possible_somehow(&problem, &fewer), "{told} without {cause:?}");
        }
        if smallest {
            // If all sets with one member less can hold, so can all that are smaller still.
            let smaller = sets(&all_causes(&problem), causes.len().saturating_sub(1));
            if smaller.len() <= 200 {
                tried += smaller.len();
                assert!(smaller.iter().all(|set| possible_somehow(&problem, set)), "{told} is not smallest");
            }
        }
        found += 1;
        proven += i32::from(smallest);
        summed += i32::from(!because.is_empty());
    }
    // Each happens often enough to mean something.
    assert!(found > 100 && proven * 10 > found * 9 && summed * 4 > found, "{found} {proven} {summed} {tried}");
    assert!(tried > 1_000, "{tried}");
}

#[test]
fn a_sum_never_speaks_against_a_problem_that_has_an_answer() {
    let mut silent = 0;
    for seed in 32_000..34_000 {
        let Sample { problem, specification } = sample(&mut Dice::new(seed));
        let sentences = shortfall(&problem);
        if sentences.is_empty() {
            silent += 1;
            continue;
        }
        let status = plan(&problem, &mut |_| true).unwrap().status;
        assert_eq!(status, Status::Infeasible, "seed {seed}: {specification}\n{sentences:?}");
    }
    assert!(silent < 1_990, "{silent}");
}
