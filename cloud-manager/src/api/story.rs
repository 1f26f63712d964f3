//! The story of one change, for the pages that draw it: operations with the critical path, messages, and the configuration
//! before and after.
//!
//! Events say what the operator was told; who said what to whom, and what the end waited for, only journals know. They are
//! read on a thread of their own, one story at a time. A story is kept until something new happens, and one of a change
//! that is done for longer.

use super::{
    Api,
    history::History,
    problem::{Problem, json},
    reading::Part,
    view,
};
use crate::document::{
    ChangeStory, Configuration, Forecast, LifelineRecord, MarkRecord, MessageRecord, OperationRecord, RowRecord,
};
use crate::past::{self, Stage};
use axum::{extract::State, http::StatusCode, response::Response};
use model_check::{
    World,
    audit::{self, Past},
    chart::{Chart, MarkSort, Sort, operations::operations},
};
use protocol::{ChangeId, ComponentState};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Semaphore;

/// Predictions and stories that are remembered.
const FORECASTS_MAX: usize = 200;
const STORIES_MAX: usize = 16;
/// Rows of a chart; one with more is not readable, and its operations are enough.
const ROWS_MAX: usize = 5_000;

/// What is remembered of changes for those who look at them.
#[derive(Debug)]
pub(super) struct Stories {
    turn: Semaphore,
    forecasts: Mutex<BTreeMap<u64, Forecast>>,
    /// By change.
    made: Mutex<BTreeMap<u64, Made>>,
}

/// A story, and the newest event that it was made at; nothing if the change is done.
type Made = (Option<u64>, Arc<ChangeStory>);

impl Default for Stories {
    fn default() -> Self {
        Self { turn: Semaphore::new(1), forecasts: Mutex::default(), made: Mutex::default() }
    }
}

impl Stories {
    /// Remembers what a plan predicted of the change that it became.
    pub(super) fn predicted(&self, change: ChangeId, forecast: &Forecast) {
        let forecast = Forecast { trace: Vec::new(), ..forecast.clone() };
        keep(&mut held(&self.forecasts), change.0, forecast, FORECASTS_MAX);
    }

    fn known(&self, change: u64, newest: u64) -> Option<Arc<ChangeStory>> {
        let made = held(&self.made);
        made.get(&change).filter(|(at, _)| at.is_none_or(|at| at == newest)).map(|(_, story)| Arc::clone(story))
    }
}

fn held<T>(values: &Mutex<T>) -> MutexGuard<'_, T> {
    // Values are replaced whole, so a panic elsewhere has left them as they were.
    values.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the newest.
fn keep<T>(map: &mut BTreeMap<u64, T>, change: u64, value: T, at_most: usize) {
    map.insert(change, value);
    while map.len() > at_most {
        map.pop_first();
    }
}

pub(super) async fn story(State(api): State<Api>, Part(id): Part) -> Result<Response, Problem> {
    let unknown = || Problem::not_found(format!("there is no change {id} (or it was too long ago)"));
    let change: u64 = id.parse().map_err(|_| unknown())?;
    let is_done = api.look(move |_, _, history| history.change(ChangeId(change)).map(|it| it.done_at_ms.is_some()));
    let is_done = is_done.await?.ok_or_else(unknown)?;
    let newest = *api.manager.newest().borrow();
    if let Some(story) = api.stories.known(change, newest) {
        return Ok(json(StatusCode::OK, &*story));
    }
    let _turn = api.stories.turn.acquire().await.expect("the semaphore is never closed");
    if let Some(story) = api.stories.known(change, newest) {
        return Ok(json(StatusCode::OK, &*story));
    }
    let forecast = held(&api.stories.forecasts).get(&change).cloned();
    let data = api.tokens.directory();
    let read = tokio::task::spawn_blocking(move || tell(data, change)).await;
    let mut story = read.map_err(|error| {
        tracing::error!(%error, "the story of a change could not be told");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the journals could not be read (see the manager's log)")
    })?;
    story.forecast = forecast;
    let story = Arc::new(story);
    keep(&mut held(&api.stories.made), change, ((!is_done).then_some(newest), Arc::clone(&story)), STORIES_MAX);
    Ok(json(StatusCode::OK, &*story))
}

/// Reads the journals. If they do not speak of the change, the story says why and is otherwise empty.
fn tell(data: PathBuf, change: u64) -> ChangeStory {
    let pasts: Vec<Past> = past::directories(&[data]).iter().filter_map(|it| past::read(it).ok()).collect();
    let audit = audit::audit(&pasts);
    let mut story = ChangeStory { change, ..ChangeStory::default() };
    let stage = match Stage::of(&audit, Some(ChangeId(change))) {
        Ok(stage) => stage,
        Err(error) => {
            story.unknown = Some(error.to_string());
            return story;
        }
    };
    story.before = configuration(&stage.world);
    let mut after = stage.world.clone();
    for event in &stage.events {
        if let Some((place, input)) = &event.input {
            after.relive(*place, input.clone());
        }
    }
    story.after = configuration(&after);
    story.missing = audit.missing.iter().map(ToString::to_string).collect();
    let moments = monotonic(&stage.moments);
    let at = |event: usize| moments.get(event).copied().unwrap_or_default();
    let record = |bar: &model_check::chart::operations::Bar| OperationRecord {
        component: bar.name.to_string(),
        operation: bar.operation.to_string(),
        from_ms: at(bar.from),
        to_ms: bar.to.map(at),
        failed: bar.failed,
        critical: bar.critical,
    };
    story.operations = operations(&stage.events).iter().map(record).collect();
    let chart = Chart::new(&stage.world, &stage.events).without_acknowledgements();
    if chart.rows.len() <= ROWS_MAX {
        draw(&chart, &at, &mut story);
    }
    story
}

/// Milliseconds since 1970. Clocks of several machines need not agree, so time never goes back.
fn monotonic(moments: &[Duration]) -> Vec<u64> {
    let mut latest = 0;
    let moment = |it: &Duration| {
        latest = latest.max(u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        latest
    };
    moments.iter().map(moment).collect()
}

fn configuration(world: &World) -> Configuration {
    let (book, history) = (world.manager().book(), History::default());
    let vm = |it: &protocol::manager::VmEntry| crate::document::Vm {
        name: it.name.to_string(),
        id: it.id.map(|id| id.0),
        health: view::health(it),
        components: 0,
        started: 0,
        leaving: it.is_leaving(),
        drained: false,
        past: false,
    };
    Configuration {
        vms: book.vms().map(vm).collect(),
        components: view::components(book, &history),
        bindings: view::bindings(book),
    }
}

fn draw(chart: &Chart, at: &dyn Fn(usize) -> u64, story: &mut ChangeStory) {
    let lifeline = |it: &model_check::chart::Lifeline| LifelineRecord {
        name: it.name.clone(),
        components: it.components.iter().map(|life| life.name.clone()).collect(),
    };
    story.lifelines = chart.lifelines.iter().map(lifeline).collect();
    let row = |it: &model_check::chart::Row| RowRecord {
        at_ms: at(it.number.saturating_sub(1)),
        lifeline: it.lifeline,
        marks: it
            .marks
            .iter()
            .map(|mark| MarkRecord { sort: sort(mark.sort).into(), text: mark.text.clone() })
            .collect(),
    };
    story.rows = chart.rows.iter().map(row).collect();
    let message = |it: &model_check::chart::Arrow| MessageRecord {
        from: it.from,
        to: it.to,
        sort: letter(it.sort).into(),
        text: it.label.clone(),
        sent: it.sent,
        arrived: it.arrived,
    };
    story.messages = chart.arrows.iter().map(message).collect();
}

fn sort(mark: MarkSort) -> &'static str {
    match mark {
        MarkSort::State(ComponentState::Stopped) => "stopped",
        MarkSort::State(ComponentState::Starting) => "starting",
        MarkSort::State(ComponentState::Started) => "started",
        MarkSort::State(ComponentState::Stopping) => "stopping",
        MarkSort::State(ComponentState::Failed(_)) => "failed",
        MarkSort::Gone => "gone",
        MarkSort::Loan => "loan",
        MarkSort::Asked => "asked",
        MarkSort::News => "news",
        MarkSort::Fault => "fault",
    }
}

fn letter(sort: Sort) -> &'static str {
    match sort {
        Sort::Order => "order",
        Sort::Report => "report",
        Sort::Acknowledgement => "acknowledgement",
        Sort::Bind => "bind",
        Sort::Lend => "lend",
        Sort::Recall => "recall",
        Sort::Home => "home",
    }
}
