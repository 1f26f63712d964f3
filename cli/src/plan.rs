//! `holdfast plan`: what an application file would change, and what that would do. Nothing is touched.

use crate::{
    Ending,
    application_file::{FileOptions, ValueOptions, no_secrets},
    applied::{self, Around},
    explore,
    failure::Failure,
    files,
    foresight::{self, Foresight},
    operator::{Operator, OperatorOptions},
    placing::{self, PlacingOptions},
    screen::{self, bold, counted},
    story,
    table::table,
    verdict::Verdict,
};
use application::{
    Choice, Difference, Existing, Expansion, How, Key, Planned, Problem, Problems, SecretTexts, rolling,
};
use clap::Args;
use model_check::explore::Settings;
use planner::plan::TradeOff;
use protocol::{Change, Edit, Name, Strategy};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

/// Lines of each sort.
const LINES_MAX: usize = 40;
/// Rows of the table of costs and disturbances.
const TRADE_OFFS_MAX: usize = 8;

/// Show what an application file would change, and what that would do
#[derive(Args)]
#[command(after_help = "\
Without --from and --live, as if there were nothing yet.

Example: holdfast plan shop.yaml --live
         holdfast plan shop.yaml --from yesterday.yaml --set apps=5")]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileOptions,
    /// As if this file had been applied before
    #[arg(long, value_name = "FILE", conflicts_with = "live")]
    from: Option<PathBuf>,
    /// After what the manager has applied
    #[arg(long)]
    live: bool,
    /// How additions and removals meet: down-then-up, up-then-down or together
    #[arg(long, value_name = "HOW")]
    strategy: Option<Strategy>,
    /// Draw the application before and after, as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Replace components in steps, so that at most so many of a group are out at once
    #[arg(long, value_name = "N")]
    rolling: Option<NonZeroUsize>,
    /// Check every order of events that this could lead to, as far as that is feasible
    #[arg(long)]
    explore: bool,
    /// Where placement is left to the planner: what less disturbance would cost
    #[arg(long)]
    trade_off: bool,
    #[command(flatten)]
    placing: PlacingOptions,
    #[command(flatten)]
    operator: OperatorOptions,
}

/// What an application file would change, and what that would do.
#[derive(Serialize)]
pub(crate) struct Plan {
    application: Name,
    vms: usize,
    components: usize,
    bindings: usize,
    pub(crate) difference: Difference,
    /// Components that stop and start again, and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    restarts: BTreeMap<Key, Vec<String>>,
    /// How many other things are not as they were applied, and stay so.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) left: usize,
    pub(crate) strategy: Strategy,
    /// How many changes lead there.
    steps: usize,
    edits: usize,
    /// What the planner says of the placement, where it was left to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<Choice>,
    /// What less disturbance would cost, if that was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trade_offs: Vec<Row>,
    pub(crate) foresight: Foresight,
    /// What works, but perhaps not as its author thinks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
    /// What came of looking at every order of events, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    explored: Option<serde_json::Value>,
}

/// One choice between cost and disturbance.
#[derive(Serialize)]
struct Row {
    cost: i128,
    stopped: i128,
    proven: bool,
}

impl From<&TradeOff> for Row {
    fn from(TradeOff { cost, stopped, proven }: &TradeOff) -> Self {
        Self { cost: *cost, stopped: *stopped, proven: *proven }
    }
}

/// What is wrong with an application file, for programs.
#[derive(Serialize)]
struct Wrong<'a> {
    problems: Vec<WrongPlace<'a>>,
}

/// One thing that is wrong.
#[derive(Serialize)]
struct WrongPlace<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    says: &'a str,
}

impl<'a> From<&'a Problems> for Wrong<'a> {
    fn from(problems: &'a Problems) -> Self {
        let place = |it: &'a Problem| WrongPlace { file: &it.file, line: it.line, column: it.column, says: &it.says };
        Self { problems: problems.0.iter().map(place).collect() }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    match planned(arguments) {
        Err(Failure::Application(problems)) if arguments.operator.json => {
            screen::print_document(&Wrong::from(&problems))?;
            Ok(Ending::Refuted)
        }
        ending => ending,
    }
}

fn planned(arguments: &Arguments) -> Result<Ending, Failure> {
    let (draft, application) = arguments.file.read()?;
    let (before, around) = match (&arguments.from, arguments.live) {
        (Some(path), _) => {
            let values = ValueOptions::default();
            let (_, before) = values.read(path)?;
            let before = arguments.placing.expand(&before, &Existing::default())?;
            story::one_and_the_same(
                "--from",
                (path, &before.application),
                (Path::new(&draft.main), &application.name),
            )?;
            (Some(before), Around::default())
        }
        (None, true) => {
            let (before, around) = applied::one(&Operator::new(&arguments.operator)?, application.name.as_str())?;
            (before.map(|it| it.found), around)
        }
        (None, false) => (None, Around::default()),
    };
    let existing = Existing { before: before.as_ref(), others: &around.others };
    let after = arguments.placing.expand(&application, &existing)?;
    let rows = match arguments.trade_off {
        true => application.trade_offs(&existing, TRADE_OFFS_MAX).map_err(Failure::Application)?,
        false => Vec::new(),
    };
    let before = before.unwrap_or_else(|| Expansion::empty(after.application.clone()));
    if let Some(path) = &arguments.svg {
        files::write(path, &application::picture(&before, &after))?;
    }
    let ends = match arguments.rolling {
        Some(out_max) => rolling(&before, &after, out_max, &around.out)?,
        None => vec![after.clone()],
    };
    let (mut plan, steps) = Plan::new(&before, &ends, &around, arguments.strategy, BTreeMap::new());
    plan.trade_offs = rows.iter().map(Row::from).collect();
    plan.remarks = application.remarks();
    let refused = !plan.foresight.refused.is_empty();
    let verdict = (arguments.explore && !refused).then(|| {
        let changes = steps.iter().map(|step| step.planned(&around.others, &no_secrets(&after)).change).collect();
        let (_, script) = foresight::scripts(&before, &after, &around, changes);
        explore::search_script(&script, Settings::default())
    });
    plan.explored = verdict.as_ref().map(Verdict::json);
    screen::show(arguments.operator.json, &plan, || {
        let remarks: String = plan.remarks.iter().map(|it| format!("Remark: {it}\n")).collect();
        let told = screen::coloured(&(plan.told(&before, &after) + &remarks));
        let verdict = verdict.as_ref().map(|it| format!("In every order of events: {it}")).unwrap_or_default();
        told + &verdict
    })?;
    // Whoever plans need not be who applies.
    if let Err(Failure::Application(problems)) = draft.look_for_secrets(after.definitions.values()) {
        anstream::eprintln!("It could not be applied from here:\n{problems}");
    }
    // A search that gave up has found nothing wrong.
    let broken = verdict.is_some_and(|it| it.findings.breach.is_some());
    Ok(if refused || broken { Ending::Refuted } else { Ending::Done })
}

/// One change on the way from one expansion to another.
pub(crate) struct Step {
    before: Expansion,
    pub(crate) after: Expansion,
    difference: Difference,
    strategy: Strategy,
    restarts: Vec<Edit>,
}

impl Step {
    fn new(before: &Expansion, after: &Expansion, strategy: Option<Strategy>) -> Self {
        let difference = Difference::between(before, after);
        let strategy = strategy.unwrap_or(difference.usual_strategy(after));
        Self { before: before.clone(), after: after.clone(), difference, strategy, restarts: Vec::new() }
    }

    /// What the manager is asked for.
    pub(crate) fn planned(&self, others: &[Expansion], secrets: &SecretTexts) -> Planned {
        let mut planned = self.difference.planned(&self.before, &self.after, others, self.strategy, secrets);
        planned.change.edits.extend(self.restarts.iter().cloned());
        planned
    }
}

impl Plan {
    /// What leads from one expansion to another, by way of others, and each change on that way.
    pub(crate) fn new(
        before: &Expansion,
        ends: &[Expansion],
        around: &Around,
        strategy: Option<Strategy>,
        restarts: BTreeMap<Key, Vec<String>>,
    ) -> (Self, Vec<Step>) {
        let after = ends.last().unwrap_or(before);
        let begins = iter::once(before).chain(ends);
        let mut steps: Vec<Step> = begins.zip(ends).map(|(one, other)| Step::new(one, other, strategy)).collect();
        if let Some(first) = steps.first_mut() {
            first.restarts = restarts
                .keys()
                .map(|key| Edit::RestartComponent { component: key.scoped(&after.application) })
                .collect();
        }
        let changes = steps.iter().map(|step| step.planned(&around.others, &no_secrets(after)).change);
        let changes: Vec<Change> = changes.filter(|it| !it.edits.is_empty()).collect();
        let mut plan = Self {
            application: after.application.clone(),
            vms: after.vms.len(),
            components: after.components.len(),
            bindings: after.bindings(),
            difference: Difference::between(before, after),
            restarts,
            left: 0,
            strategy: steps.first().map_or_else(Strategy::default, |it| it.strategy),
            steps: steps.len(),
            edits: changes.iter().map(|it| it.edits.len()).sum(),
            placement: after.choice.clone(),
            trade_offs: Vec::new(),
            foresight: match changes.is_empty() {
                // What is only remembered takes no time.
                true => Foresight { seconds: Some(0.0), known: true, ..Foresight::default() },
                false => foresight::foresee(before, after, around, changes),
            },
            remarks: Vec::new(),
            explored: None,
        };
        plan.foresight.refused.extend(unknown_clouds(&plan.difference, after, &around.clouds));
        (plan, steps)
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.difference.is_empty() && self.restarts.is_empty()
    }

    /// For people.
    pub(crate) fn told(&self, before: &Expansion, after: &Expansion) -> String {
        let Self { application, vms, components, bindings, difference, strategy, .. } = self;
        let size =
            format!("{} VMs, {} components, {} bindings", counted(*vms), counted(*components), counted(*bindings));
        let mut text = format!("{}: {size}\n", bold(application.as_str()));
        text += &self.placement.as_ref().map(placing::told).unwrap_or_default();
        if !self.trade_offs.is_empty() {
            let row =
                |it: &Row| [it.cost.to_string(), it.stopped.to_string(), if it.proven { "yes" } else { "no" }.into()];
            text += &table(["COST", "STOPPED", "PROVEN"], &self.trade_offs.iter().map(row).collect::<Vec<_>>());
        }
        if self.is_empty() {
            return text + "Nothing is different.\n" + &self.told_left();
        }
        let place = |key: &Key| after.components.get(key).map(|it| format!(" on {}", it.vm)).unwrap_or_default();
        let line = |what: &str, key: &Key, how: &How| match how {
            How::Added => format!("  + {what}{key}{}\n", place(key)),
            How::Removed => format!("  - {what}{key}\n"),
            How::Replaced(why) => format!("  ± {what}{key} is replaced: {}\n", why.join(", ")),
            How::Adjusted(why) => format!("  ~ {what}{key}: {}\n", why.join(", ")),
        };
        text += &some(difference.vms.iter().map(|(key, how)| line("vm ", key, how)), "VMs");
        text += &some(difference.components.iter().map(|(key, how)| line("", key, how)), "components");
        let again = self.restarts.iter().map(|(key, why)| format!("  ↻ {key} starts again: {}\n", why.join(", ")));
        text += &some(again, "components");
        text += &some(difference.unbound.iter().map(|it| format!("  - {it}\n")), "bindings that go");
        text += &some(difference.bound.iter().map(|it| format!("  + {it}\n")), "bindings that come");
        if !before.vms.is_empty() {
            let unchanged = &difference.unchanged;
            let (vms, components, bindings) = (unchanged.vms, unchanged.components, unchanged.bindings);
            text += &format!(
                "Unchanged: {} VMs, {} components, {} bindings\n",
                counted(vms),
                counted(components),
                counted(bindings)
            );
        }
        text += &match self.steps {
            0 | 1 => format!("Strategy: {strategy}\n"),
            steps => format!("In {steps} steps, one after the other\n"),
        };
        text + &foresight::told(&self.foresight) + &self.told_left()
    }

    /// What is not as it was applied, and stays so.
    pub(crate) fn told_left(&self) -> String {
        let application = &self.application;
        match self.left {
            0 => String::new(),
            1 => format!(
                "1 other thing of {application} is not as asked for; holdfast reconcile {application} mends it\n"
            ),
            left => format!(
                "{} other things of {application} are not as asked for; holdfast reconcile {application} mends them\n",
                counted(left)
            ),
        }
    }
}

/// VMs that come from a cloud of which the manager has not heard.
fn unknown_clouds(difference: &Difference, after: &Expansion, known: &[String]) -> BTreeSet<String> {
    let comes = difference.vms.iter().filter(|(_, how)| matches!(how, How::Added | How::Replaced(_)));
    let clouds = comes.filter_map(|(key, _)| Some((&key.group, after.vms.get(key)?.cloud.as_ref()?)));
    let unknown = clouds.filter(|(_, cloud)| !known.is_empty() && !known.contains(cloud));
    let says = |(group, cloud): (&Name, &String)| {
        format!("vms {group}: there is no cloud {cloud:?} (known: {})", known.join(", "))
    };
    unknown.map(says).collect()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is Serde's")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The first of many lines, and how many there are besides.
fn some(lines: impl Iterator<Item = String>, what: &str) -> String {
    let lines: Vec<String> = lines.collect();
    let mut text: String = lines.iter().take(LINES_MAX).cloned().collect();
    if lines.len() > LINES_MAX {
        text += &format!("    and {} more {what} (--json lists all)\n", lines.len() - LINES_MAX);
    }
    text
}
