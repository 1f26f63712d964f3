//! `holdfast component`: the parts of an application.

use crate::{
    Ending,
    change::{ChangeOptions, WaitOptions},
    component_file,
    component_options::ComponentOptions,
    failure::Failure,
    files,
    helping::help,
    moment,
    operator::{Operator, OperatorOptions},
    progress_of_change::told_failure,
    screen,
    table::table,
};
use application::hint;
use clap::{Args, Subcommand};
use cloud_manager::{
    client::{ClientError, segment},
    document::{Component, ComponentDetail, Deaths, EditDocument, NewComponent},
};
use protocol::Strategy;
use std::path::PathBuf;

/// Add, remove, replace, restart and list components, and help those that failed
#[derive(Args)]
#[command(after_help = "Example: holdfast component list")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Add(Box<Add>),
    Remove(Remove),
    Replace(Box<Replace>),
    Restart(Restart),
    Retry(Retry),
    Skip(Skip),
    Logs(Logs),
    List(List),
}

/// Add a component, or all components and bindings of a file
#[derive(Args)]
#[command(after_help = "\
Example: holdfast component add app --on web --import db=sql --bind db=database --start 'exec myapp'")]
struct Add {
    /// Its name
    #[arg(required_unless_present = "file", requires = "on", conflicts_with = "file")]
    name: Option<String>,
    /// A file of components and bindings, in YAML
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    component: ComponentOptions,
    #[command(flatten)]
    change: ChangeOptions,
}

/// Remove components, with all their bindings
#[derive(Args)]
#[command(after_help = "\
Their data stays on their VMs; --delete-data deletes it, too.

Example: holdfast component remove app
         holdfast component remove database --delete-data")]
struct Remove {
    /// Their names
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    change: ChangeOptions,
}

/// Replace a component by a changed one, which takes over its bindings
#[derive(Args)]
#[command(after_help = "\
The new one is like the old one but for what is said here. Under another name it comes first, and
the old one goes when its clients use the new one; under the same name the old one goes first.

Example: holdfast component replace database --with database2 --on data2")]
struct Replace {
    /// Its name
    name: String,
    /// The name of the new one [default: the same]
    #[arg(long, value_name = "NAME")]
    with: Option<String>,
    #[command(flatten)]
    component: ComponentOptions,
    #[command(flatten)]
    change: ChangeOptions,
}

/// Stop components and start them again
#[derive(Args)]
#[command(after_help = "Example: holdfast component restart app")]
struct Restart {
    /// Their names
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    change: ChangeOptions,
}

/// Try the failed operation of a component again
#[derive(Args)]
#[command(after_help = "\
Ends when the component is started or gone, with exit code 1 if an operation fails again.

Example: holdfast component retry app")]
struct Retry {
    /// Its name
    name: String,
    #[command(flatten)]
    waiting: WaitOptions,
}

/// Let the failed operation of a component count as done
#[derive(Args)]
#[command(after_help = "Example: holdfast component skip app")]
struct Skip {
    /// Its name
    name: String,
    #[command(flatten)]
    waiting: WaitOptions,
}

/// Show the end of what a component's operations wrote
#[derive(Args)]
#[command(after_help = "\
Example: holdfast component logs app
         holdfast component logs app --previous")]
struct Logs {
    /// Its name
    name: String,
    /// At most so many bytes
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    bytes: usize,
    /// Of the component that had this name before, and was replaced or removed
    #[arg(long)]
    previous: bool,
    #[command(flatten)]
    operator: OperatorOptions,
}

/// List components
#[derive(Args)]
#[command(after_help = "Example: holdfast component list")]
struct List {
    #[command(flatten)]
    operator: OperatorOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::Add(add) => add.change.make(added(add)?),
        Command::Remove(Remove { names, change }) => {
            change.make(names.iter().cloned().map(EditDocument::RemoveComponent).collect())
        }
        Command::Replace(replace) => replaced(replace),
        Command::Restart(Restart { names, change }) => {
            change.make(names.iter().cloned().map(EditDocument::RestartComponent).collect())
        }
        Command::Retry(Retry { name, waiting }) => help(waiting, name, "retry"),
        Command::Skip(Skip { name, waiting }) => help(waiting, name, "skip"),
        Command::Logs(logs) => show_logs(logs),
        Command::List(List { operator }) => {
            let components: Vec<Component> = Operator::new(operator)?.get("/v1/components")?;
            screen::show(operator.json, &components, || shown(&components))?;
            Ok(Ending::Done)
        }
    }
}

fn show_logs(Logs { name, bytes, previous, operator: options }: &Logs) -> Result<Ending, Failure> {
    let operator = Operator::new(options)?;
    let which = if *previous { "&previous=true" } else { "" };
    let log = match operator.text(&format!("/v1/components/{}/logs?bytes={bytes}{which}", segment(name))) {
        Err(Failure::Manager(ClientError::Refused(404, problems))) => {
            let all: Vec<Component> = operator.get("/v1/components")?;
            // One that is there has written nothing yet.
            return Err(match all.iter().any(|it| it.name == *name) {
                true => Failure::Manager(ClientError::Refused(404, problems)),
                false => Failure::Usage(problems.error + &hint(name, all.iter().map(|it| it.name.as_str()))),
            });
        }
        log => log?,
    };
    // What a check wrote is in no log, and is part of the reason.
    let all: Vec<Component> = operator.get("/v1/components")?;
    let failed = all.iter().find(|it| it.name == *name && it.failed_operation.is_some());
    let failure = failed.and_then(|it| it.failure.as_deref());
    // The log says how it ended each time; its oldest part may be gone.
    let deaths = all.iter().find(|it| it.name == *name && !it.leaving).and_then(|it| it.deaths);
    let document = serde_json::json!({ "component": name, "log": log, "failure": failure, "deaths": deaths });
    let mut below = deaths.map(|it| format!("{}\n", told_deaths(name, &it))).unwrap_or_default();
    below += &failed.map(|it| format!("✗ {}", told_failure(it))).unwrap_or_default();
    // What was written last may lack its end of line.
    let end = if log.is_empty() || log.ends_with('\n') || below.is_empty() { "" } else { "\n" };
    screen::show(options.json, &document, || log + end + &screen::coloured(&below))?;
    Ok(Ending::Done)
}

fn added(add: &Add) -> Result<Vec<EditDocument>, Failure> {
    if let Some(path) = &add.file {
        if !add.component.is_empty() {
            return Err(Failure::Usage(
                "--file says everything about its components (leave the other options away)".into(),
            ));
        }
        return component_file::read(path, &files::read(path)?);
    }
    let mut component = NewComponent { name: add.name.clone().unwrap_or_default(), ..NewComponent::default() };
    add.component.describe(&mut component);
    let mut edits = add.component.bindings(&component).map_err(Failure::Usage)?;
    edits.insert(0, EditDocument::AddComponent(component));
    Ok(edits)
}

fn replaced(replace: &Replace) -> Result<Ending, Failure> {
    let operator = Operator::new(&replace.change.waiting.operator)?;
    let path = format!("/v1/components/{}", segment(&replace.name));
    let detail: ComponentDetail = operator.get(&path)?;
    let mut component: NewComponent = operator.get(&format!("{path}/definition"))?;
    component.name = replace.with.clone().unwrap_or_else(|| replace.name.clone());
    replace.component.describe(&mut component);
    let mut edits = replace.component.bindings(&component).map_err(Failure::Usage)?;
    let rebound: Vec<String> = replace.component.bound_imports();
    let name = component.name.clone();
    edits.insert(0, EditDocument::AddComponent(component));
    edits.insert(0, EditDocument::RemoveComponent(replace.name.clone()));
    // What is on its way out already goes with the old one.
    let kept = detail.borrows.iter().filter(|it| !it.leaving && !rebound.contains(&it.import));
    edits.extend(kept.map(|it| EditDocument::Bind(format!("{name}.{} → {}.{}", it.import, it.provider, it.export))));
    let clients = detail.lends.iter().filter(|it| !it.leaving);
    edits.extend(clients.map(|it| EditDocument::Bind(format!("{}.{} → {name}.{}", it.client, it.import, it.export))));
    let usual = if name == replace.name { Strategy::DownThenUp } else { Strategy::UpThenDown };
    replace.change.make_by(usual, edits)
}

/// Components for people. Who died is told only where somebody did.
pub(crate) fn shown(components: &[Component]) -> String {
    let row = |it: &Component| {
        let state = match &it.failed_operation {
            Some(operation) => format!("failed to {operation}"),
            None => it.state.to_string(),
        };
        let leaving = if it.leaving { ", leaving" } else { "" };
        let since = it.since_ms.map(moment::date_and_time).unwrap_or_default();
        [it.name.clone(), it.vm.clone(), format!("{state}{leaving}"), since, it.waits_for.join(", ")]
    };
    let heading = ["COMPONENT", "VM", "STATE", "SINCE (UTC)", "WAITS FOR"];
    if components.iter().all(|it| it.deaths.is_none()) {
        return table(heading, &components.iter().map(row).collect::<Vec<_>>());
    }
    let row = |it: &Component| {
        let [name, vm, state, since, waits] = row(it);
        let died = it.deaths.map(|it| {
            let last = moment::date_and_time(it.last_at_ms);
            if it.times == 1 { format!("once, {last}") } else { format!("{} times, last {last}", it.times) }
        });
        [name, vm, state, since, died.unwrap_or_default(), waits]
    };
    let heading = [heading[0], heading[1], heading[2], heading[3], "DIED (UTC)", heading[4]];
    table(heading, &components.iter().map(row).collect::<Vec<_>>())
}

/// How often a component ended by itself, in one sentence.
pub(crate) fn told_deaths(name: &str, deaths: &Deaths) -> String {
    let (first, last) = (moment::date_and_time(deaths.first_at_ms), moment::date_and_time(deaths.last_at_ms));
    match deaths.times {
        1 => format!("{name} died once, at {last} UTC"),
        many => format!("{name} died {many} times since {first} UTC, last at {last} UTC"),
    }
}
