//! Applications that follow their load: measured now and then, planned and submitted as if an operator had asked.
//!
//! The loop knows which applications have `autoscale:` and when each is due. For one that is due it measures, asks the
//! application what follows ([`Wish`]), plans a `scale`, and submits it under the name `autoscale` with the reason. It does nothing
//! while an operator has paused it, while a change or a rollout of the application is under way, or while one of its
//! components is not started: then something has failed or is about to be, and more changes would not help.
//!
//! Pauses are kept in a file; everything else is measured anew by a manager that has just started.

use super::{
    Api,
    listen::halted,
    now_ms,
    problem::{Problem, json},
    reading::{Named, Operator},
};
use crate::applications::rollout::not_started;
use crate::document::{ApplicationRequest, AutoscaleDocument, How, ScaleRequest};
use crate::load::measure;
use crate::machine::View;
use application::{Application, Autoscale, Measured, Source, Wish};
use axum::{extract::State, http::StatusCode, response::Response};
use protocol::Name;
use runtime::data_directory::replace_file;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

/// The name under which changes are submitted.
pub(super) const BY: &str = "autoscale";
/// A version that an operator has applied is noticed after at most this long.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What is known about applications that follow their load.
#[derive(Debug, Default)]
pub(super) struct Autoscaling {
    /// Where pauses are kept; nowhere in tests.
    path: Option<PathBuf>,
    paused: Mutex<BTreeMap<String, Paused>>,
    /// What was found last of each application.
    shown: Mutex<BTreeMap<String, AutoscaleDocument>>,
}

/// Who paused it, and when.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Paused {
    by: String,
    at_ms: u64,
}

impl Autoscaling {
    /// Pauses are kept in this file. One that cannot be read pauses nothing, and is reported.
    pub(super) fn open(path: &Path) -> Self {
        let read = match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error.to_string()),
        };
        let paused = read.unwrap_or_else(|error| {
            tracing::error!(path = %path.display(), error, "which applications are paused cannot be read");
            BTreeMap::new()
        });
        Self { path: Some(path.to_owned()), paused: Mutex::new(paused), shown: Mutex::default() }
    }

    fn paused(&self, name: &str) -> Option<Paused> {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn set_paused(&self, name: &str, paused: Option<Paused>) -> Result<(), Problem> {
        let mut all = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = all.clone();
        match paused {
            Some(paused) => next.insert(name.to_owned(), paused),
            None => next.remove(name),
        };
        if let Some(path) = &self.path {
            let bytes = serde_json::to_vec(&next).expect("names and times can be written");
            replace_file(path, &bytes).map_err(|error| {
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the pause cannot be kept: {error}"))
            })?;
        }
        *all = next;
        Ok(())
    }

    fn show(&self, name: &str, alter: impl FnOnce(&mut AutoscaleDocument)) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        alter(
            shown
                .entry(name.to_owned())
                .or_insert_with(|| AutoscaleDocument { application: name.to_owned(), ..AutoscaleDocument::default() }),
        );
    }

    /// Forgets applications that do not follow their load any more.
    fn retain(&self, names: &BTreeSet<String>) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).retain(|name, _| names.contains(name));
    }

    fn documents(&self) -> Vec<AutoscaleDocument> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        shown.into_values().map(|it| self.with_pause(it)).collect()
    }

    fn with_pause(&self, mut document: AutoscaleDocument) -> AutoscaleDocument {
        let paused = self.paused(&document.application);
        document.paused_by = paused.as_ref().map(|it| it.by.clone());
        document.paused_ms = paused.map(|it| it.at_ms);
        document
    }
}

/// An application that follows its load, as its present version describes it.
#[derive(Clone)]
struct Followed {
    version: u64,
    application: Option<Arc<Application>>,
}

/// What an application looks like when its load is measured.
struct Situation {
    counts: BTreeMap<String, u32>,
    cost: i64,
    changed_ms: u64,
    /// Why it is left alone, if it is.
    obstacle: Option<String>,
}

/// Follows the loads of all applications until the manager halts.
pub(super) async fn follow_loads(api: Api) {
    let mut halting = api.halting.subscribe();
    let mut newest = api.manager.newest();
    let mut known: BTreeMap<Name, Followed> = BTreeMap::new();
    let mut due: BTreeMap<Name, Instant> = BTreeMap::new();
    let mut working: JoinSet<Name> = JoinSet::new();
    let mut busy: BTreeSet<Name> = BTreeSet::new();
    loop {
        if refresh(&api, &mut known).await.is_err() {
            return;
        }
        due.retain(|name, _| known.get(name).is_some_and(|it| it.application.is_some()));
        for (name, followed) in &known {
            let Some(application) = &followed.application else { continue };
            let Some(autoscale) = application.autoscale() else { continue };
            let now = Instant::now();
            let at = due.entry(name.clone()).or_insert(now);
            if *at <= now && !busy.contains(name) {
                *at = now + Duration::from_millis(autoscale.every_ms);
                busy.insert(name.clone());
                let (api, name, application) = (api.clone(), name.clone(), Arc::clone(application));
                working.spawn(async move {
                    api.follow_load(&name, &application).await;
                    name
                });
            }
        }
        let next = due.iter().filter(|(name, _)| !busy.contains(*name)).map(|(_, at)| *at).min();
        let look_again = Instant::now() + LOOK_AGAIN;
        // Many events are looked at once, so that a large change does not pay for this.
        let noticed = async {
            let changed = newest.changed().await;
            sleep(LOOK_AGAIN).await;
            changed
        };
        tokio::select! {
            () = halted(&mut halting) => return,
            () = sleep_until(next.unwrap_or(look_again).min(look_again)), if !due.is_empty() => {}
            changed = noticed, if due.is_empty() => if changed.is_err() { return },
            Some(done) = working.join_next() => match done {
                Ok(name) => drop(busy.remove(&name)),
                Err(error) => {
                    tracing::error!(%error, "following a load ended with a panic");
                    busy.clear();
                }
            },
        }
    }
}

/// Reads the applications whose version is another than before.
async fn refresh(api: &Api, known: &mut BTreeMap<Name, Followed>) -> Result<(), Problem> {
    let versions: BTreeMap<Name, u64> = known.iter().map(|(name, it)| (name.clone(), it.version)).collect();
    let look = move |manager: View<'_>| {
        let all = manager.applications.iter().map(|(name, state)| {
            let version = state.version();
            let is_new = versions.get(name) != Some(&version.number);
            (name.clone(), version.number, is_new.then(|| version.files.clone()))
        });
        all.collect::<Vec<_>>()
    };
    let all = api.manager.look_at_all(look).await?;
    known.retain(|name, _| all.iter().any(|(it, ..)| it == name));
    for (name, version, files) in all {
        let Some(files) = files else { continue };
        let application = files.read().ok().filter(|it| it.autoscale().is_some()).map(Arc::new);
        if let Some(autoscale) = application.as_ref().and_then(|it| it.autoscale()) {
            api.autoscaling.show(name.as_str(), |it| {
                it.dry_run = autoscale.dry_run;
                it.sources = sources(autoscale);
            });
        }
        known.insert(name, Followed { version, application });
    }
    let names = known.iter().filter(|(_, it)| it.application.is_some()).map(|(name, _)| name.to_string());
    api.autoscaling.retain(&names.collect());
    Ok(())
}

fn sources(autoscale: &Autoscale) -> BTreeMap<String, String> {
    let whole = autoscale.source.iter().map(|it| (String::new(), it.to_string()));
    whole.chain(autoscale.sources.iter().map(|(name, it)| (name.clone(), it.to_string()))).collect()
}

impl Api {
    /// Measures the load of an application once, and does what follows.
    async fn follow_load(&self, name: &Name, application: &Application) {
        let says = match self.paused_says(name) {
            Some(says) => Ok(says),
            None => self.measured_and_done(name, application).await,
        };
        let says = says.unwrap_or_else(|why| {
            tracing::warn!(application = %name, why, "the load is not followed");
            why
        });
        self.autoscaling.show(name.as_str(), |it| it.says = says);
    }

    fn paused_says(&self, name: &Name) -> Option<String> {
        self.autoscaling.paused(name.as_str()).map(|it| format!("paused by {}", it.by))
    }

    async fn measured_and_done(&self, name: &Name, application: &Application) -> Result<String, String> {
        let Some(autoscale) = application.autoscale() else { return Ok(String::new()) };
        let (load, loads) = self.measured(name, autoscale).await?;
        self.autoscaling.show(name.as_str(), |it| {
            it.load = load;
            it.loads.clone_from(&loads);
            it.measured_ms = Some(now_ms());
        });
        let situation = self.situation(name).await.map_err(|it| it.to_string())?;
        let measured =
            Measured { load, loads, counts: situation.counts, now_ms: now_ms(), changed_ms: situation.changed_ms };
        let wish = application.wish(&measured).map_err(|error| error.to_string())?;
        let (counts, shrinks_only, because) = match wish {
            None | Some(Wish::Stay) => return Ok("the numbers fit the load".into()),
            Some(Wish::Wait { until_ms, because, .. }) => {
                let seconds = until_ms.saturating_sub(measured.now_ms).div_ceil(1_000);
                return Ok(format!("{because}, in {seconds} s at the earliest (cool-down)"));
            }
            Some(Wish::Scale { counts, shrinks_only, because }) => (counts, shrinks_only, because),
        };
        if let Some(obstacle) = situation.obstacle {
            return Ok(format!("{because}, but waits: {obstacle}"));
        }
        let how = How { reason: Some(because.clone()), ..How::default() };
        let application = Some(name.to_string());
        let request = ApplicationRequest::Scale(ScaleRequest { application, counts, how, ..ScaleRequest::default() });
        let (decision, present) = self.plan(request).await.map_err(|it| format!("{because}, but: {it}"))?;
        let cost = decision.plan.applications.first().and_then(|it| it.placement.as_ref()).map_or(0, |it| it.cost);
        if shrinks_only && !autoscale.is_worthwhile(situation.cost, cost) {
            let (before, least) = (situation.cost, autoscale.saves_percent);
            return Ok(format!("{because}, but the cost would fall from {before} to {cost} only (saves: {least})"));
        }
        if autoscale.dry_run {
            return Ok(format!("would scale: {because}"));
        }
        // An operator may have paused it while it was planned.
        if let Some(says) = self.paused_says(name) {
            return Ok(says);
        }
        let submitted = self.submit(BY, &decision, &BTreeMap::new(), &present).await;
        let submitted = submitted.map_err(|it| format!("{because}, but: {it}"))?;
        tracing::info!(application = %name, change = submitted.change, because, "scaled");
        self.autoscaling.show(name.as_str(), |it| {
            it.change = submitted.change;
            it.changed_because = Some(because.clone());
            it.changed_ms = Some(now_ms());
        });
        Ok(format!("scaled: {because}"))
    }

    async fn measured(
        &self,
        name: &Name,
        autoscale: &Autoscale,
    ) -> Result<(Option<u64>, BTreeMap<String, u64>), String> {
        let mut load = None;
        if let Some(source) = &autoscale.source {
            load = Some(self.measured_at(name, source).await?);
        }
        let mut loads = BTreeMap::new();
        for (group, source) in &autoscale.sources {
            loads.insert(group.clone(), self.measured_at(name, source).await?);
        }
        Ok((load, loads))
    }

    async fn measured_at(&self, name: &Name, source: &Source) -> Result<u64, String> {
        let components = match source {
            Source::Component { component, .. } => self.components_of(name, component).await?,
            Source::Prometheus { .. } | Source::Http { .. } | Source::Command(_) => Vec::new(),
        };
        measure(source, components, &self.manager).await.map_err(|error| format!("the load is unknown: {error}"))
    }

    async fn components_of(&self, name: &Name, group: &str) -> Result<Vec<Name>, String> {
        let (name, group) = (name.clone(), group.to_owned());
        let look = move |manager: View<'_>| {
            let state = manager.applications.get(&name);
            let keys = state.into_iter().flat_map(|it| it.expansion.components.keys());
            keys.filter(|key| key.group.as_str() == group).map(|key| key.scoped(&name)).collect::<Vec<_>>()
        };
        self.manager.look_at_all(look).await.map_err(|error| error.to_string())
    }

    async fn situation(&self, name: &Name) -> Result<Situation, crate::handle::Halted> {
        let name = name.clone();
        self.manager
            .look_at_all(move |manager| {
                let Some(state) = manager.applications.get(&name) else {
                    let obstacle = Some("the application was removed".to_owned());
                    return Situation { counts: BTreeMap::new(), cost: 0, changed_ms: 0, obstacle };
                };
                let mut counts = BTreeMap::new();
                for key in state.expansion.components.keys() {
                    *counts.entry(key.group.to_string()).or_insert(0) += 1;
                }
                let prefix = format!("{name}/");
                let down = not_started(&name, manager.book()).next();
                let mut leaving =
                    manager.book().components().filter(|it| it.is_leaving() && it.name.as_str().starts_with(&prefix));
                let obstacle = match (&state.rollout, down, leaving.next()) {
                    (Some(rollout), ..) => Some(format!("change {} is being rolled out", rollout.first)),
                    (None, Some(entry), _) => Some(format!("{} is not started", entry.name)),
                    (None, None, Some(entry)) => Some(format!("{} is being removed", entry.name)),
                    (None, None, None) => None,
                };
                let cost = state.expansion.choice.as_ref().map_or(0, |it| it.cost);
                Situation { counts, cost, changed_ms: state.version().at_ms, obstacle }
            })
            .await
    }

    async fn autoscale_document(&self, name: &Name) -> Result<AutoscaleDocument, Problem> {
        let documents = self.autoscaling.documents();
        documents.into_iter().find(|it| it.application == name.as_str()).ok_or_else(|| {
            Problem::not_found(format!(
                "there is no application {name} that follows its load (`autoscale:` in its file)"
            ))
        })
    }
}

/// Every application that follows its load.
pub(super) async fn list(State(api): State<Api>) -> Result<Response, Problem> {
    Ok(json(StatusCode::OK, &api.autoscaling.documents()))
}

/// Leaves the numbers of components of an application alone until it is resumed.
pub(super) async fn pause(
    State(api): State<Api>,
    Operator(by): Operator,
    Named(name): Named,
) -> Result<Response, Problem> {
    api.autoscale_document(&name).await?;
    api.autoscaling.set_paused(name.as_str(), Some(Paused { by: by.clone(), at_ms: now_ms() }))?;
    api.autoscaling.show(name.as_str(), |it| it.says = format!("paused by {by}"));
    Ok(json(StatusCode::OK, &api.autoscale_document(&name).await?))
}

/// Follows the load of an application again.
pub(super) async fn resume(State(api): State<Api>, Named(name): Named) -> Result<Response, Problem> {
    api.autoscale_document(&name).await?;
    api.autoscaling.set_paused(name.as_str(), None)?;
    api.autoscaling.show(name.as_str(), |it| it.says = "resumed; the load is measured soon".into());
    Ok(json(StatusCode::OK, &api.autoscale_document(&name).await?))
}
