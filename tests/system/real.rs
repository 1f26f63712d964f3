//! Real runs: one manager, agents on this machine, components that are processes. Each test follows the manager's
//! events, and at its end the explorer's properties are checked on the journals of all machines.

use crate::site::{self, Site, bind, client, order, provider, vm};
use cloud_manager::client::ClientError;
use cloud_manager::document::{ComponentStatus, EventKind};
use cloud_manager::document::{EventDocument, Problems};
use serde_json::{Value, json};

/// Apache and a profiler; Tomcat and an object cache; MySQL: the running example of the papers.
fn running_example() -> Value {
    json!({ "edits": [
        vm("vm1"), vm("vm2"), vm("vm3"),
        client("apache", "vm1", "workers", None),
        provider("profiler", "vm1", "profile"),
        { "add-component": {
            "name": "tomcat", "vm": "vm2",
            "imports": { "database": { "export": "database" }, "objects": { "export": "objects", "weak": 0 } },
            "exports": { "workers": { "values": ["port"] } },
            "recipe": {
                "version": 1,
                "values": { "port": { "template": "{{ free_port() }}" } },
                "operations": { "start": { "process": {
                    "run": "echo using {{ imports.database[0].port }}; exec sleep 1000",
                } } },
            },
        }},
        provider("object-cache", "vm2", "objects"),
        provider("mysql", "vm3", "database"),
        bind("apache.workers → tomcat.workers"),
        bind("tomcat.database → mysql.database"),
        bind("tomcat.objects → object-cache.objects"),
    ]})
}

/// Checks that an event reports this state of a component. Reports of different VMs may arrive in any order; the audit
/// at the end of a test proves the actual order.
fn reached(events: &[EventDocument], state: &str, component: &str) {
    let order = order(events, state);
    assert!(order.iter().any(|it| it == component), "{component} is never {state}: {order:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_running_example_loses_its_database_and_gets_another_one() {
    let site = Site::open("running-example");
    let events = site.make(&running_example()).await;
    for component in ["mysql", "tomcat", "apache"] {
        reached(&events, "started", component);
    }

    let events = site
        .make(&json!({ "strategy": "down-then-up", "edits": [
            { "remove-component": "mysql" },
            provider("mysql'", "vm3", "database"),
            bind("tomcat.database → mysql'.database"),
        ]}))
        .await;
    for (state, component) in [("stopped", "apache"), ("stopped", "tomcat"), ("started", "mysql'")] {
        reached(&events, state, component);
    }
    for component in ["apache", "tomcat"] {
        reached(&events, "started", component);
    }
    // Unrelated components are not affected.
    assert!(order(&events, "stopped").iter().all(|it| it != "profiler" && it != "object-cache"));
    // The new database's port has reached its client.
    let port = site.client.text("/v1/components/mysql'/logs").await.unwrap();
    let port = port.split("serving at ").nth(1).unwrap().trim();
    let output = site.client.text("/v1/components/tomcat/logs").await.unwrap();
    assert!(output.trim_end().ends_with(&format!("using {port}")), "{output}");

    let audit = site.audit(&[]);
    assert_eq!((&audit["machines"], &audit["at_rest"]), (&json!(4), &json!(true)), "{audit}");
    let chart = site.holdfast(&["audit", "manager", "--chart", "mermaid", "--change", "2"]);
    let chart = String::from_utf8(chart.stdout).unwrap();
    for sight in ["recall mysql", "mysql released", "mysql' started", "lend mysql' to tomcat", "change 2 done"] {
        assert!(chart.contains(sight), "{sight} is not in\n{chart}");
    }
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn make_before_break_stops_no_client_and_break_before_make_stops_the_dependents() {
    let site = Site::open("strategies");
    // An application that switches to another database while it runs.
    let app = json!({ "add-component": {
        "name": "app", "vm": "web",
        "imports": { "database": { "export": "database" } },
        "recipe": {
            "version": 1,
            "files": [{ "path": "providers", "template": "{% for it in imports.database %}{{ it.port }}\n{% endfor %}" }],
            "operations": {
                "start": { "process": { "run": "exec sleep 1000" } },
                "rebind": { "command": { "run": "cat providers" } },
            },
        },
    }});
    site.make(&json!({ "edits": [
        vm("web"), vm("data"), app, provider("one", "data", "database"), bind("app.database → one.database"),
    ]}))
    .await;
    let replace = |strategy: &str, old: &str, new: &str| {
        json!({ "strategy": strategy, "edits": [
            { "remove-component": old },
            provider(new, "data", "database"),
            bind(&format!("app.database → {new}.database")),
        ]})
    };
    let events = site.make(&replace("up-then-down", "one", "two")).await;
    assert!(!order(&events, "stopped").contains(&"app".to_owned()), "{events:#?}");
    for (strategy, old, new) in [("down-then-up", "two", "three"), ("together", "three", "four")] {
        let events = site.make(&replace(strategy, old, new)).await;
        let place = |what: &str, component: &str| {
            events.iter().position(|it| it.component.as_deref() == Some(component) && it.what.to_string() == what)
        };
        assert!(place("component-gone", old).is_some(), "{strategy}: {events:#?}");
        assert_eq!(site.state("app").await, "started");
        if strategy == "down-then-up" {
            assert!(order(&events, "stopped").contains(&"app".to_owned()), "{events:#?}");
        }
    }
    assert_eq!(site.audit(&[])["at_rest"], json!(true));
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_killed_in_the_middle_of_a_change_restart_and_finish_it() {
    let mut site = Site::open("kill");
    // The database starts slowly, so that there is time to kill programs.
    let mut slow = provider("database", "data", "database");
    slow["add-component"]["recipe"]["operations"]["configure"] = json!({ "run": "sleep 1" });
    let accepted = site
        .post(&json!({ "edits": [
            vm("data"), vm("web"), slow,
            client("app", "web", "database", None), bind("app.database → database.database"),
        ]}))
        .await;
    let starting = |event: &EventDocument| event.component.as_deref() == Some("database");
    let starting = |event: &EventDocument| starting(event) && event.state == Some(ComponentStatus::Starting);
    site.events_until(accepted.events_after, starting).await;
    site.kill_agent(1).await;
    site.kill_manager();
    site.kill_agent(2).await;
    site.restart_manager();
    site.until_done(&accepted).await;
    let output = site.client.text("/v1/components/database/logs").await.unwrap();
    // Despite all retries, there is one process.
    let copies = site::processes_of(&site.vm(1), None).len();
    assert_eq!(copies, 2, "the agent and the database; {output}");
    assert_eq!(site.audit(&[])["at_rest"], json!(true));
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_application_keeps_running_while_the_manager_is_down() {
    let mut site = Site::open("manager-down");
    let events = site
        .make(&json!({ "edits": [
            vm("data"), vm("web"), provider("database", "data", "database"),
            client("app", "web", "database", None), bind("app.database → database.database"),
        ]}))
        .await;
    let last = events.last().unwrap().number;
    site.kill_manager();
    // The database dies while the manager is down; the two agents handle it among themselves.
    let before = site::processes_of(&site.vm(2).join("components"), None);
    let database = site::processes_of(&site.vm(1).join("components"), None);
    for pid in database {
        std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    }
    while site::processes_of(&site.vm(2).join("components"), None) == before {
        tokio::task::yield_now().await;
    }
    site.restart_manager();
    let back = |event: &EventDocument| event.component.as_deref() == Some("app") && event.text.ends_with("is started");
    let events = site.events_until(last, back).await;
    reached(&events, "stopped", "app");
    assert_eq!(site.audit(&[])["at_rest"], json!(true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_operation_is_shown_and_retried_on_request() {
    let site = Site::open("failure");
    let mut broken = provider("database", "data", "database");
    broken["add-component"]["recipe"]["operations"]["configure"] = json!({ "run": format!("test -e {} || {{ echo the disk is missing; exit 3; }}", site.place.join("disk").display()) });
    broken["add-component"]["patience"] = json!({ "start": { "retries": 1, "pause_ms_first": 50 } });
    let accepted = site
        .post(&json!({ "edits": [
            vm("data"), broken, client("app", "data", "database", None), bind("app.database → database.database"),
        ]}))
        .await;
    let events = site.events_until(accepted.events_after, |event| event.what == EventKind::OperationFailed).await;
    let detail = events.last().unwrap().detail.clone().unwrap();
    assert!(detail.contains("the disk is missing"), "{detail}");
    let status = site.status().await;
    let app = status.components.iter().find(|it| it.name == "app").unwrap();
    assert!(app.waits_for.iter().any(|what| what.contains("database")), "{app:?}");

    std::fs::write(site.place.join("disk"), "").unwrap();
    let _: Value = site.client.post("/v1/components/database/retry", &json!({})).await.unwrap();
    site.until_done(&accepted).await;
    assert_eq!(site.state("app").await, "started");
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_joins_once_with_its_token_and_restarts_without() {
    let mut site = Site::open("join");
    let token = site.invite("edge").await;
    assert_eq!(site.start_agent("stranger", Some(&token)), "", "the token is for another name");
    assert_eq!(site.start_agent("edge", Some(&token)), "vm         edge (vm-1)");
    site.events_until(0, |event| event.what == EventKind::VmMade).await;
    site.make(&json!({ "edits": [provider("database", "edge", "database")] })).await;

    let edge = vm_agent::Presence::of(&site.place.join("edge")).unwrap();
    edge.end(std::time::Duration::ZERO).await;
    assert_eq!(site.start_agent("edge", None), "vm         edge (vm-1)");
    site.make(&json!({ "edits": [{ "restart-component": "database" }] })).await;
    // Another machine with the same token is rejected, and so is one without a token.
    std::fs::create_dir_all(site.place.join("twin")).unwrap();
    assert_eq!(site.start_agent("twin", Some(&token)), "");
    assert_eq!(site.start_agent("nobody", None), "");
    let edge = site.place.join("edge");
    assert_eq!(site.audit(&[&edge])["at_rest"], json!(true));
    site.make(&json!({ "edits": [{ "remove-vm": "edge" }] })).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_the_manager_has_removed_stops_its_components_and_itself() {
    let mut site = Site::open("forgotten");
    let token = site.invite("edge").await;
    site.start_agent("edge", Some(&token));
    site.events_until(0, |event| event.what == EventKind::VmMade).await;
    site.make(&json!({ "edits": [provider("database", "edge", "database")] })).await;
    let accepted = site.client.post("/v1/vms/edge/lost", &json!({})).await.unwrap();
    site.until_done(&accepted).await;
    assert_eq!(site.last_agent_ended().await, Some(1));
    assert!(site::processes_of(&site.place.join("edge"), None).is_empty());
    // Its certificate is no longer valid.
    site.start_agent("edge", None);
    assert_eq!(site.last_agent_ended().await, Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_renewed_while_the_system_runs() {
    let site = Site::open_with("renewal", &["--certificate-lifetime", "6"]);
    site.make(&json!({ "edits": [vm("data"), vm("web")] })).await;
    let certificate = |vm: u64| std::fs::read(site.vm(vm).join("identity/certificate.der")).unwrap();
    let first = [certificate(1), certificate(2)];
    while (1..).zip(&first).any(|(vm, first)| certificate(vm) == *first) {
        tokio::task::yield_now().await;
    }
    // The first ones expire soon; a link made after that proves the new ones.
    site.kill_agent(1).await;
    site.make(&json!({ "edits": [
        provider("database", "data", "database"), client("app", "web", "database", None),
        bind("app.database → database.database"),
    ]}))
    .await;
    site.audit(&[]);
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_halts_an_agent_cleanly_and_it_restarts_once_there_is_space() {
    let mut site = Site::open("full-disk");
    let disk = site.place.join("edge");
    std::fs::create_dir_all(&disk).unwrap();
    let Some(disk) = Disk::mount(&disk) else {
        eprintln!("left out: only root can make a small disk");
        return;
    };
    let token = site.invite("edge").await;
    site.start_agent("edge", Some(&token));
    let events = site.events_until(0, |event| event.what == EventKind::VmMade).await;
    site.make(&json!({ "edits": [provider("database", "edge", "database")] })).await;
    let running = site::processes_of(&disk.0.join("components"), None);
    disk.fill();
    // The journal has reserved some space; an order beyond it cannot be journalled, and so is not carried out.
    let large = |number: u32| {
        let mut large = provider(&format!("large{number}"), "edge", "large");
        large["add-component"]["recipe"]["parameters"] = json!({ "ballast": "x".repeat(200_000) });
        large
    };
    site.post(&json!({ "edits": (0..12).map(large).collect::<Vec<_>>() })).await;
    assert_eq!(site.last_agent_ended().await, Some(1), "{events:?}");
    assert_eq!(site::processes_of(&disk.0.join("components"), None), running, "components are left in peace");
    disk.make_room();
    site.start_agent("edge", None);
    site.make(&json!({ "edits": [{ "restart-component": "database" }] })).await;
    assert_eq!(site.audit(&[&disk.0])["good"], json!(true));
    site.make(&json!({ "edits": [{ "remove-vm": "edge" }] })).await;
}

/// A disk of a few megabytes, in memory.
struct Disk(std::path::PathBuf);

impl Disk {
    fn mount(place: &std::path::Path) -> Option<Self> {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m,mode=0700", "holdfast-test"]).arg(place);
        mount.stderr(std::process::Stdio::null()).status().ok()?.success().then(|| Self(place.to_owned()))
    }

    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
        let size = ["-o", "remount,size=64m"];
        assert!(std::process::Command::new("mount").args(size).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        for pid in site::processes_of(&self.0, None) {
            let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
        // Lazily: a process that was just killed may still use it for a moment.
        let _ = std::process::Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_vm_is_removed_and_its_clients_get_another_provider() {
    let site = Site::open("lost");
    site.make(&json!({ "edits": [
        vm("data"), vm("web"), provider("database", "data", "database"),
        client("app", "web", "database", None), bind("app.database → database.database"),
    ]}))
    .await;
    let accepted = site.client.post("/v1/vms/data/lost", &json!({})).await.unwrap();
    let events = site.until_done(&accepted).await;
    assert!(events.iter().any(|event| event.what == EventKind::VmLost), "{events:#?}");
    assert_eq!((site.state("app").await.as_str(), site.state("database").await.as_str()), ("stopped", "gone"));
    // The components of a lost VM are ended, so that none keeps serving.
    while site.vm(1).exists() {
        tokio::task::yield_now().await;
    }
    assert!(site::processes_of(&site.vm(1), None).is_empty());
    site.make(&json!({ "edits": [
        vm("data"), provider("database", "data", "database"), bind("app.database → database.database"),
    ]}))
    .await;
    assert_eq!(site.state("app").await, "started");
    site.audit(&[]);
    site.remove_everything().await;
}

/// Components that are hard to stop: one ignores the signal, one has discarded its environment and with it the mark,
/// and one has left its process group as well, so that only its stop command finds it.
fn stubborn(vm: &str) -> [Value; 3] {
    let add = |name: &str, operations: Value| {
        let recipe = json!({ "version": 1, "operations": operations });
        json!({ "add-component": { "name": format!("{name}-on-{vm}"), "vm": vm, "recipe": recipe } })
    };
    let process = |run: &str| json!({ "process": { "run": run } });
    let apart = "setsid env -i sleep 1000 & echo $! > pid";
    [
        add(
            "deaf",
            json!({ "start": process("trap '' TERM; while :; do sleep 1000; done"), "stop": { "grace_ms": 100 } }),
        ),
        add("bare", json!({ "start": process("exec env -i sleep 1000") })),
        add(
            "apart",
            json!({ "start": { "script": { "run": apart } }, "stop": { "command": { "run": "kill $(cat pid)" } } }),
        ),
    ]
}

/// Waits until a VM on this machine is gone, and checks that none of its components is still running.
async fn nothing_is_left(site: &Site, vm: u64) {
    site::until("its directory is gone", || !site.vm(vm).exists()).await;
    let left = site::processes_of(&site.vm(vm), None);
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_vm_leaves_no_process_whether_its_agent_is_alive_or_dead() {
    // As in the guide: the manager's data directory is relative to where it was started.
    let site = Site::open_with("lost-for-good", &["--data", "manager"]);
    let vms = [vm("well"), vm("silent")].into_iter();
    let edits: Vec<Value> = vms.chain(stubborn("well")).chain(stubborn("silent")).collect();
    site.make(&json!({ "edits": edits })).await;
    let _dead = site.kill_agent_for_good(2).await;
    for (id, name) in [(1, "well"), (2, "silent")] {
        assert!(site::processes_of(&site.vm(id), None).len() >= 3);
        let accepted = site.client.post(&format!("/v1/vms/{name}/lost"), &json!({})).await.unwrap();
        site.until_done(&accepted).await;
        nothing_is_left(&site, id).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_killed_while_it_destroys_a_lost_vm_resumes_from_another_directory() {
    let mut site = Site::open_with("lost-halfway", &["--data", "manager"]);
    // One more that does not stop until it is allowed to.
    let (asked, time) = (site.place.join("asked"), site.place.join("time"));
    let mut slow = provider("database", "data", "database");
    let stop = format!("touch {}; until test -e {}; do sleep 0.01; done", asked.display(), time.display());
    slow["add-component"]["recipe"]["operations"]["stop"] = json!({ "command": { "run": stop } });
    let edits: Vec<Value> = [vm("data"), slow].into_iter().chain(stubborn("data")).collect();
    site.make(&json!({ "edits": edits })).await;
    let dead = site.kill_agent_for_good(1).await;
    let _: Value = site.client.post("/v1/vms/data/lost", &json!({})).await.unwrap();
    site::until("it is asked to stop", || asked.exists()).await;
    site.kill_manager();
    drop(dead);
    assert!(!site::processes_of(&site.vm(1), None).is_empty());
    std::fs::write(time, "").unwrap();
    site.options = vec!["--data".into(), "bin/../manager".into()];
    site.restart_manager();
    nothing_is_left(&site, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_vm_leaves_no_process_even_if_its_components_resist() {
    let site = Site::open_with("removed-for-good", &["--data", "manager"]);
    let edits: Vec<Value> = [vm("data")].into_iter().chain(stubborn("data")).collect();
    site.make(&json!({ "edits": edits })).await;
    site.make(&json!({ "edits": [{ "remove-vm": "data" }] })).await;
    nothing_is_left(&site, 1).await;
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_restarted_with_another_timeout_for_lost_vms_uses_it() {
    let mut site = Site::open("patience");
    let token = site.invite("far").await;
    site.start_agent("far", Some(&token));
    site.make(&json!({ "edits": [provider("database", "far", "database")] })).await;
    site.kill_manager();
    site.options = vec!["--lost-after".into(), "1".into()];
    site.restart_manager();
    let after = site.status().await.newest_event;
    site.kill_last_agent();
    let events = site.events_until(after, |event| event.what == EventKind::VmLost).await;
    assert!(events.iter().any(|event| event.what == EventKind::VmSuspected), "{events:#?}");
    assert_eq!(site.state("database").await, "gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_change_is_refused_with_every_reason_and_changes_nothing() {
    let site = Site::open("refused");
    let change = json!({ "edits": [
        provider("database", "nowhere", "database"),
        bind("app.database → database.database"),
        { "remove-component": "ghost" },
    ]});
    let refused = site.client.post::<Value>("/v1/changes", &change).await;
    let Err(ClientError::Refused(409, Problems { problems, .. })) = refused else { panic!("{refused:?}") };
    assert_eq!(problems.len(), 4, "{problems:#?}");
    assert_eq!(site.status().await.components.len(), 0);
}
