//! Whether an agent runs on a data directory, and which process it is: for whoever looks after agents on one machine.

use crate::host::process::ProcessMark;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// Inside the data directory: which process the agent is.
const MARK: &str = "agent.json";

/// How long the kernel may take to end what was sent SIGKILL.
const AFTER_KILL: Duration = Duration::from_secs(20);

/// An agent that runs.
#[derive(Clone, Debug)]
pub struct Presence(ProcessMark);

impl Presence {
    /// The agent that runs on this data directory, if one does.
    pub fn of(data: &Path) -> Option<Self> {
        ProcessMark::load(&data.join(MARK)).filter(ProcessMark::is_alive).map(Self)
    }

    /// The number of its process.
    pub fn pid(&self) -> i32 {
        self.0.pid
    }

    /// Lets others know that this process is the agent.
    pub(crate) fn announce(data: &Path) -> io::Result<()> {
        let own = i32::try_from(std::process::id()).map_err(io::Error::other)?;
        ProcessMark::of(own)?.save(&data.join(MARK)).map_err(|failure| io::Error::other(failure.to_string()))
    }

    /// Waits until it has ended.
    pub async fn ended(&self) -> io::Result<()> {
        self.0.ended().await
    }

    /// Asks it to end, and sees to it after the grace.
    pub async fn end(&self, grace: Duration) {
        for (signal, patience) in [(Signal::TERM, grace), (Signal::KILL, AFTER_KILL)] {
            if !self.0.is_alive() {
                return;
            }
            if let Some(pid) = Pid::from_raw(self.0.pid) {
                // It may have ended since it was looked at, which is what is wanted.
                let _ = kill_process(pid, signal);
            }
            let _ = timeout(patience, self.0.ended()).await;
        }
    }
}
