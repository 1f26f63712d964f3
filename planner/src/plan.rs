//! Plans a target: model, placement, wiring, verification; or the explanation why there is none.

use crate::configuration::Configuration;
use crate::explain::{Contradiction, contradiction};
use crate::language::{Goal, GoalMeasure};
use crate::memory::Memory;
use crate::model::{Model, ModelError, Row, Selection};
use crate::placement::placed;
use crate::problem::Problem;
use crate::sequence::{Circle, Sequence, sequence};
pub use crate::solve::Unfinished;
use crate::solve::engine::{Engine, Microlp};
use crate::solve::watch::{Progress, Watch};
use crate::solve::{Answer, GoalResult, solve, solve_from};
use crate::verify::{Fault, Standard, binding_goal_values, cost, faults, goal_values, unmet_demands};
use crate::wiring::wire;

/// What is claimed about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Proven: no answer is better.
    Optimal,
    /// An answer without a proof that it is best; [`Plan::unfinished`] says why.
    Feasible,
    /// Proven: there is no answer.
    Infeasible,
    /// Neither an answer nor a proof that there is none; [`Plan::unfinished`] says why.
    Unknown,
}

/// A goal with its value in the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objective {
    pub text: String,
    pub value: i128,
    /// No answer can be below this, given the optimum of the goals before; equal to `value` when proven.
    pub bound: Option<i128>,
}

/// The answer to a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub status: Status,
    /// Components, places and bindings; empty unless there is an answer.
    pub target: Configuration,
    pub cost: i128,
    pub objectives: Vec<Objective>,
    /// The values of the binding preferences, in order.
    pub binding_values: Vec<i128>,
    /// Whether the bindings are proven best by the binding preferences.
    pub bindings_proven: bool,
    /// A bound for the first goal, when no answer was found in time.
    pub bound: Option<i128>,
    /// Why a goal is not proven, if one is not.
    pub unfinished: Option<Unfinished>,
    /// Demands that cannot hold together, if there is no answer.
    pub contradiction: Contradiction,
}

/// Why no plan could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The solver's answer did not pass verification: a bug, caught before it could do harm.
    #[error("the answer did not pass verification: {}", lines(.0))]
    Unverified(Vec<Fault>),
}

fn lines(faults: &[Fault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Finds the best target for a problem. `go_on` is told about progress and asked whether to continue.
pub fn plan(problem: &Problem, go_on: &mut dyn FnMut(&Progress) -> bool) -> Result<Plan, PlanError> {
    plan_with(problem, &mut Microlp::default(), go_on)
}

/// As [`plan`], starting from what is remembered of a similar problem; afterwards this one is remembered.
pub fn plan_again(
    problem: &Problem,
    memory: &mut Memory,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Plan, PlanError> {
    planned(problem, memory, &mut Microlp::default(), go_on)
}

/// As [`plan`], with another engine for linear programs.
pub fn plan_with(
    problem: &Problem,
    engine: &mut dyn Engine,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Plan, PlanError> {
    planned(problem, &mut Memory::of_today(problem), engine, go_on)
}

fn planned(
    problem: &Problem,
    memory: &mut Memory,
    engine: &mut dyn Engine,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Plan, PlanError> {
    let mut watch = Watch::new(go_on);
    let model = Model::new(problem, &Selection::everything(problem))?;
    match solve_from(&model, &memory.seeds(problem), engine, &mut watch) {
        Answer::Infeasible => {
            Ok(Plan { contradiction: contradiction(problem, engine, &mut watch), ..Plan::without(Status::Infeasible) })
        }
        Answer::Unknown { bound, reason } => {
            Ok(Plan { bound, unfinished: Some(reason), ..Plan::without(Status::Unknown) })
        }
        Answer::Placed { uses, goals, unfinished, pool, .. } => {
            memory.learn(problem, &model, &uses, &pool);
            let mut target = placed(problem, &model, &uses);
            let Some(wired) = wire(problem, &target, engine, &mut watch) else {
                // Counts that were accepted can be wired, unless numbers are too large to compute with.
                return Ok(Plan { unfinished: Some(Unfinished::TooLarge), ..Plan::without(Status::Unknown) });
            };
            target.bindings = wired.bindings;
            Ok(Plan { unfinished, ..verified(problem, target, &goals, wired.proven)? })
        }
    }
}

/// Checks the answer against the problem and the claimed values, with code that the solver does not share.
fn verified(
    problem: &Problem,
    target: Configuration,
    goals: &[GoalResult],
    bindings_proven: bool,
) -> Result<Plan, PlanError> {
    let mut wrong = faults(problem, &target, Standard::Correct);
    wrong.extend(unmet_demands(problem, &target));
    let values = goal_values(problem, &target);
    for ((goal, value), result) in problem.requirements.goals.iter().zip(&values).zip(goals) {
        if *value != result.value {
            wrong.push(Fault(format!("`{}` is {value}, {} was claimed", goal.text, result.value)));
        }
    }
    if !wrong.is_empty() {
        return Err(PlanError::Unverified(wrong));
    }
    let objectives: Vec<Objective> = problem
        .requirements
        .goals
        .iter()
        .zip(values)
        .enumerate()
        .map(|(position, (goal, value))| {
            let bound = goals.get(position).and_then(|result| result.bound);
            Objective { text: goal.text.clone(), value, bound }
        })
        .collect();
    let proven = objectives.iter().all(|objective| objective.bound == Some(objective.value));
    Ok(Plan {
        status: if proven { Status::Optimal } else { Status::Feasible },
        cost: cost(problem, &target),
        binding_values: binding_goal_values(problem, &target),
        bindings_proven,
        bound: None,
        unfinished: None,
        contradiction: Contradiction::default(),
        objectives,
        target,
    })
}

impl Plan {
    fn without(status: Status) -> Self {
        Self {
            status,
            target: Configuration::default(),
            cost: 0,
            objectives: Vec::new(),
            binding_values: Vec::new(),
            bindings_proven: false,
            bound: None,
            unfinished: None,
            contradiction: Contradiction::default(),
        }
    }

    /// Whether there is an answer.
    pub fn has_target(&self) -> bool {
        matches!(self.status, Status::Optimal | Status::Feasible)
    }

    /// The steps from today's configuration to the target.
    pub fn sequence(&self, problem: &Problem) -> Result<Sequence, Circle> {
        sequence(problem, &self.target)
    }
}

/// One choice between cost and disruption: nothing costs less without stopping more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TradeOff {
    pub cost: i128,
    /// Today's components that do not stay where they are.
    pub stopped: i128,
    /// Whether both are proven.
    pub proven: bool,
}

/// The cheapest answer and dearer ones that stop fewer components, up to `rows_max` of them.
pub fn trade_offs(
    problem: &Problem,
    rows_max: usize,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Vec<TradeOff>, PlanError> {
    let mut problem = problem.clone();
    let goal = |text: &str, measure| Goal { text: text.to_owned(), measure };
    problem.requirements.goals = vec![goal("cost", GoalMeasure::Cost), goal("stopped", GoalMeasure::Stopped)];
    let mut model = Model::new(&problem, &Selection::everything(&problem))?;
    let mut watch = Watch::new(go_on);
    let mut table = Vec::new();
    while table.len() < rows_max {
        let Answer::Placed { goals, .. } = solve(&model, &mut Microlp::default(), &mut watch) else { break };
        let [cost, stopped] = goals.as_slice() else { break };
        let proven = cost.bound == Some(cost.value) && stopped.bound == Some(stopped.value);
        table.push(TradeOff { cost: cost.value, stopped: stopped.value, proven });
        // Next: strictly fewer.
        let form = model.goals[1].times(-1).add(stopped.value - 1);
        match Row::at_least(form.terms, -form.constant) {
            Some(row) if stopped.value > 0 => model.rows.push(row),
            _ => break,
        }
    }
    Ok(table)
}
