//! The progress of a long computation: one line on stderr, rewritten on a terminal, repeated now and then elsewhere.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

pub(crate) struct ProgressLine {
    on_screen: bool,
    next: Instant,
    written: bool,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        let on_screen = io::stderr().is_terminal();
        Self { on_screen, next: Instant::now() + pause(on_screen), written: false }
    }

    /// Shows a line, if the last one is old enough.
    pub(crate) fn show(&mut self, line: impl FnOnce() -> String) {
        if Instant::now() < self.next {
            return;
        }
        let (start, end) = if self.on_screen { ("\r\x1b[K", "") } else { ("", "\n") };
        // Progress is optional: if it cannot be shown, the work continues.
        let _ = write!(io::stderr(), "{start}{}{end}", line());
        self.written = true;
        self.next = Instant::now() + pause(self.on_screen);
    }

    /// Leaves a clean screen.
    pub(crate) fn done(self) {
        if self.on_screen && self.written {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn pause(on_screen: bool) -> Duration {
    if on_screen { Duration::from_millis(100) } else { Duration::from_secs(5) }
}
