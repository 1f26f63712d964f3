//! Runs the command of an operation to its end, under its time limit, and leaves no process behind.

use super::{
    component::Component,
    failure::{Attempt, Failure},
    group::Group,
    output::{self, TAIL_BYTES_MAX},
    process::ProcessMark,
    spawn::{Invocation, Waiting, ending, spawn},
    values,
};
use recipe::{Command, CommandLine, Signal, template::View};
use std::{collections::BTreeMap, fmt, fs, path::Path, time::Duration};
use tokio::{process::Child, time::timeout};

/// Grace for a command that is stopped early.
const GRACE: Duration = Duration::from_secs(2);

/// At most this much of what an `identify` command prints is read.
const IDENTIFY_BYTES_MAX: usize = 64 << 10;

/// What a command is run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Install,
    Announce,
    Configure,
    /// A process that keeps running.
    Start,
    /// A start script, which ends once the component is started.
    StartScript,
    /// Which processes belong to it.
    Identify,
    Check,
    Rebind,
    Stop,
    Purge,
}

impl Step {
    /// Whether the command may write values to the file `$HOLDFAST_VALUES`.
    fn hands_out(self) -> bool {
        matches!(self, Self::Install | Self::Announce | Self::StartScript)
    }

    /// Whether it is part of a run: only a run has imports and the recipe's environment.
    fn is_of_a_run(self) -> bool {
        !matches!(self, Self::Install | Self::Announce | Self::Purge)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Install => "install",
            Self::Announce => "announce",
            Self::Configure => "configure",
            Self::Start | Self::StartScript => "start",
            Self::Identify => "identify",
            Self::Check => "check",
            Self::Rebind => "rebind",
            Self::Stop => "stop",
            Self::Purge => "purge",
        })
    }
}

impl Component {
    /// Runs the command of a step, if there is one, and kills the processes that it leaves behind.
    pub(super) async fn run(&self, step: Step, command: Option<&Command>, view: &View<'_>) -> Result<(), Failure> {
        let Some(command) = command else { return Ok(()) };
        let invocation = self.invocation(step, &command.run, view)?;
        let (waiting, begins) = self.launch(step, &invocation)?;
        let mark_file = self.directory.mark(step);
        waiting.mark.save(&mark_file)?;
        let group = self.group(&waiting.mark);
        let ended = finish(waiting.release().await, &group, Duration::from_millis(command.time_limit_ms)).await;
        group.end_for_certain(Signal::Term, GRACE).await;
        let _ = fs::remove_file(mark_file);
        ended.map_err(|failure| self.with_output(failure.during(step), begins))
    }

    /// Runs a check; its output is kept until the next one.
    pub(super) async fn run_check(&self, invocation: &Invocation, time_limit: Duration) -> Result<(), Failure> {
        self.run_aside(Step::Check, invocation, time_limit, &self.directory.check_output()).await
    }

    /// Runs an `identify` command, and returns what it printed.
    pub(super) async fn run_identify(&self, invocation: &Invocation, limit: Duration) -> Result<String, Failure> {
        let path = self.directory.identify_output();
        self.run_aside(Step::Identify, invocation, limit, &path).await?;
        Ok(output::tail(&self.directory, &path, 0, IDENTIFY_BYTES_MAX))
    }

    /// Runs a command whose output goes to a file of its own, which is emptied first.
    async fn run_aside(
        &self,
        step: Step,
        invocation: &Invocation,
        time_limit: Duration,
        path: &Path,
    ) -> Result<(), Failure> {
        let waiting = spawn(invocation, &self.directory.home(), output::open_aside(path)?)?;
        let mark_file = self.directory.mark(step);
        waiting.mark.save(&mark_file)?;
        let group = self.group(&waiting.mark);
        let ended = finish(waiting.release().await, &group, time_limit).await;
        group.end_for_certain(Signal::Term, GRACE).await;
        let _ = fs::remove_file(mark_file);
        ended.map_err(|failure| failure.with_output(&output::tail(&self.directory, path, 0, TAIL_BYTES_MAX / 4)))
    }

    /// Creates the process of a step, which waits to be released, and returns where its output begins.
    pub(super) fn launch(&self, step: Step, invocation: &Invocation) -> Result<(Waiting, u64), Failure> {
        let (output, begins) = output::open(&self.directory, &step.to_string(), self.serial)?;
        self.shared.watch_output(&self.directory.output());
        Ok((spawn(invocation, &self.directory.home(), output)?, begins))
    }

    /// What to run for this step, with its environment.
    pub(super) fn invocation(&self, step: Step, line: &CommandLine, view: &View<'_>) -> Result<Invocation, Failure> {
        let words = view.words(&format!("{step} command"), line)?;
        let mut environment = BTreeMap::new();
        if step.is_of_a_run() {
            for (variable, template) in &view.recipe.environment {
                let text = view.render(&format!("environment variable {variable}"), template)?;
                environment.insert(variable.clone(), text);
            }
        }
        environment.extend(view.variables());
        environment.insert("HOLDFAST_TASK".into(), self.serial.to_string());
        if step.hands_out() {
            let path = self.directory.values();
            values::clear(&path)?;
            environment.insert("HOLDFAST_VALUES".into(), path.display().to_string());
        }
        let invocation = Invocation { words, environment };
        if step.is_of_a_run() { self.confined(invocation, &view.recipe.confinement) } else { Ok(invocation) }
    }

    /// Kills every command whose task was abandoned, so that none runs twice at the same time.
    pub(super) async fn sweep(&self) {
        for mark_file in self.directory.marks() {
            self.sweep_marked(&mark_file).await;
        }
    }

    /// Kills a check that was abandoned.
    pub(super) async fn sweep_check(&self) {
        for step in [Step::Check, Step::Identify] {
            self.sweep_marked(&self.directory.mark(step)).await;
        }
    }

    async fn sweep_marked(&self, mark_file: &Path) {
        if let Some(mark) = ProcessMark::load(mark_file) {
            self.group(&mark).end_for_certain(Signal::Term, GRACE).await;
        }
        let _ = fs::remove_file(mark_file);
    }

    pub(super) fn group(&self, leader: &ProcessMark) -> Group {
        Group { leader: leader.clone(), home: self.directory.home() }
    }

    pub(super) fn with_output(&self, failure: Failure, begins: u64) -> Failure {
        failure.with_output(&output::tail(&self.directory, &self.directory.output(), begins, TAIL_BYTES_MAX))
    }
}

/// Waits for a command to end, and kills it when the time is over.
pub(super) async fn finish(mut child: Child, group: &Group, time_limit: Duration) -> Result<(), Failure> {
    let Ok(status) = timeout(time_limit, child.wait()).await else {
        // The child is awaited at the same time, so that it does not remain a zombie.
        let (_, _) = tokio::join!(group.end_for_certain(Signal::Term, GRACE), child.wait());
        return Err(Failure::new(format!("timed out after {time_limit:?}")));
    };
    match status.attempt("wait for a process")? {
        status if status.success() => Ok(()),
        status => Err(Failure::new(ending(status))),
    }
}
