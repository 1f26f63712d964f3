//! The subject of `explore`, `simulate` and `replay`: a scenario, or an application file and its target.

use crate::{failure::Failure, input::application_file::ValueOptions, input::faults::FaultOptions, input::files};
use application::{Difference, Existing, Expansion};
use clap::Args;
use cloud_manager::applications::{forecast, present::masked};
use model_check::{
    Faults, Line, Scenario,
    scenario::{Answer, Changes, Expected},
    simulate::{Timing, always},
};
use protocol::{Edit, Name, Strategy, manager::Request};
use std::path::{Path, PathBuf};

/// A scenario, or an application file and its target.
#[derive(Args, Clone, Debug)]
pub(crate) struct StoryOptions {
    /// The scenario, or an application file (.yaml)
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) change: ChangeOptions,
}

/// The target of an application file, and the strategy.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChangeOptions {
    /// The application file that the first one is changed to, once it is up
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// For application files: order of additions and removals [default: chosen automatically]
    #[arg(long, value_name = "ORDER")]
    strategy: Option<Strategy>,
}

impl StoryOptions {
    /// The scenario, with the faults that the options set, and the durations of operations for a simulation: as the
    /// application file declares them, otherwise random.
    pub(crate) fn read(&self, faults: FaultOptions) -> Result<(Scenario, Timing), Failure> {
        let mut timing = Timing::default();
        if self.is_application() {
            let [before, after] = self.expansions()?;
            let lengths = [&before, &after].into_iter().flat_map(forecast::declared);
            let named = lengths.map(|((name, what), length)| ((own(&after.application, &name), what), always(length)));
            timing.components = named.collect();
            return Ok((self.scenario(&before, &after, faults), timing));
        }
        if self.change.to.is_some() || self.change.strategy.is_some() {
            let says = "--to and --strategy are for application files (.yaml); a scenario states its own changes";
            return Err(Failure::Usage(says.into()));
        }
        Ok((files::scenario(&self.file, faults)?, timing))
    }

    /// The file and its options, to be pasted after a command.
    pub(crate) fn pasted(&self) -> String {
        let to = self.change.to.as_ref().map(|path| format!(" --to {}", path.display())).unwrap_or_default();
        let strategy = self.change.strategy.map(|strategy| format!(" --strategy {strategy}")).unwrap_or_default();
        format!("{}{to}{strategy}", self.file.display())
    }

    /// The applications before and after: without `--to`, nothing and the file.
    fn expansions(&self) -> Result<[Expansion; 2], Failure> {
        let read = |path: &Path, before: Option<&Expansion>| {
            let application = ValueOptions::default().collect(path)?.read().map_err(Failure::Application)?;
            application.expand(&Existing { before, others: &[] }).map_err(Failure::Application)
        };
        let first = read(&self.file, None)?;
        Ok(match &self.change.to {
            None => [Expansion::empty(first.application.clone()), first],
            Some(to) => {
                let after = read(to, Some(&first))?;
                check_same_application("--to", (&self.file, &first.application), (to, &after.application))?;
                [first, after]
            }
        })
    }

    fn scenario(&self, before: &Expansion, after: &Expansion, faults: FaultOptions) -> Scenario {
        let difference = Difference::between(before, after);
        let strategy = self.change.strategy.unwrap_or(difference.usual_strategy(after));
        let change = difference.planned(before, after, &[], strategy, &masked(after)).change;
        let empty = Expansion::empty(before.application.clone());
        let past = Difference::between(&empty, before);
        let past = past.planned(&empty, before, &[], Strategy::Together, &masked(before)).change;
        let (_, lines) = forecast::script(past.edits, vec![change]);
        let lines = lines.iter().map(|line| within(&after.application, line)).collect();
        let faults = faults.over(Faults::default());
        let mut expected = Expected::default();
        if faults.stop_components() {
            // An operator may have to act on failures, and a lost VM cannot be changed.
            (expected.changes, expected.answers) = (Changes::Either, vec![Answer::Either; 2]);
        }
        Scenario { name: after.application.to_string(), lines, faults, expected, ..Scenario::default() }
    }

    fn is_application(&self) -> bool {
        self.file.extension().is_some_and(|it| it == "yaml" || it == "yml")
    }
}

/// Checks that two files describe the same application, as an option that names one of them assumes.
pub(crate) fn check_same_application(
    option: &str,
    (one, its): (&Path, &Name),
    (other, others): (&Path, &Name),
) -> Result<(), Failure> {
    if its == others {
        return Ok(());
    }
    let (one, other) = (one.display(), other.display());
    let says = format!(
        "{one} is application {its}, and {other} is application {others}: {option} needs files of the same application"
    );
    Err(Failure::Usage(says))
}

/// A request without the application's name in front of its components: there is only one application.
fn within(application: &Name, line: &Line) -> Line {
    let mut line = line.clone();
    let Request::Make(change) = &mut line.request else { return line };
    for edit in &mut change.edits {
        let names: &mut [&mut Name] = match edit {
            Edit::AddVm { vm } | Edit::RemoveVm { vm } => &mut [vm],
            Edit::AddComponent { component, vm, .. } => &mut [component, vm],
            Edit::RemoveComponent { component }
            | Edit::RestartComponent { component }
            | Edit::SetNeed { component, .. } => &mut [component],
            Edit::AddBinding(wire) | Edit::RemoveBinding(wire) => &mut [&mut wire.client, &mut wire.provider],
        };
        names.iter_mut().for_each(|name| **name = own(application, name));
    }
    line
}

fn own(application: &Name, name: &Name) -> Name {
    Name::new(&forecast::within(application, name.as_str())).expect("the rest of a name is a name")
}
