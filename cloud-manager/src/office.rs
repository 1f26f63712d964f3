//! The office: everything around the manager's engine that acts.
//!
//! It answers the calls from the manager, lets agents in, asks the clouds, rings alarms, and notices which agents are not
//! heard of. It is one actor with one inbox; whatever may take time it leaves to others and hears of later. It decides
//! nothing about reconfiguration: what it learns, it tells the engine.

use crate::applications::state::Json;
use crate::cloud::LocalCloud;
use crate::document::asked::in_words;
use crate::handle::{Call, CallError};
use crate::machine::{Effect, LocalEvent, Manager, Wishes};
use crate::program::reachable;
use protocol::letter::Question;
use protocol::manager::{Alarm, CloudOutcome, CloudTask, Health, News, Request};
use protocol::{Change, ChangeId, Edit, Name, VmId};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use runtime::engine::{EffectHandler, Message, Moment, Output, Reply};
use runtime::identity::{self, Authority, Grant, IdentityCall, JoinRefusal};
use runtime::link;
use runtime::{Error, PeerId, Timestamp, VmName};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// How long an agent may be away before the manager's machine is told that it is silent.
const SILENCE: Duration = Duration::from_secs(5);
/// How long an operator waits for the output of a component.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
/// The cloud whose VMs are processes on this machine.
pub(crate) const LOCAL: &str = "local";

type Engine = ActorRef<Message<Manager>>;

/// What the office can be told.
pub(crate) enum OfficeMessage {
    /// An engine has come to life.
    Begin(Box<Beginning>),
    /// The machine asks for something.
    CarryOut(Effect),
    /// A connection stands, or not any more.
    Connection(link::Event),
    /// A call through the handle.
    Call(Call),
    /// An agent wants to join, or to have its certificate renewed.
    IdentityCall(IdentityCall),
    /// A VM has been away for a while; the how-many-th time it went.
    StillAway(VmId, u64),
    /// A cloud has something to say.
    FromCloud(CloudOutcome),
    /// Nobody answered the question in time.
    GiveUp(u64),
    /// Two thirds of the life of the manager's own certificate are over.
    RenewOwn,
}

/// What an engine that comes to life is still waiting for.
pub(crate) struct Beginning {
    engine: Engine,
    /// Where agents find the manager.
    address: SocketAddr,
    tasks: Vec<(CloudTask, Option<String>)>,
    alarms: Vec<(Alarm, Moment)>,
    /// Rollouts that promote themselves, and when.
    promotions: Vec<(Name, ChangeId, Moment)>,
    /// VMs that should be heard of, with the cloud that makes them.
    vms: Vec<(VmId, Health, Option<String>)>,
    last_event: u64,
}

/// The way from the engine to the office; none of it waits.
pub(crate) struct Hatch {
    office: ActorRef<OfficeMessage>,
    /// Told once where agents find the manager.
    opened: Mutex<Option<oneshot::Sender<SocketAddr>>>,
    /// The patience that the program was started with.
    suspicion_ms_max: Option<u64>,
}

impl EffectHandler<Manager> for Hatch {
    fn begin(&self, manager: &Manager, address: SocketAddr, engine: Engine) {
        if let Some(opened) = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Nobody waits for it if the program was stopped meanwhile.
            let _ = opened.send(address);
        }
        if manager.machine().suspicion_ms_max() != self.suspicion_ms_max {
            // An engine that stops at once is begun anew by its keeper, and so is this.
            let _ = engine.cast(Message::Happened(LocalEvent::Patience(self.suspicion_ms_max), None));
        }
        let vms = manager.machine().book().vms().filter_map(|vm| Some((vm.id?, vm.health)));
        let beginning = Beginning {
            engine,
            address,
            tasks: manager.tasks().map(|(task, cloud)| (task.clone(), cloud.cloned())).collect(),
            alarms: manager.alarms().collect(),
            promotions: manager.promotions().collect(),
            vms: vms.map(|(vm, health)| (vm, health, manager.cloud_of(vm).cloned())).collect(),
            last_event: manager.last_event(),
        };
        self.tell(OfficeMessage::Begin(Box::new(beginning)));
    }

    fn carry_out(&self, effect: Effect) {
        self.tell(OfficeMessage::CarryOut(effect));
    }

    fn notice(&self, connection: link::Event) {
        self.tell(OfficeMessage::Connection(connection));
    }
}

impl Hatch {
    /// To this office; `opened` is told once where agents find the manager.
    pub(crate) fn new(
        office: ActorRef<OfficeMessage>,
        opened: oneshot::Sender<SocketAddr>,
        suspicion_ms_max: Option<u64>,
    ) -> Self {
        Self { office, opened: Mutex::new(Some(opened)), suspicion_ms_max }
    }

    fn tell(&self, message: OfficeMessage) {
        // An office that has closed carries out nothing; the program is about to end, and the journal knows the rest.
        let _ = self.office.cast(message);
    }
}

/// The actor; its state is [`Desks`].
pub(crate) struct Office;

/// What the office begins with.
pub(crate) struct Fittings {
    /// Who certifies agents.
    pub(crate) authority: Authority,
    /// Where the manager's own certificate is kept.
    pub(crate) identity_directory: PathBuf,
    /// How often that is renewed.
    pub(crate) renew_every: Duration,
    /// The cloud on this machine.
    pub(crate) local: LocalCloud,
    /// Rung with the number of each new event.
    pub(crate) newest: watch::Sender<u64>,
}

/// What the office works with.
pub(crate) struct Desks {
    authority: Authority,
    identity_directory: PathBuf,
    local: LocalCloud,
    newest: watch::Sender<u64>,
    engine: Option<Engine>,
    /// VMs whose agents are connected.
    present: BTreeSet<VmId>,
    /// How often each VM's agent went away.
    departures: BTreeMap<VmId, u64>,
    /// VMs that were let in and may not have connected yet.
    admitted: BTreeSet<VmId>,
    /// Operators who wait for the output of a component.
    questions: BTreeMap<u64, oneshot::Sender<Result<String, CallError>>>,
}

impl Actor for Office {
    type Msg = OfficeMessage;
    type State = Desks;
    type Arguments = Fittings;

    async fn pre_start(
        &self,
        myself: ActorRef<OfficeMessage>,
        fittings: Fittings,
    ) -> Result<Desks, ActorProcessingErr> {
        let Fittings { authority, identity_directory, renew_every, local, newest } = fittings;
        myself.send_interval(renew_every, || OfficeMessage::RenewOwn);
        Ok(Desks {
            authority,
            identity_directory,
            local,
            newest,
            engine: None,
            present: BTreeSet::new(),
            departures: BTreeMap::new(),
            admitted: BTreeSet::new(),
            questions: BTreeMap::new(),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<OfficeMessage>,
        message: OfficeMessage,
        desks: &mut Desks,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            OfficeMessage::Begin(beginning) => desks.begin(&myself, *beginning),
            OfficeMessage::CarryOut(effect) => {
                let done = desks.carry_out(&myself, effect);
                done.inspect_err(|error| tracing::error!(%error, "a VM cannot be revoked"))?;
            }
            OfficeMessage::Connection(event) => desks.notice(&myself, event),
            OfficeMessage::Call(call) => desks.answer(&myself, call).await,
            OfficeMessage::IdentityCall(IdentityCall { request, answer }) => {
                let granted = desks.consider(request).await;
                if let Err(refused) = &granted {
                    tracing::warn!(%refused, "an agent was not let in");
                }
                // The applicant may have given up; it asks again and is known then.
                let _ = answer.send(granted);
            }
            OfficeMessage::StillAway(vm, departure) => {
                if !desks.present.contains(&vm) && desks.departures.get(&vm) == Some(&departure) {
                    desks.happened(LocalEvent::FromCloud(CloudOutcome::Silent(vm)));
                }
            }
            OfficeMessage::FromCloud(outcome) => desks.happened(LocalEvent::FromCloud(outcome)),
            OfficeMessage::RenewOwn => {
                let identity = desks.authority.manager_identity(&desks.identity_directory, Timestamp::now())?;
                desks.tell(Message::Renew(Arc::new(identity)));
            }
            OfficeMessage::GiveUp(question) => {
                if let Some(answer) = desks.questions.remove(&question) {
                    let why = "its agent does not answer now (try again when it is heard of)".to_owned();
                    let _ = answer.send(Err(CallError::Unavailable(why)));
                }
            }
        }
        Ok(())
    }
}

impl Desks {
    fn tell(&self, message: Message<Manager>) {
        if let Some(engine) = &self.engine {
            // An engine that has failed comes back with what it waits for, and asks again.
            let _ = engine.cast(message);
        }
    }

    fn happened(&self, event: LocalEvent) {
        self.tell(Message::Happened(event, None));
    }

    fn begin(&mut self, myself: &ActorRef<OfficeMessage>, beginning: Beginning) {
        self.engine = Some(beginning.engine);
        self.local.manager_is_at(reachable(beginning.address));
        self.newest.send_replace(beginning.last_event);
        self.present.clear();
        // The program may have ended while it ended a VM.
        for peer in self.authority.revoked() {
            self.local.discard(VmId(peer.0), myself);
        }
        for (vm, health, cloud) in beginning.vms {
            if cloud.as_deref() == Some(LOCAL) && health != Health::Dead {
                self.local.resume(vm, myself);
            }
            if matches!(health, Health::Well | Health::Suspected(_)) {
                self.went(myself, vm);
            }
        }
        for (task, cloud) in beginning.tasks {
            self.ask_cloud(myself, task, cloud.as_deref());
        }
        for (alarm, due) in beginning.alarms {
            self.set_alarm(alarm, due);
        }
        for (application, first, due) in beginning.promotions {
            self.promote_at(application, first, due);
        }
    }

    fn carry_out(&mut self, myself: &ActorRef<OfficeMessage>, effect: Effect) -> Result<(), Error> {
        match effect {
            Effect::Told(event) => {
                tracing::info!(number = event.number, about = event.about, news = ?event.news, "told");
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
            // The one is for the caller, the other for an audit.
            Effect::Submission(_) | Effect::Requested(_) => {}
            Effect::Revoke(peer) => {
                self.authority.revoke(peer)?;
                self.admitted.remove(&VmId(peer.0));
                self.present.remove(&VmId(peer.0));
                self.local.discard(VmId(peer.0), myself);
            }
            Effect::Note(note) => tracing::debug!(?note, "noted"),
            Effect::Distrusted(peer, why) => tracing::warn!(%peer, why, "a message was not believed"),
        }
        Ok(())
    }

    fn ask_cloud(&mut self, myself: &ActorRef<OfficeMessage>, task: CloudTask, cloud: Option<&str>) {
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

    /// An agent on this machine need not join: its certificate is put where it looks for it.
    fn prepare(&mut self, vm: VmId, name: &Name) -> Result<(), Error> {
        let directory = self.local.identity_directory(vm)?;
        let name = VmName::parse(&name.to_string())?;
        self.authority.identity(&directory, PeerId(vm.0), &name, Timestamp::now())?;
        self.admitted.insert(vm);
        Ok(())
    }

    fn set_alarm(&self, alarm: Alarm, due: Moment) {
        if let Some(engine) = &self.engine {
            let pause = Duration::from_millis(due.0.saturating_sub(Moment::now().0));
            engine.send_after(pause, move || Message::Happened(LocalEvent::AlarmRang(alarm), None));
        }
    }

    fn promote_at(&self, application: Name, first: ChangeId, due: Moment) {
        if let Some(engine) = &self.engine {
            let pause = Duration::from_millis(due.0.saturating_sub(Moment::now().0));
            engine.send_after(pause, move || Message::Happened(LocalEvent::RolloutPromoted(application, first), None));
        }
    }

    fn notice(&mut self, myself: &ActorRef<OfficeMessage>, event: link::Event) {
        match event {
            link::Event::Up { peer, .. } => {
                let vm = VmId(peer.0);
                self.present.insert(vm);
                // The machine knows which of the two it is; the other is too late and does nothing.
                self.happened(LocalEvent::FromCloud(CloudOutcome::Created(vm)));
                self.happened(LocalEvent::FromCloud(CloudOutcome::Heard(vm)));
            }
            link::Event::Down { peer, .. } => {
                self.present.remove(&VmId(peer.0));
                self.went(myself, VmId(peer.0));
            }
            link::Event::Refused { peer, refusal } => {
                tracing::warn!(%peer, %refusal, "a connection was refused");
            }
            link::Event::Received { .. } | link::Event::Acknowledged { .. } => {}
        }
    }

    fn went(&mut self, myself: &ActorRef<OfficeMessage>, vm: VmId) {
        let departure = self.departures.entry(vm).or_default();
        *departure += 1;
        let departure = *departure;
        myself.send_after(SILENCE, move || OfficeMessage::StillAway(vm, departure));
    }

    async fn answer(&mut self, myself: &ActorRef<OfficeMessage>, call: Call) {
        match call {
            Call::Ask { request, clouds, wishes, answer } => {
                let about = in_words(&request);
                let event = with(LocalEvent::Asked { request, about, clouds }, wishes);
                self.tell(Message::Happened(event, Some(first_news(answer))));
            }
            Call::Submit { submission, wishes, answer } => {
                let reply = move |outputs: &[Output<Effect>]| {
                    let posted = outputs.iter().find_map(|output| match output {
                        Output::Effect(Effect::Submission(posted)) => Some(posted.clone()),
                        _ => None,
                    });
                    // If the caller has gone, its answer is dropped.
                    posted.map(|posted| answer.send(posted));
                };
                let event = with(LocalEvent::Submitted(submission), wishes);
                self.tell(Message::Happened(event, Some(Box::new(reply))));
            }
            Call::Rollout { application, first, promote, answer } => {
                let event = match promote {
                    true => LocalEvent::RolloutPromoted(application, first),
                    false => LocalEvent::RolloutCancelled(application, first),
                };
                self.tell(Message::Happened(
                    event,
                    Some(Box::new(move |_| {
                        // If the caller has gone, its answer is dropped.
                        let _ = answer.send(());
                    })),
                ));
            }
            Call::Look(look) => self.tell(Message::Look(Box::new(|manager: &Manager| look(manager.view())))),
            Call::EventsAfter { number, at_most, answer } => {
                let look = move |manager: &Manager| {
                    // Whoever asked may be gone by now; then nobody misses the answer.
                    let _ = answer.send(manager.events_after(number).take(at_most).cloned().collect());
                };
                self.tell(Message::Look(Box::new(look)));
            }
            Call::Invite { vm, good_for_s, answer } => {
                let token = self.authority.invite(vm, good_for_s, Timestamp::now());
                let token = token.map(|token| token.to_string());
                let _ = answer.send(token.map_err(|error| CallError::Unavailable(error.to_string())));
            }
            Call::HostQuestion { vm, question, answer } => {
                let number = self.questions.last_key_value().map_or(Moment::now().0, |(last, _)| last + 1);
                self.questions.insert(number, answer);
                self.happened(LocalEvent::HostQuestion { number, vm, question });
                myself.send_after(ANSWER_PATIENCE, move || OfficeMessage::GiveUp(number));
            }
            Call::Question { component, question, answer } => {
                // Questions are told apart across restarts by beginning with the time.
                let number = self.questions.last_key_value().map_or(Moment::now().0, |(last, _)| last + 1);
                self.questions.insert(number, answer);
                let about = match question {
                    Question::Output { .. } => {
                        let name = component.clone();
                        self.look(move |manager| manager.component_with_output(&name)).await.flatten()
                    }
                    Question::Drift => None,
                };
                self.happened(match about {
                    Some(component) => LocalEvent::QuestionAbout { number, component, question },
                    None => LocalEvent::Question { number, component, question },
                });
                myself.send_after(ANSWER_PATIENCE, move || OfficeMessage::GiveUp(number));
            }
        }
    }

    /// Looks at the manager between two steps; nothing if nobody answers.
    async fn look<T: Send + 'static>(&self, look: impl FnOnce(&Manager) -> T + Send + 'static) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.tell(Message::Look(Box::new(move |manager: &Manager| drop(answer.send(look(manager))))));
        answered.await.ok()
    }

    /// Decides about someone at the door.
    async fn consider(&mut self, request: identity::IdentityRequest) -> Result<Grant, Error> {
        let now = Timestamp::now();
        match request {
            identity::IdentityRequest::Renew { certified, certificate_request } => {
                self.authority.renew(certified.peer, &certified.name, &certificate_request, now)
            }
            identity::IdentityRequest::Join(request) => {
                let applicant = self.authority.examine(&request, now)?;
                let vm = match applicant.known {
                    Some(peer) => VmId(peer.0),
                    None => self.number_for(&applicant.name).await?,
                };
                let grant = self.authority.admit(&applicant, PeerId(vm.0), now)?;
                self.admitted.insert(vm);
                Ok(grant)
            }
        }
    }

    /// The number under which an agent of that name joins; a VM that nobody asked for is added.
    async fn number_for(&self, name: &VmName) -> Result<VmId, Error> {
        let not_wanted = |why: &str| Error::from(JoinRefusal::NotWanted(why.to_owned()));
        let halting = || not_wanted("the manager is halting");
        let wanted = Name::new(name.as_str()).map_err(|error| not_wanted(&error.to_string()))?;
        let mut found = self.awaited(&wanted).await.ok_or_else(halting)?;
        if found.is_none() {
            let (answer, answered) = oneshot::channel::<Result<News, Error>>();
            let edits = vec![Edit::AddVm { vm: wanted.clone() }];
            let request = Request::Make(Change { edits, ..Change::default() });
            let about = format!("{wanted} joins");
            let asked = LocalEvent::Asked { request, about, clouds: BTreeMap::new() };
            self.tell(Message::Happened(asked, Some(first_news(answer))));
            if let News::Refused(refusals) = answered.await.map_err(|_| halting())?? {
                let why = refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                return Err(not_wanted(&why));
            }
            found = self.awaited(&wanted).await.ok_or_else(halting)?;
        }
        match found {
            Some((Some(vm), Health::Awaited)) if !self.admitted.contains(&vm) => Ok(vm),
            Some((Some(_), _)) => Err(JoinRefusal::NameTaken(name.clone()).into()),
            _ => Err(not_wanted("a VM of that name waits for an earlier change (try again)")),
        }
    }

    /// The VM of that name in the book. The outer `None` means that nobody answers.
    async fn awaited(&self, name: &Name) -> Option<Option<(Option<VmId>, Health)>> {
        let name = name.clone();
        self.look(move |manager| manager.machine().book().vm(&name).map(|vm| (vm.id, vm.health))).await
    }
}

/// An event, with what is asked for together with it.
fn with(event: LocalEvent, wishes: Wishes) -> LocalEvent {
    if wishes.is_empty() { event } else { LocalEvent::With(Box::new(event), Json::new(wishes)) }
}

/// Passes the machine's first news on to whoever asked: it is the answer.
fn first_news<E: Send + 'static>(answer: oneshot::Sender<Result<News, E>>) -> Reply<Manager> {
    Box::new(move |outputs| {
        let news = outputs.iter().find_map(|output| match output {
            Output::Effect(Effect::Told(event)) => Some(event.news.clone()),
            _ => None,
        });
        if let Some(news) = news {
            // Whoever asked may be gone by now; what was asked is done all the same.
            let _ = answer.send(Ok(news));
        }
    })
}
