//! Ctrl-C during a long computation: the first one ends it early, with the best result so far; the second one ends the
//! program.

use std::{
    process,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use tokio::signal::unix::{SignalKind, signal};

/// The exit code of a program that Ctrl-C has ended, as shells report it.
const INTERRUPTED: i32 = 130;

/// Whether an interruptible computation is in progress, and whether it was asked to end.
static UNDER_WAY: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);

/// A computation that Ctrl-C ends early, until this value is dropped.
pub(crate) struct Interruptible(());

impl Interruptible {
    pub(crate) fn begin() -> Self {
        static LISTENER: OnceLock<()> = OnceLock::new();
        LISTENER.get_or_init(|| {
            thread::spawn(listen);
        });
        ASKED.store(false, Ordering::SeqCst);
        UNDER_WAY.store(true, Ordering::SeqCst);
        Self(())
    }

    /// Whether Ctrl-C was pressed.
    pub(crate) fn is_asked_to_end(&self) -> bool {
        ASKED.load(Ordering::SeqCst)
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        UNDER_WAY.store(false, Ordering::SeqCst);
    }
}

/// Once a handler is installed the signal no longer ends the program, so this does.
fn listen() {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    runtime.block_on(async {
        let Ok(mut interrupts) = signal(SignalKind::interrupt()) else { return };
        while interrupts.recv().await.is_some() {
            if !UNDER_WAY.load(Ordering::SeqCst) || ASKED.swap(true, Ordering::SeqCst) {
                process::exit(INTERRUPTED);
            }
        }
    });
}
