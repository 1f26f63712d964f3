//! How things are: the routes that change nothing.

use super::{
    Api,
    chronicle::Chronicle,
    describe, now_ms,
    problem::{Problem, json},
    reading::{Asked, Named, Part},
    view, why,
};
use crate::document::{EventDocument, EventKind, NewComponent, Well};
use crate::handle::{CallError, Clouds};
use crate::machine::View;
use axum::{extract::State, http::StatusCode, response::Response};
use protocol::letter::Question;
use protocol::{ChangeId, CloudManager, Kind, manager::ImportEntry};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;

/// Events of one change that are shown; more than that nobody reads.
const EVENTS_MAX: usize = 10_000;
/// Bytes of a component's log, if nothing is said, and at most.
const LOG_BYTES: usize = 64 << 10;
const LOG_BYTES_MAX: usize = 1 << 20;

impl Api {
    /// The chronicle, with all that has happened until now.
    async fn chronicle(&self) -> Result<OwnedMutexGuard<Chronicle>, Problem> {
        let mut chronicle = self.chronicle.clone().lock_owned().await;
        chronicle.catch_up(&self.manager).await?;
        Ok(chronicle)
    }

    /// Looks at the machine and its clouds with the chronicle at hand.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&CloudManager, &Clouds, &Chronicle) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        self.look_at_all(|manager, chronicle| look(manager.machine, manager.clouds, chronicle)).await
    }

    /// Looks at the machine and everything that is kept beside it, with the chronicle at hand.
    pub(super) async fn look_at_all<T: Send + 'static>(
        &self,
        look: impl FnOnce(View<'_>, &Chronicle) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let mut chronicle = self.chronicle().await?;
        let looking = move |manager: View<'_>| {
            chronicle.forget_strangers(manager.book());
            chronicle.learn(manager.book());
            look(manager, &chronicle)
        };
        Ok(self.manager.look_at_all(looking).await?)
    }
}

fn found(value: &impl Serialize) -> Result<Response, Problem> {
    Ok(json(StatusCode::OK, value))
}

pub(super) async fn health(State(api): State<Api>) -> Result<Response, Problem> {
    api.manager.look(|_| ()).await?;
    found(&Well { well: true, version: env!("CARGO_PKG_VERSION").into() })
}

pub(super) async fn description() -> Response {
    json(StatusCode::OK, &describe::description())
}

pub(super) async fn status(State(api): State<Api>) -> Result<Response, Problem> {
    let mut status = api.look_at_all(view::status).await?;
    status.at_ms = now_ms();
    if !status.applications.is_empty() {
        status.attention.extend(api.drift_of_records().await?);
    }
    found(&status)
}

pub(super) async fn vms(State(api): State<Api>) -> Result<Response, Problem> {
    found(&api.manager.look_at_all(view::vms).await?)
}

pub(super) async fn components(State(api): State<Api>) -> Result<Response, Problem> {
    found(&api.look(|machine, _, chronicle| view::components(machine.book(), chronicle)).await?)
}

pub(super) async fn component(State(api): State<Api>, Named(name): Named) -> Result<Response, Problem> {
    let missing = format!("there is no component {name:?}");
    let detail = api.look(move |machine, _, chronicle| {
        let book = machine.book();
        // One that is on its way out can be looked at as long as no other has taken its name.
        let entry = book.component(&name).or_else(|| book.components().find(|it| it.name == name));
        entry.map(|entry| view::component_detail(book, entry, chronicle))
    });
    found(&detail.await?.ok_or_else(|| Problem::not_found(missing))?)
}

pub(super) async fn why(State(api): State<Api>, Named(name): Named) -> Result<Response, Problem> {
    let answers = api.look_at_all(move |manager, chronicle| {
        let answers = why::why(manager.machine, manager.clouds, chronicle, &name);
        if answers.is_empty() { why::missing(manager, &name).map(|it| vec![it]) } else { Ok(answers) }
    });
    found(&answers.await?.map_err(Problem::not_found)?)
}

pub(super) async fn definition(State(api): State<Api>, Named(name): Named) -> Result<Response, Problem> {
    let missing = format!("there is no component {name:?}");
    let definition = api.manager.look(move |machine| {
        let entry = machine.book().component(&name)?;
        let vm = &machine.book().vm_of(entry).name;
        let mut kind = Kind::clone(&entry.kind);
        for (name, import) in &mut kind.imports {
            let wanted = entry.imports().get(name).map(ImportEntry::wanted);
            import.need = wanted.map_or(import.need, |number| import.need.with_number(number));
        }
        Some(NewComponent::of(&entry.name, vm, &kind).without_secrets())
    });
    found(&definition.await?.ok_or_else(|| Problem::not_found(missing))?)
}

pub(super) async fn bindings(State(api): State<Api>) -> Result<Response, Problem> {
    found(&api.manager.look(|machine| view::bindings(machine.book())).await?)
}

pub(super) async fn changes(State(api): State<Api>) -> Result<Response, Problem> {
    found(&api.look(view::changes).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    limit: Option<usize>,
}

pub(super) async fn history(State(api): State<Api>, Asked(query): Asked<HistoryQuery>) -> Result<Response, Problem> {
    let chronicle = api.chronicle().await?;
    found(&chronicle.changes().take(query.limit.unwrap_or(50)).collect::<Vec<_>>())
}

pub(super) async fn change(State(api): State<Api>, Part(id): Part) -> Result<Response, Problem> {
    let unknown = || Problem::not_found(format!("there is no change {id} (or it was too long ago)"));
    let id = ChangeId(id.parse().map_err(|_| unknown())?);
    let chronicle = api.chronicle().await?;
    let mut record = chronicle.change(id).ok_or_else(unknown)?.clone();
    let (first, last) = chronicle.span(id).ok_or_else(unknown)?;
    drop(chronicle);
    let mut after = first.saturating_sub(1);
    while record.events.len() < EVENTS_MAX {
        let events = api.manager.events_after(after, 1_000).await?;
        let Some(newest) = events.last() else { break };
        after = newest.number;
        let inside = events.iter().filter(|event| last == 0 || event.number <= last).map(EventDocument::from);
        record
            .events
            .extend(inside.filter(|it| it.change.is_none_or(|change| change == id.0) && it.what != EventKind::Refused));
        if last != 0 && after >= last {
            break;
        }
    }
    found(&record)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogQuery {
    bytes: Option<usize>,
    #[serde(default)]
    previous: bool,
}

pub(super) async fn logs(
    State(api): State<Api>,
    Named(name): Named,
    Asked(query): Asked<LogQuery>,
) -> Result<Response, Problem> {
    let bytes_max = query.bytes.unwrap_or(LOG_BYTES).min(LOG_BYTES_MAX);
    let bytes_max = u32::try_from(bytes_max).unwrap_or(u32::MAX);
    if query.previous {
        return Ok(plain(super::data::previous_logs(&api, name, bytes_max).await?));
    }
    let component = name.clone();
    let failed = api.look(move |machine, _, chronicle| {
        machine.book().components().filter(|it| it.name == component).find_map(|it| view::failure(it, chronicle))
    });
    let failed = failed.await?.is_some();
    match api.manager.question(name, Question::Output { bytes_max }).await {
        // What fails before anything is run, such as a template, has written nothing.
        Err(CallError::Unknown(_)) if failed => Ok(plain(String::new())),
        written => Ok(plain(written?)),
    }
}

pub(super) async fn drift(State(api): State<Api>, Named(name): Named) -> Result<Response, Problem> {
    Ok(plain(api.manager.question(name, Question::Drift).await?))
}

fn plain(text: String) -> Response {
    let mut response = Response::new(text.into());
    let plain = axum::http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(axum::http::header::CONTENT_TYPE, plain);
    response
}

pub(super) async fn tokens(State(api): State<Api>) -> Result<Response, Problem> {
    found(&api.tokens.list())
}
