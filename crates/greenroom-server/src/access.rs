use std::net::SocketAddr;

use http::StatusCode;

use crate::connection::About;

/// Logs a request that is over, if its connection keeps an access log: with the response's status,
/// or none if it ended without one. The peer is who is connected, the client whom a trusted proxy
/// has named.
pub(crate) fn log(about: &About, peer: Option<SocketAddr>) {
    let Some(began) = about.began else {
        return;
    };
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    tracing::info!(
        target: "greenroom::access",
        peer = peer.map(tracing::field::display),
        client = about.client.map(tracing::field::display),
        method = %about.method,
        target = %String::from_utf8_lossy(&about.target),
        status = about.status.map(|status| status.as_u16()),
        bytes = about.sent,
        cut = about.cut.then_some(true),
        micros,
    );
}

/// Logs a message that was rejected before it was a request.
pub(crate) fn log_refusal(status: StatusCode, peer: Option<SocketAddr>) {
    tracing::info!(
        target: "greenroom::access",
        peer = peer.map(tracing::field::display),
        status = status.as_u16(),
        "refused",
    );
}
