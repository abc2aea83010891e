//! Counters and histograms in the format of Prometheus.

use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use greenroom::{Importance, Placement};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::time::interval;

/// Histograms are put together this often, so that they stay small though nobody asks for them.
const UPKEEP: Duration = Duration::from_secs(5);

/// Upper ends of the histograms' buckets.
const SECONDS: [f64; 16] = [
    1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Text format 0.0.4.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Starts to count. Must come before the first request, and within a runtime that lives as long as
/// the server. Returns the route that shows the counts.
pub(crate) fn start() -> anyhow::Result<Router> {
    let recorder = PrometheusBuilder::new().set_buckets(&SECONDS);
    let handle = recorder.and_then(PrometheusBuilder::install_recorder);
    let handle = handle.context("cannot count")?;
    tokio::spawn(keep_up(handle.clone()));
    let show = move || async move { ([(CONTENT_TYPE, FORMAT)], handle.render()) };
    let router = Router::new().route("/greenroom/metrics", get(show));
    Ok(router.layer(Placement::auto().importance(Importance::Critical)))
}

async fn keep_up(handle: PrometheusHandle) {
    let mut interval = interval(UPKEEP);
    loop {
        interval.tick().await;
        handle.run_upkeep();
    }
}
