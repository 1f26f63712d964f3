//! Misbehaving peers: unknown ones, impostors, and certified ones that send garbage. Each is disconnected with a
//! reason, and the link continues with the next well-behaved connection.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use quinn::{Connection, ConnectionError, Endpoint, RecvStream, SendStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::connection::Goodbye;
use super::frame::{self, Decoder, Frame, Hello};
use super::limits::{MESSAGE_BYTES_MAX, WINDOW_MESSAGES};
use super::{Contact, Event, LinkState, Links, MessageNumber, Opening, Refusal, Settings, Violation};
use crate::identity::tls::{self, Purpose};
use crate::identity::{Authority, Identity, host_name};
use crate::peer::{Incarnation, PeerId, Timestamp, VmName};
use crate::quic;

pub(super) const US: PeerId = PeerId(1);
pub(super) const THEM: PeerId = PeerId(2);

#[tokio::test]
async fn garbage_is_cut_off_and_the_link_recovers() {
    let long = u32::try_from(8 + MESSAGE_BYTES_MAX + 1).unwrap().to_le_bytes();
    let too_long = [&[1, 2][..], &long].concat();
    let hello_again = said(|bytes| frame::put_hello(bytes, &hello(1)));
    let cases: [(Vec<u8>, Violation); 6] = [
        (vec![0xFF; 64], Violation::Version(0xFF)),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Violation::Version(b'G')),
        (vec![1, 99, 0, 0, 0, 0], Violation::Kind(99)),
        (too_long, Violation::Length { kind: 2 }),
        (hello_again, Violation::Hello),
        (said(|bytes| frame::put_message(bytes, MessageNumber(5), b"")), gap(1, 5)),
    ];
    let mut setup = Setup::open("garbage").await;
    for (ordinal, (bytes, violation)) in (1..).zip(cases) {
        let mut caller = setup.call(ordinal).await;
        assert_eq!(setup.next_event().await, Event::Up { peer: THEM, incarnation: Incarnation(0) });
        caller.send.write_all(&bytes).await.unwrap();
        assert_eq!(setup.next_event().await, Event::Down { peer: THEM, farewell: false });
        let refusal = Refusal::Violation(violation);
        assert_eq!(setup.next_event().await, Event::Refused { peer: THEM, refusal });
        assert_eq!(caller.closed_with().await, (Goodbye::Violation, violation.to_string()));
    }
    // The same peer, well-behaved.
    let mut caller = setup.call(100).await;
    setup.next_event().await;
    caller.send.write_all(&said(|bytes| frame::put_message(bytes, MessageNumber(1), b"good"))).await.unwrap();
    let received = Event::Received { peer: THEM, number: MessageNumber(1), payload: b"good".to_vec() };
    assert_eq!(setup.next_event().await, received);
}

#[tokio::test]
async fn a_peer_that_ignores_the_window_is_cut_off() {
    let mut setup = Setup::open("flood").await;
    let mut caller = setup.call(1).await;
    setup.next_event().await;
    let mut flood = Vec::new();
    for number in 1..=WINDOW_MESSAGES as u64 + 1 {
        frame::put_message(&mut flood, MessageNumber(number), b"x");
    }
    caller.send.write_all(&flood).await.unwrap();
    let mut received = 0;
    let refusal = loop {
        match setup.next_event().await {
            Event::Received { .. } => received += 1,
            Event::Refused { refusal, .. } => break refusal,
            Event::Down { .. } => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refusal, Refusal::Violation(Violation::Window));
    assert!(received <= WINDOW_MESSAGES);
}

#[tokio::test]
async fn an_acknowledgement_of_what_was_never_sent_is_cut_off() {
    let mut setup = Setup::open("acknowledgement").await;
    let mut caller = setup.call(1).await;
    setup.next_event().await;
    caller.send.write_all(&said(|bytes| frame::put_acknowledgement(bytes, MessageNumber(3)))).await.unwrap();
    setup.next_event().await;
    let violation = Violation::Acknowledgement { sent: MessageNumber(0), found: MessageNumber(3) };
    assert_eq!(setup.next_event().await, Event::Refused { peer: THEM, refusal: Refusal::Violation(violation) });
}

#[tokio::test]
async fn a_hello_in_anothers_name_is_cut_off() {
    let setup = Setup::open("impostor").await;
    let connection = setup.connect(&setup.identity(THEM)).await.unwrap();
    let mut send = connection.open_uni().await.unwrap();
    let impostor = Hello { peer: PeerId(7), ..hello(1) };
    send.write_all(&said(|bytes| frame::put_hello(bytes, &impostor))).await.unwrap();
    assert_eq!(closed_with(&connection).await.0, Goodbye::Violation);
}

#[tokio::test]
async fn a_message_before_the_hello_is_cut_off() {
    let setup = Setup::open("no-hello").await;
    let connection = setup.connect(&setup.identity(THEM)).await.unwrap();
    let mut send = connection.open_uni().await.unwrap();
    send.write_all(&said(|bytes| frame::put_message(bytes, MessageNumber(1), b"x"))).await.unwrap();
    assert_eq!(closed_with(&connection).await.0, Goodbye::Violation);
}

#[tokio::test]
async fn of_two_connections_the_older_is_closed() {
    let mut setup = Setup::open("older").await;
    let older = setup.call(1).await;
    setup.next_event().await;
    let mut newer = setup.call(2).await;
    assert_eq!(older.closed_with().await.0, Goodbye::Superseded);
    newer.send.write_all(&said(|bytes| frame::put_message(bytes, MessageNumber(1), b"new"))).await.unwrap();
    // An older one that comes late is refused, and the present one continues.
    let late = setup.connect(&setup.identity(THEM)).await.unwrap();
    let mut send = late.open_uni().await.unwrap();
    send.write_all(&said(|bytes| frame::put_hello(bytes, &hello(1)))).await.unwrap();
    assert_eq!(closed_with(&late).await.0, Goodbye::Superseded);
    newer.send.write_all(&said(|bytes| frame::put_message(bytes, MessageNumber(2), b"newer"))).await.unwrap();
    let mut payloads = Vec::new();
    while payloads.len() < 2 {
        if let Event::Received { payload, .. } = setup.next_event().await {
            payloads.push(payload);
        }
    }
    assert_eq!(payloads, [b"new".to_vec(), b"newer".to_vec()]);
}

#[tokio::test]
async fn a_stream_that_ends_without_a_goodbye_counts_as_lost() {
    let mut setup = Setup::open("ends").await;
    let mut caller = setup.call(1).await;
    setup.next_event().await;
    caller.send.finish().unwrap();
    assert_eq!(setup.next_event().await, Event::Down { peer: THEM, farewell: false });
    let caller = setup.call(2).await;
    setup.next_event().await;
    Goodbye::Farewell.say(&caller.connection, "");
    assert_eq!(setup.next_event().await, Event::Down { peer: THEM, farewell: true });
}

#[tokio::test]
async fn peers_of_another_authority_cannot_connect_in_either_direction() {
    let setup = Setup::open("foreign");
    let foreign = Setup::open("foreign-setup");
    let (setup, mut foreign) = (setup.await, foreign.await);
    // With a certificate of another authority, for the very same peer number.
    let refused = setup.connect(&foreign.identity(THEM)).await;
    assert!(refused.is_err(), "the other peer trusts another authority and must not accept ours");
    // A peer that would accept any server and has a self-signed certificate: the server refuses it.
    let lenient = mixed(&foreign, &setup);
    let connection = setup.connect(&lenient).await.unwrap();
    assert!(matches!(connection.closed().await, ConnectionError::ConnectionClosed(_)));
    // Dialling such a peer fails as well: our side refuses its certificate.
    foreign.links.introduce(US, Contact { address: Some(setup.links.address()), held: true }).await.unwrap();
    assert!(setup.connect_to(&setup.identity(THEM), foreign.links.address(), US).await.is_err());
    assert!(foreign.events.try_recv().is_err());
}

#[tokio::test]
async fn the_certificate_of_another_peer_than_the_dialled_one_is_refused() {
    let setup = Setup::open("other-peer").await;
    let identity = setup.identity(THEM);
    // US listens there; a dial to peer 9 must not accept it.
    assert!(setup.connect_to(&identity, setup.links.address(), PeerId(9)).await.is_err());
    assert!(setup.connect_to(&identity, setup.links.address(), US).await.is_ok());
}

#[tokio::test]
async fn an_expired_certificate_gets_no_connection() {
    let setup = Setup::open("expired").await;
    let yesterday = Timestamp::now().before(48 * 3600);
    let expired = setup.certify(THEM, yesterday);
    let connection = setup.connect(&expired).await.unwrap();
    assert!(matches!(connection.closed().await, ConnectionError::ConnectionClosed(_)));
}

/// Links of one peer, an authority, and a socket for callers.
struct Setup {
    directory: PathBuf,
    authority: Authority,
    links: Links,
    events: mpsc::Receiver<Event>,
    caller: Endpoint,
}

/// A certified peer at the other end that sends whatever the test wants.
struct Caller {
    connection: Connection,
    send: SendStream,
    _receive: RecvStream,
}

impl Setup {
    async fn open(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("holdfast-hostile-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let authority = Authority::create_or_load(&directory, 24 * 3600, Timestamp::now()).unwrap();
        let us = certify(&directory, &authority, US, Timestamp::now());
        let opening = Opening {
            listen: loopback(),
            incarnation: Incarnation(1),
            links: BTreeMap::new(),
            revoked: BTreeSet::new(),
            identity_calls: None,
            settings: Settings::default(),
        };
        let (links, events) = Links::open(&us, opening).unwrap();
        Self { directory, authority, links, events, caller: Endpoint::client(loopback()).unwrap() }
    }

    fn certify(&self, peer: PeerId, now: Timestamp) -> Identity {
        certify(&self.directory, &self.authority, peer, now)
    }

    fn identity(&self, peer: PeerId) -> Identity {
        self.certify(peer, Timestamp::now())
    }

    async fn connect(&self, identity: &Identity) -> Result<Connection, ConnectionError> {
        self.connect_to(identity, self.links.address(), US).await
    }

    async fn connect_to(
        &self,
        identity: &Identity,
        address: SocketAddr,
        peer: PeerId,
    ) -> Result<Connection, ConnectionError> {
        let config = quic::client(tls::client(identity, Purpose::Link).unwrap()).unwrap();
        self.caller.connect_with(config, address, &host_name(peer)).unwrap().await
    }

    /// Connects and exchanges hellos.
    async fn call(&self, ordinal: u64) -> Caller {
        let connection = self.connect(&self.identity(THEM)).await.unwrap();
        let mut send = connection.open_uni().await.unwrap();
        send.write_all(&said(|bytes| frame::put_hello(bytes, &hello(ordinal)))).await.unwrap();
        let mut receive = connection.accept_uni().await.unwrap();
        let mut decoder = Decoder::default();
        let answer = loop {
            if let Some(frame) = decoder.next_frame().unwrap() {
                break frame;
            }
            decoder.push(&receive.read_chunk(1 << 16, true).await.unwrap().unwrap().bytes);
        };
        assert!(matches!(answer, Frame::Hello(Hello { peer: US, .. })));
        Caller { connection, send, _receive: receive }
    }

    async fn next_event(&mut self) -> Event {
        let event = timeout(Duration::from_secs(30), self.events.recv()).await;
        event.expect("something happens in time").expect("the links are open")
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Caller {
    async fn closed_with(&self) -> (Goodbye, String) {
        closed_with(&self.connection).await
    }
}

async fn closed_with(connection: &Connection) -> (Goodbye, String) {
    let ConnectionError::ApplicationClosed(close) = connection.closed().await else { panic!("not closed by us") };
    let goodbyes =
        [Goodbye::Farewell, Goodbye::Superseded, Goodbye::Refused, Goodbye::Violation, Goodbye::Gone, Goodbye::Revoked];
    let goodbye = goodbyes.into_iter().find(|goodbye| goodbye.code() == close.error_code).unwrap();
    (goodbye, String::from_utf8_lossy(&close.reason).into_owned())
}

pub(super) fn certify(directory: &std::path::Path, authority: &Authority, peer: PeerId, now: Timestamp) -> Identity {
    let directory = directory.join(peer.to_string());
    fs::create_dir_all(&directory).unwrap();
    authority.identity(&directory, peer, &VmName::parse(&peer.to_string()).unwrap(), now).unwrap()
}

/// A certificate of one setup, whose owner trusts the authority of another.
fn mixed(own: &Setup, trusted: &Setup) -> Identity {
    let directory = own.directory.join("mixed");
    fs::create_dir_all(&directory).unwrap();
    let name = VmName::parse("mixed").unwrap();
    own.authority.identity(&directory, THEM, &name, Timestamp::now()).unwrap();
    fs::copy(trusted.directory.join("authority-certificate.der"), directory.join("authority.der")).unwrap();
    Identity::load(&directory).unwrap().unwrap()
}

pub(super) fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

pub(super) fn hello(ordinal: u64) -> Hello {
    let LinkState { last_sent, last_applied, .. } = LinkState::default();
    Hello { peer: THEM, incarnation: Incarnation(0), life: 4, ordinal, applied: last_applied, sent: last_sent }
}

fn gap(expected: u64, found: u64) -> Violation {
    Violation::Gap { expected: MessageNumber(expected), found: MessageNumber(found) }
}

pub(super) fn said(say: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    say(&mut bytes);
    bytes
}
