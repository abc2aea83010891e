//! The requests that are under way at an application, so that it is not ended before them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

/// Held by a request, until the end of its response's body.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    _counted: mpsc::Sender<Infallible>,
}

/// Completes when all leases are gone.
#[derive(Debug)]
pub(super) struct Leases(mpsc::Receiver<Infallible>);

impl Leases {
    pub(super) fn new() -> (Lease, Self) {
        let (sender, receiver) = mpsc::channel(1);
        (Lease { _counted: sender }, Self(receiver))
    }

    pub(super) async fn gone(mut self) {
        while self.0.recv().await.is_some() {}
    }
}

impl Lease {
    /// Has the body hold the lease.
    pub(super) fn with(self, body: Body) -> Body {
        Body::new(Held { body, _lease: self })
    }
}

struct Held {
    body: Body,
    _lease: Lease,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
