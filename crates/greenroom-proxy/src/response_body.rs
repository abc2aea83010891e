use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use greenroom_server::BoxError;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

/// The body of a proxy's response: that of an upstream's as it comes, or the text of an error.
///
/// One that its upstream breaks off ends with an error, so that the server aborts the response and
/// the client cannot take it for whole.
#[derive(Debug)]
pub struct ResponseBody(Full<Bytes>);

impl ResponseBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Full::new(bytes.into()))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let whole = Pin::new(&mut self.0);
        whole.poll_frame(cx).map_err(|never| match never {})
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
