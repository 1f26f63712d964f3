//! The manager as the engine drives it: the protocol's machine, and what a real manager must store as well: agents'
//! addresses, which neighbours know them, pending requests to clouds, pending alarms, events, and applications.
//!
//! Nothing here decides about reconfiguration. It decodes input, steps the machine, and encodes the output: bindings get
//! their tickets, and neighbours learn each other's addresses before they need them.

mod data;
mod origins;
mod questions;
mod submissions;
mod wishes;

pub use data::{DataBook, DataPlace};
pub use origins::{Origin, Origins};
pub use wishes::Wishes;

use crate::applications::{
    ApplicationState, Submission,
    rollout::Rollout,
    state::{Before, Former, Json, as_json},
};
use crate::handle::{Event, NameRegister};
use protocol::letter::{FailedAttempt, HostQuestion, Question, Statement, ToAgent, ToManager};
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
    /// The address of each agent.
    addresses: BTreeMap<VmId, SocketAddr>,
    /// The agents that know, or have to learn, each agent's address.
    acquainted: BTreeMap<VmId, BTreeSet<VmId>>,
    /// The cloud that creates the VM with a given name, if there is one.
    clouds: BTreeMap<Name, String>,
    /// Requests to clouds that are not answered yet.
    tasks: BTreeMap<VmId, CloudTask>,
    /// Pending alarms, with their due times in milliseconds since 1970.
    alarms: BTreeMap<Alarm, u64>,
    names: NameRegister,
    events: VecDeque<Event>,
    last_event: u64,
    /// The state of each application.
    #[serde(with = "as_json")]
    applications: BTreeMap<Name, Arc<ApplicationState>>,
    /// The state of applications before a change that is not done yet: it is restored if the change is undone.
    before: BTreeMap<ChangeId, Vec<Before>>,
}

/// The inputs of the manager apart from agents' messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LocalEvent {
    /// Written by earlier releases: a request of the operator.
    Asked {
        /// The request.
        request: Request,
        /// A short description.
        about: String,
        /// The cloud that creates each of these VMs.
        clouds: BTreeMap<Name, String>,
    },
    /// A statement of a cloud, or of the links, about a VM.
    FromCloud(CloudOutcome),
    /// An alarm is due.
    AlarmRang(Alarm),
    /// The operator's question about a component, which its agent can answer.
    Question {
        /// The number of the question.
        number: u64,
        /// The component.
        component: Name,
        /// The question.
        question: Question,
    },
    /// Written by earlier releases: a change together with the record of an application.
    Applied {
        /// The request.
        request: Request,
        /// A short description.
        about: String,
        /// The cloud that creates each of these VMs.
        clouds: BTreeMap<Name, String>,
        /// The application.
        application: Name,
        /// What is stored about it if the request is accepted; `None` removes it.
        record: Option<String>,
    },
    /// The program was started with another timeout for silent VMs: in milliseconds; `None` for unlimited.
    Patience(Option<u64>),
    /// The same as [`Self::Question`], about a component by number: several may have the same name.
    QuestionAbout {
        /// The number of the question.
        number: u64,
        /// The component.
        component: ComponentId,
        /// The question.
        question: Question,
    },
    /// Carry out a decision about applications.
    Submitted(Box<Submission>),
    /// Drop the steps of an application's rollout that were not posted yet. A rollout is identified by its first change.
    RolloutCancelled(Name, ChangeId),
    /// Continue a rollout that waits after its canaries: an operator promoted it, or its time has come.
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
    /// A request of an operator.
    AskedBy {
        /// The name of the operator's token.
        by: String,
        /// The request.
        request: Request,
        /// A short description.
        about: String,
        /// The cloud that creates each of these VMs.
        clouds: BTreeMap<Name, String>,
    },
}

/// The outputs of the manager for the program around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// News for the operator.
    Event(Event),
    /// Give a task to a cloud; without a cloud, an agent joins by itself.
    Cloud(CloudTask, Option<String>),
    /// Set an alarm for that moment.
    Alarm(Alarm, Moment),
    /// The answer to the operator's question about a component, or why there is none.
    Answer {
        /// The number of the question.
        number: u64,
        /// The answer.
        answer: Result<String, String>,
    },
    /// The outcome of a submission.
    Submission(Result<Posted, NotPosted>),
    /// This was submitted to the machine for an application, and its answer follows. Audits read it.
    Requested(Box<Request>),
    /// Promote the rollout of an application at that moment.
    PromoteAt(Name, ChangeId, Moment),
    /// A VM is gone for good: its certificate is not renewed any more.
    Revoke(PeerId),
    /// A note for the log.
    Note(Note),
    /// A message could not be read, and why.
    Rejected(PeerId, &'static str),
}

/// A submission was carried out, or its first step was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The change; `None` if there was only something to record.
    pub change: Option<ChangeId>,
    /// The version that each application has now; 0 if it is removed.
    pub versions: BTreeMap<Name, u64>,
}

/// Why a submission was not carried out. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPosted {
    /// An application has another version than the one the submission was planned from.
    Outdated(Name),
    /// The machine refused the change.
    Refused(Vec<Refusal>),
}

/// A view of the manager between two steps: the machine, and what is stored beside it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The protocol's machine.
    pub machine: &'a CloudManager,
    /// The cloud that creates the VM with a given name, if there is one.
    pub clouds: &'a BTreeMap<Name, String>,
    /// The state of each application.
    pub applications: &'a BTreeMap<Name, Arc<ApplicationState>>,
    /// Who asked for each change.
    pub origins: &'a Origins,
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

    /// Requests to clouds that are not answered yet, each with its cloud.
    pub fn tasks(&self) -> impl Iterator<Item = (&CloudTask, Option<&String>)> {
        self.books.tasks.iter().map(|(vm, task)| (task, self.cloud_of(*vm)))
    }

    /// The machine, and what is stored beside it.
    pub fn view(&self) -> View<'_> {
        let Books { manager, clouds, applications, .. } = &self.books;
        let Beside { data, origins, .. } = &self.beside;
        View { machine: manager, clouds, applications, origins, data }
    }

    /// The cloud that creates a VM, if there is one.
    pub fn cloud_of(&self, vm: VmId) -> Option<&String> {
        self.books.clouds.get(self.books.names.vm(vm)?)
    }

    /// Pending alarms, with their due times.
    pub fn alarms(&self) -> impl Iterator<Item = (Alarm, Moment)> {
        self.books.alarms.iter().map(|(alarm, due)| (*alarm, Moment(*due)))
    }

    /// The events after this number, oldest first.
    pub fn events_after(&self, number: u64) -> impl Iterator<Item = &Event> {
        let first = self.books.events.partition_point(|event| event.number <= number);
        self.books.events.range(first..)
    }

    /// The number of the latest event.
    pub fn last_event(&self) -> u64 {
        self.books.last_event
    }

    /// The component whose output is meant by this name: preferably one that is being removed, above all if its removal is
    /// stuck; its replacement may already have the same name.
    pub fn component_with_output(&self, name: &Name) -> Option<ComponentId> {
        let failed = |it: &ComponentEntry| matches!(it.condition.map(|it| it.state), Some(ComponentState::Failed(_)));
        let named = self.books.manager.book().components().filter(|it| it.name == *name && it.id.is_some());
        named.max_by_key(|it| (failed(it), !it.is_leaving())).and_then(|it| it.id)
    }

    /// Rollouts that are promoted by a timer, with their due times.
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
        // A refused change creates no VMs.
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
        // A refusal changes nothing and concerns only the client that sent the request. It takes no number, otherwise clients that
        // follow the events would see a gap.
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
        outputs.push(Output::Effect(Effect::Event(event)));
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
        // Its components are removed without events of their own.
        self.books.names.keep_only(self.books.manager.book());
    }

    fn order(&mut self, vm: VmId, mut order: Order, outputs: &mut Outputs) {
        if let Instruction::AddBinding { client, client_vm, import, ticket, .. } = &mut order.instruction {
            let binding = BindingId(order.number.0);
            let statement = Statement { binding, provider_vm: vm, client: *client, import: import.clone() };
            let bytes = statement.bytes().expect("names are bounded, and far shorter than the limit of a message");
            *ticket = Ticket(self.signer.sign(&bytes).0.to_vec());
            if *client_vm != vm {
                self.announce_address(vm, *client_vm, outputs);
                self.announce_address(*client_vm, vm, outputs);
            }
        }
        self.beside.data.learn(vm, &order.instruction);
        outputs.push(send(vm, &ToAgent::Order(order)));
    }

    /// Tells `whom` the address of `vm`, now or as soon as it is known.
    fn announce_address(&mut self, vm: VmId, whom: VmId, outputs: &mut Outputs) {
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

    /// An agent says why an attempt failed, of a component of its own.
    fn attempt_failed(&mut self, at: Moment, vm: VmId, component: ComponentId, attempt: FailedAttempt) -> Outputs {
        let mut outputs = Vec::new();
        let book = self.books.manager.book();
        if book.component_by_id(component).is_some_and(|it| book.vm_of(it).id == Some(vm)) {
            self.tell(at, News::AttemptFailed(component, attempt), None, &mut outputs);
        }
        outputs
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
            Ok(ToManager::AttemptFailed { component, attempt }) => self.attempt_failed(at, vm, component, attempt),
            Err(_) => vec![Output::Effect(Effect::Rejected(from, "it is not an agent's message"))],
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
        wire::save(event).map_err(|error| Error::Unwritable { what: "an event", source: error.into() })
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
            LocalEvent::AskedBy { by, request, about, clouds } => {
                let outputs = self.ask(at, request, &about, clouds);
                outputs.iter().filter_map(accepted).for_each(|change| self.beside.origins.note(change, &by));
                outputs
            }
            LocalEvent::Applied { request, about, clouds, application, record } => {
                let outputs = self.ask(at, request, &about, clouds);
                // In the same step as the change, so that it is recorded exactly if the change is accepted.
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
                // The change of the present step is completed.
                if self.rollout(&application, first).is_some() {
                    self.end_rollout(&application);
                }
                Vec::new()
            }
            LocalEvent::RolloutPromoted(application, first) => {
                if let Some(rollout) = self.rollout(&application, first).cloned() {
                    // The refused step is submitted again.
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
            LocalEvent::Question { number, component, question } => {
                self.forward_question_by_name(number, &component, question)
            }
            LocalEvent::QuestionAbout { number, component, question } => {
                self.forward_question(number, component, question)
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
        Output::Effect(Effect::Event(Event { news: News::Accepted(change), .. })) => Some(*change),
        _ => None,
    }
}

fn send(to: VmId, letter: &ToAgent) -> Output<Effect> {
    let bytes =
        wire::encode(letter).expect("recipes and names are bounded, so an order is within the limit of a message");
    Output::Send(PeerId(to.0), bytes)
}
