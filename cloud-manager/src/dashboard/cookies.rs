//! From the headers of a browser's request to the token that its session belongs to.
//!
//! Cookies do not know ports: two managers on one host would share one. So the port is part of the cookie's name.

use super::sessions::Sessions;
use crate::api::{Api, Problem, now_ms};
use crate::document::Token;
use axum::http::{HeaderMap, Method, StatusCode, header};

/// The header that a request must carry if it changes something.
const CSRF: &str = "x-holdfast-csrf";

/// The token of the session that a request belongs to. A request that changes something must carry what only a page of
/// this manager can know.
pub(crate) fn token_of(api: &Api, method: &Method, headers: &HeaderMap) -> Result<Token, Problem> {
    let secret = secret(headers).ok_or_else(logged_out)?;
    let token = api.sessions().token(api.tokens(), secret, now_ms()).ok_or_else(logged_out)?;
    if !method.is_safe() {
        check_same_site(headers)?;
        let presented = headers.get(CSRF).and_then(|it| it.to_str().ok()).unwrap_or_default();
        if !api.sessions().is_csrf(secret, presented) {
            let error =
                "the request lacks the session's own header, so it may come from another site (reload the page)";
            return Err(Problem::new(StatusCode::FORBIDDEN, error));
        }
    }
    Ok(token)
}

/// The token of the session, and what its requests must carry.
pub(super) fn session_of(api: &Api, headers: &HeaderMap) -> Result<(Token, String), Problem> {
    let token = token_of(api, &Method::GET, headers)?;
    let secret = secret(headers).ok_or_else(logged_out)?;
    Ok((token, Sessions::csrf(secret)))
}

/// Refuses what the browser says comes from another site.
pub(super) fn check_same_site(headers: &HeaderMap) -> Result<(), Problem> {
    let site = headers.get("sec-fetch-site").and_then(|it| it.to_str().ok());
    match site {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) => Err(Problem::new(StatusCode::FORBIDDEN, "the request comes from another site")),
    }
}

/// The secret in the cookie of this manager.
pub(super) fn secret(headers: &HeaderMap) -> Option<&str> {
    let name = name(headers);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
    let mut pairs = cookies.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, secret)| secret)
}

/// The name of the cookie. The prefix makes browsers insist on HTTPS, on the whole site, and on this host alone.
pub(super) fn name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| port.bytes().all(|it| it.is_ascii_digit()));
    format!("__Host-holdfast-{}", port.unwrap_or("443"))
}

fn logged_out() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "a token or a session is needed (log in with: holdfast dashboard)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn the_cookie_of_another_port_is_not_taken() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:7443"));
        let cookies = "a=b; __Host-holdfast-7444=other; __Host-holdfast-7443=own";
        headers.insert(header::COOKIE, HeaderValue::from_static(cookies));
        assert_eq!(secret(&headers), Some("own"));
        headers.insert(header::HOST, HeaderValue::from_static("[::1]:9"));
        assert_eq!(secret(&headers), None);
        assert_eq!(name(&HeaderMap::new()), "__Host-holdfast-443");
    }
}
