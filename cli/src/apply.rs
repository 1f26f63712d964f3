//! `holdfast apply`, `scale`, `rollback` and `remove`: making an application as it is described, all by the same way.

use crate::{
    Ending,
    application_file::{Draft, FileOptions, Record},
    change::WaitOptions,
    failure::Failure,
    operator::Operator,
    placing::PlacingOptions,
    plan::{Plan, applied},
    screen,
};
use clap::Args;
use cloud_manager::document::{ApplicationRecord, NewChange, NewComponent, NewNeed, NewVm, Prediction, WishDocument};
use deploy::{Expansion, Planned, Surroundings};
use protocol::{Name, Strategy, Wish};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    io::{self, BufRead, IsTerminal, Write},
};

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
         holdfast scale mail --load 60000 --load virus-scanner=52000")]
pub(crate) struct ScaleArguments {
    /// A component and how many there are to be; with --load, the application
    #[arg(required = true, value_name = "COMPONENT=N")]
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
It is refused as long as another application uses it.

Example: holdfast remove shop")]
pub(crate) struct RemoveArguments {
    /// The application
    application: String,
    #[command(flatten)]
    how: HowOptions,
}

/// How a change is made.
#[derive(Args, Clone, Debug)]
struct HowOptions {
    /// How additions and removals meet: down-then-up, up-then-down or together [default: as it fits]
    #[arg(long, value_name = "HOW")]
    strategy: Option<Strategy>,
    /// Change nothing; say what would be changed, and whether the manager would take it
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    placing: PlacingOptions,
    #[command(flatten)]
    waiting: WaitOptions,
}

pub(crate) fn apply(arguments: &ApplyArguments) -> Result<Ending, Failure> {
    let (draft, application) = arguments.file.read()?;
    let operator = Operator::new(&arguments.how.waiting.operator)?;
    let (before, others) = applied(&operator, application.name.as_str())?;
    let surroundings = Surroundings { before: before.as_ref().map(|it| &it.expansion), others: &others };
    let after = arguments.how.placing.expand(&application, &surroundings)?;
    arguments.how.make(&operator, before, after, Some(draft), &others)
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
    let (before, others) = applied(&operator, &name)?;
    let before = before.ok_or(Failure::NoApplication(name))?;
    let mut draft = before.draft.clone();
    draft.inputs.counts.extend(counts);
    arguments.how.make_again(&operator, before, draft, &others)
}

/// As many components as a load needs.
fn scale_to_load(arguments: &ScaleArguments, operator: &Operator) -> Result<Ending, Failure> {
    let [name] = arguments.counts.as_slice() else {
        return Err(Failure::Usage("with --load, say the one application that has the load".into()));
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
    let (before, others) = applied(operator, name)?;
    let before = before.ok_or_else(|| Failure::NoApplication(name.clone()))?;
    let counts = before.draft.read()?.counts_for(load, &own).map_err(|error| Failure::Usage(error.to_string()))?;
    if !arguments.how.waiting.operator.json {
        let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{name}={count}")).collect();
        screen::print(&format!("A load of {load} needs {}\n", counts.join(" ")))?;
    }
    let mut draft = before.draft.clone();
    draft.inputs.counts.extend(counts);
    arguments.how.make_again(operator, before, draft, &others)
}

pub(crate) fn rollback(arguments: &RollbackArguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.how.waiting.operator)?;
    let (before, others) = applied(&operator, &arguments.application)?;
    let before = before.ok_or_else(|| Failure::NoApplication(arguments.application.clone()))?;
    let draft = before.previous.clone().ok_or_else(|| Failure::NothingBefore(arguments.application.clone()))?;
    arguments.how.make_again(&operator, before, draft, &others)
}

pub(crate) fn remove(arguments: &RemoveArguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.how.waiting.operator)?;
    let (before, others) = applied(&operator, &arguments.application)?;
    let before = before.ok_or_else(|| Failure::NoApplication(arguments.application.clone()))?;
    let after = Expansion::empty(before.expansion.application.clone());
    arguments.how.make(&operator, Some(before), after, None, &others)
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

impl HowOptions {
    /// Makes an application as other files that the manager kept describe it.
    fn make_again(
        &self,
        operator: &Operator,
        before: Record,
        draft: Draft,
        others: &[Expansion],
    ) -> Result<Ending, Failure> {
        let application = draft.read()?;
        let surroundings = Surroundings { before: Some(&before.expansion), others };
        let after = self.placing.expand(&application, &surroundings)?;
        self.make(operator, Some(before), after, Some(draft), others)
    }

    /// Shows what will be changed, asks, and has it made. Without a draft, the application is forgotten.
    fn make(
        &self,
        operator: &Operator,
        before: Option<Record>,
        after: Expansion,
        draft: Option<Draft>,
        others: &[Expansion],
    ) -> Result<Ending, Failure> {
        let json = self.waiting.operator.json;
        let nothing = Expansion::empty(after.application.clone());
        let then = before.as_ref().map_or(&nothing, |it| &it.expansion);
        let (plan, change) = Plan::new(then, &after, others, self.strategy);
        // For programs there is one document: what came of it.
        if !json || self.dry_run {
            screen::show(json, &plan, || screen::coloured(&plan.told(then, &after)))?;
        }
        let same_files = before.as_ref().map(|it| &it.draft) == draft.as_ref();
        if plan.difference.is_empty() && (same_files || self.dry_run) {
            if json && !self.dry_run {
                screen::print_document(&serde_json::json!({ "changed": false }))?;
            }
            return Ok(Ending::Done);
        }
        if !plan.foresight.refused.is_empty() {
            return Ok(Ending::Refuted);
        }
        let clouds = |change, clouds| Planned { change, clouds };
        let planned = plan.difference.planned(then, &after, others, plan.strategy, &BTreeMap::new());
        if self.dry_run {
            // The manager knows what nobody wrote into a file.
            let document = documents(&clouds(change, planned.clouds), None);
            let _: Prediction = operator.post("/v1/changes?dry-run=true", &document)?;
            if !json {
                screen::print("The manager would accept this. Nothing was changed.\n")?;
            }
            return Ok(Ending::Done);
        }
        if !self.yes && !agreed()? {
            screen::print("Nothing was changed.\n")?;
            return Ok(Ending::Refuted);
        }
        let secrets = draft.as_ref().map(|draft| draft.secrets(&after)).transpose()?.unwrap_or_default();
        let planned = plan.difference.planned(then, &after, others, plan.strategy, &secrets);
        let name = after.application.to_string();
        let record = draft.map(|draft| Record { draft, expansion: after, previous: before.map(|it| it.draft) });
        let record = record.map_or(Ok(Value::Null), |record| serde_json::to_value(&record).map_err(io::Error::from))?;
        self.waiting.ask(operator, "/v1/changes", &documents(&planned, Some(ApplicationRecord { name, record })))
    }
}

/// Asks a person. Where there is none, `--yes` has to be said.
fn agreed() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage("nobody can be asked here (say --yes)".into()));
    }
    screen::print("Make it so? [y/N] ")?;
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// A change as the API takes it.
fn documents(planned: &Planned, application: Option<ApplicationRecord>) -> NewChange {
    let cloud = |vm: &Name| planned.clouds.get(vm).cloned();
    let wish = |wish: &Wish| match wish {
        Wish::AddVm { vm } => WishDocument::AddVm(NewVm { name: vm.to_string(), cloud: cloud(vm) }),
        Wish::RemoveVm { vm } => WishDocument::RemoveVm(vm.to_string()),
        Wish::AddComponent { component, vm, kind } => WishDocument::AddComponent(NewComponent::of(component, vm, kind)),
        Wish::RemoveComponent { component } => WishDocument::RemoveComponent(component.to_string()),
        Wish::RestartComponent { component } => WishDocument::RestartComponent(component.to_string()),
        Wish::SetNeed { component, import, number } => WishDocument::SetNeed(NewNeed {
            component: component.to_string(),
            import: import.to_string(),
            number: *number,
        }),
        Wish::AddBinding(wire) => WishDocument::Bind(wire.to_string()),
        Wish::RemoveBinding(wire) => WishDocument::Unbind(wire.to_string()),
    };
    let change = &planned.change;
    let wishes = change.wishes.iter().map(wish).collect();
    NewChange { strategy: change.strategy, incomplete: change.incomplete, wishes, application }
}
