//! Steady traffic: a request to the front of the shop every few milliseconds, and the result of each.

use crate::{failure::Failure, plain_http};
use runtime::engine::Moment;
use std::{
    net::SocketAddr,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{Instant, MissedTickBehavior, interval, timeout},
};

/// The pause between two requests: 50 of them in a second.
const PAUSE: Duration = Duration::from_millis(20);
/// If nothing is served for this long, the demo fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// The result of one request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// When it was sent, in milliseconds since 1970.
    pub(super) at_ms: u64,
    /// How long the answer took.
    pub(super) lasted: Duration,
    /// The chain of components that served it, or why it failed.
    pub(super) answer: Result<String, String>,
}

/// The numbers of each result.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent: usize,
    served: usize,
    answered: usize,
}

struct Log {
    requests: Mutex<Vec<Request>>,
    counts: watch::Sender<Counts>,
}

/// Sends requests until it is dropped.
pub(super) struct Traffic {
    log: Arc<Log>,
    sending: AbortHandle,
}

impl Traffic {
    /// Starts to send requests to this address.
    pub(super) fn to(address: SocketAddr) -> Self {
        let log = Arc::new(Log { requests: Mutex::default(), counts: watch::Sender::default() });
        let sending = tokio::spawn(send(address, Arc::clone(&log))).abort_handle();
        Self { log, sending }
    }

    /// Waits until this many more are served.
    pub(super) async fn served(&self, more: usize) -> Result<(), Failure> {
        let goal = self.log.counts.borrow().served + more;
        self.reach(|counts| counts.served >= goal).await
    }

    /// Waits until all requests that were sent are answered, one way or the other.
    pub(super) async fn settled(&self) -> Result<(), Failure> {
        let sent = self.log.counts.borrow().sent;
        self.reach(|counts| counts.answered >= sent).await
    }

    /// Stops sending.
    pub(super) async fn stop(&self) -> Result<(), Failure> {
        self.sending.abort();
        self.settled().await
    }

    async fn reach(&self, goal: impl FnMut(&Counts) -> bool) -> Result<(), Failure> {
        let mut counts = self.log.counts.subscribe();
        match timeout(PATIENCE, counts.wait_for(goal)).await {
            Ok(_) => Ok(()),
            Err(_) => {
                Err(Failure::Demo(format!("no request was served for {} s: {}", PATIENCE.as_secs(), self.last())))
            }
        }
    }

    /// The requests in a stretch of time.
    pub(super) fn during(&self, time: Range<u64>) -> Vec<Request> {
        let requests = self.log.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.iter().filter(|request| time.contains(&request.at_ms)).cloned().collect()
    }

    /// The last answer.
    pub(super) fn last(&self) -> String {
        let requests = self.log.requests.lock().unwrap_or_else(PoisonError::into_inner);
        match requests.last().map(|request| &request.answer) {
            Some(Ok(text) | Err(text)) => text.clone(),
            None => "none was answered".into(),
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.sending.abort();
    }
}

async fn send(address: SocketAddr, log: Arc<Log>) {
    let mut ticks = interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        log.counts.send_modify(|counts| counts.sent += 1);
        let log = Arc::clone(&log);
        // In a task of its own: the next one is sent whether this one is answered or not.
        tokio::spawn(async move {
            let (at_ms, began) = (Moment::now().0, Instant::now());
            let answer = plain_http::get(address, "/").await;
            let served = usize::from(answer.is_ok());
            let request = Request { at_ms, lasted: began.elapsed(), answer };
            log.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
            log.counts.send_modify(|counts| {
                counts.served += served;
                counts.answered += 1;
            });
        });
    }
}
