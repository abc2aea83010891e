//! Counters and histograms in the format of Prometheus.

use std::time::Duration;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use greenroom_stage::{Importance, Placement};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};
use tokio::time::interval;

/// Histograms are put together this often, so that they stay small though nobody asks for them.
const UPKEEP: Duration = Duration::from_secs(5);

/// Upper ends of the histograms' buckets.
const SECONDS: [f64; 16] = [
    1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Text format 0.0.4.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Nothing can be counted.
#[derive(Debug, thiserror::Error)]
#[error("cannot count")]
pub struct CountError(#[from] BuildError);

/// Starts to count: installs a recorder for the crate `metrics`. Must come before the first request, and within a
/// runtime that lives as long as the server. Returns the route `/greenroom/metrics`, which shows the counts to
/// Prometheus.
///
/// # Errors
/// If the process has a recorder already.
pub fn count() -> Result<Router, CountError> {
    let handle = PrometheusBuilder::new()
        .set_buckets(&SECONDS)?
        .install_recorder()?;
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
