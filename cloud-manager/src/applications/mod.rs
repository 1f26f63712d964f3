//! Applications: what the manager stores about them, and how a request about one becomes changes.
//!
//! ```text
//!   request ──planning──▶ Decision ──submission──▶ Submission ──journal──▶ machine ──▶ change, or a rollout of several
//!            off the actor's thread    with secrets         one local event
//! ```
//!
//! Planning reads a copy of the manager ([`Present`]) and changes nothing; it may take a minute. Its decision is
//! journalled as one [`Submission`]; a replay carries that out again and never plans. A submission names the versions
//! that it was planned from, and the machine refuses it if one of them has changed.
//!
//! | file | what it holds |
//! |---|---|
//! | `state` | what is journalled: versions, files, secrets, the requested expansion |
//! | `rollout` | replacement in steps: when the next step may be posted |
//! | `present` | a copy of everything that planning reads |
//! | `planning` | from a request to a decision, and to the plan that is shown |
//! | `targets` | what each kind of request does to an application |
//! | `forecast`, `outcome` | what changes would do: a simulation, and the machine's own answer |
//! | `data` | what a plan does to data that is kept, and what needs an explicit yes |
//! | `fates` | what becomes of each component |
//! | `check` | what differs from what was applied |

pub mod check;
pub mod data;
mod fates;
pub mod forecast;
mod outcome;
pub mod planning;
pub mod present;
pub mod rollout;
pub mod state;
mod targets;

pub use forecast::forecast;
pub use planning::{Decision, PlanError, plan};
pub use present::Present;
pub use state::{ApplicationState, ApplicationUpdate, Step, Submission, Version};
