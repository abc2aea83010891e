use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::http2::Stream;
use super::requests::UnderWay;
use crate::app::BoxError;
use crate::connection::message;
use crate::failure;

pin_project! {
    /// The body of a response; while it is there, its request is under way.
    ///
    /// Over HTTP/2 it is passed on in chunks, and the application is asked for more only as the
    /// client takes what was passed on. Of a body of several chunks the end is not passed on before
    /// the client has taken all: until then its stream can be reset.
    pub(super) struct ResponseBody<B> {
        #[pin]
        content: Content<B>,
        stream: Option<Rc<Stream>>,
        // What the application has given, and was not passed on.
        rest: Option<Bytes>,
        parts: u32,
        end: Option<End>,
        under_way: Option<UnderWay>,
    }
}

pin_project! {
    #[project = ContentProjection]
    pub(super) enum Content<B> {
        App { #[pin] body: B },
        Ours { line: Option<Bytes> },
    }
}

impl<B> Content<B> {
    /// Content of the server's own; none in response to HEAD (RFC 9110, 9.3.2).
    pub(super) fn ours(bytes: Bytes, is_head: bool) -> Self {
        let line = Some(bytes).filter(|bytes| !is_head && !bytes.is_empty());
        Self::Ours { line }
    }
}

/// The end of the content.
enum End {
    Bare,
    Trailers(HeaderMap),
}

/// One step of the content.
enum Given {
    Data(Bytes),
    End(End),
}

impl<B: Body<Error: Into<BoxError>>> ResponseBody<B> {
    pub(super) fn new(
        content: Content<B>,
        stream: Option<Rc<Stream>>,
        under_way: Option<UnderWay>,
    ) -> Self {
        let body = Self {
            content,
            stream,
            rest: None,
            parts: 0,
            end: None,
            under_way,
        };
        body.note_end();
        body
    }

    /// Notes it if all was passed on: hyper sees so by itself, and asks for nothing more.
    fn note_end(&self) {
        if let Some(stream) = &self.stream
            && self.is_end_stream()
        {
            stream.note_whole(true);
        }
    }

    /// Drops the content, of which nothing was passed on: the response has none.
    pub(super) fn leave_out(&mut self) {
        self.content = Content::Ours { line: None };
        self.note_end();
    }

    /// Has something to pass on in `rest`, or the end.
    fn poll_given(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let this = self.project();
        if this.rest.is_some() || this.end.is_some() {
            return Poll::Ready(Ok(()));
        }
        let poll = || this.content.poll_given(cx);
        let given = match catch_unwind(AssertUnwindSafe(poll)) {
            Ok(given) => ready!(given)?,
            Err(panic) => {
                let about = this.under_way.as_mut().map(UnderWay::about);
                let route = about.map(|about| about.route()).unwrap_or_default();
                failure::log_panic(&message(panic.as_ref()), &route);
                return Poll::Ready(Err(failure::PANICKED.into()));
            }
        };
        match given {
            Given::Data(data) => *this.rest = Some(data),
            Given::End(end) => *this.end = Some(end),
        }
        Poll::Ready(Ok(()))
    }
}

impl<B: Body<Error: Into<BoxError>>> Content<B> {
    fn poll_given(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Given, BoxError>> {
        let body = match self.project() {
            ContentProjection::Ours { line } => {
                let line = line.take().map(Given::Data);
                return Poll::Ready(Ok(line.unwrap_or(Given::End(End::Bare))));
            }
            ContentProjection::App { body } => body,
        };
        let Some(frame) = ready!(body.poll_frame(cx)) else {
            return Poll::Ready(Ok(Given::End(End::Bare)));
        };
        let given = match frame.map_err(Into::into)?.into_data() {
            Ok(mut data) => Given::Data(data.copy_to_bytes(data.remaining())),
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => Given::End(End::Trailers(trailers)),
                // A kind of frame that is not known yet.
                Err(_) => Given::Data(Bytes::new()),
            },
        };
        Poll::Ready(Ok(given))
    }

    fn is_end(&self) -> bool {
        match self {
            Self::App { body } => body.is_end_stream(),
            Self::Ours { line } => line.is_none(),
        }
    }
}

impl<B: Body<Error: Into<BoxError>>> ResponseBody<B> {
    fn poll_part(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Part>, BoxError>>> {
        let room = match &self.stream {
            Some(stream) if self.end.is_none() => ready!(stream.poll_room(cx)),
            _ => usize::MAX,
        };
        ready!(self.as_mut().poll_given(cx))?;
        let this = self.project();
        if let Some(rest) = this.rest {
            let bytes = rest.split_to(rest.len().min(room));
            if rest.is_empty() {
                *this.rest = None;
            }
            *this.parts += 1;
            if let Some(under_way) = this.under_way {
                under_way.about().sent += bytes.len() as u64;
            }
            let part = Part::new(bytes, this.stream.clone());
            return Poll::Ready(Some(Ok(Frame::data(part))));
        }
        if let Some(stream) = this.stream
            && *this.parts > 1
        {
            ready!(stream.poll_taken(cx));
        }
        let end = this.end.replace(End::Bare);
        if let Some(stream) = this.stream {
            stream.note_whole(true);
        }
        Poll::Ready(match end {
            Some(End::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
            _ => None,
        })
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for ResponseBody<B> {
    type Data = Part;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Part>, BoxError>>> {
        let polled = ready!(self.as_mut().poll_part(cx));
        self.note_end();
        if let (Some(Err(_)), Some(under_way)) = (&polled, self.project().under_way) {
            under_way.note_failed();
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        let is_end = match &self.end {
            Some(end) => matches!(end, End::Bare),
            None => self.content.is_end(),
        };
        let may_tell = self.stream.is_none() || self.parts <= 1;
        may_tell && self.rest.is_none() && is_end
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::App { body } => body.size_hint(),
            Content::Ours { line } => {
                SizeHint::with_exact(line.as_ref().map_or(0, Bytes::len) as u64)
            }
        }
    }
}

/// A chunk of a body on its way to the client, held by its stream until the client takes it.
pub(super) struct Part {
    bytes: Bytes,
    stream: Option<Rc<Stream>>,
}

impl Part {
    fn new(bytes: Bytes, stream: Option<Rc<Stream>>) -> Self {
        if let Some(stream) = &stream {
            stream.pass_on(bytes.len());
        }
        Self { bytes, stream }
    }
}

impl Buf for Part {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, length: usize) {
        self.bytes.advance(length);
        if let Some(stream) = &self.stream {
            stream.take(length);
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let Some(stream) = &self.stream else {
            return;
        };
        if !self.bytes.is_empty() {
            stream.note_whole(false);
        }
        stream.release(self.bytes.len());
    }
}
