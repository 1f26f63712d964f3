//! Random small applications with random scripts, small enough to be explored to the last state.

use super::{Answer, Changes, ComponentEnd, Expected, Scenario};
use crate::{Faults, Line};
use protocol::{
    Change, ChangeId, Edit, Export, Import, Kind, Name, Need, Operation, Patience, Strategy, Wire, manager::Request,
};
use std::{collections::BTreeSet, sync::Arc};

/// How much there is of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Two components on two VMs and one request: small enough even without any reduction.
    Tiny,
    /// Two to four components on two or three VMs and up to three requests.
    Small,
}

/// Makes a scenario. `below(n)` draws a number below `n`; the same draws make the same scenario.
///
/// Components are wired strongly downwards, and weakly or by value anywhere. Then come requests, each at any time:
/// additions, removals, bindings, other needs, restarts. Some may lose a VM.
pub fn scenario(name: String, size: Size, mut below: impl FnMut(u64) -> u64) -> Scenario {
    let mut draft = Draft { below: &mut below, components: Vec::new(), wires: BTreeSet::new(), vms: 0, extra: 0 };
    let tiny = size == Size::Tiny;
    let lose = draft.chance(8);
    draft.vms = 2 + u64::from(!lose && !tiny && draft.chance(4));
    // What comes while everything is still being set up has the most interleavings: then there is little of it.
    let early = draft.chance(3) && !(tiny && lose);
    let components = 2 + if early || tiny { 0 } else { draft.draw(if lose { 2 } else { 3 }) };
    let mut edits: Vec<Edit> = (0..draft.vms).map(|vm| Edit::AddVm { vm: vm_name(vm) }).collect();
    for place in 0..components {
        edits.push(draft.add_component(place));
    }
    for place in 0..components {
        edits.extend(draft.wire(place));
    }
    let mut lines = vec![Line { request: make(edits), patient: true }];
    let changes = 1 + draft.draw(if early || lose || tiny { 1 } else { 3 });
    for place in 0..changes {
        let edits = draft.change();
        lines.push(Line { request: make(edits), patient: place == 0 && !early });
    }
    let faults = Faults { losses: u32::from(lose), ..Faults::default() };
    Scenario { name, lines: lines.into(), faults, ..Scenario::default() }
}

/// Makes a scenario in which the last change is cancelled at any time. Changes have any strategy.
pub fn cancelled(name: String, size: Size, mut below: impl FnMut(u64) -> u64) -> Scenario {
    let mut scenario = scenario(name, size, &mut below);
    let mut lines = scenario.lines.to_vec();
    for line in &mut lines[1..] {
        if let Request::Make(change) = &mut line.request {
            (_, change.strategy) = Strategy::NAMES[usize::try_from(below(3)).unwrap_or(0)];
        }
    }
    let last = ChangeId(u64::try_from(lines.len()).unwrap_or(u64::MAX));
    // Any of them may be refused: what is done already, for one, cannot be cancelled.
    scenario.expected.answers = vec![Answer::Either; lines.len() + 1];
    lines.push(Line { request: Request::Cancel(last), patient: false });
    scenario.lines = lines.into();
    scenario
}

/// Makes a hub with two or three replicas that are alike, and one change to the hub: what symmetry is about.
pub fn tier(name: String, mut below: impl FnMut(u64) -> u64) -> Scenario {
    let (hub, replicas) = (self::name("hub"), 2 + u64::from(below(6) == 0));
    let mut draw_kind = |imports: &str, exports: &str, weak: bool| {
        let need = match below(4) {
            _ if weak => Need::Weak(0),
            0 => Need::Weak(1),
            1 => Need::Value(1),
            _ => Need::Strong(1),
        };
        let import = Import { export: self::name(imports), need };
        let values = if below(2) == 0 { vec![self::name("port")] } else { Vec::new() };
        Arc::new(Kind {
            imports: [(self::name("in"), import)].into(),
            exports: [(self::name(exports), Export { values, capacity: None })].into(),
            prepares: below(6) == 0,
            rebinds: below(4) == 0,
            renews: below(2) == 0,
            purges: below(8) == 0,
            ..Kind::default()
        })
    };
    // Each side exports what the other imports; the hub at most weakly, so that there is no strong cycle.
    let (hub_kind, kind) = (draw_kind("back", "e", true), draw_kind("e", "back", false));
    let mut edits = vec![
        Edit::AddVm { vm: vm_name(0) },
        Edit::AddComponent { component: hub.clone(), vm: vm_name(0), kind: hub_kind.clone() },
    ];
    let both = below(3) == 0;
    for replica in 1..=replicas {
        let component = self::name(&format!("c{replica}"));
        edits.push(Edit::AddVm { vm: vm_name(replica) });
        edits.push(Edit::AddComponent { component: component.clone(), vm: vm_name(replica), kind: kind.clone() });
        let there = |client: &Name, provider: &Name, export: &str| {
            let (client, provider) = (client.clone(), provider.clone());
            Edit::AddBinding(Wire { client, import: self::name("in"), provider, export: self::name(export) })
        };
        edits.push(there(&component, &hub, "e"));
        edits.extend(both.then(|| there(&hub, &component, "back")));
    }
    let change = match below(3) {
        0 => vec![Edit::RestartComponent { component: hub }],
        1 => vec![Edit::RemoveComponent { component: hub }],
        _ => vec![
            Edit::RemoveComponent { component: hub.clone() },
            Edit::AddComponent { component: hub, vm: vm_name(0), kind: hub_kind },
        ],
    };
    let lines = [Line { request: make(edits), patient: true }, Line { request: make(change), patient: true }];
    Scenario { name, lines: lines.into(), ..Scenario::default() }
}

/// Makes three components on two VMs and two requests that wait for nothing: what is bound, removed or restarted may not be
/// there yet, and VMs may go before they have come.
pub fn haste(name: String, mut below: impl FnMut(u64) -> u64) -> Scenario {
    let need = if below(2) == 0 { Need::Weak(0) } else { Need::Strong(1) };
    let import = Import { export: self::name("e"), need };
    let client = Kind { imports: [(self::name("s"), import)].into(), ..Kind::default() };
    let provider = Kind { exports: [(self::name("e"), Export::default())].into(), ..Kind::default() };
    let components = [("client", 0, client), ("provider", 0, provider.clone()), ("other", 1, provider)];
    let mut edits: Vec<Edit> = (0..2).map(|vm| Edit::AddVm { vm: vm_name(vm) }).collect();
    edits.extend(components.map(|(component, vm, kind)| {
        let (component, vm) = (self::name(component), vm_name(vm));
        Edit::AddComponent { component, vm, kind: Arc::new(kind) }
    }));
    let mut lines = vec![Line { request: make(edits), patient: false }];
    let providers = [self::name("provider"), self::name("other")];
    let mut choose = |number: usize| usize::try_from(below(u64::try_from(number).unwrap_or(1))).unwrap_or(0);
    for _ in 0..2 {
        let mut edits = Vec::new();
        for _ in 0..1 + choose(2) {
            let provider = providers[choose(2)].clone();
            edits.push(match choose(5) {
                0 => Edit::RemoveVm { vm: vm_name(1) },
                1 | 2 => Edit::RemoveComponent { component: provider },
                3 => Edit::RestartComponent { component: provider },
                _ => Edit::AddBinding(wire(&self::name("client"), &self::name("s"), &provider)),
            });
        }
        let (_, strategy) = Strategy::NAMES[choose(Strategy::NAMES.len())];
        lines.push(Line { request: Request::Make(Change { strategy, incomplete: true, edits }), patient: false });
    }
    Scenario { name, lines: lines.into(), ..Scenario::default() }
}

/// Makes one to three components on one or two VMs, up to two requests of any sort, and something that may go wrong: deaths,
/// failures, losses, crashes, breaks. Changes have any strategy and may be complete or not; some requests are refused.
/// What is expected is drawn, too, and is often wrong: an exploration must not depend on whether it is.
pub fn mishap(name: String, mut below: impl FnMut(u64) -> u64) -> Scenario {
    let mut draft = Draft { below: &mut below, components: Vec::new(), wires: BTreeSet::new(), vms: 0, extra: 0 };
    draft.vms = 1 + u64::from(!draft.chance(3));
    let components = if draft.vms == 1 { 1 + draft.draw(3) } else { 1 + draft.draw(2) };
    let mut edits: Vec<Edit> = (0..draft.vms).map(|vm| Edit::AddVm { vm: vm_name(vm) }).collect();
    for place in 0..components {
        let mut edit = draft.add_component(place);
        draft.be_stubborn(&mut edit);
        edits.push(edit);
    }
    for place in 0..components {
        edits.extend(draft.wire(place));
    }
    let mut lines = vec![Line { request: draft.request(edits), patient: true }];
    for _ in 0..draft.draw(3) {
        let request = draft.any_request();
        lines.push(Line { request, patient: !draft.chance(3) });
    }
    let faults = draft.faults();
    let expected = draft.expectation(lines.len());
    Scenario { name, lines: lines.into(), faults, expected, ..Scenario::default() }
}

/// Makes replicas that are alike, of which any may die, fail or be lost, and one change: a hub with its clients, or two
/// twins without a hub. Sometimes different things are expected of the replicas, so that they are not alike after all.
pub fn mishap_in_tier(name: String, mut below: impl FnMut(u64) -> u64) -> Scenario {
    let mut scenario = if below(4) == 0 { tier(name, &mut below) } else { twins(name, &mut below) };
    let mut lines = scenario.lines.to_vec();
    if below(3) == 0 {
        lines.truncate(1);
    }
    for line in &mut lines {
        if let Request::Make(change) = &mut line.request {
            change.strategy = Strategy::NAMES[usize::try_from(below(3)).unwrap_or(0)].1;
        }
    }
    let mut draft = Draft { below: &mut below, components: Vec::new(), wires: BTreeSet::new(), vms: 3, extra: 0 };
    draft.components = ["c1", "c2"].map(|it| (self::name(it), 0)).into();
    scenario.faults = draft.faults();
    scenario.expected = draft.expectation(lines.len());
    scenario.lines = lines.into();
    scenario
}

/// Makes two VMs with one or two components each, both the same, and one change to both.
fn twins(name: String, mut below: impl FnMut(u64) -> u64) -> Scenario {
    let paired = below(2) == 0;
    let values = if below(2) == 0 { vec![self::name("port")] } else { Vec::new() };
    let mut provider =
        Kind { exports: [(self::name("e"), Export { values, capacity: None })].into(), ..Kind::default() };
    provider.renews = below(2) == 0;
    let need = [Need::Strong(1), Need::Weak(1), Need::Value(1)][usize::try_from(below(3)).unwrap_or(0)];
    let import = Import { export: self::name("e"), need };
    let client = Kind { imports: [(self::name("s"), import)].into(), rebinds: below(3) == 0, ..Kind::default() };
    let (provider, client) = (Arc::new(provider), Arc::new(client));
    let (mut edits, mut change) = (Vec::new(), Vec::new());
    let removes = below(2) == 0;
    for twin in 1..=2 {
        let (vm, one, other) = (vm_name(twin), self::name(&format!("c{twin}")), self::name(&format!("d{twin}")));
        edits.push(Edit::AddVm { vm: vm.clone() });
        edits.push(Edit::AddComponent { component: one.clone(), vm: vm.clone(), kind: provider.clone() });
        if paired {
            edits.push(Edit::AddComponent { component: other.clone(), vm, kind: client.clone() });
            edits.push(Edit::AddBinding(wire(&other, &self::name("s"), &one)));
        }
        let component = one;
        change.push(if removes { Edit::RemoveComponent { component } } else { Edit::RestartComponent { component } });
    }
    let lines = [Line { request: make(edits), patient: true }, Line { request: make(change), patient: true }];
    Scenario { name, lines: lines.into(), ..Scenario::default() }
}

struct Draft<'b> {
    below: &'b mut dyn FnMut(u64) -> u64,
    /// The components there are, with their place in the order of strong imports.
    components: Vec<(Name, u64)>,
    wires: BTreeSet<Wire>,
    vms: u64,
    extra: u64,
}

impl Draft<'_> {
    fn draw(&mut self, n: u64) -> u64 {
        (self.below)(n)
    }

    /// True one time in so many.
    fn chance(&mut self, one_in: u64) -> bool {
        self.draw(one_in) == 0
    }

    /// Lets the operations of a component be tried again, sometimes.
    fn be_stubborn(&mut self, edit: &mut Edit) {
        let Edit::AddComponent { kind, .. } = edit else { return };
        if self.chance(4) {
            let operation = [Operation::Start, Operation::Stop, Operation::Run][self.choose(3)];
            let patience = Patience { retries: 1, pause_ms_first: 10, factor: 2 };
            Arc::make_mut(kind).patience.insert(operation, patience);
        }
    }

    /// A place in a list of that length.
    fn choose(&mut self, length: usize) -> usize {
        usize::try_from(self.draw(u64::try_from(length).unwrap_or(1))).unwrap_or(0)
    }

    /// A change of any strategy, complete or not.
    fn request(&mut self, edits: Vec<Edit>) -> Request {
        let (_, strategy) = Strategy::NAMES[self.choose(Strategy::NAMES.len())];
        Request::Make(Change { strategy, incomplete: !self.chance(4), edits })
    }

    /// Something that an operator may ask for, possible or not.
    fn any_request(&mut self) -> Request {
        let count = self.components.len().max(1);
        let place = self.choose(count);
        let chosen = self.components.get(place).map_or_else(|| name("c0"), |(name, _)| name.clone());
        match self.draw(10) {
            0 => Request::Retry(chosen),
            1 => Request::Skip(chosen),
            2 => Request::DeclareLost(vm_name(self.draw(self.vms))),
            3 => {
                let vm = vm_name(self.draw(self.vms));
                self.request(vec![Edit::RemoveVm { vm }])
            }
            4 => {
                let removed = Edit::RemoveComponent { component: chosen };
                let edits = [vec![removed], self.change()].concat();
                self.request(edits)
            }
            _ => {
                let edits = self.change();
                self.request(edits)
            }
        }
    }

    /// One or two things that may go wrong; sometimes none.
    fn faults(&mut self) -> Faults {
        let mut faults = Faults::default();
        for _ in 0..[0, 1, 1, 1, 2][self.choose(5)] {
            let budget = match self.draw(7) {
                0 | 1 => &mut faults.deaths,
                2 | 3 => &mut faults.failures,
                4 => &mut faults.losses,
                5 => &mut faults.crashes,
                _ => &mut faults.breaks,
            };
            *budget += 1;
        }
        faults
    }

    /// Something that may or may not come true.
    fn expectation(&mut self, requests: usize) -> Expected {
        let mut expected = Expected { answers: vec![Answer::Either; requests], ..Expected::default() };
        expected.changes = if self.chance(3) { Changes::Done } else { Changes::Either };
        for (component, _) in self.components.clone() {
            let ends = [ComponentEnd::Started, ComponentEnd::Stopped, ComponentEnd::Failed, ComponentEnd::Gone];
            if self.chance(3) {
                let ends = ends.into_iter().filter(|_| !self.chance(3)).collect();
                expected.components.insert(component.clone(), ends);
            }
            match self.draw(6) {
                0 => drop(expected.never_stopped.insert(component)),
                1 => drop(expected.sometimes_stopped.insert(component)),
                _ => {}
            }
        }
        expected
    }

    fn add_component(&mut self, place: u64) -> Edit {
        let component = name(&format!("c{place}{}", "'".repeat(usize::from(self.extra > 0))));
        let vm = vm_name(self.draw(self.vms));
        let mut kind = Kind::default();
        let strong = 1 + u32::from(self.chance(4));
        let weak = u32::from(self.chance(3));
        for (import, need) in [("s", Need::Strong(strong)), ("w", Need::Weak(weak)), ("v", Need::Value(1))] {
            // Without a strong or value import it can start by itself.
            if need.is_strong() && !self.chance(3) || !need.is_strong() && self.chance(3) {
                kind.imports.insert(name(import), Import { export: name("e"), need });
            }
        }
        let values = if self.chance(2) { vec![name("port")] } else { Vec::new() };
        kind.exports.insert(name("e"), Export { values, capacity: None });
        kind.prepares = self.chance(6);
        kind.rebinds = self.chance(4);
        kind.renews = self.chance(2);
        kind.purges = self.chance(8);
        self.components.push((component.clone(), place));
        self.kinds_note(&component, &kind);
        Edit::AddComponent { component, vm, kind: Arc::new(kind) }
    }

    /// Remembers which imports a component has by a wire to itself, which no change ever asks for.
    fn kinds_note(&mut self, component: &Name, kind: &Kind) {
        for import in kind.imports.keys() {
            self.wires.insert(wire(component, import, component));
        }
    }

    fn imports(&self, component: &Name) -> Vec<Name> {
        let own = self.wires.iter().filter(|wire| wire.client == *component && wire.provider == *component);
        own.map(|wire| wire.import.clone()).collect()
    }

    /// Binds each import of the component at this place to one or two others.
    fn wire(&mut self, place: u64) -> Vec<Edit> {
        let Some((client, _)) = self.components.iter().find(|(_, at)| *at == place).cloned() else { return Vec::new() };
        let mut edits = Vec::new();
        for import in self.imports(&client) {
            for _ in 0..1 + self.draw(2) {
                edits.extend(self.bind(&client, place, &import));
            }
        }
        edits
    }

    fn bind(&mut self, client: &Name, place: u64, import: &Name) -> Option<Edit> {
        let downwards = import.as_str() == "s";
        let fits = |(name, at): &&(Name, u64)| name != client && (!downwards || *at > place);
        let providers: Vec<Name> = self.components.iter().filter(fits).map(|(name, _)| name.clone()).collect();
        let count = u64::try_from(providers.len()).unwrap_or(0);
        let provider = providers.get(usize::try_from(self.draw(count.max(1))).unwrap_or(0))?;
        let wire = wire(client, import, provider);
        self.wires.insert(wire.clone()).then_some(Edit::AddBinding(wire))
    }

    /// One request: something that is possible now.
    fn change(&mut self) -> Vec<Edit> {
        let count = u64::try_from(self.components.len()).unwrap_or(0);
        if count == 0 {
            return Vec::new();
        }
        let chosen = usize::try_from(self.draw(count)).unwrap_or(0);
        let (component, place) = self.components[chosen].clone();
        match self.draw(7) {
            0 | 1 => {
                self.components.remove(chosen);
                self.wires.retain(|wire| wire.client != component && wire.provider != component);
                vec![Edit::RemoveComponent { component }]
            }
            2 => vec![Edit::RestartComponent { component }],
            3 => {
                let bound = |wire: &&Wire| wire.client == component && wire.provider != component;
                let Some(wire) = self.wires.iter().find(bound).cloned() else { return Vec::new() };
                self.wires.remove(&wire);
                vec![Edit::RemoveBinding(wire)]
            }
            4 => {
                let imports = self.imports(&component);
                imports.iter().filter_map(|import| self.bind(&component, place, import)).collect()
            }
            5 => {
                let imports = self.imports(&component);
                let Some(import) = imports.into_iter().find(|import| import.as_str() != "w") else { return Vec::new() };
                let mut edits = vec![Edit::SetNeed { component: component.clone(), import: import.clone(), number: 2 }];
                match self.draw(4) {
                    0 => edits = vec![Edit::SetNeed { component, import, number: 1 }],
                    1 => {}
                    _ => edits.extend(self.bind(&component, place, &import)),
                }
                edits
            }
            _ => {
                self.extra += 1;
                let place = 10 + self.extra;
                let mut edits = vec![self.add_component(place)];
                edits.extend(self.wire(place));
                let imports = self.imports(&component);
                let bind = imports.iter().filter(|import| import.as_str() != "s" || place > 0);
                let new = self.components.last().map(|(name, _)| name.clone());
                for import in bind.cloned().collect::<Vec<_>>() {
                    let wire = new.as_ref().map(|provider| wire(&component, &import, provider));
                    edits.extend(wire.filter(|wire| self.wires.insert(wire.clone())).map(Edit::AddBinding));
                }
                edits
            }
        }
    }
}

fn make(edits: Vec<Edit>) -> Request {
    Request::Make(Change { strategy: Strategy::Together, incomplete: true, edits })
}

fn wire(client: &Name, import: &Name, provider: &Name) -> Wire {
    Wire { client: client.clone(), import: import.clone(), provider: provider.clone(), export: name("e") }
}

fn vm_name(number: u64) -> Name {
    name(&format!("v{number}"))
}

fn name(text: &str) -> Name {
    Name::new(text).expect("these are names")
}
