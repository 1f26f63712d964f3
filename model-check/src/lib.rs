//! Checks the protocol by running it: the machines here are the very ones that run in production.
//!
//! There is one [`World`] (machines, links, hosts, cloud, operator) and one sorted list of what can happen next
//! ([`World::actions`]). Exploring, simulating and replaying are three ways of choosing from that list.
//!
//! This crate does no I/O and knows no network. Read next: [`world`], then [`property`], then [`explore`].

pub mod action;
pub mod audit;
pub mod chart;
pub mod choices;
pub mod environment;
pub mod explore;
pub mod inspector;
mod parts;
pub mod proof;
pub mod property;
pub mod random;
pub mod run;
pub mod sabotage;
pub mod scenario;
pub mod shapes;
pub mod shrink;
pub mod simulate;
pub mod trace;
pub mod world;

pub use action::Action;
pub use environment::{Faults, Line};
pub use scenario::Scenario;
pub use world::World;
