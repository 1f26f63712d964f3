//! A check of what ample sets claim, on systems that are small enough to be explored without them.
//!
//! Where the explorer takes one action before all others, it claims that the action is *persistent*: whatever else happens
//! first, the action stays possible, and taking it before or after each step of that makes no difference. Here this is not
//! argued but looked at: in every world of the full graph for which the explorer makes the claim, and in every world that
//! can be reached from there without the action, both orders of the action and of every other one must lead to the same
//! world. In addition the action must not be visible: agents are as before, so that no property of agents can tell when
//! it was taken.

use super::{atlas::Atlas, orbit::Orbits, walker::Walker};
use crate::{
    Action, Scenario, World, property,
    world::{Part, Place},
};
use std::collections::HashMap;

/// What the check looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Worlds of the full graph.
    pub worlds: usize,
    /// Worlds in which the explorer claims that an action is persistent.
    pub claims: usize,
    /// Pairs of actions whose two orders were compared.
    pub pairs: usize,
}

/// Checks every claim of independence that the explorer makes in any world of a scenario. Nothing if there are more than so
/// many worlds; an error names two actions and a way to a world where the claim is wrong.
pub fn check(scenario: &Scenario, states_max: usize) -> Option<Result<Checked, String>> {
    let graph = FullGraph::build(scenario, states_max)?;
    Some(graph.check(scenario))
}

/// Every world, and where each action leads.
struct FullGraph {
    worlds: Vec<World>,
    /// How each world was first reached.
    parents: Vec<Option<(usize, Action)>>,
    /// The actions of each world, sorted, and the world that each leads to.
    next: Vec<Vec<(Action, usize)>>,
}

impl FullGraph {
    fn build(scenario: &Scenario, states_max: usize) -> Option<Self> {
        // As the explorer sees it: links drop at once what comes a second time.
        let world = scenario.world();
        let world = World::assemble(world.parts().map(|(place, part)| (place, part.clone())), false);
        let mut numbers = HashMap::from([(world.clone(), 0)]);
        let mut graph = Self { worlds: vec![world], parents: vec![None], next: Vec::new() };
        while let Some(world) = graph.worlds.get(graph.next.len()).cloned() {
            let mut next = Vec::new();
            for action in world.actions() {
                let mut after = world.clone();
                after.apply(action);
                let fresh = graph.worlds.len();
                let number = *numbers.entry(after.clone()).or_insert(fresh);
                if number == fresh {
                    graph.worlds.push(after);
                    graph.parents.push(Some((graph.next.len(), action)));
                }
                next.push((action, number));
            }
            graph.next.push(next);
            if graph.worlds.len() > states_max {
                return None;
            }
        }
        Some(graph)
    }

    fn check(&self, scenario: &Scenario) -> Result<Checked, String> {
        let disrupted = scenario.faults.stop_components() || property::loses(&scenario.lines);
        let may_stop = (!disrupted).then(|| property::may_stop(&scenario.lines));
        let (atlas, orbits) = (Atlas::new(), Orbits::default());
        let mut walker = Walker::new(&atlas, false, may_stop.as_ref(), &orbits);
        let mut checked = Checked { worlds: self.worlds.len(), ..Checked::default() };
        // For each world the actions that are claimed to be persistent, here or before an action that led here.
        let mut claimed: Vec<Vec<Action>> = vec![Vec::new(); self.worlds.len()];
        let mut open = Vec::new();
        for (number, world) in self.worlds.iter().enumerate() {
            let row = walker.row(world);
            let actions = walker.actions(&row);
            if let Some((action, _)) = walker.ample(&row, &actions) {
                checked.claims += 1;
                claimed[number].push(action);
                open.push((number, action));
            }
        }
        while let Some((number, action)) = open.pop() {
            let Some(after) = self.follow(number, action) else {
                return Err(self.complaint(number, action, "is no longer possible"));
            };
            if !looks_alike(&self.worlds[number], &self.worlds[after]) {
                return Err(self.complaint(number, action, "is visible"));
            }
            for (other, aside) in self.next[number].iter().filter(|(other, _)| *other != action) {
                checked.pairs += 1;
                let (one, two) = (self.follow(after, *other), self.follow(*aside, action));
                if one.is_none() || one != two {
                    let wrong = format!("and {other} lead to different worlds in different orders");
                    return Err(self.complaint(number, action, &wrong));
                }
                if !claimed[*aside].contains(&action) {
                    claimed[*aside].push(action);
                    open.push((*aside, action));
                }
            }
        }
        Ok(checked)
    }

    fn follow(&self, number: usize, action: Action) -> Option<usize> {
        let next = &self.next[number];
        next.binary_search_by_key(&action, |(action, _)| *action).ok().map(|place| next[place].1)
    }

    fn complaint(&self, number: usize, action: Action, wrong: &str) -> String {
        let (mut way, mut at) = (Vec::new(), number);
        while let Some((from, action)) = self.parents[at] {
            way.push(format!("  {action}"));
            at = from;
        }
        way.reverse();
        format!("{action} {wrong}, after\n{}", way.join("\n"))
    }
}

/// Whether the agents and hosts of two worlds are the same, but for a VM that is there in one only and has nothing yet.
fn looks_alike(before: &World, after: &World) -> bool {
    let is_bare = |part: &Part| match part {
        Part::Agent(agent) => agent.components().is_empty() && agent.parked().is_empty(),
        part => *part == Part::Nothing,
    };
    let same = |place: Place| {
        let (one, two) = (before.part(place), after.part(place));
        one == two || is_bare(one) && is_bare(two)
    };
    let places = before.parts().chain(after.parts()).map(|(place, _)| place);
    places.filter(|place| matches!(place, Place::Agent(_) | Place::Host(_))).all(same)
}
