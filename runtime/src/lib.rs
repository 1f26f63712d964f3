//! The hallway between the machines of the protocol and the world.
//!
//! It does not know what it carries: records and messages are bytes here, and no rule of reconfiguration is known.
//! What it promises is about carrying:
//!
//! - [`journal`]: what came in is kept, in order, across crashes;
//! - [`link`]: what one peer says to another arrives once and in order, whatever breaks in between;
//! - [`identity`]: whoever speaks is who it says it is;
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
