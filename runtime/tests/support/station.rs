//! A peer for tests: links, and an owner that applies what it receives at once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use runtime::identity::{Authority, Identity, IdentityCall};
use runtime::link::{Contact, Event, LinkState, Links, MessageNumber, Opening, Settings};
use runtime::{Error, Incarnation, PeerId, Timestamp, VmName};
use tokio::sync::mpsc;

/// Time limit for each wait of a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn authority(directory: &Path) -> Authority {
    Authority::create_or_load(directory, 24 * 3600, Timestamp::now()).unwrap()
}

pub(crate) fn identity(directory: &Path, authority: &Authority, peer: PeerId) -> Identity {
    let directory = directory.join(peer.to_string());
    std::fs::create_dir_all(&directory).unwrap();
    authority.identity(&directory, peer, &VmName::parse(&peer.to_string()).unwrap(), Timestamp::now()).unwrap()
}

pub(crate) fn opening() -> Opening {
    Opening {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        incarnation: Incarnation(1),
        links: BTreeMap::new(),
        revoked: BTreeSet::new(),
        identity_calls: None,
        settings: Settings {
            redial_first: Duration::from_millis(5),
            redial_max: Duration::from_millis(100),
            ..Settings::default()
        },
    }
}

pub(crate) struct Station {
    pub(crate) links: Links,
    pub(crate) events: mpsc::Receiver<Event>,
    /// What was received and applied, by peer.
    pub(crate) journal: BTreeMap<PeerId, Vec<Vec<u8>>>,
    pub(crate) acknowledged: BTreeMap<PeerId, MessageNumber>,
}

impl Station {
    pub(crate) fn open(identity: &Identity, opening: Opening) -> Self {
        let (links, events) = Links::open(identity, opening).unwrap();
        Self { links, events, journal: BTreeMap::new(), acknowledged: BTreeMap::new() }
    }

    pub(crate) fn with_desk(identity: &Identity, identity_calls: mpsc::Sender<IdentityCall>) -> Self {
        Self::open(identity, Opening { identity_calls: Some(identity_calls), ..opening() })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.links.address()
    }

    pub(crate) async fn know(&self, peer: PeerId, address: SocketAddr, held: bool) {
        self.links.introduce(peer, Contact { address: Some(address), held }).await.unwrap();
    }

    pub(crate) async fn send(&mut self, peer: PeerId, text: &str) -> Result<MessageNumber, Error> {
        self.links.send(peer, text.as_bytes().to_vec()).await
    }

    /// The next event; a message is applied before it is returned.
    pub(crate) async fn next(&mut self) -> Event {
        let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
        let event = event.expect("something happens in time").expect("the links are open");
        match &event {
            Event::Received { peer, number, payload } => {
                let journal = self.journal.entry(*peer).or_default();
                journal.push(payload.clone());
                assert_eq!(number.0, journal.len() as u64);
                self.links.applied(*peer, *number).await.unwrap();
            }
            Event::Acknowledged { peer, through } => {
                self.acknowledged.insert(*peer, *through);
            }
            _ => {}
        }
        event
    }

    pub(crate) async fn next_where(&mut self, wanted: impl Fn(&Event) -> bool) -> Event {
        loop {
            let event = self.next().await;
            if wanted(&event) {
                return event;
            }
        }
    }

    /// Waits until this many messages of a peer are applied.
    pub(crate) async fn receive(&mut self, peer: PeerId, count: usize) {
        while self.received(peer) < count {
            self.next().await;
        }
    }

    /// Waits until a peer has applied this many.
    pub(crate) async fn delivered(&mut self, peer: PeerId, count: u64) {
        while self.acknowledged.get(&peer) < Some(&MessageNumber(count)) {
            self.next().await;
        }
    }

    pub(crate) fn received(&self, peer: PeerId) -> usize {
        self.journal.get(&peer).map_or(0, Vec::len)
    }

    /// What a restarted owner would find in its journal.
    pub(crate) fn state(&self, peer: PeerId, sent: &[String]) -> LinkState {
        let acknowledged = self.acknowledged.get(&peer).map_or(0, |through| through.0);
        let unacknowledged = sent[usize::try_from(acknowledged).unwrap()..].iter();
        LinkState {
            last_sent: MessageNumber(sent.len() as u64),
            last_applied: MessageNumber(self.received(peer) as u64),
            unacknowledged: unacknowledged.map(|text| text.as_bytes().to_vec()).collect(),
            incarnation: Some(Incarnation(1)),
        }
    }
}
