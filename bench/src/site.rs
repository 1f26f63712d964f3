//! One real manager with its agents on this machine, for as long as a measurement lasts.

use cloud_manager::access::Access;
use cloud_manager::client::{Client, ClientError, StreamItem};
use cloud_manager::document::EventKind;
use cloud_manager::document::{Accepted, EventDocument, NewChange};
use serde_json::{Value, json};
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use vm_agent::{Presence, host};

/// Any error ends a measurement.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Time limit for a change.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long an agent may take to stop by itself.
const GRACE: Duration = Duration::from_secs(5);

/// Submits a change and waits until it is done; returns all events meanwhile.
pub async fn ask(client: &Client, change: &NewChange) -> Outcome<Vec<EventDocument>> {
    let accepted: Accepted = match client.post("/v1/changes", change).await {
        Err(ClientError::Refused(_, problems)) => return Err(format!("refused: {problems:?}").into()),
        answer => answer?,
    };
    let mut told = Vec::new();
    let waiting = async {
        let mut events = client.events(accepted.events_after).await?;
        while let Some(item) = events.next().await? {
            let StreamItem::Event(event) = item else { continue };
            let is_last = event.what == EventKind::ChangeDone && event.change == Some(accepted.change);
            told.push(*event);
            if is_last {
                return Outcome::Ok(());
            }
        }
        Err("the manager ended the stream".into())
    };
    tokio::time::timeout(PATIENCE, waiting).await.map_err(|_| "the change was not done within the time limit")??;
    Ok(told)
}

/// A manager and its agents, all of which end with this value.
pub struct Site {
    place: PathBuf,
    manager: Child,
    /// To talk to the manager.
    pub client: Client,
    agents: u64,
}

impl Site {
    /// A manager without VMs, in a new directory below this one. The program `holdfast` must be in the same directory as ours.
    pub fn open(parent: &Path) -> Outcome<Self> {
        let place = parent.join(format!("holdfast-real-{}", std::process::id()));
        std::fs::create_dir_all(&place)?;
        let mut command = Command::new(std::env::current_exe()?.with_file_name("holdfast"));
        command.args(["manager", "run", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "--data"]);
        let log = std::fs::File::create(place.join("manager.log"))?;
        let mut manager = command.arg(place.join("manager")).stdout(Stdio::piped()).stderr(log).spawn()?;
        let mut lines = BufReader::new(manager.stdout.take().ok_or("no output")?).lines();
        // It is ready when it has printed its address.
        for _ in 0..3 {
            lines.next().ok_or("the manager did not start (cargo build --release --package cli first)")??;
        }
        let client = Client::new(&Access::read(&place.join("manager/access.json"))?)?;
        Ok(Self { place, manager, client, agents: 0 })
    }

    /// Adds VMs on this machine, named `vm0`, `vm1` and so on, and their agents.
    pub async fn add_agents(&mut self, count: u64) -> Outcome<()> {
        let vms = self.agents..self.agents + count;
        let edits = vms.map(|number| json!({ "add-vm": { "name": format!("vm{number}"), "cloud": "local" } }));
        let edits = edits.collect::<Vec<_>>();
        self.agents += count;
        self.make(edits).await.map(drop)
    }

    /// Submits these edits; returns the time from the request to the end of the change, and the events.
    pub async fn make(&self, edits: Vec<Value>) -> Outcome<(Duration, Vec<EventDocument>)> {
        let change: NewChange = serde_json::from_value(json!({ "strategy": "down-then-up", "edits": edits }))?;
        let began = Instant::now();
        let told = ask(&self.client, &change).await?;
        Ok((began.elapsed(), told))
    }

    /// The manager's process.
    pub fn manager(&self) -> u32 {
        self.manager.id()
    }

    /// The data directories of the agents.
    pub fn agents(&self) -> impl Iterator<Item = PathBuf> {
        let local = self.place.join("manager/local");
        std::fs::read_dir(local).into_iter().flatten().flatten().map(|entry| entry.path())
    }

    /// Removes everything.
    pub async fn close(mut self) -> Outcome<()> {
        let edits = (0..self.agents).map(|number| json!({ "remove-vm": format!("vm{number}") })).collect();
        let removed = self.make(edits).await;
        // What the manager could not remove is ended all the same. The manager goes first: it would restart agents.
        self.manager.kill()?;
        self.manager.wait()?;
        for agent in self.agents() {
            if let Some(presence) = Presence::of(&agent) {
                presence.end(GRACE).await;
            }
            let components = agent.join(vm_agent::program::COMPONENTS);
            host::raze(host::Settings::new(components, Ipv4Addr::LOCALHOST.into())).await?;
        }
        std::fs::remove_dir_all(&self.place)?;
        removed.map(drop)
    }
}
