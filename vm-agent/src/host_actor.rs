//! The actor around the agent's engine that acts on the world: it owns the host with its processes, and the alarms. It
//! has one inbox and decides nothing about reconfiguration: it passes tasks to the host, and outcomes to the engine.

use crate::host::{self, Host};
use crate::machine::{Agent, Effect, LocalEvent};
use protocol::agent::Alarm;
use protocol::bounds::MESSAGE_BYTES_MAX;
use protocol::letter::{HostQuestion, Question};
use protocol::{HostOutcome, HostTask};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use runtime::PeerId;
use runtime::engine::{EffectHandler, Message, Moment};
use runtime::link::{self, Refusal};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Maximum size of an answer about the VM.
const ANSWER_BYTES_MAX: usize = MESSAGE_BYTES_MAX / 2;

type Engine = ActorRef<Message<Agent>>;

/// Messages to this actor.
pub(crate) enum HostActorMessage {
    /// An engine has started; here are the tasks and alarms that it waits for.
    Begin(Engine, Vec<HostTask>, Vec<(Alarm, Moment)>),
    /// An effect of the machine.
    CarryOut(Effect),
    /// An outcome of the host.
    FromHost(HostOutcome),
    /// The manager has declared this VM lost or destroyed it, and no longer accepts its messages.
    Dismissed,
}

/// Forwards the engine's effects to the actor; never blocks.
pub(crate) struct EffectForwarder {
    pub(crate) host_actor: ActorRef<HostActorMessage>,
    /// The address that other machines can reach, if it differs from the one that we listen on.
    pub(crate) advertised: Option<SocketAddr>,
}

impl EffectHandler<Agent> for EffectForwarder {
    fn begin(&self, agent: &Agent, address: SocketAddr, engine: Engine) {
        let advertised = self.advertised.map_or(address, |advertised| match advertised.port() {
            0 => SocketAddr::new(advertised.ip(), address.port()),
            _ => advertised,
        });
        // An engine that stops at once is restarted by its supervisor, and then this is sent again.
        let _ = engine.cast(Message::Happened(LocalEvent::Listening(advertised), None));
        self.tell(HostActorMessage::Begin(engine, agent.tasks().cloned().collect(), agent.alarms().collect()));
    }

    fn carry_out(&self, effect: Effect) {
        self.tell(HostActorMessage::CarryOut(effect));
    }

    fn notice(&self, connection: link::Event) {
        match connection {
            link::Event::Up { peer, .. } => tracing::info!(%peer, "connected"),
            link::Event::Down { peer, farewell } => tracing::info!(%peer, farewell, "disconnected"),
            link::Event::Refused { peer: PeerId::MANAGER, refusal: Refusal::Revoked } => {
                self.tell(HostActorMessage::Dismissed);
            }
            link::Event::Refused { peer, refusal } => tracing::warn!(%peer, %refusal, "connection refused"),
            link::Event::Received { .. } | link::Event::Acknowledged { .. } => {}
        }
    }
}

impl EffectForwarder {
    fn tell(&self, message: HostActorMessage) {
        // If the actor has ended, the program is about to end, and the journal has everything that is pending.
        let _ = self.host_actor.cast(message);
    }
}

/// The actor; its state is [`HostActorState`].
pub(crate) struct HostActor;

/// The state of the actor.
pub(crate) struct HostActorState {
    settings: host::Settings,
    /// Notified when everything was stopped because the manager has removed this VM.
    dismissed: Option<oneshot::Sender<()>>,
    host: Option<Host>,
    engine: Option<Engine>,
}

impl Actor for HostActor {
    type Msg = HostActorMessage;
    type State = HostActorState;
    type Arguments = (host::Settings, oneshot::Sender<()>);

    async fn pre_start(
        &self,
        _: ActorRef<HostActorMessage>,
        (settings, dismissed): (host::Settings, oneshot::Sender<()>),
    ) -> Result<HostActorState, ActorProcessingErr> {
        Ok(HostActorState { settings, dismissed: Some(dismissed), host: None, engine: None })
    }

    async fn handle(
        &self,
        myself: ActorRef<HostActorMessage>,
        message: HostActorMessage,
        state: &mut HostActorState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            HostActorMessage::Begin(engine, tasks, alarms) => {
                let begun = state.begin(&myself, engine, tasks, alarms).await;
                begun.inspect_err(|error| tracing::error!(%error, "cannot open the host"))?;
            }
            HostActorMessage::CarryOut(effect) => state.carry_out(effect),
            HostActorMessage::FromHost(outcome) => state.happened(LocalEvent::FromHost(outcome)),
            HostActorMessage::Dismissed => state.clear_out().await,
        }
        Ok(())
    }
}

impl HostActorState {
    async fn begin(
        &mut self,
        myself: &ActorRef<HostActorMessage>,
        engine: Engine,
        tasks: Vec<HostTask>,
        alarms: Vec<(Alarm, Moment)>,
    ) -> Result<(), host::Error> {
        self.engine = Some(engine);
        match &self.host {
            // Only the engine was restarted: the host is still working, and answers again when it is asked again.
            Some(host) => tasks.into_iter().for_each(|task| host.carry_out(task)),
            None => {
                let (outcomes, told) = mpsc::unbounded_channel();
                tokio::spawn(pass_on(told, myself.clone()));
                self.host = Some(Host::open(self.settings.clone(), tasks, outcomes).await?);
            }
        }
        for (alarm, due) in alarms {
            self.set_alarm(alarm, due);
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Task(task) => {
                tracing::info!(component = %task.name, operation = %task.work.operation(), "task");
                if let Some(host) = &self.host {
                    host.carry_out(task);
                }
            }
            Effect::Alarm(alarm, due) => self.set_alarm(alarm, due),
            Effect::Answer { number, component, question } => {
                let (Some(host), Some(engine)) = (self.host.clone(), self.engine.clone()) else { return };
                tokio::spawn(async move {
                    let answer = match question {
                        Question::Output { bytes_max } => {
                            host.logs(component, usize::try_from(bytes_max).unwrap_or(usize::MAX)).await
                        }
                        Question::Drift => host.drift(component).await.map(|drift| drift.join("\n")),
                    };
                    let answer = answer.map_err(|error| error.to_string());
                    let _ = engine.cast(Message::Happened(LocalEvent::Answered { number, answer }, None));
                });
            }
            Effect::AnswerAboutHost { number, question } => {
                let (Some(host), Some(engine)) = (self.host.clone(), self.engine.clone()) else { return };
                tokio::spawn(async move {
                    let answer = answer_about_host(&host, question).await;
                    let _ = engine.cast(Message::Happened(LocalEvent::Answered { number, answer }, None));
                });
            }
            Effect::Note(note) => tracing::debug!(?note, "noted"),
            Effect::Distrusted(peer, why) => tracing::warn!(%peer, why, "message rejected"),
        }
    }

    /// Stops everything: the manager has removed this VM, and its neighbours have been told so.
    async fn clear_out(&mut self) {
        let Some(dismissed) = self.dismissed.take() else { return };
        tracing::error!("the manager has removed this VM; stopping its components");
        self.host = None;
        self.engine = None;
        if let Err(error) = host::raze(self.settings.clone()).await {
            tracing::error!(%error, "cannot list the components; some may be left running");
        }
        // If the program is about to end for another reason, the receiver is gone.
        let _ = dismissed.send(());
    }

    fn set_alarm(&self, alarm: Alarm, due: Moment) {
        if let Some(engine) = &self.engine {
            let pause = Duration::from_millis(due.0.saturating_sub(Moment::now().0));
            engine.send_after(pause, move || Message::Happened(LocalEvent::AlarmRang(alarm), None));
        }
    }

    fn happened(&self, event: LocalEvent) {
        if let Some(engine) = &self.engine {
            // An engine that has failed restarts with its pending tasks, and asks again.
            let _ = engine.cast(Message::Happened(event, None));
        }
    }
}

/// Answers a question about the VM, or deletes data.
async fn answer_about_host(host: &Host, question: HostQuestion) -> Result<String, String> {
    let answer = match question {
        HostQuestion::Data => host.data().await.map(|kept| serde_json::to_string(&kept).unwrap_or_default()),
        HostQuestion::DeleteData { key } => {
            let deleted = host.delete_data(&key).await;
            match &deleted {
                Ok(existed) => tracing::info!(%key, existed, "data deleted"),
                Err(error) => tracing::warn!(%key, %error, "data not deleted"),
            }
            deleted.map(|_| String::new())
        }
        HostQuestion::PreviousOutput { key, bytes_max } => {
            host.previous_logs(&key, usize::try_from(bytes_max).unwrap_or(usize::MAX)).await
        }
    };
    match answer {
        // An answer must fit into a message.
        Ok(text) if text.len() > ANSWER_BYTES_MAX => {
            Err(format!("the answer has {} bytes, and at most {ANSWER_BYTES_MAX} can be sent", text.len()))
        }
        answer => answer.map_err(|error| error.to_string()),
    }
}

async fn pass_on(mut told: mpsc::UnboundedReceiver<HostOutcome>, host_actor: ActorRef<HostActorMessage>) {
    while let Some(outcome) = told.recv().await {
        if host_actor.cast(HostActorMessage::FromHost(outcome)).is_err() {
            return;
        }
    }
}
