//! `holdfast import`: converts files of other tools to application files.

use crate::{Ending, failure::Failure, input::files, rendering::screen};
use application::{ComposeOptions, Imported, With};
use clap::{Args, Subcommand, ValueEnum};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Create an application file from a file of another tool
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    from: From,
}

#[derive(Subcommand)]
enum From {
    Compose(ComposeArguments),
}

/// From a docker-compose file
#[derive(Args)]
#[command(after_help = "\
Services become types and components, depends_on becomes imports, ${VAR:-default} becomes variables.
What has no counterpart is listed, and added to the file as a comment.

Example: holdfast import compose docker-compose.yml --output shop.yaml
         holdfast plan shop.yaml")]
struct ComposeArguments {
    /// The compose file
    file: PathBuf,
    /// Where to write the application file [default: stdout]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How to run a service that has an image
    #[arg(long, value_enum, default_value = "docker")]
    with: WithOption,
    /// Print the file and what was left out as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WithOption {
    /// A `docker run` in the foreground, on the network of its VM
    Docker,
    /// Its own command, as a process of the machine
    Process,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    match &arguments.from {
        From::Compose(arguments) => compose(arguments),
    }
}

fn compose(arguments: &ComposeArguments) -> Result<Ending, Failure> {
    let ComposeArguments { file, output, with, json } = arguments;
    // An unreadable main file is reported like every other unreadable file.
    files::read(file)?;
    let whole = fs::canonicalize(file).map_err(|error| Failure::Read(file.clone(), error))?;
    let folder = whole.parent().unwrap_or(&whole).display().to_string();
    let with = match with {
        WithOption::Docker => With::Docker,
        WithOption::Process => With::Process,
    };
    let mut open = |name: &str| files::text(Path::new(name)).map_err(|error| error.to_string());
    let name = file.display().to_string();
    let imported = application::import_compose(&name, &ComposeOptions { with, folder }, &mut open);
    let imported = imported.map_err(Failure::Application)?;
    if *json {
        screen::print_document(&imported)?;
    } else {
        tell(&imported);
    }
    match output {
        Some(path) if path.exists() => {
            let says = format!("{}: already exists (remove it, or name another file)", path.display());
            return Err(Failure::Usage(says));
        }
        Some(path) => files::write(path, &imported.text)?,
        None if !json => screen::print(&imported.text)?,
        None => {}
    }
    Ok(Ending::Done)
}

/// Prints what was left out to stderr: stdout may be the file.
fn tell(imported: &Imported) {
    for remark in &imported.remarks {
        let service = remark.service.as_ref().map_or(String::new(), |it| format!("{it}: "));
        anstream::eprintln!("{}:{}: {service}{}", remark.file, remark.line, remark.says);
    }
}
