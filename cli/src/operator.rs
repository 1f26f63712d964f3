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
use std::{path::PathBuf, pin::pin, time::Duration};
use tokio::{
    runtime::{Builder, Runtime},
    time::{sleep, timeout},
};

/// Which manager, and for whom the output is.
#[derive(Args, Clone, Debug)]
pub(crate) struct OperatorOptions {
    /// The manager's access file [default: $HOLDFAST_ACCESS or ~/.config/holdfast/access.json]
    #[arg(long, value_name = "FILE")]
    access: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl OperatorOptions {
    /// Whether a manager was named.
    pub(crate) fn is_given(&self) -> bool {
        self.access.is_some()
    }
}

/// A line to one manager.
pub(crate) struct Operator {
    /// The manager's data directory, if it is on this machine.
    pub(crate) data: Option<PathBuf>,
    /// Where the manager is: `https://host:port`.
    pub(crate) url: String,
    client: Client,
    runtime: Runtime,
}

impl Operator {
    /// Reads the access file. Nothing is asked yet.
    pub(crate) fn new(options: &OperatorOptions) -> Result<Self, Failure> {
        let path = options.access.clone().map_or_else(Access::usual_place, Ok)?;
        let access = Access::read(&path)?;
        let client = Client::new(&access)?;
        Ok(Self {
            data: access.data,
            url: access.url,
            client,
            runtime: Builder::new_current_thread().enable_all().build()?,
        })
    }

    /// Asks for a document.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        Ok(self.runtime.block_on(self.client.get(path))?)
    }

    /// Sends a document and gets another.
    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, document: &impl Serialize) -> Result<T, Failure> {
        Ok(self.runtime.block_on(self.client.post(path, document))?)
    }

    /// Sends a document and gets another; meanwhile, shows how far the manager is, as another document says.
    pub(crate) fn post_watched<T: DeserializeOwned, P: DeserializeOwned>(
        &self,
        path: &str,
        document: &impl Serialize,
        progress: &str,
        mut show: impl FnMut(P),
    ) -> Result<T, Failure> {
        self.runtime.block_on(async {
            let mut answer = pin!(self.client.post(path, document));
            loop {
                match timeout(PROGRESS_PAUSE, answer.as_mut()).await {
                    Ok(answer) => return Ok(answer?),
                    // A manager that is too busy to say how far it is still answers in the end.
                    Err(_) => drop(self.client.get(progress).await.map(&mut show)),
                }
            }
        })
    }

    /// Asks for text.
    pub(crate) fn text(&self, path: &str) -> Result<String, Failure> {
        Ok(self.runtime.block_on(self.client.text(path))?)
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

/// How often it is asked how far the manager is.
const PROGRESS_PAUSE: Duration = Duration::from_millis(500);
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
    /// The number of the last event that was read.
    pub(crate) fn last_read(&self) -> u64 {
        self.after
    }

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
