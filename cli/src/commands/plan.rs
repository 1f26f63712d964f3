//! `holdfast plan`: what an application file would change, and the effects. Nothing is changed.

use crate::{
    Ending,
    commands::data::DataOptions,
    commands::explore,
    failure::Failure,
    input::application_file::{FileOptions, ValueOptions, check_secrets},
    input::files,
    input::story,
    operator::{Operator, OperatorOptions},
    placing,
    rendering::plan,
    rendering::screen,
    rendering::verdict::Verdict,
    request,
};
use application::{ApplicationFiles, Existing, GroupSettings, Problem, Problems};
use clap::Args;
use cloud_manager::{
    applications::{Present, plan, planning::Limits},
    client::ClientError,
    document::{ApplicationRequest, ApplyRequest, How, Plan, change::default_patience},
};
use model_check::{Line, explore::Settings};
use protocol::Strategy;
use serde::Serialize;
use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Show what an application file would change, and the effects
#[derive(Args)]
#[command(after_help = "\
Compares with the manager's configuration, unless there is no manager or --offline or --from is given.

Example: holdfast plan shop.yaml
         holdfast plan shop.yaml --from yesterday.yaml --set apps=5")]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileOptions,
    /// Plan as if this file had been applied before
    #[arg(long, value_name = "FILE", conflicts_with = "offline")]
    from: Option<PathBuf>,
    /// Plan as if nothing existed yet
    #[arg(long)]
    offline: bool,
    /// Order of additions and removals: down-then-up, up-then-down or together
    #[arg(long, value_name = "ORDER")]
    strategy: Option<Strategy>,
    /// Draw the application before and after, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Replace components in steps, so that at most N of a group are down at once
    #[arg(long, value_name = "N")]
    rolling: Option<NonZeroUsize>,
    /// Show which checks and retries apply to each component group
    #[arg(long)]
    verbose: bool,
    /// Explore every order of events of these changes, as far as that is feasible
    #[arg(long)]
    explore: bool,
    /// With placement by the planner: show the cost of moving fewer components
    #[arg(long)]
    trade_off: bool,
    /// With placement by the planner: take the best solution after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    time_limit: u64,
    #[command(flatten)]
    data: DataOptions,
    #[command(flatten)]
    operator: OperatorOptions,
}

/// A plan, and the result of its exploration.
#[derive(Serialize)]
struct Explored<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    #[serde(skip_serializing_if = "Option::is_none")]
    explored: Option<serde_json::Value>,
}

/// The errors in an application file, as JSON.
#[derive(Serialize)]
struct Wrong<'a> {
    problems: Vec<WrongPlace<'a>>,
}

/// One error.
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
    let files = arguments.file.collect()?;
    let how = How {
        strategy: arguments.strategy,
        rolling: arguments.rolling,
        time_limit_s: Some(arguments.time_limit),
        trade_off: arguments.trade_off,
        delete_data: arguments.data.delete_data,
        start_empty: arguments.data.start_empty.clone(),
        picture: arguments.svg.is_some(),
        script: arguments.explore,
        ..How::default()
    };
    let request = ApplicationRequest::Apply(ApplyRequest { application: files.clone(), how });
    let mut plan = match (&arguments.from, arguments.offline) {
        (Some(path), _) => offline(arguments, &request, Some(path))?,
        (None, true) => offline(arguments, &request, None)?,
        (None, false) => match live(arguments, &request)? {
            Some(plan) => plan,
            None => offline(arguments, &request, None)?,
        },
    };
    if let (Some(path), Some(picture)) = (&arguments.svg, plan.picture.take()) {
        files::write(path, &picture)?;
    }
    let refused = !plan.forecast.refused.is_empty();
    let script = plan.script.take().filter(|_| !refused);
    let script = script.map(serde_json::from_value::<Vec<Line>>).transpose().map_err(std::io::Error::from)?;
    let verdict = script.map(|lines| explore::search_script(&Arc::from(lines), Settings::default()));
    let settings = if arguments.verbose { settings(&files)? } else { String::new() };
    let explored = Explored { plan: &plan, explored: verdict.as_ref().map(Verdict::json) };
    screen::show(arguments.operator.json, &explored, || {
        let remarks: String = plan.remarks.iter().map(|it| format!("Remark: {it}\n")).collect();
        let text = screen::coloured(&(plan::plan(&plan) + &settings + &remarks));
        let verdict = verdict.as_ref().map(|it| format!("In every order of events: {it}")).unwrap_or_default();
        text + &verdict
    })?;
    // The person who plans need not be the one who applies.
    if let Err(Failure::Application(problems)) = check_secrets(&files, plan.secrets.iter().map(|it| &it.secret)) {
        anstream::eprintln!("apply would fail:\n{problems}");
    }
    // A search that stopped early has found nothing wrong.
    let broken = verdict.is_some_and(|it| it.findings.breach.is_some());
    Ok(if refused || broken { Ending::Refuted } else { Ending::Done })
}

/// The checks and retries of each group, with their defaults.
fn settings(files: &ApplicationFiles) -> Result<String, Failure> {
    let application = files.read().map_err(Failure::Application)?;
    let group = |it: GroupSettings| format!("  {}: {}\n    {}\n", it.group, it.check, it.retries.join("\n    "));
    let groups: String = application.settings(default_patience).into_iter().map(group).collect();
    Ok(format!("Checks and retries:\n{groups}"))
}

/// The manager's plan; `None` if no manager is reachable.
fn live(arguments: &Arguments, request: &ApplicationRequest) -> Result<Option<Plan>, Failure> {
    let absent = || {
        if !arguments.operator.json {
            anstream::eprintln!("no manager is reachable, so this is planned as if nothing existed yet");
        }
    };
    let operator = match Operator::new(&arguments.operator) {
        Ok(operator) => operator,
        Err(Failure::Access(_)) if !arguments.operator.is_given() => {
            absent();
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    match request::planned(&operator, request) {
        Err(Failure::Manager(ClientError::Unreachable(..))) => {
            absent();
            Ok(None)
        }
        plan => plan.map(Some),
    }
}

/// The plan as if nothing existed yet, or only one application from a file.
fn offline(arguments: &Arguments, request: &ApplicationRequest, from: Option<&Path>) -> Result<Plan, Failure> {
    let before = from.map(|path| before(arguments, path, request)).transpose()?;
    let present = Present::offline(before);
    let decided = placing::watched(arguments.time_limit, |go_on| plan(request, &present, Limits { go_on }));
    Ok(decided.map_err(Failure::from)?.plan)
}

fn before(
    arguments: &Arguments,
    path: &Path,
    request: &ApplicationRequest,
) -> Result<(ApplicationFiles, application::Expansion), Failure> {
    let files = ValueOptions::default().collect(path)?;
    let application = files.read().map_err(Failure::Application)?;
    let expanded = placing::watched(arguments.time_limit, |go_on| {
        application.expand_within(&Existing::default(), go_on).map_err(Failure::Application)
    })?;
    if let ApplicationRequest::Apply(it) = request {
        let after = it.application.read().map_err(Failure::Application)?;
        let main = Path::new(&it.application.main);
        story::check_same_application("--from", (path, &expanded.application), (main, &after.name))?;
    }
    Ok((files, expanded))
}
