//! Recipes: how the operations of one kind of component are carried out.
//!
//! This crate reads a recipe, checks it, and renders its templates. It runs nothing and touches no file: `vm-agent` carries a
//! recipe out, and `application` writes one for each component of an application file. Like every pure crate it does no I/O,
//! reads no clock and draws no random number.
//!
//! - [`Recipe`]: the format, as the protocol carries it unread in `Kind::recipe`;
//! - [`value_type`]: the types that a value can have;
//! - [`template`]: what templates see, and how they are rendered;
//! - [`template_bounds`]: the limits on the size of a template, checked before it is parsed.
//!
//! Read next: [`Recipe`].

mod confinement;
mod data;
mod kind;
mod recipe;

pub mod template;
pub mod template_bounds;
pub mod value_type;

pub use confinement::{Confinement, Limits};
pub use data::{Data, OnRemove};
pub use recipe::{
    At, Check, Command, CommandLine, HandedOut, Listener, Operations, Probe, Process, Rebind, Recipe, RecipeError,
    RenderedFile, Signal, Start, Stop,
};
