//! Whole systems: real processes, real sockets, real faults.
//!
//! Each module tells the stories of one subject. [`site`] is a manager with agents and components on this machine, which is
//! gone when its test ends; [`session`] runs commands as they are written in guides and golden files. What people see of
//! commands that need no running system is tested in `cli/tests`, and what one crate does alone beside that crate.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod applications;
mod beforehand;
mod browser;
mod dashboard;
mod demo;
mod failing;
mod following;
mod guides;
mod helping;
mod mending;
mod metrics;
mod network;
mod operate;
mod real;
mod reasons;
mod rollouts;
#[path = "../../cli/tests/session/mod.rs"]
mod session;
mod site;

/// The program under test. Cargo builds it before these tests, from the sources as they are.
pub(crate) const HOLDFAST: &str = env!("CARGO_BIN_EXE_holdfast-for-tests");
