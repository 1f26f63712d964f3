//! From a request about applications to a decision: what has to change, by which changes, and what they will do.
//!
//! It is a function of a copy of the manager and the request. It changes nothing; its result can be shown, discarded, or
//! turned into a [`Submission`].

use super::{
    data::{Said, data_plan},
    fates::{fates, late_restarts, not_told},
    forecast::{forecast, script},
    present::{Present, masked},
    state::{ApplicationUpdate, Json, Step, Submission, VersionUpdate},
    targets::{Target, targets},
};
use crate::document::{
    ApplicationPlan, ApplicationRequest, DataEffect, Forecast, Intent, Plan, SecretUse, change::default_patience,
};
use crate::machine::Wishes;
use application::{
    Application, Difference, Existing, Expansion, How, Key, OutAlready, Problems, Secret, SecretTexts, rolling,
};
use planner::Progress;
use protocol::{Change, Edit, Kind, Name, Operation, Strategy};
use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    sync::Arc,
};

/// Maximum number of edits in a decision; more would take gigabytes of memory to plan and to journal.
const EDITS_MAX: usize = 2_000_000;
/// Maximum number of edits and components in all steps of a rollout; they are journalled at once.
const ROLLOUT_SIZE_MAX: usize = 2_000_000;

/// Why there is no plan. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The files have errors; each problem has its place.
    #[error(transparent)]
    Files(#[from] Problems),
    /// There is nothing with that name.
    #[error("{0}")]
    Unknown(String),
    /// It cannot be done.
    #[error("{0}")]
    Refused(String),
    /// Too many components of a group are down already.
    #[error(transparent)]
    OutAlready(#[from] OutAlready),
    /// The client has seen another version.
    #[error(
        "application {application} is at version {is}, not {expected}: it has been changed in the meantime (plan again)"
    )]
    Outdated {
        /// The application.
        application: String,
        /// Its version.
        is: u64,
        /// The version that the client has seen.
        expected: u64,
    },
    /// It exceeds a limit.
    #[error("{what} has {is} edits, and the limit is {max} (split it up)")]
    TooLarge {
        /// What exceeds it.
        what: String,
        /// Its size.
        is: usize,
        /// The limit.
        max: usize,
    },
}

/// Limits for planning; checked now and then with the planner's progress.
pub struct Limits<'a> {
    /// Whether to continue.
    pub go_on: &'a mut dyn FnMut(&Progress) -> bool,
}

impl Limits<'_> {
    /// Expands, places and wires an application.
    pub(super) fn expand(&mut self, application: &Application, existing: &Existing<'_>) -> Result<Expansion, Problems> {
        application.expand_within(existing, self.go_on)
    }
}

pub use super::targets::named;

/// A decision, before the texts of secrets are known.
#[derive(Debug)]
pub struct Decision {
    /// The plan that is shown.
    pub plan: Plan,
    /// What is asked for together with the changes.
    pub wishes: Wishes,
    intent: Intent,
    targets: Vec<Target>,
    /// For each change, the resulting expansion of each target.
    ends: Vec<Vec<Expansion>>,
    /// The components that the last changes restart, one change each.
    late: Vec<Vec<Key>>,
    others: Vec<Expansion>,
    strategy: Option<Strategy>,
    reason: Option<String>,
    canary_steps: Option<usize>,
    promote_after_ms: Option<u64>,
}

/// Plans a request.
pub fn plan(request: &ApplicationRequest, present: &Present, mut limits: Limits<'_>) -> Result<Decision, PlanError> {
    let how = request.how();
    let targets = targets(request, present, &mut limits)?;
    let rolling_by = how.rolling.or(how.canary);
    let ends = match (rolling_by, targets.as_slice()) {
        (Some(out_max), [target]) => {
            let steps = in_steps(target, out_max, how.canary, present)?;
            steps.into_iter().map(|it| vec![it]).collect()
        }
        (Some(_), [_, _, ..]) => {
            return Err(PlanError::Refused("only one application can be replaced in steps at a time".into()));
        }
        _ => vec![targets.iter().map(|it| it.after.clone()).collect()],
    };
    let named: BTreeSet<&Name> = targets.iter().map(|it| &it.after.application).collect();
    let others = present.applications.iter().filter(|(name, _)| !named.contains(name));
    let others = others.map(|(_, state)| present.found(state)).collect();
    let mut decision = Decision {
        plan: Plan::default(),
        wishes: Wishes {
            rollback_on_failure: how.rollback_on_failure || targets.iter().any(|it| it.rolls_back_on_failure),
            ..Wishes::default()
        },
        intent: request.intent(),
        canary_steps: how.canary.and_then(|it| canary_steps(it, &targets, &ends)),
        promote_after_ms: how.promote_after_s.map(|it| it.saturating_mul(1_000)),
        targets,
        ends,
        late: Vec::new(),
        others,
        strategy: how.strategy,
        reason: how.reason.clone(),
    };
    decision.restart_late(present, rolling_by);
    decision.describe(request, present)?;
    Ok(decision)
}

/// The steps for one target. The first ones replace the canaries, if there are any.
fn in_steps(
    target: &Target,
    out_max: NonZeroUsize,
    canary: Option<NonZeroUsize>,
    present: &Present,
) -> Result<Vec<Expansion>, PlanError> {
    let down = present.down(&target.after.application);
    let Some(canary) = canary else { return Ok(rolling(&target.before, &target.after, out_max, &down)?) };
    // The canaries one by one, then the rest as requested.
    let by_one = rolling(&target.before, &target.after, NonZeroUsize::MIN, &down)?;
    let Some(place) = canary_place(canary, &target.before, &by_one) else { return Ok(by_one) };
    let first = &by_one[..=place];
    let rest = rolling(&first[place], &target.after, out_max, &down)?;
    Ok(first.iter().cloned().chain(rest).collect())
}

/// The step after which this many components are replaced.
fn canary_place(canary: NonZeroUsize, before: &Expansion, steps: &[Expansion]) -> Option<usize> {
    let replaced = |after: &Expansion| {
        let difference = Difference::between(before, after);
        difference.components.values().filter(|it| matches!(it, How::Replaced(_))).count()
    };
    steps.iter().position(|it| replaced(it) >= canary.get())
}

fn canary_steps(canary: NonZeroUsize, targets: &[Target], ends: &[Vec<Expansion>]) -> Option<usize> {
    let [target] = targets else { return None };
    let steps: Vec<Expansion> = ends.iter().flatten().cloned().collect();
    canary_place(canary, &target.before, &steps).map(|it| it + 1).filter(|it| *it < steps.len())
}

impl Decision {
    /// Whether there is nothing to change and nothing to record.
    pub fn is_nothing(&self) -> bool {
        self.plan.is_empty() && self.targets.iter().all(|it| it.files.is_some()) && self.same_files()
    }

    /// Adds changes that restart components which can be told of new bindings only so: when everything else is done, as
    /// many at a time as may be down.
    fn restart_late(&mut self, present: &Present, out_max: Option<NonZeroUsize>) {
        let [target] = self.targets.as_slice() else { return };
        let says_so =
            |it: &application::Definition| matches!(it.recipe.operations.rebind, Some(recipe::Rebind::Restart));
        if !target.after.definitions.values().any(says_so) {
            return;
        }
        let masked = masked(&target.after);
        let changes: Vec<Change> = (0..self.ends.len()).map(|place| self.change(place, &masked).0).collect();
        let one = Some(&target.after.application);
        let late = late_restarts(target, &forecast(present, &changes, &[&target.before, &target.after], one));
        let at_once = out_max.unwrap_or(NonZeroUsize::MIN).get();
        self.late = late.chunks(at_once).map(<[Key]>::to_vec).collect();
        let end = self.ends.last().cloned().unwrap_or_default();
        self.ends.extend(self.late.iter().map(|_| end.clone()));
        self.targets[0].late_restarts = late;
    }

    fn same_files(&self) -> bool {
        self.plan.applications.iter().all(|it| it.same_files)
    }

    /// Fills in the plan.
    fn describe(&mut self, request: &ApplicationRequest, present: &Present) -> Result<(), PlanError> {
        let how = request.how();
        let mut all_masked = SecretTexts::new();
        self.targets.iter().for_each(|it| all_masked.extend(masked(&it.after)));
        let mut strategies = Vec::new();
        let changes: Vec<Change> = (0..self.ends.len())
            .map(|place| {
                let (change, _) = self.change(place, &all_masked);
                strategies.push(change.strategy);
                change
            })
            .collect();
        let edits: usize = changes.iter().map(|it| it.edits.len()).sum();
        if edits > EDITS_MAX {
            return Err(PlanError::TooLarge { what: "the plan".into(), is: edits, max: EDITS_MAX });
        }
        let kept: usize = self.ends.iter().flatten().map(|it| it.components.len()).sum();
        if self.ends.len() > 1 && edits + kept > ROLLOUT_SIZE_MAX {
            let what = format!("a replacement in {} steps", self.ends.len());
            return Err(PlanError::TooLarge { what, is: edits + kept, max: ROLLOUT_SIZE_MAX });
        }
        let one = match self.targets.as_slice() {
            [one] => Some(&one.after.application),
            _ => None,
        };
        let expansions: Vec<&Expansion> = self.targets.iter().flat_map(|it| [&it.before, &it.after]).collect();
        let mut forecast = forecast(present, &changes, &expansions, one);
        forecast.refused.extend(self.targets.iter().flat_map(|it| unknown_clouds(it, &present.clouds)));
        let removed: Vec<&Name> =
            self.targets.iter().filter(|it| it.files.is_none()).map(|it| &it.after.application).collect();
        let said = Said { delete: how.delete_data, start_empty: &how.start_empty, removed: &removed };
        let data = data_plan(present, &changes, said);
        forecast.refused.extend(data.refused);
        self.wishes.delete_data = data.delete;
        let script = how.script.then(|| {
            let (_, lines) = script(present.configuration(), changes.clone());
            serde_json::to_value(&*lines).unwrap_or_default()
        });
        let applications: Vec<ApplicationPlan> =
            self.targets.iter().map(|it| self.describe_one(it, present, &forecast, &data.effects)).collect();
        let pairs = self.targets.iter().zip(&applications);
        let not_told: Vec<String> = pairs.flat_map(|(it, plan)| not_told(it, &plan.fates, &plan.difference)).collect();
        self.plan = Plan {
            applications,
            data: data.effects,
            strategy: strategies.first().copied().unwrap_or_default(),
            steps: self.ends.len(),
            edits,
            secrets: self.secrets(),
            forecast,
            remarks: self.targets.iter().flat_map(|it| it.remarks.clone()).chain(not_told).collect(),
            picture: match self.targets.as_slice() {
                [target] if how.picture => Some(application::picture(&target.before, &target.after)),
                _ => None,
            },
            script,
        };
        Ok(())
    }

    fn describe_one(
        &self,
        target: &Target,
        present: &Present,
        forecast: &Forecast,
        data: &[DataEffect],
    ) -> ApplicationPlan {
        let Target { after, before, .. } = target;
        let difference = Difference::between(before, after);
        let comes = difference.components.iter().filter(|(_, how)| matches!(how, How::Added | How::Replaced(_)));
        let places = comes.filter_map(|(key, _)| Some((key.clone(), after.components.get(key)?.vm.clone()))).collect();
        let state = present.applications.get(&after.application);
        let same_files = match (state, &target.files) {
            (Some(state), Some(files)) => state.version().files.says_the_same(files),
            (state, files) => state.is_none() && files.is_none(),
        };
        ApplicationPlan {
            application: after.application.to_string(),
            version: target.from_version,
            vms: after.vms.len(),
            components: after.components.len(),
            bindings: after.bindings(),
            fates: fates(target, &difference, forecast, data),
            difference,
            places,
            restarts: target.restarts.clone(),
            left: target.rest.as_ref().map_or(0, |it| it.left),
            counts: target.counts.clone(),
            same_files,
            placement: after.choice.clone(),
            trade_offs: target.trade_offs.clone(),
        }
    }

    /// The secrets of new components.
    fn secrets(&self) -> Vec<SecretUse> {
        let mut uses: BTreeMap<String, SecretUse> = BTreeMap::new();
        for target in &self.targets {
            let difference = Difference::between(&target.before, &target.after);
            for (key, how) in &difference.components {
                if !matches!(how, How::Added | How::Replaced(_)) {
                    continue;
                }
                let secrets = target.after.definition_of(key).into_iter().flat_map(|it| it.secrets.values());
                for secret in secrets {
                    let kept = target.kept.contains_key(&secret.name) && !self.is_new(target, secret);
                    uses.insert(secret.name.clone(), SecretUse { secret: secret.clone(), kept });
                }
            }
        }
        uses.into_values().collect()
    }

    /// Whether a secret has a new source or a new version.
    fn is_new(&self, target: &Target, secret: &Secret) -> bool {
        let mut before = target.before.definitions.values().flat_map(|it| it.secrets.values());
        self.intent == Intent::Apply && !before.any(|it| it == secret)
    }

    /// One of the changes, and the clouds of its VMs.
    fn change(&self, place: usize, secrets: &SecretTexts) -> (Change, BTreeMap<Name, String>) {
        let mut change = Change::default();
        let (mut clouds, mut bound) = (BTreeMap::new(), BTreeSet::new());
        let mut strategies = Vec::new();
        for (index, target) in self.targets.iter().enumerate() {
            let from = if place == 0 { &target.before } else { &self.ends[place - 1][index] };
            let to = &self.ends[place][index];
            let difference = Difference::between(from, to);
            let strategy = self.strategy.unwrap_or_else(|| difference.usual_strategy(to));
            let mut own = target.kept.clone();
            own.extend(secrets.clone());
            let planned = difference.planned(from, to, &self.around(index), strategy, &own);
            if !planned.change.edits.is_empty() {
                strategies.push(strategy);
            }
            // Two applications that are changed together may both contain a binding between them.
            let is_news = |edit: &Edit| match edit {
                Edit::AddBinding(wire) => bound.insert(wire.clone()),
                _ => true,
            };
            change.edits.extend(planned.change.edits.into_iter().filter(is_news));
            clouds.extend(planned.clouds);
            if place == 0 {
                let restart = |key: &Key| Edit::RestartComponent { component: key.scoped(&to.application) };
                change.edits.extend(target.restarts.keys().map(restart));
            }
            if let Some(late) = place.checked_sub(self.ends.len() - self.late.len()) {
                let restart = |key: &Key| Edit::RestartComponent { component: key.scoped(&to.application) };
                change.edits.extend(self.late[late].iter().map(restart));
            }
        }
        with_default_patience(&mut change.edits);
        change.strategy = together(&strategies).or(self.strategy).unwrap_or_default();
        (change, clouds)
    }

    /// All applications except one target.
    fn around(&self, index: usize) -> Vec<Expansion> {
        let targets = self.targets.iter().enumerate().filter(|(it, _)| *it != index);
        self.others.iter().chain(targets.map(|(_, it)| &it.after)).cloned().collect()
    }

    /// The submission for the machine. `secrets` are the texts that the client sent.
    pub fn submission(&self, by: &str, secrets: &SecretTexts, present: &Present) -> Result<Submission, PlanError> {
        let lacking: Vec<&str> =
            self.plan.secrets.iter().filter(|it| !it.kept).map(|it| it.secret.name.as_str()).collect();
        let lacking: Vec<&str> = lacking.into_iter().filter(|name| !secrets.contains_key(*name)).collect();
        if !lacking.is_empty() {
            return Err(PlanError::Refused(format!(
                "the texts of these secrets are missing: {} (send them as how.secrets)",
                lacking.join(", ")
            )));
        }
        let steps: Vec<Step> = (0..self.ends.len())
            .map(|place| {
                let (change, clouds) = self.change(place, secrets);
                let expansions = self.targets.iter().zip(&self.ends[place]).filter(|(it, _)| it.files.is_some());
                let expansions = expansions.map(|(target, end)| {
                    Json::new(target.rest.as_ref().map_or_else(|| end.clone(), |it| it.applied.clone()))
                });
                Step { change, clouds, expansions: expansions.collect() }
            })
            .collect();
        let names: Vec<&str> = self.targets.iter().map(|it| it.after.application.as_str()).collect();
        let reason = self.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        Ok(Submission {
            by: by.to_owned(),
            about: format!("{} {}{reason}", self.intent, names.join(", ")),
            intent: self.intent,
            applications: self.targets.iter().map(|it| self.update(it, secrets, present)).collect(),
            steps,
            canary_steps: self.canary_steps,
            promote_after_ms: self.promote_after_ms,
        })
    }

    fn update(&self, target: &Target, secrets: &SecretTexts, present: &Present) -> ApplicationUpdate {
        let application = target.after.application.clone();
        let state = present.applications.get(&application);
        let version = match (&target.files, state) {
            (None, _) => VersionUpdate::Removed,
            (Some(files), Some(state)) if state.version().files.is_same(files) => VersionUpdate::Same,
            (Some(files), state) => {
                let named = target.after.definitions.values().chain(target.after.older.values());
                let named: BTreeSet<&String> = named.flat_map(|it| it.secrets.values()).map(|it| &it.name).collect();
                let mut texts = target.kept.clone();
                texts.extend(secrets.clone());
                texts.retain(|name, _| named.contains(name));
                // A version without a difference is not a target for rollback.
                let rolls_back_to = state.and_then(|state| match self.plan.is_empty() {
                    true => state.version().rolls_back_to,
                    false => Some(state.version().number),
                });
                VersionUpdate::New { files: Json::new(files.clone()), secrets: texts, rolls_back_to }
            }
        };
        ApplicationUpdate { application, from_version: target.from_version, version }
    }
}

/// One strategy for parts that each have their own: the phase that goes first for one goes first for all.
fn together(strategies: &[Strategy]) -> Option<Strategy> {
    let order = [Strategy::DownThenUp, Strategy::UpThenDown, Strategy::Together];
    order.into_iter().find(|it| strategies.contains(it))
}

/// Sets the default retries of operations for which a component declares none. Components that share a kind still do.
fn with_default_patience(edits: &mut [Edit]) {
    let mut made: BTreeMap<*const Kind, Arc<Kind>> = BTreeMap::new();
    for edit in edits {
        let Edit::AddComponent { kind, .. } = edit else { continue };
        let usual = made.entry(Arc::as_ptr(kind)).or_insert_with(|| {
            let mut kind = Kind::clone(kind);
            for operation in Operation::ALL {
                kind.patience.entry(operation).or_insert_with(|| default_patience(operation));
            }
            Arc::new(kind)
        });
        *kind = Arc::clone(usual);
    }
}

/// VMs from a cloud that the manager does not have.
fn unknown_clouds(target: &Target, known: &[String]) -> BTreeSet<String> {
    let difference = Difference::between(&target.before, &target.after);
    let comes = difference.vms.iter().filter(|(_, how)| matches!(how, How::Added | How::Replaced(_)));
    let clouds = comes.filter_map(|(key, _)| Some((&key.group, target.after.vms.get(key)?.cloud.as_ref()?)));
    let unknown = clouds.filter(|(_, cloud)| !known.is_empty() && !known.contains(cloud));
    let says = |(group, cloud): (&Name, &String)| {
        format!("vms {group}: there is no cloud {cloud:?} (known: {})", known.join(", "))
    };
    unknown.map(says).collect()
}
