//! The five acts of the demo, as an operator would do them: through the manager's API, and with one `kill -9`.

use super::{
    leftovers,
    record::{Act, Condition, Messages, Record, Verdict},
    shop,
    stage::{self, Stage},
    traffic::Traffic,
};
use crate::{
    failure::Failure,
    rendering::screen::{self, bold, coloured, lasting},
};
use cloud_manager::past;
use cloud_manager::{
    client::{Events, StreamItem},
    document::{Accepted, EventDocument, EventKind, NewChange, Status},
};
use model_check::audit::Past;
use protocol::Strategy;
use runtime::engine::Moment;
use std::{net::SocketAddr, path::Path, time::Duration};
use tokio::time::{sleep, timeout};

/// Time limit for a change, or for the return of an agent.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause before checking again whether an agent is back.
const PAUSE: Duration = Duration::from_millis(10);
/// The number of requests that are served before and after each event: a second of each.
const BREATH: usize = 50;

/// A run in progress.
pub(super) struct Play<'a> {
    stage: &'a Stage,
    /// Whether to print text for people.
    is_watched: bool,
    events: Events,
    traffic: Option<Traffic>,
    /// The present or former address of each component.
    addresses: Vec<(String, SocketAddr)>,
    act: Act,
    /// What was observed so far.
    pub(super) record: Record,
}

impl<'a> Play<'a> {
    pub(super) async fn begin(stage: &'a Stage, is_watched: bool) -> Result<Self, Failure> {
        let events = stage.client.events(0).await?;
        let lives = shop::components().into_iter().map(|name| (name, Vec::new())).collect();
        let record = Record { began_ms: Moment::now().0, lives, ..Record::default() };
        let play =
            Self { stage, is_watched, events, traffic: None, addresses: Vec::new(), act: Act::default(), record };
        play.say(&format!(
            "{}\n{STAGE}",
            bold("A web shop on four machines, under traffic. Its database is replaced twice.")
        ))?;
        Ok(play)
    }

    pub(super) async fn perform(&mut self, keep: Option<&Path>) -> Result<(), Failure> {
        self.deploy().await?;
        self.replace_with_a_pause().await?;
        self.replace_without_a_pause().await?;
        self.kill_an_agent().await?;
        self.remove_everything(keep).await
    }

    async fn deploy(&mut self) -> Result<(), Failure> {
        self.begin_act(
            "Everything starts",
            "The manager creates four VMs, here agents on this machine, and tells each what there is. The order is not stated:\n\
            each component starts when it is lent what it needs.",
        )?;
        self.make(&shop::deploy(&self.stage.program)).await?;
        for component in [shop::FRONT, "app-1", "app-2", shop::CACHE] {
            self.learn_address(component).await?;
        }
        self.learn_address(&shop::database(1)).await?;
        self.traffic = Some(Traffic::to(self.addresses[0].1));
        self.serve_for_a_while().await?;
        self.end_act().await
    }

    async fn replace_with_a_pause(&mut self) -> Result<(), Failure> {
        self.begin_act(
            "Another database, down then up",
            "The old database stops before the new one starts. Nothing may hold on to something that is not running, so first\n\
            the front returns its loans, then the applications, then the database stops. The cache is not affected.",
        )?;
        self.serve_for_a_while().await?;
        self.make(&shop::replace_database(&self.stage.program, 2, Strategy::DownThenUp)).await?;
        self.learn_address(&shop::database(2)).await?;
        self.serve_for_a_while().await?;
        self.end_act().await
    }

    async fn replace_without_a_pause(&mut self) -> Result<(), Failure> {
        self.begin_act(
            "Another database, up then down",
            "Now the new database starts first, the applications switch to it while they run, and only when both have returned\n\
            the old one does it stop. No request may fail.",
        )?;
        self.act.serves_all = true;
        self.serve_for_a_while().await?;
        self.make(&shop::replace_database(&self.stage.program, 3, Strategy::UpThenDown)).await?;
        self.learn_address(&shop::database(3)).await?;
        self.serve_for_a_while().await?;
        self.end_act().await
    }

    async fn kill_an_agent(&mut self) -> Result<(), Failure> {
        self.begin_act(
            "An agent is killed",
            "kill -9. Its components keep running and serving. The agent restarts from its journal, re-adopts them, and\n\
            restarts the cache as usual. No request may fail.",
        )?;
        self.act.serves_all = true;
        self.serve_for_a_while().await?;
        let Some(agent) = self.stage.agent(shop::STRUCK).await? else {
            return Err(Failure::Demo(format!("there is no agent on {}", shop::STRUCK)));
        };
        leftovers::kill(agent.pid());
        self.agent_is(Condition::Stopped);
        self.tell(Moment::now().0, &format!("⚡ killed the agent of {} (process {})", shop::STRUCK, agent.pid()))?;
        let returned = timeout(PATIENCE, async {
            loop {
                match self.stage.agent(shop::STRUCK).await? {
                    Some(found) if found.pid() != agent.pid() => return Ok::<_, Failure>(found),
                    _ => sleep(PAUSE).await,
                }
            }
        });
        let late = || Failure::Demo(format!("the agent of {} did not come back", shop::STRUCK));
        let found = returned.await.map_err(|_| late())??;
        self.agent_is(Condition::Started);
        self.tell(Moment::now().0, &format!("↺ it is back (process {})", found.pid()))?;
        self.make(&shop::restart(shop::CACHE)).await?;
        self.serve_for_a_while().await?;
        self.end_act().await
    }

    async fn remove_everything(&mut self, keep: Option<&Path>) -> Result<(), Failure> {
        self.begin_act(
            "Everything stops",
            "Traffic ends. Clients return their loans before their providers stop, and VMs are removed once they are empty.",
        )?;
        if let Some(traffic) = &self.traffic {
            traffic.stop().await?;
        }
        // Every journal is still there, and nothing is in progress.
        let directories = past::directories(&[self.stage.data()]);
        let pasts: Vec<Past> = directories.iter().map(|it| past::read(it)).collect::<Result<_, _>>()?;
        (self.record.messages, self.record.audit) = (Messages::of(&pasts), Verdict::on(&pasts));
        if let Some(keep) = keep {
            stage::copy(&self.stage.data(), keep)?;
        }
        self.make(&shop::remove_everything()).await?;
        let mut left = self.stage.vm_directories();
        let processes = leftovers::processes(&self.stage.data());
        left.extend(processes.into_iter().map(|(pid, line)| format!("process {pid}: {line}")));
        left.extend(leftovers::answering(&self.addresses).await);
        self.record.left = left;
        self.end_act().await
    }

    fn begin_act(&mut self, title: &'static str, story: &str) -> Result<(), Failure> {
        let began_ms = Moment::now().0;
        self.act = Act { title, stretch: began_ms..began_ms, ..Act::default() };
        let number = self.record.acts.len() + 1;
        self.say(&format!("\n{}\n{story}\n\n", bold(&format!("Act {number}: {title}"))))
    }

    /// Ends the act when every request that was sent in it is answered.
    async fn end_act(&mut self) -> Result<(), Failure> {
        self.act.stretch.end = Moment::now().0;
        let mut answer = String::new();
        if let Some(traffic) = &self.traffic {
            traffic.settled().await?;
            self.act.requests = traffic.during(self.act.stretch.clone());
            answer = traffic.last();
        }
        let act = std::mem::take(&mut self.act);
        let requests = match (act.served(), act.failed()) {
            (0, 0) => String::new(),
            (served, 0) => format!(", {served} requests served, none failed; the last answer: {answer}"),
            (served, failed) => format!(", {served} requests served, {failed} failed; the last answer: {answer}"),
        };
        let sign = if act.unexpected_failure().is_none() { '✓' } else { '✗' };
        self.say(&coloured(&format!("  {sign} after {}{requests}", lasting(act.lasted()))))?;
        self.record.acts.push(act);
        Ok(())
    }

    /// Submits a change, and prints what happens until it is done.
    async fn make(&mut self, change: &NewChange) -> Result<(), Failure> {
        let accepted: Accepted = self.stage.client.post("/v1/changes", change).await?;
        let done = timeout(PATIENCE, self.follow(accepted.change)).await;
        match done {
            Ok(followed) => followed,
            Err(_) => {
                let status: Status = self.stage.client.get("/v1/status").await?;
                let waits: Vec<String> = status.changes.into_iter().flat_map(|change| change.waits_for).collect();
                let (seconds, why) = (PATIENCE.as_secs(), [status.attention, waits].concat().join("; "));
                Err(Failure::Demo(format!("a change was not done within {seconds} s: {why}")))
            }
        }
    }

    async fn follow(&mut self, change: u64) -> Result<(), Failure> {
        loop {
            let event = match self.events.next().await? {
                Some(StreamItem::Event(event)) => event,
                Some(StreamItem::Gap(_)) => continue,
                None => return Err(Failure::Demo("the manager ended the event stream".into())),
            };
            self.hear(&event)?;
            if event.what.ends_change() && event.change == Some(change) {
                return Ok(());
            }
        }
    }

    fn hear(&mut self, event: &EventDocument) -> Result<(), Failure> {
        if event.what == EventKind::OperationFailed {
            let detail = event.detail.as_deref().unwrap_or_default();
            return Err(Failure::Demo(format!("{}: {detail}", event.text)));
        }
        if event.what == EventKind::VmMade && event.vm.as_deref() == Some(shop::STRUCK) {
            self.agent_is(Condition::Started);
        }
        match self.record.note(event, &mut self.act) {
            Some((component, Condition::Started)) => self.tell(event.at_ms, &format!("● {component} started")),
            Some((component, _)) => self.tell(event.at_ms, &format!("○ {component} stopped")),
            None if matches!(event.what, EventKind::VmMade | EventKind::VmDestroyed) => {
                self.tell(event.at_ms, &event.text)
            }
            None => Ok(()),
        }
    }

    fn agent_is(&mut self, condition: Condition) {
        self.record.life(&format!("agent of {}", shop::STRUCK)).push((Moment::now().0, condition));
    }

    async fn learn_address(&mut self, component: &str) -> Result<(), Failure> {
        let address = self.stage.address(component).await?;
        self.addresses.push((component.to_owned(), address));
        Ok(())
    }

    /// Waits until a second of requests is served.
    async fn serve_for_a_while(&self) -> Result<(), Failure> {
        match &self.traffic {
            Some(traffic) => traffic.served(BREATH).await,
            None => Ok(()),
        }
    }

    /// One line about what happened when.
    fn tell(&self, at_ms: u64, text: &str) -> Result<(), Failure> {
        let at = Duration::from_millis(at_ms.saturating_sub(self.record.began_ms)).as_secs_f64();
        self.say(&coloured(&format!("  {at:>6.2} s  {text}")))
    }

    fn say(&self, text: &str) -> Result<(), Failure> {
        if self.is_watched { screen::print(text) } else { Ok(()) }
    }
}

const STAGE: &str = "
   front             east             west             store
  ┌───────┐ needs ┌─────────┐      ┌─────────┐ needs ┌────────────┐
  │ web ──┼───┬───┼─▶ app-1 ┼──────┼─────────┼───┬───┼▶ database  │
  │       │   └───┼─────────┼──────┼─▶ app-2 ┼───┘   │            │
  │       │       │   cache ◀ used by both   │       │            │
  └───────┘       └─────────┘      └─────────┘       └────────────┘
";
