//! The agent as the engine drives it: the protocol's machine, and the few facts that a real agent must remember
//! besides: which tasks and alarms are pending, and which listening address it reported to the manager.
//!
//! Nothing here decides about reconfiguration. What comes in is unpacked and checked (is this the manager? did the manager
//! sign this binding?), the machine steps, and what it answers is packed.

use protocol::agent::{Alarm, Input, Note, STEADY_PAUSES, TaskState, VmAgent};
use protocol::letter::{FailedAttempt, HostQuestion, Question, Statement, ToAgent, ToManager};
use protocol::wire;
use protocol::{ComponentId, HostOutcome, HostTask, Instruction, Notice, Operation, Order, VmId, agent};
use runtime::engine::{Machine, Moment, Output};
use runtime::identity::{Identity, Ticket};
use runtime::{Error, PeerId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// The agent of this VM.
#[derive(Clone, Debug)]
pub struct Agent {
    identity: Arc<Identity>,
    books: Books,
}

/// State that must survive a restart of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Books {
    agent: VmAgent,
    /// Tasks without an outcome yet.
    tasks: BTreeMap<ComponentId, HostTask>,
    /// Pending alarms and when they are due, in milliseconds since 1970.
    alarms: BTreeMap<Alarm, u64>,
    /// The listening address that was reported to the manager.
    listening: Option<SocketAddr>,
}

/// Local events on a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LocalEvent {
    /// The host reports an outcome.
    FromHost(HostOutcome),
    /// An alarm rang.
    AlarmRang(Alarm),
    /// The agent listens there.
    Listening(SocketAddr),
    /// The answer to the manager's question about a component, or the reason why there is none.
    Answered {
        /// The number of the question.
        number: u64,
        /// The answer.
        answer: Result<String, String>,
    },
}

/// What an agent asks of its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Carry out a task.
    Task(HostTask),
    /// Set an alarm for that moment.
    Alarm(Alarm, Moment),
    /// Look up something about a component.
    Answer {
        /// The number of the question.
        number: u64,
        /// About which component.
        component: ComponentId,
        /// What.
        question: Question,
    },
    /// Answer a question about the VM, or delete data.
    AnswerAboutHost {
        /// The number of the question.
        number: u64,
        /// What.
        question: HostQuestion,
    },
    /// A note for the log.
    Note(Note),
    /// A message was rejected, and why.
    Distrusted(PeerId, &'static str),
}

type Outputs = Vec<Output<Effect>>;

impl Agent {
    /// The agent of a new, empty VM.
    pub fn new(identity: Arc<Identity>) -> Self {
        let me = VmId(identity.certified().peer.0);
        let agent = VmAgent::new(me);
        Self { identity, books: Books { agent, tasks: BTreeMap::new(), alarms: BTreeMap::new(), listening: None } }
    }

    /// The protocol's machine.
    pub fn machine(&self) -> &VmAgent {
        &self.books.agent
    }

    /// Tasks without an outcome yet.
    pub fn tasks(&self) -> impl Iterator<Item = &HostTask> {
        self.books.tasks.values()
    }

    /// Pending alarms and when they are due.
    pub fn alarms(&self) -> impl Iterator<Item = (Alarm, Moment)> {
        self.books.alarms.iter().map(|(alarm, due)| (*alarm, Moment(*due)))
    }

    /// What a message means to the protocol's machine, if it is for the machine and can be trusted.
    pub fn understand(&self, from: PeerId, payload: &[u8]) -> Result<Understood, &'static str> {
        if from == PeerId::MANAGER {
            return match wire::decode(payload) {
                Ok(ToAgent::Order(order)) => Ok(Understood::Input(Input::FromManager(order))),
                Ok(other) => Ok(Understood::Aside(other)),
                Err(_) => Err("it is not a message of the manager"),
            };
        }
        let notice: Notice = wire::decode(payload).map_err(|_| "it is not a notice")?;
        let peer = VmId(from.0);
        if let Notice::Bind { binding, client, import, ticket, .. } = &notice {
            let statement = Statement { binding: *binding, provider_vm: peer, client: *client, import: import.clone() };
            self.check(&statement, &ticket.0)?;
        }
        Ok(Understood::Input(Input::FromPeer(peer, notice)))
    }

    fn check(&self, statement: &Statement, ticket: &[u8]) -> Result<(), &'static str> {
        let ticket = Ticket(ticket.try_into().map_err(|_| "its ticket is not a signature")?);
        let bytes = statement.bytes().map_err(|_| "its binding cannot be encoded")?;
        self.identity.verify(&ticket, &bytes).map_err(|_| "its ticket is not signed by the manager")
    }

    fn step(&mut self, at: Moment, input: Input) -> Outputs {
        let mut outputs = Vec::new();
        if let Input::FromManager(Order { instruction: Instruction::ForgetVm { vm }, .. }) = &input {
            outputs.push(Output::Revoke(PeerId(vm.0)));
        }
        for output in self.books.agent.step(input) {
            self.pack(at, output, &mut outputs);
        }
        outputs
    }

    /// Tells the manager why an attempt failed, if the machine is going to retry it.
    fn failed_attempt(
        &self,
        at: Moment,
        (component, detail): (ComponentId, Arc<str>),
        outputs: &Outputs,
    ) -> Option<Output<Effect>> {
        let pause_ms = outputs.iter().find_map(|output| match output {
            Output::Effect(Effect::Alarm(Alarm::Retry { component: retried, .. }, due)) if *retried == component => {
                Some(due.0.saturating_sub(at.0))
            }
            _ => None,
        })?;
        let told = self.books.agent.components().get(&component)?;
        let TaskState::Pausing(operation) = told.task_state() else { return None };
        let died = operation == Operation::Run;
        let failures = if died { told.deaths() } else { told.failures().map_or(1, |(_, times)| times) };
        let retries = told.kind().patience(operation).retries;
        let steady_ms = if died { pause_ms.saturating_mul(STEADY_PAUSES) } else { 0 };
        let attempt = FailedAttempt { operation, failures, retries, pause_ms, steady_ms, detail };
        Some(send(PeerId::MANAGER, &ToManager::AttemptFailed { component, attempt }))
    }

    /// Encodes what the machine says.
    fn pack(&mut self, at: Moment, output: agent::Output, outputs: &mut Outputs) {
        match output {
            agent::Output::ToManager(report) => outputs.push(send(PeerId::MANAGER, &ToManager::Report(report))),
            agent::Output::ToPeer(vm, notice) => outputs.push(send(PeerId(vm.0), &notice)),
            agent::Output::ToHost(task) => {
                self.books.tasks.insert(task.component, task.clone());
                outputs.push(Output::Effect(Effect::Task(task)));
            }
            agent::Output::SetAlarm(alarm, pause_ms) => {
                let due = at.0.saturating_add(pause_ms);
                self.books.alarms.insert(alarm, due);
                outputs.push(Output::Effect(Effect::Alarm(alarm, Moment(due))));
            }
            agent::Output::Note(note) => outputs.push(Output::Effect(Effect::Note(note))),
        }
    }
}

/// A message that was accepted as genuine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Understood {
    /// It is for the protocol's machine.
    Input(Input),
    /// It is for the program around it.
    Aside(ToAgent),
}

impl Machine for Agent {
    type LocalEvent = LocalEvent;
    type Effect = Effect;

    fn receive(&mut self, at: Moment, from: PeerId, payload: &[u8]) -> Outputs {
        match self.understand(from, payload) {
            Ok(Understood::Input(input)) => self.step(at, input),
            Ok(Understood::Aside(ToAgent::Neighbour { vm, address })) => {
                vec![Output::Introduce(PeerId(vm.0), address)]
            }
            Ok(Understood::Aside(ToAgent::Ask { number, component, question })) => {
                vec![Output::Effect(Effect::Answer { number, component, question })]
            }
            Ok(Understood::Aside(ToAgent::AskHost { number, question })) => {
                vec![Output::Effect(Effect::AnswerAboutHost { number, question })]
            }
            Ok(Understood::Aside(ToAgent::Order(_))) => unreachable!("an order is an input"),
            Err(why) => vec![Output::Effect(Effect::Distrusted(from, why))],
        }
    }

    fn witness(&mut self, at: Moment, event: LocalEvent) -> Outputs {
        match event {
            LocalEvent::FromHost(outcome) => {
                if let HostOutcome::Done { component, serial, .. } | HostOutcome::Failed { component, serial, .. } =
                    &outcome
                    && self.books.tasks.get(component).is_some_and(|task| task.serial == *serial)
                {
                    self.books.tasks.remove(component);
                }
                let failure = match &outcome {
                    HostOutcome::Failed { component, detail, .. } | HostOutcome::Died { component, detail, .. } => {
                        Some((*component, detail.clone()))
                    }
                    HostOutcome::Done { .. } => None,
                };
                let mut outputs = self.step(at, Input::FromHost(outcome));
                let told = failure.and_then(|failure| self.failed_attempt(at, failure, &outputs));
                outputs.extend(told);
                outputs
            }
            LocalEvent::AlarmRang(alarm) => {
                self.books.alarms.remove(&alarm);
                self.step(at, Input::AlarmRang(alarm))
            }
            LocalEvent::Listening(address) => {
                if self.books.listening.replace(address) == Some(address) {
                    return Vec::new();
                }
                vec![send(PeerId::MANAGER, &ToManager::Listening { address })]
            }
            LocalEvent::Answered { number, answer } => {
                vec![send(PeerId::MANAGER, &ToManager::Answer { number, answer })]
            }
        }
    }

    fn write(event: &LocalEvent) -> Result<Vec<u8>, Error> {
        wire::save(event).map_err(|error| Error::Unwritable { what: "a event", source: error.into() })
    }

    fn read(bytes: &[u8]) -> Option<LocalEvent> {
        wire::load(bytes).ok()
    }

    fn save(&self) -> Result<Vec<u8>, Error> {
        wire::save(&self.books).map_err(|error| Error::Unwritable { what: "the agent's state", source: error.into() })
    }

    fn restore(self, bytes: &[u8]) -> Option<Self> {
        Some(Self { books: wire::load(bytes).ok()?, ..self })
    }
}

fn send<L: Serialize>(to: PeerId, letter: &L) -> Output<Effect> {
    Output::Send(
        to,
        wire::encode(letter).expect("what an agent says is bounded, and far shorter than a message may be"),
    )
}
