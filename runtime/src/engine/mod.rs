//! The engine: journals each input, lets a machine step, and carries out its outputs.
//!
//! Every input is in the journal before anything acts on it; so the whole history can be replayed from the journal,
//! step by step. The engine does not know what the inputs mean: the [`Machine`] does, and the [`EffectHandler`] acts.
//!
//! ```text
//!   links ──▶ ┐                                   ┌─▶ links          messages, numbered
//!   host  ──▶ ├─▶ append ─▶ step ─▶ … ─▶ commit ──┼─▶ environment    effects: tasks, alarms, news
//!   callers ▶ ┘        (until the inbox is empty) └─▶ callers        answers
//! ```
//!
//! All inputs in the inbox are stepped before one sync makes them durable, and no output leaves before that sync: the
//! busier the engine, the less a step costs. The outputs that left before a crash and those that are derived again
//! after it are the same, because the machine's outputs depend only on its inputs.
//!
//! | file | holds |
//! |---|---|
//! | `entry` | the records of the journal |
//! | `link_states` | the state of all links, as the journal records it |
//! | `recovery` | from snapshot and records back to the machine |
//! | `supervisor` | the supervisor: what happens when an engine fails |

mod entry;
mod link_states;
mod recovery;
mod supervisor;

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind::AddrInUse;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::{mpsc, oneshot};

use self::link_states::LinkStates;
use crate::data_directory::DataDirectory;
use crate::error::Error;
use crate::identity::{Identity, IdentityCall};
use crate::journal::{self, Journal};
use crate::link::{self, Contact, Event, Links, MessageNumber};
use crate::peer::{Incarnation, PeerId};

pub use self::entry::Entry;
pub use self::recovery::{Past, Step, recover, retell};
pub use self::supervisor::{Caller, Kept, keep};

/// After this many records a snapshot of the machine is taken, so that a restart does not replay the whole history.
const RECORDS_PER_SNAPSHOT: u64 = 10_000;
/// How long a socket may remain in use after the engine that had it failed.
const SOCKET_PATIENCE: Duration = Duration::from_secs(5);
const SOCKET_PAUSE: Duration = Duration::from_millis(50);

/// Milliseconds since 1970 in UTC, the timestamps of the journal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Moment(pub u64);

impl Moment {
    /// The present time, from the system clock.
    pub fn now() -> Self {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A machine as the engine sees it. Its outputs depend only on its inputs: no clock, no randomness, no files.
pub trait Machine: Clone + Send + Sync + 'static {
    /// Events besides messages.
    type LocalEvent: Send + 'static;
    /// Effects besides messages.
    type Effect: Send + 'static;

    /// A message came. One that cannot be decoded is answered with an effect that says so, never with a panic.
    fn receive(&mut self, at: Moment, from: PeerId, payload: &[u8]) -> Vec<Output<Self::Effect>>;

    /// A local event happened.
    fn witness(&mut self, at: Moment, event: Self::LocalEvent) -> Vec<Output<Self::Effect>>;

    /// Encodes an event for the journal.
    fn write(event: &Self::LocalEvent) -> Result<Vec<u8>, Error>;

    /// Decodes an event; `None` if the bytes are not one.
    fn read(bytes: &[u8]) -> Option<Self::LocalEvent>;

    /// Encodes the whole state for a snapshot.
    fn save(&self) -> Result<Vec<u8>, Error>;

    /// Decodes a state; `None` if the bytes are not one.
    fn restore(self, bytes: &[u8]) -> Option<Self>;
}

/// The outputs of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output<E> {
    /// Send this to a peer: exactly once and in order, however long it takes.
    Send(PeerId, Vec<u8>),
    /// The address of a peer.
    Introduce(PeerId, SocketAddr),
    /// A peer is revoked.
    Revoke(PeerId),
    /// An effect for the environment.
    Effect(E),
}

/// Carries out a machine's effects. None of these methods may block.
pub trait EffectHandler<M: Machine>: Send + Sync + 'static {
    /// An engine has started with this machine, for the first time or again. Everything that the machine is waiting for
    /// must be started now; events are sent to `engine`.
    fn begin(&self, machine: &M, address: SocketAddr, engine: ActorRef<Message<M>>);

    /// Carries out an effect, after it was made durable.
    fn carry_out(&self, effect: M::Effect);

    /// A connection was established, or has ended.
    fn notice(&self, connection: Event);
}

/// Called with all outputs of a step, once they are durable.
pub type Reply<M> = Box<dyn FnOnce(&[Output<<M as Machine>::Effect>]) + Send>;

/// Called with the machine between two steps.
pub type Look<M> = Box<dyn FnOnce(&M) + Send>;

/// Messages to an engine.
pub enum Message<M: Machine> {
    /// A local event happened.
    Happened(M::LocalEvent, Option<Reply<M>>),
    /// An event on a link.
    Link(Event),
    /// Make durable what was appended, and release the outputs.
    Commit,
    /// Let a caller look at the machine between two steps; what it sees is durable.
    Look(Look<M>),
    /// Use another certificate from now on.
    Renew(Arc<Identity>),
    /// Drop a connection as the network might; for drills.
    HangUp(PeerId),
    /// Say goodbye and stop.
    Close(oneshot::Sender<()>),
}

/// What an engine starts with.
pub struct Opening<M: Machine> {
    /// The directory of the journal.
    pub data: Arc<DataDirectory>,
    /// The identity of this program.
    pub identity: Arc<Identity>,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The incarnation of this data directory.
    pub incarnation: Incarnation,
    /// Peers to stay connected with, and their addresses.
    pub held: Vec<(PeerId, SocketAddr)>,
    /// Where join requests go; only the manager has one.
    pub identity_calls: Option<mpsc::Sender<IdentityCall>>,
    /// The settings of the links.
    pub links: link::Settings,
    /// The machine before its first input.
    pub machine: M,
    /// What carries out its effects.
    pub effects: Arc<dyn EffectHandler<M>>,
}

impl<M: Machine> Clone for Opening<M> {
    fn clone(&self) -> Self {
        Self {
            data: Arc::clone(&self.data),
            identity: Arc::clone(&self.identity),
            listen: self.listen,
            incarnation: self.incarnation,
            held: self.held.clone(),
            identity_calls: self.identity_calls.clone(),
            links: self.links.clone(),
            machine: self.machine.clone(),
            effects: Arc::clone(&self.effects),
        }
    }
}

/// The outputs of one step, and the caller that waits for them.
type Answer<M> = (Vec<Output<<M as Machine>::Effect>>, Option<Reply<M>>);

/// The actor; its state is [`Running`].
pub(super) struct Engine<M>(std::marker::PhantomData<fn() -> M>);

/// A running engine.
pub(super) struct Running<M: Machine> {
    machine: M,
    journal: Journal,
    links: Links,
    link_states: LinkStates,
    effects: Arc<dyn EffectHandler<M>>,
    /// The outputs of steps that are not durable yet, with the callers that wait for them.
    held_back: Vec<Answer<M>>,
    /// Callers that wait to look at the machine until everything that they would see is durable.
    onlookers: Vec<Look<M>>,
    /// The last unacknowledged message of each peer, because it is not durable yet.
    acknowledgements: BTreeMap<PeerId, MessageNumber>,
    /// Messages that do not fit into a peer's outbox.
    overflow: BTreeMap<PeerId, VecDeque<Vec<u8>>>,
    /// Whether something waits for a commit.
    is_indebted: bool,
    /// Whether a `Commit` is in the inbox.
    commit_awaits: bool,
    records_since_snapshot: u64,
}

impl<M: Machine> Actor for Engine<M> {
    type Msg = Message<M>;
    type State = Running<M>;
    type Arguments = Opening<M>;

    async fn pre_start(
        &self,
        myself: ActorRef<Message<M>>,
        opening: Opening<M>,
    ) -> Result<Running<M>, ActorProcessingErr> {
        Ok(Running::begin(&myself, opening).await?)
    }

    async fn handle(
        &self,
        myself: ActorRef<Message<M>>,
        message: Message<M>,
        running: &mut Running<M>,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Happened(event, reply) => running.witness(event, reply)?,
            Message::Link(event) => running.hear(event)?,
            Message::Commit => {
                running.commit_awaits = false;
                running.commit().await?;
            }
            // What is seen must be durable; a caller that comes too early waits for the next commit, so that looking
            // often does not cause more of them.
            Message::Look(look) if running.is_indebted => running.onlookers.push(look),
            Message::Look(look) => look(&running.machine),
            Message::Renew(identity) => running.links.renew(&identity).await?,
            Message::HangUp(peer) => running.links.hang_up(peer).await?,
            Message::Close(done) => {
                running.commit().await?;
                running.links.farewell().await;
                myself.stop(None);
                // The caller may have gone; the engine stops anyway.
                let _ = done.send(());
            }
        }
        if running.is_indebted && !running.commit_awaits {
            // It is queued behind everything in the inbox, so one sync covers all of that.
            running.commit_awaits = true;
            myself.cast(Message::Commit)?;
        }
        Ok(())
    }
}

impl<M: Machine> Running<M> {
    async fn begin(myself: &ActorRef<Message<M>>, opening: Opening<M>) -> Result<Self, Error> {
        let (journal, found) = Journal::open(&opening.data, journal::Settings::default())?;
        if let Some(cut) = &found.cut {
            tracing::warn!(position = %cut.position, bytes = cut.bytes, "journal: truncated a tail that a crash left incomplete");
        }
        let Past { machine, link_states } = recover(opening.machine, &found, journal.directory())?;
        let give_up = Instant::now() + SOCKET_PATIENCE;
        let (links, events) = loop {
            let links = link::Opening {
                listen: opening.listen,
                incarnation: opening.incarnation,
                links: link_states.link_states(),
                revoked: link_states.revoked().clone(),
                identity_calls: opening.identity_calls.clone(),
                settings: opening.links.clone(),
            };
            match Links::open(&opening.identity, links) {
                Err(Error::Listen { source, .. }) if source.kind() == AddrInUse && Instant::now() < give_up => {
                    // An engine that failed leaves its socket to its last connections for a moment.
                    tokio::time::sleep(SOCKET_PAUSE).await;
                }
                opened => break opened?,
            }
        };
        for (peer, address) in &opening.held {
            links.introduce(*peer, Contact { address: Some(*address), held: true }).await?;
        }
        for (peer, address) in link_states.contacts() {
            links.introduce(*peer, Contact { address: Some(*address), held: false }).await?;
        }
        opening.effects.begin(&machine, links.address(), myself.clone());
        tokio::spawn(pass_on(events, myself.clone()));
        Ok(Self {
            machine,
            journal,
            links,
            link_states,
            effects: opening.effects,
            held_back: Vec::new(),
            onlookers: Vec::new(),
            acknowledgements: BTreeMap::new(),
            overflow: BTreeMap::new(),
            is_indebted: false,
            commit_awaits: false,
            records_since_snapshot: found.records.len() as u64,
        })
    }

    /// A local event.
    fn witness(&mut self, event: M::LocalEvent, reply: Option<Reply<M>>) -> Result<(), Error> {
        let at = Moment::now();
        self.append(&Entry::Happened { at, what: M::write(&event)? })?;
        self.step(|machine| machine.witness(at, event), reply)
    }

    fn hear(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Received { peer, number, payload } => {
                let at = Moment::now();
                let entry = Entry::Received { at, from: peer, number, payload };
                self.append(&entry)?;
                self.link_states.received(peer, number);
                self.acknowledgements.insert(peer, number);
                let Entry::Received { payload, .. } = entry else { unreachable!("it was made two lines above") };
                self.step(|machine| machine.receive(at, peer, &payload), None)
            }
            Event::Acknowledged { peer, through } => {
                // It does not matter when this is durable: the receiver drops what is sent twice.
                self.append(&Entry::Acknowledged { by: peer, through })?;
                self.link_states.acknowledged(peer, through);
                self.is_indebted |= self.overflow.contains_key(&peer);
                Ok(())
            }
            Event::Up { peer, incarnation } => {
                if self.link_states.met(peer, incarnation) {
                    self.append(&Entry::Met { peer, incarnation })?;
                    self.is_indebted = true;
                }
                self.effects.notice(event);
                Ok(())
            }
            Event::Down { .. } | Event::Refused { .. } => {
                self.effects.notice(event);
                Ok(())
            }
        }
    }

    fn append(&mut self, entry: &Entry) -> Result<(), Error> {
        self.records_since_snapshot += 1;
        self.journal.append(&entry.encode()).map(drop)
    }

    /// Lets the machine step. If it panics, the input is made durable first, so that the panic can be reproduced.
    fn step(
        &mut self,
        answer: impl FnOnce(&mut M) -> Vec<Output<M::Effect>>,
        reply: Option<Reply<M>>,
    ) -> Result<(), Error> {
        let outputs = match catch_unwind(AssertUnwindSafe(|| answer(&mut self.machine))) {
            Ok(outputs) => outputs,
            Err(panic) => {
                self.journal.commit()?;
                resume_unwind(panic)
            }
        };
        for output in &outputs {
            self.link_states.record(output);
        }
        self.held_back.push((outputs, reply));
        self.is_indebted = true;
        Ok(())
    }

    /// Makes everything durable with one sync; only then the outputs leave.
    async fn commit(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_indebted) {
            return Ok(());
        }
        tokio::task::block_in_place(|| self.journal.commit())?;
        for (peer, through) in std::mem::take(&mut self.acknowledgements) {
            self.links.applied(peer, through).await?;
        }
        for peer in self.overflow.keys().copied().collect::<Vec<_>>() {
            self.send_waiting(peer).await?;
        }
        for (outputs, reply) in std::mem::take(&mut self.held_back) {
            if let Some(reply) = reply {
                reply(&outputs);
            }
            for output in outputs {
                self.let_out(output).await?;
            }
        }
        for look in std::mem::take(&mut self.onlookers) {
            look(&self.machine);
        }
        if self.records_since_snapshot >= RECORDS_PER_SNAPSHOT {
            let state = recovery::save(&self.machine, &self.link_states)?;
            tokio::task::block_in_place(|| self.journal.snapshot(&state))?;
            self.records_since_snapshot = 0;
        }
        Ok(())
    }

    async fn let_out(&mut self, output: Output<M::Effect>) -> Result<(), Error> {
        match output {
            Output::Send(peer, payload) => {
                self.overflow.entry(peer).or_default().push_back(payload);
                self.send_waiting(peer).await
            }
            Output::Introduce(peer, address) => {
                self.links.introduce(peer, Contact { address: Some(address), held: false }).await
            }
            Output::Revoke(peer) => {
                self.overflow.remove(&peer);
                self.links.revoke(peer).await
            }
            Output::Effect(effect) => {
                self.effects.carry_out(effect);
                Ok(())
            }
        }
    }

    /// Sends as many waiting messages to a peer as its outbox takes; the rest is sent when the peer has acknowledged
    /// some.
    async fn send_waiting(&mut self, peer: PeerId) -> Result<(), Error> {
        let Some(waiting) = self.overflow.get_mut(&peer) else { return Ok(()) };
        while let Some(payload) = waiting.front() {
            match self.links.send(peer, payload.clone()).await {
                Ok(_) | Err(Error::Revoked { .. }) => drop(waiting.pop_front()),
                Err(Error::OutboxFull { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.overflow.remove(&peer);
        Ok(())
    }
}

/// Moves link events into the inbox. The windows of the links bound their number.
async fn pass_on<M: Machine>(mut events: mpsc::Receiver<Event>, engine: ActorRef<Message<M>>) {
    while let Some(event) = events.recv().await {
        if engine.cast(Message::Link(event)).is_err() {
            return;
        }
    }
}
