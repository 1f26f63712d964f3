//! `holdfast fmt` and `holdfast schema`: formatting and the schema of application files.

use crate::{Ending, failure::Failure, input::files, rendering::screen};
use clap::Args;
use std::path::PathBuf;

/// Format application files
#[derive(Args)]
#[command(after_help = "\
Keeps the content, its order and all comments. With --check nothing is written, and a file that is
not formatted is a failure.

Example: holdfast fmt shop.yaml")]
pub(crate) struct FmtArguments {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only list files that are not formatted
    #[arg(long)]
    check: bool,
}

/// Print the JSON Schema of application files, for editors
#[derive(Args)]
#[command(after_help = "\
Example: holdfast schema > holdfast.schema.json
         # yaml-language-server: $schema=holdfast.schema.json")]
pub(crate) struct SchemaArguments {}

pub(crate) fn format(arguments: &FmtArguments) -> Result<Ending, Failure> {
    let mut ending = Ending::Done;
    for path in &arguments.files {
        let usual = |text: &str| application::format(&path.display().to_string(), text).map_err(Failure::Application);
        let (written, text) = match files::read(path).and_then(|text| Ok((usual(&text)?, text))) {
            Ok(read) => read,
            // The other files are processed all the same.
            Err(failure) => {
                failure.tell();
                ending = Ending::Refuted;
                continue;
            }
        };
        if written == text {
            continue;
        }
        if arguments.check {
            screen::print(&format!("{} is not formatted\n", path.display()))?;
            ending = Ending::Refuted;
        } else {
            files::write(path, &written)?;
            screen::print(&format!("{} formatted\n", path.display()))?;
        }
    }
    Ok(ending)
}

pub(crate) fn schema(_: &SchemaArguments) -> Result<Ending, Failure> {
    screen::print_json(&application::schema())?;
    Ok(Ending::Done)
}
