//! Starting a process so that it is never unknown.
//!
//! Between the moment a process exists and the moment it is written down, the agent can be killed. So the process is
//! born waiting: a shell reads one line from a pipe that only the agent holds, and becomes the real program when the
//! line comes. If the agent goes first, the shell reads the end of the file and is gone. A relay runner who lets go of the
//! baton only when the next hand has closed around it.

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

/// Waits for the word, then becomes the program. 125 is the exit code of one that was never let go.
const WAIT_FOR_THE_WORD: &str = r#"read -r go || exit 125; exec "$@" </dev/null"#;

/// Of the agent's own environment, what every program may expect; the rest may hold what is none of its business.
const INHERITED: &[&str] = &["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"];

/// What is to be run.
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    /// The program and its arguments.
    pub(super) words: Vec<String>,
    /// Its environment variables, beside those that every program gets.
    pub(super) environment: BTreeMap<String, String>,
}

/// A process that exists and waits to be let go. Dropped, it ends without having done anything.
#[derive(Debug)]
pub(super) struct Waiting {
    child: Child,
    /// Who it is; the program it becomes is the same process.
    pub(super) mark: ProcessMark,
}

/// Makes a process in a group of its own that waits to be let go.
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
    /// Lets it go. If it has ended meanwhile, whoever waits for it will see that.
    pub(super) async fn release(mut self) -> Child {
        if let Some(mut word) = self.child.stdin.take() {
            let _ = word.write_all(b"go\n").await;
        }
        self.child
    }
}

/// How a process ended, in words.
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
