//! A process that keeps running, and the notification of its end.
//!
//! For a child the kernel reports how it ended. A process that was re-adopted after a restart of the agent has another
//! parent by now: the kernel reports only that it has ended.

use super::{Shared, process::ProcessMark, spawn::ending};
use std::sync::Arc;
use tokio::{process::Child, sync::watch};

/// Reports when a process has ended. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Running {
    ended: watch::Receiver<Option<String>>,
}

impl Running {
    /// A process that this run of the agent has started.
    pub(super) fn child(shared: &Arc<Shared>, mut child: Child) -> Self {
        let (tell, ended) = watch::channel(None);
        shared.spawn(async move {
            let how = match child.wait().await {
                Ok(status) => ending(status),
                Err(error) => format!("ended ({error})"),
            };
            let _ = tell.send(Some(how));
        });
        Self { ended }
    }

    /// A process that an earlier run of the agent has started.
    pub(super) fn found(shared: &Arc<Shared>, mark: ProcessMark) -> Self {
        let (tell, ended) = watch::channel(None);
        shared.spawn(async move {
            while let Err(error) = mark.ended().await {
                tracing::warn!(pid = mark.pid, %error, "cannot wait for a process");
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
            let how = if mark.is_of_this_boot() { "ended (exit status unknown)" } else { "ended by a reboot" };
            let _ = tell.send(Some(how.into()));
        });
        Self { ended }
    }

    /// Waits for the end and returns how it came; forever, if there is no process.
    pub(super) async fn ended(running: Option<&Self>) -> String {
        let Some(running) = running else { return std::future::pending().await };
        let mut ended = running.ended.clone();
        let how = ended.wait_for(Option::is_some).await.ok().and_then(|how| how.clone());
        // The sender is gone: the host is being closed.
        match how {
            Some(how) => how,
            None => std::future::pending().await,
        }
    }
}
