//! `holdfast apply`, `scale`, `rollback`, `reconcile`, `remove`, and `vm drain`: the requests that they send.

use crate::{Ending, failure::Failure, input::application_file::FileOptions, request::HowOptions};
use clap::Args;
use cloud_manager::document::{
    ApplicationRequest, ApplyRequest, DrainRequest, ReconcileRequest, RemoveRequest, RollbackRequest, ScaleRequest,
};
use std::collections::BTreeMap;

/// Create or change an application as its file describes it
#[derive(Args)]
#[command(after_help = "\
Shows what will be changed and asks for confirmation. Interrupting this does not interrupt the change.

Example: holdfast apply shop.yaml
         holdfast apply shop.yaml --values production.yaml --yes
         holdfast apply shop.yaml --rolling 1 --canary 1")]
pub(crate) struct ApplyArguments {
    #[command(flatten)]
    file: FileOptions,
    #[command(flatten)]
    how: HowOptions,
}

/// Change the number of components of an application
#[derive(Args)]
#[command(after_help = "\
The number applies until the file is applied again.

With --load, the numbers follow from the declared capacity of each component.

Example: holdfast scale app=5
         holdfast scale shop/app=5 shop/cache=2 --yes
         holdfast scale --load 60000 --load virus-scanner=52000")]
pub(crate) struct ScaleArguments {
    /// A component and its new number; with --load, the application, if there are several
    #[arg(required_unless_present = "load", value_name = "COMPONENT=N")]
    counts: Vec<String>,
    /// The load of the application, or of one component
    #[arg(long, value_name = "[COMPONENT=]N")]
    load: Vec<String>,
    #[command(flatten)]
    how: HowOptions,
}

/// Return an application to an earlier version
#[derive(Args)]
#[command(after_help = "\
Every apply, scale, drain and rollback creates a new version; holdfast history --application shop lists them.

Example: holdfast rollback shop
         holdfast rollback shop --to 3")]
pub(crate) struct RollbackArguments {
    /// The application
    application: String,
    /// The version [default: the previous one]
    #[arg(long, value_name = "VERSION")]
    to: Option<u64>,
    #[command(flatten)]
    how: HowOptions,
}

/// Restore applications or single components to what was applied
#[derive(Args)]
#[command(after_help = "\
Adds what is missing, removes what was not requested, and restarts components whose files were changed
or that have a failed operation, all in safe order. For a single component, nothing else is changed.
holdfast check shows the differences.

Example: holdfast reconcile shop
         holdfast reconcile 'shop/database[0]' 'shop/web[3]'")]
pub(crate) struct ReconcileArguments {
    /// Applications or components
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    how: HowOptions,
}

/// Remove an application with all its VMs and components
#[derive(Args)]
#[command(after_help = "\
It is refused while another application uses it, unless --with-users removes that one, too.

Data of its components stays on VMs that joined by themselves. VMs of a cloud take their data with
them, which needs --delete-data.

Example: holdfast remove shop
         holdfast remove shared --with-users
         holdfast remove shop --delete-data")]
pub(crate) struct RemoveArguments {
    /// The application
    application: String,
    /// Also remove the applications that use it
    #[arg(long)]
    with_users: bool,
    #[command(flatten)]
    how: HowOptions,
}

/// A VM to be drained, or to be used again.
#[derive(Args)]
pub(crate) struct DrainArguments {
    /// The VM, such as shop/web[0]
    vm: String,
    #[command(flatten)]
    how: HowOptions,
}

pub(crate) fn apply(arguments: &ApplyArguments) -> Result<Ending, Failure> {
    let application = arguments.file.collect()?;
    let how = arguments.how.document();
    arguments.how.make(ApplicationRequest::Apply(ApplyRequest { application, how }))
}

pub(crate) fn scale(arguments: &ScaleArguments) -> Result<Ending, Failure> {
    let mut request = ScaleRequest { how: arguments.how.document(), ..ScaleRequest::default() };
    match arguments.load.is_empty() {
        true => read_counts(&arguments.counts, &mut request)?,
        false => read_load(arguments, &mut request)?,
    }
    arguments.how.make(ApplicationRequest::Scale(request))
}

fn read_counts(counts: &[String], request: &mut ScaleRequest) -> Result<(), Failure> {
    for text in counts {
        let (key, count) = text.split_once('=').ok_or_else(|| wrong(text, "write it like app=5"))?;
        let count: u32 = count.parse().map_err(|_| wrong(text, "the number of components is a whole number"))?;
        let (application, group) = key.split_once('/').map_or((None, key), |(home, group)| (Some(home), group));
        if let Some(application) = application {
            if request.application.as_ref().is_some_and(|it| it != application) {
                return Err(wrong(text, "scale one application at a time"));
            }
            request.application = Some(application.to_owned());
        }
        request.counts.insert(group.to_owned(), count);
    }
    Ok(())
}

fn read_load(arguments: &ScaleArguments, request: &mut ScaleRequest) -> Result<(), Failure> {
    request.application = match arguments.counts.as_slice() {
        [] => None,
        [name] => Some(name.clone()),
        _ => return Err(Failure::Usage("with --load, name only the application that has the load".into())),
    };
    let mut loads = BTreeMap::new();
    for text in &arguments.load {
        let (component, number) = text.split_once('=').map_or((None, text.as_str()), |(name, it)| (Some(name), it));
        let number: u64 = number.parse().map_err(|_| wrong(text, "a load is a whole number"))?;
        match component {
            Some(component) => drop(loads.insert(component.to_owned(), number)),
            None if request.load.is_none() => request.load = Some(number),
            None => return Err(wrong(text, "the application has one load")),
        }
    }
    if request.load.is_none() {
        return Err(Failure::Usage("give the load of the application, too (--load 60000)".into()));
    }
    request.loads = loads;
    Ok(())
}

pub(crate) fn rollback(arguments: &RollbackArguments) -> Result<Ending, Failure> {
    let how = arguments.how.document();
    let request = RollbackRequest { application: arguments.application.clone(), to: arguments.to, how };
    arguments.how.make(ApplicationRequest::Rollback(request))
}

pub(crate) fn reconcile(arguments: &ReconcileArguments) -> Result<Ending, Failure> {
    let how = arguments.how.document();
    arguments.how.make(ApplicationRequest::Reconcile(ReconcileRequest { names: arguments.names.clone(), how }))
}

pub(crate) fn remove(arguments: &RemoveArguments) -> Result<Ending, Failure> {
    let how = arguments.how.document();
    let RemoveArguments { application, with_users, .. } = arguments;
    let request = RemoveRequest { application: application.clone(), with_users: *with_users, how };
    arguments.how.make(ApplicationRequest::Remove(request))
}

/// Moves all components of a VM elsewhere, or uses it again.
pub(crate) fn drain(arguments: &DrainArguments, away: bool) -> Result<Ending, Failure> {
    let request = DrainRequest { vm: arguments.vm.clone(), how: arguments.how.document() };
    arguments.how.make(if away { ApplicationRequest::Drain(request) } else { ApplicationRequest::Undrain(request) })
}

fn wrong(text: &str, why: &str) -> Failure {
    Failure::Usage(format!("{text}: {why}"))
}
