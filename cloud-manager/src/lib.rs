//! The manager program, as a library: the operator's API and what stands behind it.
//!
//! - [`program`]: the manager from its beginning to its end;
//! - [`machine`]: the protocol's machine as the engine drives it;
//! - `office`: everything around it that acts; `cloud`: where VMs come from;
//! - [`handle`]: the one way to reach the machine that runs here;
//! - `load`: measures loads, for applications that follow theirs;
//! - [`applications`]: what is kept of applications, and how a request about one becomes changes;
//! - [`api`]: HTTPS and JSON for operators, in front of the manager;
//! - [`document`]: what that API takes and gives, as plain data with names that people understand;
//! - [`access`] and [`client`]: how the command line finds the API and talks to it.
//!
//! It decides nothing about the protocol: [`protocol::CloudManager`] does.

pub mod access;
pub mod api;
pub mod applications;
pub mod client;
mod cloud;
pub mod document;
pub mod handle;
mod load;
pub mod machine;
mod office;
pub mod program;
