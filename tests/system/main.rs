//! Whole systems: real processes, real sockets, real faults.
//!
//! Each module is about one subject. [`site`] is a manager with agents and components on this machine, which is removed
//! when its test ends; [`session`] runs commands as they are written in guides and golden files. The output of commands
//! that need no running system is tested in `cli/tests`, and what concerns one crate alone is tested in that crate.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod applications;
mod autoscaling;
mod browser;
mod checks;
mod containers;
mod dashboard;
mod data;
mod demo;
mod failing;
mod guides;
mod maintenance;
mod manual_action;
mod metrics;
mod network;
mod operate;
mod preflight;
mod real;
mod reasons;
mod rebinding;
mod rollouts;
#[path = "../../cli/tests/session/mod.rs"]
mod session;
mod siblings;
mod site;

/// The program under test. Cargo builds it before these tests, from the current sources.
pub(crate) const HOLDFAST: &str = env!("CARGO_BIN_EXE_holdfast-for-tests");
