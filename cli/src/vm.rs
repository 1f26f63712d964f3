//! `holdfast vm`: machines that come and go.

use crate::{
    Ending,
    apply::{self, DrainArguments},
    change::{ChangeOptions, WaitOptions},
    failure::Failure,
    operator::{Operator, OperatorOptions},
    screen,
    table::table,
};
use clap::{Args, Subcommand};
use cloud_manager::{
    client::segment,
    document::{NewVm, Vm, WishDocument},
};

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
The VM stays, and nothing is put on it until holdfast vm undrain or until the file is applied again.

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
            let vm = |name: &String| WishDocument::AddVm(NewVm { name: name.clone(), cloud: cloud.clone() });
            change.make(names.iter().map(vm).collect())
        }
        Command::Remove(Remove { names, change }) => {
            change.make(names.iter().cloned().map(WishDocument::RemoveVm).collect())
        }
        Command::List(List { operator }) => {
            let vms: Vec<Vm> = Operator::new(operator)?.get("/v1/vms")?;
            screen::show(operator.json, &vms, || shown(&vms))?;
            Ok(Ending::Done)
        }
        Command::Drain(arguments) => apply::drain(arguments, true),
        Command::Undrain(arguments) => apply::drain(arguments, false),
        Command::Lost(Lost { name, waiting }) => {
            waiting.ask(&Operator::new(&waiting.operator)?, &format!("/v1/vms/{}/lost", segment(name)), &())
        }
    }
}

/// VMs for people.
pub(crate) fn shown(vms: &[Vm]) -> String {
    let row = |vm: &Vm| {
        let state = if vm.leaving { format!("{}, leaving", vm.state) } else { vm.state.clone() };
        let components = format!("{} of {} started", vm.started, vm.components);
        [vm.name.clone(), vm.health.clone(), state, components]
    };
    table(["VM", "HEALTH", "STATE", "COMPONENTS"], &vms.iter().map(row).collect::<Vec<_>>())
}
