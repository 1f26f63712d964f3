//! Why a command could not do what it was asked to do.

use cloud_manager::{access::AccessError, client::ClientError};
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
    /// There is no journal to read.
    #[error("{}: no manager and no agent keeps its journal here (name the directory given to --data)", .0.display())]
    NoDataDirectory(PathBuf),
    /// No journal speaks of that change.
    #[error("{0} was never accepted, or its beginning is kept only as a snapshot")]
    NoSuchChange(protocol::ChangeId),
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
    /// The manager does not answer, or says no.
    #[error(transparent)]
    Manager(#[from] ClientError),
    /// A file of components, or an application file, is not well written. Each problem is told with its place.
    #[error("{0}")]
    Application(application::Problems),
    /// Too many components of a group are out already to replace others of it.
    #[error(transparent)]
    OutAlready(#[from] application::OutAlready),
    /// What the manager keeps of an application was not written by this program.
    #[error("what the manager keeps of application {0} cannot be read (was it applied by another version?)")]
    Record(String, #[source] serde_json::Error),
    /// The manager has no such application.
    #[error("the manager has no application {name}{}", if .hint.is_empty() { " (holdfast apply makes one)" } else { .hint.as_str() })]
    NoApplication {
        /// What it was called.
        name: String,
        /// What was probably meant.
        hint: String,
    },
    /// Others use the application. Nothing was changed.
    #[error("{users} {} application {application} (holdfast remove {application} --with-users removes {users}, too)", if .users.contains(' ') { "use" } else { "uses" })]
    InUse {
        /// What was to go.
        application: String,
        /// Who uses it.
        users: String,
    },
    /// Nobody has said how this component should be.
    #[error(
        "{0} belongs to no application as it was applied, so nobody has said how it should be (holdfast check {0} looks at its machine; holdfast component restart, replace or remove {0} changes it)"
    )]
    NotApplied(String),
    /// A component cannot start without another, which is missing, too. Nothing was changed.
    #[error("{component} needs {provider}, which is missing, too (holdfast reconcile {together})")]
    NeedsMore {
        /// The component.
        component: String,
        /// What it needs.
        provider: String,
        /// All that would have to be mended together.
        together: String,
    },
    /// There is nothing to go back to.
    #[error("application {0} was applied once: there is nothing before that")]
    NothingBefore(String),
    /// What was asked for on the command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The output could not be written.
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
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
