//! A process group: a command and all its descendants.
//!
//! Every command leads a group of its own, so that it can be stopped with its descendants. A group may outlive its
//! leader; the kernel does not reuse the leader's process id while the group exists. So if that id now means another
//! process, the group is gone. A process that leaves the group on purpose (`setsid`) cannot be reached this way.

use super::process::{self, ProcessMark, Stat};
use recipe::{Signal, template::DIRECTORY_VARIABLE};
use rustix::process::{Pid, kill_process, kill_process_group, test_kill_process_group};
use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::timeout;

/// How long the kernel may take to end a process after SIGKILL.
const AFTER_KILL: Duration = Duration::from_secs(20);

/// A process group and the component it belongs to.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Its leader.
    pub(super) leader: ProcessMark,
    /// The component's own directory, which is in the environment of all its processes.
    pub(super) home: PathBuf,
}

/// Processes that are still running after SIGKILL.
#[derive(Debug, thiserror::Error)]
#[error("processes still running after SIGKILL: {0:?}")]
pub(super) struct StillRunning(Vec<i32>);

impl Group {
    /// Stops every process of the group: by the signal, and after the grace by SIGKILL. Returns when none is left, or
    /// when even SIGKILL does not help.
    pub(super) async fn end(&self, signal: Signal, grace: Duration) -> Result<(), StillRunning> {
        if self.send(signal) && timeout(grace, self.gone()).await.is_err() && self.send(Signal::Kill) {
            let gone = timeout(AFTER_KILL, self.gone()).await;
            return gone.map_err(|_| StillRunning(self.members()));
        }
        Ok(())
    }

    /// The same, repeated until it succeeds: for callers that must be able to rely on it.
    pub(super) async fn end_for_certain(&self, signal: Signal, grace: Duration) {
        while let Err(error) = self.end(signal, grace).await {
            tracing::error!(home = %self.home.display(), %error, "cannot stop a process");
        }
    }

    /// Sends a signal to the leader only; returns whether there is one.
    pub(super) fn send_to_leader(&self, signal: Signal) -> bool {
        let leader = Pid::from_raw(self.leader.pid);
        self.leader.is_alive() && leader.is_some_and(|leader| kill_process(leader, number(signal)).is_ok())
    }

    /// Sends a signal to the whole group; returns whether there were any processes. As long as the leader exists, no
    /// other process is looked for.
    fn send(&self, signal: Signal) -> bool {
        let leader = Pid::from_raw(self.leader.pid);
        let is_there = self.leader.is_alive() || !self.members().is_empty();
        is_there && leader.is_some_and(|leader| kill_process_group(leader, number(signal)).is_ok())
    }

    /// Waits until no process of the group is left.
    async fn gone(&self) {
        // Most groups end with their leader, once its parent has reaped it. Waiting a moment for that is cheaper than
        // scanning all processes of the machine.
        if self.leader.is_alive() && self.leader.ended().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        loop {
            let members = self.members();
            if members.is_empty() {
                return;
            }
            for member in members {
                let Ok(member) = ProcessMark::of(member) else { continue };
                if member.ended().await.is_err() {
                    // No descriptor is available: poll.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// The processes of the group that have not ended.
    pub(super) fn members(&self) -> Vec<i32> {
        let Some(leader) = Pid::from_raw(self.leader.pid) else { return Vec::new() };
        if !self.leader.is_of_this_boot() || test_kill_process_group(leader) == Err(rustix::io::Errno::SRCH) {
            return Vec::new();
        }
        let leads = Stat::of(self.leader.pid).map(|stat| stat.start_time == self.leader.start_time);
        if leads == Some(false) {
            return Vec::new();
        }
        let member = |pid: i32| Stat::of(pid).filter(|stat| stat.group == self.leader.pid).map(|stat| (pid, stat));
        let members: Vec<_> = process::all().into_iter().filter_map(member).collect();
        if leads.is_none() && !members.iter().all(|(pid, stat)| self.may_own(*pid, stat)) {
            return Vec::new();
        }
        members.into_iter().filter(|(_, stat)| !stat.is_over()).map(|(pid, _)| pid).collect()
    }

    /// Whether a process of a group without a leader can be one of ours: the id may have been reused.
    fn may_own(&self, pid: i32, stat: &Stat) -> bool {
        stat.session == self.leader.session
            && stat.start_time >= self.leader.start_time
            && told_home(pid).is_none_or(|told| lies_in(&told, &self.home))
    }
}

/// The groups of all processes that carry a mark inside this directory, which belongs to one component or to many, with
/// the task that started them.
pub(super) fn marked(directory: &Path) -> Vec<(Group, Option<u64>)> {
    let mut found: Vec<(Group, Option<u64>)> = Vec::new();
    for pid in process::all() {
        let Some(home) = told_home(pid).filter(|told| lies_in(told, directory)) else { continue };
        let task = process::variable(pid, "HOLDFAST_TASK").and_then(|task| String::from_utf8(task).ok()?.parse().ok());
        let Some(leader) = Stat::of(pid).map(|stat| stat.group) else { continue };
        // If the leader has ended, any process of the group stands in for it: it has the same session and the same
        // mark.
        if let Ok(mark) = ProcessMark::of(leader).or_else(|_| ProcessMark::of(pid))
            && found.iter().all(|(group, _)| group.leader.pid != leader)
        {
            found.push((Group { leader: ProcessMark { pid: leader, ..mark }, home }, task));
        }
    }
    found
}

/// The component directory that a process carries as its mark, if there is one and it can be read.
fn told_home(pid: i32) -> Option<PathBuf> {
    process::variable(pid, DIRECTORY_VARIABLE).map(|told| OsStr::from_bytes(&told).into())
}

/// Whether a process carries the mark of this component directory.
pub(super) fn told_home_in(pid: i32, home: &Path) -> bool {
    told_home(pid).is_some_and(|told| lies_in(&told, home))
}

/// Whether one path is the other or lies inside it. Programs that were started in different places may spell one
/// directory differently.
fn lies_in(path: &Path, directory: &Path) -> bool {
    let lies_truly_in = |path: PathBuf| fs::canonicalize(directory).is_ok_and(|directory| path.starts_with(directory));
    path.starts_with(directory) || fs::canonicalize(path).is_ok_and(lies_truly_in)
}

fn number(signal: Signal) -> rustix::process::Signal {
    match signal {
        Signal::Hup => rustix::process::Signal::HUP,
        Signal::Int => rustix::process::Signal::INT,
        Signal::Quit => rustix::process::Signal::QUIT,
        Signal::Term => rustix::process::Signal::TERM,
        Signal::Usr1 => rustix::process::Signal::USR1,
        Signal::Usr2 => rustix::process::Signal::USR2,
        Signal::Kill => rustix::process::Signal::KILL,
    }
}
