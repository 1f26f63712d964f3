//! The engine that solves linear programs in floating point, behind a small trait.
//!
//! Nothing it says is believed: its numbers only guide the search and suggest multipliers; every bound is computed
//! again in whole numbers (`bound`), every solution is checked exactly. A test runs the solver with an engine that lies.

use crate::model::Relation;

/// Minimise `objective · x` over rows and bounds.
#[derive(Clone, Debug, Default)]
pub struct LinearProgram {
    pub objective: Vec<f64>,
    /// Lower and upper bound of each variable; infinities are allowed.
    pub bounds: Vec<(f64, f64)>,
    pub rows: Vec<LinearRow>,
}

#[derive(Clone, Debug)]
pub struct LinearRow {
    pub terms: Vec<(usize, f64)>,
    /// Whether the sum equals `amount`; otherwise it is at least `amount`.
    pub equal: bool,
    pub amount: f64,
}

/// What an engine believes.
#[derive(Clone, Debug)]
pub enum Belief {
    /// The value of each variable at an optimum.
    Optimum(Vec<f64>),
    Infeasible,
    /// It could not tell.
    Unknown,
}

/// Solves linear programs.
pub trait Engine {
    /// An optimum of the program.
    fn solve(&mut self, program: &LinearProgram) -> Belief;

    /// A good point at which the marked variables have whole values, found with limited effort.
    fn solve_whole(&mut self, program: &LinearProgram, whole: &[bool], effort: u64) -> Belief;

    /// As [`Engine::solve`], for a program to which rows will be added.
    fn begin(&mut self, program: &LinearProgram) -> Belief {
        self.solve(program)
    }

    /// An optimum of the program of the last [`Engine::begin`] with these rows and those added before; `None` if the engine can
    /// only start afresh.
    fn extended(&mut self, rows: &[LinearRow]) -> Option<Belief> {
        let _ = rows;
        None
    }
}

/// The default engine.
#[derive(Debug, Default)]
pub struct Microlp {
    /// The optimum of the program that rows are added to.
    last: Option<(microlp::Solution, Vec<microlp::Variable>)>,
}

impl Engine for Microlp {
    fn solve(&mut self, program: &LinearProgram) -> Belief {
        run(program, &[], None).0
    }

    fn solve_whole(&mut self, program: &LinearProgram, whole: &[bool], effort: u64) -> Belief {
        run(program, whole, Some(effort)).0
    }

    fn begin(&mut self, program: &LinearProgram) -> Belief {
        let (belief, last) = run(program, &[], None);
        self.last = last;
        belief
    }

    fn extended(&mut self, rows: &[LinearRow]) -> Option<Belief> {
        let (mut solution, variables) = self.last.take()?;
        for row in rows {
            let (terms, comparison) = constraint(row, &variables);
            solution = solution.add_constraint(terms, comparison, row.amount).ok()?.into_solution().ok()?;
        }
        let values = variables.iter().map(|variable| solution.var_value(*variable)).collect();
        self.last = Some((solution, variables));
        Some(Belief::Optimum(values))
    }
}

/// What was solved, to be solved again with more rows.
type Solved = (microlp::Solution, Vec<microlp::Variable>);

fn constraint(
    row: &LinearRow,
    variables: &[microlp::Variable],
) -> (Vec<(microlp::Variable, f64)>, microlp::ComparisonOp) {
    let terms = row.terms.iter().map(|(variable, factor)| (variables[*variable], *factor)).collect();
    (terms, if row.equal { microlp::ComparisonOp::Eq } else { microlp::ComparisonOp::Ge })
}

fn run(program: &LinearProgram, marked: &[bool], effort: Option<u64>) -> (Belief, Option<Solved>) {
    let mut problem = microlp::Problem::new(microlp::OptimizationDirection::Minimize);
    let variables: Vec<microlp::Variable> = program
        .objective
        .iter()
        .zip(&program.bounds)
        .enumerate()
        .map(|(position, (cost, (low, high)))| {
            if marked.get(position) == Some(&true) {
                problem.add_integer_var(*cost, (whole(*low), whole(*high)))
            } else {
                problem.add_var(*cost, (*low, *high))
            }
        })
        .collect();
    for row in &program.rows {
        let (terms, comparison) = constraint(row, &variables);
        problem.add_constraint(terms.as_slice(), comparison, row.amount);
    }
    let mut options = microlp::SolveOptions::default();
    options.node_limit = effort;
    match problem.solve_with(options) {
        Ok(outcome) => match outcome.into_solution() {
            Ok(solution) => {
                let values = variables.iter().map(|variable| solution.var_value(*variable)).collect();
                (Belief::Optimum(values), Some((solution, variables)))
            }
            Err(_) => (Belief::Unknown, None),
        },
        Err(microlp::Error::Infeasible) => (Belief::Infeasible, None),
        Err(_) => (Belief::Unknown, None),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to the range of the target first")]
fn whole(bound: f64) -> i32 {
    bound.clamp(-2e9, 2e9) as i32
}

/// A row of the model for the engine. Its numbers are below 2^52, so nothing is lost.
pub(crate) fn linear_row(terms: &[(usize, i64)], relation: Relation, amount: i64) -> LinearRow {
    LinearRow {
        terms: terms.iter().map(|(variable, factor)| (*variable, float(*factor))).collect(),
        equal: relation == Relation::Equal,
        amount: float(amount),
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of the model are below 2^52")]
pub(crate) fn float(value: i64) -> f64 {
    value as f64
}

/// The linear program whose optimum gives the multipliers of the rows of `program` (its first variables, in order),
/// each within `limit`.
///
/// With `x = low + shift`, `0 <= shift <= width`, it maximises `Σ multiplier · slack amount − Σ width · rent` where
/// `Σ multiplier · factor − rent <= cost` for each variable; here as a minimisation.
pub(crate) fn dual(program: &LinearProgram, limit: f64) -> LinearProgram {
    let mut dual = LinearProgram::default();
    for row in &program.rows {
        let at_low: f64 = row.terms.iter().map(|(variable, factor)| factor * program.bounds[*variable].0).sum();
        dual.objective.push(at_low - row.amount);
        dual.bounds.push((if row.equal { -limit } else { 0.0 }, limit));
    }
    let mut by_variable: Vec<Vec<(usize, f64)>> = vec![Vec::new(); program.objective.len()];
    for (position, row) in program.rows.iter().enumerate() {
        for (variable, factor) in &row.terms {
            by_variable[*variable].push((position, -factor));
        }
    }
    for (variable, mut terms) in by_variable.into_iter().enumerate() {
        let (low, high) = program.bounds[variable];
        // A variable with one value only makes no demand on multipliers.
        if low >= high {
            continue;
        }
        if high.is_finite() {
            terms.push((dual.objective.len(), 1.0));
            dual.objective.push(high - low);
            dual.bounds.push((0.0, f64::INFINITY));
        }
        dual.rows.push(LinearRow { terms, equal: false, amount: -program.objective[variable] });
    }
    dual
}
