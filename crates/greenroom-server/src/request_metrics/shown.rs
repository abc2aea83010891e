use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

use super::labels::{METHODS, scheme};
use super::{ALL, Labels, OfLoop};

/// The upper bounds of the buckets of `http.server.request.duration`, in seconds: those that the
/// semantic conventions of OpenTelemetry advise, and two below them.
pub const REQUEST_SECONDS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];

/// The requests of the servers of this process that count them, see
/// [`ServerBuilder::request_metrics`](crate::ServerBuilder::request_metrics).
#[derive(Clone, Debug)]
pub struct RequestMetrics {
    /// Requests that are over, by their labels.
    pub series: Vec<RequestSeries>,
    /// Requests that are under way.
    pub active: Vec<ActiveRequests>,
}

/// The requests that are over and have the same labels.
#[derive(Clone, Debug)]
pub struct RequestSeries {
    /// `http.request.method`; `_OTHER` if it is none of RFC 9110 or 5789.
    pub method: &'static str,
    /// `http.response.status_code`; `None` if the client left before there was a response.
    pub status: Option<u16>,
    /// `http.route`: the path of the route, such as `/users/{id}`, if the request came to one.
    /// `_OTHER` once there are more than 2,000 combinations.
    pub route: Option<&'static str>,
    /// `network.protocol.version`: `1.0`, `1.1`, `2` or `3`.
    pub version: &'static str,
    /// `url.scheme`.
    pub scheme: &'static str,
    /// The requests that took at most the [seconds](REQUEST_SECONDS) of the same index and more
    /// than those before it, and last those that took longer: from the end of the head to the last
    /// byte of the response that was given to the system.
    pub buckets: [u64; REQUEST_SECONDS.len() + 1],
    /// The time that all of them took.
    pub sum: Duration,
}

/// The requests under way of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveRequests {
    /// `http.request.method`, or `_OTHER`.
    pub method: &'static str,
    /// `url.scheme`.
    pub scheme: &'static str,
    /// Their number.
    pub count: u64,
}

/// The requests of several loops, by their labels.
#[derive(Clone, Debug)]
pub(super) struct Sums(BTreeMap<Key, RequestSeries>);

impl Sums {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds the requests of a loop. Those of labels beyond so many are added by their status only.
    pub(super) fn add_loop(&mut self, of_loop: &OfLoop, series_max: usize) {
        for (labels, counted) in of_loop.series.lock().iter() {
            let is_known = self.0.contains_key(&key(labels));
            let labels = if is_known || self.0.len() < series_max {
                *labels
            } else {
                labels.by_status()
            };
            let sum = self.0.entry(key(&labels)).or_insert_with(|| empty(&labels));
            for (bucket, count) in sum.buckets.iter_mut().zip(counted.buckets()) {
                *bucket += count;
            }
            sum.sum += counted.sum();
        }
    }
}

/// The labels that tell series apart.
type Key = (
    Option<&'static str>,
    &'static str,
    u16,
    &'static str,
    &'static str,
);

impl RequestMetrics {
    /// Returns the counts at this moment, added up over all loops. Takes the lock of each loop for
    /// a moment, which that takes only for labels that are new to it.
    #[must_use]
    pub fn now() -> Self {
        // At once, so that a loop which ends now is counted once.
        let (loops, mut sums) = {
            let all = ALL.lock();
            let loops: Vec<_> = all.loops.iter().filter_map(Weak::upgrade).collect();
            (loops, all.ended.clone())
        };
        let mut active = [0_u64; 2 * METHODS.len()];
        for of_loop in &loops {
            sums.add_loop(of_loop, usize::MAX);
            for (index, count) in active.iter_mut().enumerate() {
                *count += of_loop.active.of(index);
            }
        }
        let active = active
            .iter()
            .enumerate()
            .map(|(index, count)| ActiveRequests {
                method: METHODS[index / 2],
                scheme: scheme(index % 2 == 1),
                count: *count,
            });
        Self {
            series: sums.0.into_values().collect(),
            active: active.collect(),
        }
    }
}

fn key(labels: &Labels) -> Key {
    (
        labels.route,
        labels.method(),
        labels.status,
        labels.version(),
        labels.scheme(),
    )
}

fn empty(labels: &Labels) -> RequestSeries {
    RequestSeries {
        method: labels.method(),
        status: (labels.status > 0).then_some(labels.status),
        route: labels.route,
        version: labels.version(),
        scheme: labels.scheme(),
        buckets: Default::default(),
        sum: Duration::ZERO,
    }
}
