//! Why a command could not do what it was asked to do.

use cloud_manager::{access::AccessError, applications::PlanError, client::ClientError};
use model_check::{choices::ChoiceError, scenario::ScenarioError, trace::TraceError};
use planner::report::OptimizeError;
use std::{error::Error, io, path::PathBuf};

/// Why a command could not do what it was asked to do. Nothing was changed, unless it says so.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A file could not be read.
    #[error("{}: cannot be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// A file could not be written; what was there before may be gone.
    #[error("{}: cannot be written", .0.display())]
    Write(PathBuf, #[source] io::Error),
    /// What is to be kept would be mixed up with what is there.
    #[error("{}: is not empty (name a new directory)", .0.display())]
    Taken(PathBuf),
    /// A scenario file is not well written. Each problem stands on a line of its own, with its place.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A trace cannot be replayed.
    #[error("{}", .0.display())]
    Trace(PathBuf, #[source] TraceError),
    /// A list of choices does not fit its scenario.
    #[error("--choices")]
    Choices(#[from] ChoiceError),
    /// There is nothing to shorten.
    #[error("{}: breaks no property, so there is nothing to shorten (what a scenario expects is not part of a trace)", .0.display())]
    NothingToShorten(PathBuf),
    /// A problem has no plan, because it cannot be read or asks for what nobody can mean.
    #[error("{}", .0.display())]
    Optimize(PathBuf, #[source] OptimizeError),
    /// The agent could not begin.
    #[error(transparent)]
    Agent(#[from] vm_agent::program::AgentError),
    /// The manager could not begin.
    #[error(transparent)]
    NoManager(#[from] cloud_manager::program::ManagerError),
    /// Something in the hallway: a journal, a link, an identity.
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
    /// The past of a machine cannot be read from its journal.
    #[error(transparent)]
    Past(#[from] cloud_manager::past::PastError),
    /// A component of the demo's shop could not be told of its new providers.
    #[error("{0}: cannot be told of new providers: {1}")]
    NotRebound(std::net::SocketAddr, String),
    /// The demo did not go as it should. What it had started is gone.
    #[error("the demo stopped: {0}")]
    Demo(String),
    /// The operating system does not give what a program needs.
    #[error("{0}")]
    System(&'static str, #[source] io::Error),
    /// There is no access file, or it cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The manager does not answer, or refuses.
    #[error(transparent)]
    Manager(ClientError),
    /// A file of components, or an application file, is not well written. Each problem is told with its place.
    #[error("{0}")]
    Application(application::Problems),
    /// There is no plan.
    #[error(transparent)]
    Plan(PlanError),
    /// What was asked for on the command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The output could not be written.
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            // What is wrong with files is shown as if they had been read here.
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
    /// Whether it is only that nobody reads the output any more.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Tells the person at the screen, with every cause.
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
