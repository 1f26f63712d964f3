//! Carries out decisions about applications: a submission is posted and recorded in one step, and a rollout continues with
//! its next step when the previous one is complete.

use super::{Effect, Manager, NotPosted, Origins, Outputs, Posted};
use crate::applications::{
    ApplicationState, ApplicationUpdate, Step, Submission, Version,
    rollout::{self, Next, Rollout},
    state::{Before, Json, VersionUpdate},
};
use crate::document::{Intent, asked};
use crate::handle::Event;
use application::{ApplicationFiles, Expansion};
use protocol::manager::{News, Request};
use protocol::{ChangeId, ComponentId, Name, Refusal};
use runtime::engine::{Moment, Output};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

impl Manager {
    /// Carries out a decision about applications: all of it, or nothing.
    pub(super) fn submit(&mut self, at: Moment, submission: Submission) -> Outputs {
        let refuse = |why: NotPosted| vec![Output::Effect(Effect::Submission(Err(why)))];
        for update in &submission.applications {
            let state = self.books.applications.get(&update.application);
            if state.map_or(0, |it| it.version().number) != update.from_version {
                return refuse(NotPosted::Outdated(update.application.clone()));
            }
        }
        let Submission { by, about, intent, applications, steps, canary_steps, promote_after_ms } = submission;
        let mut outputs = Vec::new();
        let (count, mut ahead) = (steps.len(), VecDeque::from(steps));
        let mut posted = Posted { change: None, versions: BTreeMap::new() };
        let mut first = ahead.pop_front();
        // A step that only changes labels needs no change from the machine.
        while first.as_ref().is_some_and(|it| it.change.edits.is_empty()) && !ahead.is_empty() {
            first = ahead.pop_front();
        }
        let down_before = applications.first().map(|it| self.down(&it.application)).unwrap_or_default();
        if let Some(step) = &first
            && !step.change.edits.is_empty()
        {
            let which = if count > 1 { format!(" (step 1 of {count})") } else { String::new() };
            match self.post(at, step, &about, &which, &mut outputs) {
                Ok(change) => posted.change = Some(change),
                Err(refusals) => {
                    outputs.push(Output::Effect(Effect::Submission(Err(NotPosted::Refused(refusals)))));
                    return outputs;
                }
            }
        }
        let names: Vec<Name> = applications.iter().map(|it| it.application.clone()).collect();
        posted.change.into_iter().for_each(|change| self.keep_before(change, &names));
        let went_back = if Origins::goes_back(intent) { self.rolled_back(&applications) } else { Vec::new() };
        for update in applications {
            let name = update.application.clone();
            let expansion = first.iter().flat_map(|it| &it.expansions).find(|it| it.0.application == name);
            self.remember(at, update, expansion.map(|it| Expansion::clone(&it.0)), &by, intent);
            let version = self.books.applications.get(&name).map_or(0, |it| it.version().number);
            posted.versions.insert(name.clone(), version);
            let (Some(state), Some(change)) = (self.books.applications.get_mut(&name), posted.change) else { continue };
            if !ahead.is_empty() {
                Arc::make_mut(state).rollout = Some(Rollout {
                    first: change.0,
                    posted: vec![change.0],
                    ahead: std::mem::take(&mut ahead),
                    steps: count,
                    about: about.clone(),
                    canary_steps,
                    promote_after_ms,
                    promotes_at_ms: None,
                    blocked: Vec::new(),
                    down_before: down_before.clone(),
                });
            }
        }
        if let Some(change) = posted.change {
            self.beside.origins.note(change, &by);
            self.beside.origins.note_versions(change, &posted.versions);
            went_back.iter().for_each(|(name, after, up_to)| {
                self.beside.origins.note_rollback(change, name, *after, *up_to);
            });
        }
        outputs.push(Output::Effect(Effect::Submission(Ok(posted))));
        outputs
    }

    /// For each application that goes back to an earlier version: that version, and the one that it leaves.
    fn rolled_back(&self, updates: &[ApplicationUpdate]) -> Vec<(Name, u64, u64)> {
        let went_back = updates.iter().filter_map(|update| {
            let VersionUpdate::New { files, .. } = &update.version else { return None };
            let versions = &self.books.applications.get(&update.application)?.versions;
            let to = versions.iter().rev().skip(1).find(|it| it.files == *files.0)?.number;
            Some((update.application.clone(), to, update.from_version))
        });
        went_back.collect()
    }

    /// Components of an application that should be started and are not.
    fn down(&self, application: &Name) -> BTreeSet<Name> {
        rollout::not_started(application, self.books.manager.book()).map(|it| it.name.clone()).collect()
    }

    /// Submits the change of a step to the machine. The history has what was requested, the edits of this change, and which
    /// step it is.
    fn post(
        &mut self,
        at: Moment,
        step: &Step,
        about: &str,
        which: &str,
        outputs: &mut Outputs,
    ) -> Result<ChangeId, Vec<Refusal>> {
        let request = Request::Make(step.change.clone());
        let about = &format!("{about}: {}{which}", asked::in_words(&request));
        outputs.push(Output::Effect(Effect::Requested(Box::new(request.clone()))));
        let asked = self.ask(at, request, about, step.clouds.clone());
        let answer = asked.iter().find_map(|output| match output {
            Output::Effect(Effect::Event(Event { news: News::Accepted(change), .. })) => Some(Ok(*change)),
            Output::Effect(Effect::Event(Event { news: News::Refused(refusals), .. })) => Some(Err(refusals.clone())),
            _ => None,
        });
        outputs.extend(asked);
        answer.expect("the machine answers every request by accepting or refusing it")
    }

    /// Saves the state of applications before a change, in case it is undone.
    fn keep_before(&mut self, change: ChangeId, applications: &[Name]) {
        let before = applications.iter().map(|application| {
            let state = self.books.applications.get(application).cloned();
            // Steps that were not posted are not restored.
            let state = state.map(|it| Json::new(ApplicationState { rollout: None, ..ApplicationState::clone(&it) }));
            Before { application: application.clone(), state }
        });
        let before = before.collect();
        self.books.before.insert(change, before);
    }

    /// Restores what was requested before a change, because the change is undone. Version numbers are not reused: an earlier
    /// version that is restored gets a new number.
    pub(super) fn restore(&mut self, at: Moment, change: ChangeId) {
        for Before { application, state } in self.books.before.remove(&change).unwrap_or_default() {
            let now = self.books.applications.remove(&application);
            let Some(state) = state else { continue };
            let mut restored = ApplicationState::clone(&state.0);
            if let Some(now) = now {
                let was = restored.version().clone();
                let last = now.version().number;
                restored.versions = now.versions.clone();
                if was.number != last {
                    let rolls_back_to = Some(last);
                    let by = "cancel".into();
                    let number = last + 1;
                    restored.add(Version { number, by, at_ms: at.0, intent: Intent::Rollback, rolls_back_to, ..was });
                }
            }
            self.books.applications.insert(application, Arc::new(restored));
        }
    }

    /// Records what becomes of an application.
    fn remember(
        &mut self,
        at: Moment,
        update: ApplicationUpdate,
        expansion: Option<Expansion>,
        by: &str,
        intent: Intent,
    ) {
        let ApplicationUpdate { application, version, .. } = update;
        let (VersionUpdate::Same | VersionUpdate::New { .. }) = version else {
            self.books.applications.remove(&application);
            return;
        };
        let empty = || ApplicationState {
            versions: Vec::new(),
            expansion: Expansion::empty(application.clone()),
            rollout: None,
            last_rollout: Vec::new(),
        };
        let state =
            Arc::make_mut(self.books.applications.entry(application.clone()).or_insert_with(|| Arc::new(empty())));
        if let Some(expansion) = expansion {
            state.expansion = expansion;
        }
        if let VersionUpdate::New { files, secrets, rolls_back_to } = version {
            let number = state.versions.last().map_or(0, |it| it.number) + 1;
            let files = ApplicationFiles::clone(&files.0);
            state.add(Version { number, by: by.into(), at_ms: at.0, intent, files, secrets, rolls_back_to });
        }
    }

    /// Cancels changes that are to be rolled back if they fail, and have. Of a rollout, the present step is undone and the
    /// steps after it are dropped.
    pub(super) fn cancel_failed(&mut self, at: Moment, outputs: &mut Outputs) {
        let failed = outputs.iter().filter_map(|output| match output {
            Output::Effect(Effect::Event(Event { news: News::OperationFailed(component, ..), .. })) => Some(*component),
            _ => None,
        });
        let failed: BTreeSet<ComponentId> = failed.collect();
        if failed.is_empty() || self.beside.cancelled_on_failure.is_empty() {
            return;
        }
        for first in self.beside.cancelled_on_failure.clone() {
            let rollout = self.books.applications.iter().find_map(|(name, it)| {
                let rollout = it.rollout.as_ref().filter(|it| it.first == first.0)?;
                Some((name.clone(), ChangeId(rollout.present())))
            });
            let change = rollout.as_ref().map_or(first, |(_, present)| *present);
            let manager = &self.books.manager;
            if !manager.watched(change).any(|it| it.id.is_some_and(|id| failed.contains(&id))) {
                continue;
            }
            self.beside.cancelled_on_failure.remove(&first);
            if let Some((name, _)) = rollout {
                self.end_rollout(&name);
            }
            let about = format!("roll back change {change}, because an operation failed");
            let request = Request::Cancel(change);
            outputs.push(Output::Effect(Effect::Requested(Box::new(request.clone()))));
            outputs.extend(self.ask(at, request, &about, BTreeMap::new()));
        }
    }

    /// Posts the next step of every rollout that may continue; ends those that are complete.
    pub(super) fn advance_rollouts(&mut self, at: Moment, outputs: &mut Outputs) {
        let rolling = self.books.applications.iter().filter(|(_, it)| it.rollout.is_some());
        let rolling: Vec<Name> = rolling.map(|(name, _)| name.clone()).collect();
        for name in rolling {
            self.advance_rollout(at, &name, outputs);
        }
    }

    fn advance_rollout(&mut self, at: Moment, name: &Name, outputs: &mut Outputs) {
        // A step may be done as soon as it is posted; then the next follows at once.
        while let Some(rollout) = self.books.applications.get(name).and_then(|it| it.rollout.as_ref()) {
            let next = rollout.next(name, self.books.manager.book(), self.view().is_done(rollout.present()));
            let mut rollout = rollout.clone();
            match next {
                Next::Wait(_) | Next::Blocked => return,
                Next::Canary if rollout.promotes_at_ms.is_some() => return,
                Next::Canary => match rollout.promote_after_ms {
                    None => return,
                    Some(pause_ms) => {
                        let due = Moment(at.0.saturating_add(pause_ms));
                        rollout.promotes_at_ms = Some(due.0);
                        outputs.push(Output::Effect(Effect::PromoteAt(name.clone(), ChangeId(rollout.first), due)));
                        self.set_rollout(name, Some(rollout));
                        return;
                    }
                },
                Next::Finished => {
                    self.beside.cancelled_on_failure.remove(&ChangeId(rollout.first));
                    self.end_rollout(name);
                }
                Next::Post => {
                    let Some(step) = rollout.ahead.pop_front() else { return };
                    let which = format!(" (step {} of {})", rollout.posted.len() + 1, rollout.steps);
                    match self.post(at, &step, &rollout.about, &which, outputs) {
                        _ if step.change.edits.is_empty() => {}
                        Ok(change) => {
                            self.keep_before(change, std::slice::from_ref(name));
                            rollout.posted.push(change.0);
                            self.beside.origins.note_step(change, rollout.first);
                        }
                        Err(refusals) => {
                            rollout.blocked = refusals.iter().map(ToString::to_string).collect();
                            rollout.ahead.push_front(step);
                            self.set_rollout(name, Some(rollout));
                            return;
                        }
                    }
                    if let Some(expansion) = step.expansions.first()
                        && let Some(state) = self.books.applications.get_mut(name)
                    {
                        Arc::make_mut(state).expansion = Expansion::clone(&expansion.0);
                    }
                    self.set_rollout(name, Some(rollout));
                }
            }
        }
    }

    pub(super) fn set_rollout(&mut self, name: &Name, rollout: Option<Rollout>) {
        if let Some(state) = self.books.applications.get_mut(name) {
            Arc::make_mut(state).rollout = rollout;
        }
    }

    /// Ends a rollout. Its changes are kept for clients that follow it and have not seen the last ones yet.
    pub(super) fn end_rollout(&mut self, name: &Name) {
        if let Some(state) = self.books.applications.get_mut(name) {
            let state = Arc::make_mut(state);
            state.last_rollout = state.rollout.take().map(|it| it.posted).unwrap_or_default();
        }
    }

    /// The rollout of an application that began with this change.
    pub(super) fn rollout(&self, application: &Name, first: ChangeId) -> Option<&Rollout> {
        self.books.applications.get(application)?.rollout.as_ref().filter(|it| it.first == first.0)
    }
}
