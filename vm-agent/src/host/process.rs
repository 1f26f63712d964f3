//! The identity of a process, beyond its process id, which the kernel reuses.
//!
//! A process is identified by three things: its id, its start time (the kernel counts it from boot, `/proc/PID/stat`
//! field 22), and the boot. A process that matches all three is the one that was meant, even after the agent itself was
//! replaced.

use super::descriptor::readable;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use std::{fs, io, path::Path, sync::OnceLock};

/// A process that cannot be mistaken for another one; it leads a process group of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessMark {
    /// Its process id.
    pub(crate) pid: i32,
    /// Its start time, in the kernel's ticks since boot.
    pub(crate) start_time: u64,
    /// The session in which it was started; all processes of its group share it.
    pub(crate) session: i32,
    /// The boot it belongs to.
    pub(crate) boot: String,
}

impl ProcessMark {
    /// The process with this id as it is now.
    pub(crate) fn of(pid: i32) -> io::Result<Self> {
        let stat = Stat::of(pid).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Self { pid, start_time: stat.start_time, session: stat.session, boot: boot().into() })
    }

    /// Whether exactly that process is running now.
    pub(crate) fn is_alive(&self) -> bool {
        self.is_of_this_boot()
            && Stat::of(self.pid).is_some_and(|stat| stat.start_time == self.start_time && !stat.is_over())
    }

    pub(crate) fn is_of_this_boot(&self) -> bool {
        self.boot == boot()
    }

    /// Waits until exactly that process has ended; returns at once if it has already.
    pub(crate) async fn ended(&self) -> io::Result<()> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(()) };
        let descriptor = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(descriptor) => descriptor,
            Err(rustix::io::Errno::SRCH) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // Checked only after the descriptor is open: from now on the id cannot mean another process.
        if !self.is_alive() {
            return Ok(());
        }
        readable(descriptor)?.readable().await.map(drop)
    }
}

/// The contents of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    state: u8,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    threads: u64,
    pub(crate) start_time: u64,
}

impl Stat {
    /// Of the process with this id, if there is one.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name, in parentheses, may contain anything, even parentheses and newlines: fields are counted from the last
    /// one.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let after_name = bytes.iter().rposition(|byte| *byte == b')')? + 1;
        let fields: Vec<&str> = std::str::from_utf8(&bytes[after_name..]).ok()?.split_whitespace().collect();
        // The state is field 3 in the manual page.
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Self {
            state: *field(3)?.as_bytes().first()?,
            parent: field(4)?.parse().ok()?,
            group: field(5)?.parse().ok()?,
            session: field(6)?.parse().ok()?,
            threads: field(20)?.parse().ok()?,
            start_time: field(22)?.parse().ok()?,
        })
    }

    /// It has ended, though its parent may not have reaped it yet. The state is that of the first thread: while other
    /// threads are running or exiting, the process still has its files, locks and ports.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }
}

/// The ids of all processes.
pub(crate) fn all() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The value of an environment variable with which a process was started, if it can be read.
pub(crate) fn variable(pid: i32, name: &str) -> Option<Vec<u8>> {
    let environment = fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec))
}

/// The kernel's id of the present boot; empty if there is none, and then boots are not distinguished.
fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|boot| boot.trim().to_owned()).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_parentheses_does_not_move_the_fields() {
        let line = b"77 (a) S 1 (\n) R 1 77 70 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 2 3";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(stat, Stat { state: b'R', parent: 1, group: 77, session: 70, threads: 1, start_time: 123_456 });
        assert!(!stat.is_over());
        for garbage in [&b""[..], b"77", b"77 (a", b"77 (a) ", b"77 (a) R x", b"77 (\xff) \xff"] {
            assert_eq!(Stat::parse(garbage), None);
        }
    }

    #[test]
    fn another_start_time_or_boot_is_another_process() {
        let me = ProcessMark::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(me.is_alive());
        assert!(!ProcessMark { start_time: me.start_time + 1, ..me.clone() }.is_alive());
        assert!(!ProcessMark { boot: "another".into(), ..me }.is_alive());
    }

    #[tokio::test]
    async fn a_process_is_there_as_long_as_one_of_its_threads_is() {
        let script = "import ctypes, threading, time\n\
                      threading.Thread(target=time.sleep, args=(60,)).start()\n\
                      ctypes.CDLL(None).pthread_exit(None)";
        let mut process = std::process::Command::new("python3").args(["-c", script]).spawn().unwrap();
        let mark = ProcessMark::of(i32::try_from(process.id()).unwrap()).unwrap();
        while Stat::of(mark.pid).unwrap().state != b'Z' {
            tokio::task::yield_now().await;
        }
        assert!(mark.is_alive());
        process.kill().unwrap();
        mark.ended().await.unwrap();
        assert!(!mark.is_alive());
        process.wait().unwrap();
    }
}
