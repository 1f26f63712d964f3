//! `holdfast plan`: what an application file would change, and what that would do. Nothing is touched.

use crate::{
    Ending,
    application_file::{FileOptions, Record, ValueOptions, no_secrets},
    failure::Failure,
    foresight::{self, Foresight},
    operator::{Operator, OperatorOptions},
    placing::{self, PlacingOptions},
    screen::{self, bold, counted},
    table::table,
};
use clap::Args;
use cloud_manager::document::ApplicationRecord;
use deploy::{Choice, Difference, Expansion, How, Surroundings};
use planner::plan::TradeOff;
use protocol::{Change, Strategy};
use serde::Serialize;
use std::path::PathBuf;

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
    application: protocol::Name,
    vms: usize,
    components: usize,
    bindings: usize,
    pub(crate) difference: Difference,
    pub(crate) strategy: Strategy,
    wishes: usize,
    /// What the planner says of the placement, where it was left to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<Choice>,
    /// What less disturbance would cost, if that was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trade_offs: Vec<Row>,
    pub(crate) foresight: Foresight,
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

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let (_, application) = arguments.file.read()?;
    let (before, others) = match (&arguments.from, arguments.live) {
        (Some(path), _) => {
            let values = ValueOptions::default();
            let (_, before) = values.read(path)?;
            (Some(arguments.placing.expand(&before, &Surroundings::default())?), Vec::new())
        }
        (None, true) => {
            let (before, others) = applied(&Operator::new(&arguments.operator)?, application.name.as_str())?;
            (before.map(|it| it.expansion), others)
        }
        (None, false) => (None, Vec::new()),
    };
    let surroundings = Surroundings { before: before.as_ref(), others: &others };
    let after = arguments.placing.expand(&application, &surroundings)?;
    let rows = match arguments.trade_off {
        true => application.trade_offs(&surroundings, TRADE_OFFS_MAX).map_err(Failure::Application)?,
        false => Vec::new(),
    };
    let before = before.unwrap_or_else(|| Expansion::empty(after.application.clone()));
    let (mut plan, _) = Plan::new(&before, &after, &others, arguments.strategy);
    plan.trade_offs = rows.iter().map(Row::from).collect();
    screen::show(arguments.operator.json, &plan, || screen::coloured(&plan.told(&before, &after)))?;
    Ok(if plan.foresight.refused.is_empty() { Ending::Done } else { Ending::Refuted })
}

/// What the manager has of an application, and of all others.
pub(crate) fn applied(operator: &Operator, name: &str) -> Result<(Option<Record>, Vec<Expansion>), Failure> {
    let kept: Vec<ApplicationRecord> = operator.get("/v1/applications")?;
    let (mut own, mut others) = (None, Vec::new());
    for ApplicationRecord { name: kept, record } in kept {
        let read = serde_json::from_value::<Record>(record).map_err(|error| Failure::Record(kept.clone(), error))?;
        if kept == name {
            own = Some(read);
        } else {
            others.push(read.expansion);
        }
    }
    Ok((own, others))
}

impl Plan {
    /// What leads from one expansion to another, and the change without secrets.
    pub(crate) fn new(
        before: &Expansion,
        after: &Expansion,
        others: &[Expansion],
        strategy: Option<Strategy>,
    ) -> (Self, Change) {
        let difference = Difference::between(before, after);
        let strategy = strategy.unwrap_or(difference.usual_strategy(after));
        let change = difference.planned(before, after, others, strategy, &no_secrets(after)).change;
        let foresight = match change.wishes.is_empty() {
            true => Foresight::default(),
            false => foresight::foresee(before, after, others, change.clone()),
        };
        let plan = Self {
            application: after.application.clone(),
            vms: after.vms.len(),
            components: after.components.len(),
            bindings: after.bindings(),
            difference,
            strategy,
            wishes: change.wishes.len(),
            placement: after.choice.clone(),
            trade_offs: Vec::new(),
            foresight,
        };
        (plan, change)
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
        if difference.is_empty() {
            return text + "Nothing is different.\n";
        }
        let place =
            |key: &deploy::Key| after.components.get(key).map(|it| format!(" on {}", it.vm)).unwrap_or_default();
        let line = |what: &str, key: &deploy::Key, how: &How| match how {
            How::Added => format!("  + {what}{key}{}\n", place(key)),
            How::Removed => format!("  - {what}{key}\n"),
            How::Replaced(why) => format!("  ± {what}{key} is replaced: {}\n", why.join(", ")),
            How::Adjusted(why) => format!("  ~ {what}{key}: {}\n", why.join(", ")),
        };
        text += &some(difference.vms.iter().map(|(key, how)| line("vm ", key, how)), "VMs");
        text += &some(difference.components.iter().map(|(key, how)| line("", key, how)), "components");
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
        text += &format!("Strategy: {strategy}\n");
        text + &foresight::told(&self.foresight)
    }
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
