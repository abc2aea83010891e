//! Responses and log lines for handlers that fail.

use std::error::Error;

use http::StatusCode;

use crate::app::BoxError;
use crate::body::BodyError;
use crate::connection::About;

pub(crate) const PANICKED: &str = "the handler of this request failed";
const FAILED: &str = "this request could not be served";

/// Returns the response to an error of the application's service: the fault of the client's body if
/// that is its cause, else 500.
pub(crate) fn response_to(error: &BoxError, about: &About) -> (StatusCode, &'static str) {
    if let Some(status) = status_of_cause(error.as_ref()) {
        return (status, "the body of this request could not be read");
    }
    tracing::error!(error, route = about.route(), "the application failed");
    (StatusCode::INTERNAL_SERVER_ERROR, FAILED)
}

fn status_of_cause(error: &(dyn Error + 'static)) -> Option<StatusCode> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<BodyError>() {
            return Some(error.status());
        }
        cause = error.source();
    }
    None
}

pub(crate) fn log_panic(panic: &str, route: &str) {
    tracing::error!(panic, route, "a handler panicked");
}
