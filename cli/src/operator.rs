//! The operator's connection to the manager: which manager, and blocking calls to it.
//!
//! Everything the commands know about a running system comes from here, through the public API.

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

/// Which manager, and the output format.
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

/// A connection to one manager.
pub(crate) struct Operator {
    /// The manager's data directory, if it is on this machine.
    pub(crate) data: Option<PathBuf>,
    /// Where the manager is: `https://host:port`.
    pub(crate) url: String,
    client: Client,
    runtime: Runtime,
}

impl Operator {
    /// Reads the access file. No request is sent yet.
    pub(crate) fn new(options: &OperatorOptions) -> Result<Self, Failure> {
        let path = options.access.clone().map_or_else(Access::default_path, Ok)?;
        let access = Access::read(&path)?;
        let client = Client::new(&access)?;
        Ok(Self {
            data: access.data,
            url: access.url,
            client,
            runtime: Builder::new_current_thread().enable_all().build()?,
        })
    }

    /// Gets a document.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        Ok(self.runtime.block_on(self.client.get(path))?)
    }

    /// Posts a document and returns the answer.
    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, document: &impl Serialize) -> Result<T, Failure> {
        Ok(self.runtime.block_on(self.client.post(path, document))?)
    }

    /// Posts a document and returns the answer; meanwhile, shows the manager's progress, which another document contains.
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
                    // A manager that is too busy to report its progress still answers in the end.
                    Err(_) => drop(self.client.get(progress).await.map(&mut show)),
                }
            }
        })
    }

    /// Gets plain text.
    pub(crate) fn text(&self, path: &str) -> Result<String, Failure> {
        Ok(self.runtime.block_on(self.client.text(path))?)
    }

    /// Deletes a resource.
    pub(crate) fn delete(&self, path: &str) -> Result<(), Failure> {
        Ok(self.runtime.block_on(self.client.delete(path))?)
    }

    /// Follows the events after a number.
    pub(crate) fn follow(&self, after: u64) -> EventStream<'_> {
        EventStream { operator: self, events: None, after, failures: 0 }
    }
}

/// How often the manager's progress is requested.
const PROGRESS_PAUSE: Duration = Duration::from_millis(500);
/// How often an interrupted stream is resumed before giving up, and the pause before each retry.
const ATTEMPTS_MAX: u32 = 60;
const PAUSE: Duration = Duration::from_secs(1);

/// A stream of events. An interrupted stream is resumed; a manager that restarts is waited for.
pub(crate) struct EventStream<'a> {
    operator: &'a Operator,
    events: Option<Events>,
    after: u64,
    failures: u32,
}

/// The outcome of waiting for an event.
pub(crate) enum NextEvent {
    /// An event, or a gap of events that are no longer stored.
    StreamItem(StreamItem),
    /// No event within the time limit.
    Timeout,
    /// The manager does not answer; retrying.
    Unreachable,
}

impl EventStream<'_> {
    /// The number of the last event that was read.
    pub(crate) fn last_read(&self) -> u64 {
        self.after
    }

    /// Waits for the next event, up to a time limit.
    pub(crate) fn next(&mut self, limit: Duration) -> Result<NextEvent, Failure> {
        let (client, events, after) = (&self.operator.client, &mut self.events, self.after);
        let next = self.operator.runtime.block_on(async {
            let events = match events {
                Some(events) => events,
                None => events.insert(client.events(after).await?),
            };
            match timeout(limit, events.next()).await {
                Err(_) => Ok(Some(NextEvent::Timeout)),
                Ok(next) => Ok(next?.map(NextEvent::StreamItem)),
            }
        });
        match next {
            Ok(Some(next)) => {
                self.failures = 0;
                if let NextEvent::StreamItem(StreamItem::Event(event)) = &next {
                    self.after = event.number;
                }
                Ok(next)
            }
            // The manager refused: a retry would not help.
            Err(
                error @ (ClientError::Refused(400..=499, _) | ClientError::Unreadable(..) | ClientError::Access(_)),
            ) => Err(error.into()),
            Err(error) if self.failures >= ATTEMPTS_MAX => Err(error.into()),
            Ok(None) | Err(_) => {
                self.events = None;
                self.failures += 1;
                // A sleep needs its runtime as soon as it is created.
                self.operator.runtime.block_on(async { sleep(PAUSE).await });
                Ok(NextEvent::Unreachable)
            }
        }
    }
}
