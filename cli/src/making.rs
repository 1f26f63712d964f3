//! How an application is made as it is described: shown, agreed to, asked for, and waited for. All commands that change an
//! application go this way.

use crate::{
    Ending,
    application_file::{Draft, Record},
    applied::{Applied, Around},
    change::WaitOptions,
    drift,
    failure::Failure,
    operator::Operator,
    placing::PlacingOptions,
    plan::Plan,
    progress_of_change, screen,
    tiers::Tiers,
};
use application::{Definition, Existing, Expansion, How, Inputs, Key, Planned, rolling, says_the_same};
use clap::Args;
use cloud_manager::document::{
    ApplicationRecord, Component, EditDocument, Intent, NewChange, NewComponent, NewNeed, NewVm, Prediction, Status,
};
use protocol::{Edit, Name, Strategy};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead, IsTerminal, Write},
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

/// How a change is made.
#[derive(Args, Clone, Debug)]
pub(crate) struct HowOptions {
    /// How additions and removals meet: down-then-up, up-then-down or together [default: as it fits]
    #[arg(long, value_name = "HOW")]
    strategy: Option<Strategy>,
    /// Replace components in steps, so that at most so many of a group are out at once
    #[arg(long, value_name = "N")]
    rolling: Option<NonZeroUsize>,
    /// Change nothing; say what would be changed, and whether the manager would take it
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    pub(crate) placing: PlacingOptions,
    #[command(flatten)]
    pub(crate) waiting: WaitOptions,
}

/// What an application is to become, and from what.
pub(crate) struct Making<'a> {
    /// What was applied before, if anything.
    pub(crate) before: Option<Applied>,
    pub(crate) after: Expansion,
    /// What it was read from; without it, the application is forgotten.
    pub(crate) draft: Option<Draft>,
    pub(crate) around: &'a Around,
    /// Components that are to start again, and why.
    pub(crate) restarts: BTreeMap<Key, Vec<String>>,
    /// Where only some components are mended: what else there is.
    pub(crate) rest: Option<Rest>,
    /// What is done, for the history.
    pub(crate) intent: Intent,
}

/// What is not mended with some components of an application.
pub(crate) struct Rest {
    /// What was applied, which is still to be reached.
    pub(crate) applied: Expansion,
    /// How many things are not as they were applied, and stay so.
    pub(crate) left: usize,
    /// The components that are mended.
    pub(crate) keys: BTreeSet<Key>,
}

impl<'a> Making<'a> {
    /// A whole application.
    pub(crate) fn new(before: Option<Applied>, after: Expansion, draft: Option<Draft>, around: &'a Around) -> Self {
        Self { before, after, draft, around, restarts: BTreeMap::new(), rest: None, intent: Intent::Apply }
    }
}

impl HowOptions {
    /// Makes an application as files that the manager kept describe it, perhaps with other inputs.
    pub(crate) fn make_again(
        &self,
        operator: &Operator,
        before: Applied,
        draft: Draft,
        around: &Around,
        intent: Intent,
    ) -> Result<Ending, Failure> {
        let application = draft.read()?;
        let existing = Existing { before: Some(&before.found), others: &around.others };
        let after = self.placing.expand(&application, &existing)?;
        self.make(operator, Making { intent, ..Making::new(Some(before), after, Some(draft), around) })
    }

    /// Shows what will be changed, asks, and has it made.
    pub(crate) fn make(&self, operator: &Operator, making: Making<'_>) -> Result<Ending, Failure> {
        let Making { before, after, draft, around, restarts, rest, intent } = making;
        let intent = if draft.is_none() { Intent::Remove } else { intent };
        let json = self.waiting.operator.json;
        let nothing = Expansion::empty(after.application.clone());
        let then = before.as_ref().map_or(&nothing, |it| &it.found);
        let ends = match self.rolling {
            Some(out_max) => rolling(then, &after, out_max, &around.out)?,
            None => vec![after.clone()],
        };
        let (mut plan, steps) = Plan::new(then, &ends, around, self.strategy, restarts);
        plan.left = rest.as_ref().map_or(0, |it| it.left);
        // For programs there is one document: what came of it.
        if !json || self.dry_run {
            screen::show(json, &plan, || screen::coloured(&plan.told(then, &after)))?;
        } else {
            anstream::eprint!("{}", plan.told_left());
        }
        let same = |agree: fn(&str, &str) -> bool| match (&before, &draft) {
            (Some(before), Some(draft)) => are_alike(&before.record.draft, draft, agree),
            (before, draft) => before.is_none() && draft.is_none(),
        };
        if plan.is_empty() && self.dry_run {
            return Ok(Ending::Done);
        }
        if plan.is_empty() && same(says_the_same) {
            return self.nothing_to_do(operator, &after.application, rest.as_ref());
        }
        // Something was said that makes no difference now and may make one later: it is kept, and nobody need be asked.
        let only_kept = plan.is_empty() && before.is_some() && draft.is_some();
        if !plan.foresight.refused.is_empty() {
            return Ok(Ending::Refuted);
        }
        // Nobody is asked for secrets of components that stay as they are.
        let comes = |how: &How| matches!(how, How::Added | How::Replaced(_));
        let new = plan.difference.components.iter().filter(|(_, how)| comes(how));
        let new: Vec<&Definition> = new.filter_map(|(key, _)| after.definition_of(key)).collect();
        if let Some(draft) = &draft {
            draft.look_for_secrets(new.iter().copied())?;
        }
        if self.dry_run {
            // The manager knows what nobody wrote into a file. Of several steps it can judge the first.
            let first = steps.first().map(|step| documents(&step.planned(&around.others, &BTreeMap::new()), None));
            let _: Option<Prediction> =
                first.map(|document| operator.post("/v1/changes?dry-run=true", &document)).transpose()?;
            if !json {
                screen::print("The manager would accept this. Nothing was changed.\n")?;
            }
            return Ok(Ending::Done);
        }
        if !self.yes && !only_kept && !agreed()? {
            screen::print("Nothing was changed.\n")?;
            return Ok(Ending::Refuted);
        }
        let secrets = draft.as_ref().map(|draft| draft.secrets(new.into_iter())).transpose()?.unwrap_or_default();
        let mut version = before.as_ref().map_or(Some(0), |it| it.version);
        // What is mended is what was applied, not something to go back from; nor is what made no difference.
        let stays = only_kept || same(|one, other| one == other);
        let previous = before.and_then(|it| if stays { it.record.previous } else { Some(it.record.draft) });
        let name = after.application.to_string();
        let mut ending = Ending::Done;
        for (place, step) in steps.iter().enumerate() {
            let expansion = rest.as_ref().map_or(&step.after, |it| &it.applied);
            let record =
                draft.clone().map(|draft| Record { draft, expansion: expansion.clone(), previous: previous.clone() });
            let record =
                record.map_or(Ok(Value::Null), |record| serde_json::to_value(&record).map_err(io::Error::from))?;
            let replaced = version;
            version = Some(ApplicationRecord::version_of(Some(&record.to_string())));
            let application = ApplicationRecord { name: name.clone(), record, version: replaced, intent: Some(intent) };
            if steps.len() > 1 && !json {
                screen::print(&format!("Step {} of {}\n", place + 1, steps.len()))?;
            }
            let document = documents(&step.planned(&around.others, &secrets), Some(application));
            // Each step waits for the one before; only the last need not be waited for.
            let is_last = place + 1 == steps.len();
            ending = if is_last && self.waiting.no_wait {
                self.waiting.ask(operator, "/v1/changes", &document)?
            } else {
                let accepted = operator.post("/v1/changes", &document)?;
                let tiers =
                    Tiers::of(&step.after.application, plan.foresight.moments.iter().filter(|it| it.step == place));
                let wait = if is_last { progress_of_change::wait } else { progress_of_change::follow };
                wait(operator, &accepted, json, tiers)?
            };
            if ending != Ending::Done {
                break;
            }
        }
        // Whoever lets a VM be used again asks for nothing else.
        let asks_for_all = only_kept && intent != Intent::Undrain;
        if asks_for_all && !self.waiting.no_wait && ending == Ending::Done {
            let late = late(operator, &after.application, rest.as_ref())?;
            // For programs there is one document already.
            if json {
                anstream::eprint!("{}", told_late(&late));
            } else {
                screen::print(&screen::coloured(&told_late(&late)))?;
            }
            ending = if late.is_empty() { Ending::Done } else { Ending::Refuted };
        }
        // A change is also done when another has overtaken it.
        if !self.waiting.no_wait && draft.is_some() && is_overtaken(operator, &name, version) {
            anstream::eprintln!(
                "application {name} was changed by someone else meanwhile: it becomes what they asked for (holdfast history)"
            );
        }
        Ok(ending)
    }
}

/// Whether an application is no longer to be what it was made. Where nobody answers, nobody knows.
fn is_overtaken(operator: &Operator, name: &str, version: Option<u64>) -> bool {
    let kept: Result<Vec<ApplicationRecord>, Failure> = operator.get("/v1/applications");
    kept.is_ok_and(|kept| !kept.iter().any(|it| it.name == name && it.version == version))
}

impl HowOptions {
    /// Says that nothing has to be made; and who is not started nevertheless.
    fn nothing_to_do(&self, operator: &Operator, application: &Name, rest: Option<&Rest>) -> Result<Ending, Failure> {
        let late = late(operator, application, rest)?;
        if self.waiting.operator.json {
            let mut document = serde_json::json!({ "changed": false, "not_started": late });
            if let Some(rest) = rest {
                document["left"] = rest.left.into();
            }
            screen::print_document(&document)?;
        } else {
            screen::print(&screen::coloured(&told_late(&late)))?;
        }
        Ok(if late.is_empty() { Ending::Done } else { Ending::Refuted })
    }
}

/// Components of an application that are not started, although nothing has to be made, and why.
fn late(operator: &Operator, application: &Name, rest: Option<&Rest>) -> Result<BTreeMap<String, String>, Failure> {
    let status: Status = operator.get("/v1/status")?;
    let prefix = format!("{application}/");
    let is_meant = |it: &&Component| {
        let key = it.name.strip_prefix(&prefix).and_then(|it| it.parse::<Key>().ok());
        key.is_some_and(|key| rest.is_none_or(|rest| rest.keys.contains(&key)))
    };
    // As long as a change goes on, whoever has not failed may still come.
    let is_quiet = status.changes.iter().all(|it| !it.stuck_on.is_empty());
    let is_late = |it: &&Component| it.failed_operation.is_some() || is_quiet;
    let late = status.components.iter().filter(is_meant).filter(is_late);
    Ok(late.filter_map(|it| Some((it.name.clone(), drift::not_started(it)?))).collect())
}

fn told_late(late: &BTreeMap<String, String>) -> String {
    late.iter().map(|(name, why)| format!("✗ {name}: {why}\n")).collect()
}

/// Whether two descriptions are alike, wherever their files are, if their texts agree.
fn are_alike(one: &Draft, other: &Draft, agree: fn(&str, &str) -> bool) -> bool {
    let texts = |draft: &Draft| {
        let folder = Path::new(&draft.main).parent().unwrap_or(Path::new("")).to_owned();
        // The main file may have another name, too.
        let place = |file: &String| match *file == draft.main {
            true => PathBuf::new(),
            false => Path::new(file).strip_prefix(&folder).unwrap_or(Path::new(file)).to_owned(),
        };
        draft.files.iter().map(|(file, text)| (place(file), text.clone())).collect::<BTreeMap<_, _>>()
    };
    let inputs = |draft: &Draft| {
        let nameless = draft.inputs.values_files.iter().map(|(_, text)| (String::new(), text.clone())).collect();
        Inputs { values_files: nameless, ..draft.inputs.clone() }
    };
    let (mine, theirs) = (texts(one), texts(other));
    let agrees = |(file, text): (&PathBuf, &String)| theirs.get(file).is_some_and(|it| agree(text, it));
    inputs(one) == inputs(other) && mine.len() == theirs.len() && mine.iter().all(agrees)
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
    let edit = |edit: &Edit| match edit {
        Edit::AddVm { vm } => EditDocument::AddVm(NewVm { name: vm.to_string(), cloud: cloud(vm) }),
        Edit::RemoveVm { vm } => EditDocument::RemoveVm(vm.to_string()),
        Edit::AddComponent { component, vm, kind } => EditDocument::AddComponent(NewComponent::of(component, vm, kind)),
        Edit::RemoveComponent { component } => EditDocument::RemoveComponent(component.to_string()),
        Edit::RestartComponent { component } => EditDocument::RestartComponent(component.to_string()),
        Edit::SetNeed { component, import, number } => EditDocument::SetNeed(NewNeed {
            component: component.to_string(),
            import: import.to_string(),
            number: *number,
        }),
        Edit::AddBinding(wire) => EditDocument::Bind(wire.to_string()),
        Edit::RemoveBinding(wire) => EditDocument::Unbind(wire.to_string()),
    };
    let change = &planned.change;
    let edits = change.edits.iter().map(edit).collect();
    NewChange { strategy: change.strategy, incomplete: change.incomplete, edits, application }
}
