use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use greenroom_http::BodyLength;
use h3::error::StreamError;
use h3::server::RequestStream;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Request};
use http_body::Frame;

use super::streams::Stream;
use super::transport::RecvStream;
use crate::Limits;
use crate::body::{BodyError, Feeder, Noted, Pace, RequestBody, pair};
use crate::handover::body::Part;
use crate::quic::STREAM_BYTES_MAX;

pub(super) type Received = RequestStream<RecvStream, Part>;

/// Brings the application the body of a request, one part at a time: the client is read when the
/// part before was taken.
pub(super) struct Pump {
    received: Received,
    feeder: Feeder,
    noted: Noted,
    pace: Pace,
    promised: Option<u64>,
    /// The part that came with the head.
    first: Option<Bytes>,
    /// The trailers, once the content has ended.
    trailers: Option<HeaderMap>,
    is_ended: bool,
    stream: Rc<Stream>,
}

/// The result of a step of a pump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pumped {
    /// There is something to take, which may be the end.
    Something,
    Nothing,
    /// It is at its end.
    Over,
}

/// A body, and what brings it if it did not come with its head.
pub(super) struct Begun {
    pub(super) body: RequestBody,
    pub(super) noted: Option<Noted>,
    pub(super) pump: Option<Pump>,
}

/// Begins the body of `request`.
pub(super) async fn begin(
    request: &Request<()>,
    mut received: Received,
    limits: &Limits,
    stream: &Rc<Stream>,
) -> Begun {
    let first = poll_fn(|cx| {
        let polled = received.poll_recv_data(cx);
        Poll::Ready(polled.map_ok(|data| data.map(|mut data| take_all(&mut data))))
    });
    let first = first.await;
    if let Poll::Ready(Ok(None)) = first
        && promised(request).unwrap_or(0) == 0
    {
        return Begun {
            body: RequestBody::empty(),
            noted: None,
            pump: None,
        };
    }
    let noted = Noted::default();
    let promised = promised(request);
    let length = promised.map_or(BodyLength::Chunked, BodyLength::Exact);
    let (feeder, reader) = pair(length, limits.body_bytes_max, noted.pace.clone());
    let mut pump = Pump {
        received,
        feeder,
        noted: noted.clone(),
        pace: Pace::new(limits),
        promised,
        first: None,
        trailers: None,
        is_ended: false,
        stream: Rc::clone(stream),
    };
    match first {
        Poll::Ready(Ok(Some(bytes))) => pump.first = Some(bytes),
        Poll::Ready(Ok(None)) => pump.is_ended = true,
        Poll::Ready(Err(error)) => {
            pump.refuse(reason(&error));
        }
        Poll::Pending => {}
    }
    Begun {
        body: RequestBody::streamed(reader.without_turns()),
        noted: Some(noted),
        pump: Some(pump),
    }
}

/// The length of the content, if the head says it. It was checked, or is refused anyway.
fn promised(request: &Request<()>) -> Option<u64> {
    let length = request.headers().get(CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

fn take_all(data: &mut impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}

impl Pump {
    /// Counts what QUIC may hold of the body.
    pub(super) fn hold(&self) {
        let window = u64::from(STREAM_BYTES_MAX);
        let promised = self.promised.unwrap_or(window);
        self.stream.hold_body(promised.min(window));
    }

    /// Takes one step, if the application waits for it.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Pumped {
        if !self.feeder.is_wanted(cx) {
            return Pumped::Nothing;
        }
        if self.feeder.exceeds_limit(0) {
            return self.end(Err(BodyError::TooLarge));
        }
        if let Some(trailers) = self.trailers.take() {
            self.feeder.feed(Frame::trailers(trailers), cx);
            return Pumped::Something;
        }
        if self.is_ended {
            return self.end_whole();
        }
        let polled = if let Some(bytes) = self.first.take() {
            Poll::Ready(Ok(Some(bytes)))
        } else {
            let polled = self.received.poll_recv_data(cx);
            polled.map_ok(|data| data.map(|mut data| take_all(&mut data)))
        };
        match polled {
            Poll::Pending => self.wait(cx),
            Poll::Ready(Ok(Some(bytes))) => self.feed(bytes, cx),
            Poll::Ready(Ok(None)) => self.end_content(cx),
            Poll::Ready(Err(error)) => self.refuse(reason(&error)),
        }
    }

    fn wait(&mut self, cx: &mut Context<'_>) -> Pumped {
        let is_over = self.pace.poll_over(self.feeder.received, cx).is_ready();
        if is_over && !self.noted.pace.is_lifted() {
            return self.refuse(BodyError::TooSlow);
        }
        Pumped::Nothing
    }

    fn feed(&mut self, bytes: Bytes, cx: &mut Context<'_>) -> Pumped {
        self.pace.heard();
        let received = self.feeder.received + bytes.len() as u64;
        if self.promised.is_some_and(|promised| received > promised) {
            return self.refuse(BodyError::Malformed);
        }
        if self.feeder.exceeds_limit(bytes.len()) {
            return self.end(Err(BodyError::TooLarge));
        }
        self.feeder.feed(Frame::data(bytes), cx);
        Pumped::Something
    }

    /// The content is at its end. Trailers may follow.
    fn end_content(&mut self, cx: &mut Context<'_>) -> Pumped {
        match self.received.poll_recv_trailers(cx) {
            Poll::Pending => self.wait(cx),
            Poll::Ready(Ok(trailers)) => {
                self.trailers = trailers;
                self.is_ended = true;
                self.poll(cx)
            }
            Poll::Ready(Err(error)) => self.refuse(reason(&error)),
        }
    }

    /// A body that is shorter than its head says is malformed (RFC 9114, 4.1.2).
    fn end_whole(&mut self) -> Pumped {
        let promised = self.promised.unwrap_or(self.feeder.received);
        if promised == self.feeder.received {
            self.end(Ok(()))
        } else {
            self.refuse(BodyError::Malformed)
        }
    }

    /// Has the server respond to this, whatever the application makes of it.
    fn refuse(&mut self, error: BodyError) -> Pumped {
        self.noted.rejected.get_or_init(|| error);
        self.end(Err(error))
    }

    fn end(&mut self, end: Result<(), BodyError>) -> Pumped {
        self.feeder.end(end);
        self.stream.hold_body(0);
        Pumped::Over
    }
}

fn reason(error: &StreamError) -> BodyError {
    match error {
        StreamError::StreamError { .. } | StreamError::HeaderTooBig { .. } => BodyError::Malformed,
        _ => BodyError::Disconnected,
    }
}
