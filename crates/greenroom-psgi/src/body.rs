use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use greenroom_server::BoxError;
use http_body::{Body, Frame, SizeHint};

use crate::link::{Call, Streamed};
use crate::sent_file::FileBody;
use crate::upgrade::RawBody;

/// The body of an application's answer.
#[derive(Debug)]
pub struct AnswerBody(Kind);

#[derive(Debug)]
enum Kind {
    Whole(Bytes),
    /// Of an answer to HEAD: how long it would be is the application's to say.
    Untold,
    Streamed {
        call: Call,
        taken: u32,
    },
    File(FileBody),
    Raw(RawBody),
}

/// An answer that began and was not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the application, or its worker, gave up in the middle of an answer")]
struct BrokenOff;

impl AnswerBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(bytes.into()))
    }

    pub(crate) fn untold() -> Self {
        Self(Kind::Untold)
    }

    pub(crate) fn streamed(call: Call) -> Self {
        Self(Kind::Streamed { call, taken: 0 })
    }

    pub(crate) fn file(file: FileBody) -> Self {
        Self(Kind::File(file))
    }

    pub(crate) fn raw(raw: RawBody) -> Self {
        Self(Kind::Raw(raw))
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let part: Option<io::Result<Bytes>> = match &mut self.0 {
            Kind::Untold => None,
            Kind::Whole(bytes) if bytes.is_empty() => None,
            Kind::Whole(bytes) => Some(Ok(std::mem::take(bytes))),
            Kind::File(file) => ready!(file.poll_part(cx)),
            Kind::Raw(raw) => ready!(raw.poll_part(cx)),
            Kind::Streamed { call, taken } => match ready!(call.poll_part(taken, cx)) {
                Streamed::Bytes(bytes) => Some(Ok(bytes)),
                Streamed::End => None,
                Streamed::BrokenOff => return Poll::Ready(Some(Err(BrokenOff.into()))),
            },
        };
        Poll::Ready(part.map(|part| part.map(Frame::data).map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::File(file) => SizeHint::with_exact(file.left()),
            Kind::Untold | Kind::Streamed { .. } | Kind::Raw(_) => SizeHint::default(),
        }
    }
}
