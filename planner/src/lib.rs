//! planner
pub mod configuration;
pub mod language;
mod model;
mod placement;
pub mod problem;
mod solve;
pub mod verify;
mod wiring;
pub mod zephyrus;
