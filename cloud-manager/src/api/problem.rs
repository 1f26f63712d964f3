//! The answer to a request that was not carried out.

use crate::{
    document::Problems,
    handle::{CallError, Halted},
};
use axum::{
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use protocol::Refusal;

/// Why a request was not carried out.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    problems: Problems,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = std::iter::once(&self.problems.error).chain(&self.problems.problems);
        formatter.write_str(&all.map(String::as_str).collect::<Vec<_>>().join("; "))
    }
}

impl Problem {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, problems: Problems { error: error.into(), ..Problems::default() } }
    }

    pub(super) fn malformed(error: impl Into<String>, problems: Vec<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            problems: Problems { error: error.into(), problems, places: Vec::new() },
        }
    }

    /// The application's files have errors; each problem has its place.
    pub(super) fn files(problems: application::Problems) -> Self {
        let texts = problems.0.iter().map(|it| format!("{}:{}:{}: {}", it.file, it.line, it.column, it.says)).collect();
        let error = "the application's files have errors; nothing has changed".into();
        let problems = Problems { error, problems: texts, places: problems.0 };
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, problems }
    }

    /// The machine would refuse, or refused.
    pub(super) fn refused(problems: Vec<String>) -> Self {
        let error = "the manager refused; nothing has changed".into();
        Self { status: StatusCode::CONFLICT, problems: Problems { error, problems, places: Vec::new() } }
    }

    pub(crate) fn not_found(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }
}

impl From<Vec<Refusal>> for Problem {
    fn from(refusals: Vec<Refusal>) -> Self {
        Self::refused(refusals.iter().map(Refusal::to_string).collect())
    }
}

impl From<Halted> for Problem {
    fn from(halted: Halted) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, halted.to_string())
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        let status = match error {
            CallError::Unknown(_) => StatusCode::NOT_FOUND,
            CallError::Halted(_) | CallError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = json(self.status, &self.problems);
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, value: &impl serde::Serialize) -> Response {
    let (status, bytes) = match serde_json::to_vec(value) {
        Ok(bytes) => (status, bytes),
        Err(error) => {
            tracing::error!(%error, "an answer could not be serialised as JSON");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                br#"{"error":"the answer could not be serialised","problems":[]}"#.to_vec(),
            )
        }
    };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
