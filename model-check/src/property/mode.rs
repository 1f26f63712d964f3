//! Which property is evaluated in which mode, and where it is not, why.
//!
//! Nothing else decides whether a property is printed with a tick: what is not evaluated is printed as `not checked`, with
//! the reason given here or by the run itself. `docs/PROPERTIES.md` is the table of this module, and a test breaks each
//! property in each mode in which the table says that it is evaluated.

use super::{
    ALL, AS_TOLD, COVERED, DONE, FOLLOWED, KNOWN, NEED, ONE_END, OWN, PATIENCE, PREDICTED, REBOUND, RESTS, STALE, TRUST,
};
use crate::{
    audit::AGREEMENT,
    simulate::{COMES_BACK, NO_PANIC},
};
use std::fmt::Write as _;

/// How runs are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Every order of events.
    Explore,
    /// Random orders, in virtual time.
    Simulate,
    /// One recorded order; `shrink` replays, too.
    Replay,
    /// The journals of a real run.
    Audit,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Explore, Self::Simulate, Self::Replay, Self::Audit];

    /// The command.
    pub fn word(self) -> &'static str {
        match self {
            Self::Explore => "explore",
            Self::Simulate => "simulate",
            Self::Replay => "replay",
            Self::Audit => "audit",
        }
    }
}

/// Whether a property is evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It is, here.
    Yes(&'static str),
    /// It is for a part of the run; what is left out, and why.
    Partly(String),
    /// It is not, for this reason.
    No(String),
}

/// What is printed instead of a tick.
pub const NOT_CHECKED: &str = "not checked";

/// The properties that some modes have besides [`ALL`].
pub const FURTHER: [&str; 4] = [AS_TOLD, COMES_BACK, NO_PANIC, AGREEMENT];

/// Every property there is.
pub fn all() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().map(|(_, name)| name).chain(FURTHER)
}

/// Whether a mode evaluates a property, in a run that has everything it needs.
pub fn asked(property: &str, mode: Mode) -> Asked {
    let no = |reason: &str| Asked::No(reason.into());
    match (property, mode) {
        (ONE_END, Mode::Explore) => Asked::Yes("all ends"),
        (ONE_END, _) => no("one run has one end"),
        (AS_TOLD, Mode::Explore | Mode::Simulate) => Asked::Yes("every step and end"),
        (AS_TOLD, Mode::Replay) => Asked::Yes("every step and end, with --expect"),
        (AS_TOLD, Mode::Audit) => no("a real run has no scenario"),
        (COMES_BACK, Mode::Simulate) => Asked::Yes("every crash"),
        (COMES_BACK, Mode::Audit) => no("an audit steps the machines from their journals to begin with"),
        (COMES_BACK, _) => no("a crash is a fault of the links here: the machine is not made anew"),
        (NO_PANIC, Mode::Simulate | Mode::Replay) => Asked::Yes("every step"),
        (NO_PANIC, _) => no("a panic ends the program"),
        (AGREEMENT, Mode::Audit) => Asked::Yes("every message"),
        (AGREEMENT, _) => no("the links of the world deliver what was sent"),
        (RESTS | PREDICTED | KNOWN | FOLLOWED | REBOUND, Mode::Audit) => Asked::Yes("the end, if nothing is under way"),
        (RESTS | PREDICTED | KNOWN | FOLLOWED | REBOUND, Mode::Replay) => {
            Asked::Yes("the end, if the trace reaches it")
        }
        (RESTS | PREDICTED | KNOWN | FOLLOWED | REBOUND, _) => Asked::Yes("every end"),
        (DONE, Mode::Explore) => Asked::Yes("every state without a change"),
        (DONE | OWN | NEED, _) => Asked::Yes("every phase that is called done"),
        (STALE | TRUST, Mode::Simulate) => Asked::Yes("every 16th step"),
        (PATIENCE | COVERED, _) => Asked::Yes("every step"),
        (_, Mode::Explore) => Asked::Yes("every state"),
        (_, _) => Asked::Yes("every step"),
    }
}

/// The page `docs/PROPERTIES.md`.
pub fn page() -> String {
    format!("{HEAD}\n{}", table())
}

const HEAD: &str = "\
# Properties

Written by `cargo xtask properties`; do not edit. What each property means is in [PROTOCOL.md](PROTOCOL.md), section 8. Each
property is written once, in `protocol/src/invariant.rs` or `model-check/src/property/`, and every mode calls that code. The
table says where a mode evaluates it. `model-check/tests/properties.rs` breaks each property on purpose in each mode with a ✓
and expects that mode to find it. A program never prints a tick for what it did not evaluate: an audit without the journals
of some machine, or of a system in which something is under way, says what it could not check. `shrink` replays, and finds
what `replay` finds.
";

/// The table property × mode, in Markdown.
pub fn table() -> String {
    let mut text = String::from("| property |");
    let mut line = String::from("|---|");
    for mode in Mode::ALL {
        write!(text, " {} |", mode.word()).expect("writing to a string does not fail");
        line += "---|";
    }
    text += &format!("\n{line}\n");
    for property in all() {
        write!(text, "| {property} |").expect("writing to a string does not fail");
        for mode in Mode::ALL {
            let cell = match asked(property, mode) {
                Asked::Yes(place) => format!("✓ {place}"),
                Asked::Partly(reason) => format!("partly: {reason}"),
                Asked::No(reason) => format!("{NOT_CHECKED}: {reason}"),
            };
            write!(text, " {cell} |").expect("writing to a string does not fail");
        }
        text.push('\n');
    }
    text
}
