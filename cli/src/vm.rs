//! `holdfast vm`: machines that come and go.

use crate::{
    Ending,
    application_file::Record,
    apply::{self, DrainArguments},
    change::{ChangeOptions, WaitOptions},
    failure::Failure,
    operator::{Operator, OperatorOptions},
    screen,
    table::table,
};
use application::Expansion;
use clap::{Args, Subcommand};
use cloud_manager::{
    client::segment,
    document::{ApplicationRecord, EditDocument, NewVm, RunningChange, Vm},
};
use serde::Serialize;
use std::collections::BTreeSet;

/// Add, remove and list VMs
#[derive(Args)]
#[command(after_help = "Example: holdfast vm add web --cloud local")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Add(Add),
    Remove(Remove),
    List(List),
    Lost(Lost),
    /// Move all components of an application's VM elsewhere, in safe order
    #[command(after_help = "\
The VM stays, and nothing is put on it until holdfast vm undrain.

Example: holdfast vm drain 'shop/web[0]'")]
    Drain(DrainArguments),
    /// Let components be put on a drained VM again
    #[command(after_help = "Example: holdfast vm undrain 'shop/web[0]'")]
    Undrain(DrainArguments),
}

/// Add VMs
#[derive(Args)]
#[command(after_help = "\
Without --cloud, an agent joins by itself with a token: holdfast token create --vm NAME

Example: holdfast vm add data web --cloud local")]
struct Add {
    /// Their names
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// The cloud that makes them
    #[arg(long)]
    cloud: Option<String>,
    #[command(flatten)]
    change: ChangeOptions,
}

/// Remove VMs, with all their components
#[derive(Args)]
#[command(after_help = "Example: holdfast vm remove web")]
struct Remove {
    /// Their names
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    change: ChangeOptions,
}

/// List VMs
#[derive(Args)]
#[command(after_help = "Example: holdfast vm list")]
struct List {
    /// Also lost ones that nothing asks for any more
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    operator: OperatorOptions,
}

/// Declare a VM lost, so that nobody waits for it any more
#[derive(Args)]
#[command(after_help = "\
Make sure that it is: if its components still run, they go on without being looked after.

Example: holdfast vm lost web")]
struct Lost {
    /// Its name
    name: String,
    #[command(flatten)]
    waiting: WaitOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::Add(Add { names, cloud, change }) => {
            let vm = |name: &String| EditDocument::AddVm(NewVm { name: name.clone(), cloud: cloud.clone() });
            change.make(names.iter().map(vm).collect())
        }
        Command::Remove(Remove { names, change }) => {
            change.make(names.iter().cloned().map(EditDocument::RemoveVm).collect())
        }
        Command::List(list) => show_list(list),
        Command::Drain(arguments) => apply::drain(arguments, true),
        Command::Undrain(arguments) => apply::drain(arguments, false),
        Command::Lost(Lost { name, waiting }) => {
            waiting.ask(&Operator::new(&waiting.operator)?, &format!("/v1/vms/{}/lost", segment(name)), &())
        }
    }
}

fn show_list(List { all, operator: options }: &List) -> Result<Ending, Failure> {
    let operator = Operator::new(options)?;
    let mut vms: Vec<Vm> = operator.get("/v1/vms")?;
    let past = if *all { BTreeSet::new() } else { past(&operator, &vms)? };
    vms.retain(|vm| !past.contains(&vm.name));
    let drained = all_drained(&operator);
    let row = |vm: &Vm| Row { drained: drained.contains(&vm.name), vm: vm.clone() };
    let left_out = match past.len() {
        0 => String::new(),
        1 => "1 lost VM that nothing asks for any more is not shown (--all shows it)\n".into(),
        many => format!("{many} lost VMs that nothing asks for any more are not shown (--all shows them)\n"),
    };
    screen::show(options.json, &vms.iter().map(row).collect::<Vec<_>>(), || shown(&vms, &drained) + &left_out)?;
    Ok(Ending::Done)
}

/// Lost VMs that are a thing of the past: everybody has forgotten them, and their application no longer asks for them. The
/// manager remembers each until another VM takes its name. Of one that belongs to no application nobody knows whether it
/// is still missed.
pub(crate) fn past(operator: &Operator, vms: &[Vm]) -> Result<BTreeSet<String>, Failure> {
    let lost: Vec<&Vm> = vms.iter().filter(|it| it.health == "lost" && it.name.contains('/')).collect();
    if lost.is_empty() {
        return Ok(BTreeSet::new());
    }
    let changes: Vec<RunningChange> = operator.get("/v1/changes")?;
    // Whoever may only look does not see what was applied, and so sees all that was lost.
    let Ok(kept) = operator.get::<Vec<ApplicationRecord>>("/v1/applications") else { return Ok(BTreeSet::new()) };
    if changes.iter().any(|it| it.phase.as_deref() == Some("forget")) {
        return Ok(BTreeSet::new());
    }
    let mut asked_for = BTreeSet::new();
    for ApplicationRecord { name, record, .. } in kept {
        let record: Record = serde_json::from_value(record).map_err(|error| Failure::Record(name, error))?;
        let Expansion { application, vms, .. } = record.expansion;
        asked_for.extend(vms.keys().map(|key| key.scoped(&application).to_string()));
    }
    Ok(lost.into_iter().map(|it| it.name.clone()).filter(|name| !asked_for.contains(name)).collect())
}

/// A VM for programs.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    vm: Vm,
    /// No component is put on it.
    drained: bool,
}

/// The VMs of an application on which nothing is put.
pub(crate) fn drained(record: &Record) -> impl Iterator<Item = String> {
    let application = &record.expansion.application;
    record.draft.inputs.drained.iter().map(|key| key.scoped(application).to_string())
}

/// The drained VMs of all applications, as far as one may see what was applied.
fn all_drained(operator: &Operator) -> BTreeSet<String> {
    let kept: Vec<ApplicationRecord> = operator.get("/v1/applications").unwrap_or_default();
    let records = kept.into_iter().filter_map(|it| serde_json::from_value::<Record>(it.record).ok());
    records.flat_map(|it| drained(&it).collect::<Vec<_>>()).collect()
}

/// VMs for people.
pub(crate) fn shown(vms: &[Vm], drained: &BTreeSet<String>) -> String {
    let row = |vm: &Vm| {
        let mut state = vm.state.clone();
        if vm.leaving {
            state += ", leaving";
        }
        if drained.contains(&vm.name) {
            state += ", drained";
        }
        let components = format!("{} of {} started", vm.started, vm.components);
        [vm.name.clone(), vm.health.clone(), state, components]
    };
    table(["VM", "HEALTH", "STATE", "COMPONENTS"], &vms.iter().map(row).collect::<Vec<_>>())
}
