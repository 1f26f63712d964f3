//! What the planner proposes, in every order: the change that a sequence stands for keeps every property and has one end,
//! the target.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../planner/tests/random/mod.rs"]
mod random;

use model_check::{
    Line, Scenario,
    explore::{self, Settings},
    property::End,
    scenario::{Answer, Expected},
};
use planner::{
    configuration::{Binding, ComponentName, Configuration, Node},
    language::{RequirementText, Requirements},
    plan::plan,
    problem::{ComponentType, Problem, Provision},
    sequence::{self, Action, Sequence, sequence},
};
use protocol::{Change, ComponentState, Edit, Export, Import, Kind, Name, Need, Strategy, Wire, manager::Request};
use random::{Dice, Sample, sample};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Larger worlds are left to others.
const COMPONENTS_MAX: usize = 5;
const STATES_MAX: usize = 20_000;

#[test]
fn every_order_of_a_sequence_leads_to_the_target_and_nowhere_else() {
    let mut explored: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 50_000..50_800 {
        let Some(story) = Story::random(seed) else { continue };
        if story.comes_out_as_planned(&format!("seed {seed}")) {
            *explored.entry(story.change.strategy().to_string()).or_default() += 1;
        }
    }
    assert!(explored.len() == 3, "each strategy is seen: {explored:?}");
    assert!(explored.values().sum::<usize>() > 50, "{explored:?}");
}

#[test]
fn who_stays_while_its_strong_provider_moves_is_restarted_in_any_order() {
    let text = r#"{
      "components": {
        "Database": { "resources": { "cpu": 1 }, "provides": [ { "ports": ["sql"], "num": 1 } ] },
        "Web": { "resources": { "cpu": 1 }, "requires": { "sql": 1 } } },
      "locations": { "n": { "num": 2, "resources": { "cpu": 2 }, "cost": 1 } },
      "configuration": {
        "components": {
          "database": { "type": "Database", "location": "n", "index": 0 },
          "web": { "type": "Web", "location": "n", "index": 1 } },
        "bindings": [ { "port": "sql", "client": "web", "provider": "database" } ] },
      "specification": "Database = 1 and Web = 1 and n[0].Database = 0; stopped; cost"
    }"#;
    let mut problem = planner::zephyrus::read(text).unwrap();
    let today = std::mem::take(&mut problem.today);
    let story = Story::between(problem, today).unwrap();
    assert_eq!(story.change.restarted, BTreeSet::from([ComponentName("web".to_owned())]));
    assert!(story.comes_out_as_planned("restart"));
}

/// A deployment, and a change of it.
struct Story {
    problem: Problem,
    first: Sequence,
    change: Sequence,
    target: Configuration,
}

impl Story {
    /// From the answer to one edit to the answer to another one, for the same types and nodes; if both are small.
    fn random(seed: u64) -> Option<Self> {
        let mut dice = Dice::new(seed);
        let Sample { mut problem, specification } = sample(&mut dice);
        if let [provider, client, ..] = problem.types.as_mut_slice()
            && dice.one_in(2)
        {
            // One that leans on another, which makes restarts likely.
            client.weak.remove("p");
            client.strong.insert("p".to_owned(), 1);
            client.conflicts.clear();
            provider.conflicts.clear();
            if provider.provision_of("p").is_none() {
                provider.provides.push(Provision { ports: ["p".to_owned()].into(), capacity: None });
            }
        }
        let requirements = |dice: &mut Dice, problem: &Problem| {
            let kinds = problem.types.iter();
            let mut demands: Vec<String> = kinds.map(|kind| format!("{} = {}", kind.name, dice.roll(3))).collect();
            // Some node is closed to some type, so that what is there may have to move.
            let class = &problem.classes[0];
            let kind = &problem.types[usize::try_from(dice.roll(3)).unwrap() % problem.types.len()];
            demands.push(format!("{}[{}].{} = 0", class.name, dice.roll(class.number), kind.name));
            let text = format!("{}; cost; stopped", demands.join(" and "));
            Requirements::read(
                &RequirementText { specification: &text, ..RequirementText::default() },
                &problem.types,
                &problem.classes,
            )
        };
        problem.today = Configuration::default();
        problem.requirements =
            requirements(&mut dice, &problem).unwrap_or_else(|errors| panic!("{specification}: {errors:?}"));
        let first = plan(&problem, &mut |_| true).unwrap();
        problem.requirements = requirements(&mut dice, &problem).unwrap();
        first.has_target().then(|| Self::between(problem, first.target)).flatten().filter(Self::is_small)
    }

    /// From nothing to a configuration, and from there to the best one; if strong interfaces form no circle.
    fn between(mut problem: Problem, today: Configuration) -> Option<Self> {
        let first = sequence(&problem, &today).ok()?;
        problem.today = today;
        let second = plan(&problem, &mut |_| true).unwrap();
        let change = sequence(&problem, &second.target).ok().filter(|_| second.has_target())?;
        Some(Self { first, change, target: second.target, problem })
    }

    fn is_small(&self) -> bool {
        let names: BTreeSet<&ComponentName> =
            self.problem.today.components.keys().chain(self.target.components.keys()).collect();
        names.len() <= COMPONENTS_MAX && !self.change.actions.is_empty()
    }

    /// Explores every order; says whether it came to the last state.
    fn comes_out_as_planned(&self, called: &str) -> bool {
        let expected = Expected { answers: vec![Answer::Accepted; 2], ..Expected::default() };
        let scenario = Scenario { lines: self.lines(), expected, ..Scenario::default() };
        let settings = Settings { states_max: STATES_MAX, ..Settings::default() };
        let findings = explore::explore_scenario(&scenario, settings);
        let steps: Vec<String> = self.change.actions.iter().map(ToString::to_string).collect();
        let told = format!("{called}: {:?} {steps:#?}", self.change.strategy());
        assert!(findings.breach.is_none(), "{told}\n{:?}", findings.breach);
        if findings.complete {
            let ends: Vec<BTreeMap<_, _>> = findings.outcomes.iter().map(|end| described(end)).collect();
            assert_eq!(ends, [wanted(&self.target)], "{told}");
        }
        findings.complete
    }

    fn lines(&self) -> Arc<[Line]> {
        let nodes = self.problem.today.components.values().chain(self.target.components.values());
        let vms: BTreeSet<Name> = nodes.map(|component| vm(component.node)).collect();
        let mut deployment: Vec<Edit> = vms.into_iter().map(|vm| Edit::AddVm { vm }).collect();
        deployment.extend(self.edits(&self.first));
        let line = |edits, strategy| Line {
            request: Request::Make(Change { strategy, incomplete: false, edits }),
            patient: true,
        };
        let strategy = match self.change.strategy() {
            sequence::Strategy::UpThenDown => Strategy::UpThenDown,
            sequence::Strategy::DownThenUp => Strategy::DownThenUp,
            sequence::Strategy::Together => Strategy::Together,
        };
        [line(deployment, Strategy::Together), line(self.edits(&self.change), strategy)].into()
    }

    /// What the steps ask for, without their order: finding one is the protocol's part.
    fn edits(&self, sequence: &Sequence) -> Vec<Edit> {
        let goes = |component: &ComponentName| sequence.actions.contains(&Action::Delete(component.clone()));
        let mut edits = Vec::new();
        for action in &sequence.actions {
            match action {
                Action::New { name, component, strong } => {
                    let kind = Arc::new(kind(&self.problem.types[component.kind]));
                    edits.push(Edit::AddComponent { component: called(name), vm: vm(component.node), kind });
                    edits.extend(strong.iter().map(|binding| Edit::AddBinding(wire(binding))));
                }
                Action::Bind(binding) => edits.push(Edit::AddBinding(wire(binding))),
                // With a component, its bindings go by themselves.
                Action::Unbind(binding) if goes(&binding.client) || goes(&binding.provider) => {}
                Action::Unbind(binding) => edits.push(Edit::RemoveBinding(wire(binding))),
                Action::Delete(name) => edits.push(Edit::RemoveComponent { component: called(name) }),
            }
        }
        edits
    }
}

/// A component's state, and what it holds: import and provider.
type Held = (ComponentState, BTreeSet<(Name, Name)>);

fn described(end: &End) -> BTreeMap<Name, Held> {
    let held = end.iter().map(|(name, (state, holdings))| {
        let holdings = holdings.iter().map(|(import, provider, _)| (import.clone(), provider.clone()));
        (name.clone(), (*state, holdings.collect()))
    });
    held.collect()
}

fn wanted(target: &Configuration) -> BTreeMap<Name, Held> {
    let mut wanted: BTreeMap<Name, Held> =
        target.components.keys().map(|name| (called(name), (ComponentState::Started, BTreeSet::new()))).collect();
    for binding in &target.bindings {
        let held = &mut wanted.get_mut(&called(&binding.client)).unwrap().1;
        held.insert((text(&binding.port), called(&binding.provider)));
    }
    wanted
}

fn text(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn called(component: &ComponentName) -> Name {
    text(&component.0)
}

fn vm(node: Node) -> Name {
    text(&format!("vm{}-{}", node.class, node.index))
}

fn wire(binding: &Binding) -> Wire {
    let port = text(&binding.port);
    Wire { client: called(&binding.client), import: port.clone(), provider: called(&binding.provider), export: port }
}

/// A type in the protocol's words. Ports that share their places have them each: the planner is the stricter one.
fn kind(described: &ComponentType) -> Kind {
    let number = |number: &i64| u32::try_from(*number).unwrap();
    // Whoever needs nothing strongly has an import that may stay open.
    let strongly = |it: &i64| if *it == 0 { Need::Weak(0) } else { Need::Strong(number(it)) };
    let strong = described.strong.iter().map(|(port, it)| (port, strongly(it)));
    let weak = described.weak.iter().map(|(port, it)| (port, Need::Weak(number(it))));
    let import = |(port, need): (&String, Need)| (text(port), Import { export: text(port), need });
    let offers = described.provides.iter().flat_map(|offer| offer.ports.iter().map(|port| (port, offer.capacity)));
    let export = |(port, capacity): (&String, Option<i64>)| {
        (text(port), Export { capacity: capacity.as_ref().map(number), ..Export::default() })
    };
    Kind { imports: strong.chain(weak).map(import).collect(), exports: offers.map(export).collect(), ..Kind::default() }
}
