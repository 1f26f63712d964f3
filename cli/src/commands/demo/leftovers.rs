//! Finds and removes what a run may leave behind: processes, open ports, files.
//!
//! Every agent gets its data directory and every process of a component its own directory, and all of them are below the
//! one directory of this run. So everything that belongs to the run can be recognised.

use crate::plain_http;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    ffi::OsStr,
    fs,
    net::SocketAddr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// The environment variable that names the directory of a component's process.
const MARK: &[u8] = b"HOLDFAST_DIRECTORY=";
/// How long the kernel may take to end a process after SIGKILL.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause before checking again.
const PAUSE: Duration = Duration::from_millis(10);

/// The processes that belong to a directory, each with its command line.
pub(super) fn processes(directory: &Path) -> Vec<(i32, String)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid| Some((pid, belonging(pid, directory)?))).collect()
}

/// The command line of a process, if it belongs to the directory.
fn belonging(pid: i32, directory: &Path) -> Option<String> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let command_line = fs::read(process.join("cmdline")).ok()?;
    let is_below = |path: &[u8]| Path::new(OsStr::from_bytes(path)).starts_with(directory);
    let words: Vec<&[u8]> = command_line.split(|byte| *byte == 0).collect();
    let is_agent = words.get(1..3) == Some(&[b"agent", b"run"]) && words.iter().any(|word| is_below(word));
    let is_component = || {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|it| it.strip_prefix(MARK).is_some_and(is_below))
    };
    (is_agent || is_component()).then(|| String::from_utf8_lossy(&words.join(&b' ')).trim_end().to_owned())
}

/// Kills a process.
pub(super) fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may have ended already, which is fine.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Ends all processes of a directory, and removes it. Nothing may be starting new ones.
pub(super) async fn sweep(directory: &Path) {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let left = processes(directory);
        for (pid, _) in &left {
            kill(*pid);
        }
        if left.is_empty() && !directory.exists() {
            return;
        }
        if left.is_empty() {
            // What cannot be removed now is retried, and reported at the end.
            let _ = fs::remove_dir_all(directory);
        }
        sleep(PAUSE).await;
    }
}

/// The components that still answer, as text.
pub(super) async fn answering(addresses: &[(String, SocketAddr)]) -> Vec<String> {
    let mut answering = Vec::new();
    for (component, address) in addresses {
        // Another program may have the port by now; a component returns its name.
        if plain_http::get(*address, "/").await.is_ok_and(|text| text.starts_with(component)) {
            answering.push(format!("{component} answers at {address}"));
        }
    }
    answering
}

/// The processes that belong to a directory, and the directory itself if it exists, as text.
pub(super) fn left(directory: &Path) -> Vec<String> {
    let processes = processes(directory);
    let mut left: Vec<String> = processes.iter().map(|(pid, line)| format!("process {pid}: {line}")).collect();
    if directory.exists() {
        left.push(format!("directory {}", directory.display()));
    }
    left
}
