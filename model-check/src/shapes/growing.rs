//! Applications that grow in one direction, to show how the cost of a step grows with them.

use super::{change, kind, name, wire};
use crate::environment::Line;
use protocol::{Edit, Name, Need, Strategy};
use std::sync::Arc;

/// One VM with that many components in chains of ten; then the first of every tenth chain is restarted.
pub fn many_on_one_vm(components: usize) -> Vec<Line> {
    let (alone, client) = (kind(&[]), kind(&[("in", Need::Strong(1))]));
    let component = |index: usize| name(&format!("c{index}"));
    let mut edits = vec![Edit::AddVm { vm: name("v") }];
    for index in 0..components {
        let kind = if index % 10 == 0 { &alone } else { &client };
        edits.push(Edit::AddComponent { component: component(index), vm: name("v"), kind: kind.clone() });
    }
    let clients = (0..components).filter(|index| index % 10 > 0);
    let import = name("in");
    edits.extend(clients.map(|index| Edit::AddBinding(wire(&component(index), &import, &component(index - 1)))));
    let restarts = (0..components).step_by(100).map(|index| Edit::RestartComponent { component: component(index) });
    vec![change(edits, Strategy::Together), change(restarts.collect(), Strategy::Together)]
}

/// One component with that many clients, ten on each VM; then it is restarted, and all of them with it.
pub fn many_clients(clients: usize) -> Vec<Line> {
    let (alone, client) = (kind(&[]), kind(&[("in", Need::Strong(1))]));
    let (provider, import) = (name("provider"), name("in"));
    let vm = |index: usize| name(&format!("v{}", index / 10));
    let mut edits = vec![Edit::AddVm { vm: name("v") }];
    edits.push(Edit::AddComponent { component: provider.clone(), vm: name("v"), kind: alone });
    edits.extend((0..clients).step_by(10).map(|index| Edit::AddVm { vm: vm(index) }));
    for index in 0..clients {
        let component = name(&format!("c{index}"));
        edits.push(Edit::AddBinding(wire(&component, &import, &provider)));
        edits.push(Edit::AddComponent { component, vm: vm(index), kind: client.clone() });
    }
    let restart = Edit::RestartComponent { component: provider };
    vec![change(edits, Strategy::Together), change(vec![restart], Strategy::Together)]
}

/// One component with one of that many providers, ten on each VM, and with a client of its own; then it is bound to all of
/// them and needs them all; then all are removed, and it is asked for all of its loans while its client has still to stop.
pub fn many_providers(providers: usize) -> Vec<Line> {
    let (alone, client) = (kind(&[]), kind(&[("in", Need::Strong(1))]));
    let (middle, end, import) = (name("middle"), name("end"), name("in"));
    let provider = |index: usize| name(&format!("p{index}"));
    let vm = |index: usize| name(&format!("v{}", index / 10));
    let add = |component: &Name, vm: Name, kind: &_| Edit::AddComponent {
        component: component.clone(),
        vm,
        kind: Arc::clone(kind),
    };
    let mut edits = vec![Edit::AddVm { vm: name("v") }];
    edits.extend((0..providers).step_by(10).map(|index| Edit::AddVm { vm: vm(index) }));
    edits.extend((0..providers).map(|index| add(&provider(index), vm(index), &alone)));
    edits.extend([add(&middle, name("v"), &client), add(&end, name("v"), &client)]);
    edits.push(Edit::AddBinding(wire(&middle, &import, &provider(0))));
    edits.push(Edit::AddBinding(wire(&end, &import, &middle)));
    let others = (1..providers).map(|index| Edit::AddBinding(wire(&middle, &import, &provider(index))));
    let number = u32::try_from(providers).expect("there are fewer than that");
    let all = Edit::SetNeed { component: middle.clone(), import: import.clone(), number };
    let removed = (0..providers).map(provider).chain([middle.clone(), end]);
    let removals = removed.map(|component| Edit::RemoveComponent { component });
    vec![
        change(edits, Strategy::Together),
        change(others.chain([all]).collect(), Strategy::Together),
        change(removals.collect(), Strategy::Together),
    ]
}

/// That many components, ten on each VM, each added by a change of its own while the others are under way; then each is
/// restarted in the same way.
pub fn many_changes(changes: usize) -> Vec<Line> {
    let alone = kind(&[]);
    let component = |index: usize| name(&format!("c{index}"));
    let vm = |index: usize| name(&format!("v{}", index / 10));
    let vms = (0..changes).step_by(10).map(|index| Edit::AddVm { vm: vm(index) });
    let add = |index: usize| Edit::AddComponent { component: component(index), vm: vm(index), kind: alone.clone() };
    let restart = |index: usize| Edit::RestartComponent { component: component(index) };
    // The first of each kind waits for rest, so that nothing is restarted that is not there; the others wait for nothing.
    let side_by_side = |edit: Edit, first: bool| Line { patient: first, ..change(vec![edit], Strategy::Together) };
    let mut script = vec![change(vms.collect(), Strategy::Together)];
    script.extend((0..changes).map(|index| side_by_side(add(index), index == 0)));
    script.extend((0..changes).map(|index| side_by_side(restart(index), index == 0)));
    script
}
