//! Following the load, for real: a load generator, stand-in processes, and the manager that makes them more and fewer.

use crate::site::{Site, until};
use cloud_manager::document::{AutoscaleDocument, ComponentStatus, EventDocument, EventKind};
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// What a load generator sends per second; anyone can ask for it over HTTP.
#[derive(Clone, Default)]
struct Generator {
    load: Arc<AtomicU64>,
    /// How often it was asked.
    asked: Arc<AtomicU64>,
}

impl Generator {
    /// Where it can be asked.
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let this = self.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = [0; 1024];
                let _ = stream.read(&mut head).await;
                let body = format!("{{\"requests\": {{\"rate\": {}}}}}", this.load.load(Ordering::SeqCst));
                let answer =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
                this.asked.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        format!("http://{address}/rate")
    }

    fn sends(&self, load: u64) {
        self.load.store(load, Ordering::SeqCst);
    }
}

/// Web servers that take 100 each, before a database; two of them fit on a node.
fn shop(source: &str, more: &str) -> String {
    format!(
        r#"holdfast: 1
application: shop
types:
  Database: {{ exports: {{ sql: }}, resources: {{ cpu: 1 }}, operations: {{ start: {{ process: "exec sleep 100000" }} }} }}
  Web: {{ imports: {{ db: sql }}, resources: {{ cpu: 1 }}, operations: {{ start: {{ process: "exec sleep 100000" }} }} }}
vms: {{ node: {{ cloud: local, most: 4, cost: 10, resources: {{ cpu: 2 }} }} }}
components:
  database: {{ type: Database }}
  web: {{ type: Web, load: 100 }}
autoscale: {{ source: {source}, most: {{ web: 5 }}, every: 100ms, cool-down: 100ms{more} }}
"#
    )
}

/// Waits until so many web servers are started and nothing else is going on.
async fn until_web_servers(site: &Site, number: usize) {
    let mut after = 0;
    loop {
        let status = site.status().await;
        let started = |it: &&cloud_manager::document::Component| {
            it.name.starts_with("shop/web[") && it.state == ComponentStatus::Started && !it.leaving
        };
        if status.components.iter().filter(started).count() == number && status.changes.is_empty() {
            return;
        }
        after = after.max(status.newest_event);
        let events = site.events_until(after, |event| event.what == EventKind::ChangeDone).await;
        after = events.last().unwrap().number;
    }
}

async fn autoscale(site: &Site) -> AutoscaleDocument {
    let documents: Vec<AutoscaleDocument> = site.client.get("/v1/autoscale").await.unwrap();
    documents.into_iter().next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_follows_its_load_up_and_down_and_says_why() {
    let generator = Generator::default();
    generator.sends(50);
    let source = format!("{{ http: \"{}\", field: requests.rate }}", generator.start().await);
    let mut site = Site::open("autoscale");
    fs::write(site.place.join("shop.yaml"), shop(&source, "")).unwrap();
    site.done(&["apply", "shop.yaml", "--yes"]);
    until_web_servers(&site, 1).await;

    generator.sends(320);
    until_web_servers(&site, 4).await;
    let history = site.done(&["history"]);
    assert!(history.contains("load 320: web 1 → 4"), "{history}");
    let versions = site.done(&["history", "--application", "shop"]);
    assert!(versions.contains("autoscale"), "{versions}");

    // Applying the file again does not undo it.
    let told = site.done(&["apply", "shop.yaml", "--yes"]);
    until_web_servers(&site, 4).await;
    assert!(!told.contains("web[3]"), "{told}");

    // More than the file allows is not done, and said.
    generator.sends(900);
    until_web_servers(&site, 5).await;
    assert!(autoscale(&site).await.changed_because.unwrap().contains("web 4 → 5 (9 needed)"));

    // A pause outlives the manager.
    let told = site.done(&["autoscale", "pause", "shop"]);
    assert!(told.starts_with("shop: paused by "), "{told}");
    generator.sends(80);
    site.kill_manager();
    site.restart_manager();
    let status = site.done(&["autoscale", "status"]);
    assert!(status.contains("paused by"), "{status}");
    let version = |site: &Site| site.done(&["history", "--application", "shop"]);
    let before = version(&site);
    site.done(&["autoscale", "resume", "shop"]);
    until_web_servers(&site, 1).await;
    assert_ne!(version(&site), before);
    let status = site.status().await;
    assert_eq!(status.vms.len(), 1, "{:?}", status.vms);

    site.audit(&[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_only_says_what_it_would_do() {
    let generator = Generator::default();
    generator.sends(320);
    let source = format!("{{ http: \"{}\", field: requests.rate }}", generator.start().await);
    let site = Site::open("autoscale-dry");
    fs::write(site.place.join("shop.yaml"), shop(&source, ", dry-run: true")).unwrap();
    site.done(&["apply", "shop.yaml", "--yes"]);
    let says = "would scale: load 320: web 1 → 4 (dry run)";
    until("it is said", || site.done(&["autoscale", "status"]).contains(says)).await;
    let asked = generator.asked.load(Ordering::SeqCst);
    until("the load was measured again", || generator.asked.load(Ordering::SeqCst) > asked + 2).await;
    until_web_servers(&site, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_and_the_output_of_a_component_can_be_sources() {
    let site = Site::open("autoscale-command");
    let load = site.place.join("load");
    fs::write(&load, "150\n").unwrap();
    let source = format!("{{ command: \"cat {}\" }}", load.display());
    fs::write(site.place.join("shop.yaml"), shop(&source, "")).unwrap();
    site.done(&["apply", "shop.yaml", "--yes"]);
    until_web_servers(&site, 2).await;

    // What a component writes counts as well: here, the database says how many requests it sees.
    let source = "{ component: database, value: seen }";
    let text = shop(source, "").replace(
        "sql: }, resources: { cpu: 1 }, operations: { start: { process: \"exec sleep 100000\" } }",
        "sql: }, resources: { cpu: 1 }, operations: { start: { process: \"echo seen=310; exec sleep 100000\" } }",
    );
    fs::write(site.place.join("shop.yaml"), text).unwrap();
    site.done(&["apply", "shop.yaml", "--yes"]);
    until_web_servers(&site, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_failed_is_not_followed_by_another() {
    let site = Site::open("autoscale-failed");
    let (load, broken) = (site.place.join("load"), site.place.join("broken"));
    fs::write(&load, "100\n").unwrap();
    let start = format!("script: \"test ! -e {}\" }}, stop: {{ command: \"true\"", broken.display());
    let text = shop(&format!("{{ command: \"cat {}\" }}", load.display()), "")
        .replace("process: \"exec sleep 100000\"", &start)
        .replace("  Web: {", "  Web: { patience: { start: { retries: 0 }, run: { retries: 0 } },");
    fs::write(site.place.join("shop.yaml"), text).unwrap();
    site.done(&["apply", "shop.yaml", "--yes"]);

    fs::write(&broken, "").unwrap();
    fs::write(&load, "200\n").unwrap();
    let failed = |status: &str| status.contains("but waits: shop/web[1] is not started");
    // More load comes while the second web server does not start.
    until("web[1] was asked for", || site.done(&["status"]).contains("web[1]")).await;
    fs::write(&load, "300\n").unwrap();
    until("it waits", || failed(&site.done(&["autoscale", "status"]))).await;
    assert!(!site.done(&["status"]).contains("web[2]"));

    let is_failed = |event: &EventDocument| {
        event.component.as_deref() == Some("shop/web[1]") && event.state == Some(ComponentStatus::Failed)
    };
    site.events_until(0, is_failed).await;
    fs::remove_file(&broken).unwrap();
    site.done(&["component", "retry", "shop/web[1]"]);
    until_web_servers(&site, 3).await;
}
