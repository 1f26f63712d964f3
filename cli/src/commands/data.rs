//! `holdfast data`: what VMs keep for components, and the options with which a change may delete it.

use crate::{
    Ending,
    failure::Failure,
    operator::{Operator, OperatorOptions},
    rendering::screen,
    rendering::table::table,
    request::confirmed,
};
use clap::{Args, Subcommand};
use cloud_manager::{
    client::segment,
    document::{DataDocument, DataEffect, DataFate},
};

/// List and delete data that VMs keep for components
#[derive(Args)]
#[command(after_help = "\
Data outlives its component: it stays when the component is restarted, replaced or removed.

Example: holdfast data list
         holdfast data delete 'shop/database[0]'")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(List),
    Delete(Delete),
}

/// List data: the component that it is kept for, its VM, its size, and whether it is in use
#[derive(Args)]
#[command(after_help = "\
Data that is left behind is used again by a component of the same name on the same VM.

Example: holdfast data list")]
struct List {
    #[command(flatten)]
    operator: OperatorOptions,
}

/// Delete the data of a component that was removed
#[derive(Args)]
#[command(after_help = "\
It is refused while the component uses it: remove the component first.

Example: holdfast data delete 'shop/database[0]'
         holdfast data delete 'shop/database[0]' --vm 'shop/data[1]' --yes")]
struct Delete {
    /// The component that it is kept for, as holdfast data list shows it
    key: String,
    /// The VM, where several keep data of that component
    #[arg(long)]
    vm: Option<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    operator: OperatorOptions,
}

/// What a change may do to data.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DataOptions {
    /// Delete the data of components and VMs that are removed
    #[arg(long)]
    pub(crate) delete_data: bool,
    /// Let this component start without its data, which is on another VM; can be repeated
    #[arg(long, value_name = "COMPONENT")]
    pub(crate) start_empty: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::List(list) => show_list(list),
        Command::Delete(it) => delete(it),
    }
}

fn show_list(List { operator: options }: &List) -> Result<Ending, Failure> {
    let kept: Vec<DataDocument> = Operator::new(options)?.get("/v1/data")?;
    screen::show(options.json, &kept, || listed(&kept))?;
    Ok(Ending::Done)
}

fn listed(kept: &[DataDocument]) -> String {
    if kept.is_empty() {
        return "no data is kept\n".into();
    }
    let mut rows = Vec::new();
    for DataDocument { key, vm, in_use, directories, unknown } in kept {
        let is = if *in_use { "in use" } else { "left behind" };
        for directory in directories {
            let bytes = match (directory.bytes, unknown) {
                (Some(bytes), _) => size(bytes),
                (None, Some(_)) => "?".into(),
                (None, None) => "–".into(),
            };
            let path = directory.path.clone().or_else(|| unknown.clone()).unwrap_or_else(|| "not made yet".into());
            rows.push([key.clone(), vm.clone(), directory.name.clone(), bytes, is.into(), path]);
        }
    }
    table(["COMPONENT", "VM", "DATA", "SIZE", "IS", "WHERE"], &rows)
}

/// A size with its unit.
fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // Only a rounded number is shown.
    #[expect(clippy::cast_precision_loss, reason = "it is rounded for people")]
    let mut number = bytes as f64 / 1024.0;
    let mut unit = 0;
    while number >= 1024.0 && unit + 1 < units.len() {
        number /= 1024.0;
        unit += 1;
    }
    format!("{number:.1} {}", units[unit])
}

fn delete(Delete { key, vm, yes, operator: options }: &Delete) -> Result<Ending, Failure> {
    let operator = Operator::new(options)?;
    if !yes {
        let on = vm.as_ref().map(|vm| format!(" on vm {vm}")).unwrap_or_default();
        screen::print(&screen::coloured(&format!("✗ the data of {key}{on} is deleted, and cannot be brought back\n")))?;
        if !confirmed()? {
            screen::print("Nothing was changed.\n")?;
            return Ok(Ending::Refuted);
        }
    }
    let query = vm.as_ref().map(|vm| format!("?vm={}", segment(vm))).unwrap_or_default();
    operator.delete(&format!("/v1/data/{}{query}", segment(key)))?;
    screen::show(options.json, &serde_json::json!({ "deleted": key }), || format!("✓ the data of {key} is deleted\n"))?;
    Ok(Ending::Done)
}

/// What a plan does to data, a line each; what is lost or left behind is marked.
pub(crate) fn effects(data: &[DataEffect]) -> String {
    let line = |DataEffect { component, vm, fate, why }: &DataEffect| match fate {
        DataFate::Deleted => format!("  ✗ the data of {component} on vm {vm} is DELETED: {why}\n"),
        DataFate::LeftBehind => format!("  ✗ the data of {component} is left behind on vm {vm}: {why}\n"),
        DataFate::NotUsed => format!("  ✗ the data of {component} on vm {vm} is not used: {why}\n"),
        DataFate::Adopted => format!("  ✓ {component} adopts the data on vm {vm}: {why}\n"),
        // It is said where the component is.
        DataFate::Kept => String::new(),
    };
    let lines: String = data.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("Data:\n{lines}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let sizes = [0, 1023, 1024, 1_572_864, 5 << 40].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "5.0 TiB"]);
    }
}
