//! Large layered applications: tiers of VMs, each component bound to components of lower tiers.

use super::{change, kind, name, wire};
use crate::{environment::Line, random::Random};
use protocol::{Edit, Kind, Name, Need, Strategy, Wire};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Components on each VM.
const PER_VM: usize = 10;
/// Bindings for each component, on average.
const BINDINGS: usize = 3;

/// A layered application: ten components on each VM and three bindings for each component.
///
/// The VMs stand in tiers. In the lowest, every other component is bound to its neighbour on the same VM. In the others a
/// component has two strong bindings (one to the tier below; the other to the tier below or, for every other component,
/// to its neighbour on the same VM) and one weak binding to any lower tier. Optional bindings make up the number.
#[derive(Clone, Debug)]
pub struct Layered {
    vms: usize,
    tiers: usize,
    seed: u64,
    names: Vec<Name>,
    kinds: Vec<Arc<Kind>>,
    wires: Vec<Wire>,
}

impl Layered {
    /// An application of that many VMs in that many tiers.
    pub fn new(vms: usize, tiers: usize, seed: u64) -> Self {
        let tiers = tiers.clamp(1, vms.max(1));
        let names = (0..vms * PER_VM).map(|index| name(&format!("c{index}"))).collect();
        let imports = [("a", Need::Strong(1)), ("b", Need::Strong(1)), ("c", Need::Weak(1)), ("d", Need::Weak(0))];
        let (lowest, local, upper) = (kind(&[]), kind(&imports[1..2]), kind(&imports));
        let mut application = Self { vms, tiers, seed, names, kinds: Vec::new(), wires: Vec::new() };
        for index in 0..application.names.len() {
            let kind = match (application.tier_of(index), index % 2) {
                (0, 0) => &lowest,
                (0, _) => &local,
                (_, _) => &upper,
            };
            application.kinds.push(kind.clone());
        }
        application.bind();
        application
    }

    /// How many components there are.
    pub fn components(&self) -> usize {
        self.names.len()
    }

    /// How many bindings there are.
    pub fn bindings(&self) -> usize {
        self.wires.len()
    }

    fn tier_of(&self, index: usize) -> usize {
        (index / PER_VM) * self.tiers / self.vms.max(1)
    }

    /// The components of the tiers from one up to, not including, another.
    fn tiers(&self, from: usize, to: usize) -> std::ops::Range<usize> {
        let first = |tier: usize| (tier * self.vms).div_ceil(self.tiers) * PER_VM;
        first(from)..first(to)
    }

    fn bind(&mut self) {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(name);
        let mut random = Random::new(self.seed);
        let mut bound: BTreeSet<(usize, usize)> = BTreeSet::new();
        for client in 0..self.names.len() {
            let tier = self.tier_of(client);
            let local = (client % 2 == 1).then(|| client - 1);
            if tier == 0 {
                local
                    .into_iter()
                    .for_each(|provider| self.wires.push(wire(&self.names[client], &b, &self.names[provider])));
                continue;
            }
            let mut draw = |range: std::ops::Range<usize>| range.start + random.index(range.len());
            let below = self.tiers(tier - 1, tier);
            let providers = [
                (&a, draw(below.clone())),
                (&b, local.unwrap_or_else(|| draw(below))),
                (&c, draw(self.tiers(0, tier))),
            ];
            for (import, provider) in providers {
                self.wires.push(wire(&self.names[client], import, &self.names[provider]));
            }
        }
        // Optional bindings make up the number, a round at a time.
        let upper = self.tiers(1.min(self.tiers), self.tiers);
        let wanted = if upper.is_empty() { 0 } else { self.names.len() * BINDINGS };
        let mut clients = upper.cycle();
        while self.wires.len() < wanted {
            let client = clients.next().expect("a round never ends");
            let lower = self.tiers(0, self.tier_of(client));
            let provider = random.index(lower.len());
            if bound.insert((client, provider)) {
                self.wires.push(wire(&self.names[client], &d, &self.names[provider]));
            }
        }
    }

    fn vm_of(&self, index: usize) -> Name {
        name(&format!("v{}", index / PER_VM))
    }

    fn add(&self, index: usize) -> Edit {
        Edit::AddComponent {
            component: self.names[index].clone(),
            vm: self.vm_of(index),
            kind: self.kinds[index].clone(),
        }
    }

    /// Everything, from nothing.
    pub fn deploy(&self) -> Line {
        let vms = (0..self.vms).map(|vm| Edit::AddVm { vm: name(&format!("v{vm}")) });
        let components = (0..self.names.len()).map(|index| self.add(index));
        let bindings = self.wires.iter().cloned().map(Edit::AddBinding);
        change(vms.chain(components).chain(bindings).collect(), Strategy::Together)
    }

    /// So many in a thousand of those that have clients are replaced: removed, and added again under the same name with
    /// the same bindings.
    pub fn replace(&self, per_mille: usize) -> Line {
        let mut wires: BTreeMap<&Name, Vec<&Wire>> = BTreeMap::new();
        for wire in &self.wires {
            wires.entry(&wire.client).or_default().push(wire);
            wires.entry(&wire.provider).or_default().push(wire);
        }
        let lenders: BTreeSet<&Name> = self.wires.iter().map(|wire| &wire.provider).collect();
        let mut lenders: Vec<usize> =
            (0..self.names.len()).filter(|index| lenders.contains(&self.names[*index])).collect();
        let mut random = Random::new(self.seed ^ 1);
        let mut chosen = BTreeSet::new();
        for _ in 0..lenders.len() * per_mille / 1_000 {
            chosen.insert(lenders.swap_remove(random.index(lenders.len())));
        }
        let mut bindings: BTreeSet<&Wire> = BTreeSet::new();
        chosen.iter().for_each(|index| bindings.extend(wires.get(&self.names[*index]).into_iter().flatten().copied()));
        let removals = chosen.iter().map(|index| Edit::RemoveComponent { component: self.names[*index].clone() });
        let additions = chosen.iter().map(|index| self.add(*index));
        let bindings = bindings.into_iter().cloned().map(Edit::AddBinding);
        change(removals.chain(additions).chain(bindings).collect(), Strategy::Together)
    }
}
