use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use greenroom_server::BoxError;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::response_body::ResponseBody;
use crate::settings::{Settings, SettingsError};
use crate::status::ProxyStatus;

/// A reverse proxy: a service that sends requests on to upstreams.
///
/// It is a route of a router (`fallback_service`, `nest_service`, `route_service`), or served by
/// itself. Clones share their upstreams' connections, limits and health.
///
/// The path goes on as the client sent it, byte by byte, also below `nest_service`, unless
/// [`strip_prefix`](Settings::strip_prefix) shortens it.
#[derive(Clone)]
pub struct Proxy {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
}

/// The future of a [`Proxy`]'s response. Dropping it cancels the request, at the upstream too.
pub type ProxyFuture =
    Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

impl Proxy {
    /// Creates a proxy. It connects to no upstream before the first request.
    ///
    /// # Errors
    ///
    /// The first setting whose value is not allowed.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        let shared = Arc::new(Shared { settings });
        Ok(Self { shared })
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Returns a snapshot of the upstreams.
    #[must_use]
    pub fn status(&self) -> ProxyStatus {
        ProxyStatus {
            upstreams: Vec::new(),
            refused: 0,
            loops: 0,
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Proxy");
        out.field("to", &self.settings().to).finish_non_exhaustive()
    }
}

impl<B> Service<Request<B>> for Proxy
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = ProxyFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ProxyFuture {
        drop(request);
        let mut response = Response::new(ResponseBody::whole("not yet\n"));
        *response.status_mut() = http::StatusCode::NOT_IMPLEMENTED;
        Box::pin(std::future::ready(Ok(response)))
    }
}
