//! Applications: plan, apply, scale, rollback, reconcile, drain, remove, check; and the rollouts that some of them become.
//!
//! Planning runs on a thread of its own, a few plans at a time, with a time limit; the machine only hands out a copy of
//! itself and later takes the decision. If the client goes away, planning stops.

use super::{
    Api,
    problem::{Problem, json},
    reading::{Asked, Document, Named, Operator},
    view,
};
use crate::applications::{
    ApplicationState, Decision, PlanError, Present, check,
    data::{DataPlan, Said, data_plan},
    forecast, plan,
    planning::{self, Limits},
    present::{KeptData, Learned},
};
use crate::document::{
    ApplicationDocument, ApplicationRequest, ApplyRequest, CheckRequest, Component, ComponentStatus, DrainRequest,
    Drift, How, Plan, PlanningDocument, ReconcileRequest, RemoveRequest, RollbackRequest, ScaleRequest, Submitted,
    VersionDocument,
};
use crate::executor::LOCAL;
use crate::machine::{NotPosted, View};
use application::Key;
use axum::{extract::State, http::StatusCode, response::Response};
use protocol::letter::Question;
use protocol::{Change, Name, Operation};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, task::JoinSet};

/// Time limit of the planner in seconds: the default, and the maximum.
const TIME_LIMIT_S: u64 = 60;
const TIME_LIMIT_S_MAX: u64 = 600;
/// Number of plans computed at the same time; others wait in a queue.
const AT_ONCE_MAX: usize = 2;
/// Number of agents that are queried at the same time.
const QUESTIONS_MAX: usize = 32;

/// The plans in progress.
#[derive(Debug)]
pub(super) struct Plans {
    turns: Semaphore,
    last: AtomicU64,
    running: Mutex<BTreeMap<u64, PlanningDocument>>,
    /// The latest plan. If nothing has changed since, the same request is carried out exactly as it was shown.
    recent: Mutex<Option<Planned>>,
}

/// A plan, with the request and the state that it was made for.
#[derive(Clone, Debug)]
struct Planned {
    request: Arc<ApplicationRequest>,
    present: Arc<Present>,
    decision: Arc<Decision>,
}

impl Default for Plans {
    fn default() -> Self {
        Self {
            turns: Semaphore::new(AT_ONCE_MAX),
            last: AtomicU64::new(0),
            running: Mutex::default(),
            recent: Mutex::default(),
        }
    }
}

impl Plans {
    /// How many plans are worked on.
    pub(super) fn running(&self) -> usize {
        self.with(|it| it.len())
    }

    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<u64, PlanningDocument>) -> T) -> T {
        // A document is replaced as a whole, so a panic elsewhere has left the map intact.
        look(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A plan in progress: listed as long as this exists, and cancelled when it is dropped.
struct Work {
    plans: Arc<Plans>,
    id: u64,
    is_wanted: Arc<AtomicBool>,
}

impl Work {
    fn begin(plans: &Arc<Plans>, about: String) -> Self {
        let id = plans.last.fetch_add(1, Ordering::Relaxed) + 1;
        plans.with(|it| it.insert(id, PlanningDocument { id, about, ..PlanningDocument::default() }));
        Self { plans: Arc::clone(plans), id, is_wanted: Arc::new(AtomicBool::new(true)) }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.is_wanted.store(false, Ordering::Relaxed);
        self.plans.with(|it| it.remove(&self.id));
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DryRun {
    #[serde(default)]
    pub(super) dry_run: bool,
}

impl Api {
    /// A copy of everything that planning reads.
    pub(super) async fn present(&self) -> Result<Present, Problem> {
        self.look_at_all(|manager, history| {
            let mut learned = Learned::new();
            let mut failures = BTreeMap::new();
            for entry in manager.book().components() {
                let lengths = history.lengths(entry.name.as_str());
                let operations = [
                    (Operation::Prepare, lengths.prepare_ms),
                    (Operation::Start, lengths.start_ms),
                    (Operation::Stop, lengths.stop_ms),
                ];
                let known = operations.into_iter().filter_map(|(it, ms)| Some((it, Duration::from_millis(ms?))));
                learned.extend(known.map(|(it, length)| ((entry.name.clone(), it), length)));
                failures.extend(view::failure(entry, history).map(|(_, detail)| (entry.name.clone(), detail)));
            }
            Present {
                machine: manager.machine.clone(),
                applications: manager.applications.clone(),
                learned,
                failures,
                drifted: BTreeMap::new(),
                clouds: vec![LOCAL.to_owned()],
                data: present_data(manager),
            }
        })
        .await
    }

    /// Runs a long computation on its own thread, when a slot is free.
    async fn work<T: Send + 'static>(
        &self,
        about: String,
        work: impl FnOnce(Limits<'_>) -> T + Send + 'static,
        time_limit: Duration,
    ) -> Result<T, Problem> {
        let working = Work::begin(&self.plans, about);
        let _turn = self.plans.turns.acquire().await.expect("the semaphore is never closed");
        let (plans, id, is_wanted) = (Arc::clone(&self.plans), working.id, Arc::clone(&working.is_wanted));
        let done = tokio::task::spawn_blocking(move || {
            let begun = Instant::now();
            let mut go_on = |progress: &::planner::Progress| {
                let elapsed = begun.elapsed();
                plans.with(|running| {
                    let Some(shown) = running.get_mut(&id) else { return };
                    shown.for_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
                    shown.goal = Some(progress.goal + 1);
                    shown.best = progress.best.map(|it| it.to_string());
                    shown.bound = progress.bound.map(|it| it.to_string());
                });
                elapsed < time_limit && is_wanted.load(Ordering::Relaxed)
            };
            work(Limits { go_on: &mut go_on })
        });
        done.await.map_err(|error| {
            tracing::error!(%error, "planning ended with a panic");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "planning failed (see the manager's log)")
        })
    }

    /// Plans a request about applications.
    pub(super) async fn plan(&self, request: ApplicationRequest) -> Result<(Arc<Decision>, Arc<Present>), Problem> {
        self.check_versions(request.how()).await?;
        let mut present = self.present().await?;
        if let ApplicationRequest::Reconcile(it) = &request {
            let homes: BTreeSet<&str> = it.names.iter().map(|name| name.split('/').next().unwrap_or(name)).collect();
            let components = self.components().await?;
            let own = components.iter().filter(|it| homes.contains(it.name.split('/').next().unwrap_or_default()));
            let mut drift = Drift::default();
            self.ask_agents(own.collect(), &mut drift).await;
            let names = drift.components.into_iter().filter_map(|(name, why)| Some((Name::new(&name).ok()?, why)));
            present.drifted = names.collect();
        }
        let present = Arc::new(present);
        let request = Arc::new(plain(request));
        let recent = self.plans.recent.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(recent) = recent.filter(|it| it.request == request && it.present.is_same(&present)) {
            return Ok((recent.decision, present));
        }
        let limit = request.how().time_limit_s.unwrap_or(TIME_LIMIT_S).min(TIME_LIMIT_S_MAX);
        let (about, asked, copy) = (request.intent().to_string(), Arc::clone(&request), Arc::clone(&present));
        let begun = Instant::now();
        let planned = self.work(about, move |limits| plan(&asked, &copy, limits), Duration::from_secs(limit)).await?;
        self.metrics.planned(begun.elapsed());
        let decision = Arc::new(planned?);
        let planned = Planned { request, present: Arc::clone(&present), decision: Arc::clone(&decision) };
        *self.plans.recent.lock().unwrap_or_else(PoisonError::into_inner) = Some(planned);
        Ok((decision, present))
    }

    /// Refuses a request whose client has seen another version.
    async fn check_versions(&self, how: &How) -> Result<(), Problem> {
        let expected = how.versions.clone();
        let outdated = self.manager.look_at_all(move |manager| {
            let version = |name: &str| {
                let name = Name::new(name).ok()?;
                manager.applications.get(&name).map(|it| it.version().number)
            };
            expected.into_iter().find_map(|(application, expected)| {
                let is = version(&application).unwrap_or(0);
                (is != expected).then_some(PlanError::Outdated { application, is, expected })
            })
        });
        outdated.await?.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Plans a request, and carries it out unless it is a dry run.
    async fn make(&self, by: &str, dry_run: bool, request: ApplicationRequest) -> Result<Response, Problem> {
        let secrets = request.how().secrets.clone();
        let (decision, present) = self.plan(request).await?;
        if dry_run {
            return Ok(json(StatusCode::OK, &decision.plan));
        }
        let submitted = self.submit(by, &decision, &secrets, &present).await?;
        Ok(json(StatusCode::ACCEPTED, &submitted))
    }

    pub(super) async fn submit(
        &self,
        by: &str,
        decision: &Decision,
        secrets: &application::SecretTexts,
        present: &Present,
    ) -> Result<Submitted, Problem> {
        // Read before the request is made, so that a stream of later events misses nothing.
        let events_after = *self.manager.newest().borrow();
        let plan = &decision.plan;
        let versions = |it: &Plan| it.applications.iter().map(|it| (it.application.clone(), it.version)).collect();
        if decision.is_nothing() {
            let not_started = self.late(plan).await?;
            return Ok(Submitted { change: None, steps: 0, events_after, versions: versions(plan), not_started });
        }
        if !plan.forecast.refused.is_empty() {
            return Err(Problem::refused(plan.forecast.refused.clone()));
        }
        let submission = decision.submission(by, secrets, present)?;
        let posted = self.manager.submit(submission, decision.wishes.clone()).await?.map_err(|why| match why {
            NotPosted::Refused(refusals) => refusals.into(),
            NotPosted::Outdated(name) => {
                let error = format!("application {name} has been changed in the meantime (plan again)");
                Problem::new(StatusCode::CONFLICT, error)
            }
        })?;
        if let Some(change) = posted.change {
            self.stories.predicted(change, &plan.forecast);
        }
        let not_started = if posted.change.is_none() { self.late(plan).await? } else { BTreeMap::new() };
        Ok(Submitted {
            change: posted.change.map(|it| it.0),
            steps: if posted.change.is_some() { plan.steps } else { 0 },
            events_after,
            versions: posted.versions.into_iter().map(|(name, version)| (name.to_string(), version)).collect(),
            not_started,
        })
    }

    /// What is missing from each application, or exists and was not requested, and how to fix it.
    pub(super) async fn drift_of_records(&self) -> Result<Vec<String>, Problem> {
        let present = self.present().await?;
        let work = move |_: Limits<'_>| {
            let mut drift = Vec::new();
            for (name, state) in &present.applications {
                let lines = check::records(&present, state, None);
                drift.extend(lines.iter().map(|line| format!("{name}: {line} (holdfast reconcile {name})")));
            }
            drift
        };
        self.work("status".into(), work, Duration::MAX).await
    }

    async fn components(&self) -> Result<Vec<Component>, Problem> {
        self.look(|machine, _, history| view::components(machine.book(), history)).await
    }

    /// Components that the plan concerns and that are down although nothing has to be changed.
    async fn late(&self, plan: &Plan) -> Result<BTreeMap<String, String>, Problem> {
        let names: BTreeSet<String> = plan.applications.iter().map(|it| format!("{}/", it.application)).collect();
        let status = self.look_at_all(view::status).await?;
        let is_quiet = status.changes.iter().all(|it| !it.stuck_on.is_empty());
        let own = status.components.iter().filter(|it| names.iter().any(|name| it.name.starts_with(name)));
        Ok(check::late(own, is_quiet))
    }

    /// Queries the agents of started components; for the others, the manager knows why they are not started.
    async fn ask_agents(&self, components: Vec<&Component>, drift: &mut Drift) {
        let (started, others): (Vec<&Component>, Vec<&Component>) =
            components.into_iter().filter(|it| !it.leaving).partition(|it| it.state == ComponentStatus::Started);
        drift.examined += started.len() + others.len();
        drift.not_started.extend(others.iter().filter_map(|it| Some((it.name.clone(), check::not_started(it)?))));
        let mut waiting = JoinSet::new();
        let mut left = started.into_iter().filter_map(|it| Name::new(&it.name).ok());
        loop {
            while waiting.len() < QUESTIONS_MAX
                && let Some(name) = left.next()
            {
                let manager = self.manager.clone();
                waiting.spawn(async move { (name.to_string(), manager.question(name, Question::Drift).await) });
            }
            let Some(answered) = waiting.join_next().await else { return };
            match answered.expect("a query neither panics nor is cancelled") {
                (_, Ok(text)) if text.is_empty() => {}
                (name, Ok(text)) => drop(drift.components.insert(name, text.lines().map(Into::into).collect())),
                (name, Err(error)) => drop(drift.unknown.insert(name, error.to_string())),
            }
        }
    }
}

/// The data that VMs keep, with the names of the VMs.
pub(super) fn present_data(manager: View<'_>) -> Vec<KeptData> {
    let book = manager.book();
    let kept = manager.data.kept().filter_map(|(id, key, directories)| {
        let vm = book.vm_by_id(id)?.name.clone();
        let cloud = manager.clouds.get(&vm).cloned();
        Some(KeptData { id, vm, cloud, key: key.clone(), directories: directories.clone() })
    });
    kept.collect()
}

/// A request without the fields that do not affect its plan.
fn plain(mut request: ApplicationRequest) -> ApplicationRequest {
    let how = request.how_mut();
    how.versions.clear();
    how.secrets.clear();
    request
}

/// One route for each verb; they differ in the document that they take.
macro_rules! verb {
    ($name:ident, $document:ty, $variant:ident) => {
        pub(super) async fn $name(
            State(api): State<Api>,
            Operator(by): Operator,
            Asked(query): Asked<DryRun>,
            Document(document): Document<$document>,
        ) -> Result<Response, Problem> {
            api.make(&by, query.dry_run, ApplicationRequest::$variant(document)).await
        }
    };
}

verb!(apply, ApplyRequest, Apply);
verb!(scale, ScaleRequest, Scale);
verb!(rollback, RollbackRequest, Rollback);
verb!(reconcile, ReconcileRequest, Reconcile);
verb!(drain, DrainRequest, Drain);
verb!(undrain, DrainRequest, Undrain);
verb!(remove, RemoveRequest, Remove);

/// What a single change would do to data.
pub(super) async fn plan_data(
    api: &Api,
    change: &Change,
    delete: bool,
    start_empty: Vec<String>,
) -> Result<DataPlan, Problem> {
    // Looking needs no copy of everything, where no data is concerned.
    let is_concerned = api.manager.look_at_all(|manager| manager.data.kept().next().is_some()).await?;
    if !is_concerned {
        return Ok(DataPlan::default());
    }
    let (present, changes) = (api.present().await?, vec![change.clone()]);
    let work =
        move |_: Limits<'_>| data_plan(&present, &changes, Said { delete, start_empty: &start_empty, removed: &[] });
    api.work("change".into(), work, Duration::MAX).await
}

/// What a single change would do.
pub(super) async fn forecast_change(api: &Api, change: Change, data: DataPlan) -> Result<Response, Problem> {
    let present = api.present().await?;
    let strategy = change.strategy;
    let work = move |_: Limits<'_>| {
        let edits = change.edits.len();
        let mut forecast = forecast(&present, &[change], &[], None);
        forecast.refused.extend(data.refused);
        Plan { strategy, steps: 1, edits, forecast, data: data.effects, ..Plan::default() }
    };
    let plan = api.work("change".into(), work, Duration::MAX).await?;
    if !plan.forecast.refused.is_empty() {
        return Err(Problem::refused(plan.forecast.refused));
    }
    Ok(json(StatusCode::OK, &plan))
}

pub(super) async fn check(
    State(api): State<Api>,
    Document(request): Document<CheckRequest>,
) -> Result<Response, Problem> {
    let present = api.present().await?;
    let mut keys: BTreeMap<Name, Option<BTreeSet<Key>>> = BTreeMap::new();
    let mut strangers: BTreeSet<String> = BTreeSet::new();
    for name in &request.names {
        match planning::named(name, &present)? {
            (Some(home), key) => match (key, keys.entry(home).or_insert_with(|| Some(BTreeSet::new()))) {
                (Some(key), Some(keys)) => drop(keys.insert(key)),
                (Some(_), None) => {}
                (None, keys) => *keys = None,
            },
            (None, _) => drop(strangers.insert(name.clone())),
        }
    }
    let all = request.names.is_empty();
    let components = api.components().await?;
    let meant = components.into_iter().filter(|it| {
        let home = it.name.split_once('/').and_then(|(home, key)| Some((Name::new(home).ok()?, key.parse().ok()?)));
        let is_key =
            |(home, key): (Name, Key)| keys.get(&home).is_some_and(|it| it.as_ref().is_none_or(|it| it.contains(&key)));
        all || strangers.contains(&it.name) || home.is_some_and(is_key)
    });
    let meant: Vec<Component> = meant.collect();
    let work = move |_: Limits<'_>| {
        let mut drift = Drift::default();
        for (name, state) in &present.applications {
            let Some(keys) = keys.get(name).map(Option::as_ref).or(all.then_some(None)) else { continue };
            let lines = check::records(&present, state, keys);
            if !lines.is_empty() {
                drift.applications.insert(name.to_string(), lines);
            }
        }
        drift
    };
    let mut drift = api.work("check".into(), work, Duration::MAX).await?;
    api.ask_agents(meant.iter().collect(), &mut drift).await;
    Ok(json(StatusCode::OK, &drift))
}

/// The plans that the manager is working on.
pub(super) async fn planning(State(api): State<Api>) -> Result<Response, Problem> {
    let running: Vec<PlanningDocument> = api.plans.with(|it| it.values().cloned().collect());
    Ok(json(StatusCode::OK, &running))
}

pub(super) async fn applications(State(api): State<Api>) -> Result<Response, Problem> {
    let documents = api.manager.look_at_all(|manager| {
        manager.applications.iter().map(|(name, state)| document(manager, name, state)).collect::<Vec<_>>()
    });
    Ok(json(StatusCode::OK, &documents.await?))
}

pub(super) async fn application(State(api): State<Api>, Named(name): Named) -> Result<Response, Problem> {
    let missing = format!("the manager has no application {name}");
    let found = api.manager.look_at_all(move |manager| {
        let state = manager.applications.get(&name)?;
        let files = Some(state.version().files.clone());
        Some(ApplicationDocument { files, ..document(manager, &name, state) })
    });
    Ok(json(StatusCode::OK, &found.await?.ok_or_else(|| Problem::not_found(missing))?))
}

pub(super) fn document(manager: View<'_>, name: &Name, state: &ApplicationState) -> ApplicationDocument {
    let rollout = state.rollout.as_ref();
    let inputs = &state.version().files.inputs;
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for key in state.expansion.components.keys() {
        *counts.entry(key.group.to_string()).or_default() += 1;
    }
    ApplicationDocument {
        name: name.to_string(),
        version: state.version().number,
        versions: state
            .versions
            .iter()
            .map(|it| VersionDocument {
                version: it.number,
                by: it.by.clone(),
                at_ms: it.at_ms,
                intent: it.intent,
                rolls_back_to: it.rolls_back_to,
            })
            .collect(),
        rollout: rollout.map(|it| it.document(name, manager.book(), manager.is_done(it.present()))),
        last_rollout: state.last_rollout.clone(),
        drained: inputs.drained.iter().map(|key| key.scoped(name).to_string()).collect(),
        counts,
        files: None,
    }
}

impl From<PlanError> for Problem {
    fn from(error: PlanError) -> Self {
        let text = error.to_string();
        match error {
            PlanError::Files(problems) => Self::files(problems),
            PlanError::Unknown(_) => Self::not_found(text),
            PlanError::Refused(_) | PlanError::OutAlready(_) | PlanError::Outdated { .. } => {
                Self::new(StatusCode::CONFLICT, text)
            }
            PlanError::TooLarge { .. } => Self::new(StatusCode::PAYLOAD_TOO_LARGE, text),
        }
    }
}
