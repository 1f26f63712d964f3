//! The checks that every request passes: limits, token or session, role, timeout.

use super::{Api, problem::Problem};
use crate::dashboard;
use crate::document::{Role, Token};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use std::time::Duration;
use tokio::time::timeout;

/// Admits a request if its token has the role that the route requires; a route without a role needs no token.
pub(super) async fn guard(
    State((api, role, is_long)): State<(Api, Option<Role>, bool)>,
    mut request: Request,
    next: Next,
) -> Response {
    match authorise(&api, role, request.method(), request.headers()) {
        Err(problem) => problem.into_response(),
        Ok(token) => {
            token.map(|token| request.extensions_mut().insert(token));
            let limit = if is_long { api.settings.plan_timeout } else { api.settings.answer_timeout };
            let answer = work(&api, limit, request, next).await.unwrap_or_else(Problem::into_response);
            api.metrics.answered(answer.status().as_u16());
            answer
        }
    }
}

fn authorise(api: &Api, role: Option<Role>, method: &Method, headers: &HeaderMap) -> Result<Option<Token>, Problem> {
    let Some(role) = role else { return Ok(None) };
    let token = match headers.contains_key(header::AUTHORIZATION) || !headers.contains_key(header::COOKIE) {
        true => presented(api, headers)?,
        false => dashboard::token_of(api, method, headers)?,
    };
    if token.role < role {
        let error = format!("the token has the role {}, but this requires the role {role}", token.role);
        return Err(Problem::new(StatusCode::FORBIDDEN, error));
    }
    Ok(Some(token))
}

/// The token that a request presents.
fn presented(api: &Api, headers: &HeaderMap) -> Result<Token, Problem> {
    let unknown = |error: &str| Problem::new(StatusCode::UNAUTHORIZED, error);
    let presented = headers.get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
    let text =
        presented.and_then(|text| text.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let (_, text) = text.ok_or_else(|| unknown("a token is required (send the header Authorization: Bearer TOKEN)"))?;
    let token = api.tokens.recognise(text.trim());
    token.ok_or_else(|| unknown("the token is unknown (it may have been revoked)"))
}

async fn work(api: &Api, limit: Duration, request: Request, next: Next) -> Result<Response, Problem> {
    if *api.halting.borrow() {
        return Err(crate::handle::Halted.into());
    }
    let busy = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many requests at once (try again in a moment)");
    let _room = api.requests.try_acquire().map_err(busy)?;
    timeout(limit, next.run(request)).await.map_err(|_| {
        let error =
            "the manager took too long to answer (the request may still be carried out: check before you retry)";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, error)
    })
}
