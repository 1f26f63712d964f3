//! A quorum whose members know each other, and a change that the manager takes back by itself.

use crate::site::{Site, until};
use cloud_manager::document::{Fate, Plan};

const QUORUM: &str = r#"holdfast: 1
application: quorum
types:
  Member:
    exports: { peer: { values: { host: text, port: port } } }
    imports: { peers: { export: peer, value: all } }
    values: { port: "{{ free_port() }}" }
    files:
      peers.conf: |
        {{ key }} {{ index }}
        {{ host }}:{{ port }}
        {% for peer in imports.peers %}{{ peer.host }}:{{ peer.port }}
        {% endfor %}
    operations:
      start: { process: "trap 'cp peers.conf seen' HUP; cp peers.conf seen; touch ready; while :; do sleep 0.05; done" }
      check: { command: "test -e ready" }
      reload: { signal: HUP }
vms:
  node: { count: 2, cloud: local }
components:
  member: { type: Member, on: node, count: 3, bind: { peers: member } }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quorum_that_grows_tells_its_running_members() {
    let site = Site::open("quorum");
    let path = site.place.join("quorum.yaml");
    std::fs::write(&path, QUORUM).unwrap();
    let path = path.to_str().unwrap();
    site.done(&["apply", path, "--yes"]);
    let seen = site.file("quorum/member[2]", "seen").await;
    let lines = || std::fs::read_to_string(&seen).unwrap_or_default();
    assert!(lines().starts_with("member[2] 2\n127.0.0.1:"), "{}", lines());
    assert_eq!(lines().lines().filter(|it| it.contains(':')).count(), 3, "{}", lines());

    // Those that run are told, and do not stop.
    let plan: Plan = serde_json::from_str(&site.done(&["scale", "member=5", "--dry-run", "--json"])).unwrap();
    let fate = |key: &str| plan.applications[0].fates[&key.parse().unwrap()].is;
    assert_eq!((fate("member[2]"), fate("member[4]")), (Fate::Reloaded, Fate::Added));
    assert_eq!(plan.remarks, [] as [&str; 0]);
    let after = site.status().await.newest_event;
    site.done(&["scale", "member=5", "--yes"]);
    until("it has read the five addresses", || lines().lines().filter(|it| it.contains(':')).count() == 5).await;
    let stopped = crate::site::order(&site.events_since(after).await, "stopping");
    assert_eq!(stopped, [] as [&str; 0]);

    // Where only a restart tells them, they are restarted one after the other, when the new one has started.
    std::fs::write(path, QUORUM.replace("reload: { signal: HUP }", "rebind: restart").replace("count: 3", "count: 5"))
        .unwrap();
    site.done(&["apply", path, "--yes"]);
    let plan: Plan = serde_json::from_str(&site.done(&["scale", "member=6", "--dry-run", "--json"])).unwrap();
    assert_eq!((plan.steps, plan.applications[0].fates[&"member[0]".parse().unwrap()].is), (6, Fate::Restarted));
    site.done(&["scale", "member=6", "--yes"]);
    let seen = site.file("quorum/member[0]", "seen").await;
    let lines = std::fs::read_to_string(&seen).unwrap();
    assert_eq!(lines.lines().filter(|it| it.contains(':')).count(), 6, "{lines}");

    // A type that cannot tell them is named, with the components and what to do.
    std::fs::write(path, QUORUM.replace("      reload: { signal: HUP }\n", "")).unwrap();
    site.done(&["apply", path, "--yes"]);
    let plan: Plan = serde_json::from_str(&site.done(&["scale", "member=4", "--dry-run", "--json"])).unwrap();
    let remark = &plan.remarks[0];
    assert!(remark.contains("quorum/member[0], quorum/member[1], quorum/member[2] are not told"), "{remark}");
    assert!(remark.contains("type `Member` has neither `rebind` nor `reload`"), "{remark}");
}

const SERVICE: &str = r#"holdfast: 1
application: service
types:
  Service:
    parameters: { release: 1 }
    data: files
    operations:
      start: { process: "echo {{ parameters.release }} >> {{ data.files }}/releases; test {{ parameters.release }} != 2 && touch ready && exec sleep 1000" }
      check: { command: "test -e ready" }
    patience: { start: { retries: 0 } }
vms: { node: { cloud: local } }
components: { service: { type: Service } }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_fails_is_taken_back_on_request() {
    let site = Site::open("taken-back");
    let path = site.place.join("service.yaml");
    std::fs::write(&path, SERVICE).unwrap();
    let file = path.to_str().unwrap();
    site.done(&["apply", file, "--yes"]);

    // By an option, and then because the file says so.
    for (text, option) in [
        (SERVICE.replace("release: 1", "release: 2"), &["--rollback-on-failure"][..]),
        (SERVICE.replace("release: 1", "release: 2").replace("types:", "on-failure: rollback\ntypes:"), &[]),
    ] {
        std::fs::write(&path, text).unwrap();
        let arguments: Vec<&str> = ["apply", file, "--yes"].into_iter().chain(option.iter().copied()).collect();
        let ended = site.holdfast(&arguments);
        let told = String::from_utf8_lossy(&ended.stdout);
        assert!(!ended.status.success() && told.contains("failed, and was taken back"), "{told}");
        let waiting = async {
            while site.state("service/service[0]").await != "started" || !site.status().await.changes.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(30), waiting)
            .await
            .expect("the release from before is back");
        // The release from before runs on its own data.
        let home = site.file("service/service[0]", "ready").await;
        assert!(home.exists());
        let data = home.ancestors().nth(3).unwrap().join("data/service+service@0=/files/releases");
        let releases = std::fs::read_to_string(&data).unwrap();
        assert!(releases.ends_with("2\n1\n"), "{releases}");
    }
    // Nothing differs from what counts now.
    std::fs::write(&path, SERVICE).unwrap();
    let told = site.done(&["apply", file, "--yes"]);
    assert!(told.contains("No changes."), "{told}");
}
