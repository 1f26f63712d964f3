//! Where components go when their file leaves it open: proven best by what the file prefers, at least cost if it does not
//! say.
//!
//! Each group of components becomes a type of the planner, each group of VMs a class of nodes, and whatever the file says
//! about places a demand. Components that exist stay where they are unless something that matters more moves them.

mod posing;
mod wording;

use crate::{
    Application, Existing,
    expansion::{Choice, Expansion, Key, Objective, Reference},
    problem::Findings,
    source::Span,
};
use planner::{
    Progress,
    configuration::{ComponentName, Node},
    explain::Contradiction,
    plan::{Plan, Status, TradeOff, plan, trade_offs},
    problem::Problem,
};
use posing::Posing;
use protocol::Name;
use std::collections::{BTreeMap, BTreeSet};

/// What the planner decided.
pub(crate) struct Chosen {
    /// How many there are of each group.
    pub(crate) counts: BTreeMap<Name, u32>,
    /// The VM of each component.
    pub(crate) places: BTreeMap<Key, Key>,
    /// Who is bound to whom, where the file prefers something about that.
    pub(crate) bound: Option<Bound>,
    pub(crate) choice: Choice,
}

/// The providers of imports that the planner chose.
pub(crate) struct Bound(BTreeMap<Key, BTreeMap<Name, Vec<Reference>>>);

impl Bound {
    /// What was there before, as if these bindings had been there: wiring keeps what it finds.
    pub(crate) fn over(self, before: Option<&Expansion>, application: &Name) -> Expansion {
        let mut hinted = before.cloned().unwrap_or_else(|| Expansion::empty(application.clone()));
        for (key, imports) in self.0 {
            let vm = Key::new(&key.group, 0);
            let known = hinted.components.entry(key);
            known.or_insert(crate::expansion::Component { vm, bound: BTreeMap::new() }).bound.extend(imports);
        }
        hinted
    }
}

/// Finds the best placement; where there is none, says why.
pub(crate) fn choose(
    application: &Application,
    existing: &Existing<'_>,
    go_on: &mut dyn FnMut(&Progress) -> bool,
    findings: &mut Findings,
) -> Option<Chosen> {
    let posing = Posing::new(application, existing.before);
    let mut counts: Vec<Option<u32>> =
        posing.groups.iter().map(|(_, it)| (!it.as_needed).then_some(it.count)).collect();
    let mut problem = posing.problem(&counts, findings)?;
    let mut found = posing.solved(&problem, go_on, findings)?;
    let mut proven = found.status == Status::Optimal;
    if counts.contains(&None) {
        // A group that shrinks loses the highest, so who can stay is known only when it is known how many there are.
        counts = (0..counts.len()).map(|kind| u32::try_from(placed(&found, kind).count()).ok()).collect();
        problem = posing.problem(&counts, findings)?;
        found = posing.solved(&problem, go_on, findings)?;
        // How many there are was decided before, and is not asked again.
        proven &= found.status == Status::Optimal;
    }
    let mut chosen = posing.chosen(&problem, &found);
    chosen.choice.proven = proven;
    Some(chosen)
}

/// Tells of constraints and preferences that make no sense, where the planner is not asked.
pub(crate) fn look_at_texts(application: &Application, findings: &mut Findings) {
    let posing = Posing::new(application, None);
    let types: Vec<_> = (0..posing.groups.len()).map(|kind| posing.component_type(kind)).collect();
    let classes: Vec<_> = (0..posing.vms.len()).map(|class| posing.class(class)).collect();
    posing.requirements(&types, &classes, findings);
}

impl Application {
    /// The cheapest placement, and dearer ones that stop fewer of the components that run.
    pub fn trade_offs(&self, existing: &Existing<'_>, rows_max: usize) -> Result<Vec<TradeOff>, crate::Problems> {
        let mut findings = self.findings.clone();
        let posing = Posing::new(self, existing.before);
        let counts: Vec<Option<u32>> =
            posing.groups.iter().map(|(_, it)| (!it.as_needed).then_some(it.count)).collect();
        let problem = posing.problem(&counts, &mut findings);
        findings.conclude(&self.sources)?;
        let rows = problem.map(|problem| trade_offs(&problem, rows_max, &mut |_| true));
        let fixed = i128::from(posing.fixed_cost());
        let rows = rows.and_then(Result::ok).unwrap_or_default();
        Ok(rows.into_iter().map(|it| TradeOff { cost: it.cost + fixed, ..it }).collect())
    }
}

/// The components of a type, with their names and nodes.
fn placed(plan: &Plan, kind: usize) -> impl Iterator<Item = (&ComponentName, Node)> {
    plan.target.components.iter().filter(move |(_, it)| it.kind == kind).map(|(name, it)| (name, it.node))
}

impl Posing<'_> {
    /// The best answer; if there is none, it is told why.
    fn solved(
        &self,
        problem: &Problem,
        go_on: &mut dyn FnMut(&Progress) -> bool,
        findings: &mut Findings,
    ) -> Option<Plan> {
        let says = match plan(problem, go_on) {
            Ok(found) if found.has_target() => return Some(found),
            Ok(found) if found.status == Status::Infeasible => self.contradicted(&found.contradiction),
            Ok(_) => "no placement was found in the given time (give it more, or say `on:` for some)".into(),
            Err(error) => format!("the planner fails: {error}"),
        };
        findings.add(self.span(), says);
        None
    }

    /// Why there is no placement, in one line.
    fn contradicted(&self, found: &Contradiction) -> String {
        let told =
            |sentences: &[String]| sentences.iter().map(|it| self.in_their_words(it)).collect::<Vec<_>>().join("; ");
        let head = match found.smallest {
            true => "there is no placement; a smallest set of demands that cannot hold together",
            false => "there is no placement; these cannot hold together",
        };
        let granted =
            if found.granted.is_empty() { String::new() } else { format!(", given that {}", told(&found.granted)) };
        let because = if found.because.is_empty() { String::new() } else { format!(" ({})", told(&found.because)) };
        format!("{head}: {}{granted}{because}", told(&found.demands))
    }

    /// Gives everybody a key: whoever stays keeps its own, whoever is new takes the lowest that is free.
    fn chosen(&self, problem: &Problem, found: &Plan) -> Chosen {
        let mut keys: BTreeMap<&ComponentName, Key> = BTreeMap::new();
        let mut places = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for (kind, (name, _)) in self.groups.iter().enumerate() {
            let own: BTreeMap<&ComponentName, Node> = placed(found, kind).collect();
            let stays: BTreeMap<&ComponentName, Key> = own
                .keys()
                .filter(|it| problem.today.components.contains_key(**it))
                .filter_map(|it| Some((*it, it.0.parse::<Key>().ok()?)))
                .collect();
            let taken: BTreeSet<u32> = stays.values().map(|it| it.index).collect();
            let mut free = (0..).filter(|index| !taken.contains(index));
            for (component, node) in &own {
                let key = match stays.get(component) {
                    Some(key) => key.clone(),
                    None => Key::new(name, free.next().unwrap_or(u32::MAX)),
                };
                let vm = Key::new(self.vms[node.class].0, u32::try_from(node.index).unwrap_or(u32::MAX));
                places.insert(key.clone(), vm);
                keys.insert(component, key);
            }
            counts.insert((*name).clone(), u32::try_from(own.len()).unwrap_or(u32::MAX));
        }
        let mut bound: BTreeMap<Key, BTreeMap<Name, Vec<Reference>>> = BTreeMap::new();
        for binding in &found.target.bindings {
            let Some(kind) = found.target.components.get(&binding.client).map(|it| it.kind) else { continue };
            let import = self.ports.iter().find(|((client, _), (port, _))| *client == kind && *port == binding.port);
            let (Some(((_, import), _)), Some(client), Some(provider)) =
                (import, keys.get(&binding.client), keys.get(&binding.provider))
            else {
                continue;
            };
            let provider = Reference { application: None, key: provider.clone() };
            bound.entry(client.clone()).or_default().entry((*import).clone()).or_default().push(provider);
        }
        let number = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
        let objective = |it: &planner::plan::Objective| {
            let fixed = if it.text == "cost" { self.fixed_cost() } else { 0 };
            let total = |value: i128| number(value).saturating_add(fixed);
            Objective { text: self.in_their_words(&it.text), value: total(it.value), bound: it.bound.map(total) }
        };
        let choice = Choice {
            cost: number(found.cost).saturating_add(self.fixed_cost()),
            proven: found.status == Status::Optimal,
            objectives: found.objectives.iter().map(objective).collect(),
            scarce: self.is_scarce(&places),
        };
        let bound = (!problem.requirements.binding_goals.is_empty()).then_some(Bound(bound));
        Chosen { counts, places, bound, choice }
    }

    /// Whether there is no room for what comes beside what goes.
    fn is_scarce(&self, places: &BTreeMap<Key, Key>) -> bool {
        let before = self.before.into_iter().flat_map(|it| &it.components).map(|(key, it)| (key, &it.vm));
        let all: BTreeSet<(&Key, &Key)> = before.chain(places).collect();
        let mut used: BTreeMap<(&Key, &str), u64> = BTreeMap::new();
        for (key, vm) in all {
            let now = self.application.components.get(&key.group).map(|it| &self.application.type_of(it).resources);
            let then = || self.before.and_then(|it| it.definitions.get(&key.group)).map(|it| &it.resources);
            for (name, amount) in now.or_else(then).into_iter().flatten() {
                let sum = used.entry((vm, name)).or_default();
                *sum = sum.saturating_add(*amount);
            }
        }
        used.iter().any(|((vm, name), used)| {
            let has = self.application.vms.get(&vm.group).and_then(|it| it.resources.get(*name));
            has.is_some_and(|has| used > has)
        })
    }

    /// What a placement as a whole is about: what the file says of it, else the first group that leaves it open.
    fn span(&self) -> Span {
        let said = self.application.constraints.first().or(self.application.preferences.first()).map(|(_, span)| *span);
        let open = self.groups.iter().find(|(_, it)| it.on.is_empty()).or(self.groups.first()).map(|(_, it)| it.span);
        said.or(open).unwrap_or(Span::beginning(0))
    }
}
