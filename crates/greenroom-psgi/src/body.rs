use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use greenroom_server::BoxError;
use http_body::{Body, Frame, SizeHint};

use crate::chunks::{Chunks, NotChunked};
use crate::link::{Call, Malformed, Streamed};
use crate::raw_body::RawBody;
use crate::sent_file::FileBody;

/// The body of an application's response.
#[derive(Debug)]
pub struct ResponseBody {
    kind: Kind,
    /// `Some` if the application has chunked the body by itself.
    chunked: Option<Box<Chunked>>,
}

#[derive(Debug)]
enum Kind {
    Whole(Bytes),
    /// The body of a response to HEAD: the application alone knows its length.
    Head,
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
#[error("the application, or its worker, gave up in the middle of a response")]
pub(crate) struct Aborted;

impl ResponseBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::of(Kind::Whole(bytes.into()))
    }

    pub(crate) fn of_head() -> Self {
        Self::of(Kind::Head)
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

    /// Returns the bytes of a body that is whole in memory; else the body itself.
    pub(crate) fn into_whole(self) -> Result<Bytes, Self> {
        match self.kind {
            Kind::Whole(bytes) => Ok(bytes),
            _ => Err(self),
        }
    }

    /// Polls for the next chunk; `None` is the end.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        match &mut self.chunked {
            Some(chunked) => chunked.poll_bytes(&mut self.kind, cx),
            None => self.kind.poll_bytes(cx),
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
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        let chunk: Option<io::Result<Bytes>> = match self {
            Self::Head => None,
            Self::Whole(bytes) if bytes.is_empty() => None,
            Self::Whole(bytes) => Some(Ok(std::mem::take(bytes))),
            Self::File(file) => ready!(file.poll_bytes(cx)),
            Self::Raw(raw) => ready!(raw.poll_bytes(cx)),
            Self::Streamed { call, taken } => match ready!(call.poll_bytes(taken, cx)) {
                Streamed::Bytes(bytes) => Some(Ok(bytes)),
                Streamed::End => None,
                Streamed::Aborted => return Poll::Ready(Some(Err(Aborted.into()))),
            },
        };
        Poll::Ready(chunk.map(|chunk| chunk.map_err(Into::into)))
    }
}

impl Chunked {
    fn poll_bytes(
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
            match ready!(body.poll_bytes(cx)) {
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
        tracing::error!(target: "psgi", %malformed, route, "a response is broken off");
        malformed.into()
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let chunk = ready!(self.poll_chunk(cx));
        Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.kind, Kind::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            _ if self.chunked.is_some() => SizeHint::default(),
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::File(file) => SizeHint::with_exact(file.left()),
            Kind::Head | Kind::Streamed { .. } | Kind::Raw(_) => SizeHint::default(),
        }
    }
}
