use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use greenroom_timing::FileOffer;
use http_body::Body as _;

use super::{Account, Early, PlacedBody};
use crate::placement::origin::Origin;
use crate::placement::route::Route;

/// The exact size up to which a body is taken to be in memory, as texts and JSON are, and left
/// alone. A longer one is polled once, which costs it an allocation.
const WHOLE_BYTES_MAX: u64 = 16 * 1024;

/// The kind of a response's body, once its handler has ended.
#[derive(Debug)]
pub(in crate::placement) enum Settled {
    /// With the result of the first poll, if there was one.
    Streamed(Option<Early>),
    /// Nothing is left to be computed.
    Whole,
}

impl Settled {
    /// Determines the kind, as part of the handler's run.
    pub(in crate::placement) fn of(
        response: &mut Response,
        route: &Route,
        cx: &mut Context<'_>,
    ) -> Self {
        let body = response.body();
        if body.is_end_stream() {
            return Self::Whole;
        }
        match body.size_hint().exact() {
            None => Self::Streamed(None),
            Some(bytes) if bytes <= WHOLE_BYTES_MAX => Self::Whole,
            Some(bytes) => Self::look(response, bytes, route, cx),
        }
    }

    /// Polls the first frame: if it is all of the body, the body is whole. Files and proxied bodies
    /// know their length as well, so the size alone does not tell.
    fn look(response: &mut Response, bytes: u64, route: &Route, cx: &mut Context<'_>) -> Self {
        let poll = || Pin::new(response.body_mut()).poll_frame(cx);
        let (Poll::Ready(polled), offer) = FileOffer::during(poll) else {
            return Self::Streamed(None);
        };
        if let Some(Ok(frame)) = &polled
            && let Some(data) = frame.data_ref()
            && data.len() as u64 == bytes
            && response.body().is_end_stream()
        {
            let whole = Body::from(data.clone());
            route.drop_guarded(mem::replace(response.body_mut(), whole));
            return Self::Whole;
        }
        Self::Streamed(Some(Early { polled, offer }))
    }

    /// Places the body, unless it is whole. `true` if it was placed: then the body records the
    /// handler's poll time with its own.
    pub(in crate::placement) fn place(
        &mut self,
        response: &mut Response,
        origin: &Origin,
        poll_time: Duration,
    ) -> bool {
        let Self::Streamed(first) = self else {
            return false;
        };
        let first = first.take();
        let body = mem::take(response.body_mut());
        let account = Account::new(origin.of_body(), poll_time, first.is_some());
        *response.body_mut() = Body::new(PlacedBody::new(body, first, account));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Placement;
    use crate::placement::lease::Lease;
    use axum::body::Bytes;
    use axum::response::IntoResponse;
    use futures_util::stream;
    use http::Method;
    use std::task::Waker;

    fn settle(response: &mut Response) -> Settled {
        let placement = Lease::new(&Placement::inline().shared);
        let at = placement.routes.find(&Method::GET, "/");
        let mut cx = Context::from_waker(Waker::noop());
        Settled::of(response, placement.routes.at(at), &mut cx)
    }

    #[tokio::test]
    async fn what_is_in_memory_is_whole() {
        let large = vec![b'x'; 100_000];
        for (mut response, bytes) in [
            (().into_response(), 0),
            ("text".into_response(), 4),
            (large.into_response(), 100_000),
        ] {
            let settled = settle(&mut response);
            assert!(matches!(settled, Settled::Whole), "{bytes} bytes in memory");
            let body = response.into_body();
            assert_eq!(body.size_hint().exact(), Some(bytes));
            let read = axum::body::to_bytes(body, usize::MAX).await;
            assert_eq!(read.map(|read| read.len() as u64).ok(), Some(bytes));
        }
    }

    #[test]
    fn what_is_yet_to_come_is_streamed() {
        let items = stream::iter([Ok::<_, axum::Error>(Bytes::from_static(b"item"))]);
        let settled = settle(&mut Body::from_stream(items).into_response());
        assert!(matches!(settled, Settled::Streamed(None)));
    }
}
