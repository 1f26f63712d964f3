//! The cloud on this machine: a VM is an agent process with a data directory of its own.
//!
//! An agent that ends is restarted, as an init system would do; agents outlive the manager and are re-adopted. Destroying
//! such a VM ends its agent and every process of its components, and removes its directory.

use crate::executor::ExecutorMessage;
use protocol::VmId;
use protocol::manager::CloudOutcome;
use ractor::ActorRef;
use runtime::Error;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use vm_agent::{Presence, host, program};

/// The address of agents and their components.
const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// How long an agent may take to stop by itself.
const GRACE: Duration = Duration::from_secs(5);
/// The pause before an agent is restarted; it doubles, up to the second one.
const RESTART_PAUSE_FIRST: Duration = Duration::from_millis(100);
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(10);
/// An agent that ran for this long did not fail at its start.
const STEADY: Duration = Duration::from_secs(30);

/// The cloud on this machine.
pub(crate) struct LocalCloud {
    directory: PathBuf,
    executable: PathBuf,
    /// The manager's address for agents, once it is known.
    manager: Option<SocketAddr>,
    /// The supervised agents; sending ends the supervision of one.
    agents: BTreeMap<VmId, oneshot::Sender<()>>,
}

impl LocalCloud {
    /// VMs live in `directory`; their agents are `executable agent run …`.
    pub(crate) fn new(directory: PathBuf, executable: PathBuf) -> Self {
        Self { directory, executable, manager: None, agents: BTreeMap::new() }
    }

    /// Sets the manager's address for agents that are started from now on.
    pub(crate) fn manager_is_at(&mut self, address: SocketAddr) {
        self.manager = Some(address);
    }

    /// The directory in which the agent of a VM finds its certificate.
    pub(crate) fn identity_directory(&self, vm: VmId) -> Result<PathBuf, Error> {
        let path = self.place(vm).join(program::IDENTITY);
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        created.map_err(|source| Error::File { attempted: "create", path: path.clone(), source })?;
        Ok(path)
    }

    /// Keeps the agent of a VM running from now on.
    pub(crate) fn resume(&mut self, vm: VmId, executor: &ActorRef<ExecutorMessage>) {
        let Some(manager) = self.manager.filter(|_| !self.agents.contains_key(&vm)) else { return };
        let (let_go, is_over) = oneshot::channel();
        self.agents.insert(vm, let_go);
        let (place, executable, executor) = (self.place(vm), self.executable.clone(), executor.clone());
        tokio::spawn(async move {
            if supervise(&place, &executable, manager, is_over).await {
                destroy(&place).await;
                // If the executor has stopped, the task is given again at the next start.
                let _ = executor.cast(ExecutorMessage::FromCloud(CloudOutcome::Destroyed(vm)));
            }
        });
    }

    /// Destroys a VM, and tells the executor.
    pub(crate) fn destroy(&mut self, vm: VmId, executor: &ActorRef<ExecutorMessage>) {
        match self.agents.remove(&vm) {
            // A supervisor that is gone has no agent to end.
            Some(let_go) => drop(let_go.send(())),
            None => {
                let (place, executor) = (self.place(vm), executor.clone());
                tokio::spawn(async move {
                    destroy(&place).await;
                    let _ = executor.cast(ExecutorMessage::FromCloud(CloudOutcome::Destroyed(vm)));
                });
            }
        }
    }

    /// Destroys a VM that was declared lost, if it is one of this cloud and anything of it is left.
    pub(crate) fn discard(&mut self, vm: VmId, executor: &ActorRef<ExecutorMessage>) {
        if self.agents.contains_key(&vm) || self.place(vm).exists() {
            self.destroy(vm, executor);
        }
    }

    fn place(&self, vm: VmId) -> PathBuf {
        self.directory.join(format!("vm-{}", vm.0))
    }
}

/// Keeps an agent running until supervision ends; returns whether it was ended on purpose, rather than by the program's
/// end.
async fn supervise(place: &Path, executable: &Path, manager: SocketAddr, mut is_over: oneshot::Receiver<()>) -> bool {
    let mut pause = RESTART_PAUSE_FIRST;
    loop {
        let began = tokio::time::Instant::now();
        match Agent::find_or_start(place, executable, manager) {
            Ok(mut agent) => tokio::select! {
                over = &mut is_over => {
                    if over.is_ok() {
                        agent.end(place).await;
                    }
                    return over.is_ok();
                }
                () = agent.ended() => tracing::warn!(place = %place.display(), "an agent ended; restarting it"),
            },
            Err(error) => tracing::error!(place = %place.display(), %error, "an agent cannot be started"),
        }
        if began.elapsed() > STEADY {
            pause = RESTART_PAUSE_FIRST;
        }
        tokio::select! {
            over = &mut is_over => return over.is_ok(),
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(RESTART_PAUSE_MAX),
        }
    }
}

/// A running agent.
enum Agent {
    /// It was already running.
    Found(Presence),
    /// We have started it. It is a process group of its own, and outlives us.
    Started(Child),
}

impl Agent {
    fn find_or_start(place: &Path, executable: &Path, manager: SocketAddr) -> io::Result<Self> {
        if let Some(presence) = Presence::of(place) {
            return Ok(Self::Found(presence));
        }
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(place.join("agent.log"))?;
        let agent = Command::new(executable)
            .args(["agent", "run", "--listen"])
            .arg(SocketAddr::from((HERE, 0)).to_string())
            .arg("--manager")
            .arg(manager.to_string())
            .arg("--data")
            .arg(place)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()?;
        Ok(Self::Started(agent))
    }

    /// Waits until it has ended.
    async fn ended(&mut self) {
        let ended = match self {
            Self::Found(presence) => presence.ended().await,
            Self::Started(agent) => agent.wait().await.map(drop),
        };
        if let Err(error) = ended {
            tracing::error!(%error, "an agent cannot be watched");
        }
    }

    /// Stops it: gracefully if it has recorded its process id.
    async fn end(&mut self, place: &Path) {
        if let Some(presence) = Presence::of(place) {
            presence.end(GRACE).await;
        }
        if let Self::Started(agent) = self {
            // It may have ended, which is fine.
            let _ = agent.kill().await;
        }
    }
}

/// Stops the agent and all processes of its components, and removes the directory. The list of processes is only there,
/// so it stays while something may be running.
async fn destroy(place: &Path) {
    if let Some(presence) = Presence::of(place) {
        presence.end(GRACE).await;
    }
    let components = host::Settings::new(place.join(program::COMPONENTS), HERE.into());
    if let Err(error) = host::raze(components).await {
        tracing::error!(place = %place.display(), %error, "components cannot be found, and may be left running");
        return;
    }
    if let Err(error) = tokio::fs::remove_dir_all(place).await
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(place = %place.display(), %error, "cannot be removed");
    }
}
