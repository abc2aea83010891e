use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use greenroom_server::BoxError;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep};

use crate::attempt::Attempt;
use crate::upload::Upload;
use crate::upstream::{Failure, Permit, chain};

/// The body of a proxy's response: that of an upstream's as it comes, or the text of an error.
///
/// One that its upstream breaks off ends with an error, so that the server aborts the response and
/// the client cannot take it for whole.
pub struct ResponseBody(Kind);

enum Kind {
    Whole(Full<Bytes>),
    Streamed(Box<Streamed>),
}

struct Streamed {
    incoming: Incoming,
    idle_timeout: Duration,
    /// There once the upstream was waited for.
    idle: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
    permit: Permit,
    /// Ends with the body.
    attempt: Attempt,
    upload: Upload,
}

/// The rest of a response that will not come.
#[derive(Debug, thiserror::Error)]
#[error("the upstream broke off its response: {0}")]
struct BrokenOff(String);

impl ResponseBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(Full::new(bytes.into())))
    }

    pub(crate) fn streamed(
        incoming: Incoming,
        idle_timeout: Duration,
        (permit, attempt): (Permit, Attempt),
        upload: Upload,
    ) -> Self {
        Self(Kind::Streamed(Box::new(Streamed {
            incoming,
            idle_timeout,
            idle: None,
            is_waiting: false,
            permit,
            attempt,
            upload,
        })))
    }
}

impl Streamed {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) else {
            ready!(self.poll_idle(cx));
            let error = format!("no part of it for {:?}", self.idle_timeout);
            return Poll::Ready(Some(Err(self.broken_off(error))));
        };
        self.is_waiting = false;
        let frame = frame.map(|frame| frame.map_err(|error| self.broken_off(chain(&error))));
        Poll::Ready(frame)
    }

    /// Ready when the upstream was waited for too long.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let timeout = self.idle_timeout;
        let idle = self.idle.get_or_insert_with(|| Box::pin(sleep(timeout)));
        if !self.is_waiting {
            idle.as_mut().reset(Instant::now() + timeout);
            self.is_waiting = true;
        }
        idle.as_mut().poll(cx)
    }

    fn broken_off(&mut self, error: String) -> BrokenOff {
        // If the client left within its own body, the upstream is not to blame.
        if self.upload.fault().is_none() {
            self.permit.note(Failure::ResponseBody, &error);
            self.attempt.failed(Failure::ResponseBody.name());
        }
        BrokenOff(error)
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        self.upload.abandon();
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Whole(whole) => {
                let frame = Pin::new(whole).poll_frame(cx);
                frame.map_err(|never| match never {})
            }
            Kind::Streamed(streamed) => streamed.poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(whole) => whole.is_end_stream(),
            Kind::Streamed(streamed) => streamed.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(whole) => whole.size_hint(),
            Kind::Streamed(streamed) => streamed.incoming.size_hint(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Kind::Whole(_) => "Whole",
            Kind::Streamed(_) => "Streamed",
        };
        out.debug_tuple("ResponseBody").field(&kind).finish()
    }
}
