//! The agent of one VM.
//!
//! It does not know any rule of reconfiguration: those are `protocol`'s, and it only carries out what they ask for.
//!
//! - [`program`]: the agent from its beginning to its end;
//! - [`machine`]: the protocol's machine as the engine drives it;
//! - [`recipe`]: how the operations of a kind of component are carried out, as an application file says it;
//! - [`sort`]: what the values of components can be;
//! - [`template_bounds`]: how large a template may be;
//! - [`host`]: carries them out with real processes, files and ports, and says how they ended.

pub mod host;
mod kind;
pub mod machine;
mod presence;
pub mod program;
pub mod recipe;
pub mod sort;
pub mod template_bounds;
mod workshop;

pub use presence::Presence;
