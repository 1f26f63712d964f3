//! Checks that do not lie: what an operator is told when a port is taken, and when a component dies again and again.

use crate::site::Site;
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
