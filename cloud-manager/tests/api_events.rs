//! The event stream: nothing is lost when a stream is interrupted, and events that are no longer stored are reported.

mod test_manager;

use cloud_manager::document::EventKind;
use cloud_manager::{
    api::Settings,
    client::{Client, Events, StreamItem},
    document::{Accepted, EventDocument, Gap},
};
use serde_json::json;
use std::time::Duration;
use test_manager::TestManager;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

async fn add_vm(client: &Client, name: &str) {
    let edits = json!({ "edits": [{ "add-vm": { "name": name } }] });
    let _: Accepted = client.post("/v1/changes", &edits).await.expect("the change is accepted");
}

async fn next(events: &mut Events) -> EventDocument {
    match events.next().await.expect("the stream continues") {
        Some(StreamItem::Event(event)) => *event,
        other => panic!("no event but {other:?}"),
    }
}

#[tokio::test]
async fn an_interrupted_stream_resumes_without_loss() {
    let manager = TestManager::new("resume");
    let client = manager.client();
    let mut seen = Vec::new();
    let mut last = 0;
    for round in 0..10 {
        let mut events = client.events(last).await.unwrap();
        add_vm(&client, &format!("vm{round}")).await;
        // Reads two of the events of this round, then drops the stream; the others arrive in the next round.
        for _ in 0..2 {
            let event = next(&mut events).await;
            last = event.number;
            seen.push(event);
        }
    }
    let mut events = client.events(last).await.unwrap();
    while seen.last().is_none_or(|event| event.change != Some(10) || event.what != EventKind::ChangeDone) {
        seen.push(next(&mut events).await);
    }
    let numbers: Vec<u64> = seen.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=seen.len() as u64).collect::<Vec<_>>());
    let whats: Vec<String> =
        seen.iter().filter(|event| event.number <= 5).map(|event| event.what.to_string()).collect();
    assert_eq!(whats, ["accepted", "phase-posted", "vm-made", "phase-done", "change-done"]);
}

#[tokio::test]
async fn events_that_are_no_longer_stored_are_reported_as_a_gap() {
    let manager = TestManager::with("gap", Settings::default(), 3);
    let client = manager.client();
    add_vm(&client, "web").await;
    let mut events = client.events(1).await.unwrap();
    assert_eq!(events.next().await.unwrap(), Some(StreamItem::Gap(Gap { from: 2, to: 2 })));
    assert_eq!(next(&mut events).await.number, 3);
}

#[tokio::test]
async fn the_header_of_a_resumed_stream_overrides_its_address_and_keep_alives_are_sent() {
    let settings = Settings { keep_alive: Duration::from_millis(20), ..Settings::default() };
    let manager = TestManager::with("header", settings, 100);
    let client = manager.client();
    add_vm(&client, "web").await;
    let mut stream = manager.raw().await;
    let head = format!(
        "GET /v1/events?after=0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nLast-Event-ID: 4\r\n\r\n",
        manager.access.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut bytes = [0; 4096];
    while !text.contains(": still here") {
        let read = timeout(Duration::from_secs(20), stream.read(&mut bytes)).await.unwrap().unwrap();
        assert!(read > 0, "the stream ended: {text}");
        text += &String::from_utf8_lossy(&bytes[..read]);
    }
    assert!(text.contains("id: 5\nevent: change-done\n") && !text.contains("id: 4"), "{text}");
    assert!(text.to_lowercase().contains("content-type: text/event-stream"), "{text}");
}

#[tokio::test]
async fn the_number_of_streams_is_limited_and_closed_streams_free_their_place() {
    let manager = TestManager::with("streams", Settings { streams_max: 1, ..Settings::default() }, 100);
    let client = manager.client();
    let first = client.events(0).await.unwrap();
    assert!(client.events(0).await.is_err());
    drop(first);
    // The place is free once the manager has noticed; it notices when it writes.
    let again = async {
        loop {
            add_vm(&client, "web").await;
            if client.events(0).await.is_ok() {
                return;
            }
            let gone = json!({ "edits": [{ "remove-vm": "web" }] });
            let _: Accepted = client.post("/v1/changes", &gone).await.unwrap();
        }
    };
    timeout(Duration::from_secs(20), again).await.expect("the place is given back");
}
