//! A handle to the running manager: how the API and the agents' side reach its machine.
//!
//! The machine belongs to one task, and no other touches it. What can be asked of that task is [`Call`]; a [`ManagerHandle`]
//! makes such calls and waits for their answers. It can be cloned freely.

use crate::applications::Submission;
use crate::machine::{NotPosted, Posted, View};
use protocol::letter::Question;
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

/// Why there is no answer, or not the hoped-for one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The manager is halting.
    #[error(transparent)]
    Halted(#[from] Halted),
    /// There is nothing of that name.
    #[error("{0}")]
    Unknown(String),
    /// It could not be had now; trying again later may help.
    #[error("{0}")]
    Unavailable(String),
}

/// One thing the manager told the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its place among all that was told, from 1, kept across restarts.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What.
    pub news: News,
    /// The name of the component or VM it is about; or, of an accepted request, what was asked, in a few words.
    pub about: Option<String>,
}

/// Which cloud makes the VM of a name; of one that is not listed, an agent joins by itself.
pub type Clouds = BTreeMap<Name, String>;

/// A look at the manager between two steps.
pub type Look = Box<dyn FnOnce(View<'_>) + Send>;

/// What can be asked of the task that owns the machine.
pub enum Call {
    /// Hand this request to the machine, and answer with its first news once that is journalled.
    Ask {
        /// The request.
        request: Request,
        /// Which cloud makes an added VM; of one that is not listed, an agent joins by itself.
        clouds: BTreeMap<Name, String>,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<News, CallError>>,
    },
    /// Carry out a decision about applications, and answer once that is journalled.
    Submit {
        /// The decision.
        submission: Box<Submission>,
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
    /// Look at the manager between two steps.
    Look(Look),
    /// Everything told after a number, the oldest first.
    EventsAfter {
        /// The number.
        number: u64,
        /// No more than so many.
        at_most: usize,
        /// Where the answer goes.
        answer: oneshot::Sender<Vec<Event>>,
    },
    /// Make a token with which an agent can join.
    Invite {
        /// For this VM only.
        vm: Option<VmName>,
        /// For so many seconds.
        good_for_s: u64,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<String, CallError>>,
    },
    /// Something about a component that its agent knows.
    Question {
        /// The component.
        component: Name,
        /// What.
        question: Question,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<String, CallError>>,
    },
}

impl ManagerHandle {
    /// A handle for the task that takes these calls and rings for each new event.
    pub fn new(calls: mpsc::Sender<Call>, newest: watch::Receiver<u64>) -> Self {
        Self { calls, newest }
    }

    /// Hands a request to the machine; the answer is [`News::Accepted`] or [`News::Refused`], after it was journalled.
    pub async fn ask(&self, request: Request, clouds: BTreeMap<Name, String>) -> Result<News, CallError> {
        self.call(|answer| Call::Ask { request, clouds, answer }).await?
    }

    /// Carries out a decision about applications.
    pub async fn submit(&self, submission: Submission) -> Result<Result<Posted, NotPosted>, Halted> {
        self.call(|answer| Call::Submit { submission: Box::new(submission), answer }).await
    }

    /// Cancels or promotes a rollout.
    pub async fn rollout(&self, application: Name, first: ChangeId, promote: bool) -> Result<(), Halted> {
        self.call(|answer| Call::Rollout { application, first, promote, answer }).await
    }

    /// Looks at the machine between two steps.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&CloudManager) -> T + Send + 'static,
    ) -> Result<T, Halted> {
        self.look_at_all(|view| look(view.machine)).await
    }

    /// Looks at the machine with everything that is kept beside it.
    pub async fn look_at_all<T: Send + 'static>(
        &self,
        look: impl FnOnce(View<'_>) -> T + Send + 'static,
    ) -> Result<T, Halted> {
        self.call(|answer| {
            // If the caller has gone, its answer is dropped.
            Call::Look(Box::new(move |view| drop(answer.send(look(view)))))
        })
        .await
    }

    /// What the manager told the operator after a number, the oldest first. The oldest of all fall away in time.
    pub async fn events_after(&self, number: u64, at_most: usize) -> Result<Vec<Event>, Halted> {
        self.call(|answer| Call::EventsAfter { number, at_most, answer }).await
    }

    /// Rings whenever there is a newer event.
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.newest.clone()
    }

    /// How many calls the task has not taken yet.
    pub fn calls_waiting(&self) -> usize {
        self.calls.max_capacity() - self.calls.capacity()
    }

    /// Makes a token with which an agent can join, once.
    pub async fn invite(&self, vm: Option<VmName>, good_for_s: u64) -> Result<String, CallError> {
        self.call(|answer| Call::Invite { vm, good_for_s, answer }).await?
    }

    /// Something about a component that its agent knows.
    pub async fn question(&self, component: Name, question: Question) -> Result<String, CallError> {
        self.call(|answer| Call::Question { component, question, answer }).await?
    }

    async fn call<T>(&self, call: impl FnOnce(oneshot::Sender<T>) -> Call) -> Result<T, Halted> {
        let (answer, answered) = oneshot::channel();
        self.calls.send(call(answer)).await.map_err(|_| Halted)?;
        answered.await.map_err(|_| Halted)
    }
}

/// What people call the components and VMs that news speak of by number. News of what is gone come when the book has
/// forgotten its name; so names are learnt from what the machine says, and forgotten after those news.
/// The components of a lost VM go without news of their own: after [`News::VmLost`], make the register anew with [`Self::of`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameRegister {
    components: BTreeMap<ComponentId, Name>,
    vms: BTreeMap<VmId, Name>,
}

impl NameRegister {
    /// All that is in the book now.
    pub fn of(book: &Book) -> Self {
        let components = book.components().filter_map(|it| Some((it.id?, it.name.clone()))).collect();
        Self { components, vms: book.vms().filter_map(|it| Some((it.id?, it.name.clone()))).collect() }
    }

    /// Takes note of the names in what the machine says; to be called with every output, in order.
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

    /// Forgets the components that are not in the book any more.
    pub fn keep_only(&mut self, book: &Book) {
        self.components.retain(|id, _| book.component_by_id(*id).is_some());
    }

    /// The name of the component or VM that the news is about; what is gone is forgotten.
    pub fn about(&mut self, news: &News) -> Option<Name> {
        match news {
            News::ComponentGone(id) => self.components.remove(id),
            News::VmDestroyed(id) => self.vms.remove(id),
            News::ComponentIs(id, _) | News::OperationFailed(id, ..) => self.components.get(id).cloned(),
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
