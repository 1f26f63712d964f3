//! Events as they come, in the format of server-sent events.
//!
//! Each carries its number as `id`; whoever comes back with the last one it saw (`Last-Event-ID`, or `?after=`) misses
//! nothing that is still kept, and is told of what is not.

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

/// How many events are read at once.
const PAGE: usize = 256;
/// How many may be on their way to a reader that is slow.
const UNDER_WAY: usize = 64;
/// How slow a reader may be.
const READER_PATIENCE: Duration = Duration::from_secs(60);

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
    // A stream that broke goes on where it was, even if its address still says where it once began.
    let after = resumed.or(query.after);
    let busy = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many streams of events (try again later)");
    let room = api.streams.clone().try_acquire_owned().map_err(busy)?;
    let (sender, body) = Channel::<Bytes, Infallible>::new(UNDER_WAY);
    // Whoever has seen more than there is has seen another manager: it begins with what comes next.
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
    // So that the head of the answer leaves at once.
    let mut alive = send(&mut sender, ": events follow\n\n".into()).await;
    while alive {
        // Marked as seen before reading: what comes while reading rings again.
        newest.borrow_and_update();
        let Ok(events) = api.manager.events_after(after, PAGE).await else { return };
        // All that is there leaves in one piece: each piece costs the reader and us a record of TLS.
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

/// Sends one piece; says whether there is still a reader.
async fn send(sender: &mut Sender<Bytes, Infallible>, text: String) -> bool {
    matches!(timeout(READER_PATIENCE, sender.send_data(text.into())).await, Ok(Ok(())))
}
