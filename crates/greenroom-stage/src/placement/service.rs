use std::any::TypeId;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::extract::MatchedPath;
use axum::response::{IntoResponse, Response};
use greenroom_timing::tell_route;
use http::Request;
use pin_project_lite::pin_project;
use tower::util::Oneshot;
use tower_service::Service;

use super::lease::Lease;
use super::measured::{Measured, Timed, watch};
use super::origin::Origin;
use super::placed_path::PlacedPath;
use super::route::{Route, RouteAt};
use super::{hand_over, outer};
use crate::client::Client;
use crate::loop_shedding;
use crate::stage::{Error, JoinHandle, Rank, Stage};

/// A service behind a [`Placement`](super::Placement).
#[derive(Clone, Debug)]
pub struct PlacedService<S> {
    inner: S,
    placement: Lease,
}

impl<S> PlacedService<S> {
    pub(super) fn new(inner: S, placement: Lease) -> Self {
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
        let key = self.placement.settings.key.unwrap_or_default();
        let path = path.map_or(key, MatchedPath::as_str);
        let at = self.placement.routes.find(request.method(), path);
        self.call_route(at, request)
    }
}

impl<S> PlacedService<S> {
    /// Calls the service as the route of this path, in place of one that an outer router has
    /// matched: for servers that know the routes behind the placement.
    pub fn call_at<B>(&mut self, path: &PlacedPath, request: Request<B>) -> PlacedFuture<S, B>
    where
        S: Service<Request<B>> + Clone + Send + 'static,
        S::Response: IntoResponse + Send + 'static,
        S::Error: Send + 'static,
        S::Future: Send + 'static,
        B: Send + 'static,
    {
        let at = path.find(&self.placement.routes, request.method());
        self.call_route(at, request)
    }

    fn call_route<B>(&mut self, at: RouteAt, request: Request<B>) -> PlacedFuture<S, B>
    where
        S: Service<Request<B>> + Clone + Send + 'static,
        S::Response: IntoResponse + Send + 'static,
        S::Error: Send + 'static,
        S::Future: Send + 'static,
        B: Send + 'static,
    {
        let (route, settings) = (self.placement.routes.at(at), &self.placement.settings);
        outer::yield_to_inner();
        tell_route(route.path());
        let rank = route.rank(settings.priority);
        if loop_shedding::is_shed(rank.admitted_as()) && route.is_worth_shedding() {
            route.shed();
            // What it was polled ready with is released: the connection may be idle for long.
            self.inner = self.inner.clone();
            return PlacedFuture::ready(loop_shedding::rejection());
        }
        if let Some(stage) = &settings.stage
            && !route.is_inline()
        {
            return self.call_staged(&stage.clone(), rank, at, request);
        }
        let client = Client::current();
        if client.is_known() && settings.client_key.is_none() {
            // The server has told it.
            return self.call_inline((rank, at, client), request);
        }
        let (client, request) = self.client_of(request);
        self.call_inline((rank, at, client), request)
    }

    /// Calls the service here. A future with a request in it is some hundred bytes: each branch
    /// makes it in the place of the result, as no value that is moved there.
    #[inline]
    fn call_inline<B>(
        &mut self,
        (rank, at, client): (Rank, RouteAt, Client),
        request: Request<B>,
    ) -> PlacedFuture<S, B>
    where
        S: Service<Request<B>> + 'static,
    {
        let origin = self.origin(at, rank, client, true);
        if is_lazy::<S>() {
            return PlacedFuture {
                place: Place::Inline {
                    run: Measured::new(self.inner.call(request), origin, Duration::ZERO),
                },
            };
        }
        let route = self.placement.routes.at(at);
        let call = || client.within_if_another(|| self.inner.call(request));
        let (called, poll_time, _) = watch(route, call);
        match called {
            Ok(future) => PlacedFuture {
                place: Place::Inline {
                    run: Measured::new(future, origin, poll_time),
                },
            },
            Err(panicked) => PlacedFuture::ready(route.panic_response(&panicked)),
        }
    }

    fn call_staged<B>(
        &mut self,
        stage: &Stage,
        rank: Rank,
        at: RouteAt,
        request: Request<B>,
    ) -> PlacedFuture<S, B>
    where
        S: Service<Request<B>> + Clone + Send + 'static,
        S::Response: IntoResponse + Send + 'static,
        S::Error: Send + 'static,
        S::Future: Send + 'static,
        B: Send + 'static,
    {
        // The clone was not polled ready, so it stays and the other one goes.
        let clone = self.inner.clone();
        let ready = mem::replace(&mut self.inner, clone);
        let (client, mut request) = self.client_of(request);
        hand_over::prepare(request.extensions_mut());
        let timed = Timed::of(request.extensions());
        let origin = self.origin(at, rank, client, false);
        let submission = origin.submission();
        let run = Measured::new(Oneshot::new(ready, request), origin, Duration::ZERO).timed(timed);
        let spawned = stage.submit(submission, run);
        let route = Arc::clone(self.placement.routes.at(at));
        PlacedFuture {
            place: Place::Staged { spawned, route },
        }
    }

    fn origin(&self, at: RouteAt, rank: Rank, client: Client, is_inline: bool) -> Origin {
        Origin {
            placement: self.placement.again(),
            at,
            rank,
            client,
            is_inline,
        }
    }

    /// Finds the client of the request: by the application's key, or else the address that is
    /// connected, if the server gives it.
    fn client_of<B>(&self, request: Request<B>) -> (Client, Request<B>) {
        let Some(client_key) = &self.placement.settings.client_key else {
            return (Client::connected(request.extensions()), request);
        };
        let (parts, body) = request.into_parts();
        let connected = Client::connected(&parts.extensions);
        let client = client_key.client(&parts);
        let client = client.map_or(connected, |client| client.sent_as_by(connected));
        (client, Request::from_parts(parts, body))
    }
}

/// True if no code of the application runs before the future is polled, as with axum's routers and
/// their routes: then there is nothing to watch.
fn is_lazy<S: 'static>() -> bool {
    let service = TypeId::of::<S>();
    service == TypeId::of::<axum::Router>() || service == TypeId::of::<axum::routing::Route>()
}

pin_project! {
    /// The response of a service behind a [`Placement`](super::Placement): its own, or 503 with
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
        Ready {
            response: Option<Response>,
        },
        Inline {
            #[pin]
            run: Measured<S::Future>,
        },
        Staged {
            #[pin]
            spawned: JoinHandle<Result<Response, S::Error>>,
            route: Arc<Route>,
        },
    }
}

impl<S: Service<Request<B>>, B> PlacedFuture<S, B> {
    fn ready(response: Response) -> Self {
        Self {
            place: Place::Ready {
                response: Some(response),
            },
        }
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
            PlaceProjected::Ready { response } => {
                let response = response.take();
                Poll::Ready(Ok(response.expect("polled after it was ready")))
            }
            PlaceProjected::Inline { run } => run.poll_inline(cx),
            PlaceProjected::Staged { spawned, route } => match ready!(spawned.poll(cx)) {
                Ok(response) => Poll::Ready(response),
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
