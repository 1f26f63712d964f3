//! Two engines around a minimal machine that sends messages to its peer.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use runtime::engine::{self, EffectHandler, Entry, Kept, Machine, Message, Moment, Opening, Output};
use runtime::identity::{Authority, Identity};
use runtime::link::{self, Event};
use runtime::{DataDirectory, Error, PeerId, journal};
use support::Scratch;
use support::station::{PATIENCE, authority, identity};
use tokio::sync::mpsc;
use tokio::time::timeout;

const LEFT: PeerId = PeerId(1);
const RIGHT: PeerId = PeerId(2);

/// Sends the words of its local events, reports what it receives, and counts both.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Echo {
    sent: u64,
    received: u64,
}

/// The word on which the machine panics.
const FATAL: &[u8] = b"fatal";

impl Machine for Echo {
    /// The receiver, and the word.
    type LocalEvent = (PeerId, Vec<u8>);
    type Effect = Vec<u8>;

    fn receive(&mut self, _: Moment, from: PeerId, payload: &[u8]) -> Vec<Output<Vec<u8>>> {
        assert_ne!(payload, FATAL, "a machine broke");
        self.received += 1;
        let mut outputs = vec![Output::Effect(payload.to_vec())];
        if let Some(word) = payload.strip_prefix(b"repeat ") {
            outputs.push(Output::Send(from, word.to_vec()));
            self.sent += 1;
        }
        outputs
    }

    fn witness(&mut self, _: Moment, (to, word): (PeerId, Vec<u8>)) -> Vec<Output<Vec<u8>>> {
        self.sent += 1;
        vec![Output::Send(to, word)]
    }

    fn write((to, word): &(PeerId, Vec<u8>)) -> Result<Vec<u8>, Error> {
        Ok([&to.0.to_le_bytes(), word.as_slice()].concat())
    }

    fn read(bytes: &[u8]) -> Option<(PeerId, Vec<u8>)> {
        let (to, word) = bytes.split_first_chunk()?;
        Some((PeerId(u64::from_le_bytes(*to)), word.to_vec()))
    }

    fn save(&self) -> Result<Vec<u8>, Error> {
        Ok([self.sent.to_le_bytes(), self.received.to_le_bytes()].concat())
    }

    fn restore(self, bytes: &[u8]) -> Option<Self> {
        let (sent, received) = bytes.split_first_chunk()?;
        Some(Self { sent: u64::from_le_bytes(*sent), received: u64::from_le_bytes(received.try_into().ok()?) })
    }
}

/// Forwards what a machine received.
struct Forwarder {
    received: mpsc::UnboundedSender<Vec<u8>>,
    address: mpsc::UnboundedSender<SocketAddr>,
}

impl EffectHandler<Echo> for Forwarder {
    fn begin(&self, _: &Echo, address: SocketAddr, _: ractor::ActorRef<Message<Echo>>) {
        let _ = self.address.send(address);
    }

    fn carry_out(&self, word: Vec<u8>) {
        let _ = self.received.send(word);
    }

    fn notice(&self, _: Event) {}
}

/// A machine with its engine.
struct Node {
    kept: Kept<Echo>,
    received: mpsc::UnboundedReceiver<Vec<u8>>,
    address: SocketAddr,
}

impl Node {
    async fn open(place: &Path, identity: Identity, listen: SocketAddr, held: Vec<(PeerId, SocketAddr)>) -> Self {
        let data = Arc::new(DataDirectory::open(&place.join(identity.certified().peer.to_string())).unwrap());
        let (received, hearing) = mpsc::unbounded_channel();
        let (address, mut addresses) = mpsc::unbounded_channel();
        let opening = Opening {
            incarnation: data.incarnation().unwrap(),
            data,
            identity: Arc::new(identity),
            listen,
            held,
            identity_calls: None,
            links: link::Settings::default(),
            machine: Echo::default(),
            effects: Arc::new(Forwarder { received, address }),
        };
        let kept = engine::keep(opening).await.unwrap();
        Self { kept, received: hearing, address: addresses.recv().await.unwrap() }
    }

    fn say(&self, to: PeerId, word: &[u8]) {
        assert!(self.kept.caller().tell(Message::Happened((to, word.to_vec()), None)));
    }

    async fn next(&mut self) -> Vec<u8> {
        timeout(PATIENCE, self.received.recv()).await.unwrap().unwrap()
    }
}

struct Aviary {
    scratch: Scratch,
    authority: Authority,
}

impl Aviary {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let authority = authority(scratch.path());
        Self { scratch, authority }
    }

    async fn node(&self, who: PeerId, listen: SocketAddr, held: Vec<(PeerId, SocketAddr)>) -> Node {
        Node::open(self.scratch.path(), identity(self.scratch.path(), &self.authority, who), listen, held).await
    }

    fn journal(&self, who: PeerId) -> std::path::PathBuf {
        self.scratch.path().join(who.to_string()).join(journal::ROOM)
    }
}

fn anywhere() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_arrive_once_and_in_order_across_restarts_and_the_journals_replay_them() {
    let aviary = Aviary::new("engine");
    let mut right = aviary.node(RIGHT, anywhere(), vec![]).await;
    let mut left = aviary.node(LEFT, anywhere(), vec![(RIGHT, right.address)]).await;
    for round in 0..4_u32 {
        for word in 0..50 {
            left.say(RIGHT, format!("repeat {round}.{word}").as_bytes());
        }
        if round == 1 {
            // It is stopped before it has received the answers, and continues from its journal.
            left.kept.close().await;
            left = aviary.node(LEFT, anywhere(), vec![(RIGHT, right.address)]).await;
        }
        if round == 2 {
            let (address, peer) = (right.address, (LEFT, left.address));
            assert!(left.kept.caller().tell(Message::HangUp(RIGHT)));
            right.kept.close().await;
            right = aviary.node(RIGHT, address, vec![peer]).await;
        }
    }
    left.say(RIGHT, b"repeat end");
    while left.next().await != b"end" {}
    left.kept.close().await;
    right.kept.close().await;

    // What left sent, according to its journal, is what right received, according to its own; and vice versa.
    for (from, to) in [(LEFT, RIGHT), (RIGHT, LEFT)] {
        let told = engine::retell(Echo::default(), &aviary.journal(from)).unwrap();
        let sent: Vec<Vec<u8>> = told
            .into_iter()
            .flat_map(|step| step.outputs)
            .filter_map(|output| match output {
                Output::Send(_, word) => Some(word),
                _ => None,
            })
            .collect();
        let received: Vec<Vec<u8>> = engine::retell(Echo::default(), &aviary.journal(to))
            .unwrap()
            .into_iter()
            .filter_map(|step| match step.entry {
                Entry::Received { payload, .. } => Some(payload),
                _ => None,
            })
            .collect();
        assert_eq!(sent.len(), 201);
        assert_eq!(sent, received);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_panics_twice_in_the_same_way_halts_the_program_and_loses_nothing() {
    let aviary = Aviary::new("engine-panic");
    let mut right = aviary.node(RIGHT, anywhere(), vec![]).await;
    let left = aviary.node(LEFT, anywhere(), vec![(RIGHT, right.address)]).await;
    left.say(RIGHT, b"hello");
    assert_eq!(right.next().await, b"hello");
    left.say(RIGHT, FATAL);
    let halted = timeout(PATIENCE, right.kept.halted()).await.unwrap();
    let Some(Error::Panicked { what, journal }) = halted else { panic!("{halted:?}") };
    assert!(what.contains("a machine broke"), "{what}");
    assert_eq!(journal, aviary.journal(RIGHT));
    // The trace ends with the input that caused the panic.
    let last = journal::history(&journal).unwrap().pop().unwrap();
    let Some(Entry::Received { payload, .. }) = Entry::decode(&last.bytes) else { panic!("{last:?}") };
    assert_eq!(payload, FATAL);
    left.kept.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_shorten_the_replay_of_a_long_history() {
    let aviary = Aviary::new("engine-snapshot");
    let mut right = aviary.node(RIGHT, anywhere(), vec![]).await;
    let left = aviary.node(LEFT, anywhere(), vec![(RIGHT, right.address)]).await;
    for _ in 0..25_000 {
        left.say(RIGHT, b"word");
    }
    for _ in 0..25_000 {
        right.next().await;
    }
    right.kept.close().await;
    let found = journal::read(&aviary.journal(RIGHT)).unwrap();
    assert!(found.records.len() < 20_000, "{} records are left to step", found.records.len());
    let past = engine::recover(Echo::default(), &found, &aviary.journal(RIGHT)).unwrap();
    assert_eq!(past.machine, Echo { sent: 0, received: 25_000 });
    left.kept.close().await;
}
