//! From today's configuration to a target, step by step, without emptying the system first.
//!
//! Whatever can stay, stays. After each step the configuration is provisionally correct; after the last it is the
//! target. New components come as soon as there is room for them and their strong providers are there; something is
//! removed only when nothing more can be added. That always gets there: what leaves is closed under strong clients, so
//! while anything is left to remove, something of it has no strong client any more; and once all of it is gone, only
//! parts of the target are left, which leave room for the rest of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::configuration::{Binding, Component, ComponentName, Configuration, Node};
use crate::problem::Problem;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create a component together with the bindings of its strong interfaces.
    New { name: ComponentName, component: Component, strong: BTreeSet<Binding> },
    /// Add a binding of a weak interface.
    Bind(Binding),
    /// Remove a binding of a weak interface.
    Unbind(Binding),
    /// Remove a component and the bindings it still has.
    Delete(ComponentName),
}

/// The steps, in an order that is always safe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    pub actions: Vec<Action>,
    /// Components that are removed and created again under the same name, because a strong provider changes.
    pub restarted: BTreeSet<ComponentName>,
}

/// How the additions and removals of a sequence meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Everything new comes before anything goes.
    UpThenDown,
    /// Everything goes before anything new comes.
    DownThenUp,
    /// They alternate, where room is scarce.
    Together,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UpThenDown => "up then down",
            Self::DownThenUp => "down then up",
            Self::Together => "together",
        })
    }
}

/// Components whose strong interfaces form a circle can neither come nor go one by one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("strong interfaces form a circle, so no order is safe: {}", .0.join(", "))]
pub struct Circle(pub Vec<String>);

impl Sequence {
    /// The additions, in order.
    pub fn up(&self) -> impl Iterator<Item = &Action> {
        self.actions.iter().filter(|action| action.is_up())
    }

    /// The removals, in order.
    pub fn down(&self) -> impl Iterator<Item = &Action> {
        self.actions.iter().filter(|action| !action.is_up())
    }

    pub fn strategy(&self) -> Strategy {
        let first_down = self.actions.iter().position(|action| !action.is_up());
        let last_up = self.actions.iter().rposition(Action::is_up);
        let first_up = self.actions.iter().position(Action::is_up);
        let last_down = self.actions.iter().rposition(|action| !action.is_up());
        if first_down.is_none() || last_up < first_down {
            Strategy::UpThenDown
        } else if first_up.is_none() || last_down < first_up {
            Strategy::DownThenUp
        } else {
            Strategy::Together
        }
    }
}

impl Action {
    fn is_up(&self) -> bool {
        matches!(self, Self::New { .. } | Self::Bind(_))
    }

    /// Carries the step out.
    pub fn apply(&self, configuration: &mut Configuration) {
        match self {
            Self::New { name, component, strong } => {
                configuration.components.insert(name.clone(), *component);
                configuration.bindings.extend(strong.iter().cloned());
            }
            Self::Bind(binding) => {
                configuration.bindings.insert(binding.clone());
            }
            Self::Unbind(binding) => {
                configuration.bindings.remove(binding);
            }
            Self::Delete(name) => {
                configuration.components.remove(name);
                configuration.bindings.retain(|binding| binding.client != *name && binding.provider != *name);
            }
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New { name, strong, .. } => {
                write!(f, "new {name}")?;
                for (number, binding) in strong.iter().enumerate() {
                    write!(f, "{} {} → {}", if number == 0 { " with" } else { "," }, binding.port, binding.provider)?;
                }
                Ok(())
            }
            Self::Bind(binding) => write!(f, "bind {} {} → {}", binding.client, binding.port, binding.provider),
            Self::Unbind(binding) => write!(f, "unbind {} {} → {}", binding.client, binding.port, binding.provider),
            Self::Delete(name) => write!(f, "delete {name}"),
        }
    }
}

/// The steps from today's configuration to `target`.
pub fn sequence(problem: &Problem, target: &Configuration) -> Result<Sequence, Circle> {
    let today = &problem.today;
    let staying = staying(problem, target);
    let restarted: BTreeSet<ComponentName> = today
        .components
        .keys()
        .filter(|name| target.components.contains_key(*name) && !staying.contains(*name))
        .cloned()
        .collect();
    let mut walk = Walk::new(problem, target, &staying);
    loop {
        let added = walk.add_components() | walk.add_bindings();
        if added {
            continue;
        }
        if walk.remove_bindings() {
            continue;
        }
        if !walk.remove_component() {
            break;
        }
    }
    let left: Vec<String> = walk.coming.iter().chain(&walk.leaving).map(ToString::to_string).collect();
    if !left.is_empty() {
        return Err(Circle(left));
    }
    Ok(Sequence { actions: walk.actions, restarted })
}

fn is_strong(problem: &Problem, configuration: &Configuration, binding: &Binding) -> bool {
    let client = configuration.components.get(&binding.client);
    client.is_some_and(|client| problem.types[client.kind].strong.contains_key(&binding.port))
}

/// Components that need not be touched: same place, same strong providers, and those stay too.
fn staying(problem: &Problem, target: &Configuration) -> BTreeSet<ComponentName> {
    let today = &problem.today;
    let strong = |configuration: &Configuration| -> BTreeMap<ComponentName, BTreeSet<Binding>> {
        let mut by_client: BTreeMap<ComponentName, BTreeSet<Binding>> = BTreeMap::new();
        for binding in configuration.bindings.iter().filter(|binding| is_strong(problem, configuration, binding)) {
            by_client.entry(binding.client.clone()).or_default().insert(binding.clone());
        }
        by_client
    };
    let (before, after) = (strong(today), strong(target));
    let mut staying: BTreeSet<ComponentName> = today
        .components
        .iter()
        .filter(|(name, component)| target.components.get(*name) == Some(*component))
        .filter(|(name, _)| before.get(*name) == after.get(*name))
        .map(|(name, _)| name.clone())
        .collect();
    loop {
        let falling: Vec<ComponentName> = staying
            .iter()
            .filter(|name| {
                let strong = before.get(*name).into_iter().flatten();
                strong.into_iter().any(|binding| !staying.contains(&binding.provider))
            })
            .cloned()
            .collect();
        if falling.is_empty() {
            return staying;
        }
        for name in falling {
            staying.remove(&name);
        }
    }
}

struct Walk<'a> {
    problem: &'a Problem,
    target: &'a Configuration,
    now: Configuration,
    /// What each inhabited node has left of each resource.
    room: BTreeMap<Node, BTreeMap<&'a str, i64>>,
    /// Clients of each stock of each component.
    clients: BTreeMap<(ComponentName, usize), i64>,
    coming: BTreeSet<ComponentName>,
    leaving: BTreeSet<ComponentName>,
    /// Strong bindings of the target by client.
    strong: BTreeMap<&'a ComponentName, BTreeSet<Binding>>,
    /// Weak bindings of the target that are not there yet.
    binding: BTreeSet<Binding>,
    actions: Vec<Action>,
}

impl<'a> Walk<'a> {
    fn new(problem: &'a Problem, target: &'a Configuration, staying: &BTreeSet<ComponentName>) -> Self {
        let not_staying = |names: &BTreeMap<ComponentName, Component>| -> BTreeSet<ComponentName> {
            names.keys().filter(|name| !staying.contains(*name)).cloned().collect()
        };
        let mut strong: BTreeMap<&ComponentName, BTreeSet<Binding>> = BTreeMap::new();
        let mut binding = BTreeSet::new();
        for wanted in &target.bindings {
            if is_strong(problem, target, wanted) {
                strong.entry(&wanted.client).or_default().insert(wanted.clone());
            } else {
                let there = problem.today.bindings.contains(wanted)
                    && staying.contains(&wanted.client)
                    && staying.contains(&wanted.provider);
                if !there {
                    binding.insert(wanted.clone());
                }
            }
        }
        let mut walk = Self {
            problem,
            target,
            now: problem.today.clone(),
            room: BTreeMap::new(),
            clients: BTreeMap::new(),
            coming: not_staying(&target.components),
            leaving: not_staying(&problem.today.components),
            strong,
            binding,
            actions: Vec::new(),
        };
        for component in problem.today.components.values() {
            walk.occupy(*component, 1);
        }
        for bound in &problem.today.bindings {
            walk.count_client(bound, 1);
        }
        walk
    }

    /// Components that have room and all their strong providers.
    fn add_components(&mut self) -> bool {
        let mut added = false;
        for name in self.coming.clone() {
            let component = self.target.components[&name];
            let strong = self.strong.get(&name).cloned().unwrap_or_default();
            let free = !self.now.components.contains_key(&name);
            let provided = strong.iter().all(|bound| {
                // A provider under this name that is about to be removed is not the one that is meant.
                self.now.components.contains_key(&bound.provider) && !self.leaving.contains(&bound.provider)
            });
            if !free || !provided || !self.fits(component) || !self.all_take(&strong) {
                continue;
            }
            self.occupy(component, 1);
            for bound in &strong {
                self.count_client(bound, 1);
            }
            self.coming.remove(&name);
            self.act(Action::New { name, component, strong });
            added = true;
        }
        added
    }

    fn add_bindings(&mut self) -> bool {
        let mut added = false;
        for wanted in self.binding.clone() {
            let there = |name: &ComponentName| self.now.components.contains_key(name) && !self.leaving.contains(name);
            let known = self.now.bindings.contains(&wanted);
            if !there(&wanted.client) || !there(&wanted.provider) {
                continue;
            }
            if !known && !self.all_take(&BTreeSet::from([wanted.clone()])) {
                continue;
            }
            self.binding.remove(&wanted);
            if !known {
                self.count_client(&wanted, 1);
                self.act(Action::Bind(wanted));
                added = true;
            }
        }
        added
    }

    /// Weak bindings that the target does not have, or whose end is about to be removed.
    fn remove_bindings(&mut self) -> bool {
        let unwanted: Vec<Binding> = self
            .now
            .bindings
            .iter()
            .filter(|bound| !is_strong(self.problem, &self.now, bound))
            .filter(|bound| {
                !self.target.bindings.contains(*bound)
                    || self.leaving.contains(&bound.client)
                    || self.leaving.contains(&bound.provider)
            })
            .cloned()
            .collect();
        for bound in &unwanted {
            self.count_client(bound, -1);
            self.act(Action::Unbind(bound.clone()));
        }
        !unwanted.is_empty()
    }

    /// A component without dependents; preferably one that takes the place of a new one.
    fn remove_component(&mut self) -> bool {
        let leaned_on: BTreeSet<&ComponentName> = self
            .now
            .bindings
            .iter()
            .filter(|bound| is_strong(self.problem, &self.now, bound))
            .map(|bound| &bound.provider)
            .collect();
        let wanted: BTreeSet<Node> = self.coming.iter().map(|name| self.target.components[name].node).collect();
        let free = self.leaving.iter().filter(|name| !leaned_on.contains(name));
        let Some(name) = free.min_by_key(|name| (!wanted.contains(&self.now.components[*name].node), *name)).cloned()
        else {
            return false;
        };
        let bindings: Vec<Binding> =
            self.now.bindings.iter().filter(|bound| bound.client == name || bound.provider == name).cloned().collect();
        for bound in &bindings {
            self.count_client(bound, -1);
        }
        self.occupy(self.now.components[&name], -1);
        self.leaving.remove(&name);
        self.act(Action::Delete(name));
        true
    }

    fn act(&mut self, action: Action) {
        action.apply(&mut self.now);
        self.actions.push(action);
    }

    fn fits(&self, component: Component) -> bool {
        let kind = &self.problem.types[component.kind];
        let class = &self.problem.classes[component.node.class];
        kind.resources.iter().all(|(resource, amount)| {
            let used = self.room.get(&component.node).and_then(|used| used.get(resource.as_str()));
            used.copied().unwrap_or(0) + amount <= class.resources.get(resource).copied().unwrap_or(0)
        })
    }

    /// Adds a component to its node, or takes it away (`sign` −1).
    fn occupy(&mut self, component: Component, sign: i64) {
        let used = self.room.entry(component.node).or_default();
        for (resource, amount) in &self.problem.types[component.kind].resources {
            *used.entry(resource).or_insert(0) += sign * amount;
        }
    }

    fn stock(&self, bound: &Binding) -> Option<(ComponentName, usize)> {
        let provider = self.now.components.get(&bound.provider)?;
        let stock = self.problem.types[provider.kind].provision_of(&bound.port)?;
        Some((bound.provider.clone(), stock))
    }

    fn count_client(&mut self, bound: &Binding, sign: i64) {
        if let Some(stock) = self.stock(bound) {
            *self.clients.entry(stock).or_insert(0) += sign;
        }
    }

    /// Whether all these providers can take one more client each.
    fn all_take(&self, bindings: &BTreeSet<Binding>) -> bool {
        let mut further: BTreeMap<(ComponentName, usize), i64> = BTreeMap::new();
        for stock in bindings.iter().filter_map(|bound| self.stock(bound)) {
            *further.entry(stock).or_insert(0) += 1;
        }
        further.iter().all(|(stock, number)| {
            let provider = self.now.components[&stock.0];
            let capacity = self.problem.types[provider.kind].provides[stock.1].capacity;
            let now = self.clients.get(stock).copied().unwrap_or(0);
            capacity.is_none_or(|capacity| now + number <= capacity)
        })
    }
}
