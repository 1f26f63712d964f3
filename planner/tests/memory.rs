//! Planning again from a memory gives the same values as planning from nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod random;

use planner::memory::Memory;
use planner::plan::Status;
use planner::plan::{plan, plan_again};
use planner::zephyrus::read;
use random::{Dice, Sample, sample};

#[test]
fn what_is_remembered_of_another_problem_never_changes_the_answer() {
    let mut memory = Memory::default();
    let mut feasible = 0;
    for seed in 50_000..51_000 {
        // Types and classes have the same names in all of them, and little else in common.
        let Sample { problem, specification } = sample(&mut Dice::new(seed));
        let fresh = plan(&problem, &mut |_| true).unwrap();
        let again = plan_again(&problem, &mut memory, &mut |_| true).unwrap();
        let same = plan_again(&problem, &mut memory, &mut |_| true).unwrap();
        for warm in [&again, &same] {
            assert_eq!(warm.status, fresh.status, "seed {seed}: {specification}");
            assert_eq!(warm.objectives, fresh.objectives, "seed {seed}: {specification}");
        }
        feasible += i32::from(fresh.has_target());
    }
    assert!(feasible > 300, "{feasible}");
}

#[test]
fn the_same_problem_again_takes_fewer_steps() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/instances/16-scaled-500-nodes-200-instances.json");
    let problem = read(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut memory = Memory::default();
    let mut steps = || {
        let mut steps = 0;
        let plan = plan_again(&problem, &mut memory, &mut |progress| {
            steps = progress.steps;
            true
        });
        assert_eq!(plan.unwrap().status, Status::Optimal);
        steps
    };
    let (first, again) = (steps(), steps());
    assert!(again < first, "{again} {first}");
}
