//! `holdfast binding`: which component uses which.

use crate::{
    Ending,
    change::ChangeOptions,
    failure::Failure,
    operator::{Operator, OperatorOptions},
    rendering::screen,
    rendering::table::table,
};
use clap::{Args, Subcommand};
use cloud_manager::document::{Binding, EditDocument};

/// Add, remove and list bindings
#[derive(Args)]
#[command(after_help = "Example: holdfast binding list")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Add bindings
    #[command(after_help = "Example: holdfast binding add 'app.db -> database.sql'")]
    Add(Changed),
    /// Remove bindings
    #[command(after_help = "Example: holdfast binding remove 'app.db -> database.sql' --incomplete")]
    Remove(Changed),
    List(List),
}

#[derive(Args)]
struct Changed {
    /// Written 'client.import -> provider.export'
    #[arg(required = true, value_name = "BINDING")]
    bindings: Vec<String>,
    #[command(flatten)]
    change: ChangeOptions,
}

/// List bindings
#[derive(Args)]
#[command(after_help = "Example: holdfast binding list")]
struct List {
    #[command(flatten)]
    operator: OperatorOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::Add(Changed { bindings, change }) => {
            change.make(bindings.iter().cloned().map(EditDocument::Bind).collect())
        }
        Command::Remove(Changed { bindings, change }) => {
            change.make(bindings.iter().cloned().map(EditDocument::Unbind).collect())
        }
        Command::List(List { operator }) => {
            let bindings: Vec<Binding> = Operator::new(operator)?.get("/v1/bindings")?;
            screen::show(operator.json, &bindings, || shown(&bindings))?;
            Ok(Ending::Done)
        }
    }
}

/// Renders bindings.
pub(crate) fn shown(bindings: &[Binding]) -> String {
    let row = |it: &Binding| {
        let held = if it.held { "held" } else { "not held" };
        let leaving = if it.leaving { ", leaving" } else { "" };
        [it.binding.clone(), it.need.to_string(), format!("{held}{leaving}")]
    };
    table(["BINDING", "NEED", "IS"], &bindings.iter().map(row).collect::<Vec<_>>())
}
