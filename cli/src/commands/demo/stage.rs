//! The stage of the demo: a directory of its own, a manager in this process, and agents as processes of their own.

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

/// How long the manager may take to say farewell.
const FAREWELL: Duration = Duration::from_secs(2);
/// Inside the directory: what the manager keeps, and below it what its agents keep.
const MANAGER: &str = "manager";
/// What a component of the shop writes before its address.
const LISTENS: &str = "listens on ";

/// Where the demo takes place.
pub(super) struct Stage {
    directory: PathBuf,
    manager: Running,
    /// Talks to the manager as any operator does.
    pub(super) client: Client,
    /// This very program: agents and components run it too.
    pub(super) program: PathBuf,
}

impl Stage {
    /// A name for the directory that nobody else uses.
    pub(super) fn directory() -> PathBuf {
        std::env::temp_dir().join(format!("holdfast-demo-{}-{}", std::process::id(), Moment::now().0))
    }

    /// Makes the directory and starts the manager in it.
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

    /// The manager's data directory; those of its agents lie below.
    pub(super) fn data(&self) -> PathBuf {
        self.directory.join(MANAGER)
    }

    /// The agent of a VM, if it runs.
    pub(super) async fn agent(&self, vm: &str) -> Result<Option<Presence>, Failure> {
        let vms: Vec<Vm> = self.client.get("/v1/vms").await?;
        let id = vms.iter().find(|it| it.name == vm).and_then(|it| it.id);
        Ok(id.and_then(|id| Presence::of(&self.data().join(LOCAL).join(format!("vm-{id}")))))
    }

    /// Where a component of the shop listens, as it says itself.
    pub(super) async fn address(&self, component: &str) -> Result<SocketAddr, Failure> {
        let log = self.client.text(&format!("/v1/components/{}/logs", segment(component))).await?;
        let said = log.lines().rev().find_map(|line| line.split_once(LISTENS)?.1.trim().parse().ok());
        said.ok_or_else(|| Failure::Demo(format!("{component} does not say where it listens")))
    }

    /// Directories of VMs that are still there.
    pub(super) fn vm_directories(&self) -> Vec<String> {
        let entries = fs::read_dir(self.data().join(LOCAL)).into_iter().flatten().flatten();
        entries.map(|entry| format!("directory {}", entry.path().display())).collect()
    }

    /// Ends the manager. Agents outlive it.
    pub(super) async fn close(self) {
        // Whoever does not take its leave in time is left alone: nothing of this is needed again.
        let _ = timeout(FAREWELL, self.manager.close()).await;
    }
}

/// Copies a directory with all that is in it, as it is at this moment; what vanishes meanwhile is left out.
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
