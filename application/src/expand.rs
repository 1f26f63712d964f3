//! From an application as it is described to one that is counted out, placed and wired.
//!
//! Everything is deterministic, and as little as possible moves: whoever was somewhere stays there, and whoever was bound
//! to someone stays bound, for as long as that is possible; what is new goes where there is least. So a group that grows
//! changes nothing that exists.

use crate::{
    Application, Problems,
    application::ComponentGroup,
    component_type::{ComponentType, NeedSort},
    cycle,
    expansion::{Component, Definition, Expansion, Import, Key, Vm},
    file_mode, optimum, placement,
    problem::Findings,
    value_sorts, wiring,
};
use planner::Progress;
use protocol::{Name, Need, bounds::RECIPE_BYTES_MAX};
use std::collections::{BTreeMap, BTreeSet};
use vm_agent::sort::Sort;

/// What there is besides the application itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surroundings<'a> {
    /// The application as it was before.
    pub before: Option<&'a Expansion>,
    /// The other applications of the same manager.
    pub others: &'a [Expansion],
}

impl Application {
    /// Counts out, places and wires the application; or tells everything that is wrong with it, in its files and in what
    /// came of them.
    pub fn expand(&self, surroundings: &Surroundings<'_>) -> Result<Expansion, Problems> {
        self.expand_within(surroundings, &mut |_| true)
    }

    /// As [`Application::expand`]; where the planner decides, it tells how far it got and asks whether to go on.
    pub fn expand_within(
        &self,
        surroundings: &Surroundings<'_>,
        go_on: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Expansion, Problems> {
        let mut findings = self.findings.clone();
        if !self.leaves_a_choice() {
            let places = placement::place(self, surroundings.before, &mut findings);
            return self.expand_at(places, surroundings, findings);
        }
        // What could not be read would be missed by the planner.
        let chosen = match findings.count() {
            0 => optimum::choose(self, surroundings, go_on, &mut findings),
            _ => None,
        };
        let Some(chosen) = chosen else { return self.expand_at(BTreeMap::new(), surroundings, findings) };
        let mut counted = self.clone();
        for (name, count) in chosen.counts {
            counted.components.entry(name).and_modify(|it| it.count = count);
        }
        let hinted = chosen.bound.map(|bound| bound.over(surroundings.before, &self.name));
        let surroundings = Surroundings { before: hinted.as_ref().or(surroundings.before), ..*surroundings };
        let mut expansion = counted.expand_at(chosen.places, &surroundings, findings)?;
        let used: BTreeSet<&Key> = expansion.components.values().map(|it| &it.vm).collect();
        let keep = |key: &Key| !self.vms[&key.group].as_needed || used.contains(key);
        let kept: BTreeMap<Key, Vm> =
            expansion.vms.iter().filter(|(key, _)| keep(key)).map(|(key, vm)| (key.clone(), vm.clone())).collect();
        expansion.vms = kept;
        expansion.choice = Some(chosen.choice);
        Ok(expansion)
    }

    /// Wires components that have their places.
    fn expand_at(
        &self,
        places: BTreeMap<Key, Key>,
        surroundings: &Surroundings<'_>,
        mut findings: Findings,
    ) -> Result<Expansion, Problems> {
        let mut expansion = Expansion::empty(self.name.clone());
        for (name, group) in &self.vms {
            let vm = Vm { cloud: group.cloud.clone(), labels: group.labels.clone() };
            expansion.vms.extend((0..group.count).map(|index| (Key::new(name, index), vm.clone())));
        }
        for (name, group) in &self.components {
            let definition = self.definition((name, group), surroundings.others, &mut findings);
            let length = definition.recipe.encode().len();
            if length > RECIPE_BYTES_MAX {
                let says = format!(
                    "the recipe of `{name}` has {length} bytes (at most {RECIPE_BYTES_MAX}; put large files elsewhere)"
                );
                findings.add(group.span, says);
            }
            expansion.definitions.insert(name.clone(), definition);
        }
        for (key, vm) in places {
            expansion.components.insert(key, Component { vm, bound: BTreeMap::new() });
        }
        self.check_ports(&expansion, &mut findings);
        wiring::wire(self, surroundings, &mut expansion, &mut findings);
        cycle::check(self, surroundings.others, &expansion, &mut findings);
        findings.conclude(&self.sources).map(|()| expansion)
    }

    /// The type of a group.
    pub(crate) fn type_of(&self, group: &ComponentGroup) -> &ComponentType {
        &self.types.get(&group.type_name).expect("a group is kept only if its type is known").1
    }

    /// Whether something was wrong already; then what is missing may be missing because of that.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.findings.count() > 0
    }

    fn definition(
        &self,
        (name, group): (&Name, &ComponentGroup),
        others: &[Expansion],
        findings: &mut Findings,
    ) -> Definition {
        let component_type = self.type_of(group);
        let imports = component_type.imports.iter().map(|(name, import)| {
            let number = import.number.unwrap_or(1);
            let need = match import.sort {
                NeedSort::Strong => Need::Strong(number),
                NeedSort::Weak => Need::Weak(number),
                NeedSort::Value => Need::Value(number),
            };
            (name.clone(), Import { export: import.export.clone(), need, all: import.number.is_none() })
        });
        let mut recipe = component_type.recipe.clone();
        recipe.parameters = group.parameters.clone();
        recipe.sorts.imports = self.imported_sorts((name, group), others, findings);
        file_mode::choose(component_type, &mut recipe);
        value_sorts::check_chosen(name, &recipe, &component_type.templates, findings);
        Definition {
            type_name: group.type_name.clone(),
            imports: imports.collect(),
            exports: component_type.exports.clone(),
            patience: component_type.patience.clone(),
            recipe,
            secrets: group.secrets.clone(),
            resources: component_type.resources.clone(),
            takes_ms: component_type.takes_ms.clone(),
        }
    }

    /// Two components on one port of one VM, where ports are known: parameters of that type, and plain numbers in checks.
    fn check_ports(&self, expansion: &Expansion, findings: &mut Findings) {
        let ports = self.ports();
        let mut taken: BTreeMap<(&Key, u64), &Key> = BTreeMap::new();
        let mut told: Vec<(&Name, &Name, u64)> = Vec::new();
        for (key, component) in &expansion.components {
            for port in ports.get(&key.group).into_iter().flatten() {
                let Some(other) = taken.insert((&component.vm, *port), key) else { continue };
                if told.contains(&(&other.group, &key.group, *port)) {
                    continue;
                }
                told.push((&other.group, &key.group, *port));
                let says = format!(
                    "`{other}` and `{key}` are both at port {port} of VM `{}` (give one another port, or more VMs)",
                    component.vm
                );
                findings.add(self.components[&key.group].span, says);
            }
        }
    }

    /// The ports that the components of each group listen at, where they are known.
    pub(crate) fn ports(&self) -> BTreeMap<&Name, Vec<u64>> {
        let mut ports: BTreeMap<&Name, Vec<u64>> = BTreeMap::new();
        for (name, group) in &self.components {
            let component_type = self.type_of(group);
            let given = group.parameters.iter().filter(|(name, _)| {
                component_type.parameters.get(*name).is_some_and(|parameter| parameter.sort == Sort::Port)
            });
            let mut own: Vec<u64> = given.filter_map(|(_, value)| value.as_u64()).chain(component_type.port).collect();
            own.sort_unstable();
            own.dedup();
            ports.insert(name, own);
        }
        ports
    }
}
