//! Why a request was not done. The API answers with it as a problem (RFC 9457), the pages as a page.

use std::error::Error;
use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::TextError;
use crate::store::StoreError;

/// Why a request was not done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// 400: it cannot be understood.
    #[error("{0}")]
    Malformed(String),
    /// 401: nobody is logged in, or the signature or password is wrong.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// 401: the request is signed, but not as it must be.
    #[error("{0}")]
    BadSignature(String),
    /// 403: this user may not.
    #[error("{0}")]
    Forbidden(&'static str),
    /// 404
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// 409: it contradicts what is there.
    #[error("{0}")]
    Conflict(String),
    /// 413
    #[error("{0}")]
    TooLarge(String),
    /// 415: it is no picture of a kind that is taken.
    #[error("{0}")]
    Unsupported(String),
    /// 422: a field is not allowed as it is.
    #[error(transparent)]
    Invalid(#[from] TextError),
    /// 429
    #[error("too many requests")]
    TooMany {
        /// When to try again.
        retry_after: Duration,
    },
    /// 502: the third party failed or lied.
    #[error("the other service failed: {0}")]
    BadUpstream(String),
    /// 504: the third party did not answer in time.
    #[error("the other service did not answer in time")]
    UpstreamTimeout,
    /// 503, with `Retry-After`: for now.
    #[error("{what} is not available at the moment; try again")]
    Unavailable {
        /// What is missing, in a word.
        what: &'static str,
        /// When to try again.
        retry_after: Duration,
        /// For the log.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// 500: our fault.
    #[error("something went wrong here")]
    Internal(#[source] Box<dyn Error + Send + Sync>),
}

/// When a client is to try again what failed for want of the storage.
const STORE_RETRY: Duration = Duration::from_secs(1);

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict(what) => Self::Conflict(what.to_owned()),
            StoreError::Unavailable(source) => Self::Unavailable {
                what: "the storage",
                retry_after: STORE_RETRY,
                source: Some(source),
            },
            StoreError::Broken(source) => Self::Internal(source),
        }
    }
}

impl Failure {
    /// Our fault, whatever it is.
    pub fn internal(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Internal(source.into())
    }

    /// What kind of answer it is.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Unauthenticated(_) | Self::BadSignature(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unsupported(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::BadUpstream(_) => StatusCode::BAD_GATEWAY,
            Self::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The field of a form or of JSON that is not allowed as it is.
    #[must_use]
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Self::Invalid(error) => Some(error.field),
            _ => None,
        }
    }

    /// The header `Retry-After`, if the client is to try again: whole seconds, at least one.
    #[must_use]
    pub fn retry_after(&self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::TooMany { retry_after } | Self::Unavailable { retry_after, .. } => {
                let part = u64::from(retry_after.subsec_nanos() > 0);
                let seconds = (retry_after.as_secs() + part).max(1);
                Some((RETRY_AFTER, seconds.into()))
            }
            _ => None,
        }
    }

    /// Tells the log, with all reasons, if it is our fault or that of what we depend on: who asked is told nothing of these.
    pub fn log(&self) {
        match self {
            Self::Internal(source) => tracing::error!(error = chain(source.as_ref()), "{self}"),
            Self::Unavailable {
                source: Some(source),
                ..
            } => tracing::warn!(error = chain(source.as_ref()), "{self}"),
            Self::BadUpstream(_) | Self::UpstreamTimeout | Self::Unavailable { .. } => {
                tracing::warn!("{self}");
            }
            _ => {}
        }
    }
}

fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// Why a request was not done, as the API says it (RFC 9457).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the status says what kind of problem it is.
    pub r#type: String,
    /// The status in words.
    pub title: String,
    /// The status of HTTP.
    pub status: u16,
    /// What is wrong with this request, and what is allowed.
    pub detail: String,
    /// The field that is not allowed as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl Problem {
    /// Of a status, and what is to be said beyond that.
    #[must_use]
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            r#type: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            field: None,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status);
        let media_type = [(CONTENT_TYPE, "application/problem+json")];
        (
            status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            media_type,
            Json(self),
        )
            .into_response()
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        self.log();
        let problem = Problem {
            field: self.field().map(str::to_owned),
            ..Problem::new(self.status(), self.to_string())
        };
        let mut response = problem.into_response();
        response.headers_mut().extend(self.retry_after());
        response
    }
}
