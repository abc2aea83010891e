//! Response bodies on their way from the service's thread to a router's.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use greenroom_server::BoxError;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::body::{Aborted, ResponseBody};

/// The number of chunks that may wait for the client. More would be read ahead of it in vain.
const CHUNKS_MAX: usize = 1;

/// A chunk of a body; `None` is its end. A channel that ends without one is no end of a body.
type Chunk = Result<Option<Bytes>, BoxError>;

/// Returns a body that may go to other threads, and what moves its chunks there if it is not whole
/// in memory. It ends with the body, or when the client has left.
pub(crate) fn sendable(body: ResponseBody) -> (Body, Option<impl Future<Output = ()>>) {
    let body = match body.into_whole() {
        Ok(bytes) => return (Body::from(bytes), None),
        Err(body) => body,
    };
    let (sender, chunks) = mpsc::channel(CHUNKS_MAX);
    let left = http_body::Body::size_hint(&body).exact();
    let received = Received { chunks, left };
    (Body::new(received), Some(pump(body, sender)))
}

async fn pump(mut body: ResponseBody, chunks: mpsc::Sender<Chunk>) {
    while let Ok(slot) = chunks.reserve().await {
        let chunk = tokio::select! {
            biased;
            chunk = poll_fn(|cx| body.poll_chunk(cx)) => chunk.transpose(),
            () = chunks.closed() => return,
        };
        let is_last = !matches!(chunk, Ok(Some(_)));
        slot.send(chunk);
        if is_last {
            return;
        }
    }
}

/// The receiving side of a body.
struct Received {
    chunks: mpsc::Receiver<Chunk>,
    /// The bytes that are left, if known.
    left: Option<u64>,
}

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let chunk = ready!(self.chunks.poll_recv(cx));
        let chunk = chunk.unwrap_or_else(|| Err(Aborted.into())).transpose();
        if let (Some(left), Some(Ok(bytes))) = (&mut self.left, &chunk) {
            *left = left.saturating_sub(bytes.len() as u64);
        }
        Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
