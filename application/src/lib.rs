//! Application files: read, checked, expanded, placed, wired and compared.
//!
//! ```text
//!   files ──read──▶ Application ──expand──▶ Expansion ──difference──▶ Difference ──change──▶ protocol::Change
//!           checked            counted out, placed,      added, removed,          edits for the manager
//!           with places        wired; under keys         changed, unchanged
//! ```
//!
//! Types say what components of one type need, offer and do; the rest of a file says how many there are, where, and how
//! they are wired. The language is described in `docs/LANGUAGE.md`.
//!
//! This crate does no I/O: files are asked for through a closure, and secrets are only named; the caller passes their
//! texts. No input can make it panic; all problems are reported at once, each with its position.
//!
//! Read next: [`Application`], [`Expansion`], [`Difference`].

mod application;
mod autoscale;
mod change;
mod component_group;
mod component_type;
mod cycle;
mod data;
mod difference;
mod document;
mod driver;
mod expand;
mod expansion;
mod file_mode;
mod files;
mod format;
mod found;
mod import;
mod kept_data;
mod mending;
mod nearest;
mod node;
mod operations;
mod optimum;
mod paths;
mod picture;
mod placement;
mod port_conflicts;
mod problem;
mod readiness;
mod reading;
mod restrictions;
mod rolling;
mod same;
mod schema;
mod secrets;
mod settings;
mod source;
mod template;
mod template_names;
mod template_reads;
mod template_words;
mod value_type_check;
mod wiring;
mod yaml;

pub use application::{Application, LoadError};
pub use autoscale::{Autoscale, Measured, Source, Wish};
pub use change::{Planned, SecretTexts};
pub use data::Data;
pub use difference::{Binding, Difference, How, Unchanged};
pub use expand::Existing;
pub use expansion::{
    Choice, Component, Definition, Expansion, Import, Key, KeyError, Objective, Reference, Secret, Vm,
};
pub use files::ApplicationFiles;
pub use format::format;
pub use found::Found;
pub use import::{ComposeOptions, Imported, Remark, With, import_compose};
pub use nearest::hint;
pub use picture::picture;
pub use problem::{Problem, Problems};
pub use rolling::{OutAlready, rolling};
pub use same::says_the_same;
pub use schema::schema;
pub use settings::GroupSettings;
pub use yaml::FILE_BYTES_MAX;

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What differs between environments, and the options of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// Values of variables, with the highest priority.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    /// Values files, by name and with their text; later ones have priority.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values_files: Vec<(String, String)>,
    /// How many components there are of a group, overriding the files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u32>,
    /// VMs that may not have components, whatever the files say.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub drained: BTreeSet<Key>,
}
