//! `holdfast component`: the parts of an application.

use crate::{
    Ending,
    change::{ChangeOptions, WaitOptions},
    commands::retry::help,
    failure::Failure,
    input::component_file,
    input::component_options::ComponentOptions,
    input::files,
    input::names,
    operator::{Operator, OperatorOptions},
    rendering,
    rendering::change_progress::failure_text,
    rendering::moment,
    rendering::screen,
    rendering::table::table,
};
use application::hint;
use clap::{Args, Subcommand};
use cloud_manager::{
    client::{ClientError, segment},
    document::{Component, ComponentDetail, Deaths, EditDocument, NewComponent},
};
use protocol::Strategy;
use std::path::PathBuf;

/// Add, remove, replace, restart and list components, and retry or skip failed operations
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
    Show(Show),
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

/// Replace a component by a changed one with the same bindings
#[derive(Args)]
#[command(after_help = "\
The new component is like the old one except for the options given here. With another name it
starts first, and the old one is removed once its clients use the new one; with the same name the
old one is removed first.

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

/// Retry the failed operation of a component
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

/// Mark the failed operation of a component as done
#[derive(Args)]
#[command(after_help = "Example: holdfast component skip app")]
struct Skip {
    /// Its name
    name: String,
    #[command(flatten)]
    waiting: WaitOptions,
}

/// Show the end of the output of a component's operations
#[derive(Args)]
#[command(after_help = "\
Example: holdfast component logs app
         holdfast component logs app --previous")]
struct Logs {
    /// Its name
    name: String,
    /// Maximum number of bytes
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    bytes: usize,
    /// Of the component that had this name before, and was replaced or removed
    #[arg(long)]
    previous: bool,
    #[command(flatten)]
    operator: OperatorOptions,
}

/// Show one component: its state, what it needs and offers, and the end of its output
#[derive(Args)]
#[command(after_help = "Example: holdfast component show 'shop/web[0]'")]
struct Show {
    /// Its name; `web[0]` or `database` is enough where only one can be meant
    name: String,
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
            let operator = Operator::new(&change.waiting.operator)?;
            let names: Result<Vec<String>, Failure> = names.iter().map(|it| names::component(&operator, it)).collect();
            change.make(names?.into_iter().map(EditDocument::RestartComponent).collect())
        }
        Command::Retry(Retry { name, waiting }) => help(waiting, name, "retry"),
        Command::Skip(Skip { name, waiting }) => help(waiting, name, "skip"),
        Command::Show(Show { name, operator }) => show(&Operator::new(operator)?, name, operator.json),
        Command::Logs(logs) => show_logs(logs),
        Command::List(List { operator }) => {
            let components: Vec<Component> = Operator::new(operator)?.get("/v1/components")?;
            screen::show(operator.json, &components, || shown(&components, moment::now_ms()))?;
            Ok(Ending::Done)
        }
    }
}

/// Shows one component with everything around it.
pub(crate) fn show(operator: &Operator, name: &str, json: bool) -> Result<Ending, Failure> {
    let name = names::component(operator, name)?;
    let path = format!("/v1/components/{}", segment(&name));
    let detail: ComponentDetail = operator.get(&path)?;
    // One that has written nothing has no log, and an agent may be out of reach.
    let log = operator.text(&format!("{path}/logs?bytes=4096")).unwrap_or_default();
    let document = serde_json::json!({ "component": detail, "log": log });
    screen::show(json, &document, || screen::coloured(&rendering::component::shown(&detail, &log, moment::now_ms())))?;
    Ok(Ending::Done)
}

fn show_logs(Logs { name, bytes, previous, operator: options }: &Logs) -> Result<Ending, Failure> {
    let operator = Operator::new(options)?;
    let name = &names::component(&operator, name)?;
    let which = if *previous { "&previous=true" } else { "" };
    let log = match operator.text(&format!("/v1/components/{}/logs?bytes={bytes}{which}", segment(name))) {
        Err(Failure::Manager(ClientError::Refused(404, problems))) => {
            let all: Vec<Component> = operator.get("/v1/components")?;
            // The component exists and has written nothing yet.
            return Err(match all.iter().any(|it| it.name == *name) {
                true => Failure::Manager(ClientError::Refused(404, problems)),
                false => Failure::Usage(problems.error + &hint(name, all.iter().map(|it| it.name.as_str()))),
            });
        }
        log => log?,
    };
    // The output of a check is in no log, and is part of the reason.
    let all: Vec<Component> = operator.get("/v1/components")?;
    let failed = all.iter().find(|it| it.name == *name && it.failed_operation.is_some());
    let failure = failed.and_then(|it| it.failure.as_deref());
    // The log says how it ended each time; its oldest part may be gone.
    let deaths = all.iter().find(|it| it.name == *name && !it.leaving).and_then(|it| it.deaths);
    let document = serde_json::json!({ "component": name, "log": log, "failure": failure, "deaths": deaths });
    let mut below = deaths.map(|it| format!("{}\n", deaths_text(name, &it))).unwrap_or_default();
    below += &failed.map(|it| format!("✗ {}", failure_text(it))).unwrap_or_default();
    // The last line may lack its newline.
    let end = if log.is_empty() || log.ends_with('\n') || below.is_empty() { "" } else { "\n" };
    screen::show(options.json, &document, || log + end + &screen::coloured(&below))?;
    Ok(Ending::Done)
}

fn added(add: &Add) -> Result<Vec<EditDocument>, Failure> {
    if let Some(path) = &add.file {
        if !add.component.is_empty() {
            return Err(Failure::Usage("--file describes its components completely (remove the other options)".into()));
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
    // Bindings that are already being removed go with the old component.
    let kept = detail.borrows.iter().filter(|it| !it.leaving && !rebound.contains(&it.import));
    edits.extend(kept.map(|it| EditDocument::Bind(format!("{name}.{} → {}.{}", it.import, it.provider, it.export))));
    let clients = detail.lends.iter().filter(|it| !it.leaving);
    edits.extend(clients.map(|it| EditDocument::Bind(format!("{}.{} → {name}.{}", it.client, it.import, it.export))));
    let usual = if name == replace.name { Strategy::DownThenUp } else { Strategy::UpThenDown };
    replace.change.make_by(usual, edits)
}

/// Renders components. Deaths are a column only if there are any.
pub(crate) fn shown(components: &[Component], now_ms: u64) -> String {
    let row = |it: &Component| {
        let state = match (&it.failed_operation, &it.retrying) {
            (Some(operation), _) => format!("failed to {operation}"),
            (None, Some(retrying)) if retrying.crash_looping => "crash-looping".to_owned(),
            (None, _) => it.state.to_string(),
        };
        let leaving = if it.leaving { ", leaving" } else { "" };
        let since = it.since_ms.map(|at| moment::short(at, now_ms)).unwrap_or_default();
        [it.name.clone(), it.vm.clone(), format!("{state}{leaving}"), since, it.waits_for.join(", ")]
    };
    let heading = ["COMPONENT", "VM", "STATE", "SINCE (UTC)", "WAITS FOR"];
    if components.iter().all(|it| it.deaths.is_none()) {
        return table(heading, &components.iter().map(row).collect::<Vec<_>>());
    }
    let row = |it: &Component| {
        let [name, vm, state, since, waits] = row(it);
        let died = it.deaths.map(|it| {
            let last = moment::short(it.last_at_ms, now_ms);
            if it.times == 1 { format!("once, {last}") } else { format!("{} times, last {last}", it.times) }
        });
        [name, vm, state, since, died.unwrap_or_default(), waits]
    };
    let heading = [heading[0], heading[1], heading[2], heading[3], "DIED (UTC)", heading[4]];
    table(heading, &components.iter().map(row).collect::<Vec<_>>())
}

/// How often a component ended by itself, in one sentence.
pub(crate) fn deaths_text(name: &str, deaths: &Deaths) -> String {
    let (first, last) = (moment::date_and_time(deaths.first_at_ms), moment::date_and_time(deaths.last_at_ms));
    match deaths.times {
        1 => format!("{name} died once, at {last} UTC"),
        many => format!("{name} died {many} times since {first} UTC, last at {last} UTC"),
    }
}
