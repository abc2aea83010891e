//! Failures of requests: problems (RFC 9457) in the API, error pages elsewhere.

use std::error::Error;
use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use greenroom::StageError;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::TextError;
use crate::store::StoreError;

/// The reason why a request failed, each with its status.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// 400: the request cannot be understood.
    #[error("{0}")]
    Malformed(String),
    /// 401: nobody is logged in, or the signature or password is wrong.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// 401: the request is signed, but its signature is not valid.
    #[error("{0}")]
    BadSignature(String),
    /// 403: the user is not allowed to do this.
    #[error("{0}")]
    Forbidden(&'static str),
    /// 404: the named thing does not exist.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// 409: the request contradicts the stored state.
    #[error("{0}")]
    Conflict(String),
    /// 413: the body or a file in it is too large.
    #[error("{0}")]
    TooLarge(String),
    /// 415: the file is not a picture of a supported kind.
    #[error("{0}")]
    Unsupported(String),
    /// 422: the value of a field is not allowed.
    #[error(transparent)]
    Invalid(#[from] TextError),
    /// 429: a rate limit of the client is exceeded.
    #[error("too many requests")]
    TooMany {
        /// The time to wait before a retry.
        retry_after: Duration,
    },
    /// 502: the third party failed, or its response is not valid.
    #[error("the other service failed: {0}")]
    BadUpstream(String),
    /// 504: the third party did not respond in time.
    #[error("the other service did not respond in time")]
    UpstreamTimeout,
    /// 503, with `Retry-After`: something is unavailable for now.
    #[error("{what} is not available at the moment; try again")]
    Unavailable {
        /// A noun phrase for the unavailable thing.
        what: &'static str,
        /// The time to wait before a retry.
        retry_after: Duration,
        /// The cause, for the log only.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// 500: a fault of this program.
    #[error("something went wrong here")]
    Internal(#[source] Box<dyn Error + Send + Sync>),
}

/// The time after which a client may retry if the storage is unavailable.
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
    /// Wraps any error as a fault of this program.
    pub fn internal(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Internal(source.into())
    }

    /// Takes the error of a stage that is overloaded, or whose work panicked; `what` is a noun
    /// phrase for its queue.
    pub(crate) fn of_stage(error: StageError, what: &'static str) -> Self {
        match error {
            StageError::Rejected(rejected) => Self::Unavailable {
                what,
                retry_after: Duration::from_secs(rejected.retry_after),
                source: Some(rejected.into()),
            },
            StageError::Panicked(panicked) => Self::internal(panicked),
        }
    }

    /// Returns the status of the response.
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

    /// Returns the name of the field of a form or of JSON whose value is not allowed.
    #[must_use]
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Self::Invalid(error) => Some(error.field),
            _ => None,
        }
    }

    /// Returns the header field `Retry-After` if a retry may help: whole seconds, at least one.
    #[must_use]
    pub fn retry_after(&self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::TooMany { retry_after } | Self::Unavailable { retry_after, .. } => {
                let round_up = u64::from(retry_after.subsec_nanos() > 0);
                let seconds = (retry_after.as_secs() + round_up).max(1);
                Some((RETRY_AFTER, seconds.into()))
            }
            _ => None,
        }
    }

    /// Logs faults of this program and of its dependencies with all their causes, none of which the
    /// client gets to see.
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

/// The reason why a request failed, as the API reports it (RFC 9457).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the status says what kind of problem it is.
    pub r#type: String,
    /// The standard phrase of the status.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The fault of this request, and what would be allowed.
    pub detail: String,
    /// The name of the field whose value is not allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl Problem {
    /// Creates a problem of this status; `detail` is the text for the user.
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
