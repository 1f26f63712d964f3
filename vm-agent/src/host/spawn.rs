//! Starting a process so that it is never unknown.
//!
//! The agent can be killed between the moment at which a process exists and the moment at which it is recorded. So the
//! process starts waiting: a shell reads one line from a pipe that only the agent holds, and executes the real program
//! when the line comes. If the agent dies first, the shell reads the end of the file and exits.

use super::{
    failure::{Attempt, Failure},
    process::ProcessMark,
};
use std::{
    collections::BTreeMap,
    fs::File,
    path::Path,
    process::{ExitStatus, Stdio},
};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, Command},
};

/// Waits for the line, then executes the program. 125 is the exit code of a process that was never released.
const WAIT_FOR_THE_WORD: &str = r#"read -r go || exit 125; exec "$@" </dev/null"#;

/// Variables of the agent's own environment that every program gets; the rest is not passed on.
const INHERITED: &[&str] = &["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"];

/// What is to be run.
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    /// The program and its arguments.
    pub(super) words: Vec<String>,
    /// Its environment variables, in addition to those that every program gets.
    pub(super) environment: BTreeMap<String, String>,
}

/// A process that exists and waits to be released. Dropped, it ends without having done anything.
#[derive(Debug)]
pub(super) struct Waiting {
    child: Child,
    /// Its identity; the program that it becomes is the same process.
    pub(super) mark: ProcessMark,
}

/// Creates a process in a group of its own that waits to be released.
pub(super) fn spawn(invocation: &Invocation, home: &Path, output: File) -> Result<Waiting, Failure> {
    let second_output = output.try_clone().attempt("open the output file")?;
    let inherited = INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let child = Command::new("/bin/sh")
        .args(["-c", WAIT_FOR_THE_WORD, "holdfast"])
        .args(&invocation.words)
        .env_clear()
        .envs(inherited)
        .envs(&invocation.environment)
        .current_dir(home)
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(second_output)
        .process_group(0)
        .spawn()
        .attempt("start a process")?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    let mark = pid.map_or_else(|| Err(std::io::ErrorKind::NotFound.into()), ProcessMark::of);
    Ok(Waiting { child, mark: mark.attempt("find the process that was just started")? })
}

impl Waiting {
    /// Releases it. If it has ended in the meantime, waiting for it will show that.
    pub(super) async fn release(mut self) -> Child {
        if let Some(mut word) = self.child.stdin.take() {
            let _ = word.write_all(b"go\n").await;
        }
        self.child
    }
}

/// How a process ended, as text.
pub(super) fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}{}", signal_name(signal)),
        (None, None) => "ended".into(),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (HUP)",
        2 => " (INT)",
        3 => " (QUIT)",
        6 => " (ABRT)",
        9 => " (KILL)",
        11 => " (SEGV)",
        15 => " (TERM)",
        _ => "",
    }
}
