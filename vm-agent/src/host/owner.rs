//! What belongs to a component, and whether it is the component that answers at an address.
//!
//! A component's own processes are the process that was started and its descendants, all processes that carry the
//! component's mark in their environment, and what its recipe identifies. That is needed where another program starts
//! the component's processes: an engine, an init system. A daemon of a start script may have overwritten its
//! environment and lost its parent: it counts as the component's own if it is younger than the script.

use super::{
    command::Step,
    component::Component,
    failure::Failure,
    group::told_home_in,
    listener::{self, Descriptor, ListeningSocket},
    process::{ProcessMark, Stat},
    record::Run,
    spawn::Invocation,
};
use recipe::template::View;
use std::{
    fs,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Maximum number of ancestors of a process that are looked at.
const ANCESTORS_MAX: usize = 100;

/// What belongs to a run of a component.
#[derive(Debug)]
pub(super) struct Owner {
    home: PathBuf,
    /// What was started: the component itself, or a start script.
    process: Option<ProcessMark>,
    is_script: bool,
    /// Prints what else belongs to it, and how long that may take.
    identify: Option<(Invocation, Duration)>,
    /// How its socket was attributed last; a check that is repeated need not search again.
    attributed: Mutex<Option<Attributed>>,
}

/// Why a socket counts as the component's own.
#[derive(Clone, Debug)]
enum Attributed {
    /// One of its processes holds it.
    ByProcess(Descriptor),
    /// The component was identified by its address, while these sockets listened there.
    ByAddress(Vec<ListeningSocket>),
}

/// What an `identify` command prints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Identified {
    processes: Vec<i32>,
    cgroups: Vec<String>,
    addresses: Vec<SocketAddr>,
}

impl Owner {
    pub(super) fn of(run: &Run, component: &Component, view: &View<'_>) -> Result<Self, Failure> {
        let identify = match &run.recipe.operations.identify {
            Some(command) => {
                let invocation = component.invocation(Step::Identify, &command.run, view)?;
                Some((invocation, Duration::from_millis(command.time_limit_ms)))
            }
            None => None,
        };
        Ok(Self {
            home: component.directory.home(),
            process: run.process.clone(),
            is_script: !run.is_process(),
            identify,
            attributed: Mutex::default(),
        })
    }

    /// Whether the component's process is running, if it has one that keeps running.
    pub(super) fn is_alive(&self) -> bool {
        self.is_script || self.process.as_ref().is_none_or(ProcessMark::is_alive)
    }

    /// Fails with the reason unless the component itself listens at this address of this machine. An address of another
    /// machine cannot be attributed, and neither can a socket of processes that the agent is not permitted to examine.
    /// A component that starts nothing stands for something else.
    pub(super) async fn answers_at(self: &Arc<Self>, target: SocketAddr, component: &Component) -> Result<(), Failure> {
        let starts_nothing = self.process.is_none() && self.identify.is_none();
        if starts_nothing || self.is_still_attributed(target) || !listener::is_local(target.ip()) {
            return Ok(());
        }
        if let Some(process) = &self.process
            && let Some(descriptor) = listener::descriptors(process.pid, &listener::listening_at(target)).ok().flatten()
        {
            self.remember(Attributed::ByProcess(descriptor));
            return Ok(());
        }
        let identified = match &self.identify {
            Some((invocation, limit)) => {
                let text = component.run_identify(invocation, *limit).await.map_err(|it| it.during(Step::Identify))?;
                Identified::parse(&text)?
            }
            None => Identified::default(),
        };
        let owner = self.clone();
        // There may be thousands of processes: other components must not wait for this.
        let searched = tokio::task::spawn_blocking(move || owner.search(target, &identified)).await;
        searched.map_err(|error| Failure::new(format!("the search for the listening process failed: {error}")))?
    }

    /// Looks through all processes of the machine.
    fn search(&self, target: SocketAddr, identified: &Identified) -> Result<(), Failure> {
        let sockets = listener::listening_at(target);
        if identified.addresses.iter().any(|address| is_reached_by(*address, target)) {
            self.remember(Attributed::ByAddress(sockets));
            return Ok(());
        }
        let Some(first) = sockets.first() else {
            return Err(Failure::new(format!(
                "{target} answers, but no process on this machine listens there (set `listener: any` if this is intended)"
            )));
        };
        let holders = listener::holders(&sockets);
        if let Some(own) = holders.iter().find(|holder| self.owns(holder.pid, identified)) {
            self.remember(Attributed::ByProcess(own.clone()));
            return Ok(());
        }
        let port = target.port();
        match holders.first() {
            Some(stranger) => {
                let pid = stranger.pid;
                let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                let name = name.trim();
                Err(Failure::new(format!("port {port} is held by process {pid} ({name}), not by this component")))
            }
            // The agent may not be permitted to examine the component's own processes.
            None if self.process.iter().any(|it| listener::descriptors(it.pid, &sockets).is_err()) => Ok(()),
            None => {
                let user = first.user;
                Err(Failure::new(format!("port {port} is held by a process of user {user}, not by this component")))
            }
        }
    }

    /// Whether a process belongs to the component.
    fn owns(&self, pid: i32, identified: &Identified) -> bool {
        let Some(stat) = Stat::of(pid) else { return false };
        let is_of_group = |leader: &ProcessMark| stat.group == leader.pid && stat.start_time >= leader.start_time;
        let is_younger = |script: &ProcessMark| self.is_script && stat.start_time >= script.start_time;
        let leader = self.process.as_ref().filter(|process| process.is_of_this_boot());
        leader.is_some_and(|leader| is_of_group(leader) || is_younger(leader))
            || told_home_in(pid, &self.home)
            || identified.cgroups.iter().any(|cgroup| is_in_cgroup(pid, cgroup))
            || self.descends(pid, stat, identified)
    }

    fn descends(&self, pid: i32, stat: Stat, identified: &Identified) -> bool {
        let leader = self.process.as_ref().filter(|process| process.is_alive()).map(|process| process.pid);
        let (mut pid, mut stat) = (pid, stat);
        for _ in 0..ANCESTORS_MAX {
            if leader == Some(pid) || identified.processes.contains(&pid) {
                return true;
            }
            pid = stat.parent;
            match Stat::of(pid).filter(|_| pid > 1) {
                Some(parent) => stat = parent,
                None => return false,
            }
        }
        false
    }

    fn is_still_attributed(&self, target: SocketAddr) -> bool {
        let attributed = self.attributed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match attributed {
            Some(Attributed::ByProcess(descriptor)) => descriptor.is_valid(),
            Some(Attributed::ByAddress(sockets)) => listener::listening_at(target) == sockets,
            None => false,
        }
    }

    fn remember(&self, attributed: Attributed) {
        *self.attributed.lock().unwrap_or_else(PoisonError::into_inner) = Some(attributed);
    }
}

impl Identified {
    /// Each line is a word and what it names; empty lines are left out.
    fn parse(text: &str) -> Result<Self, Failure> {
        let mut identified = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let wrong = || {
                Failure::new(format!(
                    "identify: {line:?} is neither `process PID`, `cgroup PATH` nor `address HOST:PORT`"
                ))
            };
            let (word, rest) = line.split_once(' ').ok_or_else(wrong)?;
            let rest = rest.trim();
            match word {
                "process" => match rest.parse().map_err(|_| wrong())? {
                    // Stands for no process.
                    0 => {}
                    pid => identified.processes.push(pid),
                },
                "cgroup" => identified.cgroups.push(rest.trim_end_matches('/').into()),
                "address" => identified.addresses.push(rest.parse().map_err(|_| wrong())?),
                _ => return Err(wrong()),
            }
        }
        Ok(identified)
    }
}

/// Whether a connection to the target reaches what listens at the address.
fn is_reached_by(address: SocketAddr, target: SocketAddr) -> bool {
    let (own, asked) = (address.ip().to_canonical(), target.ip().to_canonical());
    address.port() == target.port() && (own == asked || own.is_unspecified())
}

/// Whether a process is in a cgroup or below it.
fn is_in_cgroup(pid: i32, cgroup: &str) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    // The path of the root would contain every process.
    !cgroup.is_empty()
        && text.lines().any(|line| {
            let path = line.splitn(3, ':').nth(2).unwrap_or_default();
            path.strip_prefix(cgroup).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_identify_prints_is_read_line_by_line() {
        let read =
            Identified::parse("process 12\nprocess 0\n\n cgroup /system.slice/a.service/\naddress 127.0.0.1:80\n");
        let expected = Identified {
            processes: vec![12],
            cgroups: vec!["/system.slice/a.service".into()],
            addresses: vec!["127.0.0.1:80".parse().unwrap()],
        };
        assert_eq!(read.unwrap(), expected);
        for wrong in ["12", "process x", "address localhost:80", "unit nginx"] {
            assert!(Identified::parse(wrong).unwrap_err().0.contains("neither"), "{wrong}");
        }
    }

    #[test]
    fn an_address_reaches_what_listens_there_or_everywhere() {
        let reached = |own: &str, asked: &str| is_reached_by(own.parse().unwrap(), asked.parse().unwrap());
        assert!(reached("127.0.0.1:80", "127.0.0.1:80") && reached("0.0.0.0:80", "127.0.0.1:80"));
        assert!(!reached("127.0.0.1:81", "127.0.0.1:80") && !reached("127.0.0.2:80", "127.0.0.1:80"));
    }
}
