//! What holds for systems of every size.
//!
//! Exploration shows what small systems do. Safety does not depend on size, and this module shows it in two halves. First,
//! *abstract systems* that are finite and explored to the end: the life of one binding ([`binding`]) and of one import
//! ([`import`]), with all that surrounds them chosen freely. Second, the *projection* ([`projection`]): every step of the real
//! machines, seen from one binding or one import, is a sequence of moves of these systems. The projection is checked like any
//! property, in every step of every exploration, simulation, replay and audit. `docs/PROOF.md` has the argument.

pub mod binding;
pub mod client;
pub mod import;
pub mod projection;
pub mod provider;
