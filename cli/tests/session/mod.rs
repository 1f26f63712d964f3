//! A terminal session as text: a command after `$`, then its output.
//!
//! Commands are run by a shell in a directory of their own that contains the examples and `holdfast`, so that what is
//! written can be pasted.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

/// One command and its expected output.
pub(crate) struct Turn {
    pub(crate) command: String,
    pub(crate) shown: Vec<String>,
}

/// Reads a session. Lines that begin with `>` belong to the command above them.
pub(crate) fn turns(text: &str) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            turns.push(Turn { command: command.into(), shown: Vec::new() });
        } else if let Some(turn) = turns.last_mut() {
            match line.strip_prefix("> ") {
                Some(more) => turn.command = format!("{}\n{more}", turn.command),
                None => turn.shown.push(line.into()),
            }
        }
    }
    turns
}

/// The top of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A directory of its own, with the examples in it.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    copy(&root().join("examples"), &folder.join("examples"));
    folder
}

/// Copies a directory with everything in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder for the test can be made");
    for entry in fs::read_dir(from).expect("there are examples").flatten() {
        if entry.path().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).expect("an example can be copied");
        }
    }
}

/// The output of a command: stdout, then stderr, then its exit code unless that is 0. What depends on the machine is
/// masked.
pub(crate) fn run(folder: &Path, command: &str) -> Vec<String> {
    let usual = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([programs()].into_iter().chain(env::split_paths(&usual)));
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).env("PATH", path.expect("the paths can be joined"));
    // A manager that a test has started is found by the access file in its directory.
    shell.env("HOLDFAST_ACCESS", "access.json");
    let output = shell.env_remove("COLUMNS").env("NO_COLOR", "1").output().expect("there is a shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(masked).collect::<Vec<_>>();
    let mut shown = text(&output.stdout);
    shown.extend(text(&output.stderr).into_iter().map(|line| format!("stderr: {line}")));
    shown.extend(output.status.code().filter(|code| *code != 0).map(|code| format!("exit code {code}")));
    shown
}

/// A directory that contains only the program under test, under its usual name.
fn programs() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(concat!("programs-of-", env!("CARGO_PKG_NAME")));
    fs::create_dir_all(&folder).expect("a folder for the test can be made");
    // Other tests do the same at the same time: the link is created under another name, and then renamed.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let aside = folder.join(format!("aside-{}-{count}", std::process::id()));
    symlink(crate::HOLDFAST, &aside).expect("a link can be made");
    fs::rename(&aside, folder.join("holdfast")).expect("a link can be renamed");
    folder
}

/// Times and sizes differ from machine to machine.
fn masked(line: &str) -> String {
    match line.trim_start().strip_prefix("took ") {
        Some(_) => format!("{}took …", &line[..line.len() - line.trim_start().len()]),
        None => line.trim_end().into(),
    }
}
