//! Applications by the dozen: large layered ones, mid-size random ones, and ones that grow in one direction.

mod growing;
mod layered;
mod random;

pub use growing::{many_changes, many_clients, many_on_one_vm, many_providers};
pub use layered::Layered;
pub use random::{RandomShape, random_script};

use crate::environment::Line;
use protocol::{Change, Edit, Export, Import, Kind, Name, Need, Strategy, Wire, manager::Request};
use std::sync::Arc;

/// A name that is made here, and therefore one.
fn name(text: &str) -> Name {
    Name::new(text).expect("names made here are letters and digits")
}

/// A request for a change, made when everything before has come to rest.
fn change(edits: Vec<Edit>, strategy: Strategy) -> Line {
    Line { request: Request::Make(Change { strategy, incomplete: false, edits }), patient: true }
}

/// A kind with these imports, each of the export `out`, and with the export `out`.
fn kind(imports: &[(&str, Need)]) -> Arc<Kind> {
    let import = |(import, need): &(&str, Need)| (name(import), Import { export: name("out"), need: *need });
    Arc::new(Kind {
        imports: imports.iter().map(import).collect(),
        exports: [(name("out"), Export::default())].into(),
        ..Kind::default()
    })
}

fn wire(client: &Name, import: &Name, provider: &Name) -> Wire {
    Wire { client: client.clone(), import: import.clone(), provider: provider.clone(), export: name("out") }
}
