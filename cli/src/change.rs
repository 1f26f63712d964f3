//! Submitting a change: what all commands that change something share.

use crate::{
    Ending,
    failure::Failure,
    operator::{Operator, OperatorOptions},
    rendering::change_progress,
    rendering::plan,
    rendering::screen,
    rendering::tiers::Tiers,
};
use clap::Args;
use cloud_manager::document::{Accepted, EditDocument, NewChange, Plan};
use protocol::Strategy;

/// Options of a change.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChangeOptions {
    /// Order of additions and removals: down-then-up, up-then-down or together
    #[arg(long, value_name = "ORDER")]
    strategy: Option<Strategy>,
    /// Accept imports without providers; their components wait
    #[arg(long)]
    incomplete: bool,
    /// Change nothing; show what the change would lead to
    #[arg(long)]
    dry_run: bool,
    // Most changes have nothing to do with data; what is refused names the option that permits it.
    /// Delete the data of components and VMs that are removed
    #[arg(long, hide = true)]
    delete_data: bool,
    /// Let this component start without its data, which is on another VM; can be repeated
    #[arg(long, hide = true, value_name = "COMPONENT")]
    start_empty: Vec<String>,
    #[command(flatten)]
    pub(crate) waiting: WaitOptions,
}

/// Options for waiting.
#[derive(Args, Clone, Debug)]
pub(crate) struct WaitOptions {
    /// Return at once, with the number of the change
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Show every event of the change, not only those that matter
    #[arg(long, short)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) operator: OperatorOptions,
}

impl ChangeOptions {
    /// Submits these edits, and waits until they are carried out.
    pub(crate) fn make(&self, edits: Vec<EditDocument>) -> Result<Ending, Failure> {
        self.make_by(Strategy::default(), edits)
    }

    /// The same, with another strategy unless the options name one.
    pub(crate) fn make_by(&self, usual: Strategy, edits: Vec<EditDocument>) -> Result<Ending, Failure> {
        let change = NewChange {
            strategy: self.strategy.unwrap_or(usual),
            incomplete: self.incomplete,
            delete_data: self.delete_data,
            start_empty: self.start_empty.clone(),
            rollback_on_failure: false,
            edits,
        };
        let operator = Operator::new(&self.waiting.operator)?;
        if !self.dry_run {
            return self.waiting.ask(&operator, "/v1/changes", &change);
        }
        let plan: Plan = operator.post("/v1/changes?dry-run=true", &change)?;
        screen::show(self.waiting.operator.json, &plan, || screen::coloured(&plan::outcome(&plan)))?;
        Ok(Ending::Done)
    }
}

impl WaitOptions {
    /// For whom the progress of a change is shown.
    pub(crate) fn output(&self) -> change_progress::Output {
        change_progress::Output { json: self.operator.json, verbose: self.verbose }
    }

    /// Sends a request that becomes a change, and waits until it is carried out, unless the options say otherwise.
    pub(crate) fn ask(
        &self,
        operator: &Operator,
        path: &str,
        document: &impl serde::Serialize,
    ) -> Result<Ending, Failure> {
        if !self.no_wait {
            let accepted = operator.post(path, document)?;
            return change_progress::wait(operator, &accepted, self.output(), Tiers::default());
        }
        let accepted: Accepted = operator.post(path, document)?;
        screen::show(self.operator.json, &accepted, || {
            let change = accepted.change;
            format!("change {change} accepted (holdfast show {change} follows it)\n")
        })?;
        Ok(Ending::Done)
    }
}
