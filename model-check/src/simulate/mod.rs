//! Many random orders of events, in virtual time.
//!
//! Each operation, message and alarm takes its time, drawn from a seeded range; what is due first happens first. Nothing
//! is asked of the world but [`World::apply`]: what becomes possible is read off what each machine says, so that a step
//! costs what it touches, whatever the size of the world.
//!
//! The same script, seed and settings give the same run. A run that breaks a property says so with one line to paste.
//!
//! Read next: [`Settings`], [`Report`], then `run` for the loop.

mod agenda;
mod critical_path;
mod journal;
mod mishaps;
mod report;
mod run;
mod timing;

pub use critical_path::{Activity, Stretch};
pub use journal::COMES_BACK;
pub use report::{ChangeTimes, Messages, Report, Violation};
pub use run::NO_PANIC;
pub use timing::{Span, Timing, always};

use crate::{
    environment::{Faults, Line},
    inspector::Pace,
    world::World,
};
use std::{fmt::Write, sync::Arc};

/// How to simulate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What all chance comes from.
    pub seed: u64,
    /// How long everything takes.
    pub timing: Timing,
    /// At most how many faults of each sort happen, while there is something they can happen to.
    pub faults: Faults,
    /// How many operations in a thousand fail, as long as `faults.failures` lasts.
    pub failures_per_mille: u32,
    /// How closely to look at each step.
    pub pace: Pace,
    /// Whether each machine's inputs are kept, and a machine that crashes is made anew from them.
    pub journal: bool,
    /// Whether the actions are kept, so that the run can be replayed and shortened.
    pub record: bool,
    /// Give up beyond so many steps.
    pub steps_max: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 0,
            timing: Timing::default(),
            faults: Faults::default(),
            failures_per_mille: 100,
            pace: Pace::EveryStep,
            journal: false,
            record: false,
            steps_max: 100_000_000,
        }
    }
}

impl Settings {
    /// The default settings with a seed.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// One line to paste that makes the same run again, with the default timing.
    pub fn command(&self, file: &str) -> String {
        let mut line = format!("holdfast simulate {file} --seed {}", self.seed);
        let faults = [
            ("failures", self.faults.failures),
            ("deaths", self.faults.deaths),
            ("crashes", self.faults.crashes),
            ("breaks", self.faults.breaks),
            ("losses", self.faults.losses),
        ];
        for (name, count) in faults.into_iter().filter(|(_, count)| *count > 0) {
            write!(line, " --{name} {count}").expect("writing to a string does not fail");
        }
        line
    }
}

/// Lets a script happen once. Returns what was seen, and the world at the end.
pub fn simulate(script: &Arc<[Line]>, settings: &Settings) -> (Report, World) {
    run::Run::new(script, settings).finished()
}
