//! Random applications of middle size, and random scripts about them.
//!
//! The generator keeps its own rough notes of what there is. What it asks for is mostly right; what the manager refuses
//! does no harm.

use super::{kind, name};
use crate::{environment::Line, random::Random};
use protocol::{Change, Edit, Export, Import, Kind, Name, Need, Operation, Patience, Strategy, Wire, manager::Request};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How large a random application is, and how much happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomShape {
    /// How many VMs it begins with.
    pub vms: usize,
    /// At most how many components each VM begins with.
    pub components_per_vm_max: u64,
    /// How many changes follow the first.
    pub changes: usize,
    /// How many operations in a row a component tries again.
    pub retries: u32,
}

/// A script that deploys a random application and then changes it at random.
pub fn random_script(random: &mut Random, shape: RandomShape) -> Arc<[Line]> {
    let mut author = Author::new(random, shape);
    let mut lines = vec![author.deploy()];
    for _ in 0..shape.changes {
        lines.push(author.change());
    }
    lines.into()
}

/// A component in the generator's notes.
#[derive(Clone)]
struct Known {
    vm: Name,
    kind: Arc<Kind>,
    /// How many providers each import is to have.
    needs: BTreeMap<Name, u32>,
    /// Strong bindings go from higher ranks to lower ones; so there is no cycle.
    rank: u64,
}

impl Known {
    fn new(vm: Name, kind: Arc<Kind>, rank: u64) -> Self {
        let needs = kind.imports.iter().map(|(name, import)| (name.clone(), import.need.number())).collect();
        Self { vm, kind, needs, rank }
    }
}

struct Author<'r> {
    random: &'r mut Random,
    shape: RandomShape,
    vms: Vec<Name>,
    components: BTreeMap<Name, Known>,
    wires: BTreeSet<Wire>,
    made: usize,
}

const RANKS: u64 = 5;

impl<'r> Author<'r> {
    fn new(random: &'r mut Random, shape: RandomShape) -> Self {
        Self { random, shape, vms: Vec::new(), components: BTreeMap::new(), wires: BTreeSet::new(), made: 0 }
    }

    fn deploy(&mut self) -> Line {
        let mut edits = Vec::new();
        for _ in 0..self.shape.vms {
            self.add_vm(&mut edits);
        }
        for vm in self.vms.clone() {
            for _ in 0..self.random.within(1..=self.shape.components_per_vm_max) {
                self.add_component(&vm, &mut edits);
            }
        }
        self.wire_all(&mut edits);
        self.ask(edits, true)
    }

    /// A few edits about whatever there is.
    fn change(&mut self) -> Line {
        let mut edits = Vec::new();
        let mut spared = self.components.keys().cloned().collect();
        for _ in 0..self.random.within(1..=4) {
            match self.random.below(10) {
                0 => self.add_vm(&mut edits),
                1 => self.remove_vm(&mut edits, &mut spared),
                2 | 3 => {
                    if let Some(vm) = self.random.pick(&self.vms).cloned() {
                        self.add_component(&vm, &mut edits);
                    }
                }
                4 => self.remove_component(&mut edits, &mut spared),
                5 | 6 => self.replace_component(&mut edits, &mut spared),
                7 => self.restart(&mut edits, &mut spared),
                8 => self.remove_wire(&mut edits),
                _ => self.set_need(&mut edits, &mut spared),
            }
        }
        self.wire_all(&mut edits);
        let patient = self.random.chance(500);
        self.ask(edits, patient)
    }

    fn ask(&mut self, edits: Vec<Edit>, patient: bool) -> Line {
        let strategies = Strategy::NAMES.map(|(_, strategy)| strategy);
        let strategy = *self.random.pick(&strategies).expect("there are strategies");
        Line { request: Request::Make(Change { strategy, incomplete: true, edits }), patient }
    }

    fn fresh(&mut self, letter: char) -> Name {
        self.made += 1;
        name(&format!("{letter}{}", self.made))
    }

    fn add_vm(&mut self, edits: &mut Vec<Edit>) {
        let vm = self.fresh('v');
        self.vms.push(vm.clone());
        edits.push(Edit::AddVm { vm });
    }

    fn remove_vm(&mut self, edits: &mut Vec<Edit>, spared: &mut BTreeSet<Name>) {
        let Some(vm) = self.random.pick(&self.vms).cloned() else { return };
        let here: Vec<Name> =
            self.components.iter().filter(|(_, known)| known.vm == vm).map(|(name, _)| name.clone()).collect();
        if self.vms.len() < 2 || !here.iter().all(|name| spared.contains(name)) {
            return;
        }
        here.iter().for_each(|name| self.forget(name, spared));
        self.vms.retain(|it| *it != vm);
        edits.push(Edit::RemoveVm { vm });
    }

    fn add_component(&mut self, vm: &Name, edits: &mut Vec<Edit>) {
        let component = self.fresh('c');
        let rank = self.random.below(RANKS);
        let kind = self.random_kind(rank);
        edits.push(Edit::AddComponent { component: component.clone(), vm: vm.clone(), kind: kind.clone() });
        self.components.insert(component, Known::new(vm.clone(), kind, rank));
    }

    fn random_kind(&mut self, rank: u64) -> Arc<Kind> {
        let mut it = Kind::clone(&kind(&[]));
        it.exports = [(name("out"), Export { values: vec![name("port")], capacity: None })].into();
        let number = |random: &mut Random| if random.chance(250) { 2 } else { 1 };
        let import = |need| Import { export: name("out"), need };
        if rank > 0 {
            for strong in ["s", "t"].iter().take(self.random.index(3)) {
                it.imports.insert(name(strong), import(Need::Strong(number(self.random))));
            }
        }
        if self.random.chance(400) {
            it.imports.insert(name("w"), import(Need::Weak(self.random.chance(500).into())));
        }
        if self.random.chance(200) {
            it.imports.insert(name("x"), import(Need::Value(1)));
        }
        it.prepares = self.random.chance(300);
        it.rebinds = self.random.chance(300);
        it.renews = self.random.chance(500);
        it.purges = self.random.chance(200);
        let patience = Patience { retries: self.shape.retries, pause_ms_first: 100, factor: 2 };
        let operations = [
            Operation::Prepare,
            Operation::Start,
            Operation::Run,
            Operation::Rebind,
            Operation::Stop,
            Operation::Purge,
        ];
        it.patience = operations.map(|operation| (operation, patience)).into();
        Arc::new(it)
    }

    fn remove_component(&mut self, edits: &mut Vec<Edit>, spared: &mut BTreeSet<Name>) {
        if let Some(component) = self.one_of(spared) {
            self.forget(&component, spared);
            edits.push(Edit::RemoveComponent { component });
        }
    }

    /// Removed, and added again under the same name and with the same bindings, perhaps elsewhere.
    fn replace_component(&mut self, edits: &mut Vec<Edit>, spared: &mut BTreeSet<Name>) {
        let Some(component) = self.one_of(spared) else { return };
        let Known { vm, kind, rank, .. } = self.components[&component].clone();
        let touches = |wire: &&Wire| wire.client == component || wire.provider == component;
        let wires: Vec<Wire> = self.wires.iter().filter(touches).cloned().collect();
        self.forget(&component, spared);
        let elsewhere = if self.random.chance(300) { self.random.pick(&self.vms).cloned() } else { None };
        let vm = elsewhere.unwrap_or(vm);
        edits.push(Edit::RemoveComponent { component: component.clone() });
        edits.push(Edit::AddComponent { component: component.clone(), vm: vm.clone(), kind: kind.clone() });
        self.components.insert(component, Known::new(vm, kind, rank));
        for wire in wires {
            self.wires.insert(wire.clone());
            edits.push(Edit::AddBinding(wire));
        }
    }

    fn restart(&mut self, edits: &mut Vec<Edit>, spared: &mut BTreeSet<Name>) {
        if let Some(component) = self.one_of(spared) {
            spared.remove(&component);
            edits.push(Edit::RestartComponent { component });
        }
    }

    fn remove_wire(&mut self, edits: &mut Vec<Edit>) {
        let wires: Vec<Wire> = self.wires.iter().cloned().collect();
        let Some(wire) = self.random.pick(&wires) else { return };
        // Not one that this very change has added.
        if !edits.iter().any(|edit| matches!(edit, Edit::AddBinding(added) if added == wire)) {
            self.wires.remove(wire);
            edits.push(Edit::RemoveBinding(wire.clone()));
        }
    }

    /// Lets an import need fewer or more. Whether there are as many providers is left to chance.
    fn set_need(&mut self, edits: &mut Vec<Edit>, spared: &mut BTreeSet<Name>) {
        let Some(component) = self.one_of(spared) else { return };
        let imports: Vec<Name> = self.components[&component].needs.keys().cloned().collect();
        let Some(import) = self.random.pick(&imports).cloned() else { return };
        let number = 1 + u32::from(self.random.chance(500)) + u32::from(self.random.chance(200));
        spared.remove(&component);
        let known = self.components.get_mut(&component).expect("what is spared is known");
        known.needs.insert(import.clone(), number);
        edits.push(Edit::SetNeed { component, import, number });
    }

    /// A component that this change has not yet spoken of.
    fn one_of(&mut self, spared: &BTreeSet<Name>) -> Option<Name> {
        let names: Vec<&Name> = spared.iter().collect();
        self.random.pick(&names).map(|name| (*name).clone())
    }

    fn forget(&mut self, component: &Name, spared: &mut BTreeSet<Name>) {
        self.components.remove(component);
        self.wires.retain(|wire| wire.client != *component && wire.provider != *component);
        spared.remove(component);
    }

    /// Gives every import as many providers as it needs, as far as there are any; now and then one more.
    fn wire_all(&mut self, edits: &mut Vec<Edit>) {
        let clients: Vec<(Name, Known)> = self.components.iter().map(|(name, it)| (name.clone(), it.clone())).collect();
        let removed: BTreeSet<Wire> = edits
            .iter()
            .filter_map(|edit| if let Edit::RemoveBinding(wire) = edit { Some(wire.clone()) } else { None })
            .collect();
        for (client, known) in clients {
            for (import, it) in &known.kind.imports {
                let bound = self.wires.iter().filter(|wire| wire.client == client && wire.import == *import).count();
                let wanted = known.needs[import] as usize + usize::from(self.random.chance(50));
                for _ in bound..wanted {
                    let fits = |(name, provider): &(&Name, &Known)| {
                        **name != client && (!it.need.is_strong() || provider.rank < known.rank)
                    };
                    let providers: Vec<&Name> = self.components.iter().filter(fits).map(|(name, _)| name).collect();
                    let Some(provider) = self.random.pick(&providers) else { continue };
                    let (client, import, provider) = (client.clone(), import.clone(), (*provider).clone());
                    let wire = Wire { client, import, provider, export: it.export.clone() };
                    if !removed.contains(&wire) && self.wires.insert(wire.clone()) {
                        edits.push(Edit::AddBinding(wire));
                    }
                }
            }
        }
    }
}
