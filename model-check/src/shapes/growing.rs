//! Applications that grow in one direction, to show how the cost of a step grows with them.

use super::{change, kind, name, wire};
use crate::surroundings::Line;
use protocol::{Need, Strategy, Wish};

/// One VM with that many components in chains of ten; then the first of every tenth chain is restarted.
pub fn many_on_one_vm(components: usize) -> Vec<Line> {
    let (alone, client) = (kind(&[]), kind(&[("in", Need::Strong(1))]));
    let component = |index: usize| name(&format!("c{index}"));
    let mut wishes = vec![Wish::AddVm { vm: name("v") }];
    for index in 0..components {
        let kind = if index % 10 == 0 { &alone } else { &client };
        wishes.push(Wish::AddComponent { component: component(index), vm: name("v"), kind: kind.clone() });
    }
    let clients = (0..components).filter(|index| index % 10 > 0);
    let import = name("in");
    wishes.extend(clients.map(|index| Wish::AddBinding(wire(&component(index), &import, &component(index - 1)))));
    let restarts = (0..components).step_by(100).map(|index| Wish::RestartComponent { component: component(index) });
    vec![change(wishes, Strategy::Together), change(restarts.collect(), Strategy::Together)]
}

/// One component with that many clients, ten on each VM; then it is restarted, and all of them with it.
pub fn many_clients(clients: usize) -> Vec<Line> {
    let (alone, client) = (kind(&[]), kind(&[("in", Need::Strong(1))]));
    let (provider, import) = (name("provider"), name("in"));
    let vm = |index: usize| name(&format!("v{}", index / 10));
    let mut wishes = vec![Wish::AddVm { vm: name("v") }];
    wishes.push(Wish::AddComponent { component: provider.clone(), vm: name("v"), kind: alone });
    wishes.extend((0..clients).step_by(10).map(|index| Wish::AddVm { vm: vm(index) }));
    for index in 0..clients {
        let component = name(&format!("c{index}"));
        wishes.push(Wish::AddBinding(wire(&component, &import, &provider)));
        wishes.push(Wish::AddComponent { component, vm: vm(index), kind: client.clone() });
    }
    let restart = Wish::RestartComponent { component: provider };
    vec![change(wishes, Strategy::Together), change(vec![restart], Strategy::Together)]
}
