//! The files of the pages, embedded in the program, and the headers that they are sent with.

use crate::api::Problem;
use axum::{
    body::Body,
    extract::Path,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use ring::digest;

/// Lists the files by name, with their type.
macro_rules! assets {
    ($($name:literal),* $(,)?) => {
        const ASSETS: &[(&str, &str)] = &[$(($name, include_str!(concat!("assets/", $name)))),*];
    };
}

assets!(
    "api.js",
    "application.js",
    "attention.js",
    "chart.js",
    "change.js",
    "component.js",
    "dialog.js",
    "dom.js",
    "format.js",
    "icon.svg",
    "layout.js",
    "live.js",
    "login.js",
    "machine.js",
    "main.js",
    "overview.js",
    "picture.js",
    "plan.js",
    "shell.html",
    "states.js",
    "style.css",
    "timeline.js",
);

/// What a page may load and do: only what comes from here. There is no inline script, no inline style and no text that
/// becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// The one page; its scripts read from the address what to show.
pub(super) async fn shell(headers: HeaderMap) -> Response {
    let (_, text) = ASSETS.iter().find(|(name, _)| *name == "shell.html").expect("the shell is in the list");
    sent("shell.html", text, &headers)
}

pub(super) async fn asset(Path(file): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    let found = ASSETS.iter().find(|(name, _)| *name == file);
    let (name, text) = found.ok_or_else(|| Problem::not_found("the dashboard has no such file"))?;
    Ok(sent(name, text, &headers))
}

fn sent(name: &str, text: &'static str, headers: &HeaderMap) -> Response {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    let tag: String = digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{tag}\"");
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|it| it.as_bytes() == tag.as_bytes());
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(text) });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let sort = match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    };
    let fixed = [
        (header::CONTENT_TYPE, sort),
        // Asked for anew each time, and sent only if it is another: a page never mixes two versions of the program.
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_fetched_from_elsewhere_and_nothing_becomes_markup() {
        for (name, text) in ASSETS {
            let foreign = text.match_indices("http").map(|(at, _)| &text[at..text.len().min(at + 40)]);
            let foreign: Vec<&str> =
                foreign.filter(|it| it.contains("://") && !it.starts_with("http://www.w3.org/")).collect();
            assert!(foreign.is_empty(), "{name}: {foreign:?}");
            for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"] {
                assert!(!text.contains(word), "{name} has {word}");
            }
        }
        let (_, shell) = ASSETS.iter().find(|(name, _)| *name == "shell.html").unwrap();
        assert!(!shell.contains("<style") && !shell.contains(" style=") && !shell.contains(" onclick"));
    }

    #[test]
    fn every_module_that_is_imported_is_embedded() {
        for (name, text) in ASSETS.iter().filter(|(name, _)| name.ends_with(".js")) {
            for line in text.lines().filter(|it| it.starts_with("import ") || it.starts_with("} from ")) {
                let file = line.split('"').nth(1).and_then(|it| it.strip_prefix("./"));
                let file = file.unwrap_or_else(|| panic!("{name}: {line}"));
                assert!(ASSETS.iter().any(|(name, _)| *name == file), "{name} imports {file}");
            }
        }
    }
}
