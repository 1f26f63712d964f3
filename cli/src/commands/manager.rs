//! `holdfast manager run`: runs the cloud manager until it is stopped.

use crate::Ending;
use crate::failure::Failure;
use crate::service;
use clap::{Args, Subcommand};
use cloud_manager::program::{self, Settings};
use runtime::identity::CERTIFICATE_LIFETIME_S;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The cloud manager.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(RunArguments),
}

/// Runs the manager in the foreground: it keeps everything in its data directory and restarts from there.
///
/// It writes an access file for the operator of this machine into its data directory; with --publish also to the default
/// place, where `holdfast status` and the other commands look for it.
#[derive(Args)]
#[command(after_help = "Example: holdfast manager run --data /var/lib/holdfast/manager --publish")]
struct RunArguments {
    /// Its data directory; created if it does not exist
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Its address for agents; port 0 chooses a free one and keeps it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7400")]
    listen: SocketAddr,
    /// Its address for operators
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7401")]
    api: SocketAddr,
    /// Declare a VM lost after this many seconds of silence (default: only an operator declares it)
    #[arg(long, value_name = "SECONDS")]
    lost_after: Option<u64>,
    /// Lifetime of an agent's certificate; it is renewed after two thirds of that time
    #[arg(long, value_name = "SECONDS", default_value_t = CERTIFICATE_LIFETIME_S)]
    certificate_lifetime: u64,
    /// Also write the access file to the default location, where the other commands look for it
    #[arg(long)]
    publish: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let Command::Run(arguments) = &arguments.command;
    service::run(service::LOGGED, async {
        let program =
            std::env::current_exe().map_err(|error| Failure::System("this program cannot be found", error))?;
        let settings = Settings {
            data: arguments.data.clone(),
            listen: arguments.listen,
            api: arguments.api,
            program,
            certificate_lifetime_s: arguments.certificate_lifetime,
            suspicion_ms_max: arguments.lost_after.map(|seconds| seconds.saturating_mul(1000)),
        };
        let mut running = program::start(settings).await?;
        if arguments.publish {
            let place = cloud_manager::access::Access::default_path()?;
            running.access.write(&place)?;
        }
        println!("agents     {}", running.address);
        println!("operators  {}", running.access.url);
        println!("access     {}", running.access_file.display());
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
