//! The access log.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

use greenroom_quantiles::micros;
use http::{HeaderValue, StatusCode};

use super::{Logged, number};
use crate::connection::About;

/// A request that takes this long is logged even if it is not sampled, where there is no slow log.
const SLOW: Duration = Duration::from_secs(1);

/// The requests for which a line is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    No,
    /// If it fails or is slow.
    IfTelling,
    /// In any case, for so many.
    Yes(u32),
}

pub(super) fn log(about: &About, logged: &Logged, peer: Option<SocketAddr>) {
    let taken = logged.began.elapsed();
    let sample = match logged.line {
        Wanted::No => return,
        _ if is_telling(about, logged, taken) => None,
        Wanted::IfTelling => return,
        Wanted::Yes(sample) => Some(sample).filter(|sample| *sample > 1),
    };
    tracing::info!(
        target: "greenroom::access",
        peer = peer.map(tracing::field::display),
        client = about.client.map(tracing::field::display),
        method = %about.method,
        target = %String::from_utf8_lossy(&about.target),
        version = ?logged.version,
        status = number(about.status),
        bytes = about.sent,
        cut = about.cut.then_some(true),
        micros = micros(taken),
        referer = text(logged.referer.as_ref()).as_deref(),
        user_agent = text(logged.user_agent.as_ref()).as_deref(),
        request_id = super::text(logged.id.as_ref()),
        sample,
    );
}

/// Returns `true` for a request that is always logged: it failed, or was slow.
fn is_telling(about: &About, logged: &Logged, taken: Duration) -> bool {
    let is_error = |status: StatusCode| status.is_client_error() || status.is_server_error();
    let least = logged.slow.as_ref().map_or(SLOW, |(least, _)| *least);
    about.cut || about.status.is_none_or(is_error) || taken >= least
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
