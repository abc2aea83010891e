//! The metrics of an application.

use std::time::Duration;

use metrics::{Label, counter, gauge};

use crate::status::{GatewayStatus, WorkerState};

/// The states that workers are counted in, with their labels.
const STATES: [(WorkerState, &str); 5] = [
    (WorkerState::Starting, "starting"),
    (WorkerState::Ready, "ready"),
    (WorkerState::Retiring, "retiring"),
    (WorkerState::Draining, "draining"),
    (WorkerState::Ending, "ending"),
];

/// Updates the metrics. They are looked up each time, so that a recorder that was installed after
/// the gateway began gets them too.
pub(super) fn record(status: &GatewayStatus) {
    let labels = [
        Label::new("application", status.application.clone()),
        Label::new("mount", status.label.clone()),
    ];
    record_workers(status, &labels);
    record_queue(status, &labels);
    let counts = [
        ("greenroom_psgi_worker_restarts_total", status.restarts),
        ("greenroom_psgi_workers_hung_total", status.hung),
        ("greenroom_psgi_workers_retired_total", status.retired),
        ("greenroom_psgi_reloads_total", status.reloads),
        ("greenroom_psgi_reloads_failed_total", status.reloads_failed),
    ];
    for (name, count) in counts {
        counter!(name, labels.iter()).absolute(count);
    }
}

fn record_workers(status: &GatewayStatus, labels: &[Label; 2]) {
    let workers = || status.workers.iter();
    for (state, name) in STATES {
        let count = workers().filter(|worker| worker.state == state).count();
        gauge!("greenroom_psgi_workers", with(labels, "state", name)).set(number(count));
    }
    gauge!("greenroom_psgi_workers_wanted", labels.iter()).set(number(status.workers_wanted));
    let running: u32 = workers().map(|worker| worker.running).sum();
    let waiting: u32 = workers().map(|worker| worker.waiting).sum();
    gauge!("greenroom_psgi_requests", with(labels, "state", "running")).set(running);
    gauge!("greenroom_psgi_requests", with(labels, "state", "waiting")).set(waiting);
    let rss = workers().map(|worker| worker.rss_bytes).sum();
    gauge!("greenroom_psgi_resident_memory_bytes", labels.iter()).set(bytes(rss));
    let stuck = workers().map(|worker| worker.stuck_micros).max();
    let stuck = Duration::from_micros(stuck.unwrap_or_default());
    gauge!("greenroom_psgi_stuck_seconds", labels.iter()).set(stuck.as_secs_f64());
}

fn record_queue(status: &GatewayStatus, labels: &[Label; 2]) {
    let queue = &status.queue;
    gauge!("greenroom_psgi_queue_length", labels.iter()).set(number(queue.queue_len));
    let predicted = Duration::from_micros(queue.predicted_wait_micros);
    gauge!("greenroom_psgi_predicted_wait_seconds", labels.iter()).set(predicted.as_secs_f64());
    let rejected = [
        ("wait", queue.sheds.wait),
        ("queue_full", queue.sheds.queue_full),
        ("late", queue.sheds.late),
    ];
    for (reason, count) in rejected {
        counter!(
            "greenroom_psgi_rejected_total",
            with(labels, "reason", reason)
        )
        .absolute(count);
    }
}

fn with(labels: &[Label; 2], name: &'static str, value: &'static str) -> Vec<Label> {
    let mut labels = labels.to_vec();
    labels.push(Label::new(name, value));
    labels
}

#[expect(
    clippy::cast_precision_loss,
    reason = "bytes of memory are fewer than 2^53"
)]
fn bytes(count: u64) -> f64 {
    count as f64
}

/// Converts a number of workers or requests, which are fewer than 2^32.
fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}
