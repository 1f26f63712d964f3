//! What an answer rests on: the verifier rejects planted errors, and no engine can make the planner claim what is wrong.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod random;

use planner::configuration::{Binding, ComponentName, Configuration};
use planner::memory::Memory;
use planner::plan::{Plan, PlanError, Status, Unfinished, plan, plan_again, plan_with, trade_offs};
use planner::problem::Problem;
use planner::verify::{Standard, faults, goal_values, unmet_demands};
use planner::zephyrus::read;
use planner::{Belief, Engine, LinearProgram, Microlp};
use random::{Dice, Sample, sample};

fn instance(name: &str) -> Problem {
    let path = format!("{}/tests/instances/{name}.json", env!("CARGO_MANIFEST_DIR"));
    read(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn solved(problem: &Problem) -> Plan {
    plan(problem, &mut |_| true).unwrap()
}

/// What the verifier says after something was changed in a good answer.
fn after(problem: &Problem, target: &Configuration, change: impl FnOnce(&mut Configuration)) -> Vec<String> {
    let mut changed = target.clone();
    change(&mut changed);
    let mut wrong = faults(problem, &changed, Standard::Correct);
    wrong.extend(unmet_demands(problem, &changed));
    wrong.iter().map(ToString::to_string).collect()
}

fn name(text: &str) -> ComponentName {
    ComponentName(text.to_owned())
}

#[test]
fn the_verifier_rejects_planted_errors() {
    let problem = instance("07-fig1-anti-affinity");
    let target = solved(&problem).target;
    assert_eq!(after(&problem, &target, |_| {}), [""; 0]);

    // A binding is missing; a binding leads nowhere; a component provides for itself; two providers became one.
    let cut = after(&problem, &target, |changed| {
        changed.bindings.pop_first();
    });
    assert_eq!(cut, ["MessageAnalyzer_0 requires 1 on AA, it has 0"]);
    let nowhere = after(&problem, &target, |changed| {
        let binding = changed.bindings.pop_first().unwrap();
        changed.bindings.insert(Binding { provider: name("nobody"), ..binding });
    });
    assert!(nowhere[0].ends_with("but one of them does not exist"), "{nowhere:?}");
    let strange = after(&problem, &target, |changed| {
        let (client, provider) = (name("MessageAnalyzer_0"), name("MessageReceiver_0"));
        changed.bindings.insert(Binding { port: "AA".to_owned(), client, provider });
    });
    assert_eq!(strange, ["MessageAnalyzer_0 uses MessageReceiver_0 on AA, which does not provide it"]);
    let unasked = after(&problem, &target, |changed| {
        let (client, provider) = (name("AttachmentAnalyzer_0"), name("MessageAnalyzer_0"));
        changed.bindings.insert(Binding { port: "MA".to_owned(), client, provider });
    });
    assert_eq!(unasked, ["AttachmentAnalyzer_0 uses MessageAnalyzer_0 on MA, but does not require it"]);

    // More clients than an attachment analyzer takes.
    let crowded = after(&problem, &target, |changed| {
        let bindings: Vec<Binding> = changed.bindings.iter().filter(|bound| bound.port == "AA").cloned().collect();
        for bound in bindings {
            changed.bindings.remove(&bound);
            changed.bindings.insert(Binding { provider: name("AttachmentAnalyzer_0"), ..bound });
        }
    });
    assert_eq!(crowded, ["AttachmentAnalyzer_0 has 3 clients on AA, more than it can take"]);

    // Everything on one node: too small, and against the requirements.
    let heap = after(&problem, &target, |changed| {
        let node = changed.components[&name("MessageReceiver_0")].node;
        changed.components.values_mut().for_each(|component| component.node = node);
    });
    assert!(heap.iter().any(|fault| fault.contains("its components use 12")), "{heap:?}");
    let lost = after(&problem, &target, |changed| {
        changed.components.get_mut(&name("MessageReceiver_0")).unwrap().node.index = 99;
    });
    assert_eq!(lost[0], "MessageReceiver_0 is on a node that does not exist");
}

#[test]
fn the_verifier_sees_demands_conflicts_and_weak_requirements() {
    let problem = instance("07-fig1-anti-affinity");
    let target = solved(&problem).target;
    let pair = after(&problem, &target, |changed| {
        let analyzers =
            changed.components.iter().filter(|(_, component)| problem.types[component.kind].name == "MessageAnalyzer");
        let nodes: Vec<_> = analyzers.map(|(name, component)| (name.clone(), component.node)).collect();
        changed.components.get_mut(&nodes[1].0).unwrap().node = nodes[0].1;
    });
    assert!(pair.iter().any(|fault| fault.contains("forall ?x in locations: (?x.MessageAnalyzer <= 1)")), "{pair:?}");

    let mut problem = instance("05-fig1");
    let target = solved(&problem).target;
    let values = goal_values(&problem, &target);
    assert_eq!(values, [598, 6]);
    problem.types[0].conflicts.insert("MA".to_owned());
    let conflict = after(&problem, &target, |_| {});
    assert!(conflict.iter().all(|fault| fault.contains("conflicts with MA")) && !conflict.is_empty());
    problem.types[0].conflicts.clear();
    let strong = std::mem::take(&mut problem.types[2].strong);
    problem.types[2].weak = strong;
    let mut without = target;
    without.bindings.retain(|binding| binding.port != "MA");
    assert_eq!(faults(&problem, &without, Standard::Provisional), []);
    assert_eq!(faults(&problem, &without, Standard::Correct).len(), 1);
}

/// An engine that makes things up: some answers are changed, some are withheld, some are nonsense.
struct Liar {
    dice: Dice,
    engine: Microlp,
}

impl Liar {
    fn twist(&mut self, belief: Belief) -> Belief {
        match (self.dice.roll(4), belief) {
            (0, _) => Belief::Infeasible,
            (1, Belief::Optimum(values)) => Belief::Optimum(
                values
                    .iter()
                    .map(|value| value + 0.37 * f64::from(i32::try_from(self.dice.roll(5)).unwrap()))
                    .collect(),
            ),
            (2, Belief::Optimum(values)) => Belief::Optimum(values.iter().map(|_| f64::NAN).collect()),
            (_, belief) => belief,
        }
    }
}

impl Engine for Liar {
    fn solve(&mut self, program: &LinearProgram) -> Belief {
        let belief = self.engine.solve(program);
        self.twist(belief)
    }

    fn solve_whole(&mut self, program: &LinearProgram, whole: &[bool], effort: u64) -> Belief {
        let belief = self.engine.solve_whole(program, whole, effort);
        self.twist(belief)
    }
}

#[test]
fn an_engine_that_lies_can_waste_time_but_never_make_a_wrong_claim() {
    let (mut claimed, mut open) = (0, 0);
    for seed in 20_000..20_150 {
        let Sample { problem, specification } = sample(&mut Dice::new(seed));
        let honest = plan(&problem, &mut |_| true).unwrap();
        let mut liar = Liar { dice: Dice::new(seed), engine: Microlp::default() };
        let mut steps = 0;
        let told = plan_with(&problem, &mut liar, &mut |_| {
            steps += 1;
            steps < 500
        });
        let told = told.unwrap_or_else(|error| panic!("seed {seed}: {specification}: {error}"));
        match told.status {
            Status::Optimal => assert_eq!(told.objectives, honest.objectives, "seed {seed}: {specification}"),
            Status::Infeasible => assert_eq!(honest.status, Status::Infeasible, "seed {seed}: {specification}"),
            Status::Feasible | Status::Unknown => {}
        }
        let proven = matches!(told.status, Status::Optimal | Status::Infeasible);
        claimed += i32::from(proven);
        open += i32::from(!proven);
    }
    assert!(claimed > 30, "{claimed} of {}", claimed + open);
}

#[test]
fn a_search_that_is_stopped_says_how_far_it_got() {
    let problem = instance("16-scaled-500-nodes-200-instances");
    for patience in [0, 1, 5, 20, 40] {
        let mut asked = 0;
        let plan = plan(&problem, &mut |_| {
            asked += 1;
            asked <= patience
        })
        .unwrap();
        match plan.status {
            Status::Optimal => assert_eq!(plan.cost, 33_913),
            Status::Feasible => {
                assert!(plan.cost >= 33_913);
                assert!(plan.first_bound().is_none_or(|bound| bound <= 33_913));
                assert!(plan.objectives[0].bound.is_none_or(|bound| bound <= plan.objectives[0].value));
            }
            Status::Unknown => assert!(plan.bound.is_none_or(|bound| bound <= 33_913)),
            Status::Infeasible => panic!("it is not"),
        }
    }
}

#[test]
fn a_search_that_is_stopped_after_its_bound_gives_the_best_answer_so_far_and_its_gap() {
    let text = |number: &str| {
        format!(
            r#"{{ "components": {{ "A": {{ "resources": {{ "CPU": 1 }} }} }},
            "locations": {{ "small": {{ "num": 9, "resources": {{ "CPU": 2 }}, "cost": 10 }},
                            "large": {{ "num": 9, "resources": {{ "CPU": 4 }}, "cost": 17 }} }},
            "specification": "A {number}; cost" }}"#
        )
    };
    let mut memory = Memory::default();
    let before = plan_again(&read(&text("= 12")).unwrap(), &mut memory, &mut |_| true).unwrap();
    assert_eq!((before.status, before.cost), (Status::Optimal, 51));
    // Its answer is one to the next problem, too, and not the best; so there is something to give from the start.
    let next = read(&text(">= 7")).unwrap();
    let mut seen = None;
    let stopped = plan_again(&next, &mut memory.clone(), &mut |progress| {
        seen = seen.or(progress.bound.zip(progress.best));
        seen.is_none()
    })
    .unwrap();
    let (bound, best) = seen.unwrap();
    assert_eq!((stopped.status, stopped.unfinished), (Status::Feasible, Some(Unfinished::Stopped)));
    assert_eq!((stopped.objectives[0].value, stopped.objectives[0].bound), (best, Some(bound)));
    assert!(bound < best, "{bound} {best}");
    // Without being stopped it ends between the two.
    let proven = plan_again(&next, &mut memory, &mut |_| true).unwrap();
    assert_eq!((proven.status, proven.cost), (Status::Optimal, 34));
    assert!(bound <= proven.cost && proven.cost <= best && proven.unfinished.is_none());
}

#[test]
fn progress_is_reported_with_bound_and_best() {
    let problem = instance("16-scaled-500-nodes-200-instances");
    let (mut bounds, mut goals) = (Vec::new(), Vec::new());
    plan(&problem, &mut |progress| {
        bounds.extend(progress.bound);
        goals.push(progress.goal);
        true
    })
    .unwrap();
    assert!(bounds.iter().any(|bound| *bound > 0) && goals.contains(&0));
}

#[test]
fn cost_can_be_traded_against_disruption() {
    let text = r#"{
      "components": { "A": { "resources": { "CPU": 1 } } },
      "locations": {
        "dear": { "num": 3, "resources": { "CPU": 1 }, "cost": 10 },
        "cheap": { "num": 2, "resources": { "CPU": 1 }, "cost": 4 } },
      "configuration": { "components": {
        "a": { "type": "A", "location": "dear", "index": 0 },
        "b": { "type": "A", "location": "dear", "index": 1 },
        "c": { "type": "A", "location": "dear", "index": 2 } } },
      "specification": "A = 3"
    }"#;
    let table = trade_offs(&read(text).unwrap(), 10, &mut |_| true).unwrap();
    let rows: Vec<(i128, i128, bool)> = table.iter().map(|row| (row.cost, row.stopped, row.proven)).collect();
    assert_eq!(rows, [(18, 2, true), (24, 1, true), (30, 0, true)]);
}

#[test]
fn numbers_beyond_exact_arithmetic_are_refused() {
    let text = |specification: &str| {
        format!(
            r#"{{ "components": {{ "A": {{ "resources": {{ "CPU": 1 }} }} }},
                 "locations": {{ "n": {{ "num": 1000000, "resources": {{ "CPU": 1000000000000 }}, "cost": 1000000000000 }} }},
                 "specification": "{specification}" }}"#
        )
    };
    for specification in [
        "A * 1000000000000 * 1000000000000 >= 1",
        "A * A * A * A >= 1",
        "A >= 1; 1000000000000 * 1000000000000 * 1000000000000 * A",
    ] {
        let problem = read(&text(specification)).unwrap();
        let error = plan(&problem, &mut |_| true).unwrap_err();
        assert!(matches!(error, PlanError::Model(_)), "{specification}: {error}");
    }
    // Large but exact.
    let problem = read(&text("A >= 1; (sum ?x in components: ?x)")).unwrap();
    assert_eq!(solved(&problem).status, Status::Optimal);
}
