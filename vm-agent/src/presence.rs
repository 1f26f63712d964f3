//! Whether an agent is running on a data directory, and as which process: for programs that manage agents on one
//! machine.

use crate::host::process::ProcessMark;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// Inside the data directory: the process id of the agent.
const MARK: &str = "agent.json";

/// How long the kernel may take to end a process after SIGKILL.
const AFTER_KILL: Duration = Duration::from_secs(20);

/// A running agent.
#[derive(Clone, Debug)]
pub struct Presence(ProcessMark);

impl Presence {
    /// The agent that is running on this data directory, if any.
    pub fn of(data: &Path) -> Option<Self> {
        ProcessMark::load(&data.join(MARK)).filter(ProcessMark::is_alive).map(Self)
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.0.pid
    }

    /// Records that this process is the agent.
    pub(crate) fn announce(data: &Path) -> io::Result<()> {
        let own = i32::try_from(std::process::id()).map_err(io::Error::other)?;
        ProcessMark::of(own)?.save(&data.join(MARK)).map_err(|failure| io::Error::other(failure.to_string()))
    }

    /// Waits until it has ended.
    pub async fn ended(&self) -> io::Result<()> {
        self.0.ended().await
    }

    /// Asks it to end, and kills it after the grace.
    pub async fn end(&self, grace: Duration) {
        for (signal, patience) in [(Signal::TERM, grace), (Signal::KILL, AFTER_KILL)] {
            if !self.0.is_alive() {
                return;
            }
            if let Some(pid) = Pid::from_raw(self.0.pid) {
                // It may have ended in the meantime, which is the goal.
                let _ = kill_process(pid, signal);
            }
            let _ = timeout(patience, self.0.ended()).await;
        }
    }
}
