use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use greenroom_server::rustls::ClientConfig;
use http::{Response, StatusCode};

use crate::headers::Via;
use crate::rejection;
use crate::response_body::ResponseBody;
use crate::settings::Settings;
use crate::status::ProxyStatus;
use crate::throttle::Throttle;
use crate::upload::Budget;
use crate::upstream::Upstreams;

/// The state of a proxy, shared by its clones and its requests.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) budget: Budget,
    /// This proxy's name in `Via`, which no other has.
    pub(crate) pseudonym: String,
    pub(crate) via: Via,
    refused: AtomicU64,
    loops: AtomicU64,
    warnings: Throttle,
    /// True once the server of its first request shows it.
    pub(crate) is_claimed: AtomicBool,
}

impl Shared {
    /// Creates that of a proxy with these settings, which are checked; `tls` is that of upstreams.
    pub(crate) fn new(settings: Settings, tls: Option<&Arc<ClientConfig>>) -> Self {
        let pseudonym = format!("greenroom-{:016x}", fastrand::u64(..));
        Self {
            upstreams: Arc::new(Upstreams::new(&settings, tls)),
            budget: Budget::default(),
            via: Via::new(&pseudonym),
            pseudonym,
            settings,
            refused: AtomicU64::new(0),
            loops: AtomicU64::new(0),
            warnings: Throttle::default(),
            is_claimed: AtomicBool::new(false),
        }
    }

    pub(crate) fn status(&self) -> ProxyStatus {
        ProxyStatus {
            upstreams: self.upstreams.status(),
            refused: self.refused.load(Ordering::Relaxed),
            loops: self.loops.load(Ordering::Relaxed),
        }
    }

    /// Returns the response if all upstreams have as many requests as they may.
    pub(crate) fn busy(&self) -> Response<ResponseBody> {
        self.refused.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("greenroom_proxy_rejected_total", "reason" => "in_flight").increment(1);
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
        metrics::counter!("greenroom_proxy_rejected_total", "reason" => "loop").increment(1);
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
