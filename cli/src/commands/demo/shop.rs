//! The shop of the demo: four VMs, a front, two applications, a cache, and a database that is replaced twice.
//!
//! ```text
//!   front            east                     west              store
//!   web ──needs──▶  app-1 ──needs──────────────────────────▶  database
//!    └────needs──────────────────────────▶  app-2 ──needs──▶
//!                   cache ◀──uses── app-1, app-2
//! ```

use crate::commands::shop_service::READY;
use cloud_manager::document::{EditDocument, NewChange, NewComponent, NewExport, NewImport, NewVm};
use protocol::Strategy;
use serde_json::json;
use std::{collections::BTreeMap, path::Path};

pub(super) const VMS: [&str; 4] = ["front", "east", "west", "store"];
/// The component that receives requests.
pub(super) const FRONT: &str = "web";
/// The component that is restarted through an agent that came back.
pub(super) const CACHE: &str = "cache";
/// The VM whose agent is killed: the cache and one of the applications run there.
pub(super) const STRUCK: &str = "east";

const APPS: [(&str, &str); 2] = [("app-1", "east"), ("app-2", "west")];
const DATABASE_VM: &str = "store";

/// The name of the database with this number.
pub(super) fn database(number: u32) -> String {
    format!("database-{number}")
}

/// Every component there ever is, from the front to the back.
pub(super) fn components() -> Vec<String> {
    let apps = APPS.iter().map(|(app, _)| (*app).to_owned());
    [FRONT.to_owned()].into_iter().chain(apps).chain([CACHE.to_owned()]).chain((1..=3).map(database)).collect()
}

/// The initial shop.
pub(super) fn deploy(program: &Path) -> NewChange {
    let vm = |name: &&str| EditDocument::AddVm(NewVm { name: (*name).into(), cloud: Some("local".into()) });
    let mut edits: Vec<EditDocument> = VMS.iter().map(vm).collect();
    let strong = |export: &str| NewImport { export: export.into(), strong: Some(1), ..NewImport::default() };
    let weak = |export: &str| NewImport { export: export.into(), weak: Some(1), ..NewImport::default() };
    let shop = |name, vm, start_up_ms| Part { name, vm, start_up_ms, imports: vec![], export: None };
    edits.push(Part { imports: vec![("app", strong("page"))], ..shop(FRONT, "front", 200) }.edit(program));
    for (app, vm) in APPS {
        let imports = vec![("sql", strong("sql")), ("cache", weak("cache"))];
        edits.push(Part { imports, export: Some("page"), ..shop(app, vm, 300) }.edit(program));
        edits.push(bind(FRONT, "app", app, "page"));
        edits.push(bind(app, "cache", CACHE, "cache"));
    }
    edits.push(Part { export: Some("cache"), ..shop(CACHE, STRUCK, 200) }.edit(program));
    edits.extend(with_database(program, 1));
    NewChange { edits, ..NewChange::default() }
}

/// Replaces the present database by another one.
pub(super) fn replace_database(program: &Path, number: u32, strategy: Strategy) -> NewChange {
    let mut edits = vec![EditDocument::RemoveComponent(database(number - 1))];
    edits.extend(with_database(program, number));
    NewChange { strategy, edits, ..NewChange::default() }
}

/// Restarts one component.
pub(super) fn restart(component: &str) -> NewChange {
    NewChange { edits: vec![EditDocument::RestartComponent(component.into())], ..NewChange::default() }
}

/// Removes everything.
pub(super) fn remove_everything() -> NewChange {
    let edits = VMS.iter().map(|vm| EditDocument::RemoveVm((*vm).into())).collect();
    NewChange { edits, ..NewChange::default() }
}

/// A database, and both applications bound to it.
fn with_database(program: &Path, number: u32) -> Vec<EditDocument> {
    let name = database(number);
    let part = Part { name: &name, vm: DATABASE_VM, start_up_ms: 400, imports: vec![], export: Some("sql") };
    let mut edits = vec![part.edit(program)];
    edits.extend(APPS.iter().map(|(app, _)| bind(app, "sql", &name, "sql")));
    edits
}

fn bind(client: &str, import: &str, provider: &str, export: &str) -> EditDocument {
    EditDocument::Bind(format!("{client}.{import} → {provider}.{export}"))
}

/// One component of the shop.
struct Part<'a> {
    name: &'a str,
    vm: &'a str,
    start_up_ms: u64,
    imports: Vec<(&'a str, NewImport)>,
    export: Option<&'a str>,
}

/// Its providers, as the service reads them: the import, then the address.
const PROVIDERS: &str = "{% for import, providers in imports | items %}{% for provider in providers %}\
                         {{ import }} {{ provider.address }}\n\
                         {% endfor %}{% endfor %}";

impl Part<'_> {
    fn edit(self, program: &Path) -> EditDocument {
        let program = program.display().to_string();
        let start_up_ms = self.start_up_ms.to_string();
        let run = [
            &program,
            "shop-service",
            "run",
            "--name",
            "{{ name }}",
            "--listen",
            "{{ address }}",
            "--providers",
            "providers",
            "--start-up-ms",
            &start_up_ms,
        ];
        let rebind = [&program, "shop-service", "rebind", "--at", "{{ address }}"];
        let recipe = json!({
            "version": 1,
            "values": { "address": { "template": "{{ host }}:{{ free_port() }}" } },
            "files": [{ "path": "providers", "template": PROVIDERS }],
            "operations": {
                "start": { "process": { "run": run } },
                "check": { "probe": { "http": { "url": format!("http://{{{{ address }}}}{READY}") } }, "interval_ms": 50 },
                "rebind": { "command": { "run": rebind } },
                "stop": { "grace_ms": 2_000 },
            },
        });
        let export = |name: &str| (name.to_owned(), NewExport { values: vec!["address".into()], capacity: None });
        EditDocument::AddComponent(NewComponent {
            name: self.name.into(),
            vm: self.vm.into(),
            imports: self.imports.into_iter().map(|(name, import)| (name.to_owned(), import)).collect(),
            exports: self.export.map(export).into_iter().collect(),
            patience: BTreeMap::new(),
            recipe,
        })
    }
}
