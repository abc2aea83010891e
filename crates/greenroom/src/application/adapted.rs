use std::sync::Arc;

use axum::body::Body;
use greenroom_server::{App, BoxError, ConnectionInfo, LoopWatch, Pressure};
use greenroom_stage::{ClientKey, Priority, shed_on_this_loop};
use http::{Request, Response};
use tower_service::Service;

use super::for_client::ForClient;
use crate::loop_watch;

/// A service of axum's bodies, called with the server's.
#[derive(Clone, Debug)]
pub struct Adapted<S> {
    service: S,
    client_key: Option<ClientKey>,
}

impl<S> Adapted<S> {
    pub(super) fn new(service: S, client_key: Option<ClientKey>) -> Self {
        Self {
            service,
            client_key,
        }
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
    type Service = ForClient<S>;

    fn connect(&self, info: &ConnectionInfo) -> ForClient<S> {
        ForClient::new(self.service.clone(), info, self.client_key.clone())
    }

    fn pressure(&self, pressure: Pressure) {
        shed_under(pressure);
    }

    fn watch_loop(&self, name: &str) -> Option<Arc<dyn LoopWatch>> {
        Some(loop_watch::watch(name))
    }
}

/// Has the placements on this loop reject the requests that are dispensable under this pressure.
pub(super) fn shed_under(pressure: Pressure) {
    shed_on_this_loop(match pressure {
        Pressure::None => None,
        Pressure::Raised => Some(Priority::Bulk),
        Pressure::Over => Some(Priority::Normal),
    });
}
