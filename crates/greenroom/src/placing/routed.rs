use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use greenroom_stage::Placement;
use greenroom_stage::placement::{PlacedFuture, PlacedService};
use http::Request;
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
    paths: Arc<OnceLock<Arc<Paths>>>,
}

impl ByRoute {
    /// Without paths those of the first service are taken.
    pub(super) fn new(placement: Placement, paths: Option<Paths>) -> Self {
        let paths = paths.map(|paths| OnceLock::from(Arc::new(paths)));
        Self {
            placement,
            paths: Arc::new(paths.unwrap_or_default()),
        }
    }
}

impl<S: Clone + 'static> Placed<S> for ByRoute {
    type Service = Routed<S>;

    fn place(&self, service: S) -> Routed<S> {
        let paths = self.paths.get_or_init(|| Arc::new(Paths::of(&service)));
        Routed {
            placed: self.placement.layer(service),
            paths: Arc::clone(paths),
        }
    }
}

/// A service whose routes are placed, by a placement that is around it.
#[derive(Clone, Debug)]
pub struct Routed<S> {
    placed: PlacedService<S>,
    paths: Arc<Paths>,
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
    type Future = PlacedFuture<S, Body>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.placed.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> PlacedFuture<S, Body> {
        let path = self.paths.route(request.uri().path());
        self.placed.call_at(path, request)
    }
}
