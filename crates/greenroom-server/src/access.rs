use std::borrow::Cow;
use std::net::SocketAddr;

use http::header::{REFERER, USER_AGENT};
use http::{HeaderValue, Request, StatusCode, Version};
use tokio::time::Instant;

use crate::connection::About;

/// Facts about a request that only the access log tells.
#[derive(Debug)]
pub(crate) struct Logged {
    began: Instant,
    version: Version,
    referer: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
}

impl Logged {
    /// Collects them, if there is an access log.
    pub(crate) fn of<B>(request: &Request<B>, access_log: bool) -> Option<Box<Self>> {
        access_log.then(|| {
            let headers = request.headers();
            Box::new(Self {
                began: Instant::now(),
                version: request.version(),
                referer: headers.get(REFERER).cloned(),
                user_agent: headers.get(USER_AGENT).cloned(),
            })
        })
    }
}

/// Logs a request that is over, if its connection keeps an access log: with the response's status,
/// or none if it ended without one. The peer is who is connected, the client whom a trusted proxy
/// has named.
pub(crate) fn log(about: &About, peer: Option<SocketAddr>) {
    let Some(logged) = &about.logged else {
        return;
    };
    let micros = u64::try_from(logged.began.elapsed().as_micros()).unwrap_or(u64::MAX);
    tracing::info!(
        target: "greenroom::access",
        peer = peer.map(tracing::field::display),
        client = about.client.map(tracing::field::display),
        method = %about.method,
        target = %String::from_utf8_lossy(&about.target),
        version = ?logged.version,
        status = about.status.map(|status| status.as_u16()),
        bytes = about.sent,
        cut = about.cut.then_some(true),
        micros,
        referer = text(logged.referer.as_ref()).as_deref(),
        user_agent = text(logged.user_agent.as_ref()).as_deref(),
    );
}

fn text(value: Option<&HeaderValue>) -> Option<Cow<'_, str>> {
    value.map(|value| String::from_utf8_lossy(value.as_bytes()))
}

/// Logs a message that was rejected before it was a request.
pub(crate) fn log_rejection(status: StatusCode, peer: Option<SocketAddr>) {
    tracing::info!(
        target: "greenroom::access",
        peer = peer.map(tracing::field::display),
        status = status.as_u16(),
        "refused",
    );
}
