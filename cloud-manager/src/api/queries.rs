//! The routes that only read.

use super::{
    Api, describe,
    history::History,
    now_ms,
    problem::{Problem, json},
    reading::{Asked, Named, Part},
    view, why,
};
use crate::document::{ChangeRecord, EventDocument, EventKind, NewComponent, Outcome, Well};
use crate::handle::{CallError, Clouds};
use crate::machine::View;
use axum::{extract::State, http::StatusCode, response::Response};
use protocol::letter::Question;
use protocol::{ChangeId, CloudManager, Kind, manager::ImportEntry};
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;

/// Maximum number of events that are returned for one change.
const EVENTS_MAX: usize = 10_000;
/// Bytes of a component's log: the default, and the maximum.
const LOG_BYTES: usize = 64 << 10;
const LOG_BYTES_MAX: usize = 1 << 20;

impl Api {
    /// The history, up to the present.
    async fn history(&self) -> Result<OwnedMutexGuard<History>, Problem> {
        let mut history = self.history.clone().lock_owned().await;
        history.catch_up(&self.manager).await?;
        Ok(history)
    }

    /// Reads the state of the machine and its clouds, together with the history.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&CloudManager, &Clouds, &History) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        self.look_at_all(|manager, history| look(manager.machine, manager.clouds, history)).await
    }

    /// Reads the state of the machine and everything stored beside it, together with the history.
    pub(super) async fn look_at_all<T: Send + 'static>(
        &self,
        look: impl FnOnce(View<'_>, &History) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let mut history = self.history().await?;
        let looking = move |manager: View<'_>| {
            history.drop_stale(manager.book());
            history.learn(manager.book());
            look(manager, &history)
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
    found(&api.look(|machine, _, history| view::components(machine.book(), history)).await?)
}

pub(super) async fn component(State(api): State<Api>, Named(name): Named) -> Result<Response, Problem> {
    let missing = format!("there is no component {name:?}");
    let detail = api.look(move |machine, _, history| {
        let book = machine.book();
        // A component that is being removed can be shown as long as no other has taken its name.
        let entry = book.component(&name).or_else(|| book.components().find(|it| it.name == name));
        entry.map(|entry| view::component_detail(book, entry, history))
    });
    found(&detail.await?.ok_or_else(|| Problem::not_found(missing))?)
}

pub(super) async fn why(State(api): State<Api>, Named(name): Named) -> Result<Response, Problem> {
    let answers = api.look_at_all(move |manager, history| {
        let answers = why::why(manager.machine, manager.clouds, history, &name);
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
    let limit = query.limit.unwrap_or(50);
    let records = api.look_at_all(move |manager, history| {
        let records: Vec<ChangeRecord> = history.changes().take(limit).cloned().collect();
        with_outcomes(records, manager, history)
    });
    found(&records.await?)
}

pub(super) async fn change(State(api): State<Api>, Part(id): Part) -> Result<Response, Problem> {
    let unknown = || Problem::not_found(format!("there is no change {id} (or it is no longer stored)"));
    let id = ChangeId(id.parse().map_err(|_| unknown())?);
    let history = api.history().await?;
    let mut record = history.change(id).ok_or_else(unknown)?.clone();
    let (first, last) = history.span(id).ok_or_else(unknown)?;
    drop(history);
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
    let completed = api.look_at_all(|manager, history| with_outcomes(vec![record], manager, history));
    found(&completed.await?.first())
}

/// Adds who asked for each change and what became of it.
fn with_outcomes(mut records: Vec<ChangeRecord>, manager: View<'_>, history: &History) -> Vec<ChangeRecord> {
    let running = view::changes(manager.machine, manager.clouds, history);
    for record in &mut records {
        let origin = manager.origins.of(record.change);
        record.by = origin.map(|it| it.by.clone()).filter(|it| !it.is_empty());
        record.rolled_back_by = origin.and_then(|it| it.rolled_back_by);
        let present = running.iter().find(|it| it.change == record.change);
        record.outcome = match present {
            Some(present) if !present.stuck_on.is_empty() => Outcome::Failed,
            Some(_) => Outcome::InProgress,
            None if record.cancelled => Outcome::Cancelled,
            None if record.rolled_back_by.is_some() => Outcome::RolledBack,
            None => Outcome::Done,
        };
    }
    records
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
    let failed = api.look(move |machine, _, history| {
        machine.book().components().filter(|it| it.name == component).find_map(|it| view::failure(it, history))
    });
    let failed = failed.await?.is_some();
    match api.manager.question(name, Question::Output { bytes_max }).await {
        // A failure before anything is run, such as in a template, has no output.
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
