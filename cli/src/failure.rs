//! Why a command failed.

use cloud_manager::{access::AccessError, applications::PlanError, client::ClientError};
use model_check::{choices::ChoiceError, scenario::ScenarioError, trace::TraceError};
use planner::report::OptimizeError;
use std::{error::Error, io, path::PathBuf};

/// Why a command failed. Nothing was changed, unless it says so.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A file could not be read.
    #[error("{}: cannot be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// A file could not be written; its former content may be lost.
    #[error("{}: cannot be written", .0.display())]
    Write(PathBuf, #[source] io::Error),
    /// Existing files would be mixed with new ones.
    #[error("{}: is not empty (name a new directory)", .0.display())]
    Taken(PathBuf),
    /// A scenario file has errors. Each problem is on its own line, with its place.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A trace cannot be replayed.
    #[error("{}", .0.display())]
    Trace(PathBuf, #[source] TraceError),
    /// A list of choices does not fit its scenario.
    #[error("--choices")]
    Choices(#[from] ChoiceError),
    /// There is nothing to shorten.
    #[error("{}: violates no property, so there is nothing to shorten (what a scenario expects is not part of a trace)", .0.display())]
    NothingToShorten(PathBuf),
    /// A problem has no plan, because it cannot be read or is invalid.
    #[error("{}", .0.display())]
    Optimize(PathBuf, #[source] OptimizeError),
    /// The agent could not start.
    #[error(transparent)]
    Agent(#[from] vm_agent::program::AgentError),
    /// The manager could not start.
    #[error(transparent)]
    NoManager(#[from] cloud_manager::program::ManagerError),
    /// A journal, a link or an identity.
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
    /// The past of a machine cannot be read from its journal.
    #[error(transparent)]
    Past(#[from] cloud_manager::past::PastError),
    /// A component of the demo's shop could not be notified of its new providers.
    #[error("{0}: cannot be notified of new providers: {1}")]
    NotRebound(std::net::SocketAddr, String),
    /// The demo failed. What it had started was removed.
    #[error("the demo stopped: {0}")]
    Demo(String),
    /// The operating system lacks something that a program needs.
    #[error("{0}")]
    System(&'static str, #[source] io::Error),
    /// There is no access file, or it cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The manager does not answer, or refuses.
    #[error(transparent)]
    Manager(ClientError),
    /// A file of components, or an application file, has errors, each with its place.
    #[error("{0}")]
    Application(application::Problems),
    /// There is no plan.
    #[error(transparent)]
    Plan(PlanError),
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// The output could not be written.
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            // Errors in files are shown as if the files had been read here.
            ClientError::Refused(_, problems) if !problems.places.is_empty() => {
                Self::Application(application::Problems(problems.places))
            }
            error => Self::Manager(error),
        }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Files(problems) => Self::Application(problems),
            error => Self::Plan(error),
        }
    }
}

impl Failure {
    /// Whether the only failure is that the output's reader has gone.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Prints it, with every cause.
    pub(crate) fn tell(&self) {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(deeper) = cause {
            text += &format!(": {deeper}");
            cause = deeper.source();
        }
        if let Self::Manager(ClientError::Refused(_, problems)) = self {
            problems.problems.iter().for_each(|problem| text += &format!("\n  {problem}"));
        }
        anstream::eprintln!("{text}");
    }
}
