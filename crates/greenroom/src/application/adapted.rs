use std::task::{Context, Poll};

use axum::body::Body;
use greenroom_server::{App, BoxError, ConnectionInfo, Pressure, RequestBody};
use greenroom_stage::{Importance, shed_on_this_loop};
use http::{Request, Response};
use tower_service::Service;

use super::for_client::ForClient;

/// A service of axum's bodies, called with ours.
#[derive(Clone, Debug)]
pub struct Adapted<S>(S);

impl<S> Adapted<S> {
    pub(super) fn new(service: S) -> Self {
        Self(service)
    }
}

impl<S, B> App for Adapted<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: http_body::Body<Error: Into<BoxError>> + 'static,
{
    type Body = B;
    type Service = ForClient<Self>;

    fn connect(&self, info: &ConnectionInfo) -> ForClient<Self> {
        ForClient::new(self.clone(), info)
    }

    fn pressure(&self, pressure: Pressure) {
        shed_under(pressure);
    }
}

/// Has the placements on this loop refuse what it can do without.
pub(super) fn shed_under(pressure: Pressure) {
    shed_on_this_loop(match pressure {
        Pressure::None => None,
        Pressure::Raised => Some(Importance::Bulk),
        Pressure::Over => Some(Importance::Normal),
    });
}

impl<S: Service<Request<Body>>> Service<Request<RequestBody>> for Adapted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<RequestBody>) -> S::Future {
        self.0.call(request.map(adapt_body))
    }
}

/// A body that is there already needs no allocation of its own.
pub(super) fn adapt_body(body: RequestBody) -> Body {
    match body.try_into_bytes() {
        Ok(bytes) if bytes.is_empty() => Body::empty(),
        Ok(bytes) => Body::from(bytes),
        Err(body) => Body::new(body),
    }
}
