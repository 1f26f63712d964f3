//! Checks a claimed answer against the problem itself, in exact whole numbers.
//!
//! It shares no code with the solver: it looks at every node, component and binding one by one, and evaluates the requirements
//! by plain recursion. What it checks are the definitions: resources, requirements and capacities (*provisionally
//! correct*), weak requirements and conflicts (*correct*), the requirements, and the values that were claimed.

mod evaluate;

use std::collections::BTreeMap;
use std::fmt;

use crate::configuration::{ComponentName, Configuration, Node};
use crate::language::GoalMeasure;
use crate::problem::Problem;
use evaluate::Evaluator;

/// Something that a configuration gets wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which definition a configuration is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// While a change is under way: resources, strong requirements, capacities.
    Provisional,
    /// At its end: weak requirements and conflicts too.
    Correct,
}

/// Everything that is wrong with a configuration, the requirements left aside.
pub fn faults(problem: &Problem, configuration: &Configuration, standard: Standard) -> Vec<Fault> {
    let mut faults = Vec::new();
    check_nodes(problem, configuration, &mut faults);
    if !faults.is_empty() {
        return faults;
    }
    check_bindings(problem, configuration, standard, &mut faults);
    if standard == Standard::Correct {
        check_conflicts(problem, configuration, &mut faults);
    }
    faults
}

/// The demands of the requirements that do not hold.
pub fn unmet_demands(problem: &Problem, configuration: &Configuration) -> Vec<Fault> {
    let mut evaluator = Evaluator::new(problem, configuration);
    let demands = problem.requirements.demands.iter();
    let unmet = demands.filter(|demand| !evaluator.truth(&demand.term));
    unmet.map(|demand| Fault(format!("`{}` does not hold", demand.text))).collect()
}

/// The value of each goal.
pub fn goal_values(problem: &Problem, configuration: &Configuration) -> Vec<i128> {
    let mut evaluator = Evaluator::new(problem, configuration);
    let goals = problem.requirements.goals.iter();
    goals
        .map(|goal| match &goal.measure {
            GoalMeasure::Cost => cost(problem, configuration),
            GoalMeasure::Stopped => stopped(problem, configuration),
            GoalMeasure::Moved => moved(problem, configuration),
            GoalMeasure::Term(term) => evaluator.number(term),
        })
        .collect()
}

/// The value of each binding goal that is an expression; the number of local bindings for `local`.
pub fn binding_goal_values(problem: &Problem, configuration: &Configuration) -> Vec<i128> {
    use crate::language::BindingGoal;
    let mut evaluator = Evaluator::new(problem, configuration);
    let goals = problem.requirements.binding_goals.iter();
    goals
        .map(|goal| match goal {
            BindingGoal::Local => {
                let node = |name: &ComponentName| configuration.components.get(name).map(|component| component.node);
                let local = configuration.bindings.iter().filter(|bound| node(&bound.client) == node(&bound.provider));
                i128::try_from(local.count()).unwrap_or(i128::MAX)
            }
            BindingGoal::Term(term) => evaluator.number(term),
        })
        .collect()
}

/// The cost of all nodes that host something.
pub fn cost(problem: &Problem, configuration: &Configuration) -> i128 {
    let used = configuration.contents(problem.types.len());
    used.keys().map(|node| problem.classes.get(node.class).map_or(0, |class| i128::from(class.cost))).sum()
}

/// How many components of each type there are on each node, for nodes that matter here.
fn tally(configuration: &Configuration) -> BTreeMap<(usize, Node), i128> {
    let mut tally = BTreeMap::new();
    for component in configuration.components.values() {
        *tally.entry((component.kind, component.node)).or_insert(0) += 1;
    }
    tally
}

fn stopped(problem: &Problem, configuration: &Configuration) -> i128 {
    let target = tally(configuration);
    let today = tally(&problem.today);
    today.iter().map(|(place, number)| (number - target.get(place).copied().unwrap_or(0)).max(0)).sum()
}

fn moved(problem: &Problem, configuration: &Configuration) -> i128 {
    let target = tally(configuration);
    let today = tally(&problem.today);
    let mut moved = 0;
    for kind in 0..problem.types.len() {
        let of_kind = |tally: &BTreeMap<(usize, Node), i128>| -> i128 {
            tally.iter().filter(|((of, _), _)| *of == kind).map(|(_, number)| number).sum()
        };
        let stayed: i128 = today
            .iter()
            .filter(|((of, _), _)| *of == kind)
            .map(|(place, number)| target.get(place).copied().unwrap_or(0).min(*number))
            .sum();
        moved += of_kind(&today).min(of_kind(&target)) - stayed;
    }
    moved
}

fn check_nodes(problem: &Problem, configuration: &Configuration, faults: &mut Vec<Fault>) {
    let mut used: BTreeMap<(Node, &str), i128> = BTreeMap::new();
    for (name, component) in &configuration.components {
        let class = problem.classes.get(component.node.class);
        if !class.is_some_and(|class| (0..class.number).contains(&component.node.index)) {
            faults.push(Fault(format!("{name} is on a node that does not exist")));
            continue;
        }
        let Some(kind) = problem.types.get(component.kind) else {
            faults.push(Fault(format!("{name} is of a type that does not exist")));
            continue;
        };
        for (resource, amount) in &kind.resources {
            *used.entry((component.node, resource)).or_insert(0) += i128::from(*amount);
        }
    }
    for ((node, resource), used) in used {
        let class = &problem.classes[node.class];
        let available = i128::from(class.resources.get(resource).copied().unwrap_or(0));
        if used > available {
            let text = format!("{}[{}] has {available} {resource}, its components use {used}", class.name, node.index);
            faults.push(Fault(text));
        }
    }
}

fn check_bindings(problem: &Problem, configuration: &Configuration, standard: Standard, faults: &mut Vec<Fault>) {
    // How many providers each client has on each port, and how many clients each stock has.
    let mut providers: BTreeMap<(&ComponentName, &str), i128> = BTreeMap::new();
    let mut clients: BTreeMap<(&ComponentName, usize), i128> = BTreeMap::new();
    for binding in &configuration.bindings {
        let text = format!("{} uses {} on {}", binding.client, binding.provider, binding.port);
        let client = configuration.components.get(&binding.client);
        let provider = configuration.components.get(&binding.provider);
        let (Some(client), Some(provider)) = (client, provider) else {
            faults.push(Fault(format!("{text}, but one of them does not exist")));
            continue;
        };
        let kind = &problem.types[client.kind];
        if !kind.strong.contains_key(&binding.port) && !kind.weak.contains_key(&binding.port) {
            faults.push(Fault(format!("{text}, but does not require it")));
        }
        if binding.client == binding.provider {
            faults.push(Fault(format!("{text}: it provides for itself")));
        }
        let offers = &problem.types[provider.kind].provides;
        match offers.iter().position(|offer| offer.ports.contains(&binding.port)) {
            None => faults.push(Fault(format!("{text}, which does not provide it"))),
            Some(stock) => *clients.entry((&binding.provider, stock)).or_insert(0) += 1,
        }
        *providers.entry((&binding.client, &binding.port)).or_insert(0) += 1;
    }
    for (name, component) in &configuration.components {
        let kind = &problem.types[component.kind];
        let weak = if standard == Standard::Correct { Some(&kind.weak) } else { None };
        for (port, number) in kind.strong.iter().chain(weak.into_iter().flatten()) {
            let found = providers.get(&(name, port.as_str())).copied().unwrap_or(0);
            if found < i128::from(*number) {
                faults.push(Fault(format!("{name} requires {number} on {port}, it has {found}")));
            }
        }
    }
    for ((name, stock), found) in clients {
        let offer = &problem.types[configuration.components[name].kind].provides[stock];
        if offer.capacity.is_some_and(|capacity| found > i128::from(capacity)) {
            let ports: Vec<&str> = offer.ports.iter().map(String::as_str).collect();
            faults.push(Fault(format!("{name} has {found} clients on {}, more than it can take", ports.join(", "))));
        }
    }
}

fn check_conflicts(problem: &Problem, configuration: &Configuration, faults: &mut Vec<Fault>) {
    // For each port, two of its providers suffice to find one that is not the component itself.
    let mut providers: BTreeMap<&str, Vec<&ComponentName>> = BTreeMap::new();
    for (name, component) in &configuration.components {
        for offer in &problem.types[component.kind].provides {
            for port in &offer.ports {
                let known = providers.entry(port).or_default();
                if known.len() < 2 {
                    known.push(name);
                }
            }
        }
    }
    for (name, component) in &configuration.components {
        for port in &problem.types[component.kind].conflicts {
            let others = providers.get(port.as_str()).map_or(&[][..], Vec::as_slice);
            if let Some(other) = others.iter().find(|other| **other != name) {
                faults.push(Fault(format!("{name} conflicts with {port}, which {other} provides")));
            }
        }
    }
}
