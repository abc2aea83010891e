use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use greenroom_server::BoxError;
use http_body::{Body, Frame, SizeHint};

use crate::chunks::{Chunks, NotChunked};
use crate::link::{Call, Malformed, Streamed};
use crate::sent_file::FileBody;
use crate::upgrade::RawBody;

/// The body of an application's response.
#[derive(Debug)]
pub struct AnswerBody {
    kind: Kind,
    /// `Some` if the application has chunked the body by itself.
    chunked: Option<Box<Chunked>>,
}

#[derive(Debug)]
enum Kind {
    Whole(Bytes),
    /// The body of a response to HEAD: the application alone knows its length.
    Untold,
    Streamed {
        call: Call,
        taken: u32,
    },
    File(FileBody),
    Raw(RawBody),
}

#[derive(Debug)]
struct Chunked {
    chunks: Chunks,
    /// Bytes that are not decoded yet.
    input: Bytes,
    /// The method and path of the request, for the log.
    route: String,
}

/// A response that began and was not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the application, or its worker, gave up in the middle of an answer")]
struct BrokenOff;

impl AnswerBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::of(Kind::Whole(bytes.into()))
    }

    pub(crate) fn untold() -> Self {
        Self::of(Kind::Untold)
    }

    pub(crate) fn streamed(call: Call) -> Self {
        Self::of(Kind::Streamed { call, taken: 0 })
    }

    pub(crate) fn file(file: FileBody) -> Self {
        Self::of(Kind::File(file))
    }

    fn of(kind: Kind) -> Self {
        Self {
            kind,
            chunked: None,
        }
    }

    /// Decodes a body that the application has chunked: at once, or while it is sent.
    pub(crate) fn dechunked(self, route: String) -> Result<Self, Malformed> {
        if let Kind::Whole(bytes) = self.kind {
            return Ok(Self::whole(Chunks::whole(bytes)?));
        }
        let chunked = Chunked {
            chunks: Chunks::default(),
            input: Bytes::new(),
            route,
        };
        Ok(Self {
            chunked: Some(Box::new(chunked)),
            ..self
        })
    }

    pub(crate) fn raw(raw: RawBody) -> Self {
        Self::of(Kind::Raw(raw))
    }
}

impl Kind {
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        let part: Option<io::Result<Bytes>> = match self {
            Self::Untold => None,
            Self::Whole(bytes) if bytes.is_empty() => None,
            Self::Whole(bytes) => Some(Ok(std::mem::take(bytes))),
            Self::File(file) => ready!(file.poll_part(cx)),
            Self::Raw(raw) => ready!(raw.poll_part(cx)),
            Self::Streamed { call, taken } => match ready!(call.poll_part(taken, cx)) {
                Streamed::Bytes(bytes) => Some(Ok(bytes)),
                Streamed::End => None,
                Streamed::BrokenOff => return Poll::Ready(Some(Err(BrokenOff.into()))),
            },
        };
        Poll::Ready(part.map(|part| part.map_err(Into::into)))
    }
}

impl Chunked {
    fn poll_part(
        &mut self,
        body: &mut Kind,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        loop {
            match self.chunks.next(&mut self.input) {
                Ok(Some(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Some(Err(self.broken(error)))),
            }
            match ready!(body.poll_part(cx)) {
                Some(Ok(bytes)) => self.input = bytes,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    let end = self.chunks.end().map_err(|error| self.broken(error));
                    return Poll::Ready(end.err().map(Err));
                }
            }
        }
    }

    fn broken(&self, error: NotChunked) -> BoxError {
        let (malformed, route) = (Malformed::from(error), &self.route);
        tracing::error!(target: "psgi", %malformed, route, "an answer is broken off");
        malformed.into()
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { kind, chunked } = &mut *self;
        let part = match chunked {
            Some(chunked) => ready!(chunked.poll_part(kind, cx)),
            None => ready!(kind.poll_part(cx)),
        };
        Poll::Ready(part.map(|part| part.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.kind, Kind::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            _ if self.chunked.is_some() => SizeHint::default(),
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::File(file) => SizeHint::with_exact(file.left()),
            Kind::Untold | Kind::Streamed { .. } | Kind::Raw(_) => SizeHint::default(),
        }
    }
}
