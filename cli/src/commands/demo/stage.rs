//! The environment of the demo: a directory of its own, a manager in this process, and agents as separate processes.

use crate::failure::Failure;
use cloud_manager::{
    client::{Client, segment},
    document::Vm,
    program::{self, LOCAL, Running, Settings},
};
use runtime::engine::Moment;
use runtime::identity::CERTIFICATE_LIFETIME_S;
use std::{
    fs::{self, DirBuilder},
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::timeout;
use vm_agent::Presence;

/// Time limit for the manager to disconnect.
const FAREWELL: Duration = Duration::from_secs(2);
/// The manager's data directory inside the demo's; its agents' are below it.
const MANAGER: &str = "manager";
/// What a component of the shop prints before its address.
const LISTENS: &str = "listens on ";

/// The environment of the demo.
pub(super) struct Stage {
    directory: PathBuf,
    manager: Running,
    /// A client of the manager.
    pub(super) client: Client,
    /// This executable: agents and components run it, too.
    pub(super) program: PathBuf,
}

impl Stage {
    /// A unique name for the directory.
    pub(super) fn directory() -> PathBuf {
        std::env::temp_dir().join(format!("holdfast-demo-{}-{}", std::process::id(), Moment::now().0))
    }

    /// Creates the directory and starts the manager in it.
    pub(super) async fn open(directory: &Path) -> Result<Self, Failure> {
        let made = DirBuilder::new().mode(0o700).create(directory);
        made.map_err(|error| Failure::Write(directory.to_owned(), error))?;
        let program =
            std::env::current_exe().map_err(|error| Failure::System("this program cannot be found", error))?;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let settings = Settings {
            data: directory.join(MANAGER),
            listen: any,
            api: any,
            program: program.clone(),
            certificate_lifetime_s: CERTIFICATE_LIFETIME_S,
            suspicion_ms_max: None,
        };
        let manager = program::start(settings).await?;
        let client = Client::new(&manager.access)?;
        Ok(Self { directory: directory.to_owned(), manager, client, program })
    }

    /// The manager's data directory; those of its agents are below.
    pub(super) fn data(&self) -> PathBuf {
        self.directory.join(MANAGER)
    }

    /// The agent of a VM, if it is running.
    pub(super) async fn agent(&self, vm: &str) -> Result<Option<Presence>, Failure> {
        let vms: Vec<Vm> = self.client.get("/v1/vms").await?;
        let id = vms.iter().find(|it| it.name == vm).and_then(|it| it.id);
        Ok(id.and_then(|id| Presence::of(&self.data().join(LOCAL).join(format!("vm-{id}")))))
    }

    /// The address of a component of the shop, as it reports it.
    pub(super) async fn address(&self, component: &str) -> Result<SocketAddr, Failure> {
        let log = self.client.text(&format!("/v1/components/{}/logs", segment(component))).await?;
        let said = log.lines().rev().find_map(|line| line.split_once(LISTENS)?.1.trim().parse().ok());
        said.ok_or_else(|| Failure::Demo(format!("{component} does not report its address")))
    }

    /// Directories of VMs that still exist.
    pub(super) fn vm_directories(&self) -> Vec<String> {
        let entries = fs::read_dir(self.data().join(LOCAL)).into_iter().flatten().flatten();
        entries.map(|entry| format!("directory {}", entry.path().display())).collect()
    }

    /// Stops the manager. Agents outlive it.
    pub(super) async fn close(self) {
        // Peers that do not disconnect in time are dropped: nothing of this is needed again.
        let _ = timeout(FAREWELL, self.manager.close()).await;
    }
}

/// Copies a directory with everything in it, as it is now; files that vanish meanwhile are left out.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(to);
    made.map_err(|error| Failure::Write(to.to_owned(), error))?;
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let (source, goal) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &goal)?;
        } else if source.is_file()
            && let Err(error) = fs::copy(&source, &goal)
            && source.exists()
        {
            return Err(Failure::Write(goal, error));
        }
    }
    Ok(())
}
