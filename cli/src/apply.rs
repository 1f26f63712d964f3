//! `holdfast apply`, `scale`, `rollback` and `remove`: making an application as it is described, all by the same way.

use crate::{
    Ending,
    application_file::FileOptions,
    applied,
    failure::Failure,
    making::{HowOptions, Making},
    operator::Operator,
    screen,
};
use application::{Existing, Expansion, Key};
use clap::Args;
use cloud_manager::document::{ApplicationRecord, Intent};
use std::collections::{BTreeMap, BTreeSet};

/// Make an application as its file describes it
#[derive(Args)]
#[command(after_help = "\
Shows what will be changed and asks. Interrupting this does not interrupt the change.

Example: holdfast apply shop.yaml
         holdfast apply shop.yaml --values production.yaml --yes")]
pub(crate) struct ApplyArguments {
    #[command(flatten)]
    file: FileOptions,
    #[command(flatten)]
    how: HowOptions,
}

/// Change how many components there are of what was applied
#[derive(Args)]
#[command(after_help = "\
The number holds until the file is applied again.

With --load, the numbers follow from what each component says it can take.

Example: holdfast scale app=5
         holdfast scale shop/app=5 shop/cache=2 --yes
         holdfast scale --load 60000 --load virus-scanner=52000")]
pub(crate) struct ScaleArguments {
    /// A component and how many there are to be; with --load, the application, if there are several
    #[arg(required_unless_present = "load", value_name = "COMPONENT=N")]
    counts: Vec<String>,
    /// The load of the application, or of one component
    #[arg(long, value_name = "[COMPONENT=]N")]
    load: Vec<String>,
    #[command(flatten)]
    how: HowOptions,
}

/// Make an application as it was before the last apply or scale
#[derive(Args)]
#[command(after_help = "Example: holdfast rollback shop")]
pub(crate) struct RollbackArguments {
    /// The application
    application: String,
    #[command(flatten)]
    how: HowOptions,
}

/// Remove an application with all its VMs and components
#[derive(Args)]
#[command(after_help = "\
It is refused as long as another application uses it, unless those go, too.

Example: holdfast remove shop
         holdfast remove shared --with-users")]
pub(crate) struct RemoveArguments {
    /// The application
    application: String,
    /// Remove the applications that use it, too, each before what it uses
    #[arg(long)]
    with_users: bool,
    #[command(flatten)]
    how: HowOptions,
}

/// A VM to be emptied, or to be used again.
#[derive(Args)]
pub(crate) struct DrainArguments {
    /// The VM, such as shop/web[0]
    vm: String,
    #[command(flatten)]
    how: HowOptions,
}

pub(crate) fn apply(arguments: &ApplyArguments) -> Result<Ending, Failure> {
    let (mut draft, mut application) = arguments.file.read()?;
    let operator = Operator::new(&arguments.how.waiting.operator)?;
    let (before, around) = applied::one(&operator, application.name.as_str())?;
    // What a file says does not bring a machine back into use that somebody is at work on.
    let drained = before.as_ref().map(|it| it.record.draft.inputs.drained.clone()).unwrap_or_default();
    if !drained.is_empty() {
        draft.inputs.drained = drained;
        application = draft.read()?;
    }
    let existing = Existing { before: before.as_ref().map(|it| &it.found), others: &around.others };
    let after = arguments.how.placing.expand(&application, &existing)?;
    draft.inputs.drained.retain(|vm| after.vms.contains_key(vm));
    arguments.how.make(&operator, Making::new(before, after, Some(draft), &around))
}

pub(crate) fn scale(arguments: &ScaleArguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.how.waiting.operator)?;
    if !arguments.load.is_empty() {
        return scale_to_load(arguments, &operator);
    }
    let kept: Vec<ApplicationRecord> = operator.get("/v1/applications")?;
    let mut counts = BTreeMap::new();
    let mut chosen: Option<String> = None;
    for text in &arguments.counts {
        let (key, count) = text.split_once('=').ok_or_else(|| wrong(text, "write it like app=5"))?;
        let count: u32 = count.parse().map_err(|_| wrong(text, "the number of components is a whole number"))?;
        let (application, group) = match key.split_once('/') {
            Some((application, group)) => (application.to_owned(), group),
            None => (home_of(key, &kept).map_err(|why| wrong(text, &why))?, key),
        };
        if chosen.as_ref().is_some_and(|it| *it != application) {
            return Err(wrong(text, "one application at a time"));
        }
        chosen = Some(application);
        counts.insert(group.to_owned(), count);
    }
    let name = chosen.unwrap_or_default();
    let (before, around) = applied::one(&operator, &name)?;
    let before = before.ok_or_else(|| around.no_application(&name))?;
    let mut draft = before.record.draft.clone();
    draft.inputs.counts.extend(counts);
    arguments.how.make_again(&operator, before, draft, &around, Intent::Scale)
}

/// As many components as a load needs.
fn scale_to_load(arguments: &ScaleArguments, operator: &Operator) -> Result<Ending, Failure> {
    let kept: Vec<ApplicationRecord> = operator.get("/v1/applications")?;
    let name = match (arguments.counts.as_slice(), kept.as_slice()) {
        ([name], _) | ([], [ApplicationRecord { name, .. }]) => name,
        _ => return Err(Failure::Usage("with --load, say the one application that has the load".into())),
    };
    let (mut load, mut own) = (None, BTreeMap::new());
    for text in &arguments.load {
        let (component, number) = text.split_once('=').map_or((None, text.as_str()), |(name, it)| (Some(name), it));
        let number: u64 = number.parse().map_err(|_| wrong(text, "a load is a whole number"))?;
        match component {
            Some(component) => drop(own.insert(component.to_owned(), number)),
            None if load.is_none() => load = Some(number),
            None => return Err(wrong(text, "the application has one load")),
        }
    }
    let load = load.ok_or_else(|| Failure::Usage("say the load of the application, too (--load 60000)".into()))?;
    let (before, around) = applied::one(operator, name)?;
    let before = before.ok_or_else(|| around.no_application(name))?;
    let counts =
        before.record.draft.read()?.counts_for(load, &own).map_err(|error| Failure::Usage(error.to_string()))?;
    if !arguments.how.waiting.operator.json {
        let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{name}={count}")).collect();
        screen::print(&format!("A load of {load} needs {}\n", counts.join(" ")))?;
    }
    let mut draft = before.record.draft.clone();
    draft.inputs.counts.extend(counts);
    arguments.how.make_again(operator, before, draft, &around, Intent::Scale)
}

pub(crate) fn rollback(arguments: &RollbackArguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.how.waiting.operator)?;
    let (before, around) = applied::one(&operator, &arguments.application)?;
    let before = before.ok_or_else(|| around.no_application(&arguments.application))?;
    let draft = before.record.previous.clone().ok_or_else(|| Failure::NothingBefore(arguments.application.clone()))?;
    arguments.how.make_again(&operator, before, draft, &around, Intent::Rollback)
}

pub(crate) fn remove(arguments: &RemoveArguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.how.waiting.operator)?;
    let name = &arguments.application;
    let mut leaving = vec![name.clone()];
    if arguments.with_users {
        let status = operator.get("/v1/status")?;
        let all: Vec<Expansion> = applied::all(&operator, &status)?.into_iter().map(|it| it.found).collect();
        leaving = users_first(name, &all);
    }
    let mut ending = Ending::Done;
    for name in leaving {
        let (before, around) = applied::one(&operator, &name)?;
        let before = before.ok_or_else(|| around.no_application(&name))?;
        if !arguments.with_users {
            let users: Vec<String> = users_of(&name, &around.others).map(|it| it.application.to_string()).collect();
            if !users.is_empty() {
                return Err(Failure::InUse { application: name, users: users.join(" and ") });
            }
        }
        let after = Expansion::empty(before.record.expansion.application.clone());
        ending = arguments.how.make(&operator, Making::new(Some(before), after, None, &around))?;
        if ending != Ending::Done {
            break;
        }
    }
    Ok(ending)
}

/// An application after all that use it, directly or not.
fn users_first(name: &str, all: &[Expansion]) -> Vec<String> {
    let (mut seen, mut sorted) = (BTreeSet::new(), Vec::new());
    visit(name, all, &mut seen, &mut sorted);
    sorted
}

fn visit(name: &str, all: &[Expansion], seen: &mut BTreeSet<String>, sorted: &mut Vec<String>) {
    // Where two use each other, the manager has the last word.
    if !seen.insert(name.to_owned()) {
        return;
    }
    for user in users_of(name, all) {
        visit(user.application.as_str(), all, seen, sorted);
    }
    sorted.push(name.to_owned());
}

/// The applications that have something bound to this one, whatever they need of it.
fn users_of<'a>(name: &'a str, all: &'a [Expansion]) -> impl Iterator<Item = &'a Expansion> {
    all.iter().filter(move |user| {
        let mut providers = user.components.values().flat_map(|it| it.bound.values().flatten());
        providers.any(|it| it.application.as_ref().is_some_and(|it| it.as_str() == name))
    })
}

/// Moves all components of a VM elsewhere, or lets them come back.
pub(crate) fn drain(arguments: &DrainArguments, away: bool) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.how.waiting.operator)?;
    let vm = &arguments.vm;
    let key = vm.split_once('/').and_then(|(name, key)| Some((name, key.parse::<Key>().ok()?)));
    let (name, key) =
        key.ok_or_else(|| wrong(vm, "it is no VM of an application (those are called like shop/web[0])"))?;
    let (before, around) = applied::one(&operator, name)?;
    let before = before.ok_or_else(|| around.no_application(name))?;
    let is_drained = before.record.draft.inputs.drained.contains(&key);
    if !before.record.expansion.vms.contains_key(&key) && !is_drained {
        return Err(wrong(vm, "the application has no such VM"));
    }
    let mut draft = before.record.draft.clone();
    let changed = if away { draft.inputs.drained.insert(key) } else { draft.inputs.drained.remove(&key) };
    if !changed && !arguments.how.waiting.operator.json {
        screen::print(&format!("{vm} is {} already.\n", if away { "drained" } else { "in use" }))?;
    }
    if !changed {
        return Ok(Ending::Done);
    }
    let intent = if away { Intent::Drain } else { Intent::Undrain };
    arguments.how.make_again(&operator, before, draft, &around, intent)
}

fn wrong(text: &str, why: &str) -> Failure {
    Failure::Usage(format!("{text}: {why}"))
}

/// The one application that has a component of this name.
fn home_of(group: &str, kept: &[ApplicationRecord]) -> Result<String, String> {
    let has = |it: &&ApplicationRecord| it.record["expansion"]["definitions"].get(group).is_some();
    let homes: Vec<&str> = kept.iter().filter(has).map(|it| it.name.as_str()).collect();
    match homes.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => Err(format!("no application has a component {group}")),
        several => {
            Err(format!("{} have a component {group} (say which: {}/{group}=…)", several.join(" and "), several[0]))
        }
    }
}
