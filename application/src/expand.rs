//! Expands an application: counts, placement and wiring.
//!
//! Everything is deterministic, and as little as possible moves: a component stays on its VM, and a client stays bound
//! to its provider, for as long as that is possible; new ones go where there are fewest. So a group that grows changes
//! nothing that exists.

use crate::{
    Application, Problems,
    application::ComponentGroup,
    component_type::{ComponentType, NeedSort},
    cycle,
    expansion::{Component, Definition, Expansion, Import, Key, Vm},
    file_mode, optimum, placement, port_conflicts,
    problem::Findings,
    readiness, template_reads, value_type_check, wiring,
};
use planner::Progress;
use protocol::{Name, Need, bounds::RECIPE_BYTES_MAX};
use std::collections::{BTreeMap, BTreeSet};

/// The environment of the application.
#[derive(Clone, Copy, Debug, Default)]
pub struct Existing<'a> {
    /// The application as it was before.
    pub before: Option<&'a Expansion>,
    /// The other applications of the same manager.
    pub others: &'a [Expansion],
}

impl Application {
    /// Expands, places and wires the application; or reports all problems, in its files and in the result.
    pub fn expand(&self, existing: &Existing<'_>) -> Result<Expansion, Problems> {
        self.expand_within(existing, &mut |_| true)
    }

    /// Like [`Application::expand`]; where the planner decides, it reports its progress and asks whether to continue.
    pub fn expand_within(
        &self,
        existing: &Existing<'_>,
        go_on: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Expansion, Problems> {
        let mut findings = self.findings.clone();
        if !self.leaves_a_choice() {
            let places = placement::place(self, existing.before, &mut findings);
            return self.expand_at(places, existing, findings);
        }
        // A problem that exists wherever components are is reported as such, and not as an impossible placement.
        let nowhere = self.expand_at(BTreeMap::new(), existing, findings.clone());
        let chosen = match nowhere {
            Ok(_) => optimum::choose(self, existing, go_on, &mut findings),
            // What could not be read may be missing in constraints and preferences.
            Err(_) if self.is_incomplete || !self.unread.is_empty() => None,
            Err(_) => {
                optimum::look_at_texts(self, &mut findings);
                None
            }
        };
        let Some(chosen) = chosen else { return self.expand_at(BTreeMap::new(), existing, findings) };
        let mut counted = self.clone();
        for (name, count) in chosen.counts {
            counted.components.entry(name).and_modify(|it| (it.count, it.as_needed) = (count, false));
        }
        let hinted = chosen.bound.map(|bound| bound.over(existing.before, &self.name));
        let existing = Existing { before: hinted.as_ref().or(existing.before), ..*existing };
        let mut expansion = counted.expand_at(chosen.places, &existing, findings)?;
        let used: BTreeSet<&Key> = expansion.components.values().map(|it| &it.vm).collect();
        let keep = |key: &Key| !self.vms[&key.group].as_needed || used.contains(key);
        let kept: BTreeMap<Key, Vm> =
            expansion.vms.iter().filter(|(key, _)| keep(key)).map(|(key, vm)| (key.clone(), vm.clone())).collect();
        expansion.vms = kept;
        expansion.choice = Some(chosen.choice);
        Ok(expansion)
    }

    /// Wires components that are placed.
    fn expand_at(
        &self,
        places: BTreeMap<Key, Key>,
        existing: &Existing<'_>,
        mut findings: Findings,
    ) -> Result<Expansion, Problems> {
        let mut expansion = Expansion::empty(self.name.clone());
        for (name, group) in &self.vms {
            let vm = Vm { cloud: group.cloud.clone(), labels: group.labels.clone() };
            expansion.vms.extend((0..group.count).map(|index| (Key::new(name, index), vm.clone())));
        }
        for (name, group) in &self.components {
            let definition = self.definition((name, group), existing.others, &mut findings);
            let length = definition.recipe.encode().len();
            if length > RECIPE_BYTES_MAX {
                let says = format!(
                    "the recipe of `{name}` is {length} bytes long (at most {RECIPE_BYTES_MAX}; put large files elsewhere)"
                );
                findings.add(group.span, says);
            }
            expansion.definitions.insert(name.clone(), definition);
        }
        for (key, vm) in places {
            expansion.components.insert(key, Component { vm, bound: BTreeMap::new() });
        }
        wiring::wire(self, existing, &mut expansion, &mut findings);
        self.check_items(&expansion, &mut findings);
        port_conflicts::check(self, existing.others, &expansion, &mut findings);
        cycle::check(self, existing.others, &expansion, &mut findings);
        findings.conclude(&self.sources).map(|()| expansion)
    }

    /// The type of a group.
    pub(crate) fn type_of(&self, group: &ComponentGroup) -> &ComponentType {
        &self.types.get(&group.type_name).expect("a group is kept only if its type is known").1
    }

    /// Whether a component may be one that could not be read, or may offer its export, or is not counted yet.
    pub(crate) fn is_doubtful(&self, component: &Name) -> bool {
        match self.components.get(component) {
            Some(group) => group.as_needed || !self.type_of(group).knows_exports,
            None => self.is_incomplete || self.unread.contains(component),
        }
    }

    /// Whether a component that could not be read may offer an export.
    pub(crate) fn lacks_exports(&self) -> bool {
        let unknown = |group: &ComponentGroup| !self.type_of(group).knows_exports;
        self.is_incomplete || !self.unread.is_empty() || self.components.values().any(unknown)
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
        recipe.group_count = component_type.reads.group_count.then_some(group.count);
        recipe.types.imports = self.imported_sorts((name, group), others, findings);
        file_mode::choose(component_type, &mut recipe);
        value_type_check::check_chosen(name, &recipe, &component_type.templates, findings);
        template_reads::check_secrets(component_type, &recipe.types, findings);
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

    /// Items of imports that templates read unconditionally, and that are not bound.
    fn check_items(&self, expansion: &Expansion, findings: &mut Findings) {
        let mut told: BTreeSet<(&Name, &Name)> = BTreeSet::new();
        for (key, component) in &expansion.components {
            let component_type = self.type_of(&self.components[&key.group]);
            for (name, (last, span)) in &component_type.reads.items {
                let bound = component.bound.get(name).map_or(0, Vec::len);
                let is_there = u64::try_from(bound).is_ok_and(|bound| *last < bound);
                // A missing provider was already reported.
                let lacks = component_type.imports.get(name).is_none_or(|it| bound < it.least());
                if is_there || lacks || !told.insert((&key.group, name)) {
                    continue;
                }
                let says = format!(
                    "the template reads `imports.{name}[{last}]`, but `{key}` is bound to {bound} (bind it to more, or check first: `{{% if imports.{name} | length > {last} %}}`)"
                );
                findings.add(*span, says);
            }
        }
    }

    /// The ports on which the components of each group listen, as far as they are known.
    pub(crate) fn ports(&self) -> BTreeMap<&Name, BTreeSet<u64>> {
        self.components.iter().map(|(name, group)| (name, readiness::ports(self.type_of(group), group))).collect()
    }
}
