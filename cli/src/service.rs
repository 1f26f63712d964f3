//! What the long-running commands share: a runtime, a log on stderr, and the signals to stop.

use crate::Ending;
use crate::failure::Failure;
use std::io::IsTerminal;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// The default log level of a service: warnings, and what an operator should know.
pub(crate) const LOGGED: &str = "info,ractor=warn";
/// Threads that step machines and carry messages; one may wait for the disk.
const WORKERS: usize = 2;

/// Runs a program to its end; `logged` is the log level unless `HOLDFAST_LOG` overrides it.
pub(crate) fn run(logged: &str, program: impl Future<Output = Result<Ending, Failure>>) -> Result<Ending, Failure> {
    let filter = EnvFilter::try_from_env("HOLDFAST_LOG").unwrap_or_else(|_| EnvFilter::new(logged));
    // A logger that is already installed is no reason to fail.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .try_init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build();
    runtime.map_err(|error| Failure::System("no threads can be started", error))?.block_on(program)
}

/// Waits for `SIGTERM` or `SIGINT`.
pub(crate) async fn asked_to_stop() {
    let (terminate, interrupt) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = (terminate, interrupt) else {
        // Without signal handlers, it never stops this way.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
