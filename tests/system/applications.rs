//! The example applications, with real processes: planned, applied, scaled, changed, rolled back and removed on one
//! machine.

use crate::site::{Site, order, until};
use cloud_manager::document::{Component, EventDocument};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    io::{Read, Write},
    path::{Path, PathBuf},
};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/applications").join(name)
}

#[track_caller]
fn apply(site: &Site, path: &Path) -> String {
    site.done(&["apply", path.to_str().unwrap(), "--yes"])
}

async fn states(site: &Site) -> Vec<(String, String)> {
    let components: Vec<Component> = site.client.get("/v1/components").await.unwrap();
    components.into_iter().map(|it| (it.name, it.state.to_string())).collect()
}

async fn all_started(site: &Site, number: usize) {
    let states = states(site).await;
    assert_eq!(states.len(), number, "{states:?}");
    assert!(states.iter().all(|(_, state)| state == "started"), "{states:?}");
}

/// The output of a component, once it matches: a started component may not have written all of it yet, and no event
/// says when a program writes.
async fn log(site: &Site, component: &str, fits: impl Fn(&str) -> bool) -> String {
    let path = format!("/v1/components/{}/logs", cloud_manager::client::segment(component));
    for _ in 0..200 {
        let text = site.client.text(&path).await.unwrap();
        if fits(&text) {
            return text;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{component}: {}", site.client.text(&path).await.unwrap())
}

/// The events after a number, up to now.
async fn events_since(site: &Site, after: u64) -> Vec<EventDocument> {
    let newest = site.status().await.newest_event;
    site.events_until(after, |event| event.number >= newest).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_tiers_are_started_changed_and_removed_as_planned() {
    let mut site = Site::open("three-tiers");
    let path = site.place.join("shop.yaml");
    let text = std::fs::read_to_string(example("three-tier.yaml")).unwrap();
    std::fs::write(&path, &text).unwrap();
    let output = apply(&site, &path);
    assert!(output.contains("✓ change 1 is done"), "{output}");
    all_started(&site, 5).await;
    log(&site, "shop/tomcat[0]", |it| it.contains("database = 127.0.0.1:")).await;

    // Applying the same again changes nothing, and says so; what the manager knows survives its restart.
    site.kill_manager();
    site.restart_manager();
    let output = apply(&site, &path);
    assert!(output.contains("No changes.") && !output.contains("change 2"), "{output}");

    // A changed database: the plan says what will stop and start, and that is what happens. The audit proves the order:
    // reports of different VMs may overtake each other on their way to the manager.
    std::fs::write(&path, text.replace("echo database at", "echo another database at")).unwrap();
    let planned = site.done(&["plan", path.to_str().unwrap(), "--json"]);
    let planned: Value = serde_json::from_str(&planned).unwrap();
    assert_eq!(
        planned["applications"][0]["difference"]["components"]["mysql[0]"]["replaced"][0],
        "operation start changed"
    );
    assert_eq!(planned["applications"][0]["difference"]["unchanged"]["components"], 4);
    let after = site.status().await.newest_event;
    apply(&site, &path);
    // The forecast is exact to the message. Only messages at the same time on different machines may come in another order.
    let messages = |value: &Value| -> Vec<String> {
        let mut messages: Vec<String> = serde_json::from_value(value.clone()).unwrap();
        messages.sort();
        messages
    };
    let seen: Value = serde_json::from_str(&site.done(&["audit", "manager", "--change", "2", "--json"])).unwrap();
    assert_eq!(messages(&seen["messages"]), messages(&planned["forecast"]["trace"]));
    assert!(messages(&seen["messages"]).len() > 20);
    let events = events_since(&site, after).await;
    for (verb, state) in [("stop", "stopped"), ("start", "started")] {
        let moments = planned["forecast"]["moments"].as_array().unwrap();
        let foreseen: BTreeSet<String> = moments
            .iter()
            .flat_map(|it| it[verb].as_array().unwrap())
            .map(|it| format!("shop/{}", it.as_str().unwrap()))
            .collect();
        let seen: BTreeSet<String> = order(&events, state).into_iter().collect();
        assert_eq!(seen, foreseen, "{verb}");
        assert_eq!(seen.len(), 3);
    }
    site.audit(&[]);
    log(&site, "shop/mysql[0]", |it| it.contains("another database at")).await;

    // Back to the earlier version, with one command; then all of it is removed.
    site.done(&["rollback", "shop", "--yes"]);
    all_started(&site, 5).await;
    let output = log(&site, "shop/mysql[0]", |it| it.contains("database at")).await;
    assert!(!output.contains("another"), "{output}");
    site.done(&["remove", "shop", "--yes"]);
    assert!(states(&site).await.is_empty());
    assert!(!site.holdfast(&["remove", "shop", "--yes"]).status.success());
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mail_pipeline_is_placed_at_least_cost_and_grows_with_its_load() {
    let site = Site::open("mail");
    let output = apply(&site, &example("mail-pipeline.yaml"));
    assert!(output.contains("Placement: proven best: cost 4282, then stopped 0"), "{output}");
    all_started(&site, 24).await;
    // Each load with the numbers of the heavy services, as measured; the cost is proven minimal.
    let grown = [(20_000, 4, 40, 9_757), (50_000, 8, 67, 17_610), (80_000, 14, 99, 29_034)];
    for (load, heavy, components, cost) in grown {
        let each = [("sentiment-analyser", 15), ("virus-scanner", 13), ("nsfw-detector", 13), ("image-recognizer", 13)];
        let loads: Vec<String> = each.iter().map(|(name, each)| format!("{name}={}", heavy * each * 1_000)).collect();
        let load = load.to_string();
        let mut arguments = vec!["scale", "--yes", "--load", &load];
        loads.iter().for_each(|it| arguments.extend(["--load", it.as_str()]));
        let output = site.done(&arguments);
        assert!(output.contains(&format!("Placement: proven best: cost {cost}, then stopped ")), "{output}");
        all_started(&site, components).await;
    }
    log(&site, "mail/virus-balancer[0]", |it| it.contains("127.0.0.1:")).await;
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_balancer_and_its_servers_are_scaled_without_a_stop() {
    let site = Site::open("balanced");
    apply(&site, &example("load-balancer.yaml"));
    all_started(&site, 4).await;
    log(&site, "balanced/balancer[0]", |it| it.matches("server 127.0.0.1:").count() == 3).await;
    log(&site, "balanced/server[2]", |it| it.contains("clients come by 127.0.0.1:")).await;
    let after = site.status().await.newest_event;
    let output = site.done(&["scale", "server=4", "--yes"]);
    assert!(
        output.contains("+ server[3]") && output.contains("Unchanged: 3 VMs, 3 components, 6 bindings"),
        "{output}"
    );
    all_started(&site, 5).await;
    let events = events_since(&site, after).await;
    // A new component is stopped before it is started; no other ever is.
    assert_eq!(order(&events, "stopped"), ["balanced/server[3]"]);
    assert_eq!(order(&events, "started"), ["balanced/server[3]"]);
    let servers_listed = |it: &str| it.rsplit("told of").next().unwrap().matches("server 127.0.0.1:").count();
    log(&site, "balanced/balancer[0]", |it| it.contains("told of") && servers_listed(it) == 4).await;
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_s_key_is_on_all_hosts_before_they_start() {
    let site = Site::open("controller");
    apply(&site, &example("ssh-controller.yaml"));
    all_started(&site, 4).await;
    log(&site, "cluster/controller[0]", |it| it.contains("controls 3 hosts")).await;
    for host in 0..3 {
        let key_of = "-of-cluster/controller[0]";
        log(&site, &format!("cluster/host[{host}]"), |it| it.contains("lets in key-") && it.contains(key_of)).await;
    }
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_applications_of_the_same_types_run_side_by_side() {
    let site = Site::open("tiers");
    let mut number = 0;
    for (name, bindings) in [("d1", 4), ("d2", 8), ("d3", 4), ("d4", 8)] {
        let path = example(&format!("tiers/{name}.yaml"));
        let output = apply(&site, &path);
        assert!(output.contains(&format!("6 components, {bindings} bindings")), "{output}");
        number += 6;
        all_started(&site, number).await;
    }
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_that_others_use_is_replaced_in_safe_order_and_cannot_be_removed() {
    let site = Site::open("shared");
    let start = "operations: { start: { process: \"exec sleep 100000\" } }";
    let shared = format!(
        "holdfast: 1\napplication: shared\ntypes:\n  Store: {{ parameters: {{ size: 1 }}, exports: {{ blobs: {{ values: {{ port: port, fast: boolean }} }} }}, values: {{ port: 7000, fast: true }}, {start} }}\nvms: {{ v: {{ cloud: local }} }}\ncomponents: {{ store: {{ type: Store, parameters: {{ size: 1 }} }} }}\n"
    );
    let own = format!(
        "holdfast: 1\napplication: own\ntypes:\n  User: {{ imports: {{ store: blobs }}, {} }}\nvms: {{ v: {{ cloud: local }} }}\ncomponents: {{ user: {{ type: User, bind: {{ store: shared/store }} }} }}\n",
        start.replace(
            "exec",
            "echo asks {{ imports.store[0].port + 1 }}{% if imports.store[0].fast %} at once{% endif %}; exec"
        )
    );
    let (shared_path, own_path) = (site.place.join("shared.yaml"), site.place.join("own.yaml"));
    std::fs::write(&shared_path, &shared).unwrap();
    std::fs::write(&own_path, &own).unwrap();
    // The used application has to exist first.
    let early = site.holdfast(&["apply", "own.yaml", "--yes"]);
    assert!(String::from_utf8_lossy(&early.stderr).contains("unknown application `shared`"));
    apply(&site, &shared_path);
    apply(&site, &own_path);
    all_started(&site, 2).await;
    // The application may only use types that the other one declares.
    log(&site, "own/user[0]", |it| it.contains("asks 7001 at once")).await;

    let refused = site.holdfast(&["remove", "shared", "--yes"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(text.starts_with("own uses application shared (holdfast remove shared --with-users"), "{text}");
    all_started(&site, 2).await;

    std::fs::write(&shared_path, shared.replace("{ size: 1 } } }", "{ size: 2 } } }")).unwrap();
    let after = site.status().await.newest_event;
    apply(&site, &shared_path);
    all_started(&site, 2).await;
    let events = events_since(&site, after).await;
    let started: BTreeSet<String> = order(&events, "started").into_iter().collect();
    assert_eq!(started, ["own/user[0]", "shared/store[0]"].map(String::from).into());

    // Together with the applications that use it, each before the one it uses.
    let output = site.done(&["remove", "shared", "--with-users", "--yes"]);
    assert!(output.find("own: ").unwrap() < output.find("shared: ").unwrap(), "{output}");
    assert!(states(&site).await.is_empty());
    site.audit(&[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corrected_file_continues_from_what_succeeded() {
    let site = Site::open("corrected");
    let path = site.place.join("a.yaml");
    let text = "holdfast: 1\napplication: a\nsecrets: { word: { command: echo hunter2 } }\ntypes:\n  Base: { exports: { base: [host] }, operations: { start: { process: \"exec sleep 100000\" } } }\n  Top:\n    parameters: { word: { type: secret } }\n    imports: { base: base }\n    operations: { start: { script: \"exit 3\" }, stop: { command: \"true\" } }\n    patience: { start: { retries: 0 }, run: { retries: 0 } }\nvms: { v: { cloud: local } }\ncomponents:\n  base: { type: Base }\n  top: { type: Top, parameters: { word: { secret: word } } }\n";
    std::fs::write(&path, text).unwrap();
    let first = site.holdfast(&["apply", "a.yaml", "--yes"]);
    let output = String::from_utf8_lossy(&first.stdout).into_owned();
    assert!(
        !first.status.success() && output.contains("needs manual action") && output.contains("a/top[0]"),
        "{output}"
    );
    std::fs::write(&path, text.replace("exit 3", "test {{ parameters.word }} = hunter2")).unwrap();
    let after = site.status().await.newest_event;
    let output = apply(&site, &path);
    assert!(output.contains("± top[0] is replaced: operation start"), "{output}");
    all_started(&site, 2).await;
    let started = order(&events_since(&site, after).await, "started");
    assert_eq!(started, ["a/top[0]"]);
    // The manager's record of the application names the secret and does not contain it.
    let kept: Value = site.client.get("/v1/applications/a").await.unwrap();
    assert!(kept.to_string().contains("echo hunter2") && kept.to_string().matches("hunter2").count() < 6, "{kept}");
    let word = kept["record"]["expansion"]["definitions"]["top"]["recipe"]["parameters"].get("word");
    assert_eq!(word, None);
    site.done(&["remove", "a", "--yes"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_imported_compose_file_runs() {
    let site = Site::open("compose");
    let compose = Path::new(env!("CARGO_MANIFEST_DIR")).join("../application/tests/compose/commands.yml");
    let path = site.place.join("plain.yaml");
    site.done(&["import", "compose", compose.to_str().unwrap(), "--output", path.to_str().unwrap()]);
    site.done(&["fmt", "--check", path.to_str().unwrap()]);
    apply(&site, &path);
    all_started(&site, 4).await;
    log(&site, "plain/store[0]", |it| it.contains("store at 7001 with fast")).await;
    log(&site, "plain/fill[0]", |it| it.contains("filled 127.0.0.1:7001")).await;
    log(&site, "plain/page[1]", |it| it.contains("page asks tcp://127.0.0.1:7001/x")).await;
    // A variable of the environment becomes a variable of the application.
    let output = site.done(&["apply", path.to_str().unwrap(), "--set", "MODE=slow", "--yes"]);
    assert!(output.contains("± store[0] is replaced"), "{output}");
    log(&site, "plain/store[0]", |it| it.contains("store at 7001 with slow")).await;
    all_started(&site, 4).await;
    site.done(&["remove", "plain", "--yes"]);
    site.audit(&[]);
    site.remove_everything().await;
}

/// A fake docker that records its calls and runs nothing: a container sleeps, a job is done at once, and a container
/// that was not run cannot execute anything.
const DOCKER: &str = "#!/bin/sh\nfolder=$(dirname \"$0\")\necho \"$@\" >> \"$folder/asked\"\ncase \"$*\" in\n  run*job*) exit 0 ;;\n  run*) exec sleep 100000 ;;\n  inspect*) echo true ;;\n  exec*) grep -q -- \"^run .*--name=$2 \" \"$folder/asked\" ;;\nesac\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn imported_containers_are_run_checked_stopped_and_removed() {
    let site = Site::open("containers");
    let compose = "name: boxes\nservices:\n  db: { image: \"db:1\", environment: { MODE: x }, volumes: [\"data:/data\"], healthcheck: { test: [CMD, ready] } }\n  fill: { image: job, command: fill db:5, depends_on: [db] }\n  page: { image: page, stop_signal: QUIT, depends_on: { fill: { condition: service_completed_successfully } } }\n";
    std::fs::write(site.place.join("compose.yml"), compose).unwrap();
    site.program("docker", DOCKER);
    let path = site.place.join("boxes.yaml");
    let compose = site.place.join("compose.yml");
    site.done(&["import", "compose", compose.to_str().unwrap(), "--output", path.to_str().unwrap()]);
    apply(&site, &path);
    all_started(&site, 3).await;
    site.done(&["remove", "boxes", "--yes"]);
    let asked = std::fs::read_to_string(site.place.join("bin/asked")).unwrap();
    let asked: Vec<&str> = asked.lines().collect();
    let place = |line: &str| asked.iter().position(|it| *it == line).unwrap_or_else(|| panic!("{line}: {asked:#?}"));
    let run = place("run --rm --name=boxes-db-0 --network=host --env=MODE --volume=boxes_data:/data db:1");
    let filled = place("run --rm --name=boxes-fill-0 --network=host job fill 127.0.0.1:5");
    let page = place("run --rm --name=boxes-page-0 --network=host --stop-signal=QUIT page");
    // The readiness check runs during the start, perhaps before the container has written anything; clients wait for it.
    let ready = place("exec boxes-db-0 ready");
    assert!(run < filled && ready < filled && filled < page, "{asked:#?}");
    assert!(place("stop --time=10 boxes-db-0") < place("rm --force --volumes boxes-db-0"));
    site.audit(&[]);
    site.remove_everything().await;
}

/// A fake systemctl, for which a unit is a file with the number of its run. It does not answer while there is a file
/// `silent`, and knows no unit whose name begins with `no-`.
const SYSTEMCTL: &str = r#"#!/bin/sh
folder=$(dirname "$0")
for unit; do :; done
echo "$1 $unit" >> "$folder/asked"
case "$1" in
  restart)
    case "$unit" in no-*) echo "Unit $unit not found."; exit 5 ;; esac
    echo x >> "$folder/lives"
    wc -l < "$folder/lives" > "$folder/$unit.new" && mv "$folder/$unit.new" "$folder/$unit" ;;
  stop) case "$unit" in no-*) exit 5 ;; esac; rm -f "$folder/$unit" ;;
  is-active) test -e "$folder/$unit" ;;
  is-failed) exit 1 ;;
  status) echo "what systemd says of $unit" ;;
  show)
    if test -e "$folder/silent"; then echo asked >> "$folder/unanswered"; exit 1; fi
    test -e "$folder/$unit" && echo ActiveState=active || echo ActiveState=inactive
    echo "InvocationID=$(cat "$folder/$unit" 2> /dev/null)." ;;
esac
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn systemd_units_are_started_watched_and_stopped_in_order() {
    let site = Site::open("units");
    site.program("systemctl", SYSTEMCTL);
    let text = "holdfast: 1\napplication: units\ntypes:\n  Server:\n    exports: { sql: {} }\n    operations: { start: { systemd: \"{{ parameters.unit }}\" } }\n    parameters: { unit: db.service }\n    patience: { run: { retries: 3, pause: 10ms } }\n  Client:\n    imports: { db: sql }\n    operations: { start: { process: exec sleep 100000 } }\nvms: { v: { cloud: local } }\ncomponents: { server: { type: Server }, client: { type: Client } }\n";
    let path = site.place.join("units.yaml");
    std::fs::write(&path, text).unwrap();
    apply(&site, &path);
    all_started(&site, 2).await;
    // No answer from systemd says nothing about the unit: nothing stops.
    let silent = site.place.join("bin/silent");
    std::fs::write(&silent, "").unwrap();
    let unanswered = site.place.join("bin/unanswered");
    until("systemd is asked in vain", || unanswered.exists()).await;
    std::fs::remove_file(&silent).unwrap();
    // The unit ends by itself, and then is restarted by systemd at once: its client returns the loan both times, the unit is
    // started again, and the client as well.
    let unit = site.place.join("bin/db.service");
    for is_gone in [true, false] {
        let seen = site.status().await.newest_event;
        if is_gone {
            std::fs::remove_file(&unit).unwrap();
        } else {
            std::fs::write(&unit, "another").unwrap();
        }
        let events = site.events_until(seen, |it| it.text == "units/client[0] is started").await;
        assert!(events.iter().any(|it| it.text == "units/client[0] is stopped"), "{events:?}");
    }
    site.done(&["remove", "units", "--yes"]);
    assert!(!site.place.join("bin/db.service").exists());
    let asked = std::fs::read_to_string(site.place.join("bin/asked")).unwrap();
    let asked: Vec<&str> = asked.lines().filter(|it| !it.starts_with("is-") && !it.starts_with("show")).collect();
    assert_eq!(asked.iter().find(|it| !it.starts_with("reset-failed")), Some(&"restart db.service"));
    assert_eq!(asked.last(), Some(&"stop db.service"));
    assert_eq!(asked.iter().filter(|it| **it == "restart db.service").count(), 3, "{asked:?}");
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_that_does_not_start_says_why_and_can_be_removed() {
    let site = Site::open("no-unit");
    site.program("systemctl", SYSTEMCTL);
    let text = "holdfast: 1\napplication: units\ntypes:\n  Server:\n    operations: { start: { systemd: no-such.service } }\n    patience: { start: { retries: 0 } }\nvms: { v: { cloud: local } }\ncomponents: { server: { type: Server } }\n";
    let path = site.place.join("units.yaml");
    std::fs::write(&path, text).unwrap();
    let output = site.refused(&["apply", path.to_str().unwrap(), "--yes"]);
    assert!(output.contains("Unit no-such.service not found."), "{output}");
    assert!(output.contains("what systemd says of no-such.service"), "{output}");
    site.done(&["remove", "units", "--yes"]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spark_runs_next_to_its_data_and_the_job_starts_last() {
    let site = Site::open("spark");
    let path = example("spark-on-hdfs.yaml");
    let file = path.to_str().unwrap();
    let planned: Value = serde_json::from_str(&site.done(&["plan", file, "--json"])).unwrap();
    let moments = planned["forecast"]["moments"].as_array().unwrap();
    let starts: Vec<Vec<&str>> = moments
        .iter()
        .map(|it| it["start"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect())
        .collect();
    assert_eq!(starts.first().unwrap(), &["name-node[0]"]);
    assert_eq!(starts.last().unwrap(), &["word-count[0]"]);

    apply(&site, &path);
    // No component found a provider down; and the job saw what every worker counted.
    for (nodes, words) in [(3, 12), (4, 16)] {
        all_started(&site, 3 + 2 * nodes).await;
        let counted = format!("{nodes} workers counted {words} words");
        log(&site, "spark/word-count[0]", |it| it.contains(&counted)).await;
        let components: Vec<Component> = site.client.get("/v1/components").await.unwrap();
        let vm = |name: &str| components.iter().find(|it| it.name == name).unwrap().vm.clone();
        for node in 0..nodes {
            let (worker, data) = (format!("spark/worker[{node}]"), format!("spark/data-node[{node}]"));
            assert_eq!(vm(&worker), vm(&data));
            log(&site, &worker, |it| it.contains(&format!("on a block of {data}"))).await;
        }
        for component in &components {
            let text = log(&site, &component.name, |_| true).await;
            assert!(!text.contains("is not up"), "{}: {text}", component.name);
        }
        site.audit(&[]);
        if nodes == 3 {
            // One more node: the job runs once more over all of them, and no existing component stops.
            let after = site.status().await.newest_event;
            site.done(&["apply", file, "--set", "nodes=4", "--yes"]);
            let stopped: BTreeSet<String> = order(&events_since(&site, after).await, "stopped").into_iter().collect();
            let expected = ["spark/data-node[3]", "spark/worker[3]"];
            assert_eq!(stopped, expected.map(String::from).into());
        }
    }
    site.done(&["remove", "spark", "--yes"]);
    site.audit(&[]);
    site.remove_everything().await;
}

/// The content of a page, as JSON.
#[track_caller]
fn page(address: &str) -> Value {
    let mut connection = std::net::TcpStream::connect(address).unwrap();
    write!(connection, "GET / HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn debian_servers_work_together_and_one_of_them_is_replaced() {
    let programs =
        ["/usr/sbin/nginx", "/usr/bin/redis-server", "/usr/bin/psql", "/usr/bin/pg_createcluster", "/usr/bin/python3"];
    if let Some(missing) = programs.iter().find(|it| !Path::new(it).exists()) {
        eprintln!("skipped: {missing} is not installed (cargo xtask packages installs it, as root on Debian)");
        return;
    }
    let site = Site::open("servers");
    let path = example("debian-servers.yaml");
    let file = path.to_str().unwrap();
    apply(&site, &path);
    all_started(&site, 5).await;
    let output = log(&site, "servers/nginx[0]", |it| it.contains("serves at http://")).await;
    let address = output.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();

    // One answer that passed through all four: the header is nginx's, the visit Redis', the row PostgreSQL's.
    let first = page(&address);
    assert_eq!((&first["front"], &first["memory"]), (&json!("servers-nginx[0]"), &json!("16777216")));
    let second = page(&address);
    assert_eq!((&second["visits"], &second["written"]), (&json!(2), &json!(2)));

    // Another Redis: its clients are stopped in time and get the new one; PostgreSQL keeps its data.
    let after = site.status().await.newest_event;
    let output = site.done(&["apply", file, "--set", "memory=32mb", "--yes"]);
    assert!(output.contains("± redis[0] is replaced: parameter memory"), "{output}");
    all_started(&site, 5).await;
    let stopped = order(&events_since(&site, after).await, "stopped");
    assert!(!stopped.contains(&"servers/postgres[0]".to_owned()), "{stopped:?}");
    let third = page(&address);
    assert_eq!((&third["memory"], &third["visits"], &third["written"]), (&json!("33554432"), &json!(1), &json!(3)));
    site.audit(&[]);

    site.done(&["remove", "servers", "--yes"]);
    for gone in [address.as_str(), third["redis"].as_str().unwrap(), first["redis"].as_str().unwrap()] {
        assert!(std::net::TcpStream::connect(gone).is_err(), "{gone} still listens");
    }
    site.audit(&[]);
    site.remove_everything().await;
}
