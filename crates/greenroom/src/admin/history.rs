//! Samples of the last minutes and the last hour, for charts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use super::Admin;
use crate::Status;

/// The time between two samples.
pub(super) const STEP: Duration = Duration::from_secs(1);
/// Samples that are kept, 5 minutes of them.
pub(super) const RECENT_MAX: usize = 300;
/// Samples that are folded into one of the hour.
const FOLDED: usize = 15;
/// Folded samples that are kept, an hour of them.
pub(super) const HOUR_MAX: usize = 240;

/// A value that is sampled.
pub(super) struct Series {
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
    fold: Fold,
}

/// The way from several samples to one.
enum Fold {
    Mean,
    Max,
}

pub(super) const SERIES: [Series; 6] = [
    Series {
        key: "requests_per_second",
        title: "Requests",
        unit: "/s",
        help: "Requests that the loops gave to the application, a second.",
        fold: Fold::Mean,
    },
    Series {
        key: "rejected_per_second",
        title: "Rejected",
        unit: "/s",
        help: "Requests and connections that got a 503 in place of a response, a second: by \
               stages, loops, Perl queues and proxies.",
        fold: Fold::Mean,
    },
    Series {
        key: "queue_len",
        title: "Waiting",
        unit: "",
        help: "Requests that wait for a thread of a stage or for a Perl worker.",
        fold: Fold::Max,
    },
    Series {
        key: "predicted_wait_millis",
        title: "Predicted wait",
        unit: "ms",
        help: "The longest time that a new request would wait for its turn, of all stages and \
               Perl queues. New work is refused when it nears the limit.",
        fold: Fold::Max,
    },
    Series {
        key: "loop_lag_millis",
        title: "Loop lag",
        unit: "ms",
        help: "The longest time that ready work waited for its loop, by the last probe of each.",
        fold: Fold::Max,
    },
    Series {
        key: "connections",
        title: "Connections",
        unit: "",
        help: "Connections that the loops serve.",
        fold: Fold::Max,
    },
];

/// One value of each of [`SERIES`].
pub(super) type Sample = [f32; SERIES.len()];

/// Counters that become rates, and gauges, at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Observed {
    requests: u64,
    rejected: u64,
    queue_len: f32,
    predicted_wait_millis: f32,
    loop_lag_millis: f32,
    connections: f32,
}

/// Two rings of samples, [`RECENT_MAX`] and [`HOUR_MAX`] long: 13 KB.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<Rings>);

#[derive(Clone, Debug, Default)]
struct Rings {
    recent: VecDeque<Sample>,
    hour: VecDeque<Sample>,
    folding: Vec<Sample>,
    last: Option<Observed>,
}

/// The samples, the oldest first.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    series: [&'static str; SERIES.len()],
    pub(super) recent: Vec<Sample>,
    recent_step_seconds: u64,
    pub(super) hour: Vec<Sample>,
    hour_step_seconds: u64,
}

/// Takes a sample each second.
pub(super) async fn sample(admin: Arc<Admin>) {
    let mut ticks = interval(STEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut last = Instant::now();
    loop {
        ticks.tick().await;
        let now = Instant::now();
        let observed = Observed::of(&admin.shown.status_without_actors());
        admin.history.record(observed, now - last);
        last = now;
    }
}

impl Observed {
    pub(super) fn of(status: &Status) -> Self {
        let Status {
            loops,
            stages,
            routes,
            ..
        } = status;
        let lag = loops.iter().map(|each| each.lag_micros).max();
        let wait = stages.iter().map(|stage| stage.predicted_wait_micros);
        #[cfg_attr(
            not(any(feature = "psgi", feature = "proxy")),
            expect(unused_mut, reason = "there is nothing to add")
        )]
        let mut observed = Self {
            requests: loops.iter().map(|each| each.requests).sum(),
            rejected: loops.iter().map(|each| each.rejected).sum::<u64>()
                + routes.iter().map(|route| route.sheds).sum::<u64>(),
            queue_len: stages.iter().map(|stage| count(stage.queue_len)).sum(),
            predicted_wait_millis: millis(wait.max()),
            loop_lag_millis: millis(lag),
            connections: loops.iter().map(|each| count(each.connections)).sum(),
        };
        #[cfg(feature = "psgi")]
        for queue in status.psgi.iter().map(|gateway| &gateway.queue) {
            observed.rejected += queue.sheds.total();
            observed.queue_len += count(queue.queue_len);
            let wait = millis(Some(queue.predicted_wait_micros));
            observed.predicted_wait_millis = observed.predicted_wait_millis.max(wait);
        }
        #[cfg(feature = "proxy")]
        for proxy in &status.proxies {
            observed.rejected += proxy.refused;
        }
        observed
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is drawn")]
fn count(count: usize) -> f32 {
    count as f32
}

#[expect(clippy::cast_precision_loss, reason = "it is drawn")]
fn millis(micros: Option<u64>) -> f32 {
    micros.unwrap_or_default() as f32 / 1e3
}

impl History {
    /// Adds what is observed a time after the last one.
    pub(super) fn record(&self, now: Observed, elapsed: Duration) {
        let mut rings = self.0.lock();
        if let Some(last) = rings.last.replace(now) {
            rings.add(sample_of(last, now, elapsed));
        }
    }

    pub(super) fn shown(&self) -> Shown {
        let rings = self.0.lock();
        Shown {
            series: SERIES.each_ref().map(|series| series.key),
            recent: rings.recent.iter().copied().collect(),
            recent_step_seconds: STEP.as_secs(),
            hour: rings.hour.iter().copied().collect(),
            hour_step_seconds: STEP.as_secs() * FOLDED as u64,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is drawn")]
fn sample_of(last: Observed, now: Observed, elapsed: Duration) -> Sample {
    let seconds = elapsed.as_secs_f32().max(1e-3);
    // A counter is smaller when a loop or a route that it was the sum of is gone.
    let rate = |last: u64, now: u64| now.saturating_sub(last) as f32 / seconds;
    [
        rate(last.requests, now.requests),
        rate(last.rejected, now.rejected),
        now.queue_len,
        now.predicted_wait_millis,
        now.loop_lag_millis,
        now.connections,
    ]
}

impl Rings {
    fn add(&mut self, sample: Sample) {
        push(&mut self.recent, sample, RECENT_MAX);
        self.folding.push(sample);
        if self.folding.len() == FOLDED {
            let folded = fold(&self.folding);
            self.folding.clear();
            push(&mut self.hour, folded, HOUR_MAX);
        }
    }
}

fn push(ring: &mut VecDeque<Sample>, sample: Sample, max: usize) {
    if ring.len() == max {
        ring.pop_front();
    }
    ring.push_back(sample);
}

#[expect(clippy::cast_precision_loss, reason = "it is a small number")]
fn fold(samples: &[Sample]) -> Sample {
    std::array::from_fn(|index| {
        let values = samples.iter().map(|sample| sample[index]);
        match SERIES[index].fold {
            Fold::Mean => values.sum::<f32>() / samples.len() as f32,
            Fold::Max => values.fold(0.0, f32::max),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(requests: u64, queue_len: f32) -> Observed {
        Observed {
            requests,
            queue_len,
            ..Observed::default()
        }
    }

    #[test]
    fn counters_become_rates_and_the_hour_has_their_mean_and_the_highest_gauge() {
        let history = History::default();
        for second in 0..=15 {
            history.record(observed(second * second, 3.0), STEP);
        }
        history.record(observed(225 + 40, 9.0), 2 * STEP);
        let shown = history.shown();
        assert_eq!(shown.recent.len(), 16);
        assert!((shown.recent[0][0] - 1.0).abs() < 1e-3);
        assert!(
            (shown.recent[15][0] - 20.0).abs() < 1e-3,
            "40 in two seconds"
        );
        assert_eq!(shown.hour.len(), 1);
        assert!((shown.hour[0][0] - 15.0).abs() < 1e-3, "225 in 15 s");
        assert!((shown.hour[0][2] - 3.0).abs() < 1e-3);
    }

    #[test]
    fn the_rings_are_bounded_and_a_counter_that_shrinks_is_no_rate() {
        let history = History::default();
        let samples = 2 * HOUR_MAX * FOLDED;
        for _ in 0..samples {
            history.record(observed(7, 0.0), STEP);
        }
        history.record(observed(1, 0.0), STEP);
        let shown = history.shown();
        assert_eq!(
            (shown.recent.len(), shown.hour.len()),
            (RECENT_MAX, HOUR_MAX)
        );
        assert!(shown.recent[RECENT_MAX - 1][0].abs() < 1e-6);
    }
}
