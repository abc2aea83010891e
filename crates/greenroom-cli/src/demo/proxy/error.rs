//! The reasons for which `/proxy` has no response to relay, and whose fault each is.

use std::error::Error;
use std::io;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hyper_util::client::legacy;

pub(in crate::demo) enum RelayError {
    ConnectTimeout,
    HeadTimeout,
    NoUpstream,
    Unreachable(legacy::Error),
    Unusable(legacy::Error),
}

impl From<legacy::Error> for RelayError {
    fn from(error: legacy::Error) -> Self {
        if is_timeout(&error) {
            Self::ConnectTimeout
        } else if error.is_connect() {
            Self::Unreachable(error)
        } else {
            Self::Unusable(error)
        }
    }
}

impl IntoResponse for RelayError {
    fn into_response(self) -> Response {
        let (status, text) = match &self {
            Self::ConnectTimeout => (
                StatusCode::GATEWAY_TIMEOUT,
                "The upstream did not accept a connection in time.\n",
            ),
            Self::HeadTimeout => (
                StatusCode::GATEWAY_TIMEOUT,
                "The upstream did not begin its response in time.\n",
            ),
            Self::NoUpstream => (
                StatusCode::NOT_FOUND,
                "No upstream is configured: start the server with --upstream URL.\n",
            ),
            Self::Unreachable(_) => (
                StatusCode::BAD_GATEWAY,
                "The upstream refused the connection or cannot be reached.\n",
            ),
            Self::Unusable(_) => (
                StatusCode::BAD_GATEWAY,
                "The upstream closed the connection or did not respond in HTTP.\n",
            ),
        };
        if let Self::Unreachable(error) | Self::Unusable(error) = &self {
            let cause = root_cause(error);
            tracing::warn!(error = %error, cause = %cause, "the upstream failed");
        }
        (status, text).into_response()
    }
}

fn is_timeout(error: &legacy::Error) -> bool {
    root_cause(error)
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
}

fn root_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause
}
