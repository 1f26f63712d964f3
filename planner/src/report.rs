//! A plan as a person or a program reads it.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::configuration::Node;
use crate::plan::{Plan, PlanError, Status, plan};
use crate::problem::Problem;
use crate::sequence::{Action, Circle, Sequence};
use crate::solve::watch::Progress;
use crate::zephyrus::{ReadError, read};

/// A plan next to the problem that it answers. `Display` is a table for people.
#[derive(Clone, Debug)]
pub struct Report {
    pub problem: Problem,
    pub plan: Plan,
}

/// Why a problem file has no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptimizeError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// Reads a problem in Zephyrus2's format and solves it. `go_on` is told about progress and asked whether to continue.
pub fn optimize(text: &str, go_on: &mut dyn FnMut(&Progress) -> bool) -> Result<Report, OptimizeError> {
    let problem = read(text)?;
    let plan = plan(&problem, go_on)?;
    Ok(Report { problem, plan })
}

impl Report {
    /// Whether the answer is proven optimal: exit code 0; otherwise 1.
    pub fn is_optimal(&self) -> bool {
        self.plan.status == Status::Optimal
    }

    /// The answer for programs. The time is the caller's to measure.
    pub fn to_json(&self, seconds: f64) -> Value {
        let plan = &self.plan;
        let mut object = Map::new();
        object.insert("status".to_owned(), json!(plan.status.word()));
        if plan.has_target() {
            object.insert("cost".to_owned(), number(plan.cost));
            let values = plan.objectives.iter().map(|objective| number(objective.value)).collect();
            object.insert("objectives".to_owned(), Value::Array(values));
            object.insert("locations".to_owned(), Value::Array(self.locations_json()));
            object.insert("bindings".to_owned(), Value::Array(self.bindings_json()));
            if !plan.binding_values.is_empty() {
                let values = plan.binding_values.iter().map(|value| number(*value)).collect();
                object.insert("binding_objectives".to_owned(), Value::Array(values));
            }
            if let Some(Ok(sequence)) = self.sequence() {
                let steps: Vec<String> = sequence.actions.iter().map(|action| self.step(action)).collect();
                object.insert("steps".to_owned(), json!(steps));
                object.insert("strategy".to_owned(), json!(sequence.strategy().to_string()));
            }
        }
        object.insert("bound".to_owned(), plan.first_bound().map_or(Value::Null, number));
        if let Some(gap) = plan.gap() {
            object.insert("gap".to_owned(), number(gap));
        }
        if matches!(plan.status, Status::Feasible | Status::Unknown) {
            object.insert("reason".to_owned(), json!(plan.reason()));
        }
        if plan.status == Status::Infeasible {
            object.insert("contradiction".to_owned(), json!(plan.contradiction.demands));
            object.insert("because".to_owned(), json!(plan.contradiction.because));
            object.insert("smallest".to_owned(), json!(plan.contradiction.smallest));
        }
        object.insert("seconds".to_owned(), json!(seconds));
        Value::Object(object)
    }

    fn locations_json(&self) -> Vec<Value> {
        let used = self.used();
        used.iter()
            .map(|(node, counts)| {
                let components: Map<String, Value> =
                    counts.iter().map(|(kind, count)| ((*kind).to_owned(), json!(count))).collect();
                json!({
                    "type": self.problem.classes[node.class].name,
                    "index": node.index,
                    "components": components,
                })
            })
            .collect()
    }

    fn bindings_json(&self) -> Vec<Value> {
        let bindings = self.plan.target.bindings.iter();
        bindings
            .map(|binding| json!({ "port": binding.port, "client": binding.client.0, "provider": binding.provider.0 }))
            .collect()
    }

    /// Used nodes and how many of each type they host.
    fn used(&self) -> BTreeMap<Node, BTreeMap<&str, i64>> {
        let mut used: BTreeMap<Node, BTreeMap<&str, i64>> = BTreeMap::new();
        for component in self.plan.target.components.values() {
            let name = self.problem.types[component.kind].name.as_str();
            *used.entry(component.node).or_default().entry(name).or_insert(0) += 1;
        }
        used
    }
}

impl Status {
    /// As it is written in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Optimal => "optimal",
            Self::Feasible => "feasible",
            Self::Infeasible => "infeasible",
            Self::Unknown => "unknown",
        }
    }
}

impl Plan {
    /// The bound of the first goal that is not proven; of the first goal, if all are.
    pub fn first_bound(&self) -> Option<i128> {
        let open = self.objectives.iter().find(|objective| objective.bound != Some(objective.value));
        open.or(self.objectives.first()).map_or(self.bound, |objective| objective.bound)
    }

    /// Why the answer is not proven.
    pub fn reason(&self) -> String {
        self.unfinished.map_or_else(|| "it is not proven".to_owned(), |reason| reason.to_string())
    }

    /// How far the first unproven goal may be from its optimum.
    pub fn gap(&self) -> Option<i128> {
        let open = self.objectives.iter().find(|objective| objective.bound != Some(objective.value))?;
        open.bound.map(|bound| open.value - bound)
    }
}

fn number(value: i128) -> Value {
    i64::try_from(value).map_or_else(|_| json!(value.to_string()), |value| json!(value))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = &self.plan;
        match plan.status {
            Status::Optimal => writeln!(f, "optimal: proven, nothing is better")?,
            Status::Feasible => writeln!(f, "feasible: {}; a better answer may exist", plan.reason())?,
            Status::Unknown => writeln!(f, "unknown: {}; no answer was found", plan.reason())?,
            Status::Infeasible => write!(f, "infeasible: {}", plan.contradiction)?,
        }
        if let (Status::Unknown, Some(bound)) = (plan.status, plan.bound) {
            writeln!(f, "proven: every answer costs at least {bound} by the first goal")?;
        }
        if !plan.has_target() {
            return Ok(());
        }
        writeln!(f, "cost {}", plan.cost)?;
        for objective in &plan.objectives {
            write!(f, "  {} = {}", objective.text, objective.value)?;
            match objective.bound {
                Some(bound) if bound == objective.value => writeln!(f)?,
                Some(bound) => writeln!(f, " (at least {bound}, gap {})", objective.value - bound)?,
                None => writeln!(f, " (not proven)")?,
            }
        }
        self.write_nodes(f)?;
        let bindings = plan.target.bindings.len();
        writeln!(f, "{bindings} bindings")?;
        for binding in &plan.target.bindings {
            writeln!(f, "  {} {} → {}", binding.client, binding.port, binding.provider)?;
        }
        self.write_steps(f)
    }
}

impl Report {
    /// How to get there from what there is; nothing if there is nothing yet.
    fn sequence(&self) -> Option<Result<Sequence, Circle>> {
        (!self.problem.today.components.is_empty()).then(|| self.plan.sequence(&self.problem))
    }

    /// A step, and where a new component lives.
    fn step(&self, action: &Action) -> String {
        match action {
            Action::New { name, component, .. } => {
                let class = &self.problem.classes[component.node.class];
                let new = format!("new {name}");
                let text = action.to_string();
                let with = text.strip_prefix(&new).unwrap_or_default();
                format!("{new} on {}[{}]{with}", class.name, component.node.index)
            }
            Action::Bind(_) | Action::Unbind(_) | Action::Delete(_) => action.to_string(),
        }
    }

    fn write_steps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sequence() {
            None => Ok(()),
            Some(Err(circle)) => writeln!(f, "no steps: {circle}"),
            Some(Ok(sequence)) if sequence.actions.is_empty() => writeln!(f, "no steps: it is there already"),
            Some(Ok(sequence)) => {
                let number = sequence.actions.len();
                writeln!(f, "{number} {}, {}", if number == 1 { "step" } else { "steps" }, sequence.strategy())?;
                sequence.actions.iter().try_for_each(|action| writeln!(f, "  {}", self.step(action)))
            }
        }
    }

    fn write_nodes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.used();
        let rows: Vec<(String, String, String)> = used
            .iter()
            .map(|(node, counts)| {
                let class = &self.problem.classes[node.class];
                let components: Vec<String> = counts
                    .iter()
                    .map(|(kind, count)| if *count == 1 { (*kind).to_owned() } else { format!("{count} {kind}") })
                    .collect();
                (format!("{}[{}]", class.name, node.index), class.cost.to_string(), components.join(", "))
            })
            .collect();
        let wide = |column: fn(&(String, String, String)) -> usize| rows.iter().map(column).max().unwrap_or(0);
        let (name, cost) = (wide(|row| row.0.chars().count()).max(4), wide(|row| row.1.len()).max(4));
        writeln!(f, "{} nodes", rows.len())?;
        writeln!(f, "  {:name$}  {:>cost$}  components", "node", "cost")?;
        for (node, price, components) in &rows {
            writeln!(f, "  {node:name$}  {price:>cost$}  {components}")?;
        }
        Ok(())
    }
}
