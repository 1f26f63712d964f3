//! Machines that are really separate: each agent in its own network namespace, joined by a bridge; cables are unplugged.
//!
//! Only root can create namespaces; otherwise the tests print that they were skipped.

use crate::HOLDFAST;
use crate::site::{Site, bind, client, provider};
use cloud_manager::document::EventDocument;
use cloud_manager::document::EventKind;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// A bridge with its own network, and machines on it.
struct Network {
    bridge: String,
    machines: Vec<String>,
    /// The third number of its addresses.
    number: u8,
}

impl Network {
    /// A network with this many machines; `None` where namespaces cannot be created.
    fn open(machines: u8) -> Option<Self> {
        let number = u8::try_from(std::process::id() % 200).unwrap() + 20;
        let bridge = format!("hfb{number}");
        if !ip(&["link", "add", &bridge, "type", "bridge"]) {
            eprintln!("left out: only root can make networks");
            return None;
        }
        let mut network = Self { bridge, machines: Vec::new(), number };
        let own = format!("10.99.{number}.1/24");
        assert!(ip(&["addr", "add", &own, "dev", &network.bridge]) && ip(&["link", "set", &network.bridge, "up"]));
        for machine in 1..=machines {
            let (name, cable) = (format!("hfn{number}-{machine}"), format!("hfc{number}-{machine}"));
            assert!(ip(&["netns", "add", &name]));
            network.machines.push(name.clone());
            let address = format!("{}/24", network.address(machine));
            let made = ip(&["link", "add", &cable, "type", "veth", "peer", "name", "eth0", "netns", &name])
                && ip(&["link", "set", &cable, "master", &network.bridge, "up"])
                && ip(&["-n", &name, "addr", "add", &address, "dev", "eth0"])
                && ip(&["-n", &name, "link", "set", "eth0", "up"])
                && ip(&["-n", &name, "link", "set", "lo", "up"]);
            assert!(made, "the machine {name} cannot be made");
        }
        Some(network)
    }

    fn address(&self, machine: u8) -> String {
        format!("10.99.{}.{}", self.number, machine + 10)
    }

    fn manager(&self) -> String {
        format!("10.99.{}.1:0", self.number)
    }

    fn plug(&self, machine: u8, state: &str) {
        assert!(ip(&["link", "set", &format!("hfc{}-{machine}", self.number), state]));
    }

    /// The command that runs an agent on a machine, without token and name.
    fn agent(&self, site: &Site, machine: u8, name: &str) -> Command {
        let manager = site.manager_address().replace("127.0.0.1", &format!("10.99.{}.1", self.number));
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.machines[usize::from(machine) - 1], HOLDFAST, "agent", "run"]);
        command.args(["--manager", &manager, "--listen", &format!("{}:0", self.address(machine)), "--data"]);
        command.arg(site.place.join(name));
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for machine in &self.machines {
            ip(&["netns", "del", machine]);
        }
        ip(&["link", "del", &self.bridge]);
    }
}

fn ip(arguments: &[&str]) -> bool {
    let status = Command::new("ip").args(arguments).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disconnected_machines_catch_up_when_the_network_is_back() {
    let Some(network) = Network::open(3) else { return };
    let mut site = Site::open_with("network", &["--listen", &network.manager()]);
    for (machine, name) in [(1, "web"), (2, "app"), (3, "data")] {
        let token = site.invite(name).await;
        let command = network.agent(&site, machine, name);
        assert!(site.run_agent(command, name, Some(&token)).contains(name));
    }
    let events = site
        .make(&json!({ "edits": [
            provider("mysql", "data", "database"),
            client("tomcat", "app", "database", Some("workers")),
            client("apache", "web", "workers", None),
            bind("tomcat.database → mysql.database"),
            bind("apache.workers → tomcat.workers"),
        ]}))
        .await;
    let last = events.last().unwrap().number;

    // The application's machine is disconnected while its database is being removed: the database waits for its loan.
    network.plug(2, "down");
    let accepted = site
        .post(&json!({ "strategy": "down-then-up", "edits": [
            { "remove-component": "mysql" },
            provider("mysql2", "data", "database"),
            bind("tomcat.database → mysql2.database"),
        ]}))
        .await;
    site.events_until(last, |event| event.what == EventKind::VmSuspected && event.vm.as_deref() == Some("app")).await;
    assert_eq!((site.state("mysql").await.as_str(), site.state("mysql2").await.as_str()), ("started", "awaited"));

    network.plug(2, "up");
    let events = site.until_done(&accepted).await;
    let place = |component: &str, what: &str| {
        let fits = |event: &EventDocument| event.component.as_deref() == Some(component) && event.text.contains(what);
        events.iter().position(fits).unwrap_or_else(|| panic!("{component} {what}: {events:#?}"))
    };
    // Reports of different machines may arrive in any order; the audit below proves the actual order.
    assert!(place("apache", "is stopped") < place("apache", "is started"));
    place("mysql2", "is started");
    let journals = ["web", "app", "data"].map(|name| site.place.join(name));
    let audit: Value = site.audit(&journals.each_ref().map(|it| it.as_path()));
    assert_eq!((&audit["machines"], &audit["at_rest"]), (&json!(4), &json!(true)), "{audit}");
    let removed: Vec<Value> = ["web", "app", "data"].iter().map(|vm| json!({ "remove-vm": vm })).collect();
    site.make(&json!({ "edits": removed })).await;
}
