//! The manager as the engine drives it: the protocol's machine, and what a real manager must remember besides: where agents
//! listen, which neighbours know that, pending requests to clouds, pending alarms, events, and applications.
//!
//! Nothing here decides about reconfiguration. What comes in is unpacked, the machine steps, and what it answers is packed:
//! bindings get their tickets, and neighbours are told where to find each other before they have to.

mod data;
mod submissions;
mod wishes;

pub use data::{DataBook, DataPlace};
pub use wishes::Wishes;

use crate::applications::{
    ApplicationState, Submission,
    rollout::Rollout,
    state::{Before, Former, Json, as_json},
};
use crate::handle::{Event, NameRegister};
use protocol::letter::{HostQuestion, Question, Statement, ToAgent, ToManager};
use protocol::manager::{
    self, Alarm, Book, CancelOutlook, CloudOutcome, CloudTask, ComponentEntry, Input, News, Note, Request,
};
use protocol::{
    BindingId, ChangeId, CloudManager, ComponentId, ComponentState, Instruction, Name, Order, Refusal, Ticket, VmId,
    wire,
};
use runtime::engine::{Machine, Moment, Output};
use runtime::identity::Signer;
use runtime::{Error, PeerId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use wishes::Beside;

/// Maximum number of events kept; the oldest are dropped.
const EVENTS_MAX: usize = 20_000;

/// The manager.
#[derive(Clone)]
pub struct Manager {
    signer: Signer,
    books: Books,
    beside: Beside,
}

/// The state that survives restarts.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Books {
    manager: CloudManager,
    /// Where each agent listens.
    addresses: BTreeMap<VmId, SocketAddr>,
    /// Who was, or is to be, told where each agent listens.
    acquainted: BTreeMap<VmId, BTreeSet<VmId>>,
    /// The cloud that makes the VM of a name, if one does.
    clouds: BTreeMap<Name, String>,
    /// What was asked of the cloud and is not answered.
    tasks: BTreeMap<VmId, CloudTask>,
    /// Alarms that have not rung, and when they are due, in milliseconds since 1970.
    alarms: BTreeMap<Alarm, u64>,
    names: NameRegister,
    events: VecDeque<Event>,
    last_event: u64,
    /// What is kept of each application.
    #[serde(with = "as_json")]
    applications: BTreeMap<Name, Arc<ApplicationState>>,
    /// What was kept of applications before a change that is not done: it is kept again if the change is undone.
    before: BTreeMap<ChangeId, Vec<Before>>,
}

/// What happens to the manager besides letters of agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LocalEvent {
    /// The operator asks for something.
    Asked {
        /// For what.
        request: Request,
        /// In a few words.
        about: String,
        /// Which cloud makes the VMs of these names.
        clouds: BTreeMap<Name, String>,
    },
    /// The cloud, or the links, say how a VM is.
    FromCloud(CloudOutcome),
    /// An alarm rang.
    AlarmRang(Alarm),
    /// The operator wants to know something about a component, which its agent knows.
    Question {
        /// The number of the question.
        number: u64,
        /// About which component.
        component: Name,
        /// What.
        question: Question,
    },
    /// Written by earlier releases: a change together with the record of an application.
    Applied {
        /// For what.
        request: Request,
        /// In a few words.
        about: String,
        /// Which cloud makes the VMs of these names.
        clouds: BTreeMap<Name, String>,
        /// The application.
        application: Name,
        /// What is to be remembered of it if the request is accepted; nothing, to forget it.
        record: Option<String>,
    },
    /// The program was started with another patience with VMs that are not heard of: in milliseconds, or for ever.
    Patience(Option<u64>),
    /// The same as [`Self::Question`] about the component of a number: several may have one name.
    QuestionAbout {
        /// The number of the question.
        number: u64,
        /// About which component.
        component: ComponentId,
        /// What.
        question: Question,
    },
    /// A decision about applications is to be carried out.
    Submitted(Box<Submission>),
    /// The steps of an application's rollout that were not posted yet are dropped. A rollout is known by its first change.
    RolloutCancelled(Name, ChangeId),
    /// A rollout that waits after its canaries goes on: an operator said so, or its time has come.
    RolloutPromoted(Name, ChangeId),
    /// An operator asks something of a VM, or wants data deleted.
    HostQuestion {
        /// The number of the question.
        number: u64,
        /// Which VM.
        vm: VmId,
        /// What.
        question: HostQuestion,
    },
    /// A request, and what is asked for together with it if it is accepted.
    With(Box<LocalEvent>, Json<Wishes>),
}

/// What the manager asks of the program around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The operator is told something.
    Told(Event),
    /// Ask a cloud; without one, an agent joins by itself.
    Cloud(CloudTask, Option<String>),
    /// Ring at that moment.
    Alarm(Alarm, Moment),
    /// What the operator wanted to know about a component, or why it cannot be said.
    Answer {
        /// The number of the question.
        number: u64,
        /// The answer.
        answer: Result<String, String>,
    },
    /// What became of a submission.
    Submission(Result<Posted, NotPosted>),
    /// The machine was asked for this, for an application: what follows is its answer. An audit reads it.
    Requested(Box<Request>),
    /// Promote the rollout of an application at that moment.
    PromoteAt(Name, ChangeId, Moment),
    /// A VM is gone for good: it gets no certificate any more.
    Revoke(PeerId),
    /// Worth a line in the log.
    Note(Note),
    /// A message was not understood, and why.
    Distrusted(PeerId, &'static str),
}

/// A submission was carried out, or its first step was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The change; nothing, if something was only to be remembered.
    pub change: Option<ChangeId>,
    /// The version that each application has now; 0 if it is removed.
    pub versions: BTreeMap<Name, u64>,
}

/// Why a submission was not carried out. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPosted {
    /// An application has another version than the one that it was planned from.
    Outdated(Name),
    /// The machine refuses the change.
    Refused(Vec<Refusal>),
}

/// The manager as one looks at it between two steps: the machine, and what is kept beside it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The protocol's machine.
    pub machine: &'a CloudManager,
    /// Which cloud makes the VM of a name, if one does.
    pub clouds: &'a BTreeMap<Name, String>,
    /// What is kept of each application.
    pub applications: &'a BTreeMap<Name, Arc<ApplicationState>>,
    /// The data that VMs keep.
    pub data: &'a DataBook,
}

impl<'a> View<'a> {
    /// The machine's book.
    pub fn book(&self) -> &'a Book {
        self.machine.book()
    }

    /// Whether a change is done.
    pub fn is_done(&self, change: u64) -> bool {
        self.machine.changes().all(|it| it.change.0 != change)
    }
}

type Outputs = Vec<Output<Effect>>;

impl Manager {
    /// A manager without VMs, which never declares a VM lost by itself.
    pub fn new(signer: Signer) -> Self {
        let books = Books {
            manager: CloudManager::new(None),
            addresses: BTreeMap::new(),
            acquainted: BTreeMap::new(),
            clouds: BTreeMap::new(),
            tasks: BTreeMap::new(),
            alarms: BTreeMap::new(),
            names: NameRegister::default(),
            events: VecDeque::new(),
            last_event: 0,
            applications: BTreeMap::new(),
            before: BTreeMap::new(),
        };
        Self { signer, books, beside: Beside::default() }
    }

    /// The protocol's machine.
    pub fn machine(&self) -> &CloudManager {
        &self.books.manager
    }

    /// What was asked of the cloud and is not answered, and of which cloud.
    pub fn tasks(&self) -> impl Iterator<Item = (&CloudTask, Option<&String>)> {
        self.books.tasks.iter().map(|(vm, task)| (task, self.cloud_of(*vm)))
    }

    /// The machine, and what is kept beside it.
    pub fn view(&self) -> View<'_> {
        let Books { manager, clouds, applications, .. } = &self.books;
        View { machine: manager, clouds, applications, data: &self.beside.data }
    }

    /// The cloud that makes a VM, if one does.
    pub fn cloud_of(&self, vm: VmId) -> Option<&String> {
        self.books.clouds.get(self.books.names.vm(vm)?)
    }

    /// Alarms that have not rung, and when they are due.
    pub fn alarms(&self) -> impl Iterator<Item = (Alarm, Moment)> {
        self.books.alarms.iter().map(|(alarm, due)| (*alarm, Moment(*due)))
    }

    /// What the operator was told after this number, oldest first.
    pub fn events_after(&self, number: u64) -> impl Iterator<Item = &Event> {
        let first = self.books.events.partition_point(|event| event.number <= number);
        self.books.events.range(first..)
    }

    /// The number of the latest thing that the operator was told.
    pub fn last_event(&self) -> u64 {
        self.books.last_event
    }

    /// The component whose output is of interest to whoever calls it by its name: one that is on its way out, too, above
    /// all if it cannot go; and another may already have its name.
    pub fn component_with_output(&self, name: &Name) -> Option<ComponentId> {
        let failed = |it: &ComponentEntry| matches!(it.condition.map(|it| it.state), Some(ComponentState::Failed(_)));
        let named = self.books.manager.book().components().filter(|it| it.name == *name && it.id.is_some());
        named.max_by_key(|it| (failed(it), !it.is_leaving())).and_then(|it| it.id)
    }

    /// Rollouts that will promote themselves, and when.
    pub fn promotions(&self) -> impl Iterator<Item = (Name, ChangeId, Moment)> {
        let applications = self.books.applications.iter();
        applications.filter_map(|(name, it)| {
            let rollout = it.rollout.as_ref()?;
            Some((name.clone(), ChangeId(rollout.first), Moment(rollout.promotes_at_ms?)))
        })
    }

    fn ask(&mut self, at: Moment, request: Request, about: &str, clouds: BTreeMap<Name, String>) -> Outputs {
        let named: Vec<Name> = clouds.keys().cloned().collect();
        self.books.clouds.extend(clouds);
        let outputs = self.step(at, Input::FromOperator(request), Some(about));
        // What was refused has no cloud.
        for name in named.iter().filter(|name| self.books.manager.book().vm(name).is_none()) {
            self.books.clouds.remove(name);
        }
        outputs
    }

    fn step(&mut self, at: Moment, input: Input, about: Option<&str>) -> Outputs {
        let mut outputs = Vec::new();
        for output in self.books.manager.step(input) {
            self.books.names.learn(&output);
            self.pack(at, output, about, &mut outputs);
        }
        outputs
    }

    fn pack(&mut self, at: Moment, output: manager::Output, about: Option<&str>, outputs: &mut Outputs) {
        match output {
            manager::Output::ToOperator(news) => self.tell(at, news, about, outputs),
            manager::Output::ToAgent(vm, order) => self.order(vm, order, outputs),
            manager::Output::ToCloud(task) => {
                let (CloudTask::Create(vm, _) | CloudTask::Destroy(vm)) = task;
                self.books.tasks.insert(vm, task.clone());
                outputs.push(Output::Effect(Effect::Cloud(task, self.cloud_of(vm).cloned())));
            }
            manager::Output::SetAlarm(alarm, pause_ms) => {
                let due = at.0.saturating_add(pause_ms);
                self.books.alarms.insert(alarm, due);
                outputs.push(Output::Effect(Effect::Alarm(alarm, Moment(due))));
            }
            manager::Output::Note(note) => outputs.push(Output::Effect(Effect::Note(note))),
        }
    }

    fn tell(&mut self, at: Moment, news: News, about: Option<&str>, outputs: &mut Outputs) {
        let gone = match news {
            News::VmLost(vm) | News::VmDestroyed(vm) => Some((vm, self.books.names.vm(vm).cloned())),
            _ => None,
        };
        let about = match news {
            News::Accepted(_) | News::Refused(_) => about.map(Into::into),
            _ => self.books.names.about(&news).map(|name| name.to_string()),
        };
        // A refusal changed nothing and concerns only the client that asked. It takes no number, or clients that follow the
        // events would believe that they missed one.
        let kept = !matches!(news, News::Refused(_));
        self.books.last_event += u64::from(kept);
        let event = Event { number: self.books.last_event, at_ms: at.0, news, about };
        if kept {
            self.books.events.push_back(event.clone());
            if self.books.events.len() > EVENTS_MAX {
                self.books.events.pop_front();
            }
        }
        match &event.news {
            News::ChangeDone(change) | News::ChangeCancelled(change) => {
                self.books.before.remove(change);
                // The steps of a rollout are watched until its end.
                if !self
                    .books
                    .applications
                    .values()
                    .any(|it| it.rollout.as_ref().is_some_and(|it| it.first == change.0))
                {
                    self.beside.cancelled_on_failure.remove(change);
                }
            }
            News::Cancelling(change, CancelOutlook::Dropped | CancelOutlook::Undone { .. }) => {
                self.restore(at, *change);
            }
            _ => {}
        }
        if matches!(event.news, News::Cancelling(..)) {
            self.beside.data.spare();
        }
        outputs.push(Output::Effect(Effect::Told(event)));
        if let Some((vm, name)) = gone {
            self.forget(vm, name.as_ref(), outputs);
        }
    }

    /// A VM is gone for good: its messages are ignored from now on.
    fn forget(&mut self, vm: VmId, name: Option<&Name>, outputs: &mut Outputs) {
        self.books.addresses.remove(&vm);
        self.beside.data.forget_vm(vm);
        for neighbour in self.books.acquainted.remove(&vm).unwrap_or_default() {
            if let Some(others) = self.books.acquainted.get_mut(&neighbour) {
                others.remove(&vm);
            }
        }
        outputs.push(Output::Revoke(PeerId(vm.0)));
        outputs.push(Output::Effect(Effect::Revoke(PeerId(vm.0))));
        if let Some(name) = name
            && self.books.manager.book().vm(name).is_none()
        {
            self.books.clouds.remove(name);
        }
        // Its components went without news of their own.
        self.books.names.keep_only(self.books.manager.book());
    }

    fn order(&mut self, vm: VmId, mut order: Order, outputs: &mut Outputs) {
        if let Instruction::AddBinding { client, client_vm, import, ticket, .. } = &mut order.instruction {
            let binding = BindingId(order.number.0);
            let statement = Statement { binding, provider_vm: vm, client: *client, import: import.clone() };
            let bytes = statement.bytes().expect("names are bounded, and far shorter than a message may be");
            *ticket = Ticket(self.signer.sign(&bytes).0.to_vec());
            if *client_vm != vm {
                self.acquaint(vm, *client_vm, outputs);
                self.acquaint(*client_vm, vm, outputs);
            }
        }
        self.beside.data.learn(vm, &order.instruction);
        outputs.push(send(vm, &ToAgent::Order(order)));
    }

    /// Lets `whom` know where `vm` listens, now or as soon as it is known.
    fn acquaint(&mut self, vm: VmId, whom: VmId, outputs: &mut Outputs) {
        let is_news = self.books.acquainted.entry(vm).or_default().insert(whom);
        if let Some(address) = self.books.addresses.get(&vm)
            && is_news
        {
            outputs.push(send(whom, &ToAgent::Neighbour { vm, address: *address }));
        }
    }

    fn listening(&mut self, vm: VmId, address: SocketAddr) -> Outputs {
        if self.books.manager.book().vm_by_id(vm).is_none() {
            return Vec::new();
        }
        self.books.addresses.insert(vm, address);
        let acquainted = self.books.acquainted.get(&vm).into_iter().flatten();
        acquainted.map(|whom| send(*whom, &ToAgent::Neighbour { vm, address })).collect()
    }

    fn pass_on_about(&self, number: u64, component: ComponentId, question: Question) -> Outputs {
        let book = self.books.manager.book();
        match book.component_by_id(component).and_then(|it| book.vm_of(it).id) {
            Some(vm) => vec![send(vm, &ToAgent::Ask { number, component, question })],
            None => {
                let answer = Err("the component is gone by now".into());
                vec![Output::Effect(Effect::Answer { number, answer })]
            }
        }
    }

    fn pass_on(&self, number: u64, component: &Name, question: Question) -> Outputs {
        let refuse = |why: String| vec![Output::Effect(Effect::Answer { number, answer: Err(why) })];
        let book = self.books.manager.book();
        let Some(entry) = book.component(component) else {
            return refuse(format!("there is no component {component}"));
        };
        match (book.vm_of(entry).id, entry.id) {
            (Some(vm), Some(component)) => {
                vec![send(vm, &ToAgent::Ask { number, component, question })]
            }
            _ => refuse(format!("component {component} waits for its phase; nothing of it has run")),
        }
    }
}

impl Machine for Manager {
    type LocalEvent = LocalEvent;
    type Effect = Effect;

    fn receive(&mut self, at: Moment, from: PeerId, payload: &[u8]) -> Outputs {
        let vm = VmId(from.0);
        let mut outputs = match wire::decode(payload) {
            Ok(ToManager::Report(report)) => self.step(at, Input::FromAgent(vm, report), None),
            Ok(ToManager::Listening { address }) => self.listening(vm, address),
            Ok(ToManager::Answer { number, answer }) => {
                self.beside.data.answered(number, &answer);
                vec![Output::Effect(Effect::Answer { number, answer })]
            }
            Err(_) => vec![Output::Effect(Effect::Distrusted(from, "it is not a message of an agent"))],
        };
        self.advance(at, &mut outputs);
        outputs
    }

    fn witness(&mut self, at: Moment, event: LocalEvent) -> Outputs {
        let mut outputs = self.happened(at, event);
        self.advance(at, &mut outputs);
        outputs
    }

    fn write(event: &LocalEvent) -> Result<Vec<u8>, Error> {
        wire::save(event).map_err(|error| Error::Unwritable { what: "a event", source: error.into() })
    }

    fn read(bytes: &[u8]) -> Option<LocalEvent> {
        wire::load(bytes).ok()
    }

    fn save(&self) -> Result<Vec<u8>, Error> {
        let all = (&self.books, Json::new(self.beside.clone()));
        wire::save(&all).map_err(|error| Error::Unwritable { what: "the manager's state", source: error.into() })
    }

    fn restore(self, bytes: &[u8]) -> Option<Self> {
        // Earlier releases stored only the first part.
        let (books, beside) = match wire::load::<(Books, Json<Beside>)>(bytes) {
            Ok((books, beside)) => (books, Beside::clone(&beside.0)),
            Err(_) => (wire::load(bytes).ok()?, Beside::default()),
        };
        Some(Self { books, beside, ..self })
    }
}

impl Manager {
    /// Does what the facts now allow: the next steps of rollouts, deletions of data, and cancellations of what failed.
    fn advance(&mut self, at: Moment, outputs: &mut Outputs) {
        self.cancel_failed(at, outputs);
        self.advance_rollouts(at, outputs);
        self.advance_data(outputs);
    }

    fn happened(&mut self, at: Moment, event: LocalEvent) -> Outputs {
        match event {
            LocalEvent::Asked { request, about, clouds } => self.ask(at, request, &about, clouds),
            LocalEvent::Applied { request, about, clouds, application, record } => {
                let outputs = self.ask(at, request, &about, clouds);
                // In one step with the change: so it is remembered exactly if the change is.
                if outputs.iter().any(is_acceptance) {
                    match record.as_deref().and_then(Former::read) {
                        Some(state) => drop(self.books.applications.insert(application, Arc::new(state))),
                        None => drop(self.books.applications.remove(&application)),
                    }
                }
                outputs
            }
            LocalEvent::Submitted(submission) => self.submit(at, *submission),
            LocalEvent::RolloutCancelled(application, first) => {
                // The change of the present step is finished.
                if self.rollout(&application, first).is_some() {
                    self.set_rollout(&application, None);
                }
                Vec::new()
            }
            LocalEvent::RolloutPromoted(application, first) => {
                if let Some(rollout) = self.rollout(&application, first).cloned() {
                    // What was refused is asked for once more.
                    let promoted = Rollout { canary_steps: None, promotes_at_ms: None, blocked: Vec::new(), ..rollout };
                    self.set_rollout(&application, Some(promoted));
                }
                Vec::new()
            }
            LocalEvent::FromCloud(outcome) => {
                if let CloudOutcome::Heard(vm) = &outcome {
                    self.beside.data.ask_again(*vm);
                }
                if let CloudOutcome::Created(vm) | CloudOutcome::CreateFailed(vm, _) | CloudOutcome::Destroyed(vm) =
                    &outcome
                {
                    self.books.tasks.remove(vm);
                }
                self.step(at, Input::FromCloud(outcome), None)
            }
            LocalEvent::AlarmRang(alarm) => {
                self.books.alarms.remove(&alarm);
                self.step(at, Input::AlarmRang(alarm), None)
            }
            LocalEvent::Question { number, component, question } => self.pass_on(number, &component, question),
            LocalEvent::QuestionAbout { number, component, question } => {
                self.pass_on_about(number, component, question)
            }
            LocalEvent::Patience(limit) => self.step(at, Input::SuspicionLimit(limit), None),
            LocalEvent::HostQuestion { number, vm, question } => self.ask_host(number, vm, question),
            LocalEvent::With(event, wishes) => {
                let outputs = self.happened(at, *event);
                if let Some(change) = outputs.iter().find_map(accepted) {
                    self.doom(wishes.0.delete_data.clone());
                    if wishes.0.rollback_on_failure {
                        self.beside.cancelled_on_failure.insert(change);
                    }
                }
                outputs
            }
        }
    }
}

fn is_acceptance(output: &Output<Effect>) -> bool {
    accepted(output).is_some()
}

/// The change that the machine has accepted.
fn accepted(output: &Output<Effect>) -> Option<ChangeId> {
    match output {
        Output::Effect(Effect::Told(Event { news: News::Accepted(change), .. })) => Some(*change),
        _ => None,
    }
}

fn send(to: VmId, letter: &ToAgent) -> Output<Effect> {
    let bytes =
        wire::encode(letter).expect("recipes and names are bounded, so an order is shorter than a message may be");
    Output::Send(PeerId(to.0), bytes)
}
