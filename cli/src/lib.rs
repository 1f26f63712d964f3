//! `holdfast`: the one program that users install.
//!
//! It decides nothing about the protocol and nothing about applications: the manager and the pure crates do. A reader
//! finds
//! - [`commands`]: one file for each command, with its options, its help and the call to the crate that does the work;
//! - [`input`]: what commands are given on this machine (application files, scenarios, options that several share);
//! - [`rendering`]: the output for people (tables, charts, plans, the progress of a change);
//! - the connection to the manager ([`operator`], [`request`], [`change`]) beside them.
//!
//! Output for people goes to stdout, diagnostics to stderr; `--json` is for programs. Exit codes: 0 done, 1 refused or
//! failed, 2 wrong usage, 130 interrupted.
//!
//! It is a library so that the crate `tests` can build the same program and run it; [`main`] is all that it offers.

mod change;
mod commands;
mod failure;
mod input;
mod interrupt;
mod operator;
mod placing;
mod plain_http;
mod rendering;
mod request;
mod service;

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Success.
    Done,
    /// It found something wrong, and has shown it.
    Refuted,
    /// It was interrupted before it was done, and has cleaned up.
    Interrupted,
}

/// Runs the command that this process was started with.
pub fn main() -> ExitCode {
    match commands::run() {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::Refuted) => ExitCode::FAILURE,
        Ok(Ending::Interrupted) => ExitCode::from(130),
        // The reader of the output has closed it, which is fine.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            if matches!(failure, failure::Failure::Usage(_)) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
