use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use greenroom_stage::Placement;
use greenroom_stage::placement::{PlacedFuture, PlacedService};
use http::Request;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::paths::Paths;

/// Places services that are made, one for each connection.
pub trait Placed<S> {
    /// A placed service.
    type Service;

    /// Places this service.
    fn place(&self, service: S) -> Self::Service;
}

/// Leaves services where they are called: on the loop.
#[derive(Clone, Copy, Debug)]
pub struct AsItIs;

impl<S> Placed<S> for AsItIs {
    type Service = S;

    fn place(&self, service: S) -> S {
        service
    }
}

/// Places services by their routes. The routes are those of the first service, and are shared, with
/// the placement, by all: the times measured of a route on one connection hold on the others.
#[derive(Clone, Debug)]
pub struct ByRoute {
    placement: Placement,
    paths: Arc<OnceLock<Paths>>,
}

impl ByRoute {
    pub(super) fn new(placement: Placement, paths: OnceLock<Paths>) -> Self {
        Self {
            placement,
            paths: Arc::new(paths),
        }
    }
}

impl<S: Clone + 'static> Placed<S> for ByRoute {
    type Service = Routed<S>;

    fn place(&self, service: S) -> Routed<S> {
        self.paths.get_or_init(|| Paths::of(&service));
        Routed(Way::Around {
            placed: self.placement.layer(service),
            paths: Arc::clone(&self.paths),
        })
    }
}

/// A service whose routes are placed.
#[derive(Clone, Debug)]
pub struct Routed<S>(Way<S>);

#[derive(Clone, Debug)]
enum Way<S> {
    /// The placement is around it, and gets the routes.
    Around {
        placed: PlacedService<S>,
        /// There since the first service was placed.
        paths: Arc<OnceLock<Paths>>,
    },
    /// It has placements inside, and finds its routes itself.
    Within(S),
}

impl<S> Routed<S> {
    pub(super) fn within(service: S) -> Self {
        Self(Way::Within(service))
    }
}

impl<S> Service<Request<Body>> for Routed<S>
where
    S: Service<Request<Body>> + Clone + Send + 'static,
    S::Response: IntoResponse + Send + 'static,
    S::Error: Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = RoutedFuture<S>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        match &mut self.0 {
            Way::Around { placed, .. } => placed.poll_ready(cx),
            Way::Within(service) => service.poll_ready(cx),
        }
    }

    fn call(&mut self, request: Request<Body>) -> RoutedFuture<S> {
        match &mut self.0 {
            Way::Around { placed, paths } => {
                let paths = paths.get();
                let name = paths.map_or("", |paths| paths.name(request.uri().path()));
                let run = placed.call_at(name, request);
                RoutedFuture::Around { run }
            }
            Way::Within(service) => RoutedFuture::Within {
                run: service.call(request),
            },
        }
    }
}

pin_project! {
    /// The response of a [`Routed`] service.
    #[project = RoutedProjected]
    pub enum RoutedFuture<S>
    where
        S: Service<Request<Body>>,
    {
        Around {
            #[pin]
            run: PlacedFuture<S, Body>,
        },
        Within {
            #[pin]
            run: S::Future,
        },
    }
}

impl<S> Future for RoutedFuture<S>
where
    S: Service<Request<Body>>,
    S::Response: IntoResponse,
{
    type Output = Result<Response, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            RoutedProjected::Around { run } => run.poll(cx),
            RoutedProjected::Within { run } => {
                let result = ready!(run.poll(cx));
                Poll::Ready(result.map(IntoResponse::into_response))
            }
        }
    }
}
