//! Requests about applications: planned by the manager, shown, confirmed, submitted and followed. Every command that
//! changes an application does it this way; `apply` has what each of them requests.

use crate::{
    Ending,
    change::WaitOptions,
    commands::data::DataOptions,
    commands::rollout,
    failure::Failure,
    input::application_file::{check_secrets, secret_texts},
    operator::Operator,
    rendering::change_progress,
    rendering::plan,
    rendering::progress::ProgressLine,
    rendering::screen,
    rendering::tiers::Tiers,
};
use application::ApplicationFiles;
use clap::Args;
use cloud_manager::document::{ApplicationRequest, How, Intent, Plan, PlanningDocument, SecretUse, Submitted};
use protocol::{Name, Strategy};
use std::{
    collections::BTreeMap,
    io::{self, BufRead, IsTerminal, Write},
    num::NonZeroUsize,
};

/// Options of a change.
#[derive(Args, Clone, Debug)]
pub(crate) struct HowOptions {
    /// Order of additions and removals: down-then-up, up-then-down or together [default: chosen automatically]
    #[arg(long, value_name = "ORDER")]
    strategy: Option<Strategy>,
    /// Replace components in steps, so that at most N of a group are down at once
    #[arg(long, value_name = "N")]
    rolling: Option<NonZeroUsize>,
    /// Replace N components first, then wait for holdfast promote
    #[arg(long, value_name = "N")]
    canary: Option<NonZeroUsize>,
    /// With --canary: promote after this many seconds without a failure
    #[arg(long, value_name = "SECONDS", requires = "canary")]
    promote_after: Option<u64>,
    /// Change nothing; show what would be changed, and whether the manager would accept it
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    data: DataOptions,
    /// If an operation of the change fails for good, take the change back
    #[arg(long)]
    rollback_on_failure: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// With placement by the planner: take the best solution after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    time_limit: u64,
    #[command(flatten)]
    pub(crate) waiting: WaitOptions,
}

impl HowOptions {
    /// The options as the API expects them.
    pub(crate) fn document(&self) -> How {
        How {
            strategy: self.strategy,
            rolling: self.rolling,
            canary: self.canary,
            promote_after_s: self.promote_after,
            time_limit_s: Some(self.time_limit),
            delete_data: self.data.delete_data,
            start_empty: self.data.start_empty.clone(),
            rollback_on_failure: self.rollback_on_failure,
            ..How::default()
        }
    }

    /// Shows what a request would change, asks for confirmation, submits it, and waits until it is carried out.
    pub(crate) fn make(&self, mut request: ApplicationRequest) -> Result<Ending, Failure> {
        let operator = Operator::new(&self.waiting.operator)?;
        let json = self.waiting.operator.json;
        let plan = planned(&operator, &request)?;
        // With --json there is one document: the outcome.
        if !json || self.dry_run {
            screen::show(json, &plan, || screen::coloured(&plan::plan(&plan)))?;
        } else {
            anstream::eprint!("{}", plan::left(&plan));
        }
        let changes_nothing = plan.is_empty() && request.intent() != Intent::Remove;
        if changes_nothing && self.dry_run {
            return Ok(Ending::Done);
        }
        if !plan.forecast.refused.is_empty() {
            return Ok(Ending::Refuted);
        }
        let files = if let ApplicationRequest::Apply(it) = &request { Some(it.application.clone()) } else { None };
        if self.dry_run {
            check_secret_texts(&plan, files.as_ref())?;
            if !json {
                screen::print("The manager would accept this. Nothing was changed.\n")?;
            }
            return Ok(Ending::Done);
        }
        if let Some(files) = &files {
            check_secrets(files, plan.secrets.iter().map(|it| &it.secret))?;
        }
        if !self.yes && !changes_nothing && !confirmed()? {
            screen::print("Nothing was changed.\n")?;
            return Ok(Ending::Refuted);
        }
        let how = request.how_mut();
        how.versions = plan.applications.iter().map(|it| (it.application.clone(), it.version)).collect();
        how.secrets = self.texts(&operator, &plan, files.as_ref())?;
        let submitted: Submitted = operator.post(&request.path(), &request)?;
        match submitted.change {
            None => self.nothing_to_do(&plan, &submitted),
            Some(change) if self.waiting.no_wait => self.leave(change, &submitted),
            Some(change) => self.follow(&operator, &plan, change, &submitted),
        }
    }

    /// The texts of secrets to send: fresh ones for a file, otherwise those that the manager lacks.
    fn texts(
        &self,
        operator: &Operator,
        plan: &Plan,
        files: Option<&ApplicationFiles>,
    ) -> Result<BTreeMap<String, String>, Failure> {
        match files {
            Some(files) => secret_texts(files, plan.secrets.iter().map(|it| &it.secret)),
            None => {
                let lacking: Vec<&SecretUse> = plan.secrets.iter().filter(|it| !it.kept).collect();
                let (Some(_), [one]) = (lacking.first(), plan.applications.as_slice()) else {
                    return Ok(BTreeMap::new());
                };
                let kept = rollout::application(operator, &one.application)?.and_then(|it| it.files);
                secret_texts(&kept.unwrap_or_default(), lacking.iter().map(|it| &it.secret))
            }
        }
    }

    /// Says that nothing has to be changed, and which components are not started nevertheless.
    fn nothing_to_do(&self, plan: &Plan, submitted: &Submitted) -> Result<Ending, Failure> {
        let late = &submitted.not_started;
        if self.waiting.operator.json {
            let mut document = serde_json::json!({ "changed": false, "not_started": late });
            let left: usize = plan.applications.iter().map(|it| it.left).sum();
            if left > 0 {
                document["left"] = left.into();
            }
            screen::print_document(&document)?;
        } else {
            let lines: String = late.iter().map(|(name, why)| format!("✗ {name}: {why}\n")).collect();
            screen::print(&screen::coloured(&lines))?;
        }
        Ok(if late.is_empty() { Ending::Done } else { Ending::Refuted })
    }

    fn leave(&self, change: u64, submitted: &Submitted) -> Result<Ending, Failure> {
        screen::show(self.waiting.operator.json, submitted, || {
            format!("change {change} accepted (holdfast show {change} follows it)\n")
        })?;
        Ok(Ending::Done)
    }

    fn follow(&self, operator: &Operator, plan: &Plan, change: u64, submitted: &Submitted) -> Result<Ending, Failure> {
        let output = self.waiting.output();
        let tiers = |step: usize| match plan.applications.as_slice() {
            [one] => Name::new(&one.application)
                .map(|name| Tiers::of(&name, plan.forecast.moments.iter().filter(|it| it.step == step)))
                .unwrap_or_default(),
            _ => Tiers::default(),
        };
        let accepted = cloud_manager::document::Accepted { change, events_after: submitted.events_after };
        let ending = match (submitted.steps, plan.applications.as_slice()) {
            (2.., [one]) => rollout::follow(operator, &one.application, &accepted, output, &tiers)?,
            _ => change_progress::wait(operator, &accepted, output, tiers(0))?,
        };
        for (name, version) in &submitted.versions {
            // A change is also done when another has overtaken it.
            let is = rollout::application(operator, name).ok().map(|it| it.map_or(0, |it| it.version));
            if is.is_some_and(|is| is != *version) {
                anstream::eprintln!(
                    "application {name} was changed in the meantime, and now follows that change (holdfast history)"
                );
            }
        }
        Ok(ending)
    }
}

/// The plan of a request. While the manager plans, its progress is shown.
pub(crate) fn planned(operator: &Operator, request: &ApplicationRequest) -> Result<Plan, Failure> {
    let path = format!("{}?dry-run=true", request.path());
    let mut line = ProgressLine::new();
    let plan = operator.post_watched(&path, request, "/v1/planning", |running: Vec<PlanningDocument>| {
        let about = request.intent().to_string();
        let Some(it) = running.iter().find(|it| it.about == about && it.goal.is_some()) else { return };
        line.show(|| {
            let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".into());
            let (goal, best, bound) = (it.goal.unwrap_or_default(), said(&it.best), said(&it.bound));
            format!("goal {goal}: best so far {best}, proven bound {bound}")
        });
    });
    line.done();
    plan
}

/// In a dry run, checks that the required secrets are available here.
fn check_secret_texts(plan: &Plan, files: Option<&ApplicationFiles>) -> Result<(), Failure> {
    match files {
        Some(files) => check_secrets(files, plan.secrets.iter().map(|it| &it.secret)),
        None => Ok(()),
    }
}

/// Asks for confirmation. Without a terminal, `--yes` is required.
pub(crate) fn confirmed() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage("stdin is not a terminal; pass --yes to confirm".into()));
    }
    screen::print("Apply these changes? [y/N] ")?;
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}
