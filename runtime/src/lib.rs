//! The hallway between the machines of the protocol and the world.
//!
//! It does not know what it carries: records and messages are bytes here, and no rule of reconfiguration is known.
//! What it promises is about carrying: [`journal`] keeps what came in, in order, across crashes.

pub mod data_directory;
pub mod error;
pub mod journal;

pub use data_directory::DataDirectory;
pub use error::Error;
