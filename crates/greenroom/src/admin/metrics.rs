//! Metrics in the format of Prometheus.

mod catalog;
#[cfg(any(feature = "tls", feature = "tls-ring"))]
mod certificates;
#[cfg(feature = "cluster")]
mod clusters;
mod process;
mod requests;
mod stages;
mod text;
mod upgrades;

use std::time::Duration;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use greenroom_stage::{Placement, Priority};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};
use parking_lot::Mutex;
use tokio::time::interval;

pub use catalog::{METRICS, Metric, MetricKind};
use text::Text;

/// The interval at which histograms are put together, so that they stay small though no client asks
/// for them.
const UPKEEP: Duration = Duration::from_secs(5);

/// Upper ends of the histograms' buckets, but for those of requests.
const SECONDS: [f64; 16] = [
    1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Text format 0.0.4.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The recorder of this process, once it is installed.
static RECORDER: Mutex<Option<PrometheusHandle>> = Mutex::new(None);

/// Metrics cannot be installed: the process has another recorder.
#[derive(Debug, thiserror::Error)]
#[error("cannot install the recorder of metrics")]
pub struct InstallMetricsError(#[from] BuildError);

/// Installs a recorder for the crate `metrics`, and returns the route `/greenroom/metrics`, which
/// serves its records to Prometheus, and beside them what [`METRICS`] names of requests, stages and
/// the process. If it is installed already, only returns the route.
///
/// A server with an [admin server](crate::ServerBuilder::admin) does so itself. It must come before
/// the first request, and within a runtime that lives as long as the server. Counters whose names
/// end in `_microseconds_total` are served in seconds, as `_seconds_total`: the recorder counts in
/// integers.
///
/// # Errors
///
/// If the process has another recorder.
///
/// # Panics
///
/// If called outside a tokio runtime.
pub fn install_metrics() -> Result<Router, InstallMetricsError> {
    Ok(routes()?.layer(Placement::auto().priority(Priority::Critical)))
}

/// Returns the same route, which is not placed.
pub(super) fn routes() -> Result<Router, InstallMetricsError> {
    let handle = recorder()?;
    tokio::spawn(keep_up(handle.clone()));
    let show = move || async move { ([(CONTENT_TYPE, FORMAT)], render(&handle)) };
    Ok(Router::new().route("/greenroom/metrics", get(show)))
}

fn recorder() -> Result<PrometheusHandle, BuildError> {
    // Held meanwhile: servers of one process may start at once, and only one can install it.
    let mut recorder = RECORDER.lock();
    if let Some(installed) = &*recorder {
        return Ok(installed.clone());
    }
    let handle = PrometheusBuilder::new()
        .set_buckets(&SECONDS)?
        .install_recorder()?;
    catalog::describe();
    Ok(recorder.insert(handle).clone())
}

async fn keep_up(handle: PrometheusHandle) {
    let mut interval = interval(UPKEEP);
    loop {
        interval.tick().await;
        handle.run_upkeep();
    }
}

fn render(recorded: &PrometheusHandle) -> String {
    let mut text = Text::recorded(&recorded.render());
    requests::add(&mut text);
    stages::add(&mut text);
    #[cfg(any(feature = "tls", feature = "tls-ring"))]
    certificates::add(&mut text);
    #[cfg(feature = "cluster")]
    clusters::add(&mut text);
    upgrades::add(&mut text);
    process::add(&mut text);
    text.into()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn many_install_it_at_once() {
        let start = Barrier::new(8);
        let install = || {
            start.wait();
            recorder().map(drop)
        };
        thread::scope(|scope| {
            let installing: Vec<_> = (0..8).map(|_| scope.spawn(install)).collect();
            for thread in installing {
                let installed = thread.join().expect("it does not panic");
                installed.expect("no other recorder is there");
            }
        });
    }
}
