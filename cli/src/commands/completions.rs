//! `holdfast completions` and `holdfast man`: shell completions and manual pages.

use super::Holdfast;
use crate::{Ending, failure::Failure, rendering::screen};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::path::PathBuf;

/// Print completions for a shell
#[derive(Args)]
#[command(after_help = "Example: holdfast completions bash > ~/.local/share/bash-completion/completions/holdfast")]
pub(crate) struct ShellArguments {
    /// The shell
    shell: Shell,
}

/// Write manual pages
#[derive(Args)]
#[command(after_help = "Example: holdfast man ~/.local/share/man/man1")]
pub(crate) struct ManArguments {
    /// The directory; created if it does not exist
    folder: PathBuf,
}

pub(crate) fn run(arguments: &ShellArguments) -> Result<Ending, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Holdfast::command(), "holdfast", &mut script);
    screen::print(&String::from_utf8_lossy(&script))?;
    Ok(Ending::Done)
}

pub(crate) fn write_manual(arguments: &ManArguments) -> Result<Ending, Failure> {
    let folder = &arguments.folder;
    let failed = |error| Failure::Write(folder.clone(), error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Holdfast::command(), folder).map_err(failed)?;
    screen::print(&format!("manual pages are in {}\n", folder.display()))?;
    Ok(Ending::Done)
}
