//! Where components go when their file leaves it open: proven best by what the file prefers, at least cost if it does not
//! say.
//!
//! Each group of components becomes a type of the planner, each group of VMs a class of nodes, and whatever the file says
//! about places a demand. Components that exist stay where they are unless something that matters more moves them.

use crate::{
    Application, Surroundings,
    application::{ComponentGroup, Target, VmGroup, Way},
    component_type::{NeedSort, TypeImport},
    expansion::{Choice, Expansion, Key, Objective, Reference},
    nearest::hint,
    problem::Findings,
    source::Span,
};
use planner::{
    Progress,
    configuration::{Binding, Component, ComponentName, Configuration, Node},
    language::{TextComplaint, Wish, WishText},
    plan::{Plan, Status, TradeOff, plan, trade_offs},
    problem::{AMOUNT_MAX, ComponentType, NodeClass, Problem, Provision},
};
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
    surroundings: &Surroundings<'_>,
    go_on: &mut dyn FnMut(&Progress) -> bool,
    findings: &mut Findings,
) -> Option<Chosen> {
    let posing = Posing::new(application, surroundings.before);
    let mut counts: Vec<Option<u32>> =
        posing.groups.iter().map(|(_, it)| (!it.as_needed).then_some(it.count)).collect();
    let mut problem = posing.problem(&counts, findings)?;
    let mut found = posing.solved(&problem, go_on, findings)?;
    if counts.contains(&None) {
        // A group that shrinks loses the highest, so who can stay is known only when it is known how many there are.
        counts = (0..counts.len()).map(|kind| u32::try_from(placed(&found, kind).count()).ok()).collect();
        problem = posing.problem(&counts, findings)?;
        found = posing.solved(&problem, go_on, findings)?;
    }
    Some(posing.chosen(&problem, &found))
}

impl Application {
    /// The cheapest placement, and dearer ones that stop fewer of the components that run.
    pub fn trade_offs(
        &self,
        surroundings: &Surroundings<'_>,
        rows_max: usize,
    ) -> Result<Vec<TradeOff>, crate::Problems> {
        let mut findings = self.findings.clone();
        let posing = Posing::new(self, surroundings.before);
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

/// An application in the planner's words.
struct Posing<'a> {
    application: &'a Application,
    before: Option<&'a Expansion>,
    groups: Vec<(&'a Name, &'a ComponentGroup)>,
    vms: Vec<(&'a Name, &'a VmGroup)>,
    /// The planner's words for groups, in the same order.
    group_words: Vec<String>,
    vm_words: Vec<String>,
    /// What each import that leaves a choice is called among interfaces, and who may provide it.
    ports: BTreeMap<(usize, &'a Name), (String, BTreeSet<usize>)>,
}

impl<'a> Posing<'a> {
    fn new(application: &'a Application, before: Option<&'a Expansion>) -> Self {
        let groups: Vec<_> = application.components.iter().collect();
        let vms: Vec<_> = application.vms.iter().collect();
        let group_words = words(groups.iter().map(|(name, _)| name.as_str()));
        let vm_words = words(vms.iter().map(|(name, _)| name.as_str()));
        let mut posing = Self { application, before, groups, vms, group_words, vm_words, ports: BTreeMap::new() };
        for (kind, (name, group)) in posing.groups.clone().into_iter().enumerate() {
            let mut taken: BTreeSet<String> = BTreeSet::new();
            for (import_name, import) in &application.type_of(group).imports {
                let Some(providers) = posing.providers(name, group, import_name, import) else { continue };
                let all = posing.offering(import).into_iter().filter(|it| *it != kind).collect::<BTreeSet<_>>();
                let plain = import.export.to_string();
                let port = if providers == all && taken.insert(plain.clone()) {
                    plain
                } else {
                    format!("{} for {name}.{import_name}", import.export)
                };
                posing.ports.insert((kind, import_name), (port, providers));
            }
        }
        posing
    }

    /// The groups that have an export.
    fn offering(&self, import: &TypeImport) -> Vec<usize> {
        let has = |group: &ComponentGroup| self.application.type_of(group).exports.contains_key(&import.export);
        (0..self.groups.len()).filter(|place| has(self.groups[*place].1)).collect()
    }

    /// The groups that may provide an import, if it takes some of them, whichever.
    fn providers(
        &self,
        name: &Name,
        group: &ComponentGroup,
        import_name: &Name,
        import: &TypeImport,
    ) -> Option<BTreeSet<usize>> {
        import.number.filter(|it| *it > 0)?;
        let wiring = group.wiring.get(import_name);
        if wiring.and_then(|it| it.way).is_some_and(|way| way != Way::One) {
            return None;
        }
        let named = wiring.map_or(&[][..], |it| &it.to);
        if named.is_empty() {
            return Some(self.offering(import).into_iter().filter(|it| self.groups[*it].0 != name).collect());
        }
        let some = named.len() == 1 || wiring.and_then(|it| it.way) == Some(Way::One);
        let whole = |it: &Target| it.application.is_none() && it.index.is_none();
        if !some || !named.iter().all(whole) {
            return None;
        }
        let place = |it: &Target| self.groups.iter().position(|(name, _)| **name == it.group);
        named.iter().map(place).collect()
    }

    /// What the planner is asked; nothing if the texts of the file make no sense, which is told.
    fn problem(&self, counts: &[Option<u32>], findings: &mut Findings) -> Option<Problem> {
        let types: Vec<ComponentType> = (0..self.groups.len()).map(|kind| self.component_type(kind)).collect();
        let classes: Vec<NodeClass> = (0..self.vms.len()).map(|class| self.class(class)).collect();
        let known = findings.count();
        let mut wish = Wish::default();
        for (text, says) in self.own_demands(counts) {
            let read = Wish::read(&WishText { constraints: vec![&text], ..WishText::default() }, &types, &classes);
            let demands = read.map(|it| it.demands).unwrap_or_default();
            wish.demands.extend(demands.into_iter().map(|it| planner::language::Demand { text: says.clone(), ..it }));
        }
        for (text, span) in &self.application.constraints {
            let translated = self.translated(text);
            let written = WishText { constraints: vec![&translated], ..WishText::default() };
            match Wish::read(&written, &types, &classes) {
                Ok(read) => wish.demands.extend(read.demands),
                Err(complaints) => self.complain(text, *span, &complaints, findings),
            }
        }
        for (text, span) in &self.application.preferences {
            let translated = self.translated(text);
            let about_bindings = translated.trim() == "local" || translated.contains("bind(");
            let written = match about_bindings {
                true => WishText { binding_preferences: vec![&translated], ..WishText::default() },
                false => WishText { preferences: vec![&translated], ..WishText::default() },
            };
            match Wish::read(&written, &types, &classes) {
                Ok(read) if about_bindings => wish.binding_goals.extend(read.binding_goals),
                Ok(read) => wish.goals.extend(read.goals),
                Err(complaints) => self.complain(text, *span, &complaints, findings),
            }
        }
        if findings.count() > known {
            return None;
        }
        // What nobody says: cost matters first, then how much there is; and the least disturbance always decides last.
        let mut usual = Vec::new();
        if wish.goals.is_empty() {
            usual.push("cost");
            usual.extend(counts.contains(&None).then_some("(sum ?x in components: ?x)"));
        }
        if !wish.goals.iter().any(|it| it.text == "stopped") {
            usual.push("stopped");
        }
        let usual = Wish::read(&WishText { preferences: usual, ..WishText::default() }, &types, &classes);
        wish.goals.extend(usual.map(|it| it.goals).unwrap_or_default());
        let today = self.today(counts, &types, &classes);
        match Problem::new(types, classes, today, wish) {
            Ok(problem) => Some(problem),
            Err(misfits) => {
                let says = misfits.iter().map(|it| self.in_their_words(&it.to_string())).collect::<Vec<_>>();
                findings.add(self.span(), format!("the planner cannot be asked: {}", says.join("; ")));
                None
            }
        }
    }

    fn component_type(&self, kind: usize) -> ComponentType {
        let component_type = self.application.type_of(self.groups[kind].1);
        let (mut strong, mut weak) = (BTreeMap::new(), BTreeMap::new());
        for (name, import) in &component_type.imports {
            let Some((port, _)) = self.ports.get(&(kind, name)) else { continue };
            let needs = if import.sort == NeedSort::Strong { &mut strong } else { &mut weak };
            needs.insert(port.clone(), i64::from(import.number.unwrap_or(0)));
        }
        let provision = |(name, export): (&Name, &protocol::Export)| {
            let mine = self.ports.iter().filter(|((client, import), (_, providers))| {
                let client = self.application.type_of(self.groups[*client].1);
                providers.contains(&kind) && client.imports[*import].export == *name
            });
            let ports: BTreeSet<String> = mine.map(|(_, (port, _))| port.clone()).collect();
            (!ports.is_empty()).then(|| Provision { ports, capacity: export.capacity.map(i64::from) })
        };
        ComponentType {
            name: self.group_words[kind].clone(),
            resources: component_type
                .resources
                .iter()
                .map(|(name, amount)| (name.clone(), amount_of(*amount)))
                .collect(),
            strong,
            weak,
            provides: component_type.exports.iter().filter_map(provision).collect(),
            conflicts: BTreeSet::new(),
        }
    }

    fn class(&self, class: usize) -> NodeClass {
        let group = self.vms[class].1;
        let used = self.groups.iter().flat_map(|(_, it)| self.application.type_of(it).resources.keys());
        // What a VM does not list is not counted there.
        let has = |name: &String| group.resources.get(name).map_or(AMOUNT_MAX, |amount| amount_of(*amount));
        NodeClass {
            name: self.vm_words[class].clone(),
            number: i64::from(group.count),
            resources: used.map(|name| (name.clone(), has(name))).collect(),
            // What is there in any case costs nothing more when it is used.
            cost: if group.as_needed { amount_of(group.cost) } else { 0 },
        }
    }

    fn fixed_cost(&self) -> i64 {
        let fixed = self.vms.iter().filter(|(_, it)| !it.as_needed);
        fixed.fold(0, |sum, (_, it)| sum.saturating_add(amount_of(it.cost).saturating_mul(i64::from(it.count))))
    }

    /// What the file says outside of its constraints, as a formula and as people say it.
    fn own_demands(&self, counts: &[Option<u32>]) -> Vec<(String, String)> {
        let mut demands = Vec::new();
        for (kind, (name, group)) in self.groups.iter().enumerate() {
            let word = &self.group_words[kind];
            if let Some(count) = counts[kind] {
                demands.push((format!("{word} = {count}"), format!("there are {count} {name}")));
            }
            if !group.on.is_empty() {
                let class = |it: &Target| self.vms.iter().position(|(name, _)| **name == it.group);
                let part = |it: &Target| {
                    let vm = &self.vm_words[class(it)?];
                    Some(match it.index {
                        Some(index) => format!("{vm}[{index}].{word}"),
                        None => format!("(sum ?vm in '{vm}' : ?vm.{word})"),
                    })
                };
                let places: BTreeSet<String> = group.on.iter().filter_map(part).collect();
                let places: Vec<String> = places.into_iter().collect();
                let named: Vec<String> = group.on.iter().map(Target::to_string).collect();
                demands
                    .push((format!("{} = {word}", places.join(" + ")), format!("{name} is on {}", named.join(", "))));
            }
        }
        for (one, (one_name, one_group)) in self.groups.iter().enumerate() {
            for (other, (other_name, other_group)) in self.groups.iter().enumerate().skip(one) {
                let conflicts = |a: &ComponentGroup, b: &ComponentGroup| {
                    self.application.type_of(a).conflicts.iter().any(|(name, _)| *name == b.type_name)
                };
                let apart = conflicts(one_group, other_group) || conflicts(other_group, one_group);
                let (a, b) = (&self.group_words[one], &self.group_words[other]);
                match (apart, one == other, one_group.type_name == other_group.type_name) {
                    (false, _, _) => {}
                    (true, true, _) => demands.push((
                        format!("forall ?vm in locations: ?vm.{a} <= 1"),
                        format!("type {} conflicts with itself on one VM", one_group.type_name),
                    )),
                    (true, false, _) => demands.push((
                        format!("forall ?vm in locations: (?vm.{a} > 0) + (?vm.{b} > 0) <= 1"),
                        format!("the types of {one_name} and {other_name} conflict on one VM"),
                    )),
                }
            }
        }
        let mut at_port: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let ports = self.application.ports();
        for (kind, (name, _)) in self.groups.iter().enumerate() {
            ports.get(*name).into_iter().flatten().for_each(|port| at_port.entry(*port).or_default().push(kind));
        }
        for (port, kinds) in at_port {
            let sum: Vec<String> = kinds.iter().map(|kind| format!("?vm.{}", self.group_words[*kind])).collect();
            let names: Vec<&str> = kinds.iter().map(|kind| self.groups[*kind].0.as_str()).collect();
            demands.push((
                format!("forall ?vm in locations: {} <= 1", sum.join(" + ")),
                format!("only one of {} is at port {port} of a VM", names.join(", ")),
            ));
        }
        demands
    }

    /// The components that run and can stay, and the bindings among them.
    fn today(&self, counts: &[Option<u32>], types: &[ComponentType], classes: &[NodeClass]) -> Configuration {
        let mut today = Configuration::default();
        let Some(before) = self.before else { return today };
        let mut used: BTreeMap<(Node, &str), i64> = BTreeMap::new();
        for (key, component) in &before.components {
            let Some(kind) = self.groups.iter().position(|(name, _)| **name == key.group) else { continue };
            let Some(class) = self.vms.iter().position(|(name, _)| **name == component.vm.group) else { continue };
            let node = Node { class, index: i64::from(component.vm.index) };
            let stays = counts[kind].is_none_or(|count| key.index < count) && node.index < classes[class].number;
            let fits = types[kind].resources.iter().all(|(name, amount)| {
                used.get(&(node, name.as_str())).copied().unwrap_or(0) + amount <= classes[class].resources[name]
            });
            if stays && fits {
                for (name, amount) in &types[kind].resources {
                    *used.entry((node, name)).or_default() += amount;
                }
                today.components.insert(ComponentName(key.to_string()), Component { kind, node });
            }
        }
        for (key, component) in &before.components {
            let client = ComponentName(key.to_string());
            let Some(Component { kind, .. }) = today.components.get(&client).copied() else { continue };
            for (import, providers) in &component.bound {
                let Some((port, allowed)) = self.ports.get(&(kind, import)) else { continue };
                for provider in providers.iter().filter(|it| it.application.is_none()) {
                    let provider = ComponentName(provider.key.to_string());
                    let known = today.components.get(&provider).is_some_and(|it| allowed.contains(&it.kind));
                    if known {
                        today.bindings.insert(Binding { port: port.clone(), client: client.clone(), provider });
                    }
                }
            }
        }
        today
    }

    /// The best answer; if there is none, it is told why.
    fn solved(
        &self,
        problem: &Problem,
        go_on: &mut dyn FnMut(&Progress) -> bool,
        findings: &mut Findings,
    ) -> Option<Plan> {
        let says = match plan(problem, go_on) {
            Ok(found) if found.has_target() => return Some(found),
            Ok(found) if found.status == Status::Infeasible => {
                let demands: Vec<String> = found.contradiction.iter().map(|it| self.in_their_words(it)).collect();
                format!("there is no placement, because these cannot hold together: {}", demands.join("; "))
            }
            Ok(_) => "no placement was found in the given time (give it more, or say `on:` for some)".into(),
            Err(error) => format!("the planner fails: {error}"),
        };
        findings.add(self.span(), says);
        None
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
        let bound = (!problem.wish.binding_goals.is_empty()).then_some(Bound(bound));
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

    /// A misspelt name with `-` in it would be read as a subtraction: the names in a text that are none, but nearly.
    fn strangers(&self, text: &str) -> Vec<String> {
        let names =
            || self.groups.iter().map(|(name, _)| name.as_str()).chain(self.vms.iter().map(|(name, _)| name.as_str()));
        let belongs = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        let dashed =
            text.split(|letter| !belongs(letter)).filter(|word| word.contains('-') && names().all(|it| it != *word));
        let told = dashed.map(|word| (word, hint(word, names()))).filter(|(_, hint)| hint.contains("did you mean"));
        told.map(|(word, hint)| format!("there is no `{word}`{hint}")).collect()
    }

    /// A text of the file with the planner's words for names: there, `-` is minus.
    fn translated(&self, text: &str) -> String {
        self.renamed(text, |(name, word)| (name, word))
    }

    /// A text of the planner with the file's names.
    fn in_their_words(&self, text: &str) -> String {
        self.renamed(text, |(name, word)| (word, name))
    }

    fn renamed<'b>(&'b self, text: &str, order: impl Fn((&'b str, &'b str)) -> (&'b str, &'b str)) -> String {
        let groups = self.groups.iter().map(|(name, _)| name.as_str()).zip(self.group_words.iter().map(String::as_str));
        let vms = self.vms.iter().map(|(name, _)| name.as_str()).zip(self.vm_words.iter().map(String::as_str));
        let mut names: Vec<(&str, &str)> = groups.chain(vms).filter(|(name, word)| name != word).map(order).collect();
        if names.is_empty() {
            return text.into();
        }
        // A name may be part of another.
        names.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        let belongs = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        let mut done = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(belongs) {
            let (before, after) = rest.split_at(start);
            done += before;
            let end = after.find(|letter| !belongs(letter)).unwrap_or(after.len());
            let (word, after) = after.split_at(end);
            done += names.iter().find(|(from, _)| *from == word).map_or(word, |(_, to)| to);
            rest = after;
        }
        done + rest
    }

    fn complain(&self, text: &str, span: Span, complaints: &[TextComplaint], findings: &mut Findings) {
        let strangers = self.strangers(text);
        if !strangers.is_empty() {
            strangers.into_iter().for_each(|says| findings.add(span, says));
            return;
        }
        for TextComplaint { complaint, .. } in complaints {
            // The place within the text is the place in the file if the text stands there as it is, with the same names.
            let same = self.translated(text) == text;
            let place = self.application.sources.slice(span).find(text).filter(|_| same);
            let at = place.map_or(span, |offset| Span {
                start: span.start + offset + complaint.span.start,
                end: span.start + offset + complaint.span.end,
                ..span
            });
            findings.add(at, self.in_their_words(&complaint.reason));
        }
    }
}

fn amount_of(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(AMOUNT_MAX).min(AMOUNT_MAX)
}

/// Words of the planner's language for names: different ones for different names.
fn words<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut made: Vec<String> = Vec::new();
    for name in names {
        let mut word = name.replace('-', "_");
        while made.contains(&word) || planner::language::is_reserved(&word) {
            word.push('_');
        }
        made.push(word);
    }
    made
}
