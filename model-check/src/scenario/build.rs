//! From a sheet to a scenario: names are looked up, bindings find their exports, sugar is dissolved.
//!
//! A change that must be refused may speak of what does not exist: there, names are not looked up.

use super::{
    Scenario,
    expected::Answer,
    parse::{Asked, Sheet, Spoken, Stated, What, Wired},
    problem::{Problem, instead},
    words::Called,
};
use crate::Line;
use protocol::{Change, ChangeId, Edit, Kind, Name, Wire, manager::Request};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Makes a scenario of what was read, and says what does not fit.
pub(super) fn scenario(sheet: Sheet, problems: &mut Vec<Problem>) -> Scenario {
    let Sheet { story, faults, asked, mut expected, spoken_of, unreadable } = sheet;
    let mut known = Known { unreadable, ..Known::default() };
    let mut lines = Vec::new();
    for asked in asked {
        let patient = asked.patient;
        expected.answers.push(asked.answer.clone());
        lines.push(Line { request: known.request(asked, problems), patient });
    }
    for spoken in spoken_of {
        match spoken {
            Spoken::Component(called) => known.check_component(&called, problems),
            Spoken::Vm(called) => known.check_vm(&called, problems),
        }
    }
    Scenario { name: String::new(), story, lines: lines.into(), faults, expected }
}

/// What has been spoken of so far.
#[derive(Clone, Debug, Default)]
struct Known {
    vms: BTreeSet<Name>,
    /// Where each component lives, and what it is.
    components: BTreeMap<Name, (Name, Arc<Kind>)>,
    /// The bindings there would now be.
    wires: Vec<Wire>,
    /// Components of which only the name is known, because the rest could not be read.
    unreadable: BTreeSet<Name>,
}

impl Known {
    fn request(&mut self, asked: Asked, problems: &mut Vec<Problem>) -> Request {
        // What must be refused leaves no trace, and whatever is wrong with it is wrong on purpose.
        let refused = asked.answer != Answer::Accepted;
        let before = self.clone();
        let mut found = Vec::new();
        let request = match asked.what {
            What::Retry(called) => {
                self.check_component(&called, &mut found);
                Request::Retry(called.name)
            }
            What::Skip(called) => {
                self.check_component(&called, &mut found);
                Request::Skip(called.name)
            }
            What::Lose(called) => {
                self.check_vm(&called, &mut found);
                Request::DeclareLost(called.name)
            }
            What::Cancel(change) => Request::Cancel(ChangeId(change.into())),
            What::Change { strategy, incomplete } => {
                asked.edits.iter().for_each(|stated| self.add(stated));
                let renamed = renamed(&asked.edits);
                let mut edits: Vec<Edit> =
                    asked.edits.iter().flat_map(|stated| self.edits(stated, &mut found)).collect();
                edits.extend(asked.edits.iter().flat_map(|stated| self.bound_at_once(stated, &mut found)));
                edits.extend(self.taken_over(&renamed, &edits));
                self.rewire(&edits);
                Request::Make(Change { strategy, incomplete, edits })
            }
        };
        if !refused {
            problems.append(&mut found);
        }
        if let Answer::Refused(_) = asked.answer {
            *self = before;
        }
        request
    }

    /// Takes note of what a edit adds: bindings may speak of what is added below them.
    fn add(&mut self, stated: &Stated) {
        match stated {
            Stated::AddVm(vm) => drop(self.vms.insert(vm.name.clone())),
            Stated::Add(vm, described) => {
                let entry = (vm.name.clone(), Arc::new(described.kind.clone()));
                self.components.insert(described.component.name.clone(), entry);
            }
            Stated::Replace { old, new } => {
                if let Some(entry) = self.components.get(&old.name).cloned() {
                    self.components.insert(new.name.clone(), entry);
                }
            }
            Stated::RemoveVm(_)
            | Stated::Remove(_)
            | Stated::Restart(_)
            | Stated::Need { .. }
            | Stated::Bind(_)
            | Stated::Unbind(_) => {}
        }
    }

    fn edits(&self, stated: &Stated, problems: &mut Vec<Problem>) -> Vec<Edit> {
        let edit = match stated {
            Stated::AddVm(vm) => Edit::AddVm { vm: vm.name.clone() },
            Stated::RemoveVm(vm) => {
                self.check_vm(vm, problems);
                Edit::RemoveVm { vm: vm.name.clone() }
            }
            Stated::Add(vm, described) => {
                self.check_vm(vm, problems);
                let (component, kind) = (described.component.name.clone(), Arc::new(described.kind.clone()));
                Edit::AddComponent { component, vm: vm.name.clone(), kind }
            }
            Stated::Remove(component) => {
                self.check_component(component, problems);
                Edit::RemoveComponent { component: component.name.clone() }
            }
            Stated::Restart(component) => {
                self.check_component(component, problems);
                Edit::RestartComponent { component: component.name.clone() }
            }
            Stated::Replace { old, new } => {
                self.check_component(old, problems);
                let remove = Edit::RemoveComponent { component: old.name.clone() };
                let add = self.components.get(&new.name).map(|(vm, kind)| Edit::AddComponent {
                    component: new.name.clone(),
                    vm: vm.clone(),
                    kind: kind.clone(),
                });
                return std::iter::once(remove).chain(add).collect();
            }
            Stated::Need { component, import, number } => {
                self.check_import(component, import, problems);
                let (component, import) = (component.name.clone(), import.name.clone());
                Edit::SetNeed { component, import, number: *number }
            }
            Stated::Bind(wired) => Edit::AddBinding(self.wire(wired, problems)),
            Stated::Unbind(wired) => Edit::RemoveBinding(self.wire(wired, problems)),
        };
        vec![edit]
    }

    /// The bindings that are written beside an import.
    fn bound_at_once(&self, stated: &Stated, problems: &mut Vec<Problem>) -> Vec<Edit> {
        let Stated::Add(_, described) = stated else { return Vec::new() };
        let client = &described.component;
        let wired = described.sources.iter().flat_map(|(import, providers)| {
            let import = Called { name: import.clone(), spot: client.spot };
            providers.iter().map(move |provider| Wired {
                client: client.clone(),
                import: import.clone(),
                provider: provider.clone(),
                export: None,
            })
        });
        wired.map(|wired| Edit::AddBinding(self.wire(&wired, problems))).collect()
    }

    fn wire(&self, wired: &Wired, problems: &mut Vec<Problem>) -> Wire {
        self.check_import(&wired.client, &wired.import, problems);
        let import = self.components.get(&wired.client.name).and_then(|(_, kind)| kind.imports.get(&wired.import.name));
        let taken = import.map_or_else(|| wired.import.name.clone(), |import| import.export.clone());
        let export = wired.export.clone().unwrap_or(taken);
        self.check_component(&wired.provider, problems);
        if let Some((_, kind)) = self.components.get(&wired.provider.name)
            && !kind.exports.contains_key(&export)
        {
            let wrong = format!("component {:?} has no export {:?}", wired.provider.name.as_str(), export.as_str());
            let right = instead(export.as_str(), kind.exports.keys().map(Name::as_str));
            problems.push(Problem::new(wired.provider.spot, wrong, right));
        }
        let (client, import, provider) =
            (wired.client.name.clone(), wired.import.name.clone(), wired.provider.name.clone());
        Wire { client, import, provider, export }
    }

    /// The bindings that components take over from those that they replace.
    fn taken_over(&self, renamed: &BTreeMap<Name, Name>, edits: &[Edit]) -> Vec<Edit> {
        let removed: BTreeSet<&Name> = edits.iter().filter_map(removed_by).collect();
        let now = |name: &Name| match renamed.get(name) {
            Some(new) => Some(new.clone()),
            None => (!removed.contains(name)).then(|| name.clone()),
        };
        let touched = |wire: &&Wire| renamed.contains_key(&wire.client) || renamed.contains_key(&wire.provider);
        let taken = self.wires.iter().filter(touched).filter_map(|wire| {
            let (client, provider) = (now(&wire.client)?, now(&wire.provider)?);
            Some(Edit::AddBinding(Wire { client, provider, ..wire.clone() }))
        });
        taken.collect()
    }

    /// Takes note of the bindings that there would be after a change.
    fn rewire(&mut self, edits: &[Edit]) {
        for name in edits.iter().filter_map(removed_by) {
            self.wires.retain(|wire| wire.client != *name && wire.provider != *name);
        }
        for edit in edits {
            match edit {
                Edit::AddBinding(wire) => self.wires.push(wire.clone()),
                Edit::RemoveBinding(wire) => self.wires.retain(|other| other != wire),
                Edit::RemoveVm { vm } => {
                    let there = |name: &Name| self.components.get(name).is_some_and(|(at, _)| at == vm);
                    self.wires.retain(|wire| !there(&wire.client) && !there(&wire.provider));
                }
                Edit::AddVm { .. }
                | Edit::AddComponent { .. }
                | Edit::RemoveComponent { .. }
                | Edit::RestartComponent { .. }
                | Edit::SetNeed { .. } => {}
            }
        }
    }

    fn check_vm(&self, called: &Called, problems: &mut Vec<Problem>) {
        if !self.vms.contains(&called.name) {
            let right = instead(called.name.as_str(), self.vms.iter().map(Name::as_str));
            problems.push(Problem::new(called.spot, format!("there is no VM {:?}", called.name.as_str()), right));
        }
    }

    fn check_component(&self, called: &Called, problems: &mut Vec<Problem>) {
        if !self.components.contains_key(&called.name) && !self.unreadable.contains(&called.name) {
            let known = self.components.keys().chain(&self.unreadable).map(Name::as_str);
            let right = instead(called.name.as_str(), known);
            problems.push(Problem::new(
                called.spot,
                format!("there is no component {:?}", called.name.as_str()),
                right,
            ));
        }
    }

    fn check_import(&self, component: &Called, import: &Called, problems: &mut Vec<Problem>) {
        self.check_component(component, problems);
        if let Some((_, kind)) = self.components.get(&component.name)
            && !kind.imports.contains_key(&import.name)
        {
            let wrong = format!("component {:?} has no import {:?}", component.name.as_str(), import.name.as_str());
            let right = instead(import.name.as_str(), kind.imports.keys().map(Name::as_str));
            problems.push(Problem::new(import.spot, wrong, right));
        }
    }
}

fn renamed(edits: &[Stated]) -> BTreeMap<Name, Name> {
    let pairs = edits.iter().filter_map(|stated| match stated {
        Stated::Replace { old, new } => Some((old.name.clone(), new.name.clone())),
        _ => None,
    });
    pairs.collect()
}

fn removed_by(edit: &Edit) -> Option<&Name> {
    if let Edit::RemoveComponent { component } = edit { Some(component) } else { None }
}
