//! The event stream, as server-sent events.
//!
//! Each event carries its number as `id`. A client that reconnects with the last number it received (`Last-Event-ID`, or
//! `?after=`) misses nothing that is still stored, and gets a gap entry for what is not.

use super::{Api, listen::halted, problem::Problem, reading::Asked};
use crate::document::{EventDocument, Gap};
use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use http_body_util::channel::{Channel, Sender};
use serde::{Deserialize, Serialize};
use std::{convert::Infallible, time::Duration};
use tokio::time::timeout;

/// Number of events that are read at once.
const PAGE: usize = 256;
/// Number of frames that may be queued for a slow client.
const QUEUED_MAX: usize = 64;
/// Timeout for a slow client.
const READER_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    after: Option<u64>,
}

pub(super) async fn events(
    State(api): State<Api>,
    Asked(query): Asked<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let resumed = headers.get("last-event-id").map(|it| it.to_str().ok().and_then(|it| it.trim().parse().ok()));
    let wrong = || Problem::malformed("Last-Event-ID is not the number of an event", Vec::new());
    let resumed = resumed.map(|number: Option<u64>| number.ok_or_else(wrong)).transpose()?;
    // An interrupted stream continues where it ended, even if its address still has the old starting point.
    let after = resumed.or(query.after);
    let busy = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many event streams (try again later)");
    let room = api.streams.clone().try_acquire_owned().map_err(busy)?;
    let (sender, body) = Channel::<Bytes, Infallible>::new(QUEUED_MAX);
    // A number beyond the newest event comes from another manager: the stream starts with the next event.
    let newest = *api.manager.newest().borrow();
    let after = after.map_or(newest, |after| after.min(newest));
    tokio::spawn(async move {
        let mut halting = api.halting.subscribe();
        tokio::select! {
            () = follow(&api, after, sender) => {}
            () = halted(&mut halting) => {}
        }
        drop(room);
    });
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// Sends the events after a number until the client disconnects or the manager halts.
async fn follow(api: &Api, mut after: u64, mut sender: Sender<Bytes, Infallible>) {
    let mut newest = api.manager.newest();
    // Sends the head of the answer at once.
    let mut alive = send(&mut sender, ": events follow\n\n".into()).await;
    while alive {
        // Marked as seen before reading: events that arrive meanwhile wake it again.
        newest.borrow_and_update();
        let Ok(events) = api.manager.events_after(after, PAGE).await else { return };
        // Everything available is sent in one piece: each piece costs both sides a TLS record.
        let mut piece = String::new();
        if let Some(first) = events.first().filter(|first| first.number > after + 1) {
            piece += &framed(None, "gap", &Gap { from: after + 1, to: first.number - 1 });
        }
        for event in &events {
            let document = EventDocument::from(event);
            piece += &framed(Some(event.number), &document.what.to_string(), &document);
            after = event.number;
        }
        if !piece.is_empty() {
            alive = send(&mut sender, piece).await;
        } else {
            alive = match timeout(api.settings.keep_alive, newest.changed()).await {
                Ok(Ok(())) => true,
                Ok(Err(_)) => false,
                Err(_) => send(&mut sender, ": still here\n\n".into()).await,
            };
        }
    }
}

fn framed(number: Option<u64>, what: &str, data: &impl Serialize) -> String {
    let id = number.map(|number| format!("id: {number}\n")).unwrap_or_default();
    // JSON on one line has no line breaks inside.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("{id}event: {what}\ndata: {data}\n\n")
}

/// Sends one piece; returns whether the client is still connected.
async fn send(sender: &mut Sender<Bytes, Infallible>, text: String) -> bool {
    matches!(timeout(READER_TIMEOUT, sender.send_data(text.into())).await, Ok(Ok(())))
}
