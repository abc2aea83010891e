use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use axum::response::{IntoResponse, Response};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use serde::Serialize;

/// The reason why a stage has no result: it is overloaded, or the work is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The stage had too much to do. The stage's own limit, and worth a later try.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The work panicked. The handler's fault; a second try would most likely do the same.
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

/// Work that was not begun, because it would have come too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stage is overloaded ({reason}); try again in {retry_after} s")]
pub struct Rejected {
    /// The limit that was reached.
    pub reason: Reason,
    /// Seconds after which another try may fare better; at least 1.
    pub retry_after: u64,
}

/// A limit of a stage that new work would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The predicted wait was over nine tenths of `queue_wait_max`.
    #[error("the wait would be too long")]
    Wait,
    /// `queue_max` runs were waiting.
    #[error("the queue is full")]
    QueueFull,
    /// It was admitted, and its turn came too late all the same.
    #[error("its turn came too late")]
    Late,
}

/// Work that panicked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the handler panicked: {message}")]
pub struct Panicked {
    message: String,
}

impl Panicked {
    /// Takes the message and drops the payload, whose destructor may panic too.
    pub(crate) fn of(payload: Box<dyn Any + Send>) -> Self {
        let panicked = Self::read(&*payload);
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            mem::forget(second);
        }
        panicked
    }

    fn read(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let message = text.unwrap_or("with a payload that is no text").to_owned();
        Self { message }
    }

    /// Returns the message of the panic.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// An extension of the responses that stages and placements make in a handler's place: 503 to work
/// that is rejected, 500 for a handler that panicked. Middleware tells these responses by it from
/// those of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageRejection {
    /// The reason as a line of text, without the line's end: `overloaded` or `the handler failed`.
    pub detail: &'static str,
}

impl IntoResponse for Error {
    /// Returns 503 or 500, by the cause.
    fn into_response(self) -> Response {
        match self {
            Self::Rejected(rejected) => rejected.into_response(),
            Self::Panicked(panicked) => panicked.into_response(),
        }
    }
}

impl IntoResponse for Rejected {
    /// Returns 503 with `Retry-After`. The connection is not closed.
    fn into_response(self) -> Response {
        overloaded(self.retry_after)
    }
}

/// Returns the response of an overloaded stage or loop.
pub(crate) fn overloaded(retry_after: u64) -> Response {
    let mut response = respond(StatusCode::SERVICE_UNAVAILABLE, "overloaded");
    let seconds = HeaderValue::from(retry_after);
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}

impl IntoResponse for Panicked {
    /// Returns 500, without the panic's message: that is for the log.
    fn into_response(self) -> Response {
        respond(StatusCode::INTERNAL_SERVER_ERROR, "the handler failed")
    }
}

fn respond(status: StatusCode, detail: &'static str) -> Response {
    let mut response = (status, format!("{detail}\n")).into_response();
    response.extensions_mut().insert(StageRejection { detail });
    response
}
