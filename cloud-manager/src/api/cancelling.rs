//! Cancelling changes and rollouts, and promoting rollouts.

use super::{
    Api,
    applications::DryRun,
    problem::{Problem, json},
    reading::{Asked, Operator, Part},
    view,
};
use crate::document::{ApplicationRequest, Cancellation, How, RollbackRequest};
use axum::{extract::State, http::StatusCode, response::Response};
use protocol::{
    ChangeId, Name,
    manager::{CancelOutlook, News, Request},
};
use std::collections::BTreeMap;

/// A rollout that has this change among its steps.
struct Found {
    application: Name,
    first: ChangeId,
    present: ChangeId,
    step: usize,
    steps: usize,
    /// The version that was replaced, if the rollout is not promoted yet.
    canary_of: Option<u64>,
}

async fn rollout_of(api: &Api, change: u64) -> Result<Option<Found>, Problem> {
    let found = api.manager.look_at_all(move |manager| {
        let mut rollouts = manager.applications.iter().filter_map(|(name, it)| Some((name, it, it.rollout.as_ref()?)));
        rollouts.find(|(_, _, rollout)| rollout.has(change)).map(|(name, state, rollout)| Found {
            application: name.clone(),
            first: ChangeId(rollout.first),
            present: ChangeId(rollout.present()),
            step: rollout.posted.len(),
            steps: rollout.steps,
            canary_of: rollout.canary_steps.and(state.version().rolls_back_to),
        })
    });
    Ok(found.await?)
}

fn number(text: &str) -> Result<u64, Problem> {
    text.parse().map_err(|_| Problem::not_found(format!("there is no change {text}")))
}

/// Cancels a change, or the rollout that it is a step of.
pub(super) async fn cancel(
    State(api): State<Api>,
    Operator(by): Operator,
    Part(id): Part,
    Asked(query): Asked<DryRun>,
) -> Result<Response, Problem> {
    let change = number(&id)?;
    let events_after = *api.manager.newest().borrow();
    let cancellation = Cancellation { change, will: Vec::new(), undone_by: None, events_after };
    match rollout_of(&api, change).await? {
        Some(found) => cancel_rollout(&api, &by, found, cancellation, query.dry_run).await,
        None => cancel_change(&api, &by, cancellation, query.dry_run).await,
    }
}

async fn cancel_change(
    api: &Api,
    by: &str,
    mut cancellation: Cancellation,
    dry_run: bool,
) -> Result<Response, Problem> {
    let change = ChangeId(cancellation.change);
    let outlook = api.manager.look(move |machine| machine.cancel_outlook(change)).await??;
    cancellation.will = in_words(&outlook);
    if dry_run {
        return Ok(json(StatusCode::OK, &cancellation));
    }
    match api.manager.ask(by, Request::Cancel(change), BTreeMap::new()).await? {
        News::Cancelling(_, outlook) => {
            cancellation.will = in_words(&outlook);
            Ok(json(StatusCode::ACCEPTED, &cancellation))
        }
        News::Refused(refusals) => Err(refusals.into()),
        other => {
            tracing::error!(?other, "a cancellation got an unexpected answer");
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the manager gave no answer to the request"))
        }
    }
}

/// What cancelling a change will do, in sentences.
fn in_words(outlook: &CancelOutlook) -> Vec<String> {
    let names = |names: &[Name]| names.iter().map(Name::to_string).collect::<Vec<_>>().join(", ");
    match outlook {
        CancelOutlook::Dropped => vec!["nothing of it has begun, so it is dropped and nothing changes".into()],
        CancelOutlook::Finished => vec!["what is under way is finished, and the rest is dropped".into()],
        CancelOutlook::Undone { removes, adds } => {
            let mut will = vec!["what was done is undone, and the rest is dropped".to_owned()];
            if !removes.is_empty() {
                will.push(format!("removed again: {}", names(removes)));
            }
            if !adds.is_empty() {
                will.push(format!("added again: {}", names(adds)));
            }
            will
        }
    }
}

/// Ends a rollout between two of its steps. A step that waits for a failed component is undone; any other is finished.
/// Canaries that were not promoted are replaced by the previous version.
async fn cancel_rollout(
    api: &Api,
    by: &str,
    found: Found,
    mut cancellation: Cancellation,
    dry_run: bool,
) -> Result<Response, Problem> {
    let Found { application, first, present, step, steps, canary_of } = found;
    let running = api.look(view::changes).await?;
    let is_stuck = running.iter().any(|it| it.change == present.0 && !it.stuck_on.is_empty());
    let outlook = api.manager.look(move |machine| machine.cancel_outlook(present)).await?;
    let undo = outlook.ok().filter(|_| is_stuck);
    let what = if undo.is_some() { "undone" } else { "finished" };
    cancellation.will.push(format!("step {step} of {steps} is {what}, and the steps after it are dropped"));
    if let Some(version) = canary_of {
        let line = format!("the components that were replaced return to version {version} of {application}");
        cancellation.will.push(line);
    }
    if dry_run {
        return Ok(json(StatusCode::OK, &cancellation));
    }
    api.manager.rollout(application.clone(), first, false).await?;
    cancellation.undone_by = Some(present.0);
    if undo.is_some() {
        api.manager.ask(by, Request::Cancel(present), BTreeMap::new()).await?;
    }
    if let Some(version) = canary_of {
        let request = RollbackRequest { application: application.to_string(), to: Some(version), how: How::default() };
        let (decision, present) = api.plan(ApplicationRequest::Rollback(request)).await?;
        let submitted = api.submit(by, &decision, &BTreeMap::new(), &present).await?;
        cancellation.undone_by = submitted.change;
    }
    Ok(json(StatusCode::ACCEPTED, &cancellation))
}

/// Continues a rollout after its canaries, or after its next step was refused.
pub(super) async fn promote(State(api): State<Api>, Part(id): Part) -> Result<Response, Problem> {
    let change = number(&id)?;
    let Some(Found { application, first, .. }) = rollout_of(&api, change).await? else {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            format!("change {change} is not a step of a rollout under way"),
        ));
    };
    let events_after = *api.manager.newest().borrow();
    api.manager.rollout(application, first, true).await?;
    Ok(json(StatusCode::ACCEPTED, &crate::document::Accepted { change, events_after }))
}
