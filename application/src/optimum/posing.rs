//! An application in the planner's words.

use super::wording::words;
use crate::{
    Application,
    application::{ComponentGroup, Target, VmGroup, Way},
    component_type::{NeedSort, TypeImport},
    expansion::{Expansion, Key},
    problem::Findings,
};
use planner::{
    configuration::{Binding, Component, ComponentName, Configuration, Node},
    language::{RequirementText, Requirements},
    problem::{AMOUNT_MAX, ComponentType, NodeClass, Problem, Provision},
};
use protocol::Name;
use std::collections::{BTreeMap, BTreeSet};

/// An application in the planner's words.
pub(super) struct Posing<'a> {
    pub(super) application: &'a Application,
    pub(super) before: Option<&'a Expansion>,
    pub(super) groups: Vec<(&'a Name, &'a ComponentGroup)>,
    pub(super) vms: Vec<(&'a Name, &'a VmGroup)>,
    /// The planner's words for groups, in the same order.
    pub(super) group_words: Vec<String>,
    pub(super) vm_words: Vec<String>,
    /// What each import that leaves a choice is called among interfaces, and who may provide it.
    pub(super) ports: BTreeMap<(usize, &'a Name), (String, BTreeSet<usize>)>,
}

impl<'a> Posing<'a> {
    pub(super) fn new(application: &'a Application, before: Option<&'a Expansion>) -> Self {
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
    pub(super) fn offering(&self, import: &TypeImport) -> Vec<usize> {
        let has = |group: &ComponentGroup| self.application.type_of(group).exports.contains_key(&import.export);
        (0..self.groups.len()).filter(|place| has(self.groups[*place].1)).collect()
    }

    /// The groups that may provide an import, if it takes some of them, whichever.
    pub(super) fn providers(
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
    pub(super) fn problem(&self, counts: &[Option<u32>], findings: &mut Findings) -> Option<Problem> {
        let types: Vec<ComponentType> = (0..self.groups.len()).map(|kind| self.component_type(kind)).collect();
        let classes: Vec<NodeClass> = (0..self.vms.len()).map(|class| self.class(class)).collect();
        let known = findings.count();
        let mut requirements = Requirements::default();
        for (text, says) in self.own_demands(counts) {
            let read = Requirements::read(
                &RequirementText { constraints: vec![&text], ..RequirementText::default() },
                &types,
                &classes,
            );
            let demands = read.map(|it| it.demands).unwrap_or_default();
            requirements
                .demands
                .extend(demands.into_iter().map(|it| planner::language::Demand { text: says.clone(), ..it }));
        }
        let said = self.requirements(&types, &classes, findings);
        requirements.demands.extend(said.demands);
        (requirements.goals, requirements.binding_goals) = (said.goals, said.binding_goals);
        if findings.count() > known {
            return None;
        }
        // Without preferences, cost comes first. The number of components and then the least disruption decide last.
        let mut usual = Vec::new();
        if requirements.goals.is_empty() {
            usual.push("cost");
        }
        // Counts that are left open are as small as the goals before allow.
        usual.extend(counts.contains(&None).then_some("(sum ?x in components: ?x)"));
        if !requirements.goals.iter().any(|it| it.text == "stopped") {
            usual.push("stopped");
        }
        // Where nothing is preferred, the planner would suppose something of its own.
        if !usual.is_empty() {
            let usual = Requirements::read(
                &RequirementText { preferences: usual, ..RequirementText::default() },
                &types,
                &classes,
            );
            requirements.goals.extend(usual.map(|it| it.goals).unwrap_or_default());
        }
        let today = self.today(counts, &types, &classes);
        match Problem::new(types, classes, today, requirements) {
            Ok(problem) => Some(problem),
            Err(misfits) => {
                let says = misfits.iter().map(|it| self.in_their_words(&it.to_string())).collect::<Vec<_>>();
                findings.add(self.span(), format!("the planner cannot be asked: {}", says.join("; ")));
                None
            }
        }
    }

    /// What the texts of the file demand and prefer; those that make no sense are told.
    pub(super) fn requirements(
        &self,
        types: &[ComponentType],
        classes: &[NodeClass],
        findings: &mut Findings,
    ) -> Requirements {
        let mut requirements = Requirements::default();
        for (text, span) in &self.application.constraints {
            let translated = self.translated(text);
            let written = RequirementText { constraints: vec![&translated], ..RequirementText::default() };
            match Requirements::read(&written, types, classes) {
                Ok(read) => requirements.demands.extend(read.demands),
                Err(complaints) => self.complain(text, *span, &complaints, findings),
            }
        }
        for (text, span) in &self.application.preferences {
            let translated = self.translated(text);
            let about_bindings = translated.trim() == "local" || translated.contains("bind(");
            let written = match about_bindings {
                true => RequirementText { binding_preferences: vec![&translated], ..RequirementText::default() },
                false => RequirementText { preferences: vec![&translated], ..RequirementText::default() },
            };
            match Requirements::read(&written, types, classes) {
                Ok(read) if about_bindings => requirements.binding_goals.extend(read.binding_goals),
                Ok(read) => requirements.goals.extend(read.goals),
                Err(complaints) => self.complain(text, *span, &complaints, findings),
            }
        }
        requirements
    }

    pub(super) fn component_type(&self, kind: usize) -> ComponentType {
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

    pub(super) fn class(&self, class: usize) -> NodeClass {
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

    pub(super) fn fixed_cost(&self) -> i64 {
        let fixed = self.vms.iter().filter(|(_, it)| !it.as_needed);
        fixed.fold(0, |sum, (_, it)| sum.saturating_add(amount_of(it.cost).saturating_mul(i64::from(it.count))))
    }

    /// What the file says outside of its constraints, as a formula and as people say it.
    pub(super) fn own_demands(&self, counts: &[Option<u32>]) -> Vec<(String, String)> {
        let mut demands = Vec::new();
        for (kind, (name, group)) in self.groups.iter().enumerate() {
            let word = &self.group_words[kind];
            if let Some(count) = counts[kind] {
                let are = if count == 1 { "is" } else { "are" };
                demands.push((format!("{word} = {count}"), format!("there {are} {count} {name}")));
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
        for key in &self.application.drained {
            let class = self.vms.iter().position(|(name, _)| **name == key.group);
            if let Some(class) = class.filter(|class| key.index < self.vms[*class].1.count) {
                let word = &self.vm_words[class];
                demands.push((
                    format!("(sum ?any in components: {word}[{}].?any) = 0", key.index),
                    format!("{key} is drained"),
                ));
            }
        }
        demands.extend(self.data_demands(counts));
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

    /// Components with data stay where it is, unless the file or a drained VM says otherwise.
    fn data_demands(&self, counts: &[Option<u32>]) -> Vec<(String, String)> {
        let mut kept: BTreeMap<(usize, &Key), Vec<&Key>> = BTreeMap::new();
        for (key, component) in self.before.into_iter().flat_map(|it| &it.components) {
            let Some(kind) = self.groups.iter().position(|(name, _)| **name == key.group) else { continue };
            let group = self.groups[kind].1;
            let has_data =
                self.before.and_then(|it| it.definition_of(key)).is_some_and(|it| !it.recipe.data.is_empty())
                    && !self.application.type_of(group).recipe.data.is_empty();
            let vm = &component.vm;
            let is_there = self.vms.iter().any(|(name, it)| **name == vm.group && vm.index < it.count);
            let stays = counts[kind].is_none_or(|count| key.index < count);
            let on_it = |it: &Target| it.group == vm.group && it.index.is_none_or(|index| index == vm.index);
            let is_permitted = group.on.is_empty() || group.on.iter().any(on_it);
            if has_data && is_there && stays && is_permitted && !self.application.drained.contains(vm) {
                kept.entry((kind, vm)).or_default().push(key);
            }
        }
        let demand = |((kind, vm), keys): ((usize, &Key), Vec<&Key>)| {
            let class = self.vms.iter().position(|(name, _)| **name == vm.group)?;
            let formula =
                format!("{}[{}].{} >= {}", self.vm_words[class], vm.index, self.group_words[kind], keys.len());
            let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
            let have = if names.len() == 1 { "has its" } else { "have their" };
            Some((formula, format!("{} {have} data on {vm}", names.join(", "))))
        };
        kept.into_iter().filter_map(demand).collect()
    }

    /// The components that run and can stay, and the bindings among them.
    pub(super) fn today(
        &self,
        counts: &[Option<u32>],
        types: &[ComponentType],
        classes: &[NodeClass],
    ) -> Configuration {
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
}

fn amount_of(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(AMOUNT_MAX).min(AMOUNT_MAX)
}
