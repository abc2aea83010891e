use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http_body::Body as _;

use super::{Account, PlacedBody, Polled};
use crate::placement::origin::Origin;

/// A body that says that it is so long is taken to be in memory, as texts and JSON are, and left
/// alone. A longer one is looked at, which costs it an allocation.
const WHOLE_BYTES_MAX: u64 = 16 * 1024;

/// A response, and what is known of its body.
#[derive(Debug)]
pub(in crate::placement) enum Settled {
    /// With what its body was ready with when it was looked at.
    Streamed(Response, Option<Polled>),
    /// Nothing of it is left to be computed.
    Whole(Response),
}

impl Settled {
    /// Finds it out, as part of the handler's run.
    pub(in crate::placement) fn of(response: Response, cx: &mut Context<'_>) -> Self {
        let body = response.body();
        if body.is_end_stream() {
            return Self::Whole(response);
        }
        match body.size_hint().exact() {
            None => Self::Streamed(response, None),
            Some(bytes) if bytes <= WHOLE_BYTES_MAX => Self::Whole(response),
            Some(bytes) => Self::look(response, bytes, cx),
        }
    }

    /// Whether the first frame is all of it: files and proxied bodies know their length as well.
    fn look(mut response: Response, bytes: u64, cx: &mut Context<'_>) -> Self {
        let first = match Pin::new(response.body_mut()).poll_frame(cx) {
            Poll::Pending => return Self::Streamed(response, None),
            Poll::Ready(first) => first,
        };
        if let Some(Ok(frame)) = &first
            && let Some(data) = frame.data_ref()
            && data.len() as u64 == bytes
            && response.body().is_end_stream()
        {
            *response.body_mut() = Body::from(data.clone());
            return Self::Whole(response);
        }
        Self::Streamed(response, Some(first))
    }

    /// The response for the server, whose handler was busy for so long. Also says whether its route
    /// has been told of that, or will be by its body.
    pub(in crate::placement) fn place(self, origin: Origin, busy: Duration) -> (Response, bool) {
        match self {
            Self::Whole(response) => (response, false),
            Self::Streamed(response, first) => {
                let account = Account::new(origin, busy);
                let place = |body| Body::new(PlacedBody::new(body, first, account));
                (response.map(place), true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Bytes;
    use axum::response::IntoResponse;
    use futures_util::stream;

    fn settle(response: impl IntoResponse) -> Settled {
        Settled::of(
            response.into_response(),
            &mut Context::from_waker(std::task::Waker::noop()),
        )
    }

    #[tokio::test]
    async fn what_is_in_memory_is_whole() {
        let large = vec![b'x'; 100_000];
        for (response, bytes) in [
            (().into_response(), 0),
            ("text".into_response(), 4),
            (large.into_response(), 100_000),
        ] {
            let Settled::Whole(response) = settle(response) else {
                panic!("{bytes} bytes in memory")
            };
            let body = response.into_body();
            assert_eq!(body.size_hint().exact(), Some(bytes));
            let read = axum::body::to_bytes(body, usize::MAX).await;
            assert_eq!(read.map(|read| read.len() as u64).ok(), Some(bytes));
        }
    }

    #[test]
    fn what_is_yet_to_come_is_streamed() {
        let items = stream::iter([Ok::<_, axum::Error>(Bytes::from_static(b"item"))]);
        let settled = settle(Body::from_stream(items).into_response());
        assert!(matches!(settled, Settled::Streamed(_, None)));
    }
}
