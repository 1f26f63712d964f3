//! The agent of one VM.
//!
//! It does not know any rule of reconfiguration: those are `protocol`'s, and it only carries out what they ask for. How the
//! operations of a component are carried out is said by its recipe, which the crate `recipe` reads and checks.
//!
//! - [`program`]: the agent from its beginning to its end;
//! - [`machine`]: the protocol's machine as the engine drives it;
//! - [`host`]: carries out operations with real processes, files and ports, and reports how they ended.

pub mod host;
mod host_actor;
pub mod machine;
mod presence;
pub mod program;

pub use presence::Presence;
