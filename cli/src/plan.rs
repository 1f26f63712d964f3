//! `holdfast plan`: what an application file would change, and what that would do. Nothing is touched.

use crate::{
    Ending,
    application_file::{FileOptions, Record, ValueOptions, no_secrets},
    failure::Failure,
    files,
    foresight::{self, Foresight},
    operator::{Operator, OperatorOptions},
    screen::{self, bold, counted},
};
use clap::Args;
use cloud_manager::document::ApplicationRecord;
use deploy::{Difference, Expansion, How, Surroundings};
use protocol::{Change, Strategy};
use serde::Serialize;
use std::path::PathBuf;

/// Lines of each sort.
const LINES_MAX: usize = 40;

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
    pub(crate) foresight: Foresight,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let (_, application) = arguments.file.read()?;
    let (before, others) = match (&arguments.from, arguments.live) {
        (Some(path), _) => {
            let values = ValueOptions::default();
            let (_, before) = values.read(path)?;
            (Some(before.expand(&Surroundings::default()).map_err(Failure::Application)?), Vec::new())
        }
        (None, true) => {
            let (before, others) = applied(&Operator::new(&arguments.operator)?, application.name.as_str())?;
            (before.map(|it| it.expansion), others)
        }
        (None, false) => (None, Vec::new()),
    };
    let surroundings = Surroundings { before: before.as_ref(), others: &others };
    let after = application.expand(&surroundings).map_err(Failure::Application)?;
    let before = before.unwrap_or_else(|| Expansion::empty(after.application.clone()));
    if let Some(path) = &arguments.svg {
        files::write(path, &deploy::picture(&before, &after))?;
    }
    let (plan, _) = Plan::new(&before, &after, &others, arguments.strategy);
    screen::show(arguments.operator.json, &plan, || screen::coloured(&plan.told(&before)))?;
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
        let strategy = strategy.unwrap_or(difference.usual_strategy());
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
            foresight,
        };
        (plan, change)
    }

    /// For people.
    pub(crate) fn told(&self, before: &Expansion) -> String {
        let Self { application, vms, components, bindings, difference, strategy, .. } = self;
        let size =
            format!("{} VMs, {} components, {} bindings", counted(*vms), counted(*components), counted(*bindings));
        let mut text = format!("{}: {size}\n", bold(application.as_str()));
        if difference.is_empty() {
            return text + "Nothing is different.\n";
        }
        let line = |what: &str, key: &deploy::Key, how: &How| match how {
            How::Added => format!("  + {what}{key}\n"),
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
