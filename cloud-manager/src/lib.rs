//! The manager program, as a library: the operator's API and what is behind it.
//!
//! - [`program`]: the life of the manager program, from start to stop;
//! - [`machine`]: the protocol's machine as the engine drives it;
//! - `executor`: carries out what the machine requests; `cloud`: creates VMs;
//! - [`handle`]: the only way to reach the running machine;
//! - `load`: measures loads, for applications that follow theirs;
//! - [`applications`]: the state of applications, and how a request about one becomes changes;
//! - [`api`]: HTTPS and JSON for operators, in front of the manager;
//! - [`document`]: the API's documents, as plain data;
//! - `dashboard`: the pages in the browser, on the same port and with the same rights as the API;
//! - [`past`]: what really happened, read from journals;
//! - [`access`] and [`client`]: how the command line finds the API and talks to it.
//!
//! It decides nothing about the protocol: [`protocol::CloudManager`] does.

pub mod access;
pub mod api;
pub mod applications;
pub mod client;
mod cloud;
mod dashboard;
pub mod document;
mod executor;
pub mod handle;
mod load;
pub mod machine;
pub mod past;
pub mod program;
