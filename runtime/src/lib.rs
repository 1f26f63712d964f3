//! What drives the machines of the protocol in real programs: journal, links, identity and the engine.
//!
//! It does not know what it carries: records and messages are bytes here, and it contains no rule of reconfiguration.
//! What it guarantees:
//!
//! - [`journal`]: inputs are kept, in order, across crashes;
//! - [`link`]: messages arrive exactly once and in order, across reconnects and crashes;
//! - [`identity`]: each peer is the one that it claims to be;
//! - [`engine`]: the loop around a machine: journal, step, carry out.

pub mod data_directory;
pub mod engine;
pub mod error;
pub mod identity;
pub mod journal;
pub mod link;
pub mod peer;
mod quic;

pub use data_directory::DataDirectory;
pub use error::Error;
pub use peer::{Incarnation, PeerId, Timestamp, VmName};
