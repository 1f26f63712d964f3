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

/// A dozen types of various sizes.
fn a_dozen_types(first: i64) -> String {
    let mut dice = Dice::new(7);
    let (mut components, mut demands) = (Vec::new(), Vec::new());
    for number in 0..12 {
        let (cores, memory) = (1 + dice.roll(5), 100 * (1 + dice.roll(8)));
        components.push(format!(r#""m{number}": {{ "resources": {{ "Cores": {cores}, "Memory": {memory} }} }}"#));
        demands.push(format!("m{number} = {}", if number == 0 { first } else { 7 }));
    }
    let class = |cores: i64, cost: i64| {
        format!(r#"{{ "num": 900, "cost": {cost}, "resources": {{ "Cores": {cores}, "Memory": {} }} }}"#, 300 * cores)
    };
    format!(
        r#"{{ "components": {{ {} }}, "locations": {{ "a": {}, "b": {}, "c": {} }}, "specification": "{}; cost" }}"#,
        components.join(", "),
        class(4, 241),
        class(8, 478),
        class(16, 950),
        demands.join(" and ")
    )
}

#[test]
fn a_dozen_types_are_planned_again_with_fewer_steps() {
    let (before, after) = (read(&a_dozen_types(7)).unwrap(), read(&a_dozen_types(8)).unwrap());
    let mut memory = Memory::default();
    assert_eq!(plan_again(&before, &mut memory, &mut |_| true).unwrap().status, Status::Optimal);
    let (mut cold, mut warm) = (0, 0);
    let fresh = plan(&after, &mut |progress| {
        cold = progress.steps;
        true
    });
    let again = plan_again(&after, &mut memory, &mut |progress| {
        warm = progress.steps;
        true
    });
    let (fresh, again) = (fresh.unwrap(), again.unwrap());
    assert_eq!((fresh.status, again.status), (Status::Optimal, Status::Optimal));
    assert_eq!(fresh.objectives, again.objectives);
    assert!(warm < cold, "{warm} {cold}");
}
