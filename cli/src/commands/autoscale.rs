//! `holdfast autoscale`: applications that follow their load.

use crate::{
    Ending,
    failure::Failure,
    operator::{Operator, OperatorOptions},
    rendering::moment,
    rendering::screen,
};
use clap::{Args, Subcommand};
use cloud_manager::{client::segment, document::AutoscaleDocument};
use std::fmt::Write as _;

/// Show, pause and resume applications that follow their load
#[derive(Args)]
#[command(after_help = "\
An application follows its load if its file has `autoscale:`.

Example: holdfast autoscale status")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Status(Status),
    Pause(Pause),
    Resume(Resume),
}

/// Show the loads that were measured last, and what followed
#[derive(Args)]
#[command(after_help = "Example: holdfast autoscale status")]
struct Status {
    #[command(flatten)]
    operator: OperatorOptions,
}

/// Leave the numbers of components alone until the application is resumed
#[derive(Args)]
#[command(after_help = "\
A pause outlives the manager. A change that is under way is carried out.

Example: holdfast autoscale pause shop")]
struct Pause {
    /// The application
    application: String,
    #[command(flatten)]
    operator: OperatorOptions,
}

/// Follow the load again
#[derive(Args)]
#[command(after_help = "Example: holdfast autoscale resume shop")]
struct Resume {
    /// The application
    application: String,
    #[command(flatten)]
    operator: OperatorOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::Status(Status { operator }) => {
            let documents: Vec<AutoscaleDocument> = Operator::new(operator)?.get("/v1/autoscale")?;
            screen::show(operator.json, &documents, || match documents.as_slice() {
                [] => "no application follows its load (`autoscale:` in its file)\n".into(),
                documents => documents.iter().map(shown).collect(),
            })?;
        }
        Command::Pause(Pause { application, operator }) => switch(application, operator, "pause")?,
        Command::Resume(Resume { application, operator }) => switch(application, operator, "resume")?,
    }
    Ok(Ending::Done)
}

fn switch(application: &str, operator: &OperatorOptions, verb: &str) -> Result<(), Failure> {
    let path = format!("/v1/autoscale/{}/{verb}", segment(application));
    let document: AutoscaleDocument = Operator::new(operator)?.post(&path, &())?;
    screen::show(operator.json, &document, || format!("{application}: {}\n", document.says))
}

fn shown(document: &AutoscaleDocument) -> String {
    let mut text = format!("{}: {}", document.application, document.says);
    if document.dry_run {
        text += " (dry run)";
    }
    text.push('\n');
    for (component, source) in &document.sources {
        let load = if component.is_empty() { document.load } else { document.loads.get(component).copied() };
        let load = load.map_or("not measured yet".to_owned(), |load| load.to_string());
        let what = if component.is_empty() { "load".to_owned() } else { format!("load of {component}") };
        let _ = writeln!(text, "  {what}: {load} ({source})");
    }
    if let (Some(because), Some(at)) = (&document.changed_because, document.changed_ms) {
        let change = document.change.map(|it| format!(" (change {it})")).unwrap_or_default();
        let _ = writeln!(text, "  last change: {}, {because}{change}", moment::date_and_time(at));
    }
    text
}
