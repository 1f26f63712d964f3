//! Checks that do not lie: what an operator is told when a port is taken, and when a component dies again and again.

use crate::site::Site;
use cloud_manager::document::EventDocument;
use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
};

/// Something that answers HTTP and is no component; its port.
fn stranger() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_not_done_while_a_stranger_holds_the_port_of_its_component() {
    let site = Site::open("stranger");
    let port = stranger();
    // It cannot bind, and keeps trying, as web servers do.
    let text = format!(
        r#"holdfast: 1
application: a
types:
  Web:
    operations:
      start: {{ process: "echo 'bind() to 127.0.0.1:{port} failed'; exec sleep 100000" }}
      check: {{ http: "http://127.0.0.1:{port}/", ready-within: 300ms }}
    patience: {{ start: {{ retries: 0 }} }}
vms: {{ v: {{ cloud: local }} }}
components: {{ web: {{ type: Web }} }}
"#
    );
    fs::write(site.place.join("a.yaml"), text).unwrap();
    let told = site.refused(&["apply", "a.yaml", "--yes"]);
    let why = format!("port {port} is held by process {} (", std::process::id());
    assert!(!told.contains("✓ change 1 is done"), "{told}");
    for told in [told, site.done(&["status"]), site.done(&["why", "a/web[0]"])] {
        assert!(told.contains(&why) && told.contains("not by this component"), "{told}");
        assert!(told.contains("bind() to 127.0.0.1"), "{told}");
    }
    site.remove_everything().await;
}

/// A component that dies shortly after each start, as the file says.
fn dying(operations: &str, patience: &str) -> String {
    format!(
        r#"holdfast: 1
application: a
types:
  Web:
    operations: {{ {operations} }}
    patience: {{ {patience} }}
vms: {{ v: {{ cloud: local }} }}
components: {{ web: {{ type: Web }} }}
"#
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_without_a_check_that_ends_at_once_is_not_started_and_each_attempt_says_why() {
    let site = Site::open("at-once");
    let start = r#"start: { process: "echo no such table; exit 3" }"#;
    fs::write(site.place.join("a.yaml"), dying(start, "start: { retries: 1, pause: 100ms }")).unwrap();
    let told = site.refused(&["apply", "a.yaml", "--yes"]);
    let first = "a/web[0]: start failed (attempt 1 of 2); next attempt in 100 ms: ended within 200ms: exit code 3";
    assert!(told.contains(&format!("{first}\n    no such table\n")), "{told}");
    assert!(told.contains("a/web[0]: start failed, manual action required: ended within 200ms: exit code 3"), "{told}");
    let told = site.done(&["component", "logs", "a/web[0]"]);
    assert_eq!(told.matches(": failed: start: ended within 200ms: exit code 3\n").count(), 2, "{told}");
    site.remove_everything().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_dies_again_and_again_is_in_a_crash_loop_and_its_change_is_not_done() {
    let site = Site::open("crash-loop");
    let gate = site.place.join("gate");
    // It is ready, and then it dies. The other component keeps the change open until it has died once.
    let text = format!(
        r#"holdfast: 1
application: a
types:
  Web:
    operations: {{ start: {{ process: "echo up; sleep 0.3; echo out of memory; exit 4", settle: 100ms }} }}
    patience: {{ run: {{ retries: 20, pause: 1s, factor: 1 }} }}
  Slow:
    operations:
      start: {{ process: "exec sleep 100000" }}
      check: {{ command: "test -e {}", interval: 50ms }}
vms: {{ v: {{ cloud: local }} }}
components: {{ web: {{ type: Web }}, slow: {{ type: Slow }} }}
"#,
        gate.display()
    );
    fs::write(site.place.join("a.yaml"), text).unwrap();
    let told = site.done(&["apply", "a.yaml", "--yes", "--no-wait"]);
    assert!(told.contains("change 1"), "{told}");
    let died =
        |times: u32| move |event: &EventDocument| event.text.contains(&format!("is crash-looping: died {times} times"));
    site.events_until(0, |event| event.text == "a/web[0] died; next start in 1 s").await;
    fs::write(&gate, "").unwrap();
    let events = site.events_until(0, died(2)).await;
    let death = events.last().expect("it was waited for");
    assert_eq!(death.detail.as_deref(), Some("exit code 4\nup\nout of memory"));
    assert!(events.iter().any(|event| event.text == "a/slow[0] is started"));
    assert!(!events.iter().any(|event| event.what.ends_change()), "the change is done too early");

    let told = site.done(&["status"]);
    assert!(told.contains(", 1 crash-looping"), "{told}");
    assert!(told.contains("✗ a/web[0] is crash-looping: died ") && told.contains("times; "), "{told}");
    assert!(told.contains(": exit code 4 (holdfast component logs 'a/web[0]')\n    up\n    out of memory\n"), "{told}");
    let told = site.done(&["why", "a/web[0]"]);
    assert!(told.starts_with("✗ a/web[0]") && told.contains("is crash-looping: died"), "{told}");
    assert!(told.contains("out of memory"), "{told}");
    // What is in a crash loop can be removed like anything else.
    site.remove_everything().await;
}
