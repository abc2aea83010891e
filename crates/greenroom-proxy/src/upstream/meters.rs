//! The metrics of an upstream. They are looked up each time, so that a recorder that was installed
//! after the proxy began gets them too.

use std::sync::Arc;

use metrics::{SharedString, counter, gauge};

use super::failure::Failure;

fn label(upstream: &Arc<str>) -> SharedString {
    SharedString::from_shared(Arc::clone(upstream))
}

pub(super) fn entered(upstream: &Arc<str>, is_retry: bool) {
    counter!("greenroom_proxy_requests_total", "upstream" => label(upstream)).increment(1);
    if is_retry {
        counter!("greenroom_proxy_retries_total", "upstream" => label(upstream)).increment(1);
    }
    gauge!("greenroom_proxy_active_requests", "upstream" => label(upstream)).increment(1);
}

pub(super) fn left(upstream: &Arc<str>) {
    gauge!("greenroom_proxy_active_requests", "upstream" => label(upstream)).decrement(1);
}

pub(super) fn failed(upstream: &Arc<str>, failure: Failure) {
    counter!(
        "greenroom_proxy_failures_total",
        "upstream" => label(upstream), "reason" => failure.name()
    )
    .increment(1);
}

/// Counts a rest. Several proxies may have the same upstream, each with what it knows of it.
pub(super) fn rest_began(upstream: &Arc<str>) {
    gauge!("greenroom_proxy_resting", "upstream" => label(upstream)).increment(1);
}

pub(super) fn rest_ended(upstream: &Arc<str>) {
    gauge!("greenroom_proxy_resting", "upstream" => label(upstream)).decrement(1);
}
