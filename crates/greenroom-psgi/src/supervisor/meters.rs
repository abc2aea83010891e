//! The metrics of applications.
//!
//! Several gateways may have the labels of one application: the new one of a reload serves while
//! the old one drains. So each metric is of all of them, and counts of those that have ended stay.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics::{Label, counter, gauge};
use parking_lot::Mutex;

use crate::status::{GatewayStatus, WorkerState};

/// The states that workers are counted in, with their labels.
const STATES: [(WorkerState, &str); 5] = [
    (WorkerState::Starting, "starting"),
    (WorkerState::Ready, "ready"),
    (WorkerState::Retiring, "retiring"),
    (WorkerState::Draining, "draining"),
    (WorkerState::Ending, "ending"),
];

/// The applications of this process.
static APPLICATIONS: Mutex<BTreeMap<Application, Gateways>> = Mutex::new(BTreeMap::new());

/// The labels `application` and `mount`.
type Application = (String, String);

/// A metric of an application: its name, and a further label.
type Name = (&'static str, Option<(&'static str, &'static str)>);

#[derive(Debug, Default)]
struct Gateways {
    /// By their numbers.
    live: BTreeMap<u64, Measured>,
    /// The counts of those that have ended.
    ended: BTreeMap<Name, u64>,
}

#[derive(Debug, Default)]
struct Measured {
    gauges: BTreeMap<Name, f64>,
    counts: BTreeMap<Name, u64>,
}

/// Updates the metrics of a gateway, until it is dropped.
#[derive(Debug)]
pub(super) struct Meters {
    number: u64,
    application: Application,
}

impl Meters {
    pub(super) fn new(status: &GatewayStatus) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            application: (status.application.clone(), status.label.clone()),
        }
    }

    /// Updates the metrics. They are looked up each time, so that a recorder that was installed
    /// after the gateway began gets them too.
    pub(super) fn record(&self, status: &GatewayStatus) {
        let mut applications = APPLICATIONS.lock();
        let gateways = applications.entry(self.application.clone()).or_default();
        gateways.live.insert(self.number, Measured::of(status));
        gateways.publish(&self.application);
    }
}

impl Drop for Meters {
    fn drop(&mut self) {
        let mut applications = APPLICATIONS.lock();
        let Some(gateways) = applications.get_mut(&self.application) else {
            return;
        };
        let Some(last) = gateways.live.remove(&self.number) else {
            return;
        };
        for (name, count) in last.counts {
            *gateways.ended.entry(name).or_default() += count;
        }
        gateways.publish_without(&self.application, last.gauges.into_keys());
    }
}

impl Gateways {
    fn publish(&self, application: &Application) {
        self.publish_without(application, std::iter::empty());
    }

    /// Publishes what there is, and no more than that of what a gateway had that has ended.
    fn publish_without(&self, application: &Application, ended: impl Iterator<Item = Name>) {
        let mut gauges: BTreeMap<Name, f64> = ended.map(|name| (name, 0.0)).collect();
        let mut counts = self.ended.clone();
        for measured in self.live.values() {
            for (name, value) in &measured.gauges {
                let all = gauges.entry(*name).or_default();
                *all = if is_longest(name) {
                    value.max(*all)
                } else {
                    value + *all
                };
            }
            for (name, count) in &measured.counts {
                *counts.entry(*name).or_default() += count;
            }
        }
        for (name, value) in gauges {
            gauge!(name.0, labels(application, name)).set(value);
        }
        for (name, count) in counts {
            counter!(name.0, labels(application, name)).absolute(count);
        }
    }
}

/// Returns `true` for times: of several the longest counts.
fn is_longest(name: &Name) -> bool {
    name.0.ends_with("_seconds")
}

fn labels((application, mount): &Application, (_, further): Name) -> Vec<Label> {
    let mut labels = vec![
        Label::new("application", application.clone()),
        Label::new("mount", mount.clone()),
    ];
    labels.extend(further.map(|(name, value)| Label::new(name, value)));
    labels
}

impl Measured {
    fn of(status: &GatewayStatus) -> Self {
        let mut gauges = BTreeMap::new();
        let mut set = |name, further, value| gauges.insert((name, further), value);
        let workers = || status.workers.iter();
        for (state, name) in STATES {
            let count = workers().filter(|worker| worker.state == state).count();
            set(
                "greenroom_psgi_workers",
                Some(("state", name)),
                number(count),
            );
        }
        set(
            "greenroom_psgi_workers_wanted",
            None,
            number(status.workers_wanted),
        );
        let running: u32 = workers().map(|worker| worker.running).sum();
        let waiting: u32 = workers().map(|worker| worker.waiting).sum();
        for (state, count) in [("running", running), ("waiting", waiting)] {
            set(
                "greenroom_psgi_requests",
                Some(("state", state)),
                count.into(),
            );
        }
        let rss = workers().map(|worker| worker.rss_bytes).sum();
        set("greenroom_psgi_resident_memory_bytes", None, bytes(rss));
        let stuck = workers().map(|worker| worker.stuck_micros).max();
        set(
            "greenroom_psgi_stuck_seconds",
            None,
            seconds(stuck.unwrap_or_default()),
        );
        let queue = &status.queue;
        set("greenroom_psgi_queue_length", None, number(queue.queue_len));
        let predicted = seconds(queue.predicted_wait_micros);
        set("greenroom_psgi_predicted_wait_seconds", None, predicted);
        let rejected = |reason| ("greenroom_psgi_rejected_total", Some(("reason", reason)));
        let counts = [
            (
                ("greenroom_psgi_worker_restarts_total", None),
                status.restarts,
            ),
            (("greenroom_psgi_workers_hung_total", None), status.hung),
            (
                ("greenroom_psgi_workers_retired_total", None),
                status.retired,
            ),
            (("greenroom_psgi_reloads_total", None), status.reloads),
            (
                ("greenroom_psgi_reloads_failed_total", None),
                status.reloads_failed,
            ),
            (rejected("wait"), queue.sheds.wait),
            (rejected("queue_full"), queue.sheds.queue_full),
            (rejected("late"), queue.sheds.late),
        ];
        Self {
            gauges,
            counts: counts.into(),
        }
    }
}

fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
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
