//! From types, nodes, today's configuration and a requirements to a target, proven best, and a safe way to get there.
//!
//! What this crate does not do: it reads no file and no clock, draws no random number, logs nothing. A caller who wants
//! a time limit passes a closure that says when to stop; the answer then says honestly how far it got.
//!
//! The way of a requirements:
//!
//! 1. [`language`] reads the specification language of Zephyrus2, [`zephyrus`] its JSON files; [`problem`] checks.
//! 2. `model` turns the problem into a whole-numbered program over *columns* (what one node can host).
//! 3. `solve` finds the best placement, goal by goal, and proves it in exact arithmetic.
//! 4. `wiring` decides who uses whom; [`verify`] checks the whole answer with code of its own.
//! 5. [`sequence`] orders the steps from today's configuration to the target; [`explain`] says why there is no target.
//!
//! Start reading at [`plan`], the one function that walks this way. [`report`] is what a command line prints.
//!
//! ```
//! let text = r#"{
//!     "components": { "Web": { "resources": { "CPU": 1 } } },
//!     "locations": { "small": { "num": 5, "resources": { "CPU": 2 }, "cost": 10 } },
//!     "specification": "Web = 3; cost"
//! }"#;
//! let report = planner::report::optimize(text, &mut |_| true)?;
//! assert!(report.is_optimal());
//! assert_eq!(report.plan.cost, 20);
//! # Ok::<(), planner::report::OptimizeError>(())
//! ```

pub mod configuration;
pub mod explain;
pub mod language;
pub mod memory;
mod model;
mod placement;
pub mod plan;
pub mod problem;
mod reduce;
pub mod report;
pub mod scale;
pub mod sequence;
mod solve;
pub mod verify;
mod wiring;
pub mod zephyrus;

pub use model::ModelError;
pub use solve::engine::{Belief, Engine, LinearProgram, LinearRow, Microlp};
pub use solve::watch::{Method, Progress};
