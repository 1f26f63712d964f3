//! Plans a target from types, nodes, today's configuration and requirements; proves it optimal, and orders the steps to it.
//!
//! What this crate does not do: it reads no file and no clock, draws no random number, logs nothing. For a time limit, the
//! caller passes a closure that says when to stop; the answer then gives the best plan so far and its gap.
//!
//! From requirements to a plan:
//!
//! 1. [`language`] reads the specification language of Zephyrus2, [`zephyrus`] its JSON files; [`problem`] checks.
//! 2. `model` turns the problem into an integer program over *columns* (what one node can host); `reduce` makes it smaller.
//! 3. `solve` finds the best placement, goal by goal, and proves it in exact arithmetic.
//! 4. `wiring` decides which component uses which; [`verify`] checks the whole answer with code of its own.
//! 5. [`sequence`] orders the steps from today's configuration to the target; [`explain`] says why there is no target.
//!
//! Start reading at [`plan`], the one function that takes these steps. [`report`] is what a command line prints.
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
