//! The routes that change something.

use super::{
    Api, TokensError,
    applications::{DryRun, forecast_change, plan_data},
    now_ms,
    problem::{Problem, json},
    reading::{Asked, Document, Named, Operator, Part},
};
use crate::document::{Accepted, JoinToken, NewChange, NewJoinToken, NewToken, OperatorToken};
use crate::executor::LOCAL;
use crate::machine::Wishes;
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use protocol::{
    Name,
    manager::{News, Request},
};
use runtime::VmName;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Validity of a join token: the default, and the maximum.
const VALID_S: u64 = 3_600;
const VALID_S_MAX: u64 = 30 * 24 * 3_600;
/// Maximum number of characters in the name of a token.
const TOKEN_NAME_MAX: usize = 128;

impl Api {
    async fn ask(&self, by: &str, request: Request, clouds: BTreeMap<Name, String>) -> Result<Response, Problem> {
        // Read before the request is made, so that a stream of later events misses nothing.
        let events_after = *self.manager.newest().borrow();
        self.answer(events_after, self.manager.ask(by, request, clouds).await?)
    }

    fn answer(&self, events_after: u64, news: News) -> Result<Response, Problem> {
        match news {
            News::Accepted(change) => Ok(json(StatusCode::ACCEPTED, &Accepted { change: change.0, events_after })),
            News::Refused(refusals) => Err(refusals.into()),
            other => {
                tracing::error!(?other, "a request got an unexpected answer");
                Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the manager gave no answer to the request"))
            }
        }
    }
}

pub(super) async fn make(
    State(api): State<Api>,
    Operator(by): Operator,
    Asked(query): Asked<DryRun>,
    Document(mut change): Document<NewChange>,
) -> Result<Response, Problem> {
    if change.has_secret_references() {
        let filled = api.manager.look(move |machine| {
            let problems = change.resolve_secrets(machine.book());
            (change, problems)
        });
        let problems;
        (change, problems) = filled.await?;
        if !problems.is_empty() {
            return Err(Problem::malformed("secrets cannot be reused", problems));
        }
    }
    let NewChange { delete_data, start_empty, rollback_on_failure, .. } = change.clone();
    let (change, clouds) = change.read().map_err(|problems| Problem::malformed("the change is malformed", problems))?;
    let unknown: BTreeSet<&String> = clouds.values().filter(|cloud| *cloud != LOCAL).collect();
    if !unknown.is_empty() {
        let problems = unknown.iter().map(|cloud| format!("there is no cloud {cloud:?} (known: {LOCAL})")).collect();
        return Err(Problem::malformed("no cloud can create the VMs; nothing has changed", problems));
    }
    let data = plan_data(&api, &change, delete_data, start_empty).await?;
    if query.dry_run {
        return forecast_change(&api, change, data).await;
    }
    if !data.refused.is_empty() {
        return Err(Problem::refused(data.refused));
    }
    let wishes = Wishes { delete_data: data.delete, rollback_on_failure };
    let events_after = *api.manager.newest().borrow();
    api.answer(events_after, api.manager.ask_with(&by, Request::Make(change), clouds, wishes).await?)
}

pub(super) async fn retry(
    State(api): State<Api>,
    Operator(by): Operator,
    Named(component): Named,
) -> Result<Response, Problem> {
    api.ask(&by, Request::Retry(component), BTreeMap::new()).await
}

pub(super) async fn skip(
    State(api): State<Api>,
    Operator(by): Operator,
    Named(component): Named,
) -> Result<Response, Problem> {
    api.ask(&by, Request::Skip(component), BTreeMap::new()).await
}

pub(super) async fn lost(
    State(api): State<Api>,
    Operator(by): Operator,
    Named(vm): Named,
) -> Result<Response, Problem> {
    api.ask(&by, Request::DeclareLost(vm), BTreeMap::new()).await
}

pub(super) async fn invite(
    State(api): State<Api>,
    Document(edit): Document<NewJoinToken>,
) -> Result<Response, Problem> {
    let vm = edit.vm.as_deref().map(VmName::parse).transpose();
    let vm = vm.map_err(|error| Problem::malformed("the VM's name is malformed", vec![error.to_string()]))?;
    let valid_s = edit.good_for_s.unwrap_or(VALID_S);
    if valid_s == 0 || valid_s > VALID_S_MAX {
        let error = format!("a join token is valid for 1 to {VALID_S_MAX} seconds, not {valid_s}");
        return Err(Problem::malformed(error, Vec::new()));
    }
    let text = api.manager.invite(vm, valid_s).await?;
    let expires_at_ms = now_ms().saturating_add(valid_s.saturating_mul(1_000));
    Ok(json(StatusCode::CREATED, &JoinToken { text, expires_at_ms }))
}

pub(super) async fn create_token(
    State(api): State<Api>,
    Document(edit): Document<NewToken>,
) -> Result<Response, Problem> {
    if edit.name.chars().count() > TOKEN_NAME_MAX || edit.name.chars().any(char::is_control) {
        let error = format!("the name of a token has at most {TOKEN_NAME_MAX} characters, and no control characters");
        return Err(Problem::malformed(error, Vec::new()));
    }
    let made = with_tokens(&api, move |tokens| tokens.create(&edit.name, edit.role, now_ms())).await?;
    let (text, token) = made;
    Ok(json(StatusCode::CREATED, &OperatorToken { text, token }))
}

pub(super) async fn revoke_token(State(api): State<Api>, Part(id): Part) -> Result<Response, Problem> {
    with_tokens(&api, move |tokens| tokens.revoke(&id)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Changes the tokens on a blocking thread, so that the disk does not delay other requests.
async fn with_tokens<T: Send + 'static>(
    api: &Api,
    change: impl FnOnce(&super::Tokens) -> Result<T, TokensError> + Send + 'static,
) -> Result<T, Problem> {
    let tokens = Arc::clone(&api.tokens);
    let failed = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the tokens could not be changed");
    let changed = tokio::task::spawn_blocking(move || change(&tokens)).await.map_err(|_| failed())?;
    changed.map_err(|error| match &error {
        TokensError::Unknown(_) => Problem::not_found(error.to_string()),
        TokensError::TooMany | TokensError::LastAdmin(_) => Problem::new(StatusCode::CONFLICT, error.to_string()),
        TokensError::Read(..) | TokensError::Damaged(..) | TokensError::Write(_) | TokensError::Random => {
            tracing::error!(%error, "the tokens could not be changed");
            failed()
        }
    })
}
