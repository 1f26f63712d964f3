//! Frames of an older connection must be ignored once a newer one is in use. The reading task may have queued events just
//! before it was stopped, so the test injects the events itself, in the worst order.

use std::fs;

use quinn::Connection;

use super::*;
use crate::identity::tls::{self, Purpose};
use crate::identity::{Authority, Identity, host_name};
use crate::link::connection::welcome;
use crate::link::dial::certified;
use crate::link::frame;
use crate::link::hostile_tests::{THEM, US, certify, hello, loopback, said};
use crate::quic;

#[tokio::test]
async fn an_older_connection_is_ignored_once_a_newer_one_is_in_use() {
    let directory = std::env::temp_dir().join(format!("holdfast-switchboard-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let authority = Authority::create_or_load(&directory, 3600, Timestamp::now()).unwrap();
    let us = certify(&directory, &authority, US, Timestamp::now());
    let them = certify(&directory, &authority, THEM, Timestamp::now());
    fs::remove_dir_all(&directory).unwrap();
    let mut board = board(&us);
    let caller = Endpoint::client(loopback()).unwrap();

    let _older = take_up(&mut board, &caller, &them, 1).await;
    let older = board.generation;
    let _newer = take_up(&mut board, &caller, &them, 2).await;
    let newer = board.generation;
    assert!(newer > older);
    while board.news.next_event().is_some() {}

    // Every event that the older one may have queued: none of them changes anything.
    board.hear(frames(older, 1, b"late"));
    board.hear(SocketEvent::Written { peer: THEM, generation: older });
    let ending = Ending::Lost("late".to_owned());
    board.hear(SocketEvent::Ended { peer: THEM, generation: older, ending });
    assert!(board.news.is_empty());
    assert!(board.is_present(THEM, newer));
    // The newer one counts, and the number that came late is still the next.
    board.hear(frames(newer, 1, b"now"));
    let event = Event::Received { peer: THEM, number: MessageNumber(1), payload: b"now".to_vec() };
    assert_eq!(board.news.next_event(), Some(event));
}

fn board(us: &Identity) -> Switchboard {
    let endpoint = quic::endpoint(us, loopback()).unwrap();
    endpoint.set_server_config(Some(quic::server(tls::server(us, false).unwrap()).unwrap()));
    let dialling = quic::client(tls::client(us, Purpose::Link).unwrap()).unwrap();
    let (links, revoked) = (BTreeMap::new(), BTreeSet::new());
    Switchboard::new(US, Incarnation(1), endpoint, dialling, Settings::default(), links, revoked).unwrap()
}

/// A connection of the peer, accepted and passed to the switchboard; returned so that it stays open.
async fn take_up(board: &mut Switchboard, caller: &Endpoint, them: &Identity, ordinal: u64) -> Connection {
    let config = quic::client(tls::client(them, Purpose::Link).unwrap()).unwrap();
    let connecting = caller.connect_with(config, board.endpoint.local_addr().unwrap(), &host_name(US)).unwrap();
    let accepting = async { board.endpoint.accept().await.unwrap().await.unwrap() };
    let (dialled, accepted) = tokio::join!(connecting, accepting);
    let dialled = dialled.unwrap();
    let mut send = dialled.open_uni().await.unwrap();
    send.write_all(&said(|bytes| frame::put_hello(bytes, &hello(ordinal)))).await.unwrap();
    let shown = certified(&accepted).unwrap();
    board.meet(welcome(accepted, shown).await.unwrap());
    dialled
}

fn frames(generation: u64, number: u64, payload: &[u8]) -> SocketEvent {
    let frame = Frame::Message { number: MessageNumber(number), payload: payload.to_vec() };
    SocketEvent::Heard { peer: THEM, generation, frames: vec![frame] }
}
