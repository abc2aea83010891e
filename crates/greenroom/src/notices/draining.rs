use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::extract::FromRequestParts;
use greenroom_server::RequestHandle;
use http::request::Parts;

/// An extractor of the notice that the server drains: a future that completes when the drain
/// begins, at once if it has. For handlers that would go on for longer than the drain may take: a
/// stream of events that ends with a last one, a long poll that responds early.
///
/// ```
/// use std::time::Duration;
///
/// use axum::response::sse::{Event, Sse};
/// use axum::{BoxError, Router, routing::get};
/// use futures_util::{Stream, StreamExt, stream};
/// use greenroom::Draining;
///
/// async fn events(draining: Draining) -> Sse<impl Stream<Item = Result<Event, BoxError>>> {
///     let ticks = stream::unfold(0_u64, |number| async move {
///         tokio::time::sleep(Duration::from_secs(1)).await;
///         Some((Event::default().data(number.to_string()), number + 1))
///     });
///     // Browsers connect anew, and so come to the server that takes over.
///     let last = stream::once(async { Event::default().event("restart").data("") });
///     Sse::new(ticks.take_until(draining).chain(last).map(Ok))
/// }
///
/// let app: Router = Router::new().route("/events", get(events));
/// ```
///
/// A handler that extracts it and opens a WebSocket closes that itself when the notice comes, with
/// 1012 or any other code; without it, the server sends a close frame with 1001 by itself.
///
/// Clones are the same notice. It costs nothing until it is extracted, and only a wake-up at a
/// drain. Under another server than Greenroom it never comes.
#[derive(Clone, Debug)]
#[must_use = "a notice does nothing unless it is awaited or asked"]
pub struct Draining(Option<greenroom_server::Draining>);

impl Draining {
    /// True if the server drains, or has ended.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(greenroom_server::Draining::is_draining)
    }
}

impl Future for Draining {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Some(draining) => Pin::new(draining).poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Draining {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let handle = RequestHandle::of(&parts.extensions);
        Ok(Self(handle.map(|handle| handle.draining())))
    }
}
