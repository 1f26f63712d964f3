//! The dashboard: pages for the browser, served on the port of the API and embedded in the program.
//!
//! A page is a shell without data. Its scripts ask the same API as the command line does, with the cookie of a session in the
//! place of a token; the guard of the API turns the cookie into the token that the session belongs to, and its role decides.
//! Nothing here knows what an application or a change is.
//!
//! | file | what it does |
//! |---|---|
//! | `sessions` | one-time links, sessions, what a request must carry |
//! | `cookies` | from the headers of a request to the session's token |
//! | `assets` | the files of the pages, and the headers that they are sent with |
//! | `assets/` | HTML, CSS and ES modules, written by hand; nothing is fetched from elsewhere |

mod assets;
mod cookies;
mod sessions;

pub(crate) use cookies::token_of;
pub(crate) use sessions::Sessions;

use crate::api::{Api, Problem, json, now_ms};
use crate::document::{DashboardLink, Session, Token};
use axum::{
    Extension, Router,
    extract::State,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use sessions::SESSION_S;

/// The routes of the pages. They ask for no token: a page shows nothing before its scripts have asked the API.
pub(crate) fn router() -> Router<Api> {
    let mut router = Router::new()
        .route("/dashboard/assets/{file}", get(assets::asset))
        .route("/dashboard/session", get(session).delete(log_out))
        .route("/dashboard/login", post(log_in));
    for page in ["/", "/login", "/attention", "/plan", "/changes", "/machines"] {
        router = router.route(page, get(assets::shell));
    }
    for page in ["/applications/{*name}", "/changes/{*id}", "/components/{*name}", "/machines/{*name}"] {
        router = router.route(page, get(assets::shell));
    }
    router
}

/// Makes a link that opens one session with the rights of the token that asks for it.
pub(crate) async fn link(State(api): State<Api>, Extension(token): Extension<Token>) -> Result<Response, Problem> {
    let made = api.sessions().link(&token, now_ms()).map_err(failed)?;
    // What stands after the # stays in the browser: no log and no preview of the link sees it.
    let link = DashboardLink { path: format!("/login#{}", made.secret), expires_at_ms: made.expires_at_ms };
    Ok(json(StatusCode::CREATED, &link))
}

/// Takes the secret of a link and answers with a cookie.
async fn log_in(State(api): State<Api>, headers: HeaderMap, secret: String) -> Result<Response, Problem> {
    cookies::check_same_site(&headers)?;
    let made = api.sessions().log_in(secret.trim(), now_ms()).map_err(failed)?;
    Ok(with_cookie(&headers, &made.secret, SESSION_S))
}

/// Who is logged in, and what its requests must carry.
async fn session(State(api): State<Api>, headers: HeaderMap) -> Result<Response, Problem> {
    let (token, csrf) = cookies::session_of(&api, &headers)?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let mut response = json(StatusCode::OK, &Session { name: token.name, role: token.role, csrf, version });
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

async fn log_out(State(api): State<Api>, headers: HeaderMap) -> Result<Response, Problem> {
    token_of(&api, &Method::DELETE, &headers)?;
    if let Some(secret) = cookies::secret(&headers) {
        api.sessions().log_out(secret, now_ms()).map_err(failed)?;
    }
    Ok(with_cookie(&headers, "", 0))
}

/// An answer without content that sets or clears the cookie.
fn with_cookie(headers: &HeaderMap, secret: &str, for_s: u64) -> Response {
    let name = cookies::name(headers);
    let cookie = format!("{name}={secret}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={for_s}");
    let mut response = StatusCode::NO_CONTENT.into_response();
    match HeaderValue::from_str(&cookie) {
        Ok(cookie) => drop(response.headers_mut().insert(header::SET_COOKIE, cookie)),
        Err(_) => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    response
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn failed(error: sessions::SessionError) -> Problem {
    let status = match error {
        sessions::SessionError::Link => StatusCode::UNAUTHORIZED,
        sessions::SessionError::Random | sessions::SessionError::Write(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Problem::new(status, error.to_string())
}
