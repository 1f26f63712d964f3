//! Scenarios of any size: chains, stars, fans, diamonds, and the application of the first paper.

use super::{Answer, ComponentEnd, Expected, Scenario};
use crate::{Faults, Line};
use protocol::{Change, Edit, Export, Import, Kind, Name, Need, Strategy, Wire, manager::Request};
use std::{collections::BTreeMap, sync::Arc};

/// How far a story goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Course {
    /// Everything is added.
    Up,
    /// Then the component on which all others depend is removed.
    UpDown,
    /// Then another one takes its place.
    UpDownUp,
}

/// A line of `n` components, each a strong client of the next, one on each VM. The last one leaves and comes back.
pub fn chain(n: usize, course: Course) -> Scenario {
    let edges: Vec<_> = (1..n).map(|place| (place - 1, place)).collect();
    shape(&format!("chain-{n}"), n, &edges, n.saturating_sub(1), course)
}

/// One provider, and `n - 1` strong clients of it, one on each VM. The provider leaves and comes back.
pub fn star(n: usize, course: Course) -> Scenario {
    let edges: Vec<_> = (1..n).map(|place| (place, 0)).collect();
    shape(&format!("star-{n}"), n, &edges, 0, course)
}

/// One client that needs all of `n - 1` providers, one on each VM. The last provider leaves and comes back.
pub fn fan(n: usize, course: Course) -> Scenario {
    let edges: Vec<_> = (1..n).map(|place| (0, place)).collect();
    shape(&format!("fan-{n}"), n, &edges, n.saturating_sub(1), course)
}

/// One client at the top, one provider at the bottom, and `n - 2` components between them, one on each VM. The bottom
/// leaves and comes back.
pub fn diamond(n: usize, course: Course) -> Scenario {
    let bottom = n.saturating_sub(1);
    let middle = 1..bottom;
    let edges: Vec<_> = middle.clone().map(|place| (0, place)).chain(middle.map(|place| (place, bottom))).collect();
    shape(&format!("diamond-{n}"), n, &edges, bottom, course)
}

/// The running example: Apache and a profiler; Tomcat and an object cache; MySQL, which leaves, and MySQL', which comes.
pub fn running_example(course: Course) -> Scenario {
    let text = match course {
        Course::Up => RUNNING_EXAMPLE.to_string() + "----\napache started\n",
        Course::UpDown => {
            RUNNING_EXAMPLE.to_string() + MYSQL_LEAVES + "----\napache stopped\ntomcat stopped\nmysql gone\n"
        }
        Course::UpDownUp => {
            RUNNING_EXAMPLE.to_string()
                + MYSQL_LEAVES
                + MYSQL_COMES
                + "----\napache started\nmysql gone\nmysql' started\n"
        }
    };
    let always = "profiler started\nobject-cache started\nnever stopped: profiler object-cache\n";
    let name = format!("running-example-{}", course.name());
    Scenario::parse(&name, &(text + always)).expect("the running example is written in the language")
}

const RUNNING_EXAMPLE: &str = "# The application of the first paper.
vm vm1 : apache exports http, imports tomcat strong from tomcat
  profiler imports http optional from apache
vm vm2 : tomcat exports tomcat, imports mysql strong from mysql, imports objects optional from object-cache
  object-cache exports objects
vm vm3 : mysql exports mysql
";
const MYSQL_LEAVES: &str = "change incomplete\n  remove mysql\n";
const MYSQL_COMES: &str = "change\n  add mysql' on vm3 exports mysql\n  bind tomcat.mysql to mysql'\n";

impl Course {
    fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::UpDown => "up-down",
            Self::UpDownUp => "up-down-up",
        }
    }
}

/// Components `c0, c1, …` on VMs `v0, v1, …`; an edge goes from a client to its provider, both by place. `pivot` leaves and
/// comes back under the same name.
fn shape(name: &str, n: usize, edges: &[(usize, usize)], pivot: usize, course: Course) -> Scenario {
    let component = |place: usize| called(&format!("c{place}"));
    let vm = |place: usize| called(&format!("v{place}"));
    let mut edits = Vec::new();
    for place in 0..n {
        let providers = edges.iter().filter(|(client, _)| *client == place).count();
        edits.push(Edit::AddVm { vm: vm(place) });
        edits.push(Edit::AddComponent { component: component(place), vm: vm(place), kind: kind(providers) });
    }
    let mut wires: Vec<(usize, Wire)> = edges
        .iter()
        .map(|(client, provider)| {
            let (client_name, provider_name) = (component(*client), component(*provider));
            let wire =
                Wire { client: client_name, import: called("in"), provider: provider_name, export: called("out") };
            (*client, wire)
        })
        .collect();
    wires.sort_by_key(|(client, _)| *client);
    edits.extend(wires.iter().map(|(_, wire)| Edit::AddBinding(wire.clone())));

    let pivot_name = component(pivot);
    let leaves = vec![Edit::RemoveComponent { component: pivot_name.clone() }];
    let own = edges.iter().filter(|(client, _)| *client == pivot).count();
    let mut comes = vec![Edit::AddComponent { component: pivot_name.clone(), vm: vm(pivot), kind: kind(own) }];
    let touching = wires.iter().filter(|(_, wire)| wire.client == pivot_name || wire.provider == pivot_name);
    comes.extend(touching.map(|(_, wire)| Edit::AddBinding(wire.clone())));

    let lines: Vec<Line> = match course {
        Course::Up => vec![line(edits, false)],
        Course::UpDown => vec![line(edits, false), line(leaves, true)],
        Course::UpDownUp => vec![line(edits, false), line(leaves, true), line(comes, false)],
    };
    let down = if course == Course::UpDown { dependents(edges, pivot) } else { Vec::new() };
    let ends = (0..n).map(|place| {
        let end = match course {
            Course::UpDown if place == pivot => ComponentEnd::Gone,
            _ if down.contains(&place) => ComponentEnd::Stopped,
            _ => ComponentEnd::Started,
        };
        (component(place), [end].into())
    });
    let expected =
        Expected { answers: vec![Answer::Accepted; lines.len()], components: ends.collect(), ..Expected::default() };
    let name = format!("{name}-{}", course.name());
    Scenario { name, story: String::new(), lines: lines.into(), faults: Faults::default(), expected }
}

/// Everything that depends on a place, over any number of edges.
fn dependents(edges: &[(usize, usize)], pivot: usize) -> Vec<usize> {
    let mut found = vec![pivot];
    let mut next = 0;
    while let Some(place) = found.get(next).copied() {
        for (client, provider) in edges {
            if *provider == place && !found.contains(client) {
                found.push(*client);
            }
        }
        next += 1;
    }
    found
}

fn kind(providers: usize) -> Arc<Kind> {
    let need = Need::Strong(u32::try_from(providers).expect("a shape is small"));
    let import = (providers > 0).then(|| (called("in"), Import { export: called("out"), need }));
    let exports = BTreeMap::from([(called("out"), Export::default())]);
    Arc::new(Kind { imports: import.into_iter().collect(), exports, ..Kind::default() })
}

fn line(edits: Vec<Edit>, incomplete: bool) -> Line {
    Line { request: Request::Make(Change { strategy: Strategy::Together, incomplete, edits }), patient: true }
}

fn called(text: &str) -> Name {
    Name::new(text).expect("a shape's names are letters and digits")
}
