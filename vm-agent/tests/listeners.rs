//! Stories of checks and of the process that answers them: only what the component itself listens on counts.

mod stage;

use protocol::Work;
use rustix::process::Signal;
use serde_json::{Value, json};
use stage::{Stage, kill, marked, played, recipe, start, task};
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener},
    process::{Child, Command, Stdio},
};

#[test]
fn a_component_is_played_by_this_very_program() {
    stage::play();
}

/// A process that stays, ready when the probe says so.
fn waiting(probe: &Value) -> Value {
    recipe(json!({
        "start": { "process": { "run": "exec sleep 1000" } },
        "check": { "probe": probe, "ready_within_ms": 100, "attempt_ms": 20_000 }
    }))
}

/// Something that answers HTTP and is no component.
fn stranger() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        }
    });
    port
}

#[tokio::test]
async fn a_port_that_another_process_holds_does_not_make_a_component_ready() {
    let mut stage = Stage::new().await;
    let port = stranger();
    let probes = [
        json!({ "tcp": { "port": port.to_string() } }),
        json!({ "tcp": { "port": port.to_string(), "host": "localhost" } }),
        json!({ "http": { "url": format!("http://127.0.0.1:{port}/") } }),
    ];
    for (serial, probe) in (1..).zip(probes) {
        let detail = stage.fail(&task(serial, &waiting(&probe), start())).await;
        let holder = format!("is held by process {}", std::process::id());
        assert!(detail.contains(&holder) && detail.contains("not by this component"), "{detail}");
        assert_eq!(marked(&stage.home(1)), [0; 0]);
    }
}

#[tokio::test]
async fn a_file_may_say_that_something_else_listens_for_the_component() {
    let mut stage = Stage::new().await;
    let mut recipe = waiting(&json!({ "tcp": { "port": stranger().to_string() } }));
    recipe["operations"]["check"]["listener"] = json!("any");
    stage.carry_out(&task(1, &recipe, start())).await;
    stage.carry_out(&task(2, &recipe, Work::Stop)).await;
}

/// A recipe that keeps a port, and is ready when it listens there.
fn server(start: &Value) -> Value {
    json!({
        "version": 1,
        "values": { "port": { "template": "{{ free_port() }}" } },
        "environment": { "PORT": "{{ port }}", "ROLE": "tcp" },
        "operations": {
            "start": start,
            "stop": { "command": { "run": "test ! -e pid || kill $(cat pid)" } },
            "check": { "probe": { "tcp": { "port": "{{ port }}" } }, "ready_within_ms": 10_000 }
        }
    })
}

/// The command by which this program plays a server, for a shell.
fn server_command() -> String {
    let words = played("tcp", "a_component_is_played_by_this_very_program");
    let words =
        words.as_array().expect("it is a list").iter().map(|word| format!("'{}'", word.as_str().expect("a text")));
    words.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn every_process_that_a_component_has_started_may_listen_for_it() {
    let mut stage = Stage::new().await;
    let server_command = server_command();
    let starts = [
        // A child, in the same group.
        json!({ "process": { "run": format!("{server_command} & wait") } }),
        // A child in a session of its own.
        json!({ "process": { "run": format!("setsid {server_command} & wait") } }),
        // A daemon, whose parent has ended.
        json!({ "script": { "run": format!("setsid {server_command} > /dev/null 2>&1 & echo $! > pid") } }),
        // The same, and nothing in its environment says where it comes from.
        json!({ "script": {
            "run": format!("setsid env -u HOLDFAST_DIRECTORY {server_command} > /dev/null 2>&1 & echo $! > pid")
        } }),
    ];
    for (serial, start_step) in (1..).step_by(3).zip(starts) {
        let recipe = server(&start_step);
        let values = stage.carry_out(&task(serial, &recipe, start())).await;
        let port: u16 = values[&stage::name("port")].parse().expect("a port");
        stage.carry_out(&task(serial + 1, &recipe, Work::Stop)).await;
        for pid in marked(&stage.home(1)) {
            kill(pid, Signal::KILL);
        }
        // The next one listens at the same port.
        stage::eventually("the port is free", || TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()).await;
    }
}

/// A server that this test has started: no component knows it. Ended when dropped.
struct Foreign(Child, u16);

impl Foreign {
    async fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("it is bound").port();
        let mut child = Command::new("/bin/sh");
        child.args(["-c", &format!("exec {}", server_command())]);
        let child = child.env("PORT", port.to_string()).spawn().expect("it starts");
        stage::eventually("it listens", || std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()).await;
        Self(child, port)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn what_a_recipe_identifies_belongs_to_the_component() {
    let mut stage = Stage::new().await;
    let foreign = Foreign::start().await;
    let (pid, port) = (foreign.0.id(), foreign.1);
    let identified = |line: &str| {
        let mut recipe = waiting(&json!({ "tcp": { "port": port.to_string() } }));
        recipe["operations"]["identify"] = json!({ "run": format!("echo {line}") });
        recipe
    };
    let right = [format!("process {pid}"), format!("address 127.0.0.1:{port}"), format!("address 0.0.0.0:{port}")];
    for (serial, line) in (1..).step_by(2).zip(right) {
        stage.carry_out(&task(serial, &identified(&line), start())).await;
        stage.carry_out(&task(serial + 1, &identified(&line), Work::Stop)).await;
    }
    for (serial, line) in
        (10..).zip(["process 0".to_owned(), "cgroup /no-such".into(), format!("address 127.0.0.1:{}", port - 1)])
    {
        let detail = stage.fail(&task(serial, &identified(&line), start())).await;
        assert!(detail.contains(&format!("port {port} is held by process {pid}")), "{detail}");
    }
    let detail = stage.fail(&task(20, &identified("nothing"), start())).await;
    assert!(detail.contains("is neither `process PID`"), "{detail}");
}

#[tokio::test]
async fn a_port_that_goes_to_another_process_means_that_the_component_is_dead() {
    let mut stage = Stage::new().await;
    let port = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("it is bound").port();
    // Two sockets share the port, so that there is no moment at which nothing listens there.
    let listens =
        format!("import signal, socket, time\nit = socket.create_server((\"127.0.0.1\", {port}), reuse_port=True)\n");
    // It stops listening once it is told to; its process stays.
    let program = format!("{listens}signal.signal(signal.SIGUSR1, lambda *_: it.close())\nwhile True: time.sleep(60)");
    let recipe = recipe(json!({
        "start": { "process": { "run": ["python3", "-c", program] } },
        "check": { "probe": { "tcp": { "port": port.to_string() } }, "liveness_ms": 20, "failures_max": 2 }
    }));
    let start = task(1, &recipe, start());
    stage.carry_out(&start).await;
    let program = format!("{listens}print(flush=True)\nwhile True: it.accept()[0].close()");
    let mut stranger = Command::new("python3");
    let mut stranger =
        Foreign(stranger.args(["-c", &program]).stdout(Stdio::piped()).spawn().expect("it starts"), port);
    let told = stranger.0.stdout.as_mut().expect("it is piped").read(&mut [0]).expect("it listens");
    assert_eq!(told, 1);
    kill(stage.pid(1), Signal::USR1);
    let detail = stage.died(&start).await;
    let why = format!("check failed 2 times in a row: port {port} is held by process {} (", stranger.0.id());
    assert!(detail.starts_with(&why), "{detail}");
}

#[tokio::test]
async fn a_check_that_passes_says_nothing_of_a_process_that_has_ended() {
    let mut stage = Stage::new().await;
    let recipe = recipe(json!({
        "start": { "process": { "run": "echo $$ > pid; echo about to end; exit 7" } },
        // It passes only once the process has ended.
        "check": { "probe": { "command": { "run": "test -e pid && until ! kill -0 $(cat pid); do sleep 0.01; done" } } }
    }));
    let detail = stage.fail(&task(1, &recipe, start())).await;
    assert!(detail.starts_with("start: ended before it was ready: exit code 7"), "{detail}");
    assert!(detail.contains("about to end"), "{detail}");
}
