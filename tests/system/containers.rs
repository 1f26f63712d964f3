//! Containers for real: the driver against a Docker engine that the test starts.
//!
//! The engine, the manager, the agents and all containers live in namespaces of their own for networks and mounts, which end
//! with the last of them. So the engine's bridge and packet filter concern nothing else, and two runs do not meet. Images are made from a
//! static busybox; nothing is fetched. Where there is no engine, the test says that it was left out, and why.

use crate::site::{Site, until};
use cloud_manager::document::EventDocument;
use std::{
    fs,
    io::Read,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Set in the process that is inside the namespace.
const INSIDE: &str = "HOLDFAST_TEST_INSIDE";
/// Programs of the image besides the shell.
const APPLETS: [&str; 8] = ["cat", "echo", "httpd", "mkdir", "sleep", "sh", "test", "wc"];

/// A Docker engine with its own root and socket.
struct Engine {
    place: PathBuf,
    daemon: Option<Child>,
}

impl Engine {
    /// Starts it, and waits until it answers.
    async fn start(place: &Path) -> Self {
        let mut engine = Self { place: place.to_owned(), daemon: None };
        engine.begin().await;
        engine
    }

    async fn begin(&mut self) {
        fs::create_dir_all(&self.place).unwrap();
        let log = fs::File::create(self.place.join("log")).unwrap();
        let at = |name: &str| self.place.join(name).display().to_string();
        let daemon = Command::new("dockerd")
            .args(["--data-root", &at("data"), "--exec-root", &at("exec"), "--pidfile", &at("pid")])
            .args(["--host", &self.socket()])
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.daemon = Some(daemon);
        let place = self.place.clone();
        until("the engine answers", || {
            command(&place).arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
        })
        .await;
    }

    /// Stops it, with all its containers.
    fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let _ = daemon.wait();
        }
    }

    fn socket(&self) -> String {
        socket(&self.place)
    }

    /// What the engine answers.
    fn ask(&self, arguments: &[&str]) -> String {
        let output = command(&self.place).args(arguments).output().unwrap();
        let (told, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "docker {arguments:?}: {told}{complaint}");
        told.trim().to_owned()
    }

    /// An image with a shell and a few programs.
    fn make_image(&self, name: &str, busybox: &Path) {
        let root = self.place.join("image");
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::copy(busybox, root.join("bin/busybox")).unwrap();
        for applet in APPLETS {
            let _ = std::os::unix::fs::symlink("busybox", root.join("bin").join(applet));
        }
        let mut tar =
            Command::new("tar").arg("-C").arg(&root).args(["-c", "."]).stdout(Stdio::piped()).spawn().unwrap();
        let made = command(&self.place)
            .args(["import", "-", name])
            .stdin(tar.stdout.take().unwrap())
            .stdout(Stdio::null())
            .status();
        assert!(made.unwrap().success() && tar.wait().unwrap().success());
    }

    /// The names of all containers, running or not.
    fn containers(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.ask(&["ps", "--all", "--format", "{{.Names}}"]).lines().map(str::to_owned).collect();
        names.sort();
        names
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let left = command(&self.place).args(["ps", "--all", "--quiet"]).output();
        for container in String::from_utf8_lossy(&left.map(|it| it.stdout).unwrap_or_default()).lines() {
            let _ = command(&self.place).args(["rm", "--force", container]).output();
        }
        self.stop();
        let _ = fs::remove_dir_all(&self.place);
    }
}

fn socket(place: &Path) -> String {
    format!("unix://{}", place.join("docker.sock").display())
}

fn command(place: &Path) -> Command {
    let mut command = Command::new("docker");
    command.args(["--host", &socket(place)]);
    command
}

/// Where a program is found.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|it| it.is_file())
}

/// Runs this test once more inside namespaces of its own. Says whether this is that run.
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let missing = ["dockerd", "containerd", "runc", "docker", "iptables", "busybox", "unshare", "ip"];
    if let Some(missing) = missing.into_iter().find(|it| found(it).is_none()) {
        eprintln!("left out: there is no container engine to test with (`{missing}` is not installed)");
        return false;
    }
    let may = Command::new("unshare").args(["--net", "--mount", "true"]).stderr(Stdio::null()).status().unwrap();
    if !may.success() {
        eprintln!("left out: only root can start a container engine");
        return false;
    }
    let ended = Command::new("unshare")
        .args(["--net", "--mount", "--", "/bin/sh", "-c", "ip link set lo up && exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status();
    assert!(ended.unwrap().success(), "see above");
    false
}

/// A site whose agents find an engine under the name `docker`.
async fn site_with_engine(name: &str) -> (Site, Engine) {
    let site = Site::open(name);
    // Paths of sockets are short.
    let engine = Engine::start(&std::env::temp_dir().join(format!("hf-{name}-{}", std::process::id()))).await;
    let client = found("docker").unwrap();
    site.program("docker", &format!("#!/bin/sh\nexec {} --host {} \"$@\"\n", client.display(), engine.socket()));
    engine.make_image("stand-in", &found("busybox").unwrap());
    (site, engine)
}

/// What is served at a port of this machine.
fn page(port: u16) -> String {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return String::new() };
    let _ = std::io::Write::write_all(&mut stream, b"GET /index.html HTTP/1.0\r\n\r\n");
    let mut told = String::new();
    let _ = stream.read_to_string(&mut told);
    told.rsplit("\r\n\r\n").next().unwrap_or_default().trim().to_owned()
}

/// A server that counts its starts in a volume and shows the count, on the network of its VM and on a network of its own, with
/// its port published; and a client that traps its end.
fn servers(ports: [u16; 2]) -> String {
    let [host, bridge] = ports;
    let serve = |address: &str| {
        format!(
            "echo started >> /data/starts; mkdir /w; wc -l < /data/starts > /w/index.html; echo serving; trap 'exit 0' TERM; httpd -f -p {address} -h /w & wait"
        )
    };
    format!(
        r#"holdfast: 1
application: boxes
types:
  Plain:
    limits: {{ memory: 64M, cpu: 0.5, files: 256 }}
    no-new-privileges: true
    exports: {{ http: {{ values: {{ port: port }} }} }}
    values: {{ port: "{host}" }}
    operations:
      start: {{ container: {{ image: stand-in, command: [/bin/sh, -c, "{}"], volumes: ["plain:/data"] }} }}
      check: {{ http: "http://127.0.0.1:{host}/index.html" }}
    patience: {{ start: {{ retries: 60, pause: 500ms, factor: 1 }}, run: {{ retries: 60, pause: 200ms, factor: 1 }} }}
  Published:
    imports: {{ http: http }}
    operations:
      start:
        container:
          image: stand-in
          command: [/bin/sh, -c, "{}"]
          volumes: ["published:/data"]
          options: ["--publish=127.0.0.1:{bridge}:80"]
      check: {{ tcp: "{bridge}", host: 127.0.0.1 }}
    patience: {{ start: {{ retries: 60, pause: 500ms, factor: 1 }}, run: {{ retries: 60, pause: 200ms, factor: 1 }} }}
vms: {{ v: {{ count: 2, cloud: local }} }}
components: {{ plain: {{ type: Plain, on: "v[0]" }}, published: {{ type: Published, on: "v[1]" }} }}
"#,
        serve(&format!("127.0.0.1:{host}")),
        serve("80")
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_engine_runs_checks_stops_and_forgets_containers() {
    if !is_inside("containers::a_real_engine_runs_checks_stops_and_forgets_containers") {
        return;
    }
    let (site, mut engine) = site_with_engine("boxes").await;
    let ports = [8081, 8082];
    fs::write(site.place.join("boxes.yaml"), servers(ports)).unwrap();
    site.done(&["apply", "boxes.yaml", "--yes"]);
    let both = ["boxes-plain-0", "boxes-published-0"];
    assert_eq!(engine.containers(), both);
    assert_eq!(ports.map(page), ["1", "1"]);
    assert!(site.done(&["component", "logs", "boxes/plain[0]"]).contains("serving"));
    let limits =
        "{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}} {{.HostConfig.SecurityOpt}} {{json .HostConfig.Ulimits}}";
    let limits = engine.ask(&["inspect", "--format", limits, both[0]]);
    assert!(limits.starts_with("67108864 500000000 [no-new-privileges] [{"), "{limits}");
    assert!(limits.contains("\"nofile\"") && limits.contains("\"Hard\":256"), "{limits}");

    // A restart keeps the volumes, and the client of what restarts restarts with it.
    site.done(&["component", "restart", "boxes/plain[0]"]);
    assert_eq!((engine.containers(), ports.map(page)), (both.map(String::from).to_vec(), ["2", "2"].map(String::from)));

    // A container that is killed has died; one whose client is killed has, too, and is not left running beside the next.
    let death = |event: &EventDocument| {
        event.component.as_deref() == Some("boxes/plain[0]") && event.operation.as_deref() == Some("run")
    };
    let before = site.status().await.newest_event;
    engine.ask(&["kill", both[0]]);
    let told = site.events_until(before, death).await;
    assert!(told.last().unwrap().detail.as_deref().unwrap().starts_with("exit code 137"), "{told:?}");
    until("both are up again", || ports.map(page) == ["3", "3"]).await;
    let before = site.status().await.newest_event;
    let client = site.file("boxes/plain[0]", "../record.json").await;
    let record: serde_json::Value = serde_json::from_slice(&fs::read(client).unwrap()).unwrap();
    let pid = record["run"]["process"]["pid"].to_string();
    assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    site.events_until(before, death).await;
    until("both are up again", || ports.map(page) == ["4", "4"]).await;
    assert_eq!(engine.containers(), both);

    // An agent that is killed while containers are created never leads to a second one.
    let vm = site.status().await.vms.iter().find(|it| it.name == "boxes/v[0]").and_then(|it| it.id).unwrap();
    for state in ["stopping", "starting"] {
        let restart = serde_json::json!({ "edits": [{ "restart-component": "boxes/plain[0]" }] });
        let restarting = site.post(&restart).await;
        let moment = format!("boxes/plain[0] is {state}");
        site.events_until(restarting.events_after, |event| event.text == moment).await;
        site.kill_agent(vm).await;
        site.until_done(&restarting).await;
        assert_eq!(engine.containers(), both);
    }

    // The engine is restarted, and ends all that runs in it.
    let count = |page: &str| page.parse::<u32>().unwrap_or(0);
    let starts = count(&page(ports[0]));
    let before = site.status().await.newest_event;
    engine.stop();
    site.events_until(before, |event| event.text.contains("boxes/plain[0]: start failed (attempt 1")).await;
    engine.begin().await;
    until("both are up again", || !page(ports[1]).is_empty() && count(&page(ports[0])) > starts).await;
    assert_eq!(engine.containers(), both);

    // What is not there, and a port that something else holds, are told.
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = stranger.local_addr().unwrap().port();
    let text = |image: &str, check: &str| {
        format!(
            "holdfast: 1\napplication: other\ntypes:\n  Box:\n    operations: {{ start: {{ container: {{ image: {image}, command: [sleep, '1000'] }} }}, stop: {{ grace: 1s }}{check} }}\n    patience: {{ start: {{ retries: 0 }} }}\nvms: {{ w: {{ cloud: local }} }}\ncomponents: {{ box: {{ type: Box }} }}\n"
        )
    };
    fs::write(site.place.join("other.yaml"), text("no-such-image", "")).unwrap();
    let told = site.refused(&["apply", "other.yaml", "--yes"]);
    assert!(
        told.contains("start failed") && told.contains("Unable to find image 'no-such-image:latest' locally"),
        "{told}"
    );
    let check = format!(", check: {{ tcp: \"{port}\", ready-within: 1s }}");
    fs::write(site.place.join("other.yaml"), text("stand-in", &check)).unwrap();
    let told = site.refused(&["apply", "other.yaml", "--yes"]);
    let why = format!("port {port} is held by process {} (", std::process::id());
    assert!(told.contains(&why), "{told}");
    assert_eq!(engine.containers(), both, "a start that failed leaves nothing behind");

    site.done(&["remove", "other", "--yes"]);
    site.done(&["remove", "boxes", "--yes"]);
    assert_eq!(engine.containers(), [""; 0]);
    assert!(engine.ask(&["volume", "ls", "--quiet"]).contains("plain"), "volumes stay");
    site.audit(&[]);
    site.remove_everything().await;
}
