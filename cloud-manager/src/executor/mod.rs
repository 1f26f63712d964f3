//! The executor: carries out what the manager's machine requests, and reports to the machine what happens around it.
//!
//! It is one actor with one inbox. It gives tasks to the clouds, sets timers, revokes certificates and watches
//! connections; [`calls`] serves operators, [`admission`] admits agents, [`connections`] knows which agents are
//! connected, and [`port`] connects the engine to it. Long work runs in separate tasks that report back. Nothing here
//! decides about reconfiguration: [`protocol::CloudManager`] does.

mod admission;
mod calls;
mod connections;
mod port;

use crate::cloud::LocalCloud;
use crate::handle::{Call, CallError};
use crate::machine::{Effect, LocalEvent, Manager};
use crate::program::reachable;
use calls::first_news;
use connections::{Connections, SILENCE};
use protocol::manager::{Alarm, CloudOutcome, CloudTask, Health, News};
use protocol::{ChangeId, Name, VmId};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use runtime::engine::{Message, Moment};
use runtime::identity::{Authority, IdentityCall};
use runtime::{Error, Timestamp, link};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

pub(crate) use port::{Port, Resumption};

/// The cloud whose VMs are processes on this machine.
pub(crate) const LOCAL: &str = "local";

type Engine = ActorRef<Message<Manager>>;

/// The executor's messages.
pub(crate) enum ExecutorMessage {
    /// An engine has started.
    Resume(Box<Resumption>),
    /// The machine requests something.
    CarryOut(Effect),
    /// A connection was opened or closed.
    Connection(link::Event),
    /// A call through the handle.
    Call(Call),
    /// An agent asks to join, or to have its certificate renewed.
    IdentityCall(IdentityCall),
    /// Some time has passed since this departure of a VM's agent.
    StillAway(VmId, u64),
    /// The outcome of a cloud's task.
    FromCloud(CloudOutcome),
    /// The time limit for this question is over.
    QuestionTimeout(u64),
    /// The manager's own certificate is due for renewal.
    RenewOwn,
}

/// The actor; its state is [`Executor`].
pub(crate) struct ExecutorActor;

/// The settings of the executor.
pub(crate) struct ExecutorSettings {
    /// Certifies agents.
    pub(crate) authority: Authority,
    /// Where the manager's own certificate is stored.
    pub(crate) identity_directory: PathBuf,
    /// How often it is renewed.
    pub(crate) renew_every: Duration,
    /// The cloud on this machine.
    pub(crate) local: LocalCloud,
    /// Receives the number of each new event.
    pub(crate) newest: watch::Sender<u64>,
}

/// The executor's state.
pub(crate) struct Executor {
    authority: Authority,
    identity_directory: PathBuf,
    local: LocalCloud,
    newest: watch::Sender<u64>,
    engine: Option<Engine>,
    connections: Connections,
    /// VMs that were admitted and may not have connected yet.
    admitted: BTreeSet<VmId>,
    /// Pending questions to agents, and where the answers go.
    questions: BTreeMap<u64, oneshot::Sender<Result<String, CallError>>>,
}

impl Actor for ExecutorActor {
    type Msg = ExecutorMessage;
    type State = Executor;
    type Arguments = ExecutorSettings;

    async fn pre_start(
        &self,
        myself: ActorRef<ExecutorMessage>,
        settings: ExecutorSettings,
    ) -> Result<Executor, ActorProcessingErr> {
        let ExecutorSettings { authority, identity_directory, renew_every, local, newest } = settings;
        myself.send_interval(renew_every, || ExecutorMessage::RenewOwn);
        Ok(Executor {
            authority,
            identity_directory,
            local,
            newest,
            engine: None,
            connections: Connections::default(),
            admitted: BTreeSet::new(),
            questions: BTreeMap::new(),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<ExecutorMessage>,
        message: ExecutorMessage,
        executor: &mut Executor,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ExecutorMessage::Resume(resumption) => executor.resume(&myself, *resumption),
            ExecutorMessage::CarryOut(effect) => {
                let done = executor.carry_out(&myself, effect);
                done.inspect_err(|error| tracing::error!(%error, "the certificate of a VM cannot be revoked"))?;
            }
            ExecutorMessage::Connection(event) => executor.notice(&myself, event),
            ExecutorMessage::Call(call) => executor.answer(&myself, call).await,
            ExecutorMessage::IdentityCall(IdentityCall { request, answer }) => {
                let granted = executor.admit(request).await;
                if let Err(refused) = &granted {
                    tracing::warn!(%refused, "an agent was not admitted");
                }
                // If the agent has given up, it asks again, and is known by then.
                let _ = answer.send(granted);
            }
            ExecutorMessage::StillAway(vm, departure) => {
                if executor.connections.is_still_disconnected(vm, departure) {
                    executor.happened(LocalEvent::FromCloud(CloudOutcome::Silent(vm)));
                }
            }
            ExecutorMessage::FromCloud(outcome) => executor.happened(LocalEvent::FromCloud(outcome)),
            ExecutorMessage::RenewOwn => {
                let identity = executor.authority.manager_identity(&executor.identity_directory, Timestamp::now())?;
                executor.tell(Message::Renew(Arc::new(identity)));
            }
            ExecutorMessage::QuestionTimeout(question) => {
                if let Some(answer) = executor.questions.remove(&question) {
                    let why = "its agent does not answer (try again when the VM is connected)".to_owned();
                    let _ = answer.send(Err(CallError::Unavailable(why)));
                }
            }
        }
        Ok(())
    }
}

impl Executor {
    fn tell(&self, message: Message<Manager>) {
        if let Some(engine) = &self.engine {
            // A failed engine is restarted, and resumes what is pending.
            let _ = engine.cast(message);
        }
    }

    fn happened(&self, event: LocalEvent) {
        self.tell(Message::Happened(event, None));
    }

    fn happened_after(&self, due: Moment, event: LocalEvent) {
        if let Some(engine) = &self.engine {
            let pause = Duration::from_millis(due.0.saturating_sub(Moment::now().0));
            engine.send_after(pause, move || Message::Happened(event, None));
        }
    }

    /// Resumes what was pending when the engine stopped.
    fn resume(&mut self, myself: &ActorRef<ExecutorMessage>, resumption: Resumption) {
        self.engine = Some(resumption.engine);
        self.local.manager_is_at(reachable(resumption.address));
        self.newest.send_replace(resumption.last_event);
        self.connections.reset();
        // The program may have stopped while it was destroying a VM.
        for peer in self.authority.revoked() {
            self.local.discard(VmId(peer.0), myself);
        }
        for (vm, health, cloud) in resumption.vms {
            if cloud.as_deref() == Some(LOCAL) && health != Health::Dead {
                self.local.resume(vm, myself);
            }
            if matches!(health, Health::Well | Health::Suspected(_)) {
                self.disconnected(myself, vm);
            }
        }
        for (task, cloud) in resumption.tasks {
            self.ask_cloud(myself, task, cloud.as_deref());
        }
        for (alarm, due) in resumption.alarms {
            self.set_alarm(alarm, due);
        }
        for (application, first, due) in resumption.promotions {
            self.promote_at(application, first, due);
        }
    }

    fn carry_out(&mut self, myself: &ActorRef<ExecutorMessage>, effect: Effect) -> Result<(), Error> {
        match effect {
            Effect::Event(event) => {
                tracing::info!(number = event.number, about = event.about, news = ?event.news, "event");
                if !matches!(event.news, News::Refused(_)) {
                    self.newest.send_replace(event.number);
                }
            }
            Effect::Cloud(task, cloud) => self.ask_cloud(myself, task, cloud.as_deref()),
            Effect::Alarm(alarm, due) => self.set_alarm(alarm, due),
            Effect::Answer { number, answer } => {
                if let Some(asker) = self.questions.remove(&number) {
                    let _ = asker.send(answer.map_err(CallError::Unknown));
                }
            }
            Effect::PromoteAt(application, first, due) => self.promote_at(application, first, due),
            // The first is for the caller, the second for an audit.
            Effect::Submission(_) | Effect::Requested(_) => {}
            Effect::Revoke(peer) => {
                self.authority.revoke(peer)?;
                self.admitted.remove(&VmId(peer.0));
                self.connections.forget(VmId(peer.0));
                self.local.discard(VmId(peer.0), myself);
            }
            Effect::Note(note) => tracing::debug!(?note, "noted"),
            Effect::Rejected(peer, why) => tracing::warn!(%peer, why, "a message was rejected"),
        }
        Ok(())
    }

    fn ask_cloud(&mut self, myself: &ActorRef<ExecutorMessage>, task: CloudTask, cloud: Option<&str>) {
        match (task, cloud) {
            (CloudTask::Create(vm, name), Some(LOCAL)) => match self.prepare(vm, &name) {
                Ok(()) => self.local.resume(vm, myself),
                Err(error) => {
                    let why = error.to_string().into();
                    self.happened(LocalEvent::FromCloud(CloudOutcome::CreateFailed(vm, why)));
                }
            },
            (CloudTask::Create(vm, _), Some(other)) => {
                let why = format!("there is no cloud {other:?} (known: {LOCAL})").into();
                self.happened(LocalEvent::FromCloud(CloudOutcome::CreateFailed(vm, why)));
            }
            (CloudTask::Create(vm, name), None) => {
                tracing::info!(%vm, %name, "waiting for an agent of that name to join");
            }
            (CloudTask::Destroy(vm), Some(LOCAL)) => self.local.destroy(vm, myself),
            (CloudTask::Destroy(vm), _) => self.happened(LocalEvent::FromCloud(CloudOutcome::Destroyed(vm))),
        }
    }

    fn set_alarm(&self, alarm: Alarm, due: Moment) {
        self.happened_after(due, LocalEvent::AlarmRang(alarm));
    }

    fn promote_at(&self, application: Name, first: ChangeId, due: Moment) {
        self.happened_after(due, LocalEvent::RolloutPromoted(application, first));
    }

    fn notice(&mut self, myself: &ActorRef<ExecutorMessage>, event: link::Event) {
        match event {
            link::Event::Up { peer, .. } => {
                let vm = VmId(peer.0);
                self.connections.up(vm);
                // The machine takes the one that fits the VM's health and ignores the other.
                self.happened(LocalEvent::FromCloud(CloudOutcome::Created(vm)));
                self.happened(LocalEvent::FromCloud(CloudOutcome::Heard(vm)));
            }
            link::Event::Down { peer, .. } => self.disconnected(myself, VmId(peer.0)),
            link::Event::Refused { peer, refusal } => {
                tracing::warn!(%peer, %refusal, "a connection was refused");
            }
            link::Event::Received { .. } | link::Event::Acknowledged { .. } => {}
        }
    }

    fn disconnected(&mut self, myself: &ActorRef<ExecutorMessage>, vm: VmId) {
        let departure = self.connections.down(vm);
        myself.send_after(SILENCE, move || ExecutorMessage::StillAway(vm, departure));
    }
}
