//! A request's body, as the application reads it.

mod from_hyper;
mod intake;
mod pace;
mod slot;

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};

#[cfg(feature = "http3")]
pub(crate) use from_hyper::Pace;
pub(crate) use from_hyper::{FromHyper, Noted, allowance};
pub(crate) use intake::{Intake, Open};
pub use pace::BodyPace;
pub(crate) use slot::{Feeder, Reader, pair};

/// The body of a request.
///
/// A short one that came with its head is there at once. A longer one is taken from the client only
/// as fast as it is read here, one frame at a time, so its size does not matter for memory.
#[derive(Debug)]
pub struct RequestBody(Kind);

#[derive(Debug)]
enum Kind {
    Empty,
    Full(Bytes),
    Streamed(Reader),
    Hyper(Box<FromHyper>),
}

impl RequestBody {
    /// A body of no bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self(Kind::Empty)
    }

    /// A body of these bytes.
    #[must_use]
    pub fn full(bytes: Bytes) -> Self {
        Self(Kind::Full(bytes))
    }

    pub(crate) fn streamed(reader: Reader) -> Self {
        Self(Kind::Streamed(reader))
    }

    pub(crate) fn from_hyper(body: FromHyper) -> Self {
        Self(Kind::Hyper(Box::new(body)))
    }

    /// The whole body, if it is there already; else the body itself.
    ///
    /// # Errors
    ///
    /// The body, unchanged, if it is still to be received.
    pub fn try_into_bytes(self) -> Result<Bytes, Self> {
        match self.0 {
            Kind::Empty => Ok(Bytes::new()),
            Kind::Full(bytes) => Ok(bytes),
            other => Err(Self(other)),
        }
    }
}

/// The reason why the rest of a body cannot be read.
///
/// What the application responds to [`TooLarge`](Self::TooLarge) is what the client gets. A body
/// that is malformed or too slow ends its request instead: the server drops the handler and
/// responds with [`status`](Self::status) itself, unless a response has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The connection ended before the body did.
    #[error("the client left before the end of the body")]
    Disconnected,
    /// The body's framing is broken.
    #[error("malformed body")]
    Malformed,
    /// The client sends more slowly than [`Limits::body_rate_min`](crate::Limits).
    #[error("the body came too slowly")]
    TooSlow,
    /// The body is over [`Limits::body_bytes_max`](crate::Limits).
    #[error("the body is larger than allowed")]
    TooLarge,
    /// The response is finished, or its handler gone, so nobody reads the body any more.
    #[error("the request is over")]
    Application,
}

impl BodyError {
    /// Returns the status that the client gets. It gets that too if the application's service fails
    /// with an error that has this one as its cause.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::Disconnected | Self::Malformed => StatusCode::BAD_REQUEST,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Application => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                self.0 = Kind::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Kind::Streamed(reader) => reader.poll_frame(cx),
            Kind::Hyper(body) => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Streamed(reader) => reader.is_end(),
            Kind::Hyper(body) => body.is_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Streamed(reader) => reader.size_hint(),
            Kind::Hyper(body) => body.size_hint(),
        }
    }
}
