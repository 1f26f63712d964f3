//! A site for tests: one real manager, real agents on this machine, real processes; all of it is removed when the test
//! ends.

use crate::HOLDFAST;
use cloud_manager::access::Access;
use cloud_manager::client::{Client, StreamItem};
use cloud_manager::document::EventKind;
use cloud_manager::document::{Accepted, EditDocument, EventDocument, JoinToken, NewChange, NewJoinToken, Status};
use runtime::DataDirectory;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Time limit for each wait of a test.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Site {
    pub(crate) place: PathBuf,
    pub(crate) options: Vec<String>,
    /// Environment variables of all commands.
    pub(crate) environment: Vec<(String, String)>,
    manager: Option<Child>,
    agents: Vec<Child>,
    pub(crate) client: Client,
}

impl Site {
    /// A manager without VMs.
    pub(crate) fn open(name: &str) -> Self {
        Self::open_with(name, &[])
    }

    /// The same, with further options. The manager's data directory is `manager` below the place, which is its working
    /// directory.
    pub(crate) fn open_with(name: &str, options: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{count}", std::process::id()));
        std::fs::create_dir_all(place.join("bin")).unwrap();
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let manager = start_manager(&place, &options);
        let client = Client::new(&Access::read(&place.join("manager/access.json")).unwrap()).unwrap();
        Self { place, options, environment: Vec::new(), manager: Some(manager), agents: Vec::new(), client }
    }

    /// Installs a program where the manager's agents on this machine find it before any other with its name.
    pub(crate) fn program(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.place.join("bin").join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.place.join("manager")
    }

    /// The data directory of a VM on this machine.
    pub(crate) fn vm(&self, id: u64) -> PathBuf {
        self.data().join(format!("local/vm-{id}"))
    }

    /// Kills the manager, as a power failure would.
    pub(crate) fn kill_manager(&mut self) {
        let mut manager = self.manager.take().unwrap();
        manager.kill().unwrap();
        manager.wait().unwrap();
    }

    pub(crate) fn restart_manager(&mut self) {
        self.manager = Some(start_manager(&self.place, &self.options));
    }

    /// Kills the agent of a VM on this machine, and waits until it is dead.
    pub(crate) async fn kill_agent(&self, vm: u64) {
        let agent = vm_agent::Presence::of(&self.vm(vm)).unwrap();
        agent.end(Duration::ZERO).await;
    }

    /// Kills the agent of a VM on this machine so that none restarts as long as the returned value is kept: each agent
    /// finds its data directory in use.
    pub(crate) async fn kill_agent_for_good(&self, vm: u64) -> DataDirectory {
        loop {
            if let Some(agent) = vm_agent::Presence::of(&self.vm(vm)) {
                agent.end(Duration::ZERO).await;
            }
            if let Ok(taken) = DataDirectory::open(&self.vm(vm)) {
                return taken;
            }
        }
    }

    /// Starts an agent that joins with a token, and returns its first output.
    pub(crate) fn start_agent(&mut self, name: &str, token: Option<&str>) -> String {
        let address = self.manager_address();
        let mut command = Command::new(HOLDFAST);
        command.args(["agent", "run", "--manager", &address, "--data"]).arg(self.place.join(name));
        self.run_agent(command, name, token)
    }

    /// The same with another command, without token and name.
    pub(crate) fn run_agent(&mut self, mut command: Command, name: &str, token: Option<&str>) -> String {
        if let Some(token) = token {
            command.args(["--name", name, "--token", token]);
        }
        let mut agent = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let line = first_line(&mut agent);
        self.agents.push(agent);
        line
    }

    /// Kills the agent that was started last, as a power failure would.
    pub(crate) fn kill_last_agent(&mut self) {
        let mut agent = self.agents.pop().unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
    }

    /// Waits until the agent that was started last has ended, and returns its exit code.
    pub(crate) async fn last_agent_ended(&mut self) -> Option<i32> {
        let mut agent = self.agents.pop().unwrap();
        let ended = tokio::task::spawn_blocking(move || {
            let give_up = Instant::now() + PATIENCE;
            loop {
                match agent.try_wait().unwrap() {
                    Some(status) => return status.code(),
                    None if Instant::now() > give_up => {
                        agent.kill().unwrap();
                        panic!("the agent keeps running");
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
        ended.await.unwrap()
    }

    /// A token with which the VM with that name can join.
    pub(crate) async fn invite(&self, vm: &str) -> String {
        let invite = NewJoinToken { vm: Some(vm.into()), ..NewJoinToken::default() };
        let token: JoinToken = self.client.post("/v1/join-tokens", &invite).await.unwrap();
        token.text
    }

    /// Runs a command that must succeed, and returns its output.
    #[track_caller]
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let output = self.holdfast(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{arguments:?}\n{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// Runs a command that must fail, and returns its output.
    #[track_caller]
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let output = self.holdfast(arguments);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert!(!output.status.success(), "{arguments:?}\n{text}");
        text
    }

    pub(crate) fn manager_address(&self) -> String {
        let ports: Value = serde_json::from_slice(&std::fs::read(self.data().join("ports.json")).unwrap()).unwrap();
        format!("127.0.0.1:{}", ports["agents"])
    }

    /// Runs a command of the program as an operator would.
    pub(crate) fn holdfast(&self, arguments: &[&str]) -> Output {
        Command::new(HOLDFAST)
            .args(arguments)
            .current_dir(&self.place)
            .envs(self.environment.iter().cloned())
            .env("HOLDFAST_ACCESS", self.data().join("access.json"))
            .output()
            .unwrap()
    }

    /// Submits a change; it must be accepted.
    pub(crate) async fn post(&self, change: &Value) -> Accepted {
        let change: NewChange = serde_json::from_value(change.clone()).unwrap();
        self.client.post("/v1/changes", &change).await.unwrap()
    }

    /// Submits a change, waits until it is done, and returns the events meanwhile.
    pub(crate) async fn make(&self, change: &Value) -> Vec<EventDocument> {
        let accepted = self.post(change).await;
        self.until_done(&accepted).await
    }

    pub(crate) async fn until_done(&self, accepted: &Accepted) -> Vec<EventDocument> {
        let change = Some(accepted.change);
        self.events_until(accepted.events_after, |event| event.what == EventKind::ChangeDone && event.change == change)
            .await
    }

    /// All events after a number, up to the first that matches.
    pub(crate) async fn events_until(&self, after: u64, fits: impl Fn(&EventDocument) -> bool) -> Vec<EventDocument> {
        let mut received = Vec::new();
        let receiving = async {
            let mut events = self.client.events(after).await.unwrap();
            loop {
                match events.next().await.unwrap().expect("the stream continues") {
                    StreamItem::Event(event) => {
                        let is_last = fits(&event);
                        received.push(*event);
                        if is_last {
                            return;
                        }
                    }
                    StreamItem::Gap(_) => panic!("so few events are never dropped"),
                }
            }
        };
        let ended = timeout(PATIENCE, receiving).await;
        if ended.is_err() {
            let status = self.status().await;
            panic!("no event matched; events: {received:#?}\nstatus: {status:#?}");
        }
        received
    }

    pub(crate) async fn status(&self) -> Status {
        self.client.get("/v1/status").await.unwrap()
    }

    /// The state of a component.
    pub(crate) async fn state(&self, component: &str) -> String {
        let status = self.status().await;
        let found = status.components.iter().find(|it| it.name == component);
        found.map_or("gone".into(), |it| it.state.to_string())
    }

    /// The events after a number, up to now.
    pub(crate) async fn events_since(&self, after: u64) -> Vec<EventDocument> {
        let newest = self.status().await.newest_event;
        self.events_until(after, |event| event.number >= newest).await
    }

    /// A file of a component on this machine.
    pub(crate) async fn file(&self, component: &str, file: &str) -> PathBuf {
        let status = self.status().await;
        let component = status.components.iter().find(|it| it.name == component).unwrap();
        let vm = status.vms.iter().find(|it| it.name == component.vm).unwrap();
        self.vm(vm.id.unwrap()).join(format!("components/{}", component.id.unwrap())).join("home").join(file)
    }

    /// Checks every property on the journals.
    pub(crate) fn audit(&self, more: &[&Path]) -> Value {
        let mut command = Command::new(HOLDFAST);
        command.args(["audit", "--json"]).arg(self.data()).args(more);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&text).unwrap()
    }

    /// Removes everything, and checks that no process, no port and no directory of a VM is left.
    pub(crate) async fn remove_everything(&self) {
        let vms = self.status().await.vms;
        let edits = vms.into_iter().map(|vm| EditDocument::RemoveVm(vm.name)).collect();
        let change = serde_json::to_value(NewChange { edits, ..NewChange::default() }).unwrap();
        self.make(&change).await;
        let left: Vec<_> = std::fs::read_dir(self.data().join("local")).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
        let processes = processes_of(&self.place, self.manager.as_ref().map(Child::id));
        assert!(processes.is_empty(), "{processes:?}");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(mut manager) = self.manager.take() {
            let _ = manager.kill();
            let _ = manager.wait();
        }
        for agent in &mut self.agents {
            let _ = agent.kill();
            let _ = agent.wait();
        }
        // Agents of the local cloud, and components: all of them mention this place.
        for pid in processes_of(&self.place, None) {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

/// The processes whose command line, environment or directory mentions a place. Some servers overwrite the first two.
pub(crate) fn processes_of(place: &Path, besides: Option<u32>) -> Vec<u32> {
    use std::os::unix::ffi::OsStrExt;
    let place = place.as_os_str().as_bytes();
    let own = std::process::id();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let within = |text: &[u8]| text.windows(place.len()).any(|part| part == place);
    let speaks = |pid: &u32| {
        let files = ["cmdline", "environ"].map(|file| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default());
        let directory = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        files.iter().any(|text| within(text)) || within(directory.as_os_str().as_bytes())
    };
    pids.filter(|pid| *pid != own && Some(*pid) != besides).filter(speaks).collect()
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, waiting).await.expect(what);
}

fn start_manager(place: &Path, options: &[String]) -> Child {
    let mut manager = Command::new(HOLDFAST);
    manager.args(["manager", "run", "--api", "127.0.0.1:0"]).args(options).current_dir(place);
    if !options.iter().any(|option| option == "--data") {
        manager.arg("--data").arg(place.join("manager"));
    }
    if !options.iter().any(|option| option == "--listen") {
        manager.args(["--listen", "127.0.0.1:0"]);
    }
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([place.join("bin")].into_iter().chain(std::env::split_paths(&usual))).unwrap();
    let mut manager = manager.env("PATH", path).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    assert!(first_line(&mut manager).starts_with("agents"));
    manager
}

/// The first output of a program: then it is ready. Further output is discarded.
fn first_line(child: &mut Child) -> String {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().map_or(String::new(), Result::unwrap);
    std::thread::spawn(move || lines.for_each(drop));
    first
}

/// A VM of the cloud on this machine.
pub(crate) fn vm(name: &str) -> Value {
    json!({ "add-vm": { "name": name, "cloud": "local" } })
}

/// A component that records its inputs and sleeps; it exports a port that it keeps.
pub(crate) fn provider(name: &str, vm: &str, export: &str) -> Value {
    json!({ "add-component": {
        "name": name, "vm": vm,
        "exports": { export: { "values": ["port"] } },
        "recipe": {
            "version": 1,
            "values": { "port": { "template": "{{ free_port() }}" } },
            "operations": { "start": { "process": { "run": "echo serving at {{ port }}; exec sleep 1000" } } },
        },
    }})
}

/// A component with one strong import, and an export if one is given.
pub(crate) fn client(name: &str, vm: &str, import: &str, export: Option<&str>) -> Value {
    let exports = export.map_or(json!({}), |export| json!({ export: { "values": ["port"] } }));
    json!({ "add-component": {
        "name": name, "vm": vm,
        "imports": { import: { "export": import } },
        "exports": exports,
        "recipe": {
            "version": 1,
            "values": { "port": { "template": "{{ free_port() }}" } },
            "operations": { "start": { "process": {
                "run": format!("echo using {{{{ imports.{import}[0].port }}}}; exec sleep 1000"),
            } } },
        },
    }})
}

pub(crate) fn bind(wire: &str) -> Value {
    json!({ "bind": wire })
}

/// The order in which components reached a state.
pub(crate) fn order(events: &[EventDocument], state: &str) -> Vec<String> {
    let fits = |event: &&EventDocument| event.state.is_some_and(|it| it.to_string() == state);
    events.iter().filter(fits).filter_map(|event| event.component.clone()).collect()
}
