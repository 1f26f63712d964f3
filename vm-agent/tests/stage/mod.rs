//! A host in a fresh directory, and what a story needs to talk to it.
//!
//! Components that must listen somewhere are played by the test program itself, run once more with a role: so nothing
//! has to be installed.

// Each test program uses a part of it.
#![allow(dead_code, clippy::unwrap_used, reason = "in a test, a panic is the report")]

use protocol::{BindingId, ComponentId, HeldBinding, HostOutcome, HostTask, Kind, Name, Values, Work};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::{IpAddr, Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};
use tokio::sync::mpsc;
use vm_agent::host::{Host, Settings};

/// Nothing in these stories takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A host, its directory, and what it says.
pub(crate) struct Stage {
    pub(crate) directory: PathBuf,
    pub(crate) host: Option<Host>,
    outcomes: mpsc::UnboundedReceiver<HostOutcome>,
    /// Dropped last, when there is no host any more.
    _cleaning: Cleaning,
}

pub(crate) fn settings(directory: &Path) -> Settings {
    Settings::new(directory, IpAddr::V4(Ipv4Addr::LOCALHOST))
}

pub(crate) fn fresh_directory() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("host-{}-{number}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    directory
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::at(fresh_directory(), Vec::new()).await
    }

    pub(crate) async fn at(directory: PathBuf, pending: Vec<HostTask>) -> Self {
        Self::with(settings(&directory), pending).await
    }

    pub(crate) async fn with(settings: Settings, pending: Vec<HostTask>) -> Self {
        let (tell, outcomes) = mpsc::unbounded_channel();
        let directory = settings.directory.clone();
        let host = Host::open(settings, pending, tell).await.unwrap();
        Self { _cleaning: Cleaning(directory.clone()), directory, host: Some(host), outcomes }
    }

    /// The agent goes, and another one comes.
    pub(crate) async fn reopen(&mut self, pending: Vec<HostTask>) {
        self.host = None;
        let (tell, outcomes) = mpsc::unbounded_channel();
        self.host = Some(Host::open(settings(&self.directory), pending, tell).await.unwrap());
        self.outcomes = outcomes;
    }

    pub(crate) fn host(&self) -> &Host {
        self.host.as_ref().unwrap()
    }

    pub(crate) fn begin(&self, task: &HostTask) {
        self.host().carry_out(task.clone());
    }

    pub(crate) async fn outcome(&mut self) -> HostOutcome {
        tokio::time::timeout(PATIENCE, self.outcomes.recv()).await.expect("an outcome in time").expect("a host")
    }

    pub(crate) fn is_silent(&mut self) -> bool {
        self.outcomes.try_recv().is_err()
    }

    /// The next outcome is that this task is done.
    pub(crate) async fn done(&mut self, task: &HostTask) -> Values {
        match self.outcome().await {
            HostOutcome::Done { component, serial, values } => {
                assert_eq!((component, serial), (task.component, task.serial));
                values
            }
            other => panic!("not done: {other:?}"),
        }
    }

    /// The next outcome is that this task has failed.
    pub(crate) async fn failed(&mut self, task: &HostTask) -> String {
        match self.outcome().await {
            HostOutcome::Failed { component, serial, detail } => {
                assert_eq!((component, serial), (task.component, task.serial));
                detail.to_string()
            }
            other => panic!("not failed: {other:?}"),
        }
    }

    /// The next outcome is that what this task has started has died.
    pub(crate) async fn died(&mut self, task: &HostTask) -> String {
        match self.outcome().await {
            HostOutcome::Died { component, serial, detail } => {
                assert_eq!((component, serial), (task.component, task.serial));
                detail.to_string()
            }
            other => panic!("not died: {other:?}"),
        }
    }

    pub(crate) async fn carry_out(&mut self, task: &HostTask) -> Values {
        self.begin(task);
        self.done(task).await
    }

    pub(crate) async fn fail(&mut self, task: &HostTask) -> String {
        self.begin(task);
        self.failed(task).await
    }

    pub(crate) fn place(&self, component: u64) -> PathBuf {
        self.directory.join(component.to_string())
    }

    pub(crate) fn home(&self, component: u64) -> PathBuf {
        self.place(component).join("home")
    }

    pub(crate) fn read(&self, component: u64, file: &str) -> String {
        fs::read_to_string(self.home(component).join(file)).unwrap_or_default()
    }

    pub(crate) fn record(&self, component: u64) -> Value {
        serde_json::from_slice(&fs::read(self.place(component).join("record.json")).unwrap()).unwrap()
    }

    pub(crate) fn write_record(&self, component: u64, record: &Value) {
        fs::write(self.place(component).join("record.json"), record.to_string()).unwrap();
    }

    /// The process of the component's run.
    pub(crate) fn pid(&self, component: u64) -> i32 {
        i32::try_from(self.record(component)["run"]["process"]["pid"].as_i64().expect("a process")).unwrap()
    }
}

/// Ends what a story has left running in this directory, each process by its number, and removes it.
pub(crate) struct Cleaning(pub(crate) PathBuf);

impl Drop for Cleaning {
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            for pid in marked(&entry.path().join("home")) {
                kill(pid, rustix::process::Signal::KILL);
            }
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A task of component 1.
pub(crate) fn task(serial: u64, recipe: &Value, work: Work) -> HostTask {
    task_of(1, serial, recipe, work)
}

pub(crate) fn task_of(component: u64, serial: u64, recipe: &Value, work: Work) -> HostTask {
    let kind = Kind { recipe: recipe.to_string().into_bytes().into(), ..Kind::default() };
    HostTask { component: ComponentId(component), serial, name: name("app[0]"), kind: kind.into(), work }
}

pub(crate) fn start() -> Work {
    Work::Start { bindings: Vec::new() }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn held(import: &str, binding: u64, values: &[(&str, &str)]) -> HeldBinding {
    let values = values.iter().map(|(value, text)| (name(value), (*text).into())).collect();
    HeldBinding { import: name(import), binding: BindingId(binding), values }
}

/// A recipe with these operations.
// The JSON is written at the place of the call.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn recipe(operations: Value) -> Value {
    json!({ "version": 1, "operations": operations })
}

/// A process that writes its number down and stays; ready once a number is written.
pub(crate) fn sleeper() -> Value {
    recipe(json!({
        "start": { "process": { "run": "echo $$ >> starts; exec sleep 1000" } },
        "check": { "probe": { "command": { "run": "test -e starts" } } }
    }))
}

/// The processes that carry the mark of this component and have not ended.
pub(crate) fn marked(home: &Path) -> Vec<i32> {
    let mark = format!("HOLDFAST_DIRECTORY={}", home.display());
    let is_marked = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) && is_alive(*pid)
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_marked).collect()
}

pub(crate) fn is_alive(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X'])
}

pub(crate) fn kill(pid: i32, signal: rustix::process::Signal) {
    let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal);
}

/// For what no event tells of.
pub(crate) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// How the test program is run once more, in a role; the test of this name plays it.
pub(crate) fn played(role: &str, test: &str) -> Value {
    let program = std::env::current_exe().unwrap().display().to_string();
    json!(["/usr/bin/env", format!("ROLE={role}"), program, "--exact", test, "--nocapture"])
}

/// Plays a component, if this program was run for that.
pub(crate) fn play() {
    let Ok(role) = std::env::var("ROLE") else { return };
    let port: u16 = std::env::var("PORT").unwrap().parse().unwrap();
    // The port is opened only once the gate is: the test holds it shut.
    if let Ok(gate) = std::env::var("GATE") {
        let mut gate = TcpStream::connect(gate).unwrap();
        let _ = gate.read(&mut [0]);
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    for (number, stream) in listener.incoming().enumerate() {
        let mut stream = stream.unwrap();
        let answer: &[u8] = match (role.as_str(), number) {
            ("http", 0) => b"HTTP/1.1 503 Not Yet\r\n\r\n",
            ("http", 1) => b"\xff\x00garbage",
            ("http", _) => b"HTTP/1.1 204 No Content\r\n\r\n",
            _ => b"",
        };
        let _ = stream.read(&mut [0; 512]);
        let _ = stream.write_all(answer);
    }
}
