//! Compose files as people write them, imported: the results word for word, and each one read and expanded.
//!
//! `BLESS=1 cargo test --package application` writes the results anew; read the difference before you commit it.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use application::{Application, ComposeOptions, Existing, Expansion, Imported, Inputs, Problems, With, import_compose};
use proptest::prelude::*;
use std::{env, fs, path::Path};

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compose")
}

fn imported(name: &str, with: With) -> Imported {
    let options = ComposeOptions { with, folder: "/srv/site".into() };
    let mut open = |name: &str| fs::read_to_string(folder().join(name)).map_err(|_| "there is no such file".into());
    import_compose(name, &options, &mut open).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Imports a text that is alone.
fn from(text: &str, with: With) -> Result<Imported, Problems> {
    let options = ComposeOptions { with, folder: "/srv/site".into() };
    let mut open = |name: &str| if name == "compose.yml" { Ok(text.to_owned()) } else { Err("there is none".into()) };
    import_compose("compose.yml", &options, &mut open)
}

fn expanded(text: &str, values: &[(&str, &str)]) -> Result<Expansion, Problems> {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let inputs = Inputs { values, ..Inputs::default() };
    Application::read("app.yaml", &inputs, &mut |_| Ok(text.to_owned()))?.expand(&Existing::default())
}

/// Compares with what was written down, for both ways; and reads each result with our own reader.
fn check(name: &str) -> [Expansion; 2] {
    [(With::Docker, "docker"), (With::Process, "process")].map(|(with, word)| {
        let Imported { text, remarks } = imported(&format!("{name}.yml"), with);
        let remarks: Vec<String> = remarks
            .iter()
            .map(|it| format!("# {}:{}: {}: {}\n", it.file, it.line, it.service.as_deref().unwrap_or("all"), it.says))
            .collect();
        let path = folder().join(format!("{name}.{word}.yaml"));
        let told = folder().join(format!("{name}.{word}.remarks"));
        if env::var_os("BLESS").is_some() {
            fs::write(&path, &text).unwrap();
            fs::write(&told, remarks.concat()).unwrap();
        }
        assert_eq!(text, fs::read_to_string(&path).unwrap_or_default(), "{}", path.display());
        assert_eq!(remarks.concat(), fs::read_to_string(&told).unwrap_or_default(), "{}", told.display());
        assert_eq!(application::format("app.yaml", &text).unwrap(), text);
        expanded(&on_machines_of_their_own(&text), &[]).unwrap_or_else(|problems| panic!("{problems}"))
    })
}

/// Services that listen on the same port need different machines, and VMs of the cloud `local` share one.
fn on_machines_of_their_own(text: &str) -> String {
    text.replace("machine: { cloud: local, count: 2 }", "machine: { count: 2 }")
}

fn bound(expansion: &Expansion, component: &str) -> Vec<String> {
    let bound = &expansion.components[&component.parse().unwrap()].bound;
    bound.values().flatten().map(ToString::to_string).collect()
}

fn definition<'a>(expansion: &'a Expansion, group: &str) -> &'a application::Definition {
    &expansion.definitions[&protocol::Name::new(group).unwrap()]
}

#[test]
fn a_blog_waits_for_its_database_and_is_told_where_it_is() {
    for expansion in check("wordpress") {
        assert_eq!(bound(&expansion, "wordpress[0]"), ["db[0]"]);
        let recipe = &definition(&expansion, "wordpress").recipe;
        assert_eq!(recipe.environment["WORDPRESS_DB_HOST"], "{{ imports.db[0].host }}:{{ imports.db[0].port }}");
        // What nobody gave a default is no part of any file.
        assert!(definition(&expansion, "wordpress").secrets.contains_key("DB_PASSWORD"));
    }
}

#[test]
fn a_vote_has_as_many_workers_as_a_variable_says() {
    for expansion in check("voting") {
        assert_eq!(bound(&expansion, "worker[1]"), ["db[0]", "redis[0]"]);
        // What belongs to a profile is not there unless somebody asks for it.
        assert!(!expansion.components.contains_key(&"seed[0]".parse().unwrap()));
    }
    let text = imported("voting.yml", With::Docker).text;
    let text = on_machines_of_their_own(&text);
    assert_eq!(expanded(&text, &[("WORKERS", "5")]).unwrap().components.len(), 9);
}

#[test]
fn brokers_share_what_is_said_once() {
    for expansion in check("kafka") {
        for broker in ["kafka-1", "kafka-2"] {
            let recipe = &definition(&expansion, broker).recipe;
            let zookeeper = "{{ imports.zookeeper[0].host }}:{{ imports.zookeeper[0].port }}";
            assert_eq!(recipe.environment["KAFKA_ZOOKEEPER_CONNECT"], zookeeper);
        }
        assert_eq!(bound(&expansion, "consumer[0]"), ["kafka-1[0]", "kafka-2[0]", "topics[0]"]);
    }
}

#[test]
fn a_site_migrates_before_it_starts_and_keeps_its_secrets_to_itself() {
    for expansion in check("django") {
        assert_eq!(bound(&expansion, "web[1]"), ["migrate[0]", "postgres[0]", "redis[0]"]);
        let web = definition(&expansion, "web");
        assert!(web.secrets.contains_key("django_key") && web.secrets.contains_key("POSTGRES_PASSWORD"));
    }
}

#[test]
fn plain_commands_are_processes_either_way() {
    let [docker, process] = check("commands");
    assert_eq!(docker, process);
}

#[test]
fn whatever_is_wrong_is_told_at_once_with_its_place() {
    let text = "services:\n  web:\n    imag: nginx\n    ports: [\"x:y\", 70000]\n    restart: sometimes\n    depends_on: [bd]\n    healthcheck: { test: [WHAT, x], interval: soon }\n    stop_grace_period: 5\n  db:\n    image: ${X\n    command: \"a 'b\"\n    configs: [nowhere]\n    depends_on: { web: { condition: healthy } }\nservice: {}\n";
    let problems = from(text, With::Docker).unwrap_err();
    let told: Vec<String> = problems.0.iter().map(|it| format!("{}:{}: {}", it.line, it.column, it.says)).collect();
    let expected = [
        "2:3: `web` needs an `image`, a `build` or a `command`",
        "3:5: unknown field `imag` (did you mean `image`?)",
        "4:13: `y` is not a port from 1 to 65535 (write it like 8080:80)",
        "4:20: `70000` is not a port from 1 to 65535 (write it like 8080:80)",
        "5:14: `restart` must be `no`, `always`, `unless-stopped` or `on-failure:3`, not `sometimes`",
        "6:18: unknown service `bd` (did you mean `db`?)",
        "7:26: `test` must be a text for the shell, or a list that begins with CMD, CMD-SHELL or NONE",
        "7:47: `interval` must be a duration such as 10s, 1m30s or 200ms, not `soon`",
        "8:24: `stop_grace_period` must be a duration such as 10s, 1m30s or 200ms, not `5`",
        "10:12: `${` without `}` (write $$ for a dollar sign)",
        "11:14: a command has a quote that is not closed",
        "12:15: unknown config `nowhere`",
        "13:37: unknown condition `healthy` (known: `service_started`, `service_healthy` and `service_completed_successfully`)",
        "14:1: unknown field `service` (did you mean `services`?)",
    ];
    assert_eq!(told, expected);
}

/// What is said about each service, and the file.
fn told(text: &str) -> (Vec<String>, String) {
    let Imported { text, remarks } = from(text, With::Docker).unwrap_or_else(|problems| panic!("{problems}"));
    (remarks.into_iter().map(|it| format!("{}: {}", it.line, it.says)).collect(), text)
}

#[test]
fn a_volume_keeps_its_real_name() {
    let volumes = "volumes:\n  own: {}\n  ext: { external: true }\n  named: { name: my-real-name }\n  old: { external: { name: older } }\n";
    let (remarks, text) = told(&format!(
        "services:\n  db:\n    image: x\n    volumes: [\"own:/1\", \"ext:/2\", \"named:/3\", \"old:/4:ro\"]\n{volumes}"
    ));
    for volume in ["site_own:/1", "ext:/2", "my-real-name:/3", "older:/4:ro"] {
        assert!(text.contains(&format!("\"{volume}\"")), "{volume} is not in\n{text}");
    }
    assert!(
        remarks.contains(&"7: the external volume ext must exist on the VM: it is not created".into()),
        "{remarks:?}"
    );
}

#[test]
fn nothing_is_left_out_in_silence() {
    let (remarks, text) = told(concat!(
        "services:\n",
        "  a:\n",
        "    image: x\n",
        "    labels: { traefik.enable: \"true\" }\n",
        "    pull_policy: always\n",
        "    environment: { DB_PASSWORD: hunter2, DB_TOKEN: \"${TOKEN:-abc}\", DB_PASSWORD_FILE: /run/x, DB_SECRET: \"${S}\" }\n",
        "    depends_on: { b: {}, gone: { required: false } }\n",
        "    command: sh -c 'until nc -z b 5432; do sleep 1; done'\n",
        "    configs: [{ source: c, target: /c, mode: 0440 }]\n",
        "  b:\n",
        "    image: y\n",
        "    command: [nc, a, \"2181\"]\n",
        "    healthcheck: { test: \"echo ruok | nc b 1 && nc a 2\" }\n",
        "configs: { c: { content: hello } }\n",
    ));
    let lines: Vec<&str> = remarks.iter().map(String::as_str).collect();
    let expected = [
        "4: `labels` is omitted: labels are not used: a program that finds the service by its labels, such as a proxy, needs an import",
        "5: `pull_policy` is omitted: an image is pulled when the machine does not have it",
        "6: `DB_PASSWORD` is stored in plain text: make it a parameter of type secret",
        "6: `DB_TOKEN` is stored in plain text: make it a parameter of type secret",
        "7: `gone` is not defined, and is optional",
        "8: `b` is left as it is in the command: if it means the service, use the address of an import, such as {{ imports.b[0].host }}",
        "12: `a` is left as it is in the command: if it means the service, use the address of an import, such as {{ imports.a[0].host }}",
        "13: `a` is left as it is in the command: if it means the service, use the address of an import, such as {{ imports.a[0].host }}",
    ];
    assert_eq!(lines, expected);
    assert!(text.contains("config-c: { template: hello, mode: \"0440\" }"), "{text}");
}

#[test]
fn passwords_in_plain_sight_are_told_and_not_repeated() {
    let (remarks, _) = told(concat!(
        "services:\n",
        "  a:\n",
        "    image: x\n",
        "    environment:\n",
        "      DATABASE_URL: postgres://shop:hunter2@db.example/shop\n",
        "      BROKER: amqp://shop:${RABBIT:-hunter2}@mq.example\n",
        "      CACHE: redis://:${GIVEN}@cache.example\n",
        "      RABBITMQ_DEFAULT_PASS: hunter2\n",
        "      GUEST: ftp://guest@files.example/a:b@c\n",
        "      HIDDEN: postgres://shop:${DB_PASSWORD}@db.example\n",
        "      DEMANDED: postgres://shop:${DB_WORD:?}@db.example\n",
        "    command: [serve, --db, \"mysql://u:hunter2@db.example\", --password=hunter2, --token-file, /x]\n",
        "  b:\n",
        "    image: redis\n",
        "    command: redis-server --requirepass hunter2 --no-password --verbose\n",
        "    healthcheck: { test: \"curl -f 'http://u:hunter2@localhost/'\" }\n",
    ));
    let password = "is stored in plain text: make it a parameter of type secret";
    let expected = [
        (5, "the password in an address"),
        (6, "the password in an address"),
        (8, "`RABBITMQ_DEFAULT_PASS`"),
        (12, "the password in an address"),
        (12, "`--password`"),
        (15, "`--requirepass`"),
        (16, "the password in an address"),
    ];
    assert_eq!(remarks, expected.map(|(line, what)| format!("{line}: {what} {password}")));
}

#[test]
fn every_field_of_a_service_is_known() {
    // Those of the specification that are texts, or may be.
    let fields = "annotations attach blkio_config cgroup cgroup_parent container_name cpu_count cpu_percent cpu_period cpu_quota cpu_rt_period cpu_rt_runtime cpu_shares cpus cpuset credential_spec device_cgroup_rules devices dns dns_opt dns_search domainname external_links extra_hosts gpus group_add hostname init ipc isolation label_file labels logging mac_address mem_limit mem_reservation mem_swappiness memswap_limit models network_mode networks oom_kill_disable oom_score_adj pid pids_limit platform post_start pre_stop privileged provider pull_policy pull_refresh_after read_only runtime security_opt shm_size stdin_open storage_opt sysctls tmpfs tty ulimits use_api_socket user userns_mode uts volumes_from working_dir";
    for field in fields.split(' ') {
        let (_, text) = told(&format!("services:\n  a:\n    image: x\n    {field}: \"true\"\n"));
        expanded(&text, &[]).unwrap_or_else(|problems| panic!("{field}: {problems}"));
    }
}

#[test]
fn what_a_service_lacks_is_told_only_where_it_is_known() {
    let told = |text: &str| {
        let problems = from(text, With::Docker).err().map(|it| it.0).unwrap_or_default();
        problems.iter().map(|it| it.says.clone()).collect::<Vec<_>>()
    };
    let lacks = "`a` needs an `image`, a `build` or a `command`";
    assert_eq!(told("services: { a: { image: \"\" } }"), [lacks]);
    assert_eq!(told("services: { a: { image: [x] } }"), ["an image must be a text, not a list"]);
    assert_eq!(
        told("services: { a: { extends: { file: gone.yml, service: b } } }"),
        ["gone.yml cannot be read: there is none"]
    );
    for volume in [":/x", "5", "a:b"] {
        assert!(
            told(&format!("services: {{ a: {{ image: x, volumes: [\"{volume}\"] }} }}"))[0]
                .contains("a volume is written")
        );
    }
}

#[test]
fn a_port_for_this_machine_alone_is_one_for_everybody_now() {
    let ports = "[\"127.0.0.1:80:80\", \"[::1]:81:81\", { target: 82, published: 82, host_ip: 10.0.0.1 }, \"0.0.0.0:83:83\", \"84:84\"]";
    let (remarks, _) = told(&format!("services:\n  a:\n    image: x\n    ports: {ports}\n"));
    let everybody =
        |port: u16, address: &str| format!("4: port {port} is open at every address of its VM, not only at {address}");
    assert_eq!(remarks, [everybody(80, "127.0.0.1"), everybody(81, "[::1]"), everybody(82, "10.0.0.1")]);
}

#[test]
fn a_circle_is_drawn() {
    let text = "services:\n  a: { image: x, depends_on: [b] }\n  b: { image: x, depends_on: [c] }\n  c: { image: x, depends_on: { b: {} } }\n";
    let told = from(text, With::Docker).unwrap_err().to_string();
    assert!(told.contains("compose.yml:4:32") && told.contains("b → c → b"), "{told}");
    // Whoever is not required can come later.
    assert!(from(&text.replace("b: {} }", "b: { required: false } }"), With::Docker).is_ok());
    assert!(from("services: { a: { extends: a, image: x } }", With::Docker).is_err());
}

/// Pieces of compose files, so that garbage comes near to what is meant.
const PIECES: [&str; 40] = [
    "services:",
    "\n  ",
    "\n    ",
    "\n      ",
    "a:",
    "b:",
    "image: x",
    "command:",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "- ",
    "depends_on:",
    "condition: service_healthy",
    "environment:",
    "A=1",
    "ports:",
    "80:80",
    "healthcheck:",
    "test:",
    "CMD",
    "${A:-b}",
    "${",
    "$$",
    "&x ",
    "*x",
    "<<: *x",
    "extends: a",
    "volumes:",
    "./a:/b:ro",
    "deploy:",
    "replicas: 2",
    "secrets:",
    "configs:",
    "'",
    "\"",
    "{{ x }}",
    "é",
];

proptest! {
    #[test]
    fn garbage_is_told_and_never_breaks_anything(pieces in prop::collection::vec(0..PIECES.len(), 0..60), text in ".{0,60}", docker: bool) {
        let near: String = pieces.iter().map(|it| PIECES[*it]).collect();
        let with = if docker { With::Docker } else { With::Process };
        for text in [near.clone(), text.clone(), format!("services:\n  a:\n    image: x\n    command: {text:?}\n    environment: [{near:?}, {text:?}]\n    healthcheck: {{ test: {near:?} }}\n    volumes: [{near:?}, {text:?}]\n    working_dir: {text:?}\n    user: {near:?}\n")] {
            if let Ok(imported) = from(&text, with) {
                prop_assert_eq!(&application::format("app.yaml", &imported.text).unwrap(), &imported.text);
                let problems = expanded(&imported.text, &[]).err().map(|it| it.to_string()).unwrap_or_default();
                // What the application must be told is no mistake of the import.
                prop_assert!(problems.is_empty() || problems.contains("has no value"), "{text}\n{}\n{problems}", imported.text);
            }
        }
    }
}
