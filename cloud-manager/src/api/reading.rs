//! Input from outside, checked once: names in addresses, query strings, bodies.

use super::{Api, problem::Problem};
use crate::document::Token;
use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::{StatusCode, header, request::Parts},
};
use http_body_util::BodyExt;
use protocol::Name;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

/// A name in the address.
pub(super) struct Named(pub(super) Name);

impl FromRequestParts<Api> for Named {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let Part(text) = Part::from_request_parts(parts, api).await?;
        Name::new(&text).map(Self).map_err(|error| Problem::malformed(error.to_string(), Vec::new()))
    }
}

/// Some other text in the address.
pub(super) struct Part(pub(super) String);

impl FromRequestParts<Api> for Part {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let Path(text) = Path::<String>::from_request_parts(parts, api).await.map_err(|error| {
            Problem::malformed(format!("the address is malformed: {}", error.body_text()), Vec::new())
        })?;
        Ok(Self(text))
    }
}

/// The name of the token that was presented.
pub(super) struct Operator(pub(super) String);

impl FromRequestParts<Api> for Operator {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Problem> {
        Ok(Self(parts.extensions.get::<Token>().map(|token| token.name.clone()).unwrap_or_default()))
    }
}

/// The query string. An unknown parameter is an error: `?dryrun=true` must not change anything.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Api> for Asked<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Problem> {
        let query = Query::<T>::try_from_uri(&parts.uri);
        let query =
            query.map_err(|error| Problem::malformed("the query string is malformed", vec![error.body_text()]))?;
        Ok(Self(query.0))
    }
}

/// A document in the body.
pub(super) struct Document<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Api> for Document<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, api: &Api) -> Result<Self, Problem> {
        let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
        let bytes_max = api.settings.body_bytes_max;
        let reading = read_whole(request.into_body(), declared, bytes_max);
        let bytes = timeout(api.settings.body_timeout, reading).await.map_err(|_| {
            Problem::new(StatusCode::REQUEST_TIMEOUT, "the body of the request took too long to arrive")
        })??;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| {
            // The error of serde_json has the place: "… at line 3 column 14".
            Problem::malformed("the body is not the expected JSON document", vec![error.to_string()])
        })
    }
}

/// Reads a body up to a limit. Of a longer one, some more is read and discarded, because many clients read the answer only
/// after they have sent everything.
async fn read_whole(mut body: Body, declared: Option<usize>, bytes_max: usize) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::with_capacity(declared.unwrap_or(0).min(bytes_max));
    let mut length = 0_usize;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Problem::malformed(format!("the body ended early: {error}"), Vec::new()))?;
        let Ok(data) = frame.into_data() else { continue };
        length = length.saturating_add(data.len());
        if length <= bytes_max {
            bytes.extend_from_slice(&data);
        } else if length > bytes_max.saturating_mul(4) {
            break;
        }
    }
    if length > bytes_max {
        let error = format!("the body is longer than the limit of {bytes_max} bytes");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, error));
    }
    Ok(bytes)
}
