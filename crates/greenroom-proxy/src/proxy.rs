use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use greenroom_server::{BoxError, RequestHandle};
use greenroom_stage::Client;
use greenroom_stage::scope::{Listing, StatusScope};
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::attempt;
use crate::checked::CheckedSettings;
use crate::exchange::Exchange;
use crate::headers::Origin;
use crate::response_body::ResponseBody;
use crate::settings::{Settings, SettingsError};
use crate::shared::Shared;
use crate::status::ProxyStatus;

/// A reverse proxy: a service that sends requests on to upstreams.
///
/// It is a route of a router (`fallback_service`, `nest_service`, `route_service`), or served by
/// itself. Clones share their upstreams' connections, limits and health.
///
/// The path goes on as the client sent it, byte by byte, also below `nest_service`, unless
/// [`strip_prefix`](Settings::strip_prefix) shortens it.
///
/// Upstreams are told of the client as far as it is known: on Greenroom, and where the router is
/// served `into_make_service_with_connect_info::<SocketAddr>()`. They are told that it came by
/// `http`, unless [`http::uri::Scheme`] is among the request's extensions.
#[derive(Clone)]
pub struct Proxy {
    shared: Arc<Shared>,
}

static PROXIES: Listing<Shared> = Listing::new();

/// Returns the status of all proxies of the process, the oldest first.
#[must_use]
pub fn status() -> Vec<ProxyStatus> {
    PROXIES.all().iter().map(|shared| shared.status()).collect()
}

/// Returns the status of the proxies that had their first request in this scope, such as a server,
/// and of those that have had none, the oldest first.
#[must_use]
pub fn status_within(scope: &StatusScope) -> Vec<ProxyStatus> {
    let proxies = PROXIES.within(scope);
    proxies.iter().map(|shared| shared.status()).collect()
}

/// The future of a [`Proxy`]'s response. Dropping it cancels the request, at the upstream too.
pub type ProxyFuture =
    Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

impl Proxy {
    /// Creates a proxy, and reads the files that its settings name. It connects to no upstream
    /// before the first request.
    ///
    /// # Errors
    ///
    /// The first setting whose value is not allowed.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        CheckedSettings::new(settings).map(Self::from)
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Returns a snapshot of the upstreams.
    #[must_use]
    pub fn status(&self) -> ProxyStatus {
        self.shared.status()
    }

    /// Has the server of the first request show the proxy.
    fn claim(&self) {
        let is_claimed = &self.shared.is_claimed;
        if !is_claimed.load(Ordering::Relaxed)
            && let Some(scope) = StatusScope::current()
        {
            is_claimed.store(true, Ordering::Relaxed);
            PROXIES.claim(&self.shared, &scope);
        }
    }
}

impl From<CheckedSettings> for Proxy {
    fn from(checked: CheckedSettings) -> Self {
        let CheckedSettings { settings, tls } = checked;
        let shared = Arc::new(Shared::new(settings, tls.as_ref()));
        PROXIES.add(&shared);
        Self { shared }
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
        self.claim();
        let (parts, body) = request.into_parts();
        // Both are known only on this thread, during this call.
        let exchange = Exchange {
            shared: Arc::clone(&self.shared),
            origin: Origin::of(&parts, Client::current()),
            handle: RequestHandle::of(&parts.extensions),
            span: attempt::parent(&parts.extensions),
        };
        let request = Request::from_parts(parts, body);
        Box::pin(async move { Ok(exchange.run(request).await) })
    }
}
