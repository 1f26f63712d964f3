//! A small shop, and short ways to read and expand a file that is in memory.
#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]
#![allow(dead_code, reason = "each test program uses its own part of this")]

use application::{Application, Existing, Expansion, Inputs, Problems};

pub(crate) const SHOP: &str = r#"holdfast: 1
application: shop
types:
  Database:
    exports:
      sql: { values: [host, port], capacity: 20 }
    values: { port: "{{ free_port() }}" }
    operations:
      start: { process: "exec mydb --port {{ port }}" }
      check: { tcp: "{{ port }}" }
  Cache:
    parameters: { size: { type: integer, default: 64 } }
    exports: { objects: { values: [host] } }
    operations:
      start: { process: "exec cache --size {{ parameters.size }}" }
  App:
    imports:
      db: { export: sql }
      cache: { export: objects, weak: 0 }
    files:
      app.conf: |
        db = {{ imports.db[0].host }}:{{ imports.db[0].port }}
        {% for cache in imports.cache %}cache = {{ cache.host }}
        {% endfor %}
    operations:
      start: { process: [app, --config, "{{ directory }}/app.conf"] }
      rebind: { signal: HUP }
vms:
  data: { cloud: local }
  web: { count: 2, cloud: local, labels: { zone: a } }
components:
  database: { type: Database, on: data, count: 2 }
  cache: { type: Cache, on: data, parameters: { size: 64 } }
  app: { type: App, on: web, count: 3, bind: { db: one } }
"#;

pub(crate) fn read(text: &str, inputs: &Inputs) -> Result<Application, Problems> {
    Application::read("shop.yaml", inputs, &mut |name| {
        if name == "shop.yaml" { Ok(text.into()) } else { Err("there is no such file".into()) }
    })
}

pub(crate) fn expand(text: &str) -> Expansion {
    let expanded = read(text, &Inputs::default()).and_then(|it| it.expand(&Existing::default()));
    expanded.unwrap_or_else(|problems| panic!("{problems}"))
}

pub(crate) fn expand_after(text: &str, before: &Expansion) -> Expansion {
    let existing = Existing { before: Some(before), others: &[] };
    let expanded = read(text, &Inputs::default()).and_then(|it| it.expand(&existing));
    expanded.unwrap_or_else(|problems| panic!("{problems}"))
}

pub(crate) fn problems(text: &str) -> Vec<String> {
    match read(text, &Inputs::default()).and_then(|it| it.expand(&Existing::default())) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.0.iter().map(|it| format!("{}:{} {}", it.line, it.column, it.says)).collect(),
    }
}

pub(crate) fn vms(expansion: &Expansion) -> Vec<String> {
    expansion.components.iter().map(|(key, it)| format!("{key} on {}", it.vm)).collect()
}

pub(crate) fn bindings(expansion: &Expansion) -> Vec<String> {
    let empty = Expansion::empty(expansion.application.clone());
    application::Difference::between(&empty, expansion).bound.iter().map(ToString::to_string).collect()
}
