//! The small e-mail system: one message receiver that wants three analyzers, which each need an attachment analyzer.
//! Half of it runs today; the plan completes it without touching what runs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use planner::plan::{Status, plan};
use planner::report::optimize;
use planner::sequence::Strategy;
use planner::verify::{Standard, faults};
use planner::zephyrus::read;

const HALF: &str = include_str!("../../examples/figure-one.json");

#[test]
fn the_full_configuration_is_reached_by_five_safe_steps() {
    let problem = read(HALF).unwrap();
    // Today is only provisionally correct: the receiver still lacks two analyzers.
    assert_eq!(faults(&problem, &problem.today, Standard::Provisional), []);
    assert_eq!(faults(&problem, &problem.today, Standard::Correct).len(), 1);

    let plan = plan(&problem, &mut |_| true).unwrap();
    assert_eq!(plan.status, Status::Optimal);
    let values: Vec<i128> = plan.objectives.iter().map(|objective| objective.value).collect();
    assert_eq!(values, [598, 0, 6]);

    let sequence = plan.sequence(&problem).unwrap();
    let steps: Vec<String> = sequence.actions.iter().map(ToString::to_string).collect();
    // An attachment analyzer takes two clients, so one more is needed; analyzers come with their strong binding.
    assert_eq!(
        steps,
        [
            "new AttachmentAnalyzer_0",
            "new MessageAnalyzer_0 with AA → AttachmentAnalyzer_0",
            "new MessageAnalyzer_1 with AA → AttachmentAnalyzer_0",
            "bind inst_mr MA → MessageAnalyzer_0",
            "bind inst_mr MA → MessageAnalyzer_1",
        ]
    );
    assert_eq!(sequence.strategy(), Strategy::UpThenDown);

    let mut now = problem.today.clone();
    for action in &sequence.actions {
        action.apply(&mut now);
        assert_eq!(faults(&problem, &now, Standard::Provisional), [], "after {action}");
    }
    assert_eq!(faults(&problem, &now, Standard::Correct), []);
    assert_eq!(now, plan.target);
}

#[test]
fn and_back_again() {
    let mut problem = read(HALF).unwrap();
    let full = plan(&problem, &mut |_| true).unwrap().target;
    // A receiver that wants only one analyzer: the rest may go.
    problem.today = full;
    problem.types[2].weak.insert("MA".to_owned(), 1);
    assert_eq!(problem.types[2].name, "MessageReceiver");
    let plan = plan(&problem, &mut |_| true).unwrap();
    assert_eq!(plan.objectives.iter().map(|objective| objective.value).collect::<Vec<_>>(), [299, 3, 3]);
    let sequence = plan.sequence(&problem).unwrap();
    assert_eq!(sequence.up().count(), 0);
    assert_eq!(sequence.down().count(), 5);
}

#[test]
fn the_steps_are_printed_with_the_answer() {
    let report = optimize(HALF, &mut |_| true).unwrap();
    assert_eq!(
        report.to_string().lines().collect::<Vec<_>>(),
        [
            "optimal: proven, nothing is better",
            "cost 598",
            "  cost = 598",
            "  stopped = 0",
            "  (sum ?x in components: ?x) = 6",
            "4 nodes",
            "  node       cost  components",
            "  large[0]    100  MessageReceiver",
            "  large[1]    100  MessageAnalyzer",
            "  xlarge[0]   199  AttachmentAnalyzer, MessageAnalyzer",
            "  xlarge[1]   199  AttachmentAnalyzer, MessageAnalyzer",
            "6 bindings",
            "  MessageAnalyzer_0 AA → AttachmentAnalyzer_0",
            "  MessageAnalyzer_1 AA → AttachmentAnalyzer_0",
            "  inst_ma AA → inst_aa",
            "  inst_mr MA → MessageAnalyzer_0",
            "  inst_mr MA → MessageAnalyzer_1",
            "  inst_mr MA → inst_ma",
            "5 steps, up then down",
            "  new AttachmentAnalyzer_0 on xlarge[1]",
            "  new MessageAnalyzer_0 on large[1] with AA → AttachmentAnalyzer_0",
            "  new MessageAnalyzer_1 on xlarge[1] with AA → AttachmentAnalyzer_0",
            "  bind inst_mr MA → MessageAnalyzer_0",
            "  bind inst_mr MA → MessageAnalyzer_1",
        ]
    );
    assert_eq!(report.to_json(0.0)["strategy"], "up then down");
    assert_eq!(report.to_json(0.0)["steps"][0], "new AttachmentAnalyzer_0 on xlarge[1]");
}
