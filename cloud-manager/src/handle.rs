//! A handle to the running manager: how the API and the agents' side reach its machine.
//!
//! The machine belongs to one task; no other touches it. [`Call`] lists what that task can be asked; a [`ManagerHandle`]
//! makes such calls and waits for their answers. It can be cloned freely.

use crate::applications::Submission;
use crate::machine::{NotPosted, Posted, View, Wishes};
use protocol::letter::{HostQuestion, Question};
use protocol::{
    ChangeId, CloudManager, ComponentId, Instruction, Name, VmId,
    manager::{Book, CloudTask, News, Output, Request},
};
use runtime::VmName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tokio::sync::{mpsc, oneshot, watch};

/// A handle to the machine.
#[derive(Clone, Debug)]
pub struct ManagerHandle {
    calls: mpsc::Sender<Call>,
    newest: watch::Receiver<u64>,
}

/// The manager is halting or has halted, and answers no calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the manager is halting")]
pub struct Halted;

/// Why a call got no answer, or not a successful one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The manager is halting.
    #[error(transparent)]
    Halted(#[from] Halted),
    /// There is nothing with that name.
    #[error("{0}")]
    Unknown(String),
    /// It is unavailable now; a retry may succeed later.
    #[error("{0}")]
    Unavailable(String),
}

/// An event for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number, from 1, kept across restarts.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The news.
    pub news: News,
    /// The name of the component or VM it is about; for an accepted request, a short description of it.
    pub about: Option<String>,
}

/// The cloud that creates the VM with a given name; for one that is not listed, an agent joins by itself.
pub type Clouds = BTreeMap<Name, String>;

/// Reads the state of the manager between two steps.
pub type Look = Box<dyn FnOnce(View<'_>) + Send>;

/// The calls to the task that owns the machine.
pub enum Call {
    /// Submit this request to the machine, and answer with its first news once that is journalled.
    Ask {
        /// The name of the operator's token.
        by: String,
        /// The request.
        request: Request,
        /// The cloud that creates an added VM; for one that is not listed, an agent joins by itself.
        clouds: BTreeMap<Name, String>,
        /// What is asked for together with it.
        wishes: Wishes,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<News, CallError>>,
    },
    /// Carry out a decision about applications, and answer once that is journalled.
    Submit {
        /// The decision.
        submission: Box<Submission>,
        /// What is asked for together with it.
        wishes: Wishes,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<Posted, NotPosted>>,
    },
    /// Cancel or promote a rollout, and answer once that is journalled.
    Rollout {
        /// The application.
        application: Name,
        /// The first change of the rollout.
        first: ChangeId,
        /// Promote it, or cancel it.
        promote: bool,
        /// Where the answer goes.
        answer: oneshot::Sender<()>,
    },
    /// Read the state of the manager between two steps.
    Look(Look),
    /// The events after a number, oldest first.
    EventsAfter {
        /// The number.
        number: u64,
        /// The maximum number of events.
        at_most: usize,
        /// Where the answer goes.
        answer: oneshot::Sender<Vec<Event>>,
    },
    /// Create a token with which an agent can join.
    Invite {
        /// For this VM only.
        vm: Option<VmName>,
        /// Validity in seconds.
        good_for_s: u64,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<String, CallError>>,
    },
    /// A question about a component that its agent can answer.
    Question {
        /// The component.
        component: Name,
        /// The question.
        question: Question,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<String, CallError>>,
    },
    /// Something about a VM that its agent knows, or data that it is to delete.
    HostQuestion {
        /// The VM.
        vm: VmId,
        /// What.
        question: HostQuestion,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<String, CallError>>,
    },
}

impl ManagerHandle {
    /// A handle for the task that receives these calls and signals each new event.
    pub fn new(calls: mpsc::Sender<Call>, newest: watch::Receiver<u64>) -> Self {
        Self { calls, newest }
    }

    /// Submits a request to the machine; the answer is [`News::Accepted`] or [`News::Refused`], after it was journalled.
    pub async fn ask(&self, by: &str, request: Request, clouds: BTreeMap<Name, String>) -> Result<News, CallError> {
        self.ask_with(by, request, clouds, Wishes::default()).await
    }

    /// The same, with more that is asked for if the request is accepted.
    pub async fn ask_with(
        &self,
        by: &str,
        request: Request,
        clouds: BTreeMap<Name, String>,
        wishes: Wishes,
    ) -> Result<News, CallError> {
        self.call(|answer| Call::Ask { by: by.to_owned(), request, clouds, wishes, answer }).await?
    }

    /// Carries out a decision about applications.
    pub async fn submit(&self, submission: Submission, wishes: Wishes) -> Result<Result<Posted, NotPosted>, Halted> {
        self.call(|answer| Call::Submit { submission: Box::new(submission), wishes, answer }).await
    }

    /// Cancels or promotes a rollout.
    pub async fn rollout(&self, application: Name, first: ChangeId, promote: bool) -> Result<(), Halted> {
        self.call(|answer| Call::Rollout { application, first, promote, answer }).await
    }

    /// Reads the state of the machine between two steps.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&CloudManager) -> T + Send + 'static,
    ) -> Result<T, Halted> {
        self.look_at_all(|view| look(view.machine)).await
    }

    /// Reads the state of the machine and everything stored beside it.
    pub async fn look_at_all<T: Send + 'static>(
        &self,
        look: impl FnOnce(View<'_>) -> T + Send + 'static,
    ) -> Result<T, Halted> {
        self.call(|answer| {
            // If the caller is gone, its answer is dropped.
            Call::Look(Box::new(move |view| drop(answer.send(look(view)))))
        })
        .await
    }

    /// The events after a number, oldest first. Old events are dropped eventually.
    pub async fn events_after(&self, number: u64, at_most: usize) -> Result<Vec<Event>, Halted> {
        self.call(|answer| Call::EventsAfter { number, at_most, answer }).await
    }

    /// Signals each new event.
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.newest.clone()
    }

    /// How many calls the task has not taken yet.
    pub fn calls_waiting(&self) -> usize {
        self.calls.max_capacity() - self.calls.capacity()
    }

    /// Creates a token with which an agent can join, once.
    pub async fn invite(&self, vm: Option<VmName>, good_for_s: u64) -> Result<String, CallError> {
        self.call(|answer| Call::Invite { vm, good_for_s, answer }).await?
    }

    /// Asks a component's agent a question.
    pub async fn question(&self, component: Name, question: Question) -> Result<String, CallError> {
        self.call(|answer| Call::Question { component, question, answer }).await?
    }

    /// Something about a VM that its agent knows, or data that it is to delete.
    pub async fn host_question(&self, vm: VmId, question: HostQuestion) -> Result<String, CallError> {
        self.call(|answer| Call::HostQuestion { vm, question, answer }).await?
    }

    async fn call<T>(&self, call: impl FnOnce(oneshot::Sender<T>) -> Call) -> Result<T, Halted> {
        let (answer, answered) = oneshot::channel();
        self.calls.send(call(answer)).await.map_err(|_| Halted)?;
        answered.await.map_err(|_| Halted)
    }
}

/// The names of the components and VMs that news refer to by number. News of a removed component or VM arrive when the
/// book no longer has its name; so names are learnt from the machine's outputs, and dropped after those news. The
/// components of a lost VM are removed without news of their own: after [`News::VmLost`], rebuild the register with
/// [`Self::of`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameRegister {
    components: BTreeMap<ComponentId, Name>,
    vms: BTreeMap<VmId, Name>,
}

impl NameRegister {
    /// Everything that is in the book now.
    pub fn of(book: &Book) -> Self {
        let components = book.components().filter_map(|it| Some((it.id?, it.name.clone()))).collect();
        Self { components, vms: book.vms().filter_map(|it| Some((it.id?, it.name.clone()))).collect() }
    }

    /// Records the names in an output of the machine; to be called with every output, in order.
    pub fn learn(&mut self, output: &Output) {
        match output {
            Output::ToAgent(_, order) => {
                if let Instruction::AddComponent { name, .. } = &order.instruction {
                    self.components.insert(ComponentId(order.number.0), name.clone());
                }
            }
            Output::ToCloud(CloudTask::Create(vm, name)) => drop(self.vms.insert(*vm, name.clone())),
            _ => {}
        }
    }

    /// The name of a VM.
    pub fn vm(&self, id: VmId) -> Option<&Name> {
        self.vms.get(&id)
    }

    /// Drops the components that are no longer in the book.
    pub fn keep_only(&mut self, book: &Book) {
        self.components.retain(|id, _| book.component_by_id(*id).is_some());
    }

    /// The name of the component or VM that the news is about; a removed one is dropped from the register.
    pub fn about(&mut self, news: &News) -> Option<Name> {
        match news {
            News::ComponentGone(id) => self.components.remove(id),
            News::VmDestroyed(id) => self.vms.remove(id),
            News::ComponentIs(id, _) | News::OperationFailed(id, ..) | News::AttemptFailed(id, _) => {
                self.components.get(id).cloned()
            }
            News::VmInstantiated(id)
            | News::VmNotInstantiated(id, _)
            | News::VmIs(id, _)
            | News::VmSuspected(id)
            | News::VmWell(id)
            | News::VmLost(id) => self.vms.get(id).cloned(),
            News::Accepted(_)
            | News::Refused(_)
            | News::PhasePosted(..)
            | News::PhaseDone(..)
            | News::ChangeDone(_)
            | News::Cancelling(..)
            | News::ChangeCancelled(_) => None,
        }
    }
}
