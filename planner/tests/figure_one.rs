//! The small e-mail system: one message receiver that wants three analyzers, which each need an attachment analyzer.
//! Half of it runs today; the plan completes it without touching what runs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use planner::plan::{Status, plan};
use planner::sequence::Strategy;
use planner::verify::{Standard, faults};
use planner::zephyrus::read;

const HALF: &str = r#"{
  "components": {
    "MessageReceiver": { "resources": { "CPU": 2, "RAM": 4 }, "weak": { "MA": 3 },
                         "provides": [ { "ports": [ "MR" ], "num": -1 } ] },
    "MessageAnalyzer": { "resources": { "CPU": 2, "RAM": 3 }, "requires": { "AA": 1 },
                         "provides": [ { "ports": [ "MA" ], "num": -1 } ] },
    "AttachmentAnalyzer": { "resources": { "CPU": 2, "RAM": 2 },
                            "provides": [ { "ports": [ "AA" ], "num": 2 } ] }
  },
  "locations": {
    "large": { "num": 2, "resources": { "CPU": 2, "RAM": 4 }, "cost": 100 },
    "xlarge": { "num": 2, "resources": { "CPU": 4, "RAM": 8 }, "cost": 199 }
  },
  "configuration": {
    "components": {
      "inst_mr": { "type": "MessageReceiver", "location": "large", "index": 0 },
      "inst_ma": { "type": "MessageAnalyzer", "location": "xlarge", "index": 0 },
      "inst_aa": { "type": "AttachmentAnalyzer", "location": "xlarge", "index": 0 }
    },
    "bindings": [
      { "port": "MA", "client": "inst_mr", "provider": "inst_ma" },
      { "port": "AA", "client": "inst_ma", "provider": "inst_aa" }
    ]
  },
  "specification": "MessageReceiver >= 1; cost; stopped; (sum ?x in components: ?x)"
}"#;

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
