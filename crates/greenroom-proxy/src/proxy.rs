use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use greenroom_server::{BoxError, RequestHandle};
use greenroom_stage::Client;
use greenroom_stage::scope::{Listing, StatusScope};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;

use crate::exchange::Exchange;
use crate::headers::Origin;
use crate::rejection;
use crate::response_body::ResponseBody;
use crate::settings::{Settings, SettingsError};
use crate::status::ProxyStatus;
use crate::throttle::Throttle;
use crate::upload::Budget;
use crate::upstream::Upstreams;

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

pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) budget: Budget,
    /// This proxy's name in `Via`, which no other has.
    pub(crate) pseudonym: String,
    pub(crate) via: HeaderValue,
    refused: AtomicU64,
    loops: AtomicU64,
    warnings: Throttle,
    /// True once the server of its first request shows it.
    is_claimed: AtomicBool,
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
    /// Creates a proxy. It connects to no upstream before the first request.
    ///
    /// # Errors
    ///
    /// The first setting whose value is not allowed.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        let number = fastrand::u64(..);
        let shared = Shared {
            upstreams: Arc::new(Upstreams::new(&settings)),
            budget: Budget::default(),
            pseudonym: format!("greenroom-{number:016x}"),
            via: via(number),
            settings,
            refused: AtomicU64::new(0),
            loops: AtomicU64::new(0),
            warnings: Throttle::default(),
            is_claimed: AtomicBool::new(false),
        };
        let shared = Arc::new(shared);
        PROXIES.add(&shared);
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

impl fmt::Debug for Proxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Proxy");
        out.field("to", &self.settings().to).finish_non_exhaustive()
    }
}

impl Shared {
    fn status(&self) -> ProxyStatus {
        ProxyStatus {
            upstreams: self.upstreams.status(),
            refused: self.refused.load(Ordering::Relaxed),
            loops: self.loops.load(Ordering::Relaxed),
        }
    }

    /// Returns the response if all upstreams have as many requests as they may.
    pub(crate) fn busy(&self) -> Response<ResponseBody> {
        self.refused.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("greenroom_proxy_refused_total", "reason" => "in_flight").increment(1);
        if let Some(count) = self.warnings.count() {
            let in_flight_max = self.settings.in_flight_max;
            tracing::warn!(
                target: "proxy",
                count, in_flight_max,
                "requests were refused with 503: each upstream has as many as it may; raise \
                 in_flight_max, or add upstreams"
            );
        }
        rejection::busy()
    }

    /// Returns the response to a request that has been here before: 508 (RFC 5842, 7.2).
    pub(crate) fn loops(&self) -> Response<ResponseBody> {
        self.loops.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("greenroom_proxy_refused_total", "reason" => "loop").increment(1);
        if let Some(count) = self.warnings.count() {
            tracing::warn!(
                target: "proxy",
                count,
                "requests were refused with 508: an upstream sends them back to this proxy; see \
                 whether its address is this server's own"
            );
        }
        rejection::plain(StatusCode::LOOP_DETECTED, "the request goes round")
    }
}

/// Returns the value of `Via` for upstreams, which get all requests by HTTP/1.1.
fn via(number: u64) -> HeaderValue {
    let value = format!("1.1 greenroom-{number:016x}");
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static("1.1 greenroom"))
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
        };
        let request = Request::from_parts(parts, body);
        Box::pin(async move { Ok(exchange.run(request).await) })
    }
}
