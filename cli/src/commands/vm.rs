//! `holdfast vm`: adds, removes, drains and lists VMs.

use crate::{
    Ending,
    change::{ChangeOptions, WaitOptions},
    commands::apply::{self, DrainArguments},
    failure::Failure,
    operator::{Operator, OperatorOptions},
    rendering::screen,
    rendering::table::table,
};
use clap::{Args, Subcommand};
use cloud_manager::{
    client::segment,
    document::{EditDocument, NewVm, Vm},
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
The VM stays, and no component is placed on it until holdfast vm undrain.

Example: holdfast vm drain 'shop/web[0]'")]
    Drain(DrainArguments),
    /// Use a drained VM again
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
    /// The cloud that creates them
    #[arg(long)]
    cloud: Option<String>,
    #[command(flatten)]
    change: ChangeOptions,
}

/// Remove VMs, with all their components
#[derive(Args)]
#[command(after_help = "\
A VM of a cloud takes the data of its components with it, which needs --delete-data.

Example: holdfast vm remove web
         holdfast vm remove data --delete-data")]
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
    /// Also list lost VMs that are no longer needed
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    operator: OperatorOptions,
}

/// Declare a VM lost, so that nothing waits for it any more
#[derive(Args)]
#[command(after_help = "\
Make sure that it really is lost: if its components still run, they continue unmanaged.

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
    let past = vms.iter().filter(|it| it.past && !*all).count();
    vms.retain(|it| *all || !it.past);
    let left_out = match past {
        0 => String::new(),
        1 => "1 lost VM that is no longer needed is not shown (--all shows it)\n".into(),
        many => format!("{many} lost VMs that are no longer needed are not shown (--all shows them)\n"),
    };
    screen::show(options.json, &vms, || shown(&vms) + &left_out)?;
    Ok(Ending::Done)
}

/// Renders VMs.
pub(crate) fn shown(vms: &[Vm]) -> String {
    let row = |vm: &Vm| {
        let marks = [(vm.leaving, "leaving"), (vm.drained, "drained")];
        let marks: Vec<&str> = marks.iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| *mark).collect();
        let components = match vm.components {
            0 => "none".into(),
            components => format!("{} of {components} started", vm.started),
        };
        [vm.name.clone(), vm.health.to_string(), components, marks.join(", ")]
    };
    table(["VM", "HEALTH", "COMPONENTS", ""], &vms.iter().map(row).collect::<Vec<_>>())
}
