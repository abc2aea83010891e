use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::extract::MatchedPath;
use axum::response::{IntoResponse, Response};
use http::Request;
use pin_project_lite::pin_project;
use tower::util::Oneshot;
use tower_service::Service;

use super::measured::Measured;
use super::route::Route;
use super::{Shared, outer};
use crate::loop_shedding;
use crate::stage::{Error, Spawned};

/// A service behind a [`Placement`](super::Placement).
#[derive(Clone, Debug)]
pub struct PlacedService<S> {
    inner: S,
    placement: &'static Shared,
}

impl<S> PlacedService<S> {
    pub(super) fn new(inner: S, placement: &'static Shared) -> Self {
        Self { inner, placement }
    }
}

impl<S, B> Service<Request<B>> for PlacedService<S>
where
    S: Service<Request<B>> + Clone + Send + 'static,
    S::Response: IntoResponse + Send + 'static,
    S::Error: Send + 'static,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = PlacedFuture<S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> PlacedFuture<S, B> {
        let path = request.extensions().get::<MatchedPath>();
        let key = self.placement.key.unwrap_or_default();
        let path = path.map_or(key, MatchedPath::as_str);
        let route = self.placement.routes.find(request.method(), path);
        outer::yield_to_inner();
        let importance = route.importance(self.placement.importance);
        if loop_shedding::is_shed(importance) {
            route.shed();
            return PlacedFuture { place: Place::Shed };
        }
        // The clone was not polled ready, so it stays and the other one goes.
        let clone = self.inner.clone();
        let ready = mem::replace(&mut self.inner, clone);
        let is_inline = route.is_inline();
        let run = Measured::new(Oneshot::new(ready, request), route, is_inline);
        let place = match (is_inline, &self.placement.stage) {
            (false, Some(stage)) => {
                let is_short = route.is_likely_short();
                let spawned = stage.spawn_expected(importance, is_short, run);
                Place::Staged { spawned, route }
            }
            _ => Place::Inline { run },
        };
        PlacedFuture { place }
    }
}

pin_project! {
    /// The answer of a service behind a [`Placement`](super::Placement): its own, or 503 with
    /// `Retry-After` if the stage or the loop has too much to do, or 500 if the service panics.
    pub struct PlacedFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        place: Place<S, B>,
    }
}

pin_project! {
    #[project = PlaceProjected]
    enum Place<S, B>
    where
        S: Service<Request<B>>,
    {
        Shed,
        Inline {
            #[pin]
            run: Measured<Oneshot<S, Request<B>>>,
        },
        Staged {
            #[pin]
            spawned: Spawned<Result<S::Response, S::Error>>,
            route: &'static Route,
        },
    }
}

impl<S, B> Future for PlacedFuture<S, B>
where
    S: Service<Request<B>>,
    S::Response: IntoResponse,
{
    type Output = Result<Response, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().place.project() {
            PlaceProjected::Shed => Poll::Ready(Ok(loop_shedding::answer())),
            PlaceProjected::Inline { run } => run.poll_inline(cx),
            PlaceProjected::Staged { spawned, route } => match ready!(spawned.poll(cx)) {
                Ok(answer) => Poll::Ready(answer.map(IntoResponse::into_response)),
                Err(error) => {
                    if matches!(error, Error::Rejected(_)) {
                        route.shed();
                    }
                    Poll::Ready(Ok(error.into_response()))
                }
            },
        }
    }
}

impl<S: Service<Request<B>>, B> fmt::Debug for PlacedFuture<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlacedFuture").finish_non_exhaustive()
    }
}
