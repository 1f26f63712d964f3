//! Links over real sockets on the loopback address: exactly-once and in-order delivery, whatever breaks.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;

use std::time::Duration;

use runtime::identity::{Authority, Identity};
use runtime::link::{Event, LinkState, MESSAGE_BYTES_MAX, MessageNumber, Opening, Refusal, Settings, WINDOW_MESSAGES};
use runtime::{Error, Incarnation, PeerId};
use support::station::{Station, authority, identity, opening};
use support::{Dice, Scratch};

const A: PeerId = PeerId(1);
const B: PeerId = PeerId(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_arrive_once_and_in_order_while_connections_are_killed() {
    const COUNT: usize = 2000;
    let town = Town::new("killed");
    let (mut a, mut b) = town.pair().await;
    let both = tokio::join!(chatter(&mut a, B, COUNT, 11), chatter(&mut b, A, COUNT, 12));
    // The test would show little if nothing had been killed.
    assert!(both.0 > 10 && both.1 > 10, "{both:?}");
    for (station, other) in [(&a, B), (&b, A)] {
        assert_eq!(station.journal[&other], texts(COUNT));
    }
}

/// Sends everything, receives everything, and kills the connection now and then; returns how often.
async fn chatter(station: &mut Station, other: PeerId, count: usize, seed: u64) -> u32 {
    let mut dice = Dice(seed);
    let mut kills = 0;
    let mut sent = 0;
    while sent < count || station.received(other) < count || station.acknowledged.get(&other) < Some(&number(count)) {
        // A burst, then whatever happens next.
        for _ in 0..dice.below(8) {
            if sent < count && station.send(other, &text(sent)).await.is_ok() {
                sent += 1;
            }
        }
        if sent == 0 {
            continue;
        }
        let event = station.next().await;
        if matches!(event, Event::Received { .. }) && dice.below(60) == 0 {
            station.links.hang_up(other).await.unwrap();
            kills += 1;
        }
    }
    kills
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_peers_that_dial_at_once_end_up_with_one_connection() {
    let town = Town::new("at-once");
    for round in 0..15 {
        let (mut a, mut b) = town.strangers();
        let (to_a, to_b) = (a.address(), b.address());
        tokio::join!(a.know(B, to_b, true), b.know(A, to_a, true));
        // However the race goes, messages flow both ways, and back and forth.
        a.send(B, "from a").await.unwrap();
        b.send(A, "from b").await.unwrap();
        tokio::join!(b.receive(A, 1), a.receive(B, 1));
        for turn in 0..5 {
            a.send(B, "ping").await.unwrap();
            b.receive(A, turn + 2).await;
            b.send(A, "pong").await.unwrap();
            a.receive(B, turn + 2).await;
        }
        assert_eq!((b.received(A), a.received(B)), (6, 6), "round {round}");
        tokio::join!(a.links.close(), b.links.close());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_peer_continues_where_its_journal_ends() {
    const LIVES: usize = 6;
    let town = Town::new("restart");
    let (mut a, mut b) = town.pair().await;
    let mut from_b = Vec::new();
    for life in 1..=LIVES {
        for part in 0..20 {
            a.send(B, &text((life - 1) * 20 + part)).await.unwrap();
            from_b.push(format!("{life}.{part}"));
            b.send(A, from_b.last().unwrap()).await.unwrap();
        }
        // It dies at some point in the middle, and remembers what it had applied and sent.
        b.receive(A, (life - 1) * 20 + 5 + life).await;
        let state = b.state(A, &from_b);
        let journal = std::mem::take(&mut b.journal);
        b.links.close().await;
        let links = [(A, state)].into();
        // It has a new address, which the other peer learns when it connects.
        b = Station::open(&town.b, Opening { links, ..opening() });
        b.journal = journal;
        b.know(A, a.address(), true).await;
    }
    b.receive(A, LIVES * 20).await;
    a.receive(B, LIVES * 20).await;
    assert_eq!(b.journal[&A], texts(LIVES * 20));
    assert_eq!(a.journal[&B], from_b.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_receiver_holds_no_more_than_the_window() {
    const COUNT: usize = 3 * WINDOW_MESSAGES;
    let town = Town::new("slow");
    let (mut a, mut b) = town.pair().await;
    for part in 0..COUNT {
        a.send(B, &text(part)).await.unwrap();
    }
    // An owner that applies nothing gets one window and not a message more ...
    let mut waiting = Vec::new();
    while waiting.len() < WINDOW_MESSAGES {
        waiting.extend(message(b.events.recv().await.unwrap()));
    }
    // ... and for each one that it applies, one more.
    for turn in 1..=5 {
        b.links.applied(A, number(turn)).await.unwrap();
        while waiting.len() < WINDOW_MESSAGES + turn {
            waiting.extend(message(b.events.recv().await.unwrap()));
        }
        assert!(std::iter::from_fn(|| b.events.try_recv().ok()).filter_map(message).next().is_none());
    }
    b.links.applied(A, waiting.last().unwrap().0).await.unwrap();
    b.journal.insert(A, waiting.into_iter().map(|(_, payload)| payload).collect());
    b.receive(A, COUNT).await;
    assert_eq!(b.journal[&A], texts(COUNT));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outbox_is_bounded_and_has_space_again_after_acknowledgements() {
    let town = Town::new("outbox");
    let (mut a, mut b) = town.strangers();
    let long = vec![7; MESSAGE_BYTES_MAX];
    let mut sent = 0;
    let full = loop {
        match a.links.send(B, long.clone()).await {
            Ok(_) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, Error::OutboxFull { peer: B }));
    assert_eq!(sent, 15);
    let too_long = a.links.send(B, vec![0; MESSAGE_BYTES_MAX + 1]).await;
    assert!(matches!(too_long, Err(Error::MessageTooLong { .. })));

    a.know(B, b.address(), false).await;
    tokio::join!(a.delivered(B, sent), b.receive(A, usize::try_from(sent).unwrap()));
    // A refused message got no number.
    assert_eq!(a.links.send(B, long).await.unwrap(), MessageNumber(sent + 1));
    b.receive(A, usize::try_from(sent).unwrap() + 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_without_an_address_is_reached_when_it_connects() {
    let town = Town::new("calls");
    let (mut a, mut b) = town.strangers();
    a.send(B, "waiting for you").await.unwrap();
    b.know(A, a.address(), true).await;
    b.receive(A, 1).await;
    // From then on its address is known.
    b.links.introduce(A, runtime::link::Contact::default()).await.unwrap();
    a.delivered(B, 1).await;
    a.links.hang_up(B).await.unwrap();
    a.send(B, "there you are").await.unwrap();
    b.receive(A, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_peer_is_refused_and_so_is_one_restored_from_an_old_backup() {
    let town = Town::new("wiped");
    let (mut a, mut b) = town.pair().await;
    a.send(B, "one").await.unwrap();
    b.receive(A, 1).await;
    a.delivered(B, 1).await;
    b.links.close().await;

    let wiped = Opening { incarnation: Incarnation(2), ..opening() };
    let mut b = Station::open(&town.b, wiped);
    b.know(A, a.address(), true).await;
    let refused = a.next_where(|event| matches!(event, Event::Refused { .. })).await;
    let refusal = Refusal::Wiped { known: Incarnation(1), found: Incarnation(2) };
    assert_eq!(refused, Event::Refused { peer: B, refusal: refusal.clone() });
    // It gets the reason.
    let told = b.next_where(|event| matches!(event, Event::Refused { .. })).await;
    assert_eq!(told, Event::Refused { peer: A, refusal: Refusal::ByPeer(refusal.to_string()) });
    b.links.close().await;

    // The same incarnation with an old backup.
    let mut b = Station::open(&town.b, opening());
    b.know(A, a.address(), true).await;
    let forgot = |event: &Event| matches!(event, Event::Refused { refusal: Refusal::PeerForgot { .. }, .. });
    a.next_where(forgot).await;
    b.next_where(|event| matches!(event, Event::Refused { refusal: Refusal::ByPeer(_), .. })).await;
    b.links.close().await;

    // With its current state it is accepted.
    let state = LinkState { last_applied: number(1), ..LinkState::default() };
    let again = Opening { links: [(A, state)].into(), ..opening() };
    let mut b = Station::open(&town.b, again);
    b.know(A, a.address(), true).await;
    b.next_where(|event| matches!(event, Event::Up { peer: A, .. })).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_peer_is_disconnected_and_refused() {
    let town = Town::new("revoked");
    let (mut a, mut b) = town.pair().await;
    a.send(B, "one").await.unwrap();
    b.receive(A, 1).await;
    a.delivered(B, 1).await;
    a.links.revoke(B).await.unwrap();
    assert!(matches!(a.send(B, "two").await, Err(Error::Revoked { peer: B })));
    // Disconnected first, then refused each time it dials.
    for _ in 0..3 {
        let refused = b.next_where(|event| matches!(event, Event::Refused { .. })).await;
        assert_eq!(refused, Event::Refused { peer: A, refusal: Refusal::Revoked });
    }
    let nothing_of_b = |event: Event| !matches!(event, Event::Up { peer: B, .. } | Event::Received { peer: B, .. });
    while let Ok(event) = a.events.try_recv() {
        assert!(nothing_of_b(event));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unused_link_is_closed_with_a_goodbye_and_reopened_when_needed() {
    let town = Town::new("unused");
    let settings = Settings { unused_after: Duration::from_millis(40), ..opening().settings };
    let mut a = Station::open(&town.a, Opening { settings: settings.clone(), ..opening() });
    let mut b = Station::open(&town.b, Opening { settings, ..opening() });
    a.know(B, b.address(), false).await;
    for turn in 0..3 {
        a.send(B, "now").await.unwrap();
        b.receive(A, turn + 1).await;
        let farewell = |event: &Event| matches!(event, Event::Down { farewell: true, .. });
        tokio::join!(a.next_where(farewell), b.next_where(farewell));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_the_other_side_holds_is_not_closed_when_idle() {
    const C: PeerId = PeerId(3);
    let town = Town::new("held");
    let settings = Settings { unused_after: Duration::from_millis(40), ..opening().settings };
    let mut a = Station::open(&town.a, Opening { settings, ..opening() });
    let b = Station::open(&town.b, opening());
    let c = Station::open(&identity(town.scratch.path(), &town.authority, C), opening());
    b.know(A, a.address(), true).await;
    a.next_where(|event| matches!(event, Event::Up { peer: B, .. })).await;
    // Twice a connection that it dialled is closed because it is idle; the one that B holds outlives both.
    a.know(C, c.address(), false).await;
    let mut c = c;
    for turn in 1..=2 {
        a.send(C, "now").await.unwrap();
        c.receive(A, turn).await;
        let down = a.next_where(|event| matches!(event, Event::Down { .. })).await;
        assert_eq!(down, Event::Down { peer: C, farewell: true });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_certificate_is_presented_on_new_connections_and_old_ones_stay() {
    let town = Town::new("renewed");
    let (mut a, mut b) = town.pair().await;
    a.send(B, "before").await.unwrap();
    b.receive(A, 1).await;
    a.links.renew(&identity(town.scratch.path(), &town.authority, A)).await.unwrap();
    a.send(B, "on the same connection").await.unwrap();
    b.receive(A, 2).await;
    a.links.hang_up(B).await.unwrap();
    a.send(B, "on a new one").await.unwrap();
    b.receive(A, 3).await;
}

fn message(event: Event) -> Option<(MessageNumber, Vec<u8>)> {
    if let Event::Received { number, payload, .. } = event { Some((number, payload)) } else { None }
}

/// An authority and two peers.
struct Town {
    scratch: Scratch,
    authority: Authority,
    a: Identity,
    b: Identity,
}

impl Town {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(&format!("link-{name}"));
        let authority = authority(scratch.path());
        let a = identity(scratch.path(), &authority, A);
        let b = identity(scratch.path(), &authority, B);
        Self { scratch, authority, a, b }
    }

    /// Two stations that do not know each other.
    fn strangers(&self) -> (Station, Station) {
        (Station::open(&self.a, opening()), Station::open(&self.b, opening()))
    }

    /// Two stations that hold a connection.
    async fn pair(&self) -> (Station, Station) {
        let (a, b) = self.strangers();
        a.know(B, b.address(), true).await;
        b.know(A, a.address(), true).await;
        (a, b)
    }
}

fn text(part: usize) -> String {
    format!("message {part}")
}

fn texts(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|part| text(part).into_bytes()).collect()
}

fn number(count: usize) -> MessageNumber {
    MessageNumber(count as u64)
}
