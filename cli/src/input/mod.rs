//! The input of commands on this machine: files, and options that several commands share.

pub(crate) mod application_file;
pub(crate) mod component_file;
pub(crate) mod component_options;
pub(crate) mod faults;
pub(crate) mod files;
pub(crate) mod names;
pub(crate) mod story;
