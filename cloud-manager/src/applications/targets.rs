//! What each kind of request does to an application: from which expansion to which.

use super::{
    planning::{Limits, PlanError},
    present::{Present, is_started, key_of},
    state::ApplicationState,
};
use crate::document::{
    ApplicationRequest, ApplyRequest, DrainRequest, How, ReconcileRequest, RemoveRequest, RollbackRequest,
    ScaleRequest, TradeOff, reason,
};
use application::{Application, ApplicationFiles, Difference, Existing, Expansion, Key, SecretTexts, hint};
use protocol::{ComponentState, Name};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of rows in the table of cost and disruption.
const TRADE_OFFS_MAX: usize = 8;

/// What becomes of one application.
#[derive(Debug)]
pub(super) struct Target {
    /// The version that it was planned from; 0 if it is new.
    pub(super) from_version: u64,
    /// What exists.
    pub(super) before: Expansion,
    /// What is requested.
    pub(super) after: Expansion,
    /// The files that it is read from; `None` if it is removed.
    pub(super) files: Option<ApplicationFiles>,
    /// The texts of secrets that the manager has kept.
    pub(super) kept: SecretTexts,
    /// Components that have to restart, and why.
    pub(super) restarts: BTreeMap<Key, Vec<String>>,
    /// Components that are to start again when everything else is done, because only that tells them of new bindings.
    pub(super) late_restarts: Vec<Key>,
    /// When only some components are reconciled: everything else.
    pub(super) rest: Option<Rest>,
    /// The number of components that a load needs.
    pub(super) counts: BTreeMap<String, u32>,
    pub(super) remarks: Vec<String>,
    /// Whether its files say that a change that fails is taken back.
    pub(super) rolls_back_on_failure: bool,
    pub(super) trade_offs: Vec<TradeOff>,
}

/// What is not reconciled together with some components of an application.
#[derive(Debug)]
pub(super) struct Rest {
    /// What was applied, which is still to be reached.
    pub(super) applied: Expansion,
    /// How many things differ from what was applied, and stay so.
    pub(super) left: usize,
}

impl Target {
    /// From what exists of an application to this.
    fn new(state: Option<&ApplicationState>, before: Option<Expansion>, after: Expansion) -> Self {
        Self {
            from_version: state.map_or(0, |it| it.version().number),
            before: before.unwrap_or_else(|| Expansion::empty(after.application.clone())),
            after,
            files: None,
            kept: state.map(|it| it.version().secrets.clone()).unwrap_or_default(),
            restarts: BTreeMap::new(),
            late_restarts: Vec::new(),
            rest: None,
            counts: BTreeMap::new(),
            remarks: Vec::new(),
            rolls_back_on_failure: false,
            trade_offs: Vec::new(),
        }
    }
}

/// What a request does to the applications it is about, in an order in which each can be reached after the previous one.
pub(super) fn targets(
    request: &ApplicationRequest,
    present: &Present,
    limits: &mut Limits<'_>,
) -> Result<Vec<Target>, PlanError> {
    match request {
        ApplicationRequest::Apply(it) => apply(it, present, limits).map(|it| vec![it]),
        ApplicationRequest::Scale(it) => scale(it, present, limits).map(|it| vec![it]),
        ApplicationRequest::Rollback(it) => rollback(it, present, limits).map(|it| vec![it]),
        ApplicationRequest::Drain(it) => drain(it, true, present, limits),
        ApplicationRequest::Undrain(it) => drain(it, false, present, limits),
        ApplicationRequest::Reconcile(it) => reconcile(it, present, limits),
        ApplicationRequest::Remove(it) => remove(it, present),
    }
}

fn apply(request: &ApplyRequest, present: &Present, limits: &mut Limits<'_>) -> Result<Target, PlanError> {
    let mut files = request.application.clone();
    let mut application = files.read()?;
    let state = present.applications.get(&application.name);
    // Applying a file does not put a drained VM back into use.
    let drained = state.map(|it| it.version().files.inputs.drained.clone()).unwrap_or_default();
    // Nor does it set numbers that follow a load back to what they were once; only numbers that were asked for do.
    let followed = state.map(|it| it.version().files.inputs.counts.clone()).unwrap_or_default();
    let followed = followed.into_iter().filter(|(name, _)| application.follows_load(name));
    let followed: BTreeMap<String, u32> =
        followed.filter(|(name, _)| !files.inputs.counts.contains_key(name)).collect();
    if !drained.is_empty() || !followed.is_empty() {
        files.inputs.drained = drained;
        files.inputs.counts.extend(followed);
        application = files.read()?;
    }
    let before = state.map(|it| present.found(it));
    let others = others(present, &application.name);
    let placed = before.as_ref().map(|it| unpinned(it, &request.how.start_empty));
    let existing = Existing { before: placed.as_ref(), others: &others };
    let after = limits.expand(&application, &existing)?;
    files.inputs.drained.retain(|vm| after.vms.contains_key(vm));
    let trade_offs = trade_offs(request.how.trade_off, &application, &existing)?;
    let mut target = Target::new(state.map(|it| &**it), before, after);
    target.files = Some(files);
    target.remarks = application.remarks();
    target.rolls_back_on_failure = application.rolls_back_on_failure();
    target.trade_offs = trade_offs;
    Ok(target)
}

/// Expands an application from the files that the manager has kept, perhaps with other inputs.
fn again(
    state: &ApplicationState,
    files: ApplicationFiles,
    how: &How,
    present: &Present,
    limits: &mut Limits<'_>,
) -> Result<Target, PlanError> {
    let application = files.read()?;
    let before = present.found(state);
    let others = others(present, &application.name);
    let placed = unpinned(&before, &how.start_empty);
    let existing = Existing { before: Some(&placed), others: &others };
    let after = limits.expand(&application, &existing)?;
    let trade_offs = trade_offs(how.trade_off, &application, &existing)?;
    let mut target = Target::new(Some(state), Some(before), after);
    target.files = Some(files);
    target.rolls_back_on_failure = application.rolls_back_on_failure();
    target.trade_offs = trade_offs;
    Ok(target)
}

/// The same, where components that may start without their data are placed as if they had none.
fn unpinned(before: &Expansion, start_empty: &[String]) -> Expansion {
    let mut unpinned = before.clone();
    for key in before.components.keys() {
        let name = key.scoped(&before.application).to_string();
        if !start_empty.iter().any(|it| *it == name || *it == key.to_string()) {
            continue;
        }
        if let Some(definition) = before.definition_of(key) {
            let mut definition = definition.clone();
            definition.recipe.data = recipe::Data::default();
            unpinned.older.insert(key.clone(), definition);
        }
    }
    unpinned
}

fn trade_offs(asked: bool, application: &Application, existing: &Existing<'_>) -> Result<Vec<TradeOff>, PlanError> {
    if !asked {
        return Ok(Vec::new());
    }
    let number = |it: i128| i64::try_from(it).unwrap_or(i64::MAX);
    let rows = application.trade_offs(existing, TRADE_OFFS_MAX)?;
    Ok(rows
        .iter()
        .map(|it| TradeOff { cost: number(it.cost), stopped: number(it.stopped), proven: it.proven })
        .collect())
}

fn others(present: &Present, application: &Name) -> Vec<Expansion> {
    let others = present.applications.iter().filter(|(name, _)| *name != application);
    others.map(|(_, state)| present.found(state)).collect()
}

fn scale(request: &ScaleRequest, present: &Present, limits: &mut Limits<'_>) -> Result<Target, PlanError> {
    let state = match &request.application {
        Some(name) => present.application(name).map_err(PlanError::Unknown)?,
        None => present.application(&home_of(request, present)?).map_err(PlanError::Unknown)?,
    };
    let mut files = state.version().files.clone();
    let counts = match request.load {
        None => request.counts.clone(),
        Some(load) => {
            let counts = files.read()?.counts_for(load, &request.loads);
            counts.map_err(|error| PlanError::Refused(error.to_string()))?
        }
    };
    files.inputs.counts.extend(counts.clone());
    let mut target = again(state, files, &request.how, present, limits)?;
    if request.load.is_some() {
        target.counts = counts;
    }
    Ok(target)
}

/// The one application that has components with these names; without names, the only application.
fn home_of(request: &ScaleRequest, present: &Present) -> Result<String, PlanError> {
    if request.counts.is_empty() {
        let mut names = present.applications.keys();
        return match (names.next(), names.next()) {
            (Some(name), None) => Ok(name.to_string()),
            _ => Err(PlanError::Refused("name the application that has the load".into())),
        };
    }
    let mut home: Option<&str> = None;
    for group in request.counts.keys() {
        let has = |it: &&Name| {
            let definitions = &present.applications[*it].expansion.definitions;
            Name::new(group).is_ok_and(|group| definitions.contains_key(&group))
        };
        let homes: Vec<&str> = present.applications.keys().filter(has).map(Name::as_str).collect();
        let one = match homes.as_slice() {
            [one] => *one,
            [] => return Err(PlanError::Unknown(format!("no application has a component {group}"))),
            [first, ..] => {
                let all = homes.join(" and ");
                let error = format!("{all} have a component {group} (name the application: {first}/{group}=…)");
                return Err(PlanError::Refused(error));
            }
        };
        if home.is_some_and(|it| it != one) {
            return Err(PlanError::Refused(format!("{group}: scale one application at a time")));
        }
        home = Some(one);
    }
    Ok(home.unwrap_or_default().to_owned())
}

fn rollback(request: &RollbackRequest, present: &Present, limits: &mut Limits<'_>) -> Result<Target, PlanError> {
    let name = &request.application;
    let state = present.application(name).map_err(PlanError::Unknown)?;
    let to = match (request.to, state.version().rolls_back_to) {
        (Some(to), _) | (None, Some(to)) => to,
        (None, None) => {
            return Err(PlanError::Refused(format!("application {name} has no earlier version to roll back to")));
        }
    };
    let version = state.version_of(to).ok_or_else(|| {
        let kept: Vec<String> = state.versions.iter().map(|it| it.number.to_string()).collect();
        PlanError::Unknown(format!("version {to} of application {name} is not kept (kept: {})", kept.join(", ")))
    })?;
    let mut target = again(state, version.files.clone(), &request.how, present, limits)?;
    target.kept.extend(version.secrets.clone());
    Ok(target)
}

fn drain(
    request: &DrainRequest,
    away: bool,
    present: &Present,
    limits: &mut Limits<'_>,
) -> Result<Vec<Target>, PlanError> {
    let vm = &request.vm;
    let key = vm.split_once('/').and_then(|(name, key)| Some((name, key.parse::<Key>().ok()?)));
    let (name, key) = key.ok_or_else(|| {
        PlanError::Refused(format!("{vm}: not a VM of an application (those have names like shop/web[0])"))
    })?;
    let state = present.application(name).map_err(PlanError::Unknown)?;
    let mut files = state.version().files.clone();
    if !state.expansion.vms.contains_key(&key) && !files.inputs.drained.contains(&key) {
        return Err(PlanError::Unknown(format!("{vm}: the application has no such VM")));
    }
    let changed = if away { files.inputs.drained.insert(key) } else { files.inputs.drained.remove(&key) };
    match changed {
        true => again(state, files, &request.how, present, limits).map(|it| vec![it]),
        // It is already in that state.
        false => Ok(Vec::new()),
    }
}

fn remove(request: &RemoveRequest, present: &Present) -> Result<Vec<Target>, PlanError> {
    let name = &request.application;
    let state = present.application(name).map_err(PlanError::Unknown)?;
    let all = present.all();
    let leaving = match request.with_users {
        true => users_first(&state.expansion.application, &all),
        false => {
            let users: Vec<&str> =
                users_of(&state.expansion.application, &all).map(|it| it.application.as_str()).collect();
            if !users.is_empty() {
                let use_it = if users.len() == 1 { "uses" } else { "use" };
                let users = users.join(" and ");
                return Err(PlanError::Refused(format!(
                    "{users} {use_it} application {name} (holdfast remove {name} --with-users removes {users}, too)"
                )));
            }
            vec![state.expansion.application.clone()]
        }
    };
    let target = |name: &Name| {
        let state = present.applications.get(name)?;
        Some(Target::new(Some(state), Some(present.found(state)), Expansion::empty(name.clone())))
    };
    Ok(leaving.iter().filter_map(target).collect())
}

/// An application after all that use it, directly or indirectly.
fn users_first(name: &Name, all: &[Expansion]) -> Vec<Name> {
    fn visit(name: &Name, all: &[Expansion], seen: &mut BTreeSet<Name>, sorted: &mut Vec<Name>) {
        // Where two use each other, the machine decides.
        if seen.insert(name.clone()) {
            users_of(name, all).for_each(|user| visit(&user.application, all, seen, sorted));
            sorted.push(name.clone());
        }
    }
    let (mut seen, mut sorted) = (BTreeSet::new(), Vec::new());
    visit(name, all, &mut seen, &mut sorted);
    sorted
}

/// The applications with a binding to this one, whatever their need.
fn users_of<'a>(name: &'a Name, all: &'a [Expansion]) -> impl Iterator<Item = &'a Expansion> {
    all.iter().filter(move |user| {
        let mut providers = user.components.values().flat_map(|it| it.bound.values().flatten());
        providers.any(|it| it.application.as_ref() == Some(name))
    })
}

fn reconcile(request: &ReconcileRequest, present: &Present, limits: &mut Limits<'_>) -> Result<Vec<Target>, PlanError> {
    let chosen = chosen(&request.names, present)?;
    check_providers(&chosen, present)?;
    let mut all: BTreeMap<Name, Expansion> =
        present.applications.iter().map(|(name, state)| (name.clone(), present.found(state))).collect();
    let mut targets = Vec::new();
    for (name, keys) in &chosen {
        let state = &present.applications[name];
        let target = reconciled(state, keys.as_ref(), &all, present, limits)?;
        all.insert(name.clone(), target.after.clone());
        targets.push(target);
    }
    Ok(targets)
}

/// Applications in the order in which they were named, each with the selected components; all of them if none is named.
type Chosen = Vec<(Name, Option<BTreeSet<Key>>)>;

fn chosen(names: &[String], present: &Present) -> Result<Chosen, PlanError> {
    let mut chosen: Chosen = Vec::new();
    for name in names {
        let (home, key) = named(name, present)?;
        let Some(home) = home else {
            return Err(PlanError::Refused(format!(
                "{name} belongs to no applied application, so its requested state is unknown (holdfast check \
                 {name} examines its VM; holdfast component restart, replace or remove {name} changes it)"
            )));
        };
        let place = chosen.iter().position(|(it, _)| *it == home).unwrap_or_else(|| {
            chosen.push((home, Some(BTreeSet::new())));
            chosen.len() - 1
        });
        match (key, &mut chosen[place].1) {
            (Some(key), Some(keys)) => drop(keys.insert(key)),
            (Some(_), None) => {}
            (None, keys) => *keys = None,
        }
    }
    Ok(chosen)
}

/// What a name refers to: an application, a component of one, or a component that belongs to none. A component is known if
/// it exists, and also if it is missing.
pub fn named(name: &str, present: &Present) -> Result<(Option<Name>, Option<Key>), PlanError> {
    let (home, key) = name.split_once('/').map_or((name, None), |(home, key)| (home, Some(key)));
    let state = Name::new(home).ok().and_then(|it| present.applications.get_key_value(&it));
    let key = key.map(str::parse::<Key>);
    match (state, key) {
        (Some((home, _)), None) => return Ok((Some(home.clone()), None)),
        (Some((home, state)), Some(Ok(key))) => {
            let is_there = Name::new(name).is_ok_and(|name| present.book().component(&name).is_some());
            if is_there || state.expansion.components.contains_key(&key) {
                return Ok((Some(home.clone()), Some(key)));
            }
        }
        _ => {}
    }
    if Name::new(name).is_ok_and(|name| present.book().component(&name).is_some()) {
        return Ok((None, None));
    }
    let mut known: BTreeSet<String> = present.book().components().map(|it| it.name.to_string()).collect();
    for (application, state) in &present.applications {
        known.insert(application.to_string());
        known.extend(state.expansion.components.keys().map(|key| key.scoped(application).to_string()));
    }
    let hint = hint(name, known.iter().map(String::as_str));
    Err(PlanError::Unknown(format!("there is no application and no component {name}{hint}")))
}

/// Refuses to start if a component could not start because a provider is missing and is not reconciled as well.
fn check_providers(chosen: &Chosen, present: &Present) -> Result<(), PlanError> {
    for (place, (name, keys)) in chosen.iter().enumerate() {
        let (Some(keys), Some(state)) = (keys, present.applications.get(name)) else { continue };
        let elsewhere = |application: &Name, key: &Key| {
            let mended = chosen[..place].iter().find(|(it, _)| it == application);
            let mended = mended.is_some_and(|(_, keys)| keys.as_ref().is_none_or(|it| it.contains(key)));
            mended || present.book().component(&key.scoped(application)).is_some_and(|it| !it.is_leaving())
        };
        let lacking = present.found(state).lacking(&state.expansion, keys, elsewhere);
        let Some((client, provider)) = lacking.first() else { continue };
        let also = lacking.iter().rev().map(|(_, it)| it.scoped(name).to_string());
        let mut together: Vec<String> = Vec::new();
        for it in also.chain(keys.iter().map(|it| it.scoped(name).to_string())).map(|it| format!("'{it}'")) {
            if !together.contains(&it) {
                together.push(it);
            }
        }
        return Err(PlanError::Refused(format!(
            "{} needs {}, which is missing, too (holdfast reconcile {})",
            client.scoped(name),
            provider.scoped(name),
            together.join(" ")
        )));
    }
    Ok(())
}

/// An application, or only these components of it, as it was applied.
fn reconciled(
    state: &ApplicationState,
    keys: Option<&BTreeSet<Key>>,
    all: &BTreeMap<Name, Expansion>,
    present: &Present,
    limits: &mut Limits<'_>,
) -> Result<Target, PlanError> {
    let name = &state.expansion.application;
    let found = &all[name];
    let (drifted, others_drifted): (Vec<_>, Vec<_>) =
        to_restart(name, present).into_iter().partition(|(key, _)| keys.is_none_or(|it| it.contains(key)));
    // Components should go where they were applied; but one that was lost with its VM may have to move.
    let mut applied = state.expansion.clone();
    applied.components.retain(|_, it| found.vms.contains_key(&it.vm));
    let files = state.version().files.clone();
    let others: Vec<Expansion> = all.iter().filter(|(it, _)| *it != name).map(|(_, it)| it.clone()).collect();
    let mut after = limits.expand(&files.read()?, &Existing { before: Some(&applied), others: &others })?;
    let rest = keys.map(|keys| {
        let applied = state.expansion.mended(&after, keys);
        after = found.mended(&after, keys);
        let left = Difference::between(&after, &applied).count() + others_drifted.len();
        Rest { applied, left }
    });
    let difference = Difference::between(found, &after).components;
    let begins_anew =
        |key: &Key| matches!(difference.get(key), Some(application::How::Removed | application::How::Replaced(_)));
    let mut target = Target::new(Some(state), Some(found.clone()), after);
    target.restarts = drifted.into_iter().filter(|(key, _)| !begins_anew(key)).collect();
    target.rest = rest;
    target.files = Some(files);
    Ok(target)
}

/// Components of an application whose files were changed on their VM, or that have a failed operation.
fn to_restart(application: &Name, present: &Present) -> BTreeMap<Key, Vec<String>> {
    let drifted = present.drifted.iter();
    let drifted = drifted.filter_map(|(name, why)| Some((key_of(application, name)?, why.clone())));
    let failed = present.book().components().filter(|it| !it.is_leaving() && !is_started(it));
    let failed = failed.filter_map(|it| {
        let Some(ComponentState::Failed(operation)) = it.condition.map(|it| it.state) else { return None };
        let operation = operation.to_string();
        let failure = present.failures.get(&it.name).map(String::as_str).unwrap_or_default();
        let because = reason::first(Some(&operation), failure);
        Some((key_of(application, &it.name)?, vec![format!("{operation} failed: {because}")]))
    });
    drifted.chain(failed).collect()
}
