use std::sync::{Arc, Mutex, PoisonError, Weak};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::Pressure;
use super::record::Record;

static LOOPS: Mutex<Vec<Weak<Record>>> = Mutex::new(Vec::new());

/// A loop at one moment. Times are in microseconds; counts are since the loop began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoopStatus {
    /// The loop's name, and its thread's if it has one of its own: `loop-0`.
    pub name: String,
    /// Connections that it serves now.
    pub connections: usize,
    /// Requests that it has given to the application, as it last told: after a probe, and each
    /// quarter of a second.
    pub requests: u64,
    /// The degree to which it is behind.
    pub pressure: Pressure,
    /// Number of times that its pressure became [`Pressure::Over`].
    pub over: u64,
    /// Connections that it refused with 503, because they had waited too long to be accepted.
    pub refused: u64,
    /// Number of times that something other than a placed route held it up, such as a task that was
    /// spawned there; 0 if nothing [watches](crate::App::watch_loop) it.
    pub stalls: u64,
    /// The lag beyond which it is `Over`: [`Limits::loop_lag_max`](crate::Limits::loop_lag_max).
    pub loop_lag_max_micros: u64,
    /// Time for which every probe must have been beyond it first:
    /// [`Limits::loop_lag_standing`](crate::Limits::loop_lag_standing).
    pub loop_lag_standing_micros: u64,
    /// The lag by the last probe: how long what was ready waited to be served. If a probe is under
    /// way, at least as long as it has waited.
    pub lag_micros: u64,
    /// All lags that were probed. A busy loop is probed once in 64 polls of its connections, all
    /// the time while it is behind, and one with little to do four times a second at most, with
    /// nothing to do never: so this tells of its busy times.
    pub lag: Quantiles,
}

/// A distribution of times in microseconds, to two significant digits. All zero when nothing was
/// recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// How many times were recorded.
    pub count: u64,
    /// Half of them are at most this.
    pub p50_micros: u64,
    /// 90 of 100 are at most this.
    pub p90_micros: u64,
    /// 99 of 100 are at most this.
    pub p99_micros: u64,
    /// The longest.
    pub max_micros: u64,
}

impl Quantiles {
    pub(super) fn of(histogram: &Histogram<u64>) -> Self {
        Self {
            count: histogram.len(),
            p50_micros: histogram.value_at_quantile(0.5),
            p90_micros: histogram.value_at_quantile(0.9),
            p99_micros: histogram.value_at_quantile(0.99),
            max_micros: histogram.max(),
        }
    }
}

/// The loops of all servers of the process that run now, in the order in which they began.
#[must_use]
pub fn loops() -> Vec<LoopStatus> {
    let loops = LOOPS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let running = loops.iter().filter_map(Weak::upgrade);
    running.map(|record| record.status()).collect()
}

pub(super) fn add(record: &Arc<Record>) {
    let mut loops = LOOPS.lock().unwrap_or_else(PoisonError::into_inner);
    loops.retain(|known| known.strong_count() > 0);
    loops.push(Arc::downgrade(record));
}
