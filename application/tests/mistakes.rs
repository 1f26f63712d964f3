//! Everything that can be wrong with a file, and how it is told.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod shop;

use application::{Application, Existing, Inputs};
use shop::{SHOP, expand, problems, read};
use std::collections::BTreeMap;

/// The shop with one thing changed, and the one problem that it has then.
#[track_caller]
fn check(from: &str, to: &str, expected: &str) {
    assert!(SHOP.contains(from), "{from}");
    let told = problems(&SHOP.replacen(from, to, 1));
    assert!(told.len() == 1 && told[0].contains(expected), "{to}: {told:#?}");
}

#[test]
fn unknown_fields_and_names_are_told_with_what_was_meant() {
    check("    imports:\n", "    import:\n", "17:5 unknown field `import` (did you mean `imports`?)");
    check("type: App,", "type: Ap,", "unknown type `Ap` (did you mean `App`?)");
    check("type: Cache, on: data", "type: Cache, on: dat", "unknown VM group `dat` (did you mean `data`?)");
    check("parameters: { size: 64 }", "parameters: { sise: 64 }", "unknown parameter `sise` (did you mean `size`?)");
    check("bind: { db: one }", "bind: { bd: one }", "type `App` has no import `bd` (did you mean `db`?)");
    check("bind: { db: one }", "bind: { db: databse }", "unknown component `databse` (did you mean `database`?)");
    check("bind: { db: one }", "bind: { db: cache }", "`cache` does not export `sql` (it exports `objects`)");
    check(
        "bind: { db: one }",
        "bind: { db: \"database[2]\" }",
        "there is no `database[2]`: `database` has 2, numbered from 0",
    );
    check("holdfast: 1", "holdfast: 2", "version 2 of the language");
    check("holdfast: 1\n", "", "the file must declare the version of the language");
    check("application: shop\n", "", "the application needs a name");
    check("  cache: { type", "  all: { type", "`all` is a keyword of `bind`");
    check("  cache: { type", "  1cache: { type", "`1cache` is not a valid name");
}

#[test]
fn values_of_the_wrong_sort_are_told() {
    check("size: 64 } }", "size: big } }", "`size` must be a whole number, not `big`");
    check("default: 64", "default: x", "`size` must be a whole number, not `x`");
    check("web: { count: 2", "web: { count: two", "`count` must be a whole number, not `two`");
    check("web: { count: 2", "web: { count: -1", "`count` must be a whole number");
    check("web: { count: 2", "web: { count: 2000000", "at most 1000000");
    check("weak: 0", "weak: 0, strong: 1", "only one of strong, weak and value");
    check("{ export: sql }", "{ export: sql, strong: 0 }", "must be weak (`weak: 0`)");
    check("rebind: { signal: HUP }", "rebind: { signal: HPU }", "a signal cannot be `HPU` (did you mean `HUP`?)");
    check("rebind: { signal: HUP }", "start: { process: x }", "`start` is defined twice (first on line 26)");
    check("check: { tcp: \"{{ port }}\" }", "check: { tcp: \"{{ port }}\", interval: 5 }", "a duration such as 200ms");
    check("start: { process: \"exec mydb --port {{ port }}\" }", "start: { script: x }", "needs a stop command");
    check(
        "parameters: { size: { type: integer, default: 64 } }",
        "parameters: { size: { type: integer, default: 64 }, more: { type: text } }",
        "must set the parameter `more`",
    );
}

#[test]
fn templates_read_only_what_is_there() {
    check(
        "imports.db[0].port",
        "imports.db[0].prot",
        "22:56 the template reads `prot` of import `db`, but export `sql` has no such value (did you mean `port`?)",
    );
    check("cache = {{ cache.host }}", "cache = {{ cache.port }}", "reads `port` of import `cache`");
    check("imports.db[0].port", "imports.database[0].port", "unknown import `imports.database`");
    check("imports.db[0].port", "imports.db.port", "`imports.db` is a list");
    check("parameters.size", "parameters.sise", "unknown parameter `parameters.sise` (did you mean `size`?)");
    check("--size {{ parameters.size }}", "--size {{ size }}", "did you mean `parameters.size`?");
    check(
        "mydb --port {{ port }}",
        "mydb --port {{ prot }}",
        "9:46 the template reads the unknown name `prot` (did you mean `port`?)",
    );
    check("\"{{ free_port() }}\"", "\"{{ fre_port() }}\"", "unknown function `fre_port` (did you mean `free_port`?)");
    check("mydb --port {{ port }}", "mydb --port {{ free_port() }}", "in `values` only");
    check("\"{{ directory }}/app.conf\"", "\"{{ directory\"", "template: ");
    // What is meant is plain.
    check(
        "port: \"{{ free_port() }}\" }",
        "port: {{ free_port() }} }",
        "7:22 a name must be a text, not a list or a map (put templates",
    );
    check(
        "values: [host, port], capacity",
        "values: [host, port, key], capacity",
        "passes on `key`, but nothing defines it",
    );
    check(
        "start: { process: \"exec cache",
        "install: \"echo {{ imports.db[0].host }} > x\"\n      start: { process: \"exec cache",
        "before anything is bound",
    );
    // Asking whether something is there is no mistake, nor is what a loop makes.
    expand(&SHOP.replace("cache = {{ cache.host }}", "{% if nobody is defined %}{% endif %}{% set x = cache %}{{ x.host }} {{ loop.index }} {{ (imports.db | first).host }}"));
}

#[test]
fn strong_imports_in_a_circle_are_drawn() {
    let text = SHOP
        .replace("  Cache:\n", "  Cache:\n    imports: { app: { export: http } }\n")
        .replace("  App:\n", "  App:\n    exports: { http: [host] }\n")
        .replace("weak: 0", "strong: 1");
    let told = problems(&text);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].contains("app[0] ─cache→ cache[0] ─app→ app[0]"), "{told:#?}");
    // The same through values is fine.
    expand(&text.replace("{ export: http }", "{ export: http, value: all }"));
}

#[test]
fn too_little_of_anything_is_told() {
    check(
        "capacity: 20",
        "capacity: 1",
        "1 of the 3 components of `app` cannot be bound to the 1 providers that `db` needs: together they have capacity for 2 clients",
    );
    check("capacity: 20", "capacity: 0", "3 of the 3");
    check(
        "{ export: sql }",
        "{ export: sql, strong: 3 }",
        "cannot be bound to the 3 providers that `db` needs: there are 2 of them",
    );
    check(
        "bind: { db: one }",
        "bind: { db: index }",
        "`app[2]` has no provider: by `index` there are 2 providers for 3 clients of `db`",
    );
    check("bind: { db: one }", "bind: { db: none }", "needs 1 providers, but is bound to 0");
    check(
        "bind: { db: one } }",
        "bind: { db: all } }\n  other: { type: Database, on: data }",
        "could be bound to `database` and `other`",
    );
    check("{ export: sql }", "{ export: sqll }", "no component has it (did you mean `sql`?)");
    let crowded = SHOP.replace("  App:\n", "  App:\n    conflicts: [App]\n");
    assert!(
        problems(&crowded)[0].contains("`app[2]` cannot be placed on `web`: `web[0]` has a component of type `App`")
    );
    let small = SHOP
        .replace("  App:\n", "  App:\n    resources: { cpu: 2 }\n")
        .replace("web: { count: 2,", "web: { count: 2, resources: { cpu: 3 },");
    assert!(
        problems(&small)[0].contains("`web[0]` has 3 of cpu, 2 of it in use, and the component needs 2"),
        "{:?}",
        problems(&small)
    );
    let ports = SHOP
        .replace(
            "{{ parameters.size }}\" }",
            "{{ parameters.size }}\" }\n      check: { tcp: \"{{ parameters.size }}\" }",
        )
        .replace("type: Cache, on: data,", "type: Cache, on: data, count: 2,");
    assert_eq!(
        problems(&ports),
        [
            "34:3 `cache[1]` cannot be placed on `data`: port 64 of `data[0]` is already used by a component of `cache` (add VMs, or use fewer components)"
        ]
    );
}

#[test]
fn a_start_is_of_one_sort_and_a_container_has_an_image() {
    let start = |text: &str| SHOP.replacen("start: { process: \"exec mydb --port {{ port }}\" }", text, 1);
    for (text, says) in [
        ("start: { process: a, systemd: b }", "`start` needs exactly one of `process`"),
        ("start: { container: { command: x } }", "a container needs an `image`"),
        ("start: { container: { image: x, volume: y } }", "did you mean `volumes`"),
        ("start: { container: { image: x, job: perhaps } }", "`job` cannot be `perhaps` (known: `true` and `false`)"),
        ("start: { systemd: \"{{ parameters.unit }}\" }", "unknown parameter `parameters.unit`"),
    ] {
        let told = problems(&start(text)).join("\n");
        assert!(told.contains(says), "{text}: {told}");
    }
    let container = start("start: { container: { image: x, command: \"{{ container }}\", engine: podman } }");
    assert_eq!(problems(&container), [""; 0]);
}

#[test]
fn everything_is_told_at_once() {
    let text = SHOP
        .replace("export: objects", "export: objects, wek: 0")
        .replace("type: Database", "type: Databas")
        .replace("{{ parameters.size }}", "{{ parameters.sise }}")
        .replace("count: 3", "count: many");
    let told = problems(&text);
    assert_eq!(told.len(), 4, "{told:#?}");
}

#[test]
fn variables_come_from_the_file_a_values_file_or_the_command_line() {
    let text = SHOP
        .replace("types:\n", "variables:\n  apps: { type: integer, default: 3 }\n  zone: a\ntypes:\n")
        .replace("count: 3", "count: \"${apps}\"")
        .replace("zone: a }", "zone: \"zone-${zone}\" }");
    let count = |inputs: &Inputs| {
        let expansion = read(&text, inputs).and_then(|it| it.expand(&Existing::default())).unwrap();
        let zone = expansion.vms[&"web[0]".parse().unwrap()].labels["zone"].clone();
        (expansion.components.keys().filter(|key| key.group.as_str() == "app").count(), zone)
    };
    let file = vec![("production.yaml".to_string(), "apps: 5\nzone: b\n".to_string())];
    let values = BTreeMap::from([("apps".to_string(), "7".to_string())]);
    assert_eq!(count(&Inputs::default()), (3, "zone-a".into()));
    assert_eq!(count(&Inputs { values_files: file.clone(), ..Inputs::default() }), (5, "zone-b".into()));
    assert_eq!(count(&Inputs { values_files: file, values, ..Inputs::default() }), (7, "zone-b".into()));
    let counts = BTreeMap::from([("app".to_string(), 9)]);
    assert_eq!(count(&Inputs { counts, ..Inputs::default() }).0, 9);
    let wrong = Inputs {
        values: BTreeMap::from([("aps".into(), "x".into()), ("apps".into(), "many".into())]),
        ..Inputs::default()
    };
    let told = read(&text, &wrong).unwrap().expand(&Existing::default()).unwrap_err().to_string();
    assert!(told.contains("--set:1:1: unknown variable `aps` (did you mean `apps`?)"), "{told}");
    assert!(told.contains("--set:1:6: `apps` must be a whole number, not `many`"), "{told}");
    // An empty text is one, and nothing is what the file says.
    let values = BTreeMap::from([("zone".to_string(), String::new())]);
    assert_eq!(count(&Inputs { values, ..Inputs::default() }).1, "zone-");
    let alone = text.replace("\"zone-${zone}\"", "\"${zone}\"");
    let values = BTreeMap::from([("zone".to_string(), String::new())]);
    let read_alone = read(&alone, &Inputs { values, ..Inputs::default() }).unwrap().expand(&Existing::default());
    assert_eq!(read_alone.unwrap().vms[&"web[0]".parse().unwrap()].labels["zone"], "");
    let files = ["zone: b\n", "zone:\n"].map(|text| ("values.yaml".to_string(), text.to_string()));
    assert_eq!(count(&Inputs { values_files: files.into(), ..Inputs::default() }).1, "zone-a");
    let told = problems(&text.replace("zone: a\ntypes", "zone: \"${apps}\"\ntypes"));
    assert!(told.len() == 1 && told[0].contains("a variable cannot refer to another one"), "{told:#?}");
}

#[test]
fn files_are_put_together_and_overridden() {
    let types = SHOP.split("vms:\n").next().unwrap().replace("application: shop\n", "");
    let main = "holdfast: 1\napplication: shop\ninclude: common/types.yaml\noverride:\n  types:\n    Cache: { parameters: { size: { default: 7 } }, operations: { start: { process: \"x {{ parameters.size }}\" } } }\ntypes:\n  Large: { extends: Cache, parameters: { size: { default: 8 } } }\nvms: { v: {} }\ncomponents:\n  cache: { type: Cache }\n  large: { type: Large }\n";
    let expand = |main: &str| {
        Application::read("shop.yaml", &Inputs::default(), &mut |name| match name {
            "shop.yaml" => Ok(main.into()),
            "common/types.yaml" => Ok(types.clone()),
            _ => Err("there is no such file".into()),
        })
        .and_then(|it| it.expand(&Existing::default()))
    };
    let expansion = expand(main).unwrap_or_else(|problems| panic!("{problems}"));
    let size = |group: &str| expansion.parameters(&protocol::Name::new(group).unwrap())["size"].clone();
    assert_eq!((size("cache"), size("large")), (7.into(), 8.into()));
    let told = expand(&main.replace("    Cache:", "    Cach:")).unwrap_err().to_string();
    assert!(told.contains("cannot override unknown `Cach` under `types` (did you mean `Cache`?)"), "{told}");
    let told = expand(&main.replace("types.yaml", "tpyes.yaml")).unwrap_err().to_string();
    assert!(told.contains("shop.yaml:3:10: common/tpyes.yaml cannot be read: there is no such file"), "{told}");
    let told = expand(&main.replace("  Large: { extends: Cache", "  Cache: { extends: Large")).unwrap_err().to_string();
    let says = "`Cache` is defined twice; to change it, use `override` (first in shop.yaml:8)";
    assert!(told.contains(says), "{told}");
    let told = expand(&main.replace("extends: Cache", "extends: Large")).unwrap_err().to_string();
    assert!(told.contains("a type cannot extend itself: Large → Large"), "{told}");
    let told = expand(&main.replace("extends: Cache", "extends: ~")).unwrap().definitions.len();
    assert_eq!(told, 2, "nothing extends nothing");
}

#[test]
fn a_text_stays_as_it_is_written() {
    let text = |default: &str| {
        let typed =
            SHOP.replace("default: 64 } }", &format!("default: 64 }}, more: {{ type: text, default: {default} }} }}"));
        expand(&typed).parameters(&protocol::Name::new("cache").unwrap())["more"].clone()
    };
    for written in ["1.10", "12345678901234567890", "1e3", "true"] {
        assert_eq!(text(written), written);
    }
}

#[test]
fn only_where_somebody_listens_a_port_is_taken() {
    let file = |lines: &str, second: &str| {
        format!(
            "holdfast: 1\napplication: ports\ntypes:\n  T:\n    parameters: {{ p: {{ type: port, default: 8080 }}, upstream: {{ type: port, default: 5432 }} }}\n{lines}\nvms: {{ v: {{}} }}\ncomponents:\n  a: {{ type: T }}\n  b: {{ type: T{second} }}\n"
        )
    };
    let taken = "`b[0]` cannot be placed on `v`: port 8080 of `v[0]` is already used by a component of `a`";
    for listens in [
        "    operations: { check: { tcp: 8080 } }",
        "    operations: { check: { tcp: \"8080\" } }",
        "    operations: { check: { tcp: \"{{ parameters.p }}\", host: 127.0.0.1 } }",
        "    operations: { check: { http: \"http://{{ host }}:8080/health\" } }",
        "    exports: { e: { values: { port: port } } }\n    values: { port: 8080 }",
        "    exports: { e: [host, port] }\n    values: { port: \"{{ parameters.p }}\" }",
        "    exports: { e: { values: { port: port } } }\n    values: { base: 8000, port: \"{{ values.base | int + 80 }}\" }",
    ] {
        let told = problems(&file(listens, ""));
        assert!(told.len() == 1 && told[0].contains(taken), "{listens}: {told:#?}");
    }
    for elsewhere in [
        "    operations: { start: { process: \"exec t --upstream {{ parameters.upstream }}\" } }",
        "    operations: { check: { tcp: 8080, host: example.com } }",
        "    operations: { check: { http: \"http://example.com:8080/\" } }",
        "    exports: { e: { values: { host: text, port: port } } }\n    values: { host: example.com, port: 8080 }",
    ] {
        assert_eq!(problems(&file(elsewhere, "")), [""; 0], "{elsewhere}");
    }
    let check = "    operations: { check: { tcp: \"{{ parameters.p }}\" } }";
    assert_eq!(problems(&file(check, ", parameters: { p: 8081 }")), [""; 0]);
    // Whoever has a choice of VMs goes where the port is free.
    assert_eq!(problems(&file(check, "").replace("v: {}", "v: { count: 2 }")), [""; 0]);
}

#[test]
fn operations_that_cannot_work_are_told() {
    let tcp = "check: { tcp: \"{{ port }}\" }";
    for (wrong, says) in [
        ("99999", "`tcp` must be a port from 1 to 65535, not `99999`"),
        ("0", "`tcp` must be a port from 1 to 65535, not `0`"),
        ("abc", "not `abc`"),
        ("\"localhost:80\"", "not `localhost:80` (the address goes into `host`)"),
    ] {
        check(tcp, &format!("check: {{ tcp: {wrong} }}"), says);
    }
    for (wrong, says) in [
        ("x", "`http` must be an address such as http://host:port/path, not `x`"),
        ("\"https://{{ host }}/\"", "TLS is not supported here"),
        ("\"http://{{ host }}:http/\"", "and `http` is not a port"),
        ("\"http:///health\"", "not `http:///health`"),
        ("\"http://:80/\"", "not `http://:80/`"),
    ] {
        check(tcp, &format!("check: {{ http: {wrong} }}"), says);
    }
    for (text, says) in [
        ("command: x, attempt: 0s", "`attempt` must be longer than zero"),
        ("command: x, ready-within: 0ms", "`ready-within` must be longer than zero"),
        ("tcp: 80, host: \"\"", "`host` must be a text, not ``"),
        ("command: [\"\", x]", "a program must be a text, not ``"),
    ] {
        check(tcp, &format!("check: {{ {text} }}"), says);
    }
    let start = "start: { process: \"exec mydb --port {{ port }}\" }";
    for (text, says) in [
        ("container: \"\"", "an image must be a text, not ``"),
        ("container: { image: ~, command: x }", "a container needs an `image`"),
        ("systemd: \" \"", "a unit must be a text, not ` `"),
        ("systemd: x.service, time-limit: 0s", "`time-limit` must be longer than zero"),
    ] {
        check(start, &format!("start: {{ {text} }}"), says);
    }
    check(tcp, "check: { command: \"true\", host: x }", "`host` belongs to `tcp`, which is missing");
    check(tcp, "stop: { time-limit: 5s }", "`time-limit` applies to a `command`, and there is none");
    check(tcp, "rebind: { signal: HUP, time-limit: 5s }", "`time-limit` applies to a `command`, and there is none");
    check(
        "mydb --port {{ port }}\" }",
        "mydb --port {{ port }}\", time-limit: 5s }",
        "`time-limit` applies to commands that end, and this one keeps running",
    );
    check(
        "start: { process: [app, --config, \"{{ directory }}/app.conf\"] }",
        "start: { script: x }\n      stop: { command: x }",
        "no process to send a signal to (use `rebind: { command: … }`)",
    );
    check(
        "type: Cache, on: data",
        "type: Cache, load: { factor: 2 }, on: data",
        "a load needs `each`: the load that one component can take",
    );
}

#[test]
fn nothing_is_withheld_because_of_something_else() {
    let wrong = "check: { tcp: \"{{ port }}\", liveness: no, attempt: 1.5s, ready-within: 1d }";
    let told = problems(&SHOP.replace("check: { tcp: \"{{ port }}\" }", wrong));
    assert_eq!(told.len(), 3, "{told:#?}");
    let other = SHOP.replace("size: 64 } }", "size: big } }");
    let told = problems(&other.replace("bind: { db: one }", "bind: { db: databse }"));
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told[1].contains("unknown component `databse`"), "{told:#?}");
    let told = problems(&other.replace("{ export: sql }", "{ export: sqll }"));
    assert!(told.len() == 2 && told[1].contains("needs export `sqll`"), "{told:#?}");
    // But a component that could not be read is not missing.
    let told = problems(&SHOP.replace("type: Database,", "type: Databas,").replace("{ db: one }", "{ db: database }"));
    assert!(told.len() == 1 && told[0].contains("unknown type `Databas`"), "{told:#?}");
}

#[test]
fn what_may_be_in_a_file_that_cannot_be_read_is_not_missing() {
    let tab = SHOP.replace("  Database:\n", "\tDatabase:\n");
    let told = problems(&tab);
    assert!(told.len() == 1 && told[0].contains("invalid YAML"), "{told:#?}");
    let main = "holdfast: 1\napplication: shop\ninclude: common.yaml\ncomponents:\n  cache: { type: Cache, on: data }\noverride: { types: { App: { exports: ~ } } }\n";
    for broken in [Err("there is no such file".to_owned()), Ok("types:\n\tx: 1\n".to_owned())] {
        let mut open = |name: &str| if name == "shop.yaml" { Ok(main.into()) } else { broken.clone() };
        let read = Application::read("shop.yaml", &Inputs::default(), &mut open);
        let told = read.and_then(|it| it.expand(&Existing::default())).unwrap_err();
        assert_eq!(told.0.len(), 1, "{told}");
    }
}

#[test]
fn a_number_in_quotes_is_told_as_such() {
    check(
        "web: { count: 2",
        "web: { count: \"2\"",
        "`count` must be a whole number, not the text \"2\" (remove the quotes)",
    );
    check("size: 64 } }", "size: \"64\" } }", "`size` must be a whole number, not the text \"64\" (remove the quotes)");
    let truth = SHOP.replace("{ type: integer, default: 64 }", "{ type: boolean, default: \"true\" }");
    let told = problems(&truth.replace("parameters: { size: 64 }", "parameters: { size: false }"));
    assert_eq!(told, ["12:51 `size` must be `true` or `false`, not the text \"true\" (remove the quotes)"]);
    check("size: 64 } }", "size: \"big\" } }", "`size` must be a whole number, not `big`");
}

#[test]
fn a_value_that_nothing_says_is_told_where_it_is_exported() {
    let told = problems(&SHOP.replace("values: [host, port], capacity", "values: [host, port, prot], capacity"));
    assert_eq!(told, ["6:35 an export passes on `prot`, but nothing defines it (did you mean `port`?)"]);
}

#[test]
fn what_is_laid_over_something_else_is_told_where_it_is_laid() {
    let laid = |over: &str| problems(&SHOP.replace("vms:\n", &format!("  Other: {{ extends: App, {over} }}\nvms:\n")));
    let says = " (remove what this overrides: ";
    for (over, taken) in [
        ("imports: { cache: { strong: 1 } }", "`weak: ~`)"),
        ("operations: { start: { script: x }, stop: { command: x }, rebind: ~ }", "`process: ~`)"),
        ("operations: { rebind: { command: x } }", "`signal: ~`)"),
    ] {
        let told = laid(over);
        assert!(told.len() == 1 && told[0].starts_with("28:"), "{told:#?}");
        assert!(told[0].contains(says) && told[0].ends_with(taken), "{told:#?}");
    }
    assert_eq!(laid("imports: { cache: { weak: ~, strong: 1 } }"), [""; 0]);
}

#[test]
fn wiring_that_cannot_be_is_told_as_it_is() {
    let peers = "holdfast: 1\napplication: ring\ntypes: { N: { imports: { peers: { export: e, value: all } }, exports: { e: [host] } } }\nvms: { v: {} }\ncomponents:\n  n: { type: N, count: 3, bind: { peers: all } }\n";
    assert_eq!(
        problems(peers),
        [
            "6:42 import `peers` of `n` needs export `e`, which only `n` itself has (if that is intended: `bind: { peers: { from: n } }`)"
        ]
    );
    assert_eq!(problems(&peers.replace("peers: all }", "peers: { from: n } }")), [""; 0]);
    let two = SHOP.replace("{ export: sql }", "{ export: sql, strong: 2 }");
    let told = problems(&two.replace("bind: { db: one }", "bind: { db: index }"));
    assert!(told[0].contains("`app[0].db` needs 2 providers, but `index` gives each client one"), "{told:#?}");
    check(
        "type: Database, on: data, count: 2 }",
        "type: Database, on: data, count: 0 }\n  other: { type: Database, on: data }",
        "could be bound to",
    );
    let empty = SHOP.replace("type: Database, on: data, count: 2 }", "type: Database, on: data, count: 0 }");
    let none = "import `db` of `app` needs export `sql`, which `database` has, but its `count` is 0";
    assert_eq!(problems(&empty), [format!("34:52 {none}")]);
    // Each of those that are named is looked at.
    let told = problems(&SHOP.replace("bind: { db: one }", "bind: { db: [\"database[7]\", databse, cache] }"));
    assert_eq!(told.len(), 3, "{told:#?}");
    let told = problems(&empty.replace("bind: { db: one }", "bind: { db: database }"));
    assert_eq!(told, ["34:52 import `db` of `app` is bound to `database`, whose `count` is 0"]);
}

#[test]
fn a_template_that_no_recipe_can_hold_is_told_where_it_is_named() {
    let main = "holdfast: 1\napplication: shop\ntypes:\n  T: { files: { a: { from: large } } }\n  U: { extends: T }\nvms: { v: {} }\ncomponents: { t: { type: T } }\n";
    let mut open = |name: &str| match name {
        "large" => Ok("x".repeat(300_000)),
        _ => Ok(main.into()),
    };
    let read = Application::read("shop.yaml", &Inputs::default(), &mut open);
    let told = read.and_then(|it| it.expand(&Existing::default())).unwrap_err();
    let says =
        "large cannot be read: its recipe would be 300000 bytes long (at most 262144; put large files elsewhere)";
    assert_eq!((told.0.len(), told.0[0].line, told.0[0].says.as_str()), (1, 4, says));
}

#[test]
fn one_file_is_read_once_however_it_is_named() {
    let main = "holdfast: 1\napplication: shop\ninclude: [d1.yaml, ./d2.yaml, shop.yaml]\nvms: { v: {} }\ncomponents: { t: { type: T } }\n";
    let mut open = |name: &str| match name {
        "shop.yaml" | "./shop.yaml" | "x/../shop.yaml" => Ok(main.into()),
        "d1.yaml" => Ok("include: sub/common.yaml\n".into()),
        "d2.yaml" => Ok("include: ./sub/../sub/common.yaml\n".into()),
        "sub/common.yaml" => Ok("types: { T: {} }\n".into()),
        other => Err(format!("there is no {other}")),
    };
    for main in ["shop.yaml", "./shop.yaml", "x/../shop.yaml"] {
        let read = Application::read(main, &Inputs::default(), &mut open);
        read.and_then(|it| it.expand(&Existing::default())).unwrap_or_else(|problems| panic!("{problems}"));
    }
}
