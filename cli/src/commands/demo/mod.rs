//! `holdfast demo`: a manager, agents and a shop of real processes on this machine, under traffic, in five acts.
//!
//! Whatever happens (an error, Ctrl-C, the end), nothing of it remains: everything is in one directory of its own, and all
//! that belongs to that directory is ended and removed.

mod acts;
mod leftovers;
mod record;
mod review;
mod shop;
mod simulated;
mod stage;
mod timeline;
mod traffic;

use crate::{Ending, failure::Failure, rendering::screen, service};
use acts::Play;
use clap::Args;
use record::Record;
use stage::Stage;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tokio::signal::unix::{SignalKind, signal};

/// Watch a web shop of real processes get another database, twice, under traffic
///
/// Starts a manager, four agents and a shop on this machine, sends it steady traffic, replaces its database (with a pause,
/// then without), kills an agent, and removes everything again. Takes less than a minute; Ctrl-C cleans up at any moment.
#[derive(Args)]
#[command(after_help = "\
Exit code 0: every promised request was served; 1: one failed, or something is left behind; 130: interrupted.

Example: holdfast demo")]
pub(crate) struct Arguments {
    /// Keep the journals and logs of all programs here, for `holdfast audit` and for inspection
    #[arg(long, value_name = "DIR", conflicts_with = "simulated")]
    keep: Option<PathBuf>,
    /// Start nothing: show a smaller shop in the simulator, and every other possible order of events
    #[arg(long)]
    simulated: bool,
    /// Another seed, another order of events in the simulator
    #[arg(long, value_name = "N", default_value_t = 1, requires = "simulated")]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The manager runs in this process: it logs only errors.
const LOGGED: &str = "error";

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    if arguments.simulated {
        return simulated::run(arguments.seed, arguments.json);
    }
    service::run(LOGGED, perform(arguments))
}

async fn perform(arguments: &Arguments) -> Result<Ending, Failure> {
    if let Some(keep) = &arguments.keep
        && fs::read_dir(keep).is_ok_and(|mut entries| entries.next().is_some())
    {
        return Err(Failure::Taken(keep.clone()));
    }
    let directory = Stage::directory();
    let stop = asked_to_stop();
    tokio::pin!(stop);
    let opened = tokio::select! {
        opened = Stage::open(&directory) => opened.map(Some),
        () = &mut stop => Ok(None),
    };
    let (played, stage) = match opened {
        Ok(Some(stage)) => {
            let played = tokio::select! {
                played = play(arguments, &stage) => played.map(Some),
                () = &mut stop => Ok(None),
            };
            (played, Some(stage))
        }
        Ok(None) => (Ok(None), None),
        Err(failure) => (Err(failure), None),
    };
    // After a failure the files are kept for inspection; after a success they were copied before they were removed.
    let kept = match (&arguments.keep, &stage, &played) {
        (Some(keep), Some(stage), Err(_)) => stage::copy(&stage.data(), keep),
        _ => Ok(()),
    };
    if let Some(stage) = stage {
        stage.close().await;
    }
    let left = clear(&directory).await;
    let Some(mut record) = played? else {
        let text = if left.is_empty() { "interrupted: everything was removed" } else { "interrupted" };
        anstream::eprintln!("{text}");
        return Ok(Ending::Interrupted);
    };
    kept?;
    record.left.extend(left);
    if arguments.json {
        screen::print_json(&review::json(&record))?;
    } else {
        screen::print(&review::text(&record))?;
    }
    Ok(if record.is_good() { Ending::Done } else { Ending::Refuted })
}

async fn play(arguments: &Arguments, stage: &Stage) -> Result<Record, Failure> {
    let mut play = Play::begin(stage, !arguments.json).await?;
    play.perform(arguments.keep.as_deref()).await?;
    Ok(play.record)
}

/// Ends everything that may be left, and prints what could not be ended.
async fn clear(directory: &Path) -> Vec<String> {
    leftovers::sweep(directory).await;
    let left = leftovers::left(directory);
    for it in &left {
        anstream::eprintln!("left behind: {it}");
    }
    left
}

/// Waits for Ctrl-C, `SIGTERM`, or the end of the terminal.
async fn asked_to_stop() {
    let hung_up = async {
        match signal(SignalKind::hangup()) {
            Ok(mut hangup) => drop(hangup.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = service::asked_to_stop() => {}
        () = hung_up => {}
    }
}
