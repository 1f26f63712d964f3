//! Thousands of small random problems, each solved twice: by the planner, and by trying everything.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod random;
mod trying;

use planner::configuration::Configuration;
use planner::plan::{Status, plan};
use planner::verify::{Standard, faults};
use random::{Dice, Sample, sample};
use trying::best_by_trying;

#[test]
fn the_planner_agrees_with_trying_everything() {
    let mut feasible = 0;
    for seed in 0..4_000 {
        let Sample { problem, specification } = sample(&mut Dice::new(seed));
        let plan = plan(&problem, &mut |_| true)
            .unwrap_or_else(|error| panic!("seed {seed}: {specification}\n{problem:#?}\n{error}"));
        let told = plan.has_target().then(|| plan.objectives.iter().map(|goal| goal.value).collect::<Vec<_>>());
        let best = best_by_trying(&problem);
        assert_eq!(told, best, "seed {seed}: {specification}\n{problem:#?}");
        let status = if best.is_some() { Status::Optimal } else { Status::Infeasible };
        assert_eq!(plan.status, status, "seed {seed}: {specification}");
        feasible += i32::from(best.is_some());
    }
    // Sometimes there is an answer and sometimes not: neither half is tested by accident only.
    assert!(feasible > 1_000 && feasible < 3_800, "{feasible}");
}

#[test]
fn every_step_of_every_sequence_is_provisionally_correct() {
    let mut moved = 0;
    for seed in 10_000..14_000 {
        let Sample { mut problem, specification } = sample(&mut Dice::new(seed));
        problem.today = Configuration::default();
        let Ok(first) = plan(&problem, &mut |_| true) else { panic!("seed {seed}") };
        if !first.has_target() {
            continue;
        }
        // From the answer to one set of requirements to the answer to another, for the same types and nodes.
        problem.today = first.target;
        problem.requirements.goals.reverse();
        for _ in 0..Dice::new(seed).roll(3) {
            problem.requirements.demands.pop();
        }
        let second = plan(&problem, &mut |_| true).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let Ok(sequence) = second.sequence(&problem) else { continue };
        let mut now = problem.today.clone();
        for action in &sequence.actions {
            action.apply(&mut now);
            let wrong = faults(&problem, &now, Standard::Provisional);
            assert!(wrong.is_empty(), "seed {seed}: {specification}\nafter {action}: {wrong:?}\n{sequence:#?}");
        }
        assert_eq!(now, second.target, "seed {seed}");
        assert_eq!(faults(&problem, &now, Standard::Correct), []);
        moved += i32::from(!sequence.actions.is_empty());
    }
    assert!(moved > 100, "{moved}");
}
