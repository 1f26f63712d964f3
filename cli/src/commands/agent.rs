//! `holdfast agent run`: the agent of this machine, until someone says stop. Its components outlive it.

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
/// Stopping the agent stops no component: they are found again when it comes back.
#[derive(Args)]
#[command(after_help = "Example: holdfast agent run --data /var/lib/holdfast/agent --manager 10.0.0.1:7400 \\
           --listen 10.0.0.2:0 --name web1 --token TOKEN")]
struct RunArguments {
    /// Where it keeps everything; made if it is not there
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Where the manager listens for agents
    #[arg(long, value_name = "ADDRESS")]
    manager: SocketAddr,
    /// Where other agents find it; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where other machines reach it, if that is another address; port 0 stands for the one it listens on
    #[arg(long, value_name = "ADDRESS")]
    advertise: Option<SocketAddr>,
    /// With what it joins: `holdfast token create` makes one
    #[arg(long, value_name = "TOKEN", env = "HOLDFAST_TOKEN", hide_env_values = true, requires = "name")]
    token: Option<String>,
    /// What the VM is called
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
                // Whoever does not take its leave in time is left alone: the journal has everything.
                let _ = tokio::time::timeout(Duration::from_secs(5), running.close()).await;
                Ok(Ending::Done)
            }
        }
    })
}
