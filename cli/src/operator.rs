//! The operator's line to the manager: which one, and a blocking way to talk to it.
//!
//! Everything the commands know of a running system comes through here, from the API that everybody else uses too.

use crate::failure::Failure;
use clap::Args;
use cloud_manager::{
    access::Access,
    client::{Client, ClientError, Events, StreamItem},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::{sleep, timeout},
};

/// Which manager, and for whom the output is.
#[derive(Args, Clone, Debug)]
pub(crate) struct OperatorOptions {
    /// The manager's access file [default: $HOLDFAST_ACCESS or ~/.config/holdfast/access.json]
    #[arg(long, value_name = "FILE")]
    access: Option<PathBuf>,
    /// For programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// A line to one manager.
pub(crate) struct Operator {
    /// The manager's data directory, if it is on this machine.
    pub(crate) data: Option<PathBuf>,
    client: Client,
    runtime: Runtime,
}

impl Operator {
    /// Reads the access file. Nothing is asked yet.
    pub(crate) fn new(options: &OperatorOptions) -> Result<Self, Failure> {
        let path = options.access.clone().map_or_else(Access::usual_place, Ok)?;
        let access = Access::read(&path)?;
        let client = Client::new(&access)?;
        Ok(Self { data: access.data, client, runtime: Builder::new_current_thread().enable_all().build()? })
    }

    /// Asks for a document.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        Ok(self.runtime.block_on(self.client.get(path))?)
    }

    /// Sends a document and gets another.
    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, document: &impl Serialize) -> Result<T, Failure> {
        Ok(self.runtime.block_on(self.client.post(path, document))?)
    }

    /// Asks for text.
    pub(crate) fn text(&self, path: &str) -> Result<String, Failure> {
        Ok(self.runtime.block_on(self.client.text(path))?)
    }

    /// Asks for several texts, many at a time; the answers come in the same order.
    pub(crate) fn texts(&self, paths: Vec<String>) -> Vec<Result<String, ClientError>> {
        self.runtime.block_on(async {
            let mut answers = BTreeMap::new();
            let mut waiting = JoinSet::new();
            let mut paths = paths.into_iter().enumerate();
            loop {
                while waiting.len() < AT_ONCE_MAX
                    && let Some((place, path)) = paths.next()
                {
                    let client = self.client.clone();
                    waiting.spawn(async move { (place, client.text(&path).await) });
                }
                let Some(answered) = waiting.join_next().await else { break };
                let (place, answer) = answered.expect("a question neither panics nor is called off");
                answers.insert(place, answer);
            }
            answers.into_values().collect()
        })
    }

    /// Deletes something.
    pub(crate) fn delete(&self, path: &str) -> Result<(), Failure> {
        Ok(self.runtime.block_on(self.client.delete(path))?)
    }

    /// Follows the events after a number.
    pub(crate) fn follow(&self, after: u64) -> Following<'_> {
        Following { operator: self, events: None, after, failures: 0 }
    }
}

/// Questions under way at a time.
const AT_ONCE_MAX: usize = 32;
/// How often a stream that broke is begun again before giving up, and the pause before.
const ATTEMPTS_MAX: u32 = 60;
const PAUSE: Duration = Duration::from_secs(1);

/// Events as they come. A stream that breaks is begun again where it was; a manager that restarts is waited for.
pub(crate) struct Following<'a> {
    operator: &'a Operator,
    events: Option<Events>,
    after: u64,
    failures: u32,
}

/// What came of waiting for an event.
pub(crate) enum Heard {
    /// Something has happened, or had happened and is no longer known.
    StreamItem(StreamItem),
    /// Nothing, for as long as one wanted to wait.
    Silence,
    /// The manager does not answer; it is asked again.
    Absent,
}

impl Following<'_> {
    /// Waits for the next event, but no longer than this.
    pub(crate) fn next(&mut self, patience: Duration) -> Result<Heard, Failure> {
        let (client, events, after) = (&self.operator.client, &mut self.events, self.after);
        let heard = self.operator.runtime.block_on(async {
            let events = match events {
                Some(events) => events,
                None => events.insert(client.events(after).await?),
            };
            match timeout(patience, events.next()).await {
                Err(_) => Ok(Some(Heard::Silence)),
                Ok(next) => Ok(next?.map(Heard::StreamItem)),
            }
        });
        match heard {
            Ok(Some(heard)) => {
                self.failures = 0;
                if let Heard::StreamItem(StreamItem::Event(event)) = &heard {
                    self.after = event.number;
                }
                Ok(heard)
            }
            // The manager said no: asking again would not help.
            Err(
                error @ (ClientError::Refused(400..=499, _) | ClientError::Unreadable(..) | ClientError::Access(_)),
            ) => Err(error.into()),
            Err(error) if self.failures >= ATTEMPTS_MAX => Err(error.into()),
            Ok(None) | Err(_) => {
                self.events = None;
                self.failures += 1;
                // A sleep asks for its runtime as soon as it is made.
                self.operator.runtime.block_on(async { sleep(PAUSE).await });
                Ok(Heard::Absent)
            }
        }
    }
}
