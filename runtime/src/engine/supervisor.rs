//! The supervisor of an engine: starts it, and decides what to do when it fails.
//!
//! An error (the disk is full, the journal is corrupt) stops the program, because continuing would break its
//! guarantees. A panic is a bug. The engine is restarted from its journal, in which the input that caused the panic is
//! the last record; if the same panic happens again, manual action is required, and the program stops and names the
//! journal that reproduces it.

use std::path::PathBuf;

use ractor::{Actor, ActorProcessingErr, ActorRef, SpawnErr, SupervisionEvent};
use tokio::sync::{oneshot, watch};

use super::{Engine, Machine, Message, Opening};
use crate::error::Error;
use crate::journal;

/// A running engine, as its program sees it.
pub struct Kept<M: Machine> {
    engine: watch::Receiver<ActorRef<Message<M>>>,
    halted: oneshot::Receiver<Error>,
}

/// A handle for talking to the engine, across its restarts.
pub struct Caller<M: Machine>(watch::Receiver<ActorRef<Message<M>>>);

impl<M: Machine> Clone for Caller<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M: Machine> Caller<M> {
    /// Sends a message to the engine that is running now; returns whether there is one.
    pub fn tell(&self, message: Message<M>) -> bool {
        self.0.borrow().cast(message).is_ok()
    }
}

impl<M: Machine> Kept<M> {
    /// A handle for talking to the engine.
    pub fn caller(&self) -> Caller<M> {
        Caller(self.engine.clone())
    }

    /// Waits until the engine cannot continue, and returns the reason; `None` if it was asked to stop.
    pub async fn halted(&mut self) -> Option<Error> {
        (&mut self.halted).await.ok()
    }

    /// Makes everything durable, says goodbye to all peers, and stops.
    pub async fn close(self) {
        let (done, closed) = oneshot::channel();
        if self.caller().tell(Message::Close(done)) {
            // An error means that the engine has ended already, which is the goal.
            let _ = closed.await;
        }
    }
}

/// Starts an engine and its supervisor. An engine that cannot start is an error at once.
pub async fn keep<M: Machine>(opening: Opening<M>) -> Result<Kept<M>, Error> {
    let (publish, announced) = oneshot::channel();
    let (halt, halted) = oneshot::channel();
    let arguments = Arguments { opening, publish, halt };
    match Actor::spawn(None, Supervisor::<M>(std::marker::PhantomData), arguments).await {
        Ok(_) => {
            let engine = announced.await.map_err(|_| Error::LinksClosed)?;
            Ok(Kept { engine, halted })
        }
        Err(SpawnErr::StartupFailed(failure)) => Err(cause(failure)),
        Err(other) => Err(Error::Engine { what: other.to_string() }),
    }
}

/// The error with which an engine ended, or its panic message.
fn cause(failure: ActorProcessingErr) -> Error {
    match failure.downcast::<Error>() {
        Ok(error) => *error,
        Err(other) => Error::Engine { what: other.to_string() },
    }
}

struct Supervisor<M>(std::marker::PhantomData<fn() -> M>);

struct Arguments<M: Machine> {
    opening: Opening<M>,
    publish: oneshot::Sender<watch::Receiver<ActorRef<Message<M>>>>,
    halt: oneshot::Sender<Error>,
}

struct Watch<M: Machine> {
    opening: Opening<M>,
    engine: watch::Sender<ActorRef<Message<M>>>,
    halt: Option<oneshot::Sender<Error>>,
    last_panic: Option<String>,
    journal: PathBuf,
}

impl<M: Machine> Actor for Supervisor<M> {
    type Msg = ();
    type State = Watch<M>;
    type Arguments = Arguments<M>;

    async fn pre_start(&self, myself: ActorRef<()>, arguments: Arguments<M>) -> Result<Watch<M>, ActorProcessingErr> {
        let Arguments { opening, publish, halt } = arguments;
        let journal = opening.data.path().join(journal::ROOM);
        let mut last_panic = None;
        let first = match start(&myself, opening.clone()).await {
            Err(Error::Engine { what }) => {
                tracing::error!(%what, "the machine failed while replaying its journal; retrying once");
                last_panic = Some(what.clone());
                start(&myself, opening.clone()).await.map_err(|error| twice(error, &what, &journal))?
            }
            started => started?,
        };
        let (engine, published) = watch::channel(first);
        // If the receiver is gone, the answer is not needed.
        let _ = publish.send(published);
        Ok(Watch { opening, engine, halt: Some(halt), last_panic, journal })
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<()>,
        event: SupervisionEvent,
        watch: &mut Watch<M>,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(_, failure) => watch.recover(&myself, cause(failure)).await,
            SupervisionEvent::ActorTerminated(..) => {
                watch.halt = None;
                myself.stop(None);
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl<M: Machine> Watch<M> {
    /// Restarts the engine after a panic; stops the program for any other failure, and for the same panic twice.
    async fn recover(&mut self, myself: &ActorRef<()>, mut failure: Error) {
        while let Error::Engine { what } = &failure {
            if self.last_panic.as_ref() == Some(what) {
                failure = Error::Panicked { what: what.clone(), journal: self.journal.clone() };
                break;
            }
            tracing::error!(%what, "the machine failed; restarting it from its journal");
            self.last_panic = Some(what.clone());
            match start(myself, self.opening.clone()).await {
                Ok(engine) => {
                    self.engine.send_replace(engine);
                    return;
                }
                Err(error) => failure = error,
            }
        }
        if let Some(halt) = self.halt.take() {
            // If the program has ended, the receiver is gone.
            let _ = halt.send(failure);
        }
        myself.stop(None);
    }
}

fn twice(error: Error, before: &str, journal: &std::path::Path) -> Error {
    match error {
        Error::Engine { what } if what == before => Error::Panicked { what, journal: journal.to_owned() },
        other => other,
    }
}

async fn start<M: Machine>(supervisor: &ActorRef<()>, opening: Opening<M>) -> Result<ActorRef<Message<M>>, Error> {
    let engine = Engine::<M>(std::marker::PhantomData);
    match Actor::spawn_linked(None, engine, opening, supervisor.get_cell()).await {
        Ok((engine, _)) => Ok(engine),
        Err(SpawnErr::StartupFailed(failure)) => Err(cause(failure)),
        Err(other) => Err(Error::Engine { what: other.to_string() }),
    }
}
