//! `holdfast agent run`: runs the agent of this machine until it is stopped. Its components outlive it.

use crate::Ending;
use crate::failure::Failure;
use crate::service;
use clap::{Args, Subcommand};
use runtime::VmName;
use runtime::identity::JoinToken;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use vm_agent::program::{self, Settings};

/// The agent of a machine.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(RunArguments),
}

/// Runs the agent in the foreground. It joins with a token once; from then on its data directory is enough.
///
/// Stopping the agent stops no component: the next agent re-adopts them.
#[derive(Args)]
#[command(after_help = "Example: holdfast agent run --data /var/lib/holdfast/agent --manager 10.0.0.1:7400 \\
           --listen 10.0.0.2:0 --name web1 --token TOKEN")]
struct RunArguments {
    /// Its data directory; created if it does not exist
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The manager's address for agents
    #[arg(long, value_name = "ADDRESS")]
    manager: SocketAddr,
    /// Its address for other agents; port 0 chooses a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Its address as other machines see it, if different; port 0 stands for the port it listens on
    #[arg(long, value_name = "ADDRESS")]
    advertise: Option<SocketAddr>,
    /// The join token, from `holdfast token create`
    #[arg(long, value_name = "TOKEN", env = "HOLDFAST_TOKEN", hide_env_values = true, requires = "name")]
    token: Option<String>,
    /// The name of the VM
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let Command::Run(arguments) = &arguments.command;
    let invitation = match (&arguments.token, &arguments.name) {
        (Some(token), Some(name)) => {
            let token = JoinToken::parse(token)?;
            Some((token, VmName::parse(name)?))
        }
        _ => None,
    };
    let settings = Settings {
        data: arguments.data.clone(),
        manager: arguments.manager,
        invitation,
        listen: arguments.listen,
        advertised: arguments.advertise,
    };
    service::run(service::LOGGED, async {
        let start = program::start(settings);
        let mut running = tokio::select! {
            started = start => started?,
            () = service::asked_to_stop() => return Ok(Ending::Done),
        };
        println!("vm         {} ({})", running.identity.certified().name, running.identity.certified().peer);
        tokio::select! {
            halted = running.halted() => Err(halted.into()),
            () = service::asked_to_stop() => {
                // Peers that do not disconnect in time are dropped: the journal has everything.
                let _ = tokio::time::timeout(Duration::from_secs(5), running.close()).await;
                Ok(Ending::Done)
            }
        }
    })
}
